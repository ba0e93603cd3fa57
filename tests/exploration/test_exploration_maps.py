"""Maps of Roaming, Coverage and Search: what a way left behind is drawn where it belongs."""

from __future__ import annotations

import numpy as np
import pytest

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.exploration.coverage import Coverage
from memenvs.exploration.drive import FORWARD, ROBOT_RADIUS, collision_points
from memenvs.exploration.roaming import Roaming
from memenvs.exploration.search import Search
from memenvs.houses.rendering.viewer import GOAL_COLOUR
from tests.exploration.toys import ToyWorld

CROSS = (196, 0, 120)
SOFA = ("sofa", (5.0, 2.0, 0.4), (0.5, 0.9, 0.4))


def make_toy(task, things=(), **kwargs):
    return TrialEnv(task, world=ToyWorld(things=things), wheel_noise=0.0, modalities=["pose"], **kwargs)


def pixel(env, image, x, y):
    column, row = env.task.map_pixels(0, np.array([[x, y, 0.0]]))[0].astype(int)
    return image[row, column].astype(int)


def is_colour(pixels, colour):
    return np.abs(pixels.astype(int) - colour).max(-1) < 25


@pytest.mark.parametrize("task", [Roaming, Coverage])
def test_cells_are_tinted_where_they_are_paid_for(task):
    """Two steps from cell [4, 4] over [4, 5] to [4, 6]."""
    env = make_toy(task)
    env.reset(seed=0)
    way = np.array([[2.1, 2.1, 0.0], [2.6, 2.1, 0.0], [3.1, 2.1, 0.0]])
    image, before = env.task.draw_map(0, way), env.task.draw_map(0, way[:1])
    for x in (2.75, 3.25):  # above the way
        was, now = pixel(env, before, x, 2.4), pixel(env, image, x, 2.4)
        if task is Coverage:
            assert now[2] - was[2] > now[0] - was[0] + 20
        else:
            assert (was == now).all()
    for x, y in ((3.75, 2.4), (2.75, 2.75), (2.75, 1.75)):
        assert (pixel(env, before, x, y) == pixel(env, image, x, y)).all()


def test_collisions_are_crossed_at_the_front_of_the_robot():
    env = make_toy(Roaming)
    env.reset(seed=0)
    up = np.pi / 2
    way = np.array([[3.0, 2.0, 0.0], [3.0, 2.0, 0.0], [3.0, 2.0, up], [3.0, 2.0, up], [3.0, 1.0, up]])
    np.testing.assert_allclose(collision_points(way), [[3.0 + ROBOT_RADIUS, 2.0], [3.0, 2.0 + ROBOT_RADIUS]])
    image = env.task.draw_map(0, way)
    assert is_colour(pixel(env, image, 3.28, 2.0), CROSS) and is_colour(pixel(env, image, 3.0, 2.28), CROSS)
    without = env.task.draw_map(0, way[[0, 2, 4]])
    assert not is_colour(pixel(env, without, 3.28, 2.0), CROSS)
    assert is_colour(without, CROSS).any()  # in the legend


def test_a_class_is_a_ring_until_it_is_found_and_then_a_disc():
    env = make_toy(Search, (SOFA,), targets=("sofa",), render_mode="rgb_array")
    _, info = env.reset(seed=0, options={"start": (1.0, 2.0, 0.0)})
    way, pictures = [info["pose"]], [env.render()]
    while not info["found"][0]:
        info = env.step(FORWARD)[4]
        way.append(info["pose"])
        pictures.append(env.render())
    assert 2 < len(way) < 15
    without, found = (env.task.draw_map(0, np.array(each)) for each in (way[:-1], way))
    assert pixel(env, without, 5.0, 2.0).min() > 230  # hollow
    assert is_colour(pixel(env, without, 5.16, 2.0), GOAL_COLOUR)
    assert is_colour(pixel(env, found, 5.0, 2.0), GOAL_COLOUR)
    scale = 384 / 8.6  # of the plan beside the view: 8 m and a rim of 0.3 m
    row, column = round((384 - 4.6 * scale) / 2 + 2.3 * scale), round(384 + 5.3 * scale)
    for picture in pictures[:-1]:
        assert picture[row, column].min() > 230
    assert is_colour(pictures[-1][row, column], GOAL_COLOUR)
    env.reset()
    assert env.render()[row, column].min() > 230


def test_the_disc_is_on_the_thing_that_was_seen():
    """Of two sofas the nearer one; the other is of no more interest."""
    env = make_toy(Search, (SOFA, ("sofa", (1.0, 0.5, 0.4), (0.4, 0.3, 0.4))), targets=("sofa",))
    _, info = env.reset(seed=0, options={"start": (3.2, 2.0, 0.0)})
    way = [info["pose"], env.step(FORWARD)[4]["pose"]]
    plain, image = env.task.draw_map(0, np.array(way[:1])), env.task.draw_map(0, np.array(way))
    assert is_colour(pixel(env, plain, 1.16, 0.5), GOAL_COLOUR)
    assert is_colour(pixel(env, image, 5.0, 2.0), GOAL_COLOUR) and not is_colour(
        pixel(env, image, 1.16, 0.5), GOAL_COLOUR
    )


def test_pictures_of_play_show_collisions():
    env = make_toy(Coverage, render_mode="rgb_array")
    env.reset(seed=0, options={"start": (7.6, 2.0, 0.0)})
    assert not is_colour(env.render(), CROSS).any()
    assert env.step(FORWARD)[4]["collision"]
    assert is_colour(env.render(), CROSS).any()


def test_ways_say_what_the_tasks_counted():
    """In a home of the article's kind: cells, collisions and the steps at which classes were found follow from the poses in `info`."""
    env = TrialVectorEnv(Search, 2, split="test", modalities=["pose"], max_episode_steps=150)
    _, info = env.reset(seed=2)
    rng = np.random.default_rng(0)
    ways, first = [info["pose"].copy()], np.full((2, 6), -1)
    for step in range(1, 121):
        random, known = rng.integers(0, 3, 2), env.oracle_actions()
        info = env.step(np.where(np.arange(2) == 0, random, known))[4]
        ways.append(info["pose"].copy())
        first[info["found"] & (first < 0)] = step
    assert info["collisions"][0] > 3 and info["classes"][1] > 2
    task = env.task
    for i in range(2):
        way, home = np.stack(ways)[:, i], task.home(i)
        assert len(collision_points(way)) == info["collisions"][i]
        entered = home.entered_cells(way)
        assert (entered[:, 2] == 0.5).all()
        j, k = ((entered[:, :2] - home.corner) / 0.5).astype(int).T
        counted = np.zeros((64, 64), bool)
        counted[k, j] = True
        np.testing.assert_array_equal(counted, info["visited"][i] & home.cells)
        np.testing.assert_array_equal(task._scanner.first_detections(home, way, task._targets), first[i])
