"""Rectangles on the marked surfaces of a scene that are level and free for small objects.

A data set marks more or less than is free: other objects stand there, or a shelf is above. So each surface is drawn
from above, and the largest rectangles of what is level are taken.
"""

from __future__ import annotations

import math

import numpy as np

from memenvs.houses.habitat.furniture import MarkedSurface
from memenvs.houses.habitat.probes import DOWN, UP, free_height, seen_points
from memenvs.houses.habitat.views import SampledView
from memenvs.houses.house import Receptacle

#: Camera above a surface: it sees 1.7 times as far to each side as it is above it.
_FROM_ABOVE = SampledView.whole(192, 192, math.radians(120))
#: Side of the cells of a surface, m.
_CELL = 0.025
#: Points this much above or below the height of a surface do not belong to it, m.
_LEVEL = 0.01
#: Largest height of the camera above a surface, m, and its distance from what is above it.
_MAX_HEIGHT, _GAP = 1.0, 0.02
#: Smallest side of a rectangle, cells, and most rectangles on a surface.
_MIN_SIDE, _MAX_RECTANGLES = 4, 4
#: Cosine of the largest angle at which a surface may lean.
_UPRIGHT = math.cos(math.radians(10))
_TO_OURS = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # x, y, z -> x, -z, y


def free_surfaces(surface: MarkedSurface, instance: int, floor: float) -> list[Receptacle]:
    """Find the free rectangles of a marked surface in the scene that was entered.

    Args:
        surface: The surface.
        instance: Index of its furniture into `House.instances`.
        floor: Height of the floor in habitat-sim's frame, m.

    Returns:
        At most four, the largest first; an empty list for a surface that is not level or has no room.
    """
    turn = _TO_OURS @ surface.to_world[:3, :3]
    up = turn[:, 1] / np.linalg.norm(turn[:, 1])
    if up[2] < _UPRIGHT:
        return []
    yaw = math.atan2(turn[1, 0], turn[0, 0])
    along = np.array([[math.cos(yaw), math.sin(yaw)], [-math.sin(yaw), math.cos(yaw)]])  # floor plan -> surface
    corners = surface.triangles
    if corners is None:  # the bottom of the box, as two triangles
        (x0, y, z0), (x1, top, z1) = surface.low, surface.high
        corners = np.array([[(x0, y, z0), (x1, y, z0), (x1, y, z1)], [(x0, y, z0), (x1, y, z1), (x0, y, z1)]])
    else:
        top = surface.high[1]
    triangles = corners @ turn.T + _TO_OURS @ surface.to_world[:3, 3]
    flat = triangles[..., :2] @ along.T
    low, high = flat.reshape(-1, 2).min(0), flat.reshape(-1, 2).max(0)
    shape = np.maximum(np.floor((high - low) / _CELL).astype(int), 0)
    if shape.min() < _MIN_SIDE or shape.max() > 4096:
        return []
    low = (low + high - _CELL * shape) / 2  # what is less than a cell is left at both sides
    high = low + _CELL * shape
    top_height = triangles[..., 2].max() + (top - surface.low[1]) * up[2]
    above = np.append((low + high) / 2 @ along, top_height + _GAP)
    clearance = free_height(above, UP)
    height = min(clearance - _GAP, _MAX_HEIGHT)
    if height < _GAP:
        return []
    points = seen_points(_FROM_ABOVE, np.append(above[:2], above[2] + height), yaw, DOWN)
    cells = np.floor((points[:, :2] @ along.T - low) / _CELL).astype(int)
    within = ((cells >= 0) & (cells < shape)).all(1)
    cells, heights = cells[within], points[within, 2]
    tops = np.full(tuple(shape), -np.inf)
    np.maximum.at(tops, (cells[:, 0], cells[:, 1]), heights)
    tops[~_covered(flat, low, tuple(shape))] = -np.inf
    if not np.isfinite(tops).any():
        return []
    heights = tops[np.isfinite(tops)]
    bins, counts = np.unique(np.round(heights / _LEVEL), return_counts=True)
    level = float(np.median(heights[np.abs(heights - bins[counts.argmax()] * _LEVEL) < _LEVEL]))
    free = np.abs(tops - level) < _LEVEL
    room = float(clearance + above[2] - level)
    receptacles: list[Receptacle] = []
    while len(receptacles) < _MAX_RECTANGLES:
        (i0, i1), (j0, j1) = largest_rectangle(free)
        if min(i1 - i0, j1 - j0) < _MIN_SIDE:
            break
        free[i0:i1, j0:j1] = False
        x, y = (low + _CELL * np.array([i0 + i1, j0 + j1]) / 2) @ along
        half = (_CELL * (i1 - i0) / 2, _CELL * (j1 - j0) / 2)
        receptacles.append(Receptacle(instance, (float(x), float(y), level - floor), half, yaw, room))
    return receptacles


def largest_rectangle(free: np.ndarray) -> tuple[tuple[int, int], tuple[int, int]]:
    """Find the largest rectangle of free cells, bool (H, W).

    Returns:
        First and last + 1 of its rows, and of its columns.
    """
    best, rows, columns = 0, (0, 0), (0, 0)
    heights = np.zeros(free.shape[1] + 1, int)  # free cells above and with this one; the last column closes
    for i, row in enumerate(free):
        heights[:-1] = np.where(row, heights[:-1] + 1, 0)
        open_: list[tuple[int, int]] = []  # first column and height of rectangles that go on
        for j, height in enumerate(heights.tolist()):
            first = j
            while open_ and open_[-1][1] >= height:
                first, tall = open_.pop()
                if tall * (j - first) > best:
                    best, rows, columns = tall * (j - first), (i + 1 - tall, i + 1), (first, j)
            open_.append((first, height))
    return rows, columns


def _covered(triangles: np.ndarray, low: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Find the cells whose middle is in one of the triangles (T, 3, 2); bool, of that shape."""
    i, j = np.indices(shape)
    points = low + (np.stack([i, j], -1) + 0.5) * _CELL
    mask = np.zeros(shape, bool)
    for a, b, c in triangles:
        sides = [_cross(e - s, points - s) for s, e in ((a, b), (b, c), (c, a))]
        mask |= np.all([side >= 0 for side in sides], 0) | np.all([side <= 0 for side in sides], 0)
    return mask


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[0] * b[..., 1] - a[1] * b[..., 0]
