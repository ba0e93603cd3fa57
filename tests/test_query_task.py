"""Episodes in batches against the environments that they are of."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from memenvs.ballet3d import queries as ballet3d_queries
from memenvs.ballet3d.config import Ballet3DConfig
from memenvs.ballet3d.queries import DanceQueries
from memenvs.core import TrialVectorEnv
from memenvs.faces.config import FacesConfig, LongStayConfig
from memenvs.faces.drawing import draw_face
from memenvs.faces.queries import FaceQueries
from memenvs.query_task import SPLITS, QueryBatch, make_query_task
from memenvs.recall import queries as recall_queries
from memenvs.recall.color_recall import RGB
from memenvs.recall.config import ColorRecallConfig, ViewRecallConfig
from memenvs.recall.pools import ColorPool, ViewPool
from memenvs.recall.queries import ColorQueries, ViewQueries
from memenvs.recall.turns import OBSERVED_HEADINGS, QUERY_HEADINGS
from memenvs.registry import find_environment
from memenvs.room_ballet.episodes import NO_ACTION
from memenvs.room_ballet.frames import frame_table
from memenvs.room_ballet.tasks import make_ballet


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def views(batch: QueryBatch, rows: np.ndarray) -> np.ndarray:
    return batch.pictures(rows.ravel()).reshape(*rows.shape, 84, 84, 3)


def test_faces_have_the_patches_moves_and_cells_of_their_world() -> None:
    config = LongStayConfig(num_images=5)
    task = FaceQueries(config)
    batch, episodes = task.sample_batch(3, rng()), config.make_world().sample_batch(3, rng())
    assert (task.steps, task.capacity, task.n_regions, task.answers) == (512, 256, 16, 32)
    assert FaceQueries(FacesConfig(num_images=5)).capacity is None
    world = config.make_world()
    picture, cell = np.divmod(batch.rows, 100)
    np.testing.assert_array_equal(picture[:, 0], episodes.picture)
    np.testing.assert_array_equal(cell, episodes.cell)
    np.testing.assert_array_equal(batch.regions, episodes.place)
    top, left = (8 * each for each in divmod(int(cell[2, 300]), 10))
    shown = batch.pictures(picture[2, 300:301])[0, top : top + 16, left : left + 16]
    np.testing.assert_array_equal(shown, world.patches(episodes.picture[2:], episodes.cell[2:, 300:301])[0, 0])
    np.testing.assert_array_equal(batch.answers, world.patches(episodes.picture, episodes.query_cell))
    assert batch.query_rows is not None and batch.answer_rows is not None
    np.testing.assert_array_equal(batch.query_rows % 100, episodes.query_cell[:, 0])
    np.testing.assert_array_equal(batch.answer_rows, 100 * picture[:, :1] + episodes.query_cell[:, 1:])
    assert batch.moves is not None and batch.query_moves is not None and task.move_vectors is not None
    assert (batch.moves[:, 0] == -1).all()
    for cells, moves in ((batch.places, batch.moves[:, 1:]), (batch.query_places, batch.query_moves)):
        assert cells is not None
        steps = np.diff(np.stack([cells % 10, cells // 10], -1), axis=1)
        np.testing.assert_array_equal(steps, task.move_vectors[moves])


def test_faces_of_validation_and_test_are_those_of_their_splits(tmp_path: Path) -> None:
    task = FaceQueries(FacesConfig(num_images=5))
    for split in SPLITS:
        config = FacesConfig(split=split, num_images=5 if split == "train" else None)
        batch, episodes = task.sample_batch(6, rng(), split), config.make_world().sample_batch(6, rng())
        np.testing.assert_array_equal(batch.rows[:, 0] // 100, episodes.picture)
        np.testing.assert_array_equal(batch.answers, config.make_world().patches(episodes.picture, episodes.query_cell))
        np.testing.assert_array_equal(batch.pictures(episodes.picture[:1])[0], draw_face(int(episodes.picture[0])))
    chosen = FaceQueries(FacesConfig(split="validation", num_images=3))
    for split in SPLITS:
        assert set(np.unique(chosen.sample_batch(20, rng(), split).rows // 100)) == {62_000, 62_001, 62_002}
    for number in range(3):
        Image.new("RGB", (88, 88)).save(tmp_path / f"{number}.png")
    with pytest.raises(ValueError, match=r"'validation' of images=.* has none of its 3 pictures; split 'all'"):
        FaceQueries(FacesConfig(images=str(tmp_path)))
    task = FaceQueries(FacesConfig(images=str(tmp_path), split="all"))
    assert task.sample_batch(2, rng(), "test").rows.shape == (2, 256)


def test_visits_of_a_room_ballet_are_kept_together_and_shown_by_a_frame() -> None:
    """A frame of the queried visit is of no other one, and its dance is the answer."""
    for name, queries_rooms in (("LVFO", False), ("Next", True)):
        task = make_query_task(f"memenvs/RoomBallet-{name}-v0", {})
        ballet = make_ballet(name)
        batch, episodes = task.sample_batch(30, rng()), ballet.sample_batch(30, rng())
        assert (task.steps, task.visit_steps, task.capacity) == (ballet.steps, 32, ballet.capacity)
        assert (task.shows_answers, task.has_query_classes) == (not queries_rooms, queries_rooms)
        np.testing.assert_array_equal(batch.episodes.key, episodes.key)
        np.testing.assert_array_equal(batch.rows, episodes.frame)
        np.testing.assert_array_equal(batch.places, episodes.place)
        np.testing.assert_array_equal(batch.answers, episodes.label)
        assert batch.moves is not None and (batch.moves[episodes.action == NO_ACTION] == -1).all()
        np.testing.assert_array_equal(batch.moves[batch.moves >= 0], episodes.action[episodes.action != NO_ACTION])
        np.testing.assert_array_equal(batch.pictures(batch.rows[0, :3]), frame_table()[episodes.frame[0, :3]])
        if queries_rooms:
            assert batch.answer_rows is None and batch.query_classes is not None
            own = [dances[room] for dances, room in zip(episodes.room_dance, episodes.query_place, strict=True)]
            assert batch.query_classes.tolist() == own
        else:
            assert batch.query_classes is None and batch.answer_rows is not None
            for b in range(30):
                shown = np.flatnonzero(batch.rows[b] == batch.answer_rows[b]) // 32
                assert set(shown.tolist()) == {episodes.query_visit[b]}


def test_ballets_ask_for_dancers_that_the_strategy_of_the_task_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ballet3d_queries.BALLETS, "train", 3)
    ballet3d_queries._ballets.cache_clear()
    task = DanceQueries(Ballet3DConfig())
    batch = task.sample_batch(40, rng())
    world, pool, _, _ = ballet3d_queries._ballets(Ballet3DConfig(), "train")
    assert task.tasks == ("fifo", "lifo", "lvfo", "mvfo")
    np.testing.assert_array_equal(batch.tasks, np.arange(40) % 4)
    pictures, rows = world.draw(pool)
    ours = views(batch, batch.rows[:2, [0, 50, 125]])
    chosen = [next(i for i in range(3) if (pool.place[i] == batch.places[b]).all()) for b in range(2)]
    np.testing.assert_array_equal(ours, pictures[rows[chosen][:, [0, 50, 125]]])
    assert batch.query_rows is not None
    queried = views(batch, batch.query_rows)
    queries = [next(row for row, view in enumerate(world.front_views) if (view == each).all()) for each in queried]
    dancers = np.array(queries) // 6
    for b, dancer in enumerate(dancers):
        candidates = [i for i in range(3) if (pool.place[i] == batch.places[b]).all()]
        number = [list(pool.dancer[i]).index(dancer) for i in candidates if dancer in pool.dancer[i]]
        assert world.queried[batch.tasks[b], number].any()
        np.testing.assert_array_equal(batch.answers[b, -1], queried[b])  # after the last move it is at rest
    ballet3d_queries._ballets.cache_clear()


def test_the_first_view_of_a_tour_has_the_square_and_the_query_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(recall_queries.TOURS, "train", 1)
    recall_queries._tours.cache_clear()
    task = make_query_task("memenvs/ColorRecall-v0", {"steps": [30, 30], "capacity": 30})
    batch = task.sample_batch(4, rng())
    assert batch.query_rows is not None
    first, query = views(batch, batch.rows[:, 0]), views(batch, batch.query_rows)
    for b in range(4):
        differs = (first[b] != query[b]).any(-1)
        assert 0 < differs.sum() <= 64
        assert (first[b][differs] == RGB[batch.answers[b]]).all()
    assert task.steps == 60 and (batch.rows[:, 1:] == batch.rows[0, 1:]).all()  # one tour
    recall_queries._tours.cache_clear()


def test_a_queried_heading_lies_beside_the_view_that_answers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(recall_queries.POSITIONS, "train", 2)
    recall_queries._positions.cache_clear()
    task = make_query_task("memenvs/ViewRecall-v0", {})
    batch = task.sample_batch(6, rng())
    assert batch.query_vectors is not None and batch.answer_rows is not None
    angle = np.arctan2(batch.query_vectors[:, 0], batch.query_vectors[:, 1])
    apart = np.abs(np.angle(np.exp(1j * (angle[:, None] - QUERY_HEADINGS)))).min(1)
    assert apart.max() < 1e-6
    nearest = OBSERVED_HEADINGS[batch.answer_rows[:, 0] % 40]
    np.testing.assert_allclose(np.abs(np.angle(np.exp(1j * (angle - nearest)))), np.radians(6), atol=1e-6)
    beside, far = views(batch, batch.answer_rows)[:, 0], views(batch, batch.answer_rows // 40 * 40 + 20)[:, 0]
    errors = [np.square(each / 255 - batch.answers[:, 0] / 255).mean() for each in (beside, far)]
    assert errors[0] < errors[1]
    assert ((batch.rows // 40) == (batch.answer_rows // 40)).all()
    recall_queries._positions.cache_clear()


def test_each_split_has_views_of_its_own_and_all_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training uses seed 0, validation 1, evaluation 2; episodes, places and answers are those of the pool."""
    for module, name, counts in (
        (ballet3d_queries, "BALLETS", (3, 2, 4)),
        (recall_queries, "TOURS", (3, 2, 4)),
        (recall_queries, "POSITIONS", (3, 2, 4)),
    ):
        monkeypatch.setattr(module, name, dict(zip(SPLITS, counts, strict=True)))
    homes = {"rooms": (4, 5), "image_size": (12, 12), "steps": (2, 2)}
    color, view = ColorRecallConfig(**homes, square_size=3, capacity=9), ViewRecallConfig(**homes)
    ballet = Ballet3DConfig(strategy_task="lvfo")
    colors = [ColorPool(color, tours=count, seed=seed) for seed, count in enumerate((3, 2, 4))]
    positions = [ViewPool(view, positions=count, seed=seed) for seed, count in enumerate((3, 2, 4))]
    dances = [ballet.make_world().sample_batch(count, np.random.default_rng(k)) for k, count in enumerate((3, 2, 4))]
    for k, (split, count) in enumerate(zip(SPLITS, (3, 2, 4), strict=True)):
        task = ColorQueries(color)
        batch, episodes = task.sample_batch(90, rng(), split), colors[k].sample_batch(90, rng())
        assert batch.drawn is not None and batch.answer_rows is not None and task.capacity == 9
        np.testing.assert_array_equal(batch.drawn, colors[k].images.reshape(-1, 12, 12, 3))
        np.testing.assert_array_equal(batch.answers, episodes.colour)
        np.testing.assert_array_equal(batch.answer_rows[:, 0], batch.rows[:, 0])
        rows = 4 * episodes.tour[:, None] + np.arange(4)
        np.testing.assert_array_equal(batch.rows[:, 1:], rows[:, 1:])
        np.testing.assert_array_equal(batch.query_rows, rows[:, 0])
        np.testing.assert_array_equal(batch.places, colors[k].place[episodes.tour])
        task = ViewQueries(view)
        batch, turns = task.sample_batch(90, rng(), split), positions[k].sample_batch(90, rng())
        assert batch.drawn is not None and task.capacity == 2
        np.testing.assert_array_equal(batch.drawn, positions[k].pictures.reshape(-1, 12, 12, 3))
        np.testing.assert_array_equal(batch.answers[:, 0], positions[k].targets(turns))
        np.testing.assert_array_equal(batch.rows, 40 * turns.position[:, None] + turns.heading)
        np.testing.assert_array_equal(batch.pictures(batch.rows[7]), positions[k].observed(turns)[7])
        np.testing.assert_array_equal(batch.places, turns.place)
        batch = DanceQueries(ballet).sample_batch(90, rng(), split)
        places = dances[k].place
        assert not batch.tasks.any()  # the only one of this setting
        assert batch.drawn is not None and batch.query_rows is not None
        number = (places == batch.places[:, None]).all(2).argmax(1)  # of the episode that each one is
        assert (places[number] == batch.places).all() and set(number.tolist()) == set(range(count))
        queried = (batch.query_rows - len(batch.drawn)) // 6 == dances[k].dancer[number].T  # (S, B)
        assert queried.sum(1)[2:6].min() > 10 and queried.sum() == queried[2:6].sum() == 90  # lvfo queries 2 ... 5
    for cached in (ballet3d_queries._ballets, recall_queries._tours, recall_queries._positions):
        cached.cache_clear()


def test_each_environment_has_its_task_and_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    homes = {"rooms": (4, 5), "image_size": (12, 12), "steps": (3, 4)}
    colour = {**homes, "square_size": 3, "capacity": 9}
    expected = {  # type, steps, capacity, places, columns, regions, tasks, answers and classes
        "FFHQWorld": (FaceQueries, 256, None, 100, 10, 8, 1, 32, 0),
        "FFHQWorld-LongStay": (FaceQueries, 9, 256, 100, 10, 16, 1, 32, 0),
        "Ballet3D": (DanceQueries, 126, 72, 4, None, 4, 1, 6, 0),
        "ColorRecall": (ColorQueries, 7, 9, 5, None, 5, 1, 1, 6),
        "ViewRecall": (ViewQueries, 7, 3, 10, None, 10, 1, 1, 0),
    }
    settings = [{"places": 8}, {"steps": (4, 3, 2)}, {"strategy_task": "lifo"}, colour, homes]
    for (name, sizes), kwargs in zip(expected.items(), settings, strict=True):
        task = make_query_task(f"memenvs/{name}-v0", kwargs)
        grid = task.n_places, task.columns, task.n_regions
        assert (type(task), task.steps, task.capacity, *grid, len(task.tasks), task.answers, task.classes) == sizes
    monkeypatch.setitem(recall_queries.TOURS, "train", 5)
    monkeypatch.setattr("memenvs.recall.env.RecallHomes.max_rooms", None)  # as in worlds that do not bound it
    recall_queries._tours.cache_clear()
    config = ColorRecallConfig(**colour)
    assert ColorQueries(config).n_places == ColorPool(config, tours=5, seed=0).place.max() + 1 > 1
    recall_queries._tours.cache_clear()


def played(env: TrialVectorEnv) -> list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """Observation and info of each step of an episode that watches to its query."""
    steps = [env.reset(seed=7)]
    while not steps[-1][0]["phase"].any():
        observation, _, _, _, info = env.step(np.zeros(env.num_envs, np.int64))
        steps.append(({key: value.copy() for key, value in observation.items()}, info))
    return steps


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("RoomBallet-MVFO", {"rooms": 5}),
        ("RoomBallet-Next", {}),
        ("ColorRecall", {"rooms": (4, 5), "image_size": (12, 12), "steps": (5, 4), "square_size": 3, "capacity": 9}),
    ],
)
def test_episodes_of_environments_are_those_that_they_show(name: str, settings: dict[str, Any]) -> None:
    id = f"memenvs/{name}-v0"
    env = TrialVectorEnv(str(find_environment(id).task), 3, trial_episodes=1, autoreset_mode="Disabled", **settings)
    task = make_query_task(id, settings)
    env.reset(seed=7)
    batch = task.episodes_of(env.task)
    assert isinstance(batch, QueryBatch)
    *steps, (query, info) = played(env)
    assert batch.rows.shape == (3, len(steps))
    for t in (0, 1, len(steps) // 2, len(steps) - 1):
        seen, truth = steps[t]
        np.testing.assert_array_equal(batch.pictures(batch.rows[:, t]), seen["rgb"])
        np.testing.assert_array_equal(batch.places[:, t], truth["place"])
        if batch.moves is not None:
            np.testing.assert_array_equal(np.where(batch.moves[:, t] < 0, NO_ACTION, batch.moves[:, t]), seen["move"])
    assert batch.query_rows is not None
    np.testing.assert_array_equal(batch.pictures(batch.query_rows), query["query" if "query" in query else "rgb"])
    np.testing.assert_array_equal(batch.answers, info["label" if "label" in info else "colour"])
    env.reset(options={"reset_mask": np.array([False, True, False])})
    again = task.episodes_of(env.task)
    assert isinstance(again, QueryBatch)
    assert (batch.places == again.places).all(1).tolist() == [True, False, True]
    env.close()


def test_episodes_are_selected_with_all_that_is_theirs() -> None:
    numbers = np.arange(4)
    own = [each.name for each in fields(QueryBatch) if each.name not in ("pictures", "drawn", "moves")]
    drawn = np.zeros((9, 2, 2, 3), np.uint8)
    columns = {name: 10 * k + numbers[:, None] for k, name in enumerate(own)}
    batch = QueryBatch(pictures=lambda rows: drawn[rows], drawn=drawn, **columns)
    for index, chosen in ((slice(1, None, 2), [1, 3]), (np.array([2, 0, 2]), [2, 0, 2]), (numbers == 3, [3])):
        some = batch.select(index)
        assert len(some) == len(chosen) and some.drawn is drawn and some.moves is None
        assert some.pictures is batch.pictures
        for k, name in enumerate(own):
            assert getattr(some, name)[:, 0].tolist() == [10 * k + number for number in chosen]


def test_other_environments_are_refused() -> None:
    for env in ("memenvs/Darkroom-v0", "CartPole-v1"):
        with pytest.raises(ValueError, match=f"env must be one in which one watches, then answers .* got '{env}'"):
            make_query_task(env, {})
    with pytest.raises(ValueError, match="task must be one with descriptions in words, got one of view"):
        make_query_task("memenvs/ViewRecall-v0", {}).descriptions(0, "train")
