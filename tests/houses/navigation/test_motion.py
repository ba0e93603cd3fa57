"""Straight moves and arcs against the same steps in plain Python on a map's public queries."""

import math

import numpy as np

from memenvs.houses.navigation.arcs import ARC_STEP, arc_end, drive_many, is_arc_free
from memenvs.houses.navigation.geodesic import interpolate_field
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.houses.navigation.sliding import SUBSTEP, TURN_COST
from tests.houses.navigation.test_navmap import cluttered


def plain_slide(navmap: NavigationMap, start: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, bool]:
    """Small parts of a move, each along x and then along y where the robot still fits."""
    parts = math.ceil(math.hypot(*step) / (SUBSTEP * navmap.cell_size))
    position, is_blocked = start.copy(), False
    for _ in range(parts):
        for axis in np.eye(2) * step / parts:
            if navmap.islands((position + axis)[None])[0] >= 0:
                position = position + axis
            else:
                is_blocked = True
    return position, is_blocked


def test_moves_slide_along_obstacles():
    blocked = 0
    for seed in range(3):
        navmap, rng = NavigationMap(cluttered(seed)), np.random.default_rng(seed)
        starts, headings = navmap.random_points(rng, 40), rng.uniform(-7, 7, 40)
        moved, collided = navmap.move(starts, headings, 0.41)
        for k in range(40):
            step = 0.41 * np.array([math.cos(headings[k]), math.sin(headings[k])])
            position, is_blocked = plain_slide(navmap, starts[k], step)
            np.testing.assert_allclose(moved[k], position, atol=1e-9)
            assert collided[k] == is_blocked
            blocked += is_blocked
    assert 20 < blocked < 100


def test_steering_tries_all_turns():
    navmap, rng = NavigationMap(cluttered(2)), np.random.default_rng(2)
    field = navmap.distance_field(navmap.cells(navmap.random_points(rng, 1)))
    turn = math.radians(30)
    for position in navmap.random_points(rng, 30):
        heading = rng.uniform(0, 6)
        turns = np.array([0, *(sign * k for k in range(1, 7) for sign in (1, -1))])
        ends, _ = navmap.move(np.repeat(position[None], len(turns), 0), heading + turns * turn, 0.25)
        here, *there = (
            interpolate_field(field, navmap.shape[1], *(point - navmap.origin) / navmap.cell_size)
            for point in (position, *ends)
        )
        gains = here - np.array(there)
        best = np.argmax(gains - TURN_COST * abs(turns))
        turned, gain = navmap.steer(field, position, heading, turn, 0.25)
        assert (turned, round(gain, 9)) == (turns[best], round(gains[best], 9))


def plain_arc_is_free(navmap: NavigationMap, pose: tuple[float, float, float], distance: float, turn: float) -> bool:
    """True if points along an arc are navigable and neighbours connected over sides of cells."""
    parts = math.ceil(abs(distance) / ARC_STEP)
    points = np.array([arc_end(*pose, distance * k / parts, turn * k / parts)[:2] for k in range(parts + 1)])
    row, column = np.divmod(navmap.cells(points), navmap.shape[1])
    free = navmap.free
    for k in range(1, parts + 1):
        sides_free = free[row[k - 1], column[k]] or free[row[k], column[k - 1]]
        is_diagonal = row[k] != row[k - 1] and column[k] != column[k - 1]
        if not free[row[k], column[k]] or (is_diagonal and not sides_free):
            return False
    return True


def test_robots_drive_arcs_that_are_free():
    navmap, rng = NavigationMap(cluttered(4)), np.random.default_rng(4)
    count = 200
    starts, headings = navmap.random_points(rng, count), rng.uniform(0, 2 * math.pi, count)
    motions = np.stack([rng.uniform(-0.5, 0.5, count), rng.uniform(-1, 1, count)], 1)
    robot_mask, turns_freely = rng.random(count) < 0.8, rng.random(count) < 0.5
    free, width = navmap.free.ravel(), navmap.shape[1]
    positions, after, collided = starts.copy(), headings.copy(), np.zeros(count, bool)
    maps = np.repeat(free[None], count, 0), np.full(count, width), np.repeat(navmap.origin[None], count, 0)
    drive_many(*maps, navmap.cell_size, positions, after, motions, robot_mask, turns_freely, collided)
    blocked = 0
    for k in range(count):
        pose, (distance, turn) = (*starts[k], headings[k]), motions[k]
        is_free = plain_arc_is_free(navmap, pose, distance, turn)
        assert is_arc_free(free, width, navmap.origin, navmap.cell_size, pose, distance, turn) == is_free
        blocked += not is_free
        if not robot_mask[k] or not (is_free or turns_freely[k]):
            expected = pose
        else:
            expected = arc_end(*pose, distance if is_free else 0.0, turn)
        np.testing.assert_allclose((*positions[k], after[k]), (*expected[:2], expected[2] % (2 * math.pi)), atol=1e-12)
        assert collided[k] == (robot_mask[k] and not is_free and not turns_freely[k])
    assert 20 < blocked < 180
