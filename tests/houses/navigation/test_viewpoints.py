"""Viewpoints against dense samples along each ray."""

import math

import numpy as np
import pytest

from memenvs.houses.house import BOX, CYLINDER, ELLIPSOID, House, Room, ShapeBuilder, Shapes
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.houses.navigation.viewpoints import find_viewpoints, is_target_visible
from tests.houses.solids import contains


def make_house(shapes: Shapes, side: float = 6.0) -> House:
    square = Room("other", np.array([[0, 0], [side, 0], [side, side], [0, side]]), 0, (200, 200, 200))
    return House("toy", shapes, (square,), (), (), ("building", "object"))


def see(eyes: np.ndarray, target: np.ndarray, shapes: Shapes) -> np.ndarray:
    return is_target_visible(eyes, target, shapes.kind, shapes.centre, shapes.half, shapes.yaw)


def is_inside(points: np.ndarray, shapes: Shapes) -> np.ndarray:
    """True for points (..., 3) in any shape."""
    inside = [contains(shapes, row, points.reshape(-1, 3), 0.0) for row in range(len(shapes))]
    return np.any(inside, axis=0).reshape(points.shape[:-1])


def test_rays_agree_with_dense_sampling():
    t = np.linspace(0, 1, 2001)[:, None, None]
    for kind in (BOX, CYLINDER, ELLIPSOID):
        rng = np.random.default_rng(kind)
        builder = ShapeBuilder()
        for _ in range(6):
            half = rng.uniform(0.05, 0.4, 3)
            if kind == CYLINDER:
                half[1] = half[0]
            builder.add(kind, rng.uniform(0.5, 2.5, 3), half, yaw=rng.uniform(0, 6))
        shapes = builder.build()
        eyes, target = rng.uniform(0, 3, (400, 3)), np.array([1.5, 1.5, 3.1])
        reference = ~is_inside(eyes + t * (target - eyes), shapes).any(0)
        seen = see(eyes, target, shapes)
        assert (seen != reference).mean() < 0.005  # rays that graze a shape
        assert 0.05 < reference.mean() < 0.95


def pillar_and_target() -> Shapes:
    builder = ShapeBuilder()
    builder.add(CYLINDER, (3, 3, 0.35), (0.1, 0.1, 0.35))
    builder.add(BOX, (3, 3, 0.75), (0.05, 0.05, 0.05), instance=1)
    return builder.build()


def test_viewpoints_of_an_object_in_the_open_are_a_ring():
    shapes = pillar_and_target()
    navmap = NavigationMap(make_house(shapes))
    cells = find_viewpoints(navmap, shapes, np.array([3, 3, 0.75]), 1)
    radius = np.hypot(*(navmap.points(cells) - 3).T)
    assert radius.max() < math.sqrt(3.9)
    assert radius.max() > 1.9
    assert 0.38 < radius.min() < 0.47
    assert len(cells) == pytest.approx(np.pi * (3.9 - 0.4**2) / 0.01, rel=0.03)
    steps = np.diff(np.unique(navmap.points(cells)[:, 0].round(6)))
    assert steps == pytest.approx(np.full(len(steps), 0.1))


@pytest.mark.slow
def test_viewpoints_agree_with_dense_sampling_in_clutter():
    rng = np.random.default_rng(5)
    builder = ShapeBuilder()
    for _ in range(25):
        builder.add(
            BOX, (*rng.uniform(0.5, 5.5, 2), rng.uniform(0.3, 1.2)), rng.uniform(0.05, 0.3, 3), yaw=rng.uniform(0, 3)
        )
    builder.add(BOX, (3, 3, 0.75), (0.05, 0.05, 0.05), instance=1)
    shapes = builder.build()
    navmap = NavigationMap(make_house(shapes))
    target = np.array([3, 3, 0.75])
    seen = np.zeros(navmap.free.size, bool)
    seen[find_viewpoints(navmap, shapes, target, 1)] = True
    rows, columns = np.indices(navmap.shape)
    candidate = (navmap.island == 0) & (rows % 2 == 0) & (columns % 2 == 0)
    cells = np.flatnonzero(candidate)
    cells = cells[((navmap.points(cells) - target[:2]) ** 2).sum(1) < 3.9]
    eyes = np.column_stack([navmap.points(cells), np.full(len(cells), 1.2)])
    t = np.linspace(0, 1, 2001)[:, None, None]
    reference = ~is_inside(eyes + t * (target - eyes), shapes.take(shapes.instance == 0)).any(0)
    assert seen.sum() == seen[cells].sum()
    assert (seen[cells] != reference).mean() < 0.01
    assert 0.05 < reference.mean() < 0.95


def test_the_eye_is_raised_until_it_sees():
    # A tall box without a top: the target is seen from above only.
    builder = ShapeBuilder()
    builder.add(BOX, (3, 3, 0.75), (0.05, 0.05, 0.05), instance=1)
    for x, y, w, h in ((2.9, 3, 0.02, 0.12), (3.1, 3, 0.02, 0.12), (3, 2.9, 0.12, 0.02), (3, 3.1, 0.12, 0.02)):
        builder.add(BOX, (x, y, 0.5), (w, h, 0.5))
    shapes = builder.build()
    navmap = NavigationMap(make_house(shapes))
    cells = find_viewpoints(navmap, shapes, np.array([3, 3, 0.75]), 1)
    radius = np.hypot(*(navmap.points(cells) - 3).T)
    assert len(cells) > 0
    assert radius.max() < 0.7  # the lowest eye that sees over the rim is near


def test_a_target_far_from_the_floor_of_the_home_has_none():
    navmap = NavigationMap(make_house(Shapes.empty()))
    assert len(find_viewpoints(navmap, Shapes.empty(), np.array([12.0, 3, 0.75]), 1)) == 0
