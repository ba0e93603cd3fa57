"""Posterior of the dance that answers the query, given the frames in memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from memenvs.room_ballet.ballet_task import BalletTask
from memenvs.room_ballet.dances import DANCES, PERFORMANCE_CELLS
from memenvs.room_ballet.episodes import NUM_CELLS, NUM_DANCERS, PERFORMANCE_STEPS
from memenvs.room_ballet.visit_schedules import ROOM_STEPS


class Posterior(NamedTuple):
    """Evidence of a memory about the answers of B episodes.

    Attributes:
        weight: float64, (B, 8); the larger, the likelier the dance is the answer; where dancers stay in their rooms,
            in proportion to its probability. 0 for dances that the memory rules out.
        dancer: int64, (B,); the dancer whose dance is the answer; the likeliest one, or -1 if the memory has none.
    """

    weight: np.ndarray
    dancer: np.ndarray


def dance_posterior(task: BalletTask, frame: np.ndarray, move: np.ndarray, query: np.ndarray) -> Posterior:
    """Weigh the dances by frames and moves in memory, without places.

    Where every visit has a new dancer, a queried dancer in memory shows its dance. Otherwise the dance that the fewest
    visits in memory show is the likeliest: in the release the most visited room shows every dance once, so a dance that
    is rare in memory was probably that of an evicted visit. Where dancers stay in their rooms, dances are independent.

    Rooms follow from the moves: each room in which the path in memory can have ended is weighed by the probability that
    the random walk goes there. If the memory does not go back to the first step, all rooms count as visited.

    Args:
        task: Task of the episodes.
        frame: int16, (B, T); as in `BalletEpisodes`; -1 at steps that are not in memory.
        move: int8, (B, T); as `BalletEpisodes.action`; of no account where `frame` is -1. Where the next or the
            opposite room is queried, the memory is the newest steps without a hole.
        query: int16, (B,); as in `BalletEpisodes`.
    """
    queried = query.astype(np.int64) // NUM_CELLS
    if task.queries_rooms and task.query_rules != ("own",):
        return _posterior_of_walk(task, frame, move, queried)
    possible = dances_of_dancers(frame, queried[:, None])[:, 0]
    visits_of_dance = np.zeros(possible.shape)
    if not task.queries_rooms:
        visits_of_dance = count_dances(frame, task.visit_steps)
    return Posterior(possible / (1 + visits_of_dance), np.where(_is_in(frame, queried), queried, -1))


def dances_of_dancers(frame: np.ndarray, dancer: np.ndarray) -> np.ndarray:
    """Mark the dances of dancers that agree with the frames in memory.

    Args:
        frame: int16, (B, T); as in `dance_posterior`.
        dancer: int, (B, K); shape * 19 + colour; -1 for none.

    Returns:
        bool, (B, K, 8); all True for a dancer that is not in memory.
    """
    possible = np.ones((*dancer.shape, len(DANCES)), bool)
    _rule_out(frame, dancer.astype(np.int64), PERFORMANCE_CELLS, possible)
    return possible


def count_dances(frame: np.ndarray, visit_steps: int) -> np.ndarray:
    """Count the visits by their dance.

    A visit that may show several dances, or any, counts in part for each.

    Args:
        frame: int16, (B, T); as in `dance_posterior`, with a new dancer in every visit.
        visit_steps: Steps of a visit.

    Returns:
        float64, (B, 8).
    """
    possible = dances_of_dancers(frame, _dancers_of_visits(frame, visit_steps))
    return (possible / possible.sum(2, keepdims=True)).sum(1)


def steps_to_dance(frame: np.ndarray, dancer: np.ndarray) -> np.ndarray:
    """Count the steps from the query back to the frames that show the dance of a dancer.

    These are the newest frames that single it out.

    Args:
        frame: int16, (B, T); as in `dance_posterior`.
        dancer: int64, (B,); -1 for none.

    Returns:
        int64, (B,); to the oldest of these frames; to the dancer's oldest frame in memory if they leave several dances;
        0 if the memory has no frame of it.
    """
    return _steps_to_dance(frame, dancer, PERFORMANCE_CELLS)


def steps_to_dancer(frame: np.ndarray, dancer: np.ndarray) -> np.ndarray:
    """Count the steps from the query back to the newest frame of a dancer, int64, (B,).

    0 if there is none.
    """
    newest_first = (frame // NUM_CELLS == dancer[:, None])[:, ::-1]
    return np.where(_is_in(frame, dancer), 1 + newest_first.argmax(1), 0)


def room_neighbours(task: BalletTask) -> np.ndarray:
    """Find the room that each move leads to, int64, (rooms, 4); -1 if it is blocked.

    Moves are in the order of `ROOM_STEPS`.
    """
    return _rooms_at(task, task.positions[:, None, ::-1] + ROOM_STEPS)


def _rooms_at(task: BalletTask, position: np.ndarray) -> np.ndarray:
    """Room at each row and column of the map, (..., 2); -1 outside of the rooms."""
    room_at = np.full((task.side + 2, task.side + 2), -1)  # with a rim
    room_at[tuple(1 + task.positions[:, ::-1].T)] = np.arange(task.rooms)
    return room_at[tuple(np.moveaxis(1 + np.clip(position, -1, task.side), -1, 0))]


def _posterior_of_walk(task: BalletTask, frame: np.ndarray, move: np.ndarray, queried: np.ndarray) -> Posterior:
    """Weigh the dances of the next or opposite room after a random walk; see `dance_posterior`.

    Shapes: H = rooms, the rooms in which the walk can have ended; V visits.
    """
    dancer = _dancers_of_visits(frame, task.visit_steps)  # (B, V); -1 for visits that are not in memory
    is_kept = dancer >= 0
    room, walk_weight = _possible_paths(task, move[:, :: task.visit_steps], is_kept)  # (B, H, V), (B, H)
    possible = dances_of_dancers(frame, dancer)  # (B, V, 8)
    dance_share = possible / possible.sum(2, keepdims=True)
    is_complete = np.logical_and.reduce(is_kept, axis=1, keepdims=True)
    visited = (room[..., None] == np.arange(task.rooms)).any(2)  # (B, H, rooms)
    answer = task.answer_room
    can_be_queried = (visited & visited[:, :, answer]) | ~is_complete[:, :, None]
    is_valid = can_be_queried & (answer >= 0)  # (B, H, rooms)
    walk_weight /= np.maximum(is_valid.sum(2), 1)
    is_queried = is_kept & (dancer == queried[:, None])  # (B, V)
    queried_room = np.where(is_queried[:, None], room, -1).max(2)  # (B, H); -1 if the dancer is not in memory
    weight = np.zeros((len(frame), len(DANCES)))
    best = np.zeros(len(frame))
    best_dancer = np.full(len(frame), -1)
    rows = np.arange(len(frame))[:, None]
    for candidate in np.flatnonzero(answer >= 0).tolist():
        is_candidate = np.where(queried_room >= 0, queried_room == candidate, ~visited[:, :, candidate])
        share = walk_weight * (is_candidate & is_valid[:, :, candidate])  # (B, H)
        shows = room == answer[candidate]  # (B, H, V)
        visit = shows.argmax(2)
        in_memory = shows.any(2)
        of_dance = np.where(in_memory[..., None], dance_share[rows, visit], 1 / len(DANCES))  # (B, H, 8)
        weight += (share[..., None] * of_dance).sum(1)
        end = share.argmax(1)[:, None]
        is_better = (top := np.take_along_axis(share, end, 1)[:, 0]) > best
        answer_dancer = np.where(in_memory, dancer[rows, visit], -1)
        best_dancer = np.where(is_better, np.take_along_axis(answer_dancer, end, 1)[:, 0], best_dancer)
        best = np.maximum(best, top)
    return Posterior(weight, best_dancer)


def _possible_paths(task: BalletTask, move: np.ndarray, is_kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lay the path in memory into the rooms, once for each room in which it can have ended.

    Args:
        task: Task after a random walk.
        move: int8, (B, V); the move that led to each visit.
        is_kept: bool, (B, V); visits in memory, the newest ones.

    Returns:
        int64, (B, rooms, V), the room of each visit, -1 if it is not in memory; and float64, (B, rooms), the
        probability of this walk, 0 if it leaves the rooms.
    """
    visits = move.shape[1]
    neighbour = room_neighbours(task)
    exits = (neighbour >= 0).sum(1)

    is_step = is_kept & np.roll(is_kept, 1, 1) & (np.arange(visits) > 0)  # from one visit in memory to the next
    step = np.where(is_step[..., None], ROOM_STEPS[np.minimum(move, len(ROOM_STEPS) - 1)], 0)  # (B, V, 2)
    path = step.cumsum(1)
    path -= path[:, -1:]  # from the last visit
    room = _rooms_at(task, task.positions[:, None, ::-1] + path[:, None])  # (B, rooms, V)
    room[~np.broadcast_to(is_kept[:, None], room.shape)] = -1

    outside = (is_kept[:, None] & (room < 0)).any(2)  # (B, rooms)
    leaves = is_kept.copy()  # visits in memory from whose room the walk went on
    leaves[:, -1] = False
    probability = np.where(leaves[:, None], 1 / exits[room], 1.0).prod(2)
    # Each room was as likely at the first visit; `arrival` is the probability of each room at every visit.
    transition = (neighbour[:, :, None] == np.arange(task.rooms)).any(1) / exits[:, None]
    arrival = [np.full(task.rooms, 1 / task.rooms)]
    for _ in range(visits - 1):
        arrival.append(arrival[-1] @ transition)
    first = is_kept.argmax(1)  # (B,); 0 where no visit is in memory
    first_room = np.take_along_axis(room, first[:, None, None], 2)[:, :, 0]  # (B, rooms)
    probability *= np.stack(arrival)[first[:, None], first_room]
    return room, np.where(outside, 0.0, probability)


def _dancers_of_visits(frame: np.ndarray, visit_steps: int) -> np.ndarray:
    """Dancer of each visit, int64, (B, V); -1 if no frame of the visit is in memory."""
    return frame.reshape(len(frame), -1, visit_steps).max(2).astype(np.int64) // NUM_CELLS


def _is_in(frame: np.ndarray, dancer: np.ndarray) -> np.ndarray:
    """Check whether the memory has a frame of a dancer, bool, (B,)."""
    return (dancer >= 0) & (frame // NUM_CELLS == dancer[:, None]).any(1)


@njit(nogil=True, cache=True)
def _rule_out(
    frame: np.ndarray, dancer: np.ndarray, performance_cells: np.ndarray, possible: np.ndarray
) -> None:  # pragma: no cover  (compiled)
    """Rule out the dances that a frame in memory contradicts.

    Args:
        frame: int16, (B, T); -1 at steps that are not in memory.
        dancer: int64, (B, K); -1 for none.
        performance_cells: int8, (8, 32); cell of each dance at each step.
        possible: bool, (B, K, 8); True at first, changed in place.
    """
    of_dancer = np.ones((NUM_DANCERS, performance_cells.shape[0]), np.bool_)
    for b in range(len(frame)):
        of_dancer[:] = True
        for t in range(frame.shape[1]):
            if frame[b, t] >= 0:
                for dance in range(len(performance_cells)):
                    agrees = performance_cells[dance, t % PERFORMANCE_STEPS] == frame[b, t] % NUM_CELLS
                    of_dancer[frame[b, t] // NUM_CELLS, dance] &= agrees
        for k in range(dancer.shape[1]):
            if dancer[b, k] >= 0:
                possible[b, k] = of_dancer[dancer[b, k]]


@njit(nogil=True, cache=True)
def _steps_to_dance(
    frame: np.ndarray, dancer: np.ndarray, performance_cells: np.ndarray
) -> np.ndarray:  # pragma: no cover  (compiled)
    """Compute `steps_to_dance`, from the newest frame to the oldest."""
    steps_back = np.zeros(len(frame), np.int64)
    steps = frame.shape[1]
    for b in range(len(frame)):
        possible = np.ones(len(performance_cells), np.bool_)
        for back in range(1, steps + 1):
            t = steps - back
            if frame[b, t] < 0 or frame[b, t] // NUM_CELLS != dancer[b]:
                continue
            steps_back[b] = back
            for dance in range(len(performance_cells)):
                possible[dance] &= performance_cells[dance, t % PERFORMANCE_STEPS] == frame[b, t] % NUM_CELLS
            if possible.sum() == 1:
                break
    return steps_back
