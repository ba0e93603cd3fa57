"""Driving straight on: a robot that meets an obstacle slides along it.

A move is cut into short parts. Each part is tried along x and then along y, so an obstacle removes only the component
of the motion that points into it. Obstacles are whole cells.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from memenvs.houses.navigation.geodesic import interpolate_field

#: A move is made in parts of at most this share of a cell, so that none jumps over a blocked one.
SUBSTEP = 0.25
#: m; `choose_turns` subtracts this from the gain for each turn.
TURN_COST = 0.005


@njit(nogil=True, cache=True)
def slide(
    free: np.ndarray, width: int, origin: np.ndarray, cell_size: float, x: float, y: float, dx: float, dy: float
) -> tuple[float, float, bool]:
    """Move straight on over free cells.

    Args:
        free: bool, (H * W,); with a rim of blocked cells.
        width: W.
        origin: float64, (2,); corner of cell [0, 0], m.
        cell_size: Side of a cell, m.
        x: Start, m.
        y: Start, m.
        dx: Displacement along x if nothing blocks the move, m.
        dy: The same along y, m.

    Returns:
        x and y at the end, m, and True if it was blocked. A robot that is not on a free cell stays.
    """
    parts = math.ceil(math.sqrt(dx * dx + dy * dy) / (SUBSTEP * cell_size))
    if parts == 0:
        return x, y, False
    row, column = int((y - origin[1]) / cell_size), int((x - origin[0]) / cell_size)
    if not free[row * width + column]:
        return x, y, True
    dx, dy = dx / parts, dy / parts
    blocked = False
    for _ in range(parts):
        to = int((x + dx - origin[0]) / cell_size)
        if free[row * width + to]:
            x, column = x + dx, to
        else:
            blocked = True
        to = int((y + dy - origin[1]) / cell_size)
        if free[to * width + column]:
            y, row = y + dy, to
        else:
            blocked = True
    return x, y, blocked


@njit(nogil=True, cache=True)
def slide_many(
    free: np.ndarray,
    widths: np.ndarray,
    origins: np.ndarray,
    cell_size: float,
    positions: np.ndarray,
    steps: np.ndarray,
    collided: np.ndarray,
) -> None:
    """Move N robots, in place, each on its own grid (M = N) or all on one (M = 1).

    Args:
        free: bool, (M, cells); row i is the flat grid of robot i.
        widths: int64, (N,); W of each robot's grid.
        origins: float64, (M, 2); m.
        cell_size: Side of a cell, m.
        positions: float64, (N, 2); m; changed in place.
        steps: float64, (N, 2); displacement if nothing blocks the move, m.
        collided: bool, (N,); filled: True where the move was blocked.
    """
    for i in range(len(positions)):
        grid = i if len(free) > 1 else 0
        x, y, blocked = slide(
            free[grid], widths[i], origins[grid], cell_size, positions[i, 0], positions[i, 1], steps[i, 0], steps[i, 1]
        )
        collided[i] = blocked
        positions[i, 0], positions[i, 1] = x, y


@njit(nogil=True, cache=True)
def choose_turns(
    free: np.ndarray,
    field: np.ndarray,
    width: int,
    origin: np.ndarray,
    cell_size: float,
    position: np.ndarray,
    heading: float,
    turn: float,
    count: int,
    distance: float,
) -> tuple[int, float]:
    """Find the number of turns after which the next move gets nearest to the goals.

    Args:
        free: bool, (H * W,).
        field: float32, (H * W,); distances to the goals, m.
        width: W.
        origin: float64, (2,); corner of cell [0, 0], m.
        cell_size: Side of a cell, m.
        position: float64, (2,); m.
        heading: rad.
        turn: One turn, rad.
        count: Largest number of turns to either side.
        distance: Length of the move, m.

    Returns:
        Turns, positive to the left, and the decrease of the distance by the move after them, m.
    """
    x, y = position[0], position[1]
    here = interpolate_field(field, width, (x - origin[0]) / cell_size, (y - origin[1]) / cell_size)
    best = -np.inf
    best_turns = 0
    best_gain = 0.0
    for k in range(2 * count + 1):
        turns = (k + 1) // 2 if k % 2 else -(k // 2)  # 0, 1, -1, 2, -2, ...
        angle = heading + turns * turn
        to_x, to_y, _ = slide(
            free, width, origin, cell_size, x, y, distance * math.cos(angle), distance * math.sin(angle)
        )
        gain = here - interpolate_field(field, width, (to_x - origin[0]) / cell_size, (to_y - origin[1]) / cell_size)
        # Each turn costs a little, so that nearly equal paths do not make the robot turn to and fro.
        if gain - TURN_COST * abs(turns) > best:
            best, best_turns, best_gain = gain - TURN_COST * abs(turns), turns, gain
    return best_turns, best_gain
