"""Maps of Roaming, Coverage and Search: paths, entered cells, collisions, found classes."""

import numpy as np

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.exploration import env as exploration_env
from memenvs.exploration.coverage import Coverage
from memenvs.exploration.drive import FORWARD, ROBOT_RADIUS, collision_points
from memenvs.exploration.roaming import Roaming
from memenvs.exploration.search import Search
from memenvs.houses.rendering.viewer import GOAL_COLOUR
from tests.exploration.toy_world import ToyWorld

CROSS = (196, 0, 120)
SOFA = ("sofa", (5.0, 2.0, 0.4), (0.5, 0.9, 0.4))


def make_toy(task, boxes=(), **kwargs):
    return TrialEnv(task, world=ToyWorld(boxes=boxes), wheel_noise=0.0, modalities=["pose"], **kwargs)


def pixel_at(env, image, x, y):
    column, row = env.task.map_pixels(0, np.array([[x, y, 0.0]]))[0].astype(int)
    return image[row, column].astype(int)


def is_colour(pixels, colour):
    return np.abs(pixels.astype(int) - colour).max(-1) < 25


def test_entered_cells_are_tinted_where_they_are_rewarded():
    """Two steps from cell [4, 4] over [4, 5] to [4, 6]; the tint is blue, and what is under it shines through."""
    path = np.array([[2.1, 2.1, 0.0], [2.6, 2.1, 0.0], [3.1, 2.1, 0.0]])
    for task, tinted in ((Roaming, ()), (Coverage, ((2.75, 2.4), (3.25, 2.4)))):  # above the path
        env = make_toy(task)
        env.reset(seed=0)
        image, before = env.task.draw_map(0, path), env.task.draw_map(0, path[:1])
        for x, y in ((2.75, 2.4), (3.25, 2.4), (3.75, 2.4), (2.75, 2.75), (2.75, 1.75)):
            change = pixel_at(env, image, x, y) - pixel_at(env, before, x, y)
            assert change[2] > change[0] + 20 if (x, y) in tinted else not change.any(), (task, x, y)
        assert np.abs(pixel_at(env, image, 2.75, 2.4) - (92, 84, 232)).max() > 20


def test_collisions_are_crossed_at_the_front_of_the_robot():
    env = make_toy(Roaming)
    env.reset(seed=0)
    up = np.pi / 2
    path = np.array([[3.0, 2.0, 0.0], [3.0, 2.0, 0.0], [3.0, 2.0, up], [3.0, 2.0, up], [3.0, 1.0, up]])
    np.testing.assert_allclose(collision_points(path), [[3.0 + ROBOT_RADIUS, 2.0], [3.0, 2.0 + ROBOT_RADIUS]])
    image = env.task.draw_map(0, path)
    assert is_colour(pixel_at(env, image, 3.28, 2.0), CROSS) and is_colour(pixel_at(env, image, 3.0, 2.28), CROSS)
    without = env.task.draw_map(0, path[[0, 2, 4]])
    assert not is_colour(pixel_at(env, without, 3.28, 2.0), CROSS)
    assert is_colour(without, CROSS).any()  # in the legend


def test_class_is_a_ring_until_it_is_found_and_then_a_disc():
    env = make_toy(Search, (SOFA,), targets=("sofa",), render_mode="rgb_array")
    scale = 384 / 8.6  # of the plan beside the view: 8 m and a rim of 0.3 m
    row, column = round((384 - 4.6 * scale) / 2 + 2.3 * scale), round(384 + 5.3 * scale)
    _, info = env.reset(seed=0, options={"start": (1.0, 2.0, 0.0)})
    path = [info["pose"]]
    while not info["found"][0]:
        assert env.render()[row, column].min() > 230
        info = env.step(FORWARD)[4]
        path.append(info["pose"])
    assert 2 < len(path) < 15
    without, reached = (env.task.draw_map(0, np.array(poses)) for poses in (path[:-1], path))
    assert pixel_at(env, without, 5.0, 2.0).min() > 230  # hollow
    assert is_colour(pixel_at(env, without, 5.16, 2.0), GOAL_COLOUR)
    for pixel in (pixel_at(env, reached, 5.0, 2.0), env.render()[row, column]):
        assert is_colour(pixel, GOAL_COLOUR)
    env.reset()
    assert env.render()[row, column].min() > 230


def test_render_shows_the_path_of_this_episode_only(monkeypatch):
    paths = []
    monkeypatch.setattr(exploration_env, "draw_view_and_map", lambda view, house, path, overlay: paths.append(path))
    env = TrialVectorEnv(Coverage, 2, world=ToyWorld(), max_episode_steps=4, modalities=["pose"])
    _, info = env.reset(seed=0)
    poses = [[pose] for pose in info["pose"]]
    for step in range(11):
        _, _, _, _, info = env.step(np.array([FORWARD, step % 3]))
        for own, pose, steps in zip(poses, info["pose"], info["num_steps"], strict=True):
            own[:] = [*own, pose] if steps else [pose]
        paths.clear()
        for i, own in enumerate(poses):
            env.task.render(i)
            np.testing.assert_allclose(paths[i], own, atol=1e-5)


def test_counts_of_the_tasks_follow_from_the_path():
    """Entered cells, collisions and the steps of detections follow from the poses in `info`."""
    env = TrialVectorEnv(Search, 2, split="test", modalities=["pose"], max_episode_steps=150)
    _, info = env.reset(seed=2)
    rng = np.random.default_rng(0)
    paths, first = [info["pose"].copy()], np.full((2, 6), -1)
    for step in range(1, 121):
        random, planned = rng.integers(0, 3, 2), env.oracle_actions()
        info = env.step(np.where(np.arange(2) == 0, random, planned))[4]
        paths.append(info["pose"].copy())
        first[info["found"] & (first < 0)] = step
    assert info["collisions"][0] > 3 and info["classes"][1] > 2
    task = env.task
    for i in range(2):
        path, home = np.stack(paths)[:, i], task.home(i)
        assert len(collision_points(path)) == info["collisions"][i]
        entered = home.entered_cells(path)
        assert (entered[:, 2] == 0.5).all()
        j, k = ((entered[:, :2] - home.corner) / 0.5).astype(int).T
        counted = np.zeros((64, 64), bool)
        counted[k, j] = True
        np.testing.assert_array_equal(counted, info["visited"][i] & home.counted_cells)
        np.testing.assert_array_equal(task._scanner.first_detections(home, path, task._targets), first[i])
