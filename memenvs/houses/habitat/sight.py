"""Cells from which a target is seen, in homes whose walls are not known as shapes.

Six depth pictures are drawn at the target. A camera sees the target if nothing is nearer in its direction.
"""

from __future__ import annotations

import math

import numpy as np

from memenvs.houses.habitat.probes import DOWN, UP, axes, measure
from memenvs.houses.habitat.views import SampledView
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.houses.navigation.viewpoints import EYE_HEIGHT, MAX_RAISES, RAISE_STEP, candidate_cells

#: Camera to one side; six of them see all around.
_SIDE = SampledView.whole(96, 96, math.pi / 2)
_DIRECTIONS = (*((k * math.pi / 2, 0.0) for k in range(4)), (0.0, UP), (0.0, DOWN))
#: A surface within this distance of the camera does not block, m; depth pictures are no more precise.
_TOLERANCE = 0.05


def find_seen_viewpoints(navmap: NavigationMap, target: np.ndarray, floor: float) -> np.ndarray:
    """Find the cells from which a target is seen.

    See `memenvs.houses.navigation.viewpoints.find_viewpoints`. Small objects do not block, because the scene that was
    entered has none.

    Args:
        navmap: Map of the home.
        target: float, (3,); m above the floor.
        floor: Height of the floor in habitat-sim's frame, m.

    Returns:
        int64, (V,); flat indices of cells of the largest island, ascending.
    """
    target = np.asarray(target, np.float64)
    cells = candidate_cells(navmap, target)
    if len(cells) == 0:
        return cells
    eye = np.array([*target[:2], target[2] + floor])
    depths = [measure(_SIDE, eye, *direction) for direction in _DIRECTIONS]
    offsets = np.column_stack([navmap.points(cells) - target[:2], np.zeros(len(cells))])
    for k in range(MAX_RAISES + 1):
        offsets[:, 2] = EYE_HEIGHT + RAISE_STEP * k - target[2]
        seen = _are_free(offsets, depths)
        if seen.any():
            return cells[seen]
    return cells[:0]


def _are_free(offsets: np.ndarray, depths: list[np.ndarray]) -> np.ndarray:
    """Find the points that can be seen from the target.

    Args:
        offsets: float64, (Q, 3); from the target to each point, m.
        depths: A depth picture for each of `_DIRECTIONS`, float32, (H, H); m.

    Returns:
        bool, (Q,).
    """
    free = np.zeros(len(offsets), bool)
    for direction, depth in zip(_DIRECTIONS, depths, strict=True):
        ahead, right, up = axes(*direction) @ offsets.T
        rows = np.flatnonzero((ahead > 0) & (np.abs(right) <= ahead) & (np.abs(up) <= ahead))
        size = len(depth)
        column = np.clip(((right / ahead)[rows] + 1) * size / 2, 0, size - 1).astype(int)
        row = np.clip((1 - (up / ahead)[rows]) * size / 2, 0, size - 1).astype(int)
        nearest = depth[row, column]
        free[rows] = (nearest == 0) | (nearest > ahead[rows] - _TOLERANCE)
    return free
