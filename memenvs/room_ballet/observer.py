"""Ideal observers of Room Ballet: upper bounds on the accuracy of models with a memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from memenvs.retention import retained
from memenvs.room_ballet.ballet_task import BalletTask
from memenvs.room_ballet.episodes import NUM_CELLS, BalletEpisodes
from memenvs.room_ballet.posterior import count_dances, dance_posterior, dances_of_dancers, room_neighbours


@dataclass(frozen=True, eq=False)
class ObserverScores:
    """Scores of an ideal observer in B episodes.

    Attributes:
        retained: bool, (B,); True if the frames in memory rule out at least one dance. With whole visits in memory this
            means that the visits from which the answer follows are among them.
        accuracy: float64, (B,); probability that the best answer is correct.
    """

    retained: np.ndarray
    accuracy: np.ndarray


def ideal_observer(
    task: BalletTask,
    episodes: BalletEpisodes,
    strategy: str | np.ndarray = "fifo",
    capacity: int | None = None,
) -> ObserverScores:
    """Compute the accuracy of the best answers from the frames that a memory retains.

    Possible dances are those that agree with the frames in memory. If the queried visit is in memory, no observer is
    better than this one. Otherwise it has to guess among the possible dances:

    - Where dancers stay in their rooms, it guesses any of them.
    - Where every visit has a new dancer, it guesses the one that the fewest visits in memory show. The most visited
      room shows every dance once, so a dance that is rare in memory was probably that of an evicted visit.

    Ties are broken uniformly. Guesses ignore what shapes and rooms reveal about the draw of the dances.

    Args:
        task: Task of the episodes.
        episodes: B episodes.
        strategy: Eviction strategy: a name, or int (B,) with a number for each episode; see
            `memenvs.retention.retained`.
        capacity: Visits that the memory can store; None for that of the task (`BalletTask.capacity`).

    Raises:
        ValueError: The episodes are of another task, the strategy is unknown, or the capacity is below 1
            (with "quota": below the number of rooms).
    """
    _check_visits(task, episodes)
    capacity = task.capacity if capacity is None else capacity
    kept = retained(episodes.visit_place, strategy, capacity, n_places=task.rooms)  # (B, V)
    kept_steps = np.take_along_axis(
        kept, episodes.visit.astype(np.intp), 1
    )  # (B, T); the same for each step of a visit
    possible = possible_dances(task, episodes, kept_steps)
    weight = possible.astype(float)
    if not task.queries_rooms:
        weight /= 1 + count_dances(_frames_in_memory(episodes, kept_steps), task.visit_steps)
    guesses = weight == weight.max(1, keepdims=True)
    is_correct = guesses[np.arange(len(guesses)), episodes.label]
    return ObserverScores(retained=np.logical_not(possible.all(1)), accuracy=is_correct / guesses.sum(1))


def ideal_without_places(task: BalletTask, episodes: BalletEpisodes, *, moves_known: bool = False) -> np.ndarray:
    """Compute the accuracy of the best answers from all frames and their times, without places.

    The observer infers the places: the order of the frames shows which dancers are in neighbouring rooms. Each
    assignment of dancers to rooms that agrees with this order gets a weight, its likelihood: the probability that the
    random walk takes this path and that the queried dancer is then drawn. The answer is the dance with the largest sum
    of weights.

    Args:
        task: Task of the episodes; one that queries rooms after a random walk ("Next", "Opposite").
        episodes: B episodes.
        moves_known: If True, the observer also knows the direction of each move.

    Returns:
        float64, (B,); probability that the best answer is correct.

    Raises:
        ValueError: The task is another one, or the episodes are of another one.
    """
    _check_visits(task, episodes)
    if not task.queries_rooms or task.schedule not in ("grid_walk", "ring"):
        raise ValueError(f"task must query rooms after a random walk, got {task}")
    if moves_known:
        weight = dance_posterior(task, episodes.frame, episodes.action, episodes.query).weight
        return weight.max(1) / weight.sum(1)
    neighbour = room_neighbours(task)
    accuracy = np.zeros(len(episodes))
    for b in range(len(episodes)):
        encounters = _trace_encounters(episodes.visit_place[b], task.rooms)
        dance_of_dancer = episodes.room_dance[b, encounters.room_of_dancer]
        queried = encounters.dancer_of_room[episodes.query_place[b]]
        accuracy[b] = _best_answer_probability(encounters, dance_of_dancer, queried, task.answer_room, neighbour)
    return accuracy


def possible_dances(task: BalletTask, episodes: BalletEpisodes, kept: np.ndarray | None = None) -> np.ndarray:
    """Mark the dances that agree with the frames in memory.

    The queried dancer is recognised by its appearance. Where rooms are queried, its room gives the room of the answer.
    Each frame of the answer's dancer in memory then rules out the dances that are in another cell at that step.

    Args:
        task: Task of the episodes.
        episodes: B episodes; their labels are not used.
        kept: bool, (B, T); steps in memory; None for all of them.

    Returns:
        bool, (B, 8); all True if the memory has no frame of the dancer whose dance is the answer.

    Raises:
        ValueError: `kept` has another shape.
    """
    frame = _frames_in_memory(episodes, kept)
    dancer = episodes.query.astype(np.int64) // NUM_CELLS
    if task.queries_rooms:
        answer = episodes.room_dancer[np.arange(len(dancer)), task.answer_room[episodes.query_place]]
        dancer = np.where((frame // NUM_CELLS == dancer[:, None]).any(1), answer, -1)
    return dances_of_dancers(frame, dancer[:, None])[:, 0]


def _frames_in_memory(episodes: BalletEpisodes, kept: np.ndarray | None) -> np.ndarray:
    """Frames of the episodes, int16, (B, T); -1 at steps that are not `kept`."""
    if kept is None:
        return episodes.frame
    if kept.shape != episodes.frame.shape:
        raise ValueError(f"kept must have the shape {episodes.frame.shape}, got {kept.shape}")
    return np.where(kept, episodes.frame, np.int16(-1))


def _check_visits(task: BalletTask, episodes: BalletEpisodes) -> None:
    """Raise a ValueError unless the episodes have as many visits as those of the task."""
    visits = episodes.visit_place.shape[1]
    if visits != task.visits:
        raise ValueError(f"episodes must be of the task, of {task.visits} visits, got some of {visits}")


class _Encounters(NamedTuple):
    """The K dancers of one episode, numbered in the order in which the agent meets them.

    Attributes:
        dancer_of_room: int64, (rooms,); -1 for rooms without a visit.
        room_of_dancer: int64, (K,).
        previous: int64, (K,); the dancer from whose room the agent first came to each one; unused for dancer 0.
        departures: int64, (K,); number of moves away from the room of each one.
        moved: bool, (K, K); whether the agent moved from the room of one to that of the other.
    """

    dancer_of_room: np.ndarray
    room_of_dancer: np.ndarray
    previous: np.ndarray
    departures: np.ndarray
    moved: np.ndarray


@njit(nogil=True, cache=True)
def _trace_encounters(visit_place: np.ndarray, rooms: int) -> _Encounters:  # pragma: no cover  (compiled)
    """Collect the encounters of one episode.

    Args:
        visit_place: int16, (V,); room of each visit.
        rooms: Number of rooms.
    """
    dancer_of_room = np.full(rooms, -1)
    room_of_dancer = np.zeros(rooms, np.int64)
    previous = np.zeros(rooms, np.int64)
    departures = np.zeros(rooms, np.int64)
    moved = np.zeros((rooms, rooms), np.bool_)
    count = 0
    last = -1  # dancer of the visit before
    for v in range(len(visit_place)):
        room = visit_place[v]
        if dancer_of_room[room] < 0:
            dancer_of_room[room] = count
            room_of_dancer[count] = room
            previous[count] = last
            count += 1
        dancer = dancer_of_room[room]
        if v > 0:
            departures[last] += 1
            moved[last, dancer] = True
        last = dancer
    return _Encounters(
        dancer_of_room,
        room_of_dancer[:count],
        previous[:count],
        departures[:count],
        moved[:count, :count],
    )


@njit(nogil=True, cache=True)
def _best_answer_probability(
    encounters: _Encounters,
    dance_of_dancer: np.ndarray,
    queried: int,
    answer_room: np.ndarray,
    neighbour: np.ndarray,
) -> float:  # pragma: no cover  (compiled)
    """Compute the probability that the best answer in one episode is correct.

    Enumerate all assignments of dancers to rooms that agree with the encounters, and add the weight of each to the
    dance that is the answer under it. See `ideal_without_places` for weights.

    The enumeration is a depth-first search without recursion. Dancers are placed in the order of their numbers: dancer
    0 in any room, every other one in a neighbour of its previous dancer's room.

    Args:
        encounters: The episode.
        dance_of_dancer: int8, (K,).
        queried: Number of the queried dancer.
        answer_room: int64, (rooms,); room of the answer by queried room, -1 for none.
        neighbour: int64, (rooms, 4); room after each move, -1 if it is blocked.

    Returns:
        The largest sum of weights divided by the total: the posterior probability of the best answer.
    """
    count = len(encounters.room_of_dancer)
    rooms = len(answer_room)
    weight = np.zeros(8)  # by dance
    exits = (neighbour >= 0).sum(1)  # moves out of each room
    room_of = np.full(count, -1)  # of each dancer that has been placed
    dancer_in = np.full(rooms, -1)  # dancer in each room, -1 for none
    tried = np.zeros(count, np.int64)  # candidates of each dancer that have been tried
    depth = 0  # number of dancers that have been placed
    while depth >= 0:
        if depth == count:  # a complete assignment: add its weight
            goal = answer_room[room_of[queried]]
            if goal >= 0 and dancer_in[goal] >= 0:
                # The walk takes each exit of a room with the same probability. Valid queries are equally likely.
                valid_queries = 0
                log_probability = 0.0
                for i in range(count):
                    answer = answer_room[room_of[i]]
                    valid_queries += answer >= 0 and dancer_in[answer] >= 0
                    log_probability -= encounters.departures[i] * np.log(exits[room_of[i]])
                weight[dance_of_dancer[dancer_in[goal]]] += np.exp(log_probability) / valid_queries
            depth -= 1
            continue
        if room_of[depth] >= 0:  # back from a deeper level: take this dancer out of its room
            dancer_in[room_of[depth]] = -1
            room_of[depth] = -1
        if tried[depth] == (rooms if depth == 0 else neighbour.shape[1]):  # no candidate left: go back
            tried[depth] = 0
            depth -= 1
            continue
        candidate = tried[depth]
        tried[depth] += 1
        room = candidate if depth == 0 else neighbour[room_of[encounters.previous[depth]], candidate]
        if room < 0 or dancer_in[room] >= 0:  # blocked or taken
            continue
        is_consistent = True  # with all moves to and from the dancers that are placed already
        for i in range(depth):
            if encounters.moved[i, depth] or encounters.moved[depth, i]:
                is_consistent &= (neighbour[room] == room_of[i]).any()
        if is_consistent:
            room_of[depth] = room
            dancer_in[room] = depth
            depth += 1
    return weight.max() / weight.sum()
