"""How well Room Ballet can be answered from what a memory has kept: what readers of that memory are measured against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from memenvs.retention import Count, retained
from memenvs.room_ballet.dances import DANCES, PERFORMANCE_CELLS
from memenvs.room_ballet.episodes import NUM_CELLS, PERFORMANCE_STEPS, Episodes
from memenvs.room_ballet.schedules import ROOM_STEPS
from memenvs.room_ballet.tasks import BalletTask


@dataclass(frozen=True, eq=False)
class ObserverScores:
    """What an ideal observer makes of B episodes.

    Attributes:
        retained: bool, (B,); memory tells something of the answer; where whole visits come and go: the visit that is asked about is in memory.
        accuracy: float64, (B,); chance that the best answer is right.
    """

    retained: np.ndarray
    accuracy: np.ndarray


def ideal_observer(
    task: BalletTask,
    episodes: Episodes,
    strategy: str | np.ndarray = "fifo",
    capacity: int | None = None,
    *,
    count: Count = "occupancy",
) -> ObserverScores:
    """Recalls all that memory has kept, and guesses otherwise.

    Of the dances that agree with the frames in memory it answers the one that fewest visits in memory show (of several any), which is the better
    guess where the busiest room shows every dance once; where dancers stay in their rooms, any. Where the visit that is asked about is kept, nothing
    can be better. Where it is lost, what shapes and rooms say of the dances that were dealt is not made use of.

    Args:
        task: What the episodes are of.
        episodes: B of them.
        strategy: Which visits are kept, a name or a number for each episode (`memenvs.retention.retained`).
        capacity: Visits that there is room for; None is the task's own (`BalletTask.capacity`).
        count: What makes a place visited, as in `memenvs.retention.retained`.

    Raises:
        ValueError: The episodes are of another task, the strategy or `count` is unknown, or the capacity is below one visit (with "quota": one for
            each room).
    """
    _check_visits(task, episodes)
    capacity = task.capacity if capacity is None else capacity
    kept = retained(episodes.visit_place, strategy, capacity, count=count, n_places=task.rooms)
    possible = possible_dances(task, episodes, np.take_along_axis(kept, episodes.visit.astype(np.intp), 1))
    shown = np.zeros(possible.shape, np.int64)
    if not task.queries_rooms:
        cell = np.arange(len(shown))[:, None] * len(DANCES) + episodes.visit_dance
        shown = np.bincount(cell[kept], minlength=shown.size).reshape(shown.shape)
    fewest = np.where(possible, shown, task.visits + 1).min(1, keepdims=True)
    guesses = possible & (shown == fewest)
    is_right = guesses[np.arange(len(guesses)), episodes.label]
    return ObserverScores(retained=np.logical_not(possible.all(1)), accuracy=is_right / guesses.sum(1))


def ideal_without_places(task: BalletTask, episodes: Episodes, *, moves_known: bool = False) -> np.ndarray:
    """What is possible where rooms are asked about and no place is known: all frames with their times, and the rules of the walk.

    Which dancers lived side by side, the walk has shown. All ways to lay them out in the rooms that agree with it are weighed by the chance that the
    walk would have gone like that and the question been asked; the answer is the dance that has most weight.

    Args:
        task: What the episodes are of; one that asks about rooms after a walk ("Next", "Opposite").
        episodes: B of them.
        moves_known: Whether it is also known which way each move went.

    Returns:
        float64, (B,); chance that the best answer is right.

    Raises:
        ValueError: The task is another one, or the episodes are of another one.
    """
    _check_visits(task, episodes)
    if not task.queries_rooms or task.schedule not in ("grid_walk", "ring"):
        raise ValueError(f"task must ask about rooms after a walk, got {task}")
    cells = {tuple(position): room for room, position in enumerate(task.positions.tolist())}
    beside = np.array(
        [[cells.get((column + right, row + down), -1) for down, right in ROOM_STEPS.tolist()] for column, row in cells]
    )
    accuracy, actions = np.zeros(len(episodes)), episodes.action[:, :: task.visit_steps]
    asked, answer = episodes.query_place, task.answer_room
    _weigh_layouts(episodes.visit_place, actions, episodes.room_dance, asked, answer, beside, moves_known, accuracy)
    return accuracy


def _check_visits(task: BalletTask, episodes: Episodes) -> None:
    """Raises a ValueError if the episodes have not as many visits as the task's."""
    visits = episodes.visit_place.shape[1]
    if visits != task.visits:
        raise ValueError(f"episodes must be of the task, of {task.visits} visits, got some of {visits}")


def possible_dances(task: BalletTask, episodes: Episodes, kept: np.ndarray | None = None) -> np.ndarray:
    """Which answers agree with the frames that are in memory. It finds the dancer by its look and reads the dance from the cells.

    Args:
        task: What the episodes are of.
        episodes: B of them; their labels are not looked at.
        kept: bool, (B, T); the steps that are in memory; None is all (perfect memory).

    Returns:
        bool, (B, 8); all True where nothing is known.

    Raises:
        ValueError: `kept` has another shape.
    """
    if kept is None:
        kept = np.ones(episodes.frame.shape, bool)
    if kept.shape != episodes.frame.shape:
        raise ValueError(f"kept must have the shape {episodes.frame.shape}, got {kept.shape}")
    possible = np.ones((len(episodes), len(DANCES)), bool)
    answer = task.answer_room if task.queries_rooms else np.zeros(0, np.int64)
    _rule_out(episodes.frame, episodes.place, episodes.query, kept, answer, PERFORMANCE_CELLS, possible)
    return possible


@njit(nogil=True, cache=True)
def _rule_out(
    frame: np.ndarray,
    place: np.ndarray,
    query: np.ndarray,
    kept: np.ndarray,
    answer: np.ndarray,
    performances: np.ndarray,
    possible: np.ndarray,
) -> None:  # pragma: no cover  (compiled)
    """Clears the dances that some frame in memory contradicts; `answer` is empty where a dancer is asked about and not a room."""
    for b in range(len(frame)):
        look, room = query[b] // NUM_CELLS, -1
        for t in range(frame.shape[1]):
            if kept[b, t] and frame[b, t] // NUM_CELLS == look and len(answer):
                room = answer[place[b, t]]
        for t in range(frame.shape[1]):
            is_it = place[b, t] == room if len(answer) else frame[b, t] // NUM_CELLS == look
            if kept[b, t] and is_it:
                for dance in range(len(performances)):
                    possible[b, dance] &= performances[dance, t % PERFORMANCE_STEPS] == frame[b, t] % NUM_CELLS


@njit(nogil=True, cache=True)
def _weigh_layouts(
    visits: np.ndarray,
    actions: np.ndarray,
    room_dance: np.ndarray,
    asked: np.ndarray,
    answer: np.ndarray,
    beside: np.ndarray,
    moves: bool,
    accuracy: np.ndarray,
) -> None:  # pragma: no cover  (compiled)
    """Writes the chance of the best answer; dancers are numbered as they were met and put into rooms one after the other, depth first."""
    rooms = len(answer)
    exits = (beside >= 0).sum(1)
    for b in range(len(visits)):
        dancer_of, home = np.full(rooms, -1), np.zeros(rooms, np.int64)
        before, move_to = np.zeros(rooms, np.int64), np.zeros(rooms, np.int64)
        left, went = np.zeros(rooms, np.int64), np.full((rooms, rooms), -1)
        count = 0
        for v in range(visits.shape[1]):
            here = visits[b, v]
            if dancer_of[here] < 0:
                dancer_of[here], home[count] = count, here
                if v > 0:
                    before[count], move_to[count] = dancer_of[visits[b, v - 1]], actions[b, v]
                count += 1
            if v > 0:
                last = dancer_of[visits[b, v - 1]]
                left[last] += 1
                went[last, dancer_of[here]] = actions[b, v]
        room, dancer_in = np.full(rooms, -1), np.full(rooms, -1)
        tried = np.zeros(rooms, np.int64)
        weight = np.zeros(len(PERFORMANCE_CELLS))
        depth = 0
        while depth >= 0:
            if depth == count:
                goal = answer[room[dancer_of[asked[b]]]]
                if goal >= 0 and dancer_in[goal] >= 0:
                    could = 0
                    log = 0.0
                    for i in range(count):
                        could += answer[room[i]] >= 0 and dancer_in[answer[room[i]]] >= 0
                        log -= left[i] * np.log(exits[room[i]])
                    weight[room_dance[b, home[dancer_in[goal]]]] += np.exp(log) / could
                depth -= 1
                continue
            if room[depth] >= 0:
                dancer_in[room[depth]], room[depth] = -1, -1
            if tried[depth] == (rooms if depth == 0 else beside.shape[1]):
                tried[depth] = 0
                depth -= 1
                continue
            move = tried[depth]
            tried[depth] += 1
            if depth == 0:
                found = move
            elif moves and move != move_to[depth]:
                continue
            else:
                found = beside[room[before[depth]], move]
            if found < 0 or dancer_in[found] >= 0:
                continue
            fits = True
            for i in range(depth):
                for a, z, action in ((room[i], found, went[i, depth]), (found, room[i], went[depth, i])):
                    if action >= 0:
                        reached = False
                        for way in range(beside.shape[1]):
                            if beside[a, way] == z and (not moves or way == action):
                                reached = True
                        fits &= reached
            if fits:
                room[depth], dancer_in[found] = found, depth
                depth += 1
        accuracy[b] = weight.max() / weight.sum()
