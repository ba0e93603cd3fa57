"""Retention strategies: the units that stay in a memory of limited capacity.

A unit is what the memory stores and evicts as a whole: a visit to a place, or a frame. All functions are pure: the
places of the units, in order of time, decide what is in memory. A strategy is named after the unit that it evicts when
the memory is full:

- "fifo": the oldest unit.
- "lifo": the incoming unit, so that a full memory stays as it is.
- "lvfo", "mvfo": the oldest unit of the least or most visited place.
- "quota": each place has its own queue of `capacity // n_places` units, and evicts its oldest.

Visits of a place are its units in memory before the incoming one arrives. Only places with a unit in memory are
compared. Ties go to the lowest place.

Source:
    Spatially-Aware Transformer for Embodied Agents (2024), section 3.2. Rules, ties and the order of names are those of
    its release, in which a full LIFO memory drops the incoming unit (the paper replaces the newest unit).
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numba import njit

from memenvs.checks import check_int, choices_for

#: Strategies that an allocator chooses from; strategy k is the right one for task k of Room Ballet.
STRATEGIES = ("fifo", "lifo", "lvfo", "mvfo")
Strategy = Literal["fifo", "lifo", "lvfo", "mvfo", "quota"]
#: All strategies; a strategy's number is its index.
STRATEGY_NAMES: tuple[str, ...] = get_args(Strategy)
FIFO, LIFO, LVFO, MVFO, QUOTA = range(5)


def retained(
    places: np.ndarray,
    strategy: str | np.ndarray,
    capacity: int | None,
    *,
    n_places: int | None = None,
) -> np.ndarray:
    """Find the units that are in memory after the whole sequence.

    Args:
        places: int, (B, V); place of each of V units, -1 for no unit (padding).
        strategy: A name in `STRATEGY_NAMES` for all sequences, or a number for each, int (B,).
        capacity: Number of units that the memory can keep, >= 1; None for no limit.
        n_places: Number of places; None for one more than the highest in `places`; required by "quota".

    Returns:
        bool, (B, V); True for units in memory.

    Raises:
        ValueError: A strategy is unknown, a place is not below `n_places`, or the capacity is less than one
            unit (with "quota": less than one unit for each place).
    """
    evicted_at = eviction_times(places, strategy, capacity, n_places=n_places)
    return (evicted_at == evicted_at.shape[1]) & (np.asarray(places) >= 0)


def eviction_times(
    places: np.ndarray,
    strategy: str | np.ndarray,
    capacity: int | None,
    *,
    n_places: int | None = None,
    resets: np.ndarray | None = None,
) -> np.ndarray:
    """Compute the index of the unit whose arrival evicts each unit.

    Unit i is in memory from its own arrival until that of unit `eviction_times(...)[:, i]`.

    Args:
        places: As in `retained`.
        strategy: As in `retained`, or a number for each unit, int (B, V). That of the first unit, and then that of each
            reset, holds until the next reset.
        capacity: As in `retained`.
        n_places: As in `retained`.
        resets: bool, (B, V); True empties the memory before this unit. None for never.

    Returns:
        int64, (B, V); V for a unit that stays, its own index for a unit that is never stored.

    Raises:
        ValueError: As `retained`.
    """
    places = np.asarray(places)
    if places.ndim != 2 or places.dtype.kind not in "iu":
        raise ValueError(f"places must be integers (B, V), got {places.dtype} {places.shape}")
    places = np.ascontiguousarray(places, np.int64)
    strategies = strategy_numbers(strategy, len(places), places.shape[1])
    quota = place_quota(strategies, capacity, n_places)
    place_count = _check_places(places, n_places)
    if resets is None:
        resets = np.zeros(places.shape, bool)
    if capacity is None:  # large enough for all units of a sequence
        capacity = quota = places.shape[1]
    if strategies.ndim == 1:
        strategies = np.repeat(strategies[:, None], places.shape[1], axis=1)
    return _eviction_times(places, np.asarray(resets, bool), strategies, capacity, quota, place_count)


def strategy_numbers(strategy: str | np.ndarray, batch: int, units: int | None = None) -> np.ndarray:
    """Convert the argument `strategy` to numbers of strategies.

    Args:
        strategy: As in `retained`; with `units`, as in `eviction_times`.
        batch: B.
        units: V; None allows one number for each sequence only.

    Returns:
        int64, (B,), one for each sequence; or (B, V), one for each unit.

    Raises:
        ValueError: A strategy is unknown, or there is not one number for each sequence or unit.
    """
    if isinstance(strategy, str):
        if strategy not in STRATEGY_NAMES:
            raise ValueError(f"unknown strategy {strategy!r}; {choices_for(strategy, STRATEGY_NAMES)}")
        return np.full(batch, STRATEGY_NAMES.index(strategy))
    numbers = np.asarray(strategy)
    is_allowed = numbers.shape == (batch,) or (units is not None and numbers.shape == (batch, units))
    if not is_allowed or not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(f"strategy must be a name or integers ({batch},), got {numbers.dtype} {numbers.shape}")
    unknown = numbers[(numbers < 0) | (numbers >= len(STRATEGY_NAMES))]
    if len(unknown):
        raise ValueError(
            f"strategy must be 0 ... {len(STRATEGY_NAMES) - 1}, numbers of {STRATEGY_NAMES}, got {unknown[0]}"
        )
    return np.ascontiguousarray(numbers, np.int64)


def place_quota(strategies: np.ndarray, capacity: int | None, n_places: int | None) -> int:
    """Compute how many units each place may keep with "quota"; 0 if no sequence uses it.

    Args:
        strategies: Numbers of strategies, as `strategy_numbers` gives them.
        capacity: As in `retained`.
        n_places: As in `retained`.

    Raises:
        ValueError: The capacity is less than one unit, or with "quota" less than one unit for each place.
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
    """Return the number of places; raise a ValueError if one of `places` is not below it."""
    low = int(places.min(initial=0))
    high = int(places.max(initial=0))
    if low < -1 or (n_places is not None and high >= n_places):
        wrong = low if low < -1 else high
        allowed = "0 or more" if n_places is None else f"0 ... {n_places - 1}"
        raise ValueError(f"places must be {allowed} (-1 for none), got {wrong}")
    return high + 1 if n_places is None else n_places


@njit(nogil=True, cache=True)
def _extreme_place(stored: np.ndarray, is_most: bool) -> int:  # pragma: no cover  (compiled)
    """Find the most or least visited place among those with stored units; ties go to the lowest."""
    best = -1
    for place in range(len(stored)):
        if stored[place] == 0:
            continue
        if best < 0 or (stored[place] > stored[best] if is_most else stored[place] < stored[best]):
            best = place
    return best


@njit(nogil=True, cache=True)
def _eviction_times(
    places: np.ndarray,
    resets: np.ndarray,
    strategies: np.ndarray,
    capacity: int,
    quota: int,
    n_places: int,
) -> np.ndarray:  # pragma: no cover  (compiled)
    """Compute `eviction_times`. The stored units of each place are a linked list, oldest first."""
    batch, units = places.shape
    evicted_at = np.full((batch, units), units)
    stored = np.zeros(n_places, np.int64)  # units of each place in memory
    head = np.zeros(n_places, np.int64)  # oldest stored unit of each place
    tail = np.zeros(n_places, np.int64)  # newest stored unit of each place
    next_unit = np.zeros(units, np.int64)  # the unit after each one in the list of its place
    for b in range(batch):
        strategy = strategies[b, 0] if units else 0
        total = 0  # units in memory
        begin = 0  # first unit since the last reset
        oldest = 0  # "fifo": no earlier unit is in memory
        stored[:] = 0
        for i in range(units):
            if resets[b, i]:
                strategy = strategies[b, i]
                for j in range(begin, i):
                    evicted_at[b, j] = min(evicted_at[b, j], i)
                begin = i
                oldest = i
                total = 0
                stored[:] = 0
            place = places[b, i]
            if place < 0 or (strategy == LIFO and total == capacity):
                evicted_at[b, i] = i  # never stored
                continue
            # Choose the place whose oldest unit is evicted; -1 for none.
            evict_from = -1
            if strategy == QUOTA:
                evict_from = place if stored[place] == quota else -1
            elif total == capacity:
                if strategy == FIFO:
                    while evicted_at[b, oldest] < units:  # not stored, or evicted before
                        oldest += 1
                    evict_from = places[b, oldest]
                else:
                    evict_from = _extreme_place(stored, strategy == MVFO)
            if evict_from >= 0:
                evicted_at[b, head[evict_from]] = i
                head[evict_from] = next_unit[head[evict_from]]
                stored[evict_from] -= 1
                total -= 1
            # Append the unit to the list of its place.
            if stored[place] == 0:
                head[place] = i
            else:
                next_unit[tail[place]] = i
            tail[place] = i
            stored[place] += 1
            total += 1
    return evicted_at
