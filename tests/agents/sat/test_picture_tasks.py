"""Picture tasks against the environments that their episodes are of."""

from __future__ import annotations

import numpy as np
import pytest

from memenvs.agents.sat import ballet3d_task, recall_tasks
from memenvs.agents.sat.face_task import FaceTask
from memenvs.agents.sat.picture_task import PictureBatch
from memenvs.agents.sat.picture_tasks import PICTURE_TASKS, make_picture_task
from memenvs.ballet3d.config import Ballet3DConfig
from memenvs.faces.config import LongStayConfig
from memenvs.recall.color_recall import RGB
from memenvs.recall.turns import OBSERVED_HEADINGS, QUERY_HEADINGS


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def views(batch: PictureBatch, rows: np.ndarray) -> np.ndarray:
    return batch.pictures(rows.ravel()).reshape(*rows.shape, 84, 84, 3)


def test_faces_have_the_patches_moves_and_cells_of_their_world() -> None:
    config = LongStayConfig(num_images=5)
    task = FaceTask(config)
    batch, episodes = task.sample(3, rng()), config.make_world().sample_batch(3, rng())
    assert (task.steps, task.capacity, task.n_regions, task.answers) == (512, 256, 16, 32)
    world = config.make_world()
    picture, cell = np.divmod(batch.rows, 100)
    np.testing.assert_array_equal(picture[:, 0], episodes.picture)
    np.testing.assert_array_equal(cell, episodes.cell)
    top, left = (8 * each for each in divmod(int(cell[2, 300]), 10))
    shown = batch.pictures(picture[2, 300:301])[0, top : top + 16, left : left + 16]
    np.testing.assert_array_equal(shown, world.patches(episodes.picture[2:], episodes.cell[2:, 300:301])[0, 0])
    np.testing.assert_array_equal(batch.answers, world.patches(episodes.picture, episodes.query_cell))
    assert batch.moves is not None and batch.query_moves is not None and task.move_vectors is not None
    assert (batch.moves[:, 0] == -1).all()
    for cells, moves in ((batch.places, batch.moves[:, 1:]), (batch.query_places, batch.query_moves)):
        assert cells is not None
        steps = np.diff(np.stack([cells % 10, cells // 10], -1), axis=1)
        np.testing.assert_array_equal(steps, task.move_vectors[moves])


def test_ballets_ask_for_dancers_that_the_strategy_of_the_task_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ballet3d_task, "TRAINING", 3)
    ballet3d_task._ballets.cache_clear()
    task = ballet3d_task.Ballet3DTask(Ballet3DConfig())
    batch = task.sample(40, rng())
    world, pool, _, _ = ballet3d_task._ballets(Ballet3DConfig(), False)
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
    ballet3d_task._ballets.cache_clear()


def test_the_first_view_of_a_tour_has_the_square_and_the_query_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_tasks, "TOUR_VIEWS", 119)  # one tour, and not quite another
    recall_tasks._tours.cache_clear()
    task = make_picture_task("memenvs/ColorRecall-v0", {"steps": [30, 30], "capacity": 30})
    batch = task.sample(4, rng())
    assert batch.query_rows is not None
    first, query = views(batch, batch.rows[:, 0]), views(batch, batch.query_rows)
    for b in range(4):
        differs = (first[b] != query[b]).any(-1)
        assert 0 < differs.sum() <= 64
        assert (first[b][differs] == RGB[batch.answers[b]]).all()
    assert task.steps == 60 and (batch.rows[:, 1:] == batch.rows[0, 1:]).all()  # one tour
    assert batch.drawn is not None and task.sample(1, rng()).drawn is batch.drawn
    np.testing.assert_array_equal(batch.drawn[batch.query_rows], query)
    recall_tasks._tours.cache_clear()


def test_a_queried_heading_lies_beside_the_view_that_answers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall_tasks, "POSITIONS", 2)
    recall_tasks._positions.cache_clear()
    task = make_picture_task("memenvs/ViewRecall-v0", {})
    batch = task.sample(6, rng())
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
    recall_tasks._positions.cache_clear()


def test_other_environments_are_refused() -> None:
    with pytest.raises(ValueError, match="env must be a picture task, got 'memenvs/Darkroom-v0'"):
        make_picture_task("memenvs/Darkroom-v0", {})
    with pytest.raises(TypeError, match="gridd"):
        make_picture_task(next(iter(PICTURE_TASKS)), {"gridd": 1})
