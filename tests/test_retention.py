"""What strategies keep: cases by hand, a slow reference, and one unit at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memenvs.retention import STRATEGIES, STRATEGY_NAMES, eviction_times, retained
from tests.slow_retention import SlowMemory

A, B, C, D = range(4)


def kept(places: list[int], strategy: str, capacity: int | None, **kwargs: object) -> list[int]:
    """Numbers of the units in memory."""
    return np.flatnonzero(retained(np.array([places]), strategy, capacity, **kwargs)[0]).tolist()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        # comes: B0 A1 A2 | C3 (A is fullest: A1 goes) | A4 (all hold one, the lowest is A: A2) | B5 (A: A4)
        ("mvfo", [0, 3, 5]),
        # C3 (B holds one: B0 goes) | A4 (C holds one: C3) | B5 (A holds all three: A1)
        ("lvfo", [2, 4, 5]),
        ("fifo", [3, 4, 5]),
        ("lifo", [0, 1, 2]),
        ("quota", [3, 4, 5]),  # one each: A1, A2 and B0 were pushed out of their own queues
    ],
)
def test_by_hand(strategy: str, expected: list[int]) -> None:
    assert kept([B, A, A, C, A, B], strategy, 3, n_places=3) == expected


def test_lifo_keeps_the_oldest_half_and_fifo_the_newest() -> None:
    places = np.random.default_rng(0).integers(0, 8, 18).tolist()
    assert kept(places, "lifo", 9) == list(range(9))
    assert kept(places, "fifo", 9) == list(range(9, 18))


def test_of_equal_places_the_lowest_loses() -> None:
    assert kept([B, A, C, D], "mvfo", 3) == [0, 2, 3]
    assert kept([B, A, C, D], "lvfo", 3) == [0, 2, 3]
    assert kept([C, B, B, C, A], "mvfo", 4) == [0, 2, 3, 4]  # B1, the older one of the lower label


def test_the_incoming_unit_is_not_counted() -> None:
    assert kept([A, B, B, A], "mvfo", 3) == [0, 2, 3]  # B holds two as A comes
    assert kept([A, B, B, A], "lvfo", 3) == [1, 2, 3]  # A holds one, so its place is taken by its own


def test_lifetime_counts_what_has_left() -> None:
    places = [A, A, A, B, B, C]  # as C comes, memory holds A2, B3 and B4
    assert kept(places, "mvfo", 3) == [2, 4, 5]
    assert kept(places, "mvfo", 3, count="lifetime") == [3, 4, 5]


def kept_by_reference(places: list[int], strategy: str, capacity: int, n_places: int, count: str) -> list[int]:
    """The rules as they are told, on a list of units in memory."""
    memory: list[int] = []
    for unit, place in enumerate(places):
        if place < 0:
            continue
        own = [other for other in memory if places[other] == place]
        if strategy == "quota":
            if len(own) == capacity // n_places:
                memory.remove(min(own))
        elif len(memory) == capacity:
            if strategy == "lifo":
                continue
            if strategy == "fifo":
                memory.remove(min(memory))
            else:
                seen = [places[other] for other in (memory if count == "occupancy" else range(unit))]
                visited = {held: seen.count(held) for held in sorted({places[other] for other in memory})}
                extreme = (max if strategy == "mvfo" else min)(visited.values())
                loser = next(held for held in visited if visited[held] == extreme)
                memory.remove(min(other for other in memory if places[other] == loser))
        memory.append(unit)
    return memory


sequences = st.lists(st.integers(0, 4), min_size=1, max_size=40)


@settings(max_examples=300, deadline=None)
@given(sequences, st.sampled_from(STRATEGY_NAMES), st.integers(5, 14), st.sampled_from(["occupancy", "lifetime"]))
def test_equals_a_slow_reference(places: list[int], strategy: str, capacity: int, count: str) -> None:
    expected = kept_by_reference(places, strategy, capacity, 5, count)
    assert kept(places, strategy, capacity, n_places=5, count=count) == sorted(expected)


@settings(max_examples=100, deadline=None)
@given(sequences, st.sampled_from(STRATEGY_NAMES), st.integers(5, 9))
def test_departures_are_those_of_every_beginning(places: list[int], strategy: str, capacity: int) -> None:
    gone = eviction_times(np.array([places]), strategy, capacity, n_places=5)[0]
    for newest in range(len(places)):
        there = [i for i in range(newest + 1) if newest < gone[i]]
        assert there == kept(places[: newest + 1], strategy, capacity, n_places=5)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_one_at_a_time_equals_the_sequence(data: st.DataObject) -> None:
    count, capacity = data.draw(st.sampled_from(["occupancy", "lifetime"])), data.draw(st.integers(5, 9))
    batch, units = 6, 30
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    places, strategy = rng.integers(0, 5, (batch, units)), rng.integers(0, 5, batch)
    whole = retained(places, strategy, capacity, n_places=5, count=count)  # type: ignore[arg-type]
    for row in range(batch):
        memory = SlowMemory(STRATEGY_NAMES[strategy[row]], capacity, 5, count == "lifetime")
        kept_last = [memory.write(place) for place in places[row].tolist()][-1]
        assert np.flatnonzero(whole[row]).tolist() == kept_last


def ballet_like(rng: np.random.Generator) -> tuple[np.ndarray, dict[str, list[int]]]:
    """18 visits to 8 places, one of them 8 times, at least 4 of these among the first 8; and the visits that each task asks for."""
    order = np.arange(18)
    order[4:] = rng.permutation(order[4:])
    order[:8] = rng.permutation(order[:8])
    places = rng.permutation(8)[np.repeat(np.arange(8), [8, 3, 2, 1, 1, 1, 1, 1])[order]]
    last = [int(np.flatnonzero(places == place)[-1]) for place in range(8)]
    most = np.flatnonzero(places == np.bincount(places).argmax()).tolist()
    return places, {"fifo": list(range(9, 18)), "lifo": list(range(9)), "mvfo": last, "lvfo": most}


@pytest.mark.parametrize("frames", [1, 32], ids=["visits", "frames"])
def test_the_matching_strategy_loses_nothing_that_is_asked_for(frames: int) -> None:
    """Whether it takes whole visits or streams frames with room for as many."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        places, targets = ballet_like(rng)
        stream = np.repeat(places, frames)[None]
        for strategy in STRATEGIES:
            there = retained(stream, strategy, 9 * frames)[0].reshape(18, frames)
            assert there.sum() == 9 * frames
            assert there[targets[strategy]].all()


def test_rows_have_their_own_strategies_gaps_and_resets() -> None:
    places = np.array([[A, A, B, A, -1, B]] * 4)
    got = retained(places, np.array([0, 1, 2, 3]), 2)
    assert [np.flatnonzero(row).tolist() for row in got] == [[3, 5], [0, 1], [2, 5], [2, 5]]
    resets = np.zeros((1, 6), bool)
    resets[0, [0, 3]] = True
    assert eviction_times(np.array([[A, B, B, A, A, B]]), "fifo", 2, resets=resets).tolist() == [[2, 3, 3, 5, 6, 6]]
    assert eviction_times(np.array([[A, B, B, A, A, B]]), "lifo", 2, resets=resets).tolist() == [[3, 3, 2, 6, 6, 5]]


def test_no_capacity_keeps_all() -> None:
    for strategy in STRATEGY_NAMES:
        assert kept([A, B, A], strategy, None, n_places=2) == [0, 1, 2]
        assert kept([A, B, A], strategy, 100, n_places=2) == [0, 1, 2]
    assert retained(np.zeros((2, 0), int), "mvfo", 3).shape == (2, 0)


def test_what_is_wrong_is_named() -> None:
    places = np.array([[0, 1, 2]])
    with pytest.raises(
        ValueError, match=r"unknown strategy 'mfvo'; choose from \['fifo', .*\]\. Did you mean 'mvfo'\?"
    ):
        retained(places, "mfvo", 2)
    with pytest.raises(ValueError, match=r"strategy must be 0 \.\.\. 4, numbers of \('fifo', .*, got 7"):
        retained(places, np.array([7]), 2)
    with pytest.raises(ValueError, match=r"strategy must be a name or integers \(1,\), got int64 \(2,\)"):
        retained(places, np.array([0, 1]), 2)
    with pytest.raises(ValueError, match="capacity must be an integer of at least 1 or None, got 0"):
        retained(places, "fifo", 0)
    with pytest.raises(ValueError, match=r"capacity must be at least n_places \(3\) with the strategy 'quota', got 2"):
        retained(places, "quota", 2, n_places=3)
    with pytest.raises(ValueError, match="n_places must be given with the strategy 'quota'"):
        retained(places, "quota", 3)
    with pytest.raises(ValueError, match=r"places must be 0 \.\.\. 1 \(-1 for none\), got 2"):
        retained(places, "fifo", 2, n_places=2)
    with pytest.raises(ValueError, match=r"places must be .* \(-1 for none\), got -3"):
        retained(places - 3, "fifo", 2)
    with pytest.raises(ValueError, match="unknown count 'visits'; choose from"):
        retained(places, "mvfo", 2, count="visits")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"places must be integers \(B, V\), got int64 \(3,\)"):
        retained(places[0], "fifo", 2)
    with pytest.raises(ValueError, match=r"places must be integers \(B, V\), got float64 \(1, 3\)"):
        retained(places + 0.5, "fifo", 2)
