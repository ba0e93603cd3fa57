"""What a memory of limited room keeps: strategies as pure functions of the sequence of places, whose unit is a visit or a frame.

A strategy is named after what goes first: "fifo" the oldest unit, "lifo" the incoming one (a full memory stays as it is), "lvfo" and "mvfo" the
oldest unit of the place that is least or most visited. "quota" gives each place its own queue of `capacity // n_places` units.

Places are compared by how many units of theirs are in memory as the unit comes in, itself not counted (`count="occupancy"`), or by how many have
come so far (`"lifetime"`); only places that are in memory count, and of equal ones the lowest.

Source:
    Spatially-Aware Transformer for Embodied Agents, 2024, section 3.2; rules, ties and the order of names as in its release, in which a full LIFO
    memory drops what comes (the article replaces the newest unit).
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numba import njit

from memenvs.checks import check_int, choices_for

STRATEGIES = ("fifo", "lifo", "lvfo", "mvfo")
"""Strategies among which an allocator chooses; the number of one is that of the task that it solves."""
Strategy = Literal["fifo", "lifo", "lvfo", "mvfo", "quota"]
STRATEGY_NAMES: tuple[str, ...] = get_args(Strategy)
"""All strategies by their numbers."""
FIFO, LIFO, LVFO, MVFO, QUOTA = range(5)
Count = Literal["occupancy", "lifetime"]


def retained(
    places: np.ndarray,
    strategy: str | np.ndarray,
    capacity: int | None,
    *,
    count: Count = "occupancy",
    n_places: int | None = None,
) -> np.ndarray:
    """Which units are in memory after the whole sequence.

    Args:
        places: int, (B, V); place of each unit, -1 where a sequence has none.
        strategy: A name in `STRATEGY_NAMES`, or the number of one for each sequence, int (B,).
        capacity: Units that there is room for, >= 1; None keeps all.
        count: What makes a place visited.
        n_places: Places in all; None is as many as occur ("quota" needs the number).

    Returns:
        bool, (B, V).

    Raises:
        ValueError: A strategy or count is unknown, a capacity below one unit (or, with "quota", one unit for each place), a place outside the table.
    """
    gone = eviction_times(places, strategy, capacity, count=count, n_places=n_places)
    return (gone == gone.shape[1]) & (np.asarray(places) >= 0)


def eviction_times(
    places: np.ndarray,
    strategy: str | np.ndarray,
    capacity: int | None,
    *,
    count: Count = "occupancy",
    n_places: int | None = None,
    resets: np.ndarray | None = None,
) -> np.ndarray:
    """When each unit leaves: unit i is in memory from when it has come until unit `eviction_times[i]` comes.

    Args:
        places: As in `retained`, like the next three.
        strategy: As in `retained`.
        capacity: As in `retained`.
        count: As in `retained`.
        n_places: As in `retained`.
        resets: bool, (B, V); before this unit the memory is emptied. None: never.

    Returns:
        int64, (B, V); V for a unit that stays, its own number for one that is not stored.

    Raises:
        ValueError: As `retained`.
    """
    places = np.asarray(places)
    if places.ndim != 2 or places.dtype.kind not in "iu":
        raise ValueError(f"places must be integers (B, V), got {places.dtype} {places.shape}")
    places = np.ascontiguousarray(places, np.int64)
    strategies = strategy_numbers(strategy, len(places))
    if count not in get_args(Count):
        raise ValueError(f"unknown count {count!r}; {choices_for(count, get_args(Count))}")
    quota = place_quota(strategies, capacity, n_places)
    table = _check_places(places, n_places)
    if resets is None:
        resets = np.zeros(places.shape, bool)
    room = places.shape[1] if capacity is None else capacity
    quota = room if capacity is None else quota
    return _eviction_times(places, np.asarray(resets, bool), strategies, room, quota, count == "lifetime", table)


def strategy_numbers(strategy: str | np.ndarray, batch: int) -> np.ndarray:
    """The number of the strategy of each sequence, int64 (B,).

    Args:
        strategy: As in `retained`.
        batch: B.

    Raises:
        ValueError: A strategy is unknown, or there is not one number for each sequence.
    """
    if isinstance(strategy, str):
        if strategy not in STRATEGY_NAMES:
            raise ValueError(f"unknown strategy {strategy!r}; {choices_for(strategy, STRATEGY_NAMES)}")
        return np.full(batch, STRATEGY_NAMES.index(strategy))
    numbers = np.asarray(strategy)
    if numbers.shape != (batch,) or not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(f"strategy must be a name or integers ({batch},), got {numbers.dtype} {numbers.shape}")
    unknown = numbers[(numbers < 0) | (numbers >= len(STRATEGY_NAMES))]
    if len(unknown):
        raise ValueError(
            f"strategy must be 0 ... {len(STRATEGY_NAMES) - 1}, numbers of {STRATEGY_NAMES}, got {unknown[0]}"
        )
    return numbers.astype(np.int64)


def place_quota(strategies: np.ndarray, capacity: int | None, n_places: int | None) -> int:
    """Units for each place under "quota", 0 where that is not asked for.

    Args:
        strategies: Numbers of strategies, as `strategy_numbers` gives them.
        capacity: As in `retained`.
        n_places: As in `retained`.

    Raises:
        ValueError: There is no room for one unit, or with "quota" for one of each place.
    """
    check_int("capacity", capacity, or_none=True)
    check_int("n_places", n_places, or_none=True)
    if capacity is None or not (strategies == QUOTA).any():
        return 0
    if n_places is None:
        raise ValueError(
            "n_places must be given with the strategy 'quota', which shares the capacity out among all places"
        )
    if capacity < n_places:
        raise ValueError(f"capacity must be at least n_places ({n_places}) with the strategy 'quota', got {capacity}")
    return capacity // n_places


def _check_places(places: np.ndarray, n_places: int | None) -> int:
    """Places in the table; a ValueError if one of `places` is not among them."""
    low, high = (int(places.min()), int(places.max())) if places.size else (0, 0)
    if low < -1 or (n_places is not None and high >= n_places):
        wrong = low if low < -1 else high
        allowed = "0 or more" if n_places is None else f"0 ... {n_places - 1}"
        raise ValueError(f"places must be {allowed} (-1 for none), got {wrong}")
    return high + 1 if n_places is None else n_places


@njit(nogil=True, cache=True)
def _extreme(held: np.ndarray, visits: np.ndarray, most: bool) -> int:  # pragma: no cover  (compiled)
    """The most or least visited of the places that are held, the lowest of equal ones."""
    best = -1
    for place in range(len(held)):
        if held[place] == 0:
            continue
        if best < 0 or (visits[place] > visits[best] if most else visits[place] < visits[best]):
            best = place
    return best


@njit(nogil=True, cache=True)
def _eviction_times(
    places: np.ndarray,
    resets: np.ndarray,
    strategies: np.ndarray,
    capacity: int,
    quota: int,
    lifetime: bool,
    n_places: int,
) -> np.ndarray:  # pragma: no cover  (compiled)
    """See `eviction_times`. Units of a place are a queue: each points to the next one."""
    batch, units = places.shape
    out = np.full((batch, units), units)
    held, came, head, tail = np.zeros((4, n_places), np.int64)
    behind = np.zeros(units, np.int64)
    for b in range(batch):
        strategy, total, begin, eldest = strategies[b], 0, 0, 0
        held[:] = 0
        came[:] = 0
        for i in range(units):
            if resets[b, i]:
                for j in range(begin, i):
                    out[b, j] = min(out[b, j], i)
                begin, eldest, total = i, i, 0
                held[:] = 0
                came[:] = 0
            place = places[b, i]
            if place < 0 or (strategy == LIFO and total == capacity):
                out[b, i] = i
                continue
            loser = -1  # the place whose oldest unit leaves
            if strategy == QUOTA:
                loser = place if held[place] == quota else -1
            elif total == capacity:
                if strategy == FIFO:
                    while out[b, eldest] < units:  # no unit, or gone
                        eldest += 1
                    loser = places[b, eldest]
                else:
                    loser = _extreme(held, came if lifetime else held, strategy == MVFO)
            if loser >= 0:
                out[b, head[loser]] = i
                head[loser] = behind[head[loser]]
                held[loser] -= 1
                total -= 1
            if held[place] == 0:
                head[place] = i
            else:
                behind[tail[place]] = i
            tail[place] = i
            held[place] += 1
            came[place] += 1
            total += 1
    return out
