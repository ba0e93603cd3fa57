"""The Fetch base: arcs, wheel noise and dead reckoning."""

import math

import numpy as np
import pytest

from memenvs.exploration.drive import (
    AXLE_WIDTH,
    COMMANDS,
    FORWARD,
    LEFT,
    RIGHT,
    WHEEL_RADIUS,
    dead_reckon,
    noisy_motions,
)
from memenvs.houses.navigation.arcs import arc_end, is_arc_free
from memenvs.houses.navigation.occupancy import label_islands
from memenvs.random import draw_keys


def test_arcs_are_what_two_wheels_roll():
    """Compare with wheels that roll in many small steps."""
    for left, right in ((3.0, 5.0), (4.0, 4.0), (-2.0, 2.0), (-6.0, 1.0)):
        x, y, heading = 1.0, -2.0, 0.7
        parts = 20_000
        distance = WHEEL_RADIUS * (left + right) / 2 / parts
        turn = WHEEL_RADIUS * (right - left) / AXLE_WIDTH / parts
        for _ in range(parts):
            x += distance * math.cos(heading + turn / 2)
            y += distance * math.sin(heading + turn / 2)
            heading += turn
        end = arc_end(1.0, -2.0, 0.7, WHEEL_RADIUS * (left + right) / 2, WHEEL_RADIUS * (right - left) / AXLE_WIDTH)
        np.testing.assert_allclose(end, (x, y, heading), atol=1e-7)


def test_commands_are_the_wheel_rates_of_the_specification():
    forward, turning = 3.846, 2.266  # rad/s for an action of one second
    assert COMMANDS[FORWARD] == pytest.approx([WHEEL_RADIUS * forward, 0.0], abs=1e-4)
    for action, sign in ((LEFT, 1), (RIGHT, -1)):
        assert COMMANDS[action] == pytest.approx([0.0, sign * 2 * WHEEL_RADIUS * turning / AXLE_WIDTH], abs=1e-3)
        assert COMMANDS[action, 1] == sign * math.pi / 4


def test_estimates_of_a_batch():
    """Each robot by its own command; headings stay in [-pi, pi)."""
    poses = np.array([[1.0, 2.0, 0.5], [0.0, 0.0, 3.0], [5.0, 5.0, -3.0], [7.0, 7.0, 1.0]])
    commands = np.array([[0.25, 0.0], [0.0, math.pi / 4], [0.0, -math.pi / 4], [0.0, 0.0]])
    dead_reckon(poses, commands)
    expected = [
        [1.0 + 0.25 * math.cos(0.5), 2.0 + 0.25 * math.sin(0.5), 0.5],
        [0.0, 0.0, 3.0 + math.pi / 4 - 2 * math.pi],
        [5.0, 5.0, -3.0 - math.pi / 4 + 2 * math.pi],
        [7.0, 7.0, 1.0],
    ]
    np.testing.assert_allclose(poses, expected, atol=1e-12)


def test_noise_has_the_size_of_the_specification():
    """Compare drawn motions with the table of section 3.4."""
    distance_std, turn_std, count = 0.0230, math.radians(7.02), 100_000
    for action in (FORWARD, LEFT, RIGHT):
        motions, steps = np.zeros((count, 2)), np.arange(count) % 500
        keys = draw_keys(np.random.default_rng(action), count)
        noisy_motions(np.tile(COMMANDS[action], (count, 1)), WHEEL_RADIUS * 0.5, keys, steps, motions)
        assert motions.std(0) == pytest.approx([distance_std, turn_std], rel=0.01)  # 4 standard errors
        assert motions.mean(0) == pytest.approx(COMMANDS[action], abs=5 * turn_std / math.sqrt(count))
        assert abs(np.corrcoef(motions.T)[0, 1]) < 0.015
    noisy_motions(np.tile(COMMANDS[RIGHT], (count, 1)), 0.0, keys, steps, motions)
    assert (motions == COMMANDS[RIGHT]).all()


def test_arcs_do_not_jump_over_thin_obstacles():
    free = np.ones((20, 40), bool)
    free[:, 12] = False  # 5 cm thick, from x = 0.6 m
    free[[0, -1]], free[:, [0, -1]] = False, False
    origin, cell = np.zeros(2), 0.05
    for x, distance, expected in ((0.5, 0.25, False), (0.5, 0.09, True), (0.5, -0.25, True), (0.7, -0.25, False)):
        assert is_arc_free(free.ravel(), 40, origin, cell, (x, 0.5, 0.0), distance, 0.1) is expected


def test_arcs_do_not_pass_between_two_corners():
    """Two rooms of cells that touch in one corner are two islands; with a cell between them they are one."""
    free = np.zeros((20, 20), bool)
    free[2:10, 2:10] = free[10:18, 10:18] = True
    origin, cell, start = np.zeros(2), 0.05, (0.44, 0.44, math.pi / 4)
    for beside, expected in (((9, 10), True), ((10, 9), True), (None, False)):
        grid = free.copy()
        if beside is not None:
            grid[beside] = True
        assert label_islands(grid)[0].max() == (0 if expected else 1)
        for distance, end in ((0.25, expected), (0.05, True)):
            assert is_arc_free(grid.ravel(), 20, origin, cell, start, distance, 0.0) is end
