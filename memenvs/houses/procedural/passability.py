"""Passability of a room: a robot must get from each door to each other on a grid of cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from memenvs.houses.procedural.floor_plan import FRAME_WIDTH, Opening, PlanRoom
from memenvs.houses.procedural.furniture_groups import Footprint, Placement

CELL_SIZE = 0.05  # m; side of a cell
BODY_RADIUS = 0.35  # m; the robot's 0.30 m and one cell, so that maps with other grids agree that it passes
_PAD = 3  # cells beyond the room's sides, so that the centre of each doorway is on the grid
_MIN_REACHABLE = 0.3  # of the empty room's free cells must stay reachable


class PassabilityGrid:
    """Cells of one room in which the centre of a robot fits.

    Args:
        room: The room.
        inside: Floor between the walls' faces.
        openings: Its doors and windows.
    """

    def __init__(self, room: PlanRoom, inside: Footprint, openings: Sequence[Opening]) -> None:
        self._origin = room.low[0] - _PAD * CELL_SIZE, room.low[1] - _PAD * CELL_SIZE
        shape = round(room.size[0] / CELL_SIZE) + 2 * _PAD, round(room.size[1] / CELL_SIZE) + 2 * _PAD
        x = self._origin[0] + (np.arange(shape[0]) + 0.5)[:, None] * CELL_SIZE  # (X, 1)
        y = self._origin[1] + (np.arange(shape[1]) + 0.5)[None, :] * CELL_SIZE  # (1, Y)
        radius = BODY_RADIUS
        is_free = (x > inside.x0 + radius) & (x < inside.x1 - radius)
        is_free = is_free & (y > inside.y0 + radius) & (y < inside.y1 - radius)
        self._door_cells: list[tuple[int, int]] = []
        for opening in openings:
            if opening.is_walkable:
                along, across = (x, y) if opening.axis == 0 else (y, x)
                # 0.15 m: half of the thickest wall and one cell, so that the doorway joins the free cells of the room.
                clear = opening.width / 2 - (FRAME_WIDTH if opening.kind == "door" else 0.0)
                in_doorway = (abs(along - opening.centre) < clear - radius) & (
                    abs(across - opening.line) < radius + 0.15
                )
                is_free = is_free | in_doorway
                point = (opening.centre, opening.line) if opening.axis == 0 else (opening.line, opening.centre)
                cell = int((point[0] - self._origin[0]) / CELL_SIZE), int((point[1] - self._origin[1]) / CELL_SIZE)
                self._door_cells.append(cell)
        # (X, Y); number of objects that block a cell. Walls count as 100, which removing objects never brings to 0.
        self._blockers = np.where(is_free, 0, 100).astype(np.int16)
        self._min_reachable = _MIN_REACHABLE * float(is_free.sum())

    def mark(self, item: Placement, change: int) -> None:
        """Add `change` to the blockers of the cells from which a robot would touch a piece."""
        self._mark_rectangle(item.x, item.y, item.model.width / 2, item.model.depth / 2, item.yaw, change)

    def mark_footprint(self, footprint: Footprint, change: int) -> None:
        """Add `change` to the blockers of the cells from which a robot would touch a rectangle."""
        middle = (footprint.x0 + footprint.x1) / 2, (footprint.y0 + footprint.y1) / 2
        half = (footprint.x1 - footprint.x0) / 2, (footprint.y1 - footprint.y0) / 2
        self._mark_rectangle(*middle, *half, 0.0, change)

    def _mark_rectangle(self, x: float, y: float, half_x: float, half_y: float, yaw: float, change: int) -> None:
        position = x - self._origin[0], y - self._origin[1]
        _mark_cells(self._blockers, *position, half_x, half_y, np.cos(yaw), np.sin(yaw), BODY_RADIUS, CELL_SIZE, change)

    def is_passable(self) -> bool:
        """True if a robot gets from each door to each other and to enough of the room."""
        if not self._door_cells:
            return True
        reached = flood(self._blockers, *self._door_cells[0])
        return all(reached[door] for door in self._door_cells) and float(reached.sum()) >= self._min_reachable


@njit(cache=True, nogil=True)
def _mark_cells(
    blockers: np.ndarray,
    x: float,
    y: float,
    half_x: float,
    half_y: float,
    cos: float,
    sin: float,
    radius: float,
    cell_size: float,
    change: int,
) -> None:
    """Add `change` to all cells nearer than `radius` to a turned rectangle; (x, y) from the grid's corner."""
    reach = np.hypot(half_x, half_y) + radius
    for i in range(max(0, int((x - reach) / cell_size)), min(blockers.shape[0], int((x + reach) / cell_size) + 1)):
        for j in range(max(0, int((y - reach) / cell_size)), min(blockers.shape[1], int((y + reach) / cell_size) + 1)):
            dx = (i + 0.5) * cell_size - x
            dy = (j + 0.5) * cell_size - y
            # Distance from the rectangle in its own frame
            out_x = max(abs(cos * dx + sin * dy) - half_x, 0.0)
            out_y = max(abs(-sin * dx + cos * dy) - half_y, 0.0)
            if out_x * out_x + out_y * out_y < radius * radius:
                blockers[i, j] += change


@njit(cache=True, nogil=True)
def flood(blockers: np.ndarray, row: int, column: int) -> np.ndarray:
    """Flood fill: the cells that can be reached from one cell over cells that nothing blocks.

    Args:
        blockers: int16, (X, Y); 0 where a cell is free.
        row: First index of the start cell.
        column: Second index of the start cell.

    Returns:
        bool, (X, Y); 4-neighbour component of the start; all False if the start is blocked.
    """
    reached = np.zeros(blockers.shape, np.bool_)
    if blockers[row, column] != 0:
        return reached
    stack = np.empty((blockers.size, 2), np.int32)
    stack[0] = row, column
    reached[row, column] = True
    count = 1
    while count > 0:
        count -= 1
        i, j = stack[count]
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            a = i + di
            b = j + dj
            if 0 <= a < blockers.shape[0] and 0 <= b < blockers.shape[1] and blockers[a, b] == 0 and not reached[a, b]:
                reached[a, b] = True
                stack[count] = a, b
                count += 1
    return reached
