"""Compiled draws of visits, dancers and queries.

Each episode has a random stream of its own. `state`, uint64 (B,), holds the state of each stream; see
`memenvs.random.draw_below`. Every draw moves it on.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import njit

from memenvs.random import draw_below
from memenvs.room_ballet.episodes import NO_ACTION, NUM_CELLS, NUM_COLOURS, NUM_DANCERS, NUM_SHAPES, PERFORMANCE_STEPS

Schedule = Literal["histogram", "grid_walk", "short_stay", "ring", "aba"]
#: Visits of a histogram schedule.
_HISTOGRAM_VISITS = 18
#: Index of the shuffled dances that each slot of the histogram shows: slots of the first room show all eight; those of
#: the second room, of the third room and of the single visits show three, two and five of them.
_SLOT_DANCE = np.array([0, 1, 2, 3, 4, 5, 6, 7, 2, 3, 4, 0, 1, 0, 2, 3, 5, 6])
#: Row and column steps of the moves of a room path: right, left, up, down.
ROOM_STEPS = np.array([[0, 1], [0, -1], [-1, 0], [1, 0]])
#: The same in Short Stay: up, down, left, right.
_SHORT_STAY_STEPS = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])


@njit(nogil=True, cache=True)
def _shuffle(
    state: np.ndarray, b: int, values: np.ndarray, begin: int, end: int
) -> None:  # pragma: no cover  (compiled)
    """Shuffle `values[begin:end]` with random numbers of stream `b`."""
    for k in range(end - 1, begin, -1):
        j = begin + draw_below(state, b, k - begin + 1)
        values[k], values[j] = values[j], values[k]


@njit(nogil=True, cache=True)
def _fill_range(values: np.ndarray) -> None:  # pragma: no cover  (compiled)
    """Write 0, 1, 2, ... into `values`."""
    for k in range(len(values)):
        values[k] = k


@njit(nogil=True, cache=True)
def draw_histogram(
    state: np.ndarray, rooms: int, place: np.ndarray, slot: np.ndarray
) -> None:  # pragma: no cover  (compiled)
    """Draw 18 visits with fixed numbers of visits per room: 16 - rooms, 3, 2, then ones.

    Slots 0, 1, ... are the visits of the most visited room, then those of the second, and so on. At least four visits
    of the most visited room are among the first eight visits.

    Args:
        state: uint64, (B,); see the module.
        rooms: 4 ... 12.
        place: int16, (B, 18), written; room of each visit.
        slot: int64, (B, 18), written; slot of each visit.
    """
    room_of_group = np.zeros(rooms, np.int64)  # a group is the slots of one room; group 0 is the most visited room's
    order = np.zeros(_HISTOGRAM_VISITS, np.int64)
    most_visits = 16 - rooms
    for b in range(len(state)):
        _fill_range(order)
        _fill_range(room_of_group)
        _shuffle(state, b, order, 4, _HISTOGRAM_VISITS)
        _shuffle(state, b, order, 0, 8)  # slots 0 ... 3 stay among the first eight visits
        _shuffle(state, b, room_of_group, 0, rooms)
        for v in range(_HISTOGRAM_VISITS):
            s = order[v]
            if s < most_visits:
                group = 0
            elif s < most_visits + 3:
                group = 1
            elif s < most_visits + 5:
                group = 2
            else:
                group = s - most_visits - 2  # each single visit is a group
            slot[b, v] = s
            place[b, v] = room_of_group[group]


@njit(nogil=True, cache=True)
def draw_room_path(
    state: np.ndarray, size: int, is_ring: bool, place: np.ndarray, action: np.ndarray
) -> None:  # pragma: no cover  (compiled)
    """Draw a random walk over size x size rooms; blocked moves are drawn again.

    Args:
        state: uint64, (B,); see the module.
        size: Rooms along a side.
        is_ring: Leave out the middle room. Rooms are then numbered without it, and a walk that misses one of them is
            drawn again.
        place: int16, (B, V), written; room of each visit.
        action: int8, (B, V), written; the move to it: right, left, up, down; `NO_ACTION` for the first.
    """
    visits = place.shape[1]
    is_visited = np.zeros(size * size, np.bool_)
    middle = size * size // 2 if is_ring else -1
    for b in range(len(state)):
        while True:
            is_visited[:] = False
            rooms_visited = 0
            cell = draw_below(state, b, size * size - is_ring)
            cell += is_ring and cell >= middle
            for v in range(visits):
                action[b, v] = NO_ACTION
                if v > 0:
                    while True:
                        move = draw_below(state, b, 4)
                        row = cell // size + ROOM_STEPS[move, 0]
                        column = cell % size + ROOM_STEPS[move, 1]
                        if 0 <= row < size and 0 <= column < size and row * size + column != middle:
                            break
                    cell = row * size + column
                    action[b, v] = move
                rooms_visited += not is_visited[cell]
                is_visited[cell] = True
                place[b, v] = cell - (is_ring and cell > middle)
            if not is_ring or rooms_visited == len(is_visited) - 1:
                break


@njit(nogil=True, cache=True)
def draw_short_stay(
    state: np.ndarray, size: int, place: np.ndarray, action: np.ndarray
) -> None:  # pragma: no cover  (compiled)
    """Draw a random walk over size x size rooms; after a blocked move the agent stays.

    Args:
        state: uint64, (B,); see the module.
        size: Rooms along a side.
        place: int16, (B, T), written; room at each step.
        action: int8, (B, T), written; the move to it: up, down, left, right; `NO_ACTION` for the first.
    """
    for b in range(len(state)):
        start = draw_below(state, b, size * size)
        row = start // size
        column = start % size
        for t in range(place.shape[1]):
            action[b, t] = NO_ACTION
            if t > 0:
                move = draw_below(state, b, 4)
                next_row = row + _SHORT_STAY_STEPS[move, 0]
                next_column = column + _SHORT_STAY_STEPS[move, 1]
                if 0 <= next_row < size and 0 <= next_column < size:
                    row = next_row
                    column = next_column
                action[b, t] = move
            place[b, t] = row * size + column


@njit(nogil=True, cache=True)
def draw_aba(state: np.ndarray, rooms: int, place: np.ndarray) -> None:  # pragma: no cover  (compiled)
    """Draw one visit to each room in random order; the agent then stays in the last one.

    Args:
        state: uint64, (B,); see the module.
        rooms: Number of rooms.
        place: int16, (B, V), written; room of each visit.
    """
    order = np.zeros(rooms, np.int64)
    for b in range(len(state)):
        _fill_range(order)
        _shuffle(state, b, order, 0, rooms)
        for v in range(place.shape[1]):
            place[b, v] = order[min(v, rooms - 1)]


@njit(nogil=True, cache=True)
def draw_dancers_of_rooms(
    state: np.ndarray, dancer: np.ndarray, dance: np.ndarray
) -> None:  # pragma: no cover  (compiled)
    """Draw a dancer for each room: dancers differ, dances are independent.

    Args:
        state: uint64, (B,); see the module.
        dancer: int16, (B, rooms), written; shape * 19 + colour.
        dance: int8, (B, rooms), written.
    """
    last_episode = np.full(NUM_DANCERS, -1, np.int64)  # the last episode with each dancer
    for b in range(len(state)):
        for room in range(dancer.shape[1]):
            drawn = draw_below(state, b, NUM_DANCERS)
            while last_episode[drawn] == b:  # this episode has it already
                drawn = draw_below(state, b, NUM_DANCERS)
            last_episode[drawn] = b
            dancer[b, room] = drawn
            dance[b, room] = draw_below(state, b, 8)


@njit(nogil=True, cache=True)
def draw_dancers_of_visits(
    state: np.ndarray, slot: np.ndarray, balance_dances: bool, dancer: np.ndarray, dance: np.ndarray
) -> None:  # pragma: no cover  (compiled)
    """Draw a new dancer for each of 18 visits.

    All colours differ; three shapes occur twice, the others once.

    Args:
        state: uint64, (B,); see the module.
        slot: int64, (B, 18); slot of each visit, from `draw_histogram`.
        balance_dances: Choose dances by slot as the release does, so that the most visited of 8 rooms shows each dance
            once. Otherwise dances are independent.
        dancer: int16, (B, 18), written; shape * 19 + colour.
        dance: int8, (B, 18), written.
    """
    shapes = np.zeros(NUM_SHAPES, np.int64)
    colours = np.zeros(NUM_COLOURS, np.int64)
    dances = np.zeros(8, np.int64)
    for b in range(len(state)):
        for values in (shapes, colours, dances):
            _fill_range(values)
            _shuffle(state, b, values, 0, len(values))
        for v in range(slot.shape[1]):
            s = slot[b, v]
            dancer[b, v] = shapes[s % NUM_SHAPES] * NUM_COLOURS + colours[s]
            dance[b, v] = dances[_SLOT_DANCE[s]] if balance_dances else draw_below(state, b, 8)


@njit(nogil=True, cache=True)
def draw_index(state: np.ndarray, allowed: np.ndarray) -> np.ndarray:  # pragma: no cover  (compiled)
    """Draw one allowed index per episode, uniformly.

    Args:
        state: uint64, (B,); see the module.
        allowed: bool, (B, K); each row has a True.

    Returns:
        int64, (B,); 0 ... K - 1.
    """
    chosen = np.zeros(len(state), np.int64)
    for b in range(len(state)):
        count = 0
        for k in range(allowed.shape[1]):
            count += allowed[b, k]
        remaining = draw_below(state, b, count)  # allowed indices to skip
        for k in range(allowed.shape[1]):
            if allowed[b, k]:
                if remaining == 0:
                    chosen[b] = k
                    break
                remaining -= 1
    return chosen


@njit(nogil=True, cache=True)
def expand_visits(
    visit_place: np.ndarray,
    visit_dancer: np.ndarray,
    visit_dance: np.ndarray,
    visit_action: np.ndarray,
    performance_cells: np.ndarray,
    frame: np.ndarray,
    place: np.ndarray,
    visit: np.ndarray,
    action: np.ndarray,
) -> None:  # pragma: no cover  (compiled)
    """Expand visits to steps.

    Args:
        visit_place: int16, (B, V); room of each visit.
        visit_dancer: int16, (B, V); dancer of each visit.
        visit_dance: int8, (B, V); dance of each visit.
        visit_action: int8, (B, V); the move that led to each visit.
        performance_cells: int8, (8, 32); `memenvs.room_ballet.dances.PERFORMANCE_CELLS`.
        frame: int16, (B, T), written; T is a multiple of V. It and the next three are those of `BalletEpisodes`.
        place: int16, (B, T), written.
        visit: int16, (B, T), written.
        action: int8, (B, T), written.
    """
    steps = frame.shape[1]
    visit_steps = steps // visit_place.shape[1]
    for b in range(len(frame)):
        for t in range(steps):
            v = t // visit_steps
            cell = performance_cells[visit_dance[b, v], t % PERFORMANCE_STEPS]
            frame[b, t] = visit_dancer[b, v] * NUM_CELLS + cell
            place[b, t] = visit_place[b, v]
            visit[b, t] = v
            action[b, t] = visit_action[b, v] if t % visit_steps == 0 else NO_ACTION
