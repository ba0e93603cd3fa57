"""Driving on two wheels: the end of an arc, and the collisions on it.

A robot with constant wheel speeds drives along a circular arc, given by its length and the change of the heading. An
arc is free if points on it, at most `ARC_STEP` apart, lie in free cells.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

#: m; largest distance between two tested points of an arc.
ARC_STEP = 0.025


@njit(nogil=True, cache=True)
def arc_end(x: float, y: float, heading: float, distance: float, turn: float) -> tuple[float, float, float]:
    """Pose at the end of an arc.

    Args:
        x: m.
        y: m.
        heading: At the start, rad.
        distance: Length of the arc, m; negative backwards.
        turn: Change of the heading along it, rad.

    Returns:
        x, y (m) and heading (rad, not wrapped) at the end.

    Source:
        Differential drive with constant wheel speeds. With q half the turn and s the distance, the chord has the length
        s sin(q) / q and the direction heading + q.
    """
    q = 0.5 * turn
    chord = distance * (math.sin(q) / q if abs(q) > 1e-6 else 1.0 - q * q / 6.0)
    return x + chord * math.cos(heading + q), y + chord * math.sin(heading + q), heading + turn


@njit(nogil=True, cache=True)
def is_arc_free(
    free: np.ndarray,
    width: int,
    origin: np.ndarray,
    cell_size: float,
    pose: tuple[float, float, float],
    distance: float,
    turn: float,
) -> bool:
    """True if an arc stays on free cells that are connected over their sides.

    The cell that it starts in is not tested. Two cells that only share a corner are not connected, as in
    `memenvs.houses.navigation.occupancy.label_islands`, so no arc leaves its island.

    Args:
        free: bool, (H * W,); with a rim of blocked cells wider than `ARC_STEP`.
        width: W.
        origin: float64, (2,); corner of cell [0, 0], m.
        cell_size: Side of a cell, m.
        pose: x, y (m) and heading (rad) at the start.
        distance: Length of the arc, m.
        turn: Change of the heading along it, rad.
    """
    parts = math.ceil(abs(distance) / ARC_STEP)
    row, column = int((pose[1] - origin[1]) / cell_size), int((pose[0] - origin[0]) / cell_size)
    for k in range(1, parts + 1):
        share = k / parts
        x, y, _ = arc_end(pose[0], pose[1], pose[2], distance * share, turn * share)
        i, j = int((y - origin[1]) / cell_size), int((x - origin[0]) / cell_size)
        if not free[i * width + j]:
            return False
        is_diagonal = i != row and j != column
        if is_diagonal and not (free[row * width + j] or free[i * width + column]):
            return False
        row, column = i, j
    return True


@njit(nogil=True, cache=True)
def drive_many(
    free: np.ndarray,
    widths: np.ndarray,
    origins: np.ndarray,
    cell_size: float,
    positions: np.ndarray,
    headings: np.ndarray,
    motions: np.ndarray,
    robot_mask: np.ndarray,
    turns_freely: np.ndarray,
    collided: np.ndarray,
) -> None:
    """Drive N robots along arcs, in place, each on its own grid.

    Args:
        free: bool, (N, cells); row i is the flat grid of robot i.
        widths: int64, (N,); W of each robot's grid.
        origins: float64, (N, 2); m.
        cell_size: Side of a cell, m.
        positions: float64, (N, 2); m; changed in place.
        headings: float64, (N,); rad, in [0, 2 pi); changed in place.
        motions: float64, (N, 2); length of the arc (m) and turn (rad).
        robot_mask: bool, (N,); the robots that drive.
        turns_freely: bool, (N,); a robot whose arc is blocked turns on the spot instead of staying as it was.
        collided: bool, (N,); filled: True for robots that kept their pose because the arc was blocked.
    """
    for i in range(len(positions)):
        collided[i] = False
        if not robot_mask[i]:
            continue
        distance, turn = motions[i, 0], motions[i, 1]
        start = (positions[i, 0], positions[i, 1], headings[i])
        if not is_arc_free(free[i], widths[i], origins[i], cell_size, start, distance, turn):
            if not turns_freely[i]:
                collided[i] = True
                continue
            distance = 0.0
        x, y, heading = arc_end(start[0], start[1], start[2], distance, turn)
        positions[i, 0], positions[i, 1], headings[i] = x, y, heading % (2.0 * math.pi)
