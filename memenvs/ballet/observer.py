"""How well Room Ballet can be answered from what a memory has kept: the ceiling for any reader of that memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from memenvs.ballet.dances import DANCES, PERFORMANCES
from memenvs.ballet.episodes import CELLS, PERFORMANCE, Episodes
from memenvs.ballet.tasks import BalletTask
from memenvs.retention import Count, retained


@dataclass(frozen=True, eq=False)
class Ideal:
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
) -> Ideal:
    """Recalls all that memory has kept, and guesses otherwise.

    Of the dances that agree with the frames in memory it answers the one that fewest visits in memory show (of several any), which is the better
    guess where the busiest room shows every dance once; where dancers stay in their rooms, any.

    Args:
        task: What the episodes are of.
        episodes: B of them.
        strategy: Which visits are kept, a name or a number for each episode (`memenvs.retention.retained`).
        capacity: Visits that there is room for; None is the task's own (`BalletTask.capacity`).
        count: What makes a place visited, as in `memenvs.retention.retained`.

    Raises:
        ValueError: The strategy or `count` is unknown, or the capacity is below one visit (with "quota": one for each room).
    """
    capacity = task.capacity if capacity is None else capacity
    kept = retained(episodes.visit_place, strategy, capacity, count=count, n_places=task.rooms)
    possible = possible_dances(task, episodes, np.take_along_axis(kept, episodes.visit.astype(np.intp), 1))
    shown = np.zeros(possible.shape, np.int64)
    if not task.asks_of_rooms:
        cell = np.arange(len(shown))[:, None] * len(DANCES) + episodes.visit_dance
        shown = np.bincount(cell[kept], minlength=shown.size).reshape(shown.shape)
    fewest = np.where(possible, shown, task.visits + 1).min(1, keepdims=True)
    guesses = possible & (shown == fewest)
    is_right = guesses[np.arange(len(guesses)), episodes.label]
    return Ideal(retained=np.logical_not(possible.all(1)), accuracy=is_right / guesses.sum(1))


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
    answer = task.answer_room if task.asks_of_rooms else np.zeros(0, np.int64)
    _rule_out(episodes.frame, episodes.place, episodes.query, kept, answer, PERFORMANCES, possible)
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
        look, room = query[b] // CELLS, -1
        for t in range(frame.shape[1]):
            if kept[b, t] and frame[b, t] // CELLS == look and len(answer):
                room = answer[place[b, t]]
        for t in range(frame.shape[1]):
            is_it = place[b, t] == room if len(answer) else frame[b, t] // CELLS == look
            if kept[b, t] and is_it:
                for dance in range(len(performances)):
                    possible[b, dance] &= performances[dance, t % PERFORMANCE] == frame[b, t] % CELLS
