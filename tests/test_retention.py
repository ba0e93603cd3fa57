"""Retention strategies: cases by hand, and a plain reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memenvs.retention import STRATEGY_NAMES, eviction_times, retained
from tests.reference_retention import ReferenceMemory

A, B, C, D = range(4)


def kept(places: list[int], strategy: str, capacity: int | None, **kwargs: object) -> list[int]:
    """Numbers of the units in memory."""
    mask = retained(np.array([places]), strategy, capacity, **kwargs)[0]  # type: ignore[arg-type]
    return np.flatnonzero(mask).tolist()


def test_by_hand() -> None:
    for strategy, expected in (
        # Units B0 A1 A2 | C3 evicts A1 (A has two) | A4 evicts A2 (all have one, A is the lowest) | B5 evicts A4.
        ("mvfo", [0, 3, 5]),
        # C3 evicts B0 (B has one) | A4 evicts C3 (C has one) | B5 evicts A1 (A has all three).
        ("lvfo", [2, 4, 5]),
        ("fifo", [3, 4, 5]),
        ("lifo", [0, 1, 2]),
        ("quota", [3, 4, 5]),  # one each: B0, A1 and A2 were evicted by units of their own place
    ):
        assert kept([B, A, A, C, A, B], strategy, 3, n_places=3) == expected, strategy


def reference_times(places: list[int], resets: list[bool], strategy: str, capacity: int) -> list[int]:
    """Compute `eviction_times` of one sequence with 5 places by the reference."""
    times = [len(places)] * len(places)
    stored: list[int] = []
    for i, place in enumerate(places):
        if i == 0 or resets[i]:
            memory, written = ReferenceMemory(strategy, capacity, 5), []
            now: list[int] = []
        if place >= 0:
            written.append(i)
            now = [written[k] for k in memory.write(place)]
        for evicted in {*stored, i} - set(now):
            times[evicted] = i
        stored = now
    return times


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_equals_the_reference(data: st.DataObject) -> None:
    """With gaps and resets."""
    capacity = data.draw(st.integers(5, 14))
    batch, units = 16, data.draw(st.integers(1, 40))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    gaps, breaks = data.draw(st.sampled_from([0, 0.2])), data.draw(st.sampled_from([0, 0.1]))
    places, strategy = rng.integers(0, 5, (batch, units)), rng.integers(0, 5, batch)
    places[rng.random(places.shape) < gaps] = -1
    resets = rng.random(places.shape) < breaks
    times = eviction_times(places, strategy, capacity, n_places=5, resets=resets)
    for row in range(batch):
        name = STRATEGY_NAMES[strategy[row]]
        expected = reference_times(places[row].tolist(), resets[row].tolist(), name, capacity)
        assert times[row].tolist() == expected
    if not breaks:
        stored = retained(places, strategy, capacity, n_places=5)
        np.testing.assert_array_equal(stored, times == units)


def test_no_capacity_keeps_all() -> None:
    for strategy in STRATEGY_NAMES:
        assert kept([A, B, A], strategy, None, n_places=2) == [0, 1, 2]
        assert kept([A, B, A], strategy, 100, n_places=2) == [0, 1, 2]
    assert retained(np.zeros((2, 0), int), "mvfo", 3).shape == (2, 0)


def test_bad_input() -> None:
    places = np.array([[0, 1, 2]])
    for arguments, message in (
        ((places, "mfvo", 2), r"unknown strategy 'mfvo'; did you mean 'mvfo'\? Choose from \['fifo', .*\]"),
        ((places, np.array([7]), 2), r"strategy must be 0 \.\.\. 4, numbers of \('fifo', .*, got 7"),
        ((places, np.array([0, 1]), 2), r"strategy must be a name or integers \(1,\), got int64 \(2,\)"),
        ((places, "fifo", 0), "capacity must be an integer of at least 1 or None, got 0"),
        ((places, "quota", 2, 3), r"capacity must be at least n_places \(3\) with the strategy 'quota', got 2"),
        ((places, "quota", 3), "n_places must be given with the strategy 'quota'"),
        ((places, "fifo", 2, 2), r"places must be 0 \.\.\. 1 \(-1 for none\), got 2"),
        ((places - 2, "fifo", 2), r"places must be .* \(-1 for none\), got -2"),
        ((places[0], "fifo", 2), r"places must be integers \(B, V\), got int64 \(3,\)"),
        ((places + 0.5, "fifo", 2), r"places must be integers \(B, V\), got float64 \(1, 3\)"),
    ):
        with pytest.raises(ValueError, match=message):
            retained(*arguments[:3], n_places=None if len(arguments) == 3 else arguments[3])
