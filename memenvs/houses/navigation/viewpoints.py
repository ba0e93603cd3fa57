"""Viewpoints: the cells of the floor from which a point in a home can be seen.

In: a navigation map, all shapes and a target. Out: the cells near the target from which a straight ray from the eye
meets no shape. Rays are intersected with shapes exactly.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from memenvs.houses.house import BOX, CYLINDER, ELLIPSOID, Shapes
from memenvs.houses.navigation.navmap import NavigationMap

#: Viewpoints lie on a grid of this step, m, within this squared distance, square metres, of the target on the floor
#: plan.
GRID_STEP = 0.1
MAX_OFFSET_SQUARED = 4.0 - 0.1
#: Height of the eye, m. If no cell has a free line of sight, the eye is raised by RAISE_STEP (m), up to MAX_RAISES
#: times.
EYE_HEIGHT = 1.2
RAISE_STEP = 0.1
MAX_RAISES = 20


def find_viewpoints(navmap: NavigationMap, shapes: Shapes, target: np.ndarray, instance: int) -> np.ndarray:
    """Cells from which a target is seen along a straight ray from the eye.

    Args:
        navmap: Map of the home; the grid of candidates is every second of its cells (0.1 m).
        shapes: All solid shapes, with the target's own ones.
        target: float, (3,); m.
        instance: Shapes of this instance do not block: those of the target.

    Returns:
        int64, (V,); flat indices of cells of the largest island, ascending; empty if there are none at any eye height.

    Source:
        ReLIC release: candidates on a 0.1 m grid with squared offset < 4 - 0.1, eye 1.2 m up, raised by 0.1 m up to 20
        times.
    """
    target = np.asarray(target, np.float64)
    cells = candidate_cells(navmap, target)
    if len(cells) == 0:
        return cells
    reach = math.sqrt(MAX_OFFSET_SQUARED)
    # No ray leaves the box around eye heights and target: shapes outside it need no test.
    extent = np.where(shapes.kind == BOX, np.hypot(shapes.half[:, 0], shapes.half[:, 1]), shapes.half[:, :2].max(1))
    near = (np.abs(shapes.centre[:, :2] - target[:2]) < (reach + extent)[:, None]).all(1)
    near &= shapes.centre[:, 2] - shapes.half[:, 2] < max(target[2], EYE_HEIGHT + RAISE_STEP * MAX_RAISES)
    near &= shapes.centre[:, 2] + shapes.half[:, 2] > min(target[2], EYE_HEIGHT)
    near &= shapes.instance != instance
    blockers = shapes.take(near)
    eyes = np.column_stack([navmap.points(cells), np.zeros(len(cells))])
    for k in range(MAX_RAISES + 1):
        eyes[:, 2] = EYE_HEIGHT + RAISE_STEP * k
        seen = is_target_visible(eyes, target, blockers.kind, blockers.centre, blockers.half, blockers.yaw)
        if seen.any():
            return cells[seen]
    return cells[:0]


def candidate_cells(navmap: NavigationMap, target: np.ndarray) -> np.ndarray:
    """Cells of the largest island, as flat indices, on the grid of candidates around a target."""
    stride = max(1, round(GRID_STEP / navmap.cell_size))
    reach = math.sqrt(MAX_OFFSET_SQUARED)
    rows, columns = navmap.shape
    low = np.floor((target[:2] - reach - navmap.origin) / navmap.cell_size).astype(int)
    high = np.ceil((target[:2] + reach - navmap.origin) / navmap.cell_size).astype(int)
    j0, i0 = (max(0, value + -value % stride) for value in low.tolist())
    window = (slice(i0, min(rows, int(high[1])), stride), slice(j0, min(columns, int(high[0])), stride))
    i, j = np.nonzero(navmap.island[window] == 0)
    cells = (i * stride + i0) * columns + j * stride + j0
    offsets = navmap.points(cells) - target[:2]
    return cells[(offsets**2).sum(1) < MAX_OFFSET_SQUARED]


@njit(nogil=True, cache=True)
def is_target_visible(
    eyes: np.ndarray, target: np.ndarray, kind: np.ndarray, centre: np.ndarray, half: np.ndarray, yaw: np.ndarray
) -> np.ndarray:
    """Test from which eyes a target can be seen past shapes; the rays are tested exactly.

    Args:
        eyes: float64, (Q, 3); m.
        target: float64, (3,); m.
        kind: uint8, (S,); as in `Shapes`.
        centre: float32, (S, 3); m.
        half: float32, (S, 3); m.
        yaw: float32, (S,); rad.

    Returns:
        bool, (Q,).
    """
    count = len(kind)
    # In its own frame, a box is aligned with the axes. The target is rotated into each frame once.
    cos, sin = np.cos(yaw.astype(np.float64)), np.sin(yaw.astype(np.float64))
    end = np.empty((count, 3))
    for s in range(count):
        x, y = target[0] - centre[s, 0], target[1] - centre[s, 1]
        end[s, 0], end[s, 1] = cos[s] * x + sin[s] * y, cos[s] * y - sin[s] * x
        end[s, 2] = target[2] - centre[s, 2]
    seen = np.ones(len(eyes), np.bool_)
    last = 0  # neighbours are mostly blocked by the same shape, so it is tested first
    for q in range(len(eyes)):
        for k in range(-1, count):
            s = last if k < 0 else k
            if count == 0:
                break
            x, y = eyes[q, 0] - centre[s, 0], eyes[q, 1] - centre[s, 1]
            start = (cos[s] * x + sin[s] * y, cos[s] * y - sin[s] * x, eyes[q, 2] - centre[s, 2])
            if _hits(kind[s], half[s], start, (end[s, 0], end[s, 1], end[s, 2])):
                seen[q] = False
                last = s
                break
    return seen


@njit(nogil=True, cache=True)
def _hits(kind: int, half: np.ndarray, start: tuple[float, float, float], end: tuple[float, float, float]) -> bool:
    """True if a segment enters a shape; all in the shape's own frame.

    Args:
        kind: As in `Shapes`.
        half: float32, (3,); half sizes, m.
        start: m.
        end: m.
    """
    low, high = 0.0, 1.0  # the part of the segment that may be inside
    first_axis = 0 if kind == BOX else 2
    if kind != ELLIPSOID:
        for axis in range(first_axis, 3):
            step = end[axis] - start[axis]
            if step == 0.0:
                if abs(start[axis]) >= half[axis]:
                    return False
                continue
            near, far = (-half[axis] - start[axis]) / step, (half[axis] - start[axis]) / step
            if near > far:
                near, far = far, near
            low, high = max(low, near), min(high, far)
            if low >= high:
                return False
        if kind == BOX:
            return True
    # |start + t (end - start)|^2 < 1 with every axis in half sizes; a cylinder has no third axis.
    a = b = c = 0.0
    for axis in range(2 if kind == CYLINDER else 3):
        at, step = start[axis] / half[axis], (end[axis] - start[axis]) / half[axis]
        a += step * step
        b += at * step
        c += at * at
    if a == 0.0:
        return c < 1.0
    discriminant = b * b - a * (c - 1.0)
    if discriminant <= 0.0:
        return False
    root = math.sqrt(discriminant)
    return max(low, (-b - root) / a) < min(high, (-b + root) / a)
