"""Independent geometry for tests: intersections, extents, where a disc fits, sound houses."""

import numpy as np
from scipy import ndimage

from memenvs.houses.house import BOX, ELLIPSOID, House, Shapes, points_in_polygon

DEEP = 1.5e-3  # m; shallower contacts are rounding


def corners(shapes: Shapes, row: int) -> np.ndarray:
    """Plan corners of the box around a shape; (4, 2)."""
    signs = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    yaw = float(shapes.yaw[row])
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    return (signs * shapes.half[row, :2]) @ turn.T + shapes.centre[row, :2]


def is_separated(first: np.ndarray, second: np.ndarray, slack: float) -> bool:
    """Separating-axis test of two convex polygons that may intersect by less than `slack`."""
    for polygon in (first, second):
        for start, end in zip(polygon, np.roll(polygon, -1, 0), strict=True):
            normal = np.array([end[1] - start[1], start[0] - end[0]])
            normal /= np.linalg.norm(normal)
            a, b = first @ normal, second @ normal
            if min(a.max(), b.max()) - max(a.min(), b.min()) < slack:
                return True
    return False


def contains(shapes: Shapes, row: int, points: np.ndarray, slack: float) -> np.ndarray:
    """Test points (Q, 3) for lying inside a shape, deeper than `slack`; bool, (Q,)."""
    yaw = float(shapes.yaw[row])
    offset = points - shapes.centre[row]
    x = np.cos(yaw) * offset[:, 0] + np.sin(yaw) * offset[:, 1]
    y = -np.sin(yaw) * offset[:, 0] + np.cos(yaw) * offset[:, 1]
    half = np.maximum(shapes.half[row] - slack, 1e-6)
    if shapes.kind[row] == BOX:
        return (abs(x) < half[0]) & (abs(y) < half[1]) & (abs(offset[:, 2]) < half[2])
    radial = (x / half[0]) ** 2 + (y / half[1]) ** 2
    if shapes.kind[row] == ELLIPSOID:
        return radial + (offset[:, 2] / half[2]) ** 2 < 1
    return (radial < 1) & (abs(offset[:, 2]) < half[2])


def intersections(shapes: Shapes, rows: np.ndarray | None = None) -> list[tuple[int, int]]:
    """Pairs of shapes of different instances that share more than a thin layer.

    Args:
        shapes: The shapes.
        rows: Shapes to compare with all others; None for all.
    """
    half = shapes.half.astype(np.float64)
    cos, sin = abs(np.cos(shapes.yaw)), abs(np.sin(shapes.yaw))
    extent = np.stack([cos * half[:, 0] + sin * half[:, 1], sin * half[:, 0] + cos * half[:, 1], half[:, 2]], 1)
    low, high = shapes.centre - extent + DEEP / 2, shapes.centre + extent - DEEP / 2
    pairs = []
    for i in range(len(shapes)) if rows is None else rows:
        near = ((low < high[i]) & (low[i] < high)).all(1) & (shapes.instance != shapes.instance[i])
        for j in np.flatnonzero(near):
            if (rows is None and j < i) or is_separated(corners(shapes, i), corners(shapes, j), DEEP):
                continue
            if shapes.kind[i] == BOX and shapes.kind[j] == BOX:
                pairs.append((int(i), int(j)))
                continue
            from_, to = np.maximum(low[i], low[j]), np.minimum(high[i], high[j])
            steps = (np.arange(24) + 0.5) / 24
            grid = np.stack(np.meshgrid(*[from_[k] + steps * (to[k] - from_[k]) for k in range(3)]), -1).reshape(-1, 3)
            if (contains(shapes, i, grid, DEEP / 2) & contains(shapes, j, grid, DEEP / 2)).any():
                pairs.append((int(i), int(j)))
    return pairs


def span(house: House, instance: int) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest (x, y, z) of an instance."""
    shapes = house.shapes.take(house.shapes.instance == instance)
    cos, sin = np.abs(np.cos(shapes.yaw)), np.abs(np.sin(shapes.yaw))
    x, y, z = shapes.half.T
    ellipse = shapes.kind != BOX
    half = np.stack([
        np.where(ellipse, np.hypot(cos * x, sin * y), cos * x + sin * y),
        np.where(ellipse, np.hypot(sin * x, cos * y), sin * x + cos * y),
        z,
    ], axis=1)  # fmt: skip
    return (shapes.centre - half).min(0), (shapes.centre + half).max(0)


def solid_at(house: House, x: np.ndarray, y: np.ndarray, below: float = 1.5, above: float = -1.0) -> np.ndarray:
    """Points of a grid that shapes cover which begin below one height and end above another.

    Returns:
        bool, (len(y), len(x)).
    """
    shapes = house.shapes
    is_solid = np.zeros((len(y), len(x)), bool)
    bottom, top = shapes.centre[:, 2] - shapes.half[:, 2], shapes.centre[:, 2] + shapes.half[:, 2]
    for i in np.flatnonzero((bottom < below) & (top > above)):
        half = shapes.half[i, :2]
        centre = shapes.centre[i, :2]
        reach = np.hypot(*half)
        columns = slice(*np.searchsorted(x, (centre[0] - reach, centre[0] + reach)))
        rows = slice(*np.searchsorted(y, (centre[1] - reach, centre[1] + reach)))
        offset = np.stack(np.meshgrid(x[columns] - centre[0], y[rows] - centre[1]), 2)
        cos, sin = np.cos(shapes.yaw[i]), np.sin(shapes.yaw[i])
        local = np.abs(offset @ np.array([(cos, -sin), (sin, cos)])) / half
        is_solid[rows, columns] |= (local <= 1).all(2) if shapes.kind[i] == BOX else (local**2).sum(2) <= 1
    return is_solid


def is_blocked(house: House, point: tuple[float, float], radius: float) -> bool:
    """Test whether a disc touches anything below 1.5 m."""
    step = np.arange(-radius, radius + 1e-9, 0.01)
    disc = step**2 + step[:, None] ** 2 <= radius**2
    return bool((solid_at(house, step + point[0], step + point[1]) & disc).any())


def class_of(house: House, row: int) -> str:
    """Name of the class of the instance that a shape belongs to."""
    return house.instances[house.shapes.instance[row]].partition("|")[0]


def check_connected(house: House) -> None:
    """All inner doors and rooms belong to one part of the floor that a disc of 0.30 m reaches.

    Of every room at least 0.3 square metres must belong to it.
    """
    cell, (low, high) = 0.05, house.bounds
    x, y = (np.arange(low[k] - 0.2, high[k] + 0.2, cell) for k in range(2))
    points = np.stack(np.meshgrid(x, y), -1).reshape(-1, 2)
    inside = [
        points_in_polygon(points, room.polygon + 1e-7) | points_in_polygon(points, room.polygon - 1e-7)
        for room in house.rooms
    ]
    is_free = np.any(inside, axis=0).reshape(len(y), len(x)) & ~solid_at(house, x, y, above=0.03)
    distance = ndimage.distance_transform_edt(np.pad(is_free, 1))[1:-1, 1:-1] * cell
    labels, _ = ndimage.label(distance > 0.30)
    part = int(np.bincount(labels[labels > 0]).argmax())
    for door in house.doors:
        column, row = np.searchsorted(x, door.centre[0]), np.searchsorted(y, door.centre[1])
        assert labels[row, column] == part or -1 in door.rooms, (house.name, door)
    for room, own in zip(house.rooms, inside, strict=True):
        assert (labels.ravel()[own] == part).sum() * cell**2 > 0.3, (house.name, room.type)


def check_disjoint(house: House) -> None:
    """No two objects overlap; rugs lie below furniture."""
    for i, j in intersections(house.shapes):
        names = {class_of(house, i), class_of(house, j)}
        assert "rug" in names, (house.name, names, house.shapes.centre[i], house.shapes.centre[j])
