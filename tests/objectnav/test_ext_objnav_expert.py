"""Actions of the expert of ExtObjNav, one by one, where a stop would not succeed."""

import math

import numpy as np
import pytest

from memenvs.houses.classes import FIRST_YCB_CLASS
from memenvs.objectnav.expert import Expert
from memenvs.objectnav.robot import DOWN, FORWARD, LEFT, RIGHT, START_TILT_DEG, STOP, UP
from memenvs.objectnav.symbolic import encode_symbolic
from tests.objectnav.table_world import APPLE, BOWL, TableWorld, make_table_env

TURN = math.radians(30)
LEVEL = START_TILT_DEG  # 36.87 degrees, at which the camera points 21.8 degrees down


@pytest.fixture(scope="module")
def layout():
    """An apple at (6.7, 2.0), 0.74 m high; it is seen from cells within 1.97 m of it."""
    env = make_table_env()
    env.reset(seed=0)
    return env.task.layout(0)


def act(layout, x, y, heading, tilt_state=LEVEL, *, turn=TURN, expert=None, category=APPLE):
    expert = expert or Expert(1, turn=turn)
    return expert.approach(0, layout, category, np.array([x, y]), heading, tilt_state)


def ahead(x: float, y: float) -> float:
    """Heading from a point to the apple."""
    return math.atan2(2.0 - y, 6.7 - x)


def test_far_away_it_drives_the_shortest_path(layout):
    for heading, action in ((0.0, FORWARD), (TURN, RIGHT), (-TURN, LEFT), (2.5, RIGHT), (-2.5, LEFT)):
        assert act(layout, 1.0, 2.0, heading) == action, heading


def test_on_a_viewpoint_it_faces_the_object_to_half_a_turn(layout):
    x, y = 5.475, 2.075  # viewpoints lie at -0.125 + 0.1 k
    for turn in (TURN, math.radians(14.3239)):
        expert = Expert(1, turn=turn)
        for turns, action in ((0.52, LEFT), (-0.52, RIGHT), (1.5, LEFT), (-1.5, RIGHT), (2.5, LEFT), (-2.5, RIGHT)):
            assert act(layout, x, y, ahead(x, y) - turns * turn, expert=expert) == action, (turn, turns)
            assert expert._target[0] == -1  # it is not done with this viewpoint
    for turns in (0.48, -0.48):  # near enough: on to the tilt
        assert act(layout, x, y, ahead(x, y) - turns * TURN, 80.0) == UP


def test_then_it_tilts_to_the_object(layout):
    """At 0.8 m the apple is 40 degrees below the camera, at 1.6 m 18; steps of the tilt are 14 to 16 degrees apart."""
    y = 1.975
    for x, tilt_state, action in ((5.875, LEVEL, DOWN), (5.075, LEVEL + 30, UP), (5.075, 80, UP), (5.875, 20, DOWN)):
        assert act(layout, x, y, ahead(x, y), tilt_state) == action, (x, tilt_state)


def test_last_it_goes_to_the_cell_from_which_the_object_is_known_to_be_visible(layout):
    """And stops there, since nothing better is left to try."""
    cell = layout.navmap.points(layout.view_cells)[0]
    assert math.dist(cell, (6.7, 2.0)) == pytest.approx(1.0, abs=0.05)
    expert = Expert(1, turn=TURN)
    x, y = 5.075, 2.075  # here the tilt is right at once
    field = layout.view_cell_distance_field(0)
    turns, gain = layout.navmap.steer(field, np.array([x, y]), ahead(x, y), TURN, 0.25)
    assert gain > 0.1
    expected = FORWARD if turns == 0 else LEFT if turns > 0 else RIGHT
    assert act(layout, x, y, ahead(x, y), expert=expert) == expected
    assert expert._target.tolist() == [0]
    facing = ahead(*cell)
    assert act(layout, *cell, facing, 80.0, expert=expert) == UP
    assert act(layout, *cell, facing, 50.0, expert=expert) == STOP
    expert.reset(0)
    assert expert._target.tolist() == [-1]


def test_it_faces_the_object_whose_viewpoint_it_reached():
    """Two bowls; the nearer viewpoint decides, not the number."""
    env = make_table_env(TableWorld(tables=((1.0, 2.0), (7.0, 2.0)), objects=((BOWL, 1.0, 2.0), (BOWL, 7.0, 2.0))))
    env.reset(seed=0)
    layout = env.task.layout(0)
    for x, left, right in ((2.075, math.pi / 2, -math.pi / 2), (5.975, -math.pi / 2, math.pi / 2)):
        distance = layout.navmap.distances(layout.distance_field(BOWL), np.array([[x, 1.975]]))
        assert distance == pytest.approx(0, abs=1e-6)
        assert act(layout, x, 1.975, left, category=BOWL) == LEFT
        assert act(layout, x, 1.975, right, category=BOWL) == RIGHT


def test_symbolic_numbers_equal_the_reference():
    """In images with every label and with depths beyond 10 m; rows outside the mask stay as they are."""
    rng = np.random.default_rng(0)
    semantic = rng.choice(FIRST_YCB_CLASS + 20, (3, 64, 64)).astype(np.uint8)
    semantic[0, :, 8:12] = 0  # nothing but "outside": the ray is free
    depth = rng.uniform(9.7, 40.0, (3, 64, 64, 1)).astype(np.float32)
    out = np.full((3, 52), -1.0, np.float32)
    encode_symbolic(semantic, depth, np.array([True, False, True]), out)
    assert (out[1] == -1.0).all()
    for n in (0, 2):
        for category in range(20):
            area = 16 * int((semantic[n] == FIRST_YCB_CLASS + category).sum())
            assert out[n, category] == pytest.approx(math.log(1 + area) / math.log(65537), abs=1e-6)
        for ray in range(32):
            strip = np.s_[n, :, 2 * ray : 2 * ray + 2]
            nearest = depth[strip][semantic[strip] > 2].min(initial=10.0)  # 0 to 2: outside, floor, ceiling
            assert out[n, 20 + ray] == pytest.approx(nearest / 10, abs=1e-6)
    assert (out[0, 24:26] == 1.0).all() and (out[0, 20:] < 1.0).any()
