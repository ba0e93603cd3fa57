"""The navigation map against exact geometry, scipy and closed forms."""

import math

import numpy as np
import pytest
import scipy.ndimage
import scipy.sparse
import scipy.sparse.csgraph

from memenvs.houses.house import BOX, CYLINDER, Door, House, Room, ShapeBuilder, grid_in_polygon, points_in_polygon
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.houses.navigation.occupancy import label_islands

#: Radius of the disc that must fit around the middle of a cell: 0.30 m less a quarter of a cell.
REACH = 0.3 - 0.0125


def rectangle(x0: float, y0: float, x1: float, y1: float) -> Room:
    return Room("other", np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], float), 0, (200, 200, 200))


def make_house(*shapes: tuple, rooms: tuple[Room, ...] | None = None, doors: tuple[Door, ...] = ()) -> House:
    """A 12 x 10 m room, or `rooms`, with (kind, centre, half[, yaw]) in it."""
    builder = ShapeBuilder()
    for kind, centre, half, *yaw in shapes:
        builder.add(kind, centre, half, yaw=yaw[0] if yaw else 0.0)
    return House("toy", builder.build(), rooms or (rectangle(0, 0, 12, 10),), doors, (), ("building",))


def cluttered(seed: int) -> House:
    rng = np.random.default_rng(seed)
    shapes = [
        (int(rng.integers(2)), (*rng.uniform(0, (6, 5)), 0.5), (*([rng.uniform(0.1, 0.5)] * 2), 0.5), rng.uniform(0, 6))
        for _ in range(8)
    ]
    return make_house(*shapes, rooms=(rectangle(0, 0, 6, 5),))


def test_empty_room_loses_a_radius_on_every_side():
    navmap = NavigationMap(make_house())
    assert navmap.area == pytest.approx(11.4 * 9.4)
    assert len(navmap.island_areas) == 1
    corners = np.array([[0.31, 0.31], [0.29, 5.0], [11.69, 9.69], [11.71, 5.0], [-1.0, 5.0], [40.0, 5.0]])
    assert (navmap.islands(corners) >= 0).tolist() == [True, False, True, False, False, False]


def test_erosion_is_an_exact_disc_around_turned_boxes_and_cylinders():
    yaw = 0.6
    navmap = NavigationMap(
        make_house((BOX, (4, 5, 0.5), (1.0, 0.25, 0.5), yaw), (CYLINDER, (9, 5, 0.5), (0.4, 0.4, 0.5)))
    )
    centres = navmap.points(np.arange(navmap.free.size))
    inside = ((centres > 0.3) & (centres < (11.7, 9.7))).all(1)
    # Dense points on both footprints stand for them; 5 mm apart.
    u, v = np.meshgrid(np.linspace(-1, 1, 401), np.linspace(-0.25, 0.25, 101))
    box = np.stack([4 + np.cos(yaw) * u - np.sin(yaw) * v, 5 + np.sin(yaw) * u + np.cos(yaw) * v], -1).reshape(-1, 2)
    turns = np.linspace(0, 2 * np.pi, 800)
    disc = np.stack([9 + 0.4 * np.cos(turns), 5 + 0.4 * np.sin(turns)], 1)
    reference = np.minimum(scipy.spatial.cKDTree(box).query(centres)[0], scipy.spatial.cKDTree(disc).query(centres)[0])
    reference[np.hypot(*(centres - (9, 5)).T) < 0.4] = 0.0
    sure = np.abs(reference - REACH) > 0.004
    assert np.array_equal(navmap.free.ravel()[inside & sure], (reference > REACH)[inside & sure])


def test_outside_is_eroded_like_a_distance_transform():
    corner = Room("other", np.array([[0, 0], [4, 0], [4, 2], [2, 2], [2, 4], [0, 4]], float), 0, (0, 0, 0))
    navmap = NavigationMap(make_house(rooms=(corner,)))
    centres = navmap.points(np.arange(navmap.free.size)).reshape(*navmap.shape, 2)
    x, y = centres[..., 0], centres[..., 1]
    inside = (x > 0) & (y > 0) & (x < 4) & (y < 4) & ~((x > 2) & (y > 2))
    distance = scipy.ndimage.distance_transform_edt(inside) * navmap.cell_size - navmap.cell_size / 2
    assert np.array_equal(navmap.free, distance > REACH - 1e-5)


def test_low_and_high_shapes_do_not_block():
    size = (0.5, 0.5, 0.05)
    navmap = NavigationMap(make_house((BOX, (2, 2, 0.1), size), (BOX, (5, 2, 1.6), size), (BOX, (8, 2, 1.0), size)))
    assert (navmap.islands(np.array([[2.0, 2.0], [5.0, 2.0], [8.0, 2.0]])) >= 0).tolist() == [True, True, False]


def test_islands_are_ordered_by_area_and_doors_bridge_gaps():
    rooms = (rectangle(0, 0, 3, 4), rectangle(3.2, 0, 8, 4))
    wall = [(BOX, (3.1, y, 1.0), (0.1, 0.75, 1.0)) for y in (0.75, 3.25)]
    shut = NavigationMap(make_house(*wall, rooms=rooms))
    door = Door((0, 1), (3.1, 2.0), 1.0, 2.0, math.pi / 2)
    opened = NavigationMap(make_house(*wall, rooms=rooms, doors=(door,)))
    sides = np.array([[1.5, 2.0], [5.0, 2.0]])
    assert shut.islands(sides).tolist() == [1, 0]
    assert shut.island_areas[0] > shut.island_areas[1] > 0
    assert opened.islands(sides).tolist() == [0, 0]
    assert (opened.islands(np.array([[3.1, 2.0], [3.1, 2.3]])) >= 0).tolist() == [True, False]
    places = opened.cells(np.array([[2.9, 2.0], [3.1, 2.0], [3.3, 2.0], [-0.1, 2.0]]))
    assert opened.room.ravel()[places].tolist() == [0, 0, 1, -1]


def test_points_and_grids_are_tested_in_parts_alike(monkeypatch):
    x, y = np.linspace(-1, 7, 33), np.linspace(-1, 6, 29)  # corners and edges are among the points
    points = np.stack(np.meshgrid(x, y), -1).reshape(-1, 2)
    polygon = np.array([(0, 0), (6, 0), (6, 5), (3, 2), (0, 5)], float)
    whole = points_in_polygon(points, polygon)
    assert np.array_equal(grid_in_polygon(x, y, polygon).ravel(), whole) and 0 < whole.sum() < len(points)
    monkeypatch.setattr("memenvs.houses.house._CHUNK", 333)
    assert np.array_equal(points_in_polygon(points, polygon), whole)
    assert np.array_equal(grid_in_polygon(x, y, polygon).ravel(), whole)


def test_open_space_is_within_two_percent_of_straight():
    navmap = NavigationMap(make_house())
    goal = navmap.cells(np.array([[3.0, 4.0]]))
    points = navmap.random_points(np.random.default_rng(0), 5000)
    straight = np.hypot(*(points - navmap.points(goal)).T)
    error = np.abs(navmap.distances(navmap.distance_field(goal), points) - straight)
    assert (error[straight > 0.5] / straight[straight > 0.5]).max() < 0.025
    assert (error[straight > 2.0] / straight[straight > 2.0]).max() < 0.011
    assert error.max() < 0.04
    assert navmap.distances(navmap.distance_field(goal), navmap.points(goal))[0] == pytest.approx(0, abs=1e-9)


def test_no_distance_is_below_the_straight_line():
    """Neither at centres of cells, where fronts meet, nor between them, nor beside obstacles."""
    rng = np.random.default_rng(3)
    for seed in range(3):
        navmap = NavigationMap(cluttered(seed))
        for count in (1, 20):
            goals = navmap.cells(navmap.random_points(rng, count))
            field = navmap.distance_field(goals)
            cells = np.flatnonzero(np.isfinite(field))
            points = np.concatenate([navmap.points(cells), navmap.random_points(rng, 500)])
            straight = np.linalg.norm(points[:, None] - navmap.points(goals)[None], axis=2).min(1)
            distances = navmap.distances(field, points)
            assert (distances >= straight - 1e-9).all()
            assert (field[cells] < straight[: len(cells)] - 0.002).any()  # what is raised
            higher = field[cells] > straight[: len(cells)] + 1e-6
            assert np.allclose(distances[: len(cells)][higher], field[cells][higher], atol=1e-5)  # nothing else is


def test_field_of_several_goals_is_the_smallest_of_each():
    navmap = NavigationMap(cluttered(1))
    goals = navmap.cells(navmap.random_points(np.random.default_rng(3), 5))
    smallest = np.min([navmap.distance_field(goal[None]) for goal in goals], axis=0)
    together = navmap.distance_field(goals)
    is_reached = np.isfinite(smallest)
    assert np.abs(together[is_reached] - smallest[is_reached]).max() < 0.03


def test_what_has_no_map_is_refused_by_name():
    size = r"must have at most 16777216 cells of 0.05 m, got \d+ x \d+: it is 700 by 300"
    for room, settings, message in (
        (rectangle(0, 0, 0.5, 4), {}, "'toy' has no navigable cell"),
        (rectangle(0, 0, 700, 300), {}, size),
        (rectangle(0, 0, 4, 4), {"radius": 0}, "radius"),
        (rectangle(0, 0, 4, 4), {"height": 0.2}, "height"),
    ):
        with pytest.raises(ValueError, match=message):
            NavigationMap(make_house(rooms=(room,)), **settings)
    with pytest.raises(ValueError, match="goals must be"):
        NavigationMap(make_house()).distance_field(np.array([0]))


def test_snap_moves_points_off_the_map_to_the_nearest_cell_and_robots_there_stay():
    navmap = NavigationMap(make_house((BOX, (6, 5, 0.5), (1, 1, 0.5))))
    snapped = navmap.snap(np.array([[2.0, 2.0], [6.9, 5.025]]))
    assert snapped[0].tolist() == [2.0, 2.0]
    assert snapped[1] == pytest.approx([7.325, 5.025])
    moved, collided = navmap.move(np.array([[0.1, 5.0]]), np.zeros(1), 0.25)
    assert (moved.tolist(), collided.tolist()) == ([[0.1, 5.0]], [True])


def test_random_points_cover_the_largest_island_uniformly():
    navmap = NavigationMap(make_house((BOX, (6, 5, 0.5), (0.1, 5, 0.5), 0.0), (BOX, (2, 5, 0.5), (2, 0.1, 0.5))))
    points = navmap.random_points(np.random.default_rng(0), 4000)
    assert (navmap.islands(points) == 0).all()
    assert points.mean(0) == pytest.approx([(6.4 + 11.7) / 2, 5.0], abs=0.15)


def test_islands_are_connected_parts_from_the_largest_on():
    for seed in range(5):
        free = np.random.default_rng(seed).random((30, 41)) < 0.55
        islands, sizes = label_islands(free)
        labels, count = scipy.ndimage.label(free)
        assert len(sizes) == count
        assert np.array_equal(islands < 0, ~free)
        # The same partition: pairs of both labels are a bijection.
        pairs = np.unique(np.stack([islands[free], labels[free]]), axis=1)
        assert pairs.shape[1] == count
        assert sizes.tolist() == [(islands == number).sum() for number in range(count)] == sorted(sizes, reverse=True)
    islands, sizes = label_islands(np.zeros((3, 3), bool))
    assert (islands == -1).all() and len(sizes) == 0
