"""Occupancy: the cells where a round robot fits, and which of them are connected.

In: outlines of shapes and the floor. Out: blocked cells, and the connected parts ("islands") of the free ones.
Distances are exact: from the middle of each cell to the outline of a shape. So rotated furniture has no jagged edges.

Grids are (H, W), row 0 at the smallest y; the middle of cell [i, j] is
`origin + ((j + 0.5), (i + 0.5)) * cell_size`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from memenvs.houses.house import CYLINDER, ELLIPSOID

#: m; a robot that exactly touches a shape is not blocked. The sizes of shapes are float32.
TOUCH = 1e-5


@njit(nogil=True, cache=True)
def block_footprints(
    blocked: np.ndarray,
    origin: np.ndarray,
    cell_size: float,
    radius: float,
    kind: np.ndarray,
    centre: np.ndarray,
    half: np.ndarray,
    yaw: np.ndarray,
) -> None:
    """Block, in place, the cells whose middle is nearer to a shape's footprint than `radius`.

    Args:
        blocked: bool, (H, W); changed in place.
        origin: float64, (2,); corner of cell [0, 0], m.
        cell_size: Side of a cell, m.
        radius: Radius of the robot, m.
        kind: uint8, (S,); as in `Shapes`. Cylinders and ellipsoids with equal half sizes are discs, all others are
            rectangles.
        centre: float32, (S, 3); m.
        half: float32, (S, 3); m.
        yaw: float32, (S,); rad.
    """
    rows, columns = blocked.shape
    reach = radius - TOUCH
    for s in range(len(kind)):
        cos, sin = math.cos(yaw[s]), math.sin(yaw[s])
        half_x, half_y = half[s, 0], half[s, 1]
        is_round = (kind[s] == CYLINDER or kind[s] == ELLIPSOID) and abs(half_x - half_y) < TOUCH
        extent_x = half_x if is_round else abs(cos) * half_x + abs(sin) * half_y
        extent_y = half_y if is_round else abs(sin) * half_x + abs(cos) * half_y
        x, y = centre[s, 0] - origin[0], centre[s, 1] - origin[1]
        for i in range(
            max(0, int((y - extent_y - radius) / cell_size)), min(rows, int((y + extent_y + radius) / cell_size) + 1)
        ):
            dy = (i + 0.5) * cell_size - y
            first = max(0, int((x - extent_x - radius) / cell_size))
            for j in range(first, min(columns, int((x + extent_x + radius) / cell_size) + 1)):
                dx = (j + 0.5) * cell_size - x
                if is_round:
                    near = dx * dx + dy * dy < (half_x + reach) ** 2
                else:
                    out_x = max(abs(cos * dx + sin * dy) - half_x, 0.0)
                    out_y = max(abs(cos * dy - sin * dx) - half_y, 0.0)
                    near = out_x * out_x + out_y * out_y < reach * reach
                if near:
                    blocked[i, j] = True


@njit(nogil=True, cache=True)
def block_outside(blocked: np.ndarray, inside: np.ndarray, cell_size: float, radius: float) -> None:
    """Block, in place, the cells outside and those whose middle is within `radius` of one.

    Args:
        blocked: bool, (H, W); changed in place.
        inside: bool, (H, W); the floor of the home.
        cell_size: Side of a cell, m.
        radius: Radius of the robot, m.
    """
    rows, columns = blocked.shape
    reach = math.ceil(radius / cell_size)
    for i in range(rows):
        for j in range(columns):
            if inside[i, j]:
                continue
            blocked[i, j] = True
            is_edge = (
                (i > 0 and inside[i - 1, j])
                or (i + 1 < rows and inside[i + 1, j])
                or (j > 0 and inside[i, j - 1])
                or (j + 1 < columns and inside[i, j + 1])
            )
            if not is_edge:
                continue
            for k in range(max(0, i - reach), min(rows, i + reach + 1)):
                for m in range(max(0, j - reach), min(columns, j + reach + 1)):
                    # Half a cell less: the edge of the floor is that far from the middle of the cell outside.
                    distance = math.sqrt(float((k - i) ** 2 + (m - j) ** 2)) * cell_size - 0.5 * cell_size
                    if distance < radius - TOUCH:
                        blocked[k, m] = True


@njit(nogil=True, cache=True)
def label_islands(free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the islands: the 4-connected parts of the free cells.

    Args:
        free: bool, (H, W).

    Returns:
        int32, (H, W); number of the island, 0 for the largest, -1 where not free.
        int64, (I,); how many cells each island has, in descending order.
    """
    rows, columns = free.shape
    label = np.full((rows, columns), -1, np.int32)
    stack = np.empty(rows * columns, np.int64)
    counts = np.empty(rows * columns, np.int64)
    islands = 0
    for start in range(rows * columns):
        if not free[start // columns, start % columns] or label[start // columns, start % columns] >= 0:
            continue
        label[start // columns, start % columns] = islands
        stack[0] = start
        height, size = 1, 0
        while height > 0:
            height -= 1
            i, j = stack[height] // columns, stack[height] % columns
            size += 1
            for k, m in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
                if 0 <= k < rows and 0 <= m < columns and free[k, m] and label[k, m] < 0:
                    label[k, m] = islands
                    stack[height] = k * columns + m
                    height += 1
        counts[islands] = size
        islands += 1
    counts = counts[:islands]
    order = np.argsort(-counts, kind="mergesort")
    rank = np.empty(islands, np.int32)
    for new, old in enumerate(order):
        rank[old] = new
    for i in range(rows):
        for j in range(columns):
            if label[i, j] >= 0:
                label[i, j] = rank[label[i, j]]
    return label, counts[order]
