"""Who is met where: compiled draws of visits, dancers and questions, each episode from random numbers of its own.

`state`, uint64 (B,), is the random state of each episode; see `memenvs.random.draw_below`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import njit

from memenvs.random import draw_below
from memenvs.room_ballet.episodes import NO_ACTION, NUM_COLOURS, NUM_DANCERS, NUM_SHAPES, PERFORMANCE_STEPS

Schedule = Literal["histogram", "grid_walk", "short_stay", "ring", "aba"]
#: Which of the shuffled dances each slot of the histogram shows: room A all of them, three more visits of B, two of C, five single ones.
_DEALT = np.array([0, 1, 2, 3, 4, 5, 6, 7, 2, 3, 4, 0, 1, 0, 2, 3, 5, 6])
#: Row and column steps of actions: right, left, up, down where a blocked move is drawn again; up, down, left, right in Short Stay.
ROOM_STEPS = np.array([[0, 1], [0, -1], [-1, 0], [1, 0]])
_SHORT_STAY_STEPS = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])


@njit(nogil=True, cache=True)
def _shuffle(
    state: np.ndarray, b: int, values: np.ndarray, begin: int, end: int
) -> None:  # pragma: no cover  (compiled)
    """Shuffles `values[begin:end]`."""
    for k in range(end - 1, begin, -1):
        j = begin + draw_below(state, b, k - begin + 1)
        values[k], values[j] = values[j], values[k]


@njit(nogil=True, cache=True)
def _count_up(values: np.ndarray) -> None:  # pragma: no cover  (compiled)
    """Writes 0, 1, 2, ..."""
    for k in range(len(values)):
        values[k] = k


@njit(nogil=True, cache=True)
def draw_histogram(
    state: np.ndarray, rooms: int, place: np.ndarray, slot: np.ndarray
) -> None:  # pragma: no cover  (compiled)
    """Visits with fixed numbers of visits to a room: 16 - rooms, 3, 2, then ones, 18 in all.

    Slots 0, 1, ... are visits to the busiest room, then to the second, and so on; at least four of the first are among the first eight visits.

    Args:
        state: See the module; (B,).
        rooms: 4 ... 12.
        place: Written: int16, (B, 18); room of each visit.
        slot: Written: int64, (B, 18).
    """
    label, order = np.zeros(rooms, np.int64), np.zeros(18, np.int64)
    busiest = 16 - rooms
    for b in range(len(state)):
        _count_up(order)
        _count_up(label)
        _shuffle(state, b, order, 4, 18)
        _shuffle(state, b, order, 0, 8)
        _shuffle(state, b, label, 0, rooms)
        for v in range(18):
            s = slot[b, v] = order[v]
            group = s - busiest - 2  # of the single visits
            if s < busiest:
                group = 0
            elif s < busiest + 3:
                group = 1
            elif s < busiest + 5:
                group = 2
            place[b, v] = label[group]


@njit(nogil=True, cache=True)
def draw_room_path(
    state: np.ndarray, size: int, is_ring: bool, place: np.ndarray, action: np.ndarray
) -> None:  # pragma: no cover  (compiled)
    """A walk over size x size rooms from a random one; a blocked move is drawn again.

    Args:
        state: See the module; (B,).
        size: Rooms along a side.
        is_ring: Whether the middle one of 3 x 3 rooms is left out; rooms are then counted without it and all eight are visited
            (other walks are rejected).
        place: Written: int16, (B, V); room of each visit.
        action: Written: int8, (B, V); the move to it: right, left, up, down; `NO_ACTION` for the first.
    """
    visits = place.shape[1]
    seen = np.zeros(size * size, np.bool_)
    middle = size * size // 2 if is_ring else -1
    for b in range(len(state)):
        while True:
            for room in range(len(seen)):
                seen[room] = False
            rooms_seen = 0
            at = draw_below(state, b, size * size - is_ring)
            at += is_ring and at >= middle
            for v in range(visits):
                action[b, v] = NO_ACTION
                if v > 0:
                    while True:
                        move = draw_below(state, b, 4)
                        row, column = at // size + ROOM_STEPS[move, 0], at % size + ROOM_STEPS[move, 1]
                        if 0 <= row < size and 0 <= column < size and row * size + column != middle:
                            break
                    at, action[b, v] = row * size + column, move
                rooms_seen += not seen[at]
                seen[at] = True
                place[b, v] = at - (is_ring and at > middle)
            if not is_ring or rooms_seen == len(seen) - 1:
                break


@njit(nogil=True, cache=True)
def draw_short_stay(
    state: np.ndarray, size: int, place: np.ndarray, action: np.ndarray
) -> None:  # pragma: no cover  (compiled)
    """A walk over size x size rooms from a random one; a blocked move stays.

    Args:
        state: See the module; (B,).
        size: Rooms along a side.
        place: Written: int16, (B, T); the room at each step.
        action: Written: int8, (B, T); the move to it: up, down, left, right; `NO_ACTION` for the first.
    """
    for b in range(len(state)):
        at = draw_below(state, b, size * size)
        row, column = at // size, at % size
        for t in range(place.shape[1]):
            action[b, t] = NO_ACTION
            if t > 0:
                move = draw_below(state, b, 4)
                to_row, to_column = row + _SHORT_STAY_STEPS[move, 0], column + _SHORT_STAY_STEPS[move, 1]
                if 0 <= to_row < size and 0 <= to_column < size:
                    row, column = to_row, to_column
                action[b, t] = move
            place[b, t] = row * size + column


@njit(nogil=True, cache=True)
def draw_aba(state: np.ndarray, rooms: int, place: np.ndarray) -> None:  # pragma: no cover  (compiled)
    """Each room once, in random order, and the last one to the end; `place`, int16 (B, V), is written."""
    label = np.zeros(rooms, np.int64)
    for b in range(len(state)):
        _count_up(label)
        _shuffle(state, b, label, 0, rooms)
        for v in range(place.shape[1]):
            place[b, v] = label[min(v, rooms - 1)]


@njit(nogil=True, cache=True)
def draw_dancers_of_rooms(
    state: np.ndarray, dancer: np.ndarray, dance: np.ndarray
) -> None:  # pragma: no cover  (compiled)
    """A dancer for each room: dances independent, looks different from each other.

    Args:
        state: See the module; (B,).
        dancer: Written: int16, (B, rooms); shape * 19 + colour.
        dance: Written: int8, (B, rooms).
    """
    taken = np.full(NUM_DANCERS, -1, np.int64)  # the last episode with this look
    for b in range(len(state)):
        for room in range(dancer.shape[1]):
            look = draw_below(state, b, NUM_DANCERS)
            while taken[look] == b:
                look = draw_below(state, b, NUM_DANCERS)
            taken[look] = b
            dancer[b, room], dance[b, room] = look, draw_below(state, b, 8)


@njit(nogil=True, cache=True)
def draw_dancers_of_visits(
    state: np.ndarray, slot: np.ndarray, is_dealt: bool, dancer: np.ndarray, dance: np.ndarray
) -> None:  # pragma: no cover  (compiled)
    """A new dancer at each of 18 visits: colours all different, each shape once and three of them twice.

    Args:
        state: See the module; (B,).
        slot: int64, (B, 18); number of each visit in `draw_histogram`.
        is_dealt: Whether dances are dealt to slots as in the release, so that the busiest of 8 rooms shows each once; else they are independent.
        dancer: Written: int16, (B, 18); shape * 19 + colour.
        dance: Written: int8, (B, 18).
    """
    shapes, colours, dances = np.zeros(NUM_SHAPES, np.int64), np.zeros(NUM_COLOURS, np.int64), np.zeros(8, np.int64)
    for b in range(len(state)):
        for values in (shapes, colours, dances):
            _count_up(values)
            _shuffle(state, b, values, 0, len(values))
        for v in range(slot.shape[1]):
            s = slot[b, v]
            dancer[b, v] = shapes[s % NUM_SHAPES] * NUM_COLOURS + colours[s]
            dance[b, v] = dances[_DEALT[s]] if is_dealt else draw_below(state, b, 8)


@njit(nogil=True, cache=True)
def draw_index(state: np.ndarray, allowed: np.ndarray) -> np.ndarray:  # pragma: no cover  (compiled)
    """One of the allowed numbers of each episode, all as likely.

    Args:
        state: See the module; (B,).
        allowed: bool, (B, K); at least one True in a row.

    Returns:
        int64, (B,).
    """
    chosen = np.zeros(len(state), np.int64)
    for b in range(len(state)):
        count = 0
        for k in range(allowed.shape[1]):
            count += allowed[b, k]
        left = draw_below(state, b, count)
        for k in range(allowed.shape[1]):
            if allowed[b, k]:
                if left == 0:
                    chosen[b] = k
                    break
                left -= 1
    return chosen


@njit(nogil=True, cache=True)
def expand_visits(
    visit_place: np.ndarray,
    visit_dancer: np.ndarray,
    visit_dance: np.ndarray,
    visit_action: np.ndarray,
    performances: np.ndarray,
    frame: np.ndarray,
    place: np.ndarray,
    visit: np.ndarray,
    action: np.ndarray,
) -> None:  # pragma: no cover  (compiled)
    """Writes what every step shows, from what every visit shows; shapes and meaning as in `Episodes`, `performances` as in `dances`."""
    steps = frame.shape[1]
    stay = steps // visit_place.shape[1]
    for b in range(len(frame)):
        for t in range(steps):
            v = t // stay
            frame[b, t] = visit_dancer[b, v] * 9 + performances[visit_dance[b, v], t % PERFORMANCE_STEPS]
            place[b, t], visit[b, t] = visit_place[b, v], v
            action[b, t] = visit_action[b, v] if t % stay == 0 else NO_ACTION
