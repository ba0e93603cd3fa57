"""Tasks of Room Ballet: schedules, dancers, queries and keys."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memenvs.retention import retained
from memenvs.room_ballet import visit_schedules
from memenvs.room_ballet.ballet_task import BalletTask
from memenvs.room_ballet.dances import PERFORMANCE_CELLS
from memenvs.room_ballet.descriptions import STRATEGY_TASKS
from memenvs.room_ballet.episodes import BalletEpisodes
from memenvs.room_ballet.tasks import BALLET_NAMES, make_ballet
from tests.rollouts import same


def sample(name: str, batch: int = 500, seed: int = 0, **kwargs: object) -> tuple[BalletTask, BalletEpisodes]:
    task = make_ballet(name, **kwargs)
    return task, task.sample_batch(batch, np.random.default_rng(seed))


def equal(left: BalletEpisodes, right: BalletEpisodes) -> bool:
    return all(same(value, vars(right)[name]) for name, value in vars(left).items())


def rows(episodes: BalletEpisodes, index: slice | np.ndarray) -> BalletEpisodes:
    return BalletEpisodes(**{name: values[index] for name, values in vars(episodes).items()})


def last_visits(place: np.ndarray) -> np.ndarray:
    """Mark the last visit to each room, bool, (B, V)."""
    return np.array([[room not in rooms[k + 1 :] for k, room in enumerate(rooms)] for rooms in place.tolist()])


def test_numbers_are_those_of_splitmix64():
    """Published outputs for seed 0 are 0xE220A8397B1DCDAF and 0x6E789E6AA1B965F4."""
    state = np.zeros(1, np.uint64)
    for output in (0xE220A839, 0x6E789E6A):
        assert visit_schedules.draw_index(state, np.ones((1, 1000), bool)) == output * 1000 >> 32


@settings(max_examples=10, deadline=None)
@given(batch=st.integers(1, 9), seed=st.integers(0, 2**32))
def test_a_batch_equals_its_episodes_made_alone(batch, seed):
    for name in BALLET_NAMES:
        task = make_ballet(name)
        episodes = task.sample_batch(batch, np.random.default_rng(seed))
        assert equal(episodes, task.make_episodes(episodes.key))
        for b in range(batch):
            assert equal(rows(episodes, slice(b, b + 1)), task.make_episodes(episodes.key[b : b + 1]))
        if len(task.query_rules) == 1:
            rng = np.random.default_rng(seed)
            for b in range(batch):
                assert equal(rows(episodes, slice(b, b + 1)), task.sample_batch(1, rng))


def test_tasks_follow_each_other_in_a_batch():
    keys = np.random.default_rng(0).integers(2**63, size=32)
    np.testing.assert_array_equal(sample("FIFO", 32)[1].key, keys)
    _, episodes = sample("MultiTask", 32)
    np.testing.assert_array_equal(episodes.key // 4, keys // 4)
    np.testing.assert_array_equal(episodes.key % 4, (keys[0] + np.arange(32)) % 4)
    np.testing.assert_array_equal(episodes.task_id, episodes.key % 4)


SHOWN = ("frame", "place", "visit", "action", "query", "label", "task_id", "query_place", "query_visit")
#: First 16 digits of the hash of 50 episodes.
EPISODES = (
    ("Next", {}, "7ef626550b81a7b1"),
    ("ShortStay", {}, "2e327675fb67c123"),
    ("FIFO", {}, "6f6587fddaefd86f"),
    ("LIFO", {}, "350718eb7ac9ecf0"),
    ("MVFO", {}, "7df90f230cf5b456"),
    ("LVFO", {}, "c3266109fc089422"),
    ("MultiTask", {}, "3c89b2cf7aea8fff"),
    ("Opposite", {}, "25a61df07dae94ec"),
    ("ABA", {}, "edb3140756773d38"),
    ("ShortStay", {"size": 5}, "e40f2728e1ce1c03"),
    ("MVFO", {"rooms": 12}, "d21decf44b0381db"),
    ("MultiTask", {"schedule": "grid_walk"}, "93d80166e9466d41"),
)


def test_a_key_gives_the_same_episode_in_every_version():
    for name, kwargs, expected in EPISODES:
        episodes = make_ballet(name, **kwargs).make_episodes(np.arange(50) ** 11)  # keys up to 2^62
        content = b"".join(getattr(episodes, field).astype("<i8").tobytes() for field in SHOWN)
        assert hashlib.sha256(content).hexdigest()[:16] == expected, (name, kwargs)


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [*((name, {}) for name in BALLET_NAMES), ("ShortStay", {"size": 5}), ("LVFO", {"schedule": "grid_walk"})],
)
def test_steps_show_the_visits(name, kwargs):
    """Frames, places and queries against the visits."""
    task, episodes = sample(name, 50, **kwargs)
    steps = np.arange(task.steps)
    assert task.steps == (576 if task.visits == 18 else 1280)
    assert (episodes.visit == steps // task.visit_steps).all()
    assert (episodes.action[:, steps % task.visit_steps > 0] == 4).all()  # moves are at the first step of a visit
    assert name != "MVFO" or (episodes.action == 4).all()  # rooms have no neighbours: places are drawn
    pick = np.arange(50)[:, None], episodes.visit
    np.testing.assert_array_equal(episodes.place, episodes.visit_place[pick])
    cell = PERFORMANCE_CELLS[episodes.visit_dance[pick], steps % 32]
    np.testing.assert_array_equal(episodes.frame, episodes.visit_dancer[pick] * 9 + cell)
    assert (episodes.place < task.rooms).all()
    assert (episodes.query % 9 == 4).all()
    if task.queries_rooms:
        assert (episodes.query_visit == -1).all()
        in_room = np.take_along_axis(episodes.room_dancer, episodes.visit_place.astype(int), 1)
        np.testing.assert_array_equal(episodes.visit_dancer, in_room)
        assert all(len(set(dancers)) == task.rooms for dancers in episodes.room_dancer.tolist())
        np.testing.assert_array_equal(episodes.query // 9, episodes.room_dancer[np.arange(50), episodes.query_place])
    else:
        queried = np.arange(50), episodes.query_visit
        np.testing.assert_array_equal(episodes.query // 9, episodes.visit_dancer[queried])
        np.testing.assert_array_equal(episodes.label, episodes.visit_dance[queried])
        np.testing.assert_array_equal(episodes.query_place, episodes.visit_place[queried])
        assert (episodes.room_dance == -1).all()
        assert all(len(set(dancers)) == 18 for dancers in episodes.visit_dancer.tolist())


def test_moves_lead_from_place_to_place():
    right, left, up, down = [0, 1], [0, -1], [-1, 0], [1, 0]
    for name in ("Next", "Opposite"):
        task, episodes = sample(name, 50)
        place = episodes.visit_place + (name == "Opposite") * (episodes.visit_place > 3)  # as numbers of the 3 x 3 grid
        cells = np.stack(np.divmod(place, 3), -1)  # (50, V, 2)
        action = episodes.action[:, :: task.visit_steps]
        assert (action[:, 0] == 4).all()
        target = cells[:, :-1] + np.array([right, left, up, down])[action[:, 1:]]
        np.testing.assert_array_equal(cells[:, 1:], target)
    _, episodes = sample("ShortStay", 50, size=4)
    cells = np.stack(np.divmod(episodes.visit_place, 4), -1)
    assert (episodes.action[:, 0] == 4).all()
    target = cells[:, :-1] + np.array([up, down, left, right])[episodes.action[:, 1:]]
    np.testing.assert_array_equal(cells[:, 1:], np.clip(target, 0, 3))
    is_blocked = ((target < 0) | (target >= 4)).any(-1)
    assert 0.2 < is_blocked.mean() < 0.3  # of 16 rooms 4 have two walls and 8 have one: (4 * 2 + 8) / 16 / 4


def test_dances_are_balanced_as_in_the_release():
    _, episodes = sample("FIFO", 300)
    for places, dances in zip(episodes.visit_place, episodes.visit_dance, strict=True):
        count = np.bincount(places, minlength=8)
        assert sorted(count.tolist()) == [1, 1, 1, 1, 1, 2, 3, 8]
        a, b, c = (np.flatnonzero(count == k)[0] for k in (8, 3, 2))
        assert (places[:8] == a).sum() >= 4
        assert sorted(dances[places == a].tolist()) == list(range(8))
        assert sorted(np.bincount(dances).tolist()) == [1, 2, 2, 2, 2, 3, 3, 3]
        of_b, of_c = set(dances[places == b].tolist()), set(dances[places == c].tolist())
        single = set(dances[count[places] == 1].tolist())
        assert (len(of_b), len(of_c), len(single)) == (3, 2, 5)
        assert not of_b & of_c
        assert (len(single & of_b), len(single & of_c)) == (2, 1)


def test_shapes_and_colours_are_those_of_the_release():
    _, episodes = sample("LVFO", 300)
    shapes, colours = np.divmod(episodes.visit_dancer, 19)
    assert all(len(set(row)) == 18 for row in colours.tolist())
    assert all(sorted(np.bincount(row, minlength=15).tolist()) == [1] * 12 + [2] * 3 for row in shapes.tolist())


def test_queries_of_the_strategy_tasks():
    for name in STRATEGY_TASKS:
        _, episodes = sample(name.upper(), 4000)
        place, visit = episodes.visit_place, episodes.query_visit
        count = np.stack([np.bincount(rooms, minlength=8) for rooms in place])
        allowed = {
            "fifo": np.broadcast_to(np.arange(18) >= 9, place.shape),
            "lifo": np.broadcast_to(np.arange(18) < 9, place.shape),
            "lvfo": place == count.argmax(1)[:, None],
            "mvfo": last_visits(place),
        }[name]
        every = np.arange(len(place))
        assert allowed[every, visit].all()
        assert (episodes.task_id == STRATEGY_TASKS.index(name)).all()
        share = np.bincount((allowed.cumsum(1) - 1)[every, visit]) / len(place)  # by index among the allowed visits
        np.testing.assert_allclose(share, 1 / allowed[0].sum(), atol=0.025)
        np.testing.assert_allclose(np.bincount(episodes.label, minlength=8) / len(place), 1 / 8, atol=0.03)
        np.testing.assert_allclose(np.bincount(episodes.query_place, minlength=8) / len(place), 1 / 8, atol=0.03)


def test_other_numbers_of_rooms():
    for rooms in (4, 6, 10, 12):
        task, episodes = sample("MVFO", 2000, rooms=rooms)
        assert (task.rooms, task.capacity) == (rooms, rooms + 1)
        expected = sorted([16 - rooms, 3, 2] + [1] * (rooms - 3))
        assert all(sorted(np.bincount(places).tolist()) == expected for places in episodes.visit_place[:200])
        assert last_visits(episodes.visit_place)[np.arange(2000), episodes.query_visit].all()
        np.testing.assert_allclose(np.bincount(episodes.visit_dance.ravel()) / (2000 * 18), 1 / 8, atol=0.01)


def test_grid_walk():
    """Compare with another Monte Carlo program.

    It finds 7.3 visited rooms and 4.7 visits to the most visited one; LVFO and MVFO lose a target in 28 % and 12 % of
    episodes.
    """
    _, episodes = sample("FIFO", 20_000, schedule="grid_walk")
    place = episodes.visit_place
    count = (place[:, :, None] == np.arange(9)).sum(1)
    assert (count > 0).sum(1).mean() == pytest.approx(7.3, abs=0.05)
    assert count.max(1).mean() == pytest.approx(4.7, abs=0.06)
    busiest = place == count.argmax(1)[:, None]  # of equal ones the first, with which the figure was made
    assert (busiest & ~retained(place, "lvfo", 9)).any(1).mean() == pytest.approx(0.28, abs=0.01)
    assert (last_visits(place) & ~retained(place, "mvfo", 9)).any(1).mean() == pytest.approx(0.12, abs=0.01)


def test_queries_after_a_grid_walk_are_about_retained_visits():
    _, episodes = sample("MultiTask", 4000, schedule="grid_walk")
    every, place, visit = np.arange(4000), episodes.visit_place, episodes.query_visit
    assert retained(place, episodes.task_id, 9)[every, visit].all()
    count = (place[:, :, None] == np.arange(9)).sum(1)
    lvfo, mvfo = (episodes.task_id == STRATEGY_TASKS.index(name) for name in ("lvfo", "mvfo"))
    assert (count[every, episodes.query_place] == count.max(1))[lvfo].all()
    assert last_visits(place)[every, visit][mvfo].all()
    tied = lvfo & ((count == count.max(1, keepdims=True)).sum(1) > 1)
    is_first = (episodes.query_place == count.argmax(1))[tied].mean()
    assert 0.2 < is_first < 0.8  # not always the lowest number


def test_other_queries_in_the_same_episodes():
    task, episodes = sample("LIFO", 18)
    queried = task.with_query(episodes, np.arange(18))
    assert queried.query_visit.tolist() == list(range(18))
    np.testing.assert_array_equal(queried.label, episodes.visit_dance[np.arange(18), np.arange(18)])
    assert queried.frame is episodes.frame
    task, episodes = sample("Opposite", 8)
    queried = task.with_query(episodes, np.arange(8))
    np.testing.assert_array_equal(queried.label, [episodes.room_dance[b, 7 - b] for b in range(8)])
    task, episodes = sample("ShortStay", 9)  # queries any room, also one that was never visited
    nowhere_else = replace(episodes, visit_place=np.zeros_like(episodes.visit_place))
    queried = task.with_query(nowhere_else, np.arange(9))
    np.testing.assert_array_equal(queried.label, episodes.room_dance[np.arange(9), np.arange(9)])


def test_invalid_queries():
    task, episodes = sample("Next", 200)
    b = next(b for b in range(200) if len(set(episodes.visit_place[b].tolist())) < 9)
    one = rows(episodes, slice(b, b + 1))
    unvisited = min(set(range(9)) - set(one.visit_place[0].tolist()))
    for query in (unvisited, 4):  # the middle has no next room
        with pytest.raises(ValueError, match=rf"query must be a room that was visited .* one of \[.*\], got {query}"):
            task.with_query(one, np.array([query]))
    for query in ([9], [-1], [0.0], [0, 1]):
        with pytest.raises(ValueError, match=r"query must be the number of a room, 0 \.\.\. 8, for each of 1 episodes"):
            task.with_query(one, np.array(query))


def test_rooms_on_the_map():
    """Row by row; in the ring without the middle one."""
    for name, kwargs, side, positions in (
        ("Next", {}, 3, [(k % 3, k // 3) for k in range(9)]),
        ("Opposite", {}, 3, [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (0, 2), (1, 2), (2, 2)]),
        ("FIFO", {}, 3, [(k % 3, k // 3) for k in range(8)]),
        ("MVFO", {"rooms": 12}, 4, [(k % 4, k // 4) for k in range(12)]),
        ("ShortStay", {"size": 5}, 5, [(k % 5, k // 5) for k in range(25)]),
    ):
        task = make_ballet(name, **kwargs)
        assert (task.side, [tuple(cell) for cell in task.positions.tolist()]) == (side, positions)


def test_invalid_settings():
    for name, kwargs, error, message in (
        ("Polka", {}, ValueError, r"unknown ballet 'Polka'; choose from \['Next', 'ShortStay'"),
        ("FIFO", {"schedule": "walk"}, ValueError, "unknown schedule 'walk'; did you mean 'grid_walk'"),
        ("FIFO", {"rooms": 6}, TypeError, r"unexpected keyword argument 'rooms'; choose from \['schedule'\]"),
        ("MVFO", {"rooms": 3}, ValueError, "rooms must be an integer of 4 to 12, got 3"),
        ("MVFO", {"rooms": 13}, ValueError, "rooms must be an integer of 4 to 12, got 13"),
        ("MVFO", {"rooms": 8.0}, ValueError, "rooms must be an integer of 4 to 12, got 8.0"),
        ("MVFO", {"rooms": 6, "schedule": "grid_walk"}, ValueError, "rooms can be chosen with schedule 'histogram'"),
        ("ShortStay", {"size": 6}, ValueError, r"size must be one of \(3, 4, 5\), got 6"),
    ):
        with pytest.raises(error, match=message):
            make_ballet(name, **kwargs)


def test_invalid_batches_and_keys():
    task = make_ballet("FIFO")
    with pytest.raises(ValueError, match="batch must be an integer of at least 1, got 0"):
        task.sample_batch(0, np.random.default_rng(0))
    with pytest.raises(TypeError, match=r"rng must be a numpy Generator .*, got 7"):
        task.sample_batch(4, 7)  # type: ignore[arg-type]
    keys = np.array([0, 2**63 - 1])
    assert equal(task.make_episodes(keys), task.make_episodes(keys.astype(np.uint64)))
    for keys in ([-1], [0.5], [[1]], np.array([2**63], np.uint64)):
        with pytest.raises(ValueError, match=r"keys must be integers \(B,\) in 0 \.\.\. 2\^63 - 1, got"):
            task.make_episodes(np.array(keys))
