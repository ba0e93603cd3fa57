"""Placement of furniture: one room with what stands in it, kept passable for a robot.

`RoomPlacer` tries places for groups of furniture. A group is accepted if it overlaps nothing, and if a robot can still
get from each door of the room to each other, which is tested by a flood fill on an occupancy grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numba import njit

from memenvs.houses.house import Span
from memenvs.houses.object_model import ObjectModel
from memenvs.houses.procedural.floor_plan import FRAME, Opening, PlanRoom

CELL = 0.05  # m; side of a cell of the occupancy grid
BODY_RADIUS = 0.35  # m; the robot's 0.30 m and one cell, so that maps with other grids agree that it passes
DOOR_DEPTH = 0.75  # m; depth of the floor on both sides of a doorway that stays free
TALLEST_OBJECT = 0.26  # m; free height wanted on tops below a curtain
ROBOT_HEIGHT = 1.5  # m; what hangs higher blocks nobody
_PAD = 3  # cells of the grid beyond the room's sides, so that the middle of each doorway is on it
_BACK = 0.006  # m; furniture stands this far from its wall
_MIN_REACHABLE = 0.3  # of the empty room's free cells must stay reachable

#: Rotation of a piece with its back to wall 0 (at small y), 1 (small x), 2 (large y), 3 (large x).
WALL_YAW = (0.0, -np.pi / 2, np.pi, np.pi / 2)


class Footprint(NamedTuple):
    """Bounds of something on the floor plan, along the axes, m."""

    x0: float
    y0: float
    x1: float
    y1: float

    def span(self, axis: int) -> Span:
        """Extents along x (0) or y (1)."""
        return (self.x0, self.x1) if axis == 0 else (self.y0, self.y1)

    def overlaps(self, other: Footprint) -> bool:
        """True if both share more than an edge."""
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1


class Placement(NamedTuple):
    """A model in the house: (x, y) of its middle, yaw, and z of its lower side above the floor."""

    model: ObjectModel
    x: float
    y: float
    yaw: float
    z: float = 0.0

    @property
    def footprint(self) -> Footprint:
        """Bounds of its outline."""
        return turned_bounds(self.model.width, self.model.depth, self.x, self.y, self.yaw)

    @property
    def bottom(self) -> float:
        """Height of its lowest part, m."""
        return self.z + min(part.centre[2] - part.half[2] for part in self.model.parts)


class _Body(NamedTuple):
    """A solid that furniture must not overlap: bounds, lowest and highest z, m."""

    footprint: Footprint
    bottom: float
    top: float


@dataclass
class FurnitureGroup:
    """Pieces that are placed together, in a frame like that of an `ObjectModel`.

    Attributes:
        width: Outline along x, m.
        depth: Outline along y, m.
        items: The pieces; positions in the frame of the group.
        front: Free depth wanted in front of the outline, m.
    """

    width: float
    depth: float
    items: list[Placement] = field(default_factory=list)
    front: float = 0.0

    @staticmethod
    def of(model: ObjectModel, front: float = 0.0) -> FurnitureGroup:
        """A group of one piece."""
        return FurnitureGroup(model.width, model.depth, [Placement(model, 0.0, 0.0, 0.0)], front)

    def add_at_back(self, model: ObjectModel, x: float) -> None:
        """Add a piece with its back in line with the group's back."""
        self.items.append(Placement(model, x, (model.depth - self.depth) / 2, 0.0))


def turned_bounds(width: float, depth: float, x: float, y: float, yaw: float) -> Footprint:
    """Bounds along the axes of a rectangle turned by `yaw` around its middle (x, y)."""
    cos = abs(np.cos(yaw))
    sin = abs(np.sin(yaw))
    half_x = (cos * width + sin * depth) / 2
    half_y = (sin * width + cos * depth) / 2
    return Footprint(x - half_x, y - half_y, x + half_x, y + half_y)


class RoomPlacer:
    """One room being furnished.

    Args:
        room: The room.
        openings: Its doors and windows.
        wall_thickness: m.
        door_depth: Depth of the floor on both sides of a doorway that stays free, from the middle of its wall, m.

    Attributes:
        room: The room.
        openings: As given.
        inside: Floor between the walls' faces.
        placements: What has been placed so far.
        doorsteps: Floor on both sides of each door, kept free; in the order of the doors among `openings`.
    """

    def __init__(
        self, room: PlanRoom, openings: Sequence[Opening], wall_thickness: float, door_depth: float = DOOR_DEPTH
    ) -> None:
        half_wall = wall_thickness / 2
        self.room = room
        self.openings = tuple(openings)
        self.inside = Footprint(
            room.low[0] + half_wall, room.low[1] + half_wall, room.high[0] - half_wall, room.high[1] - half_wall
        )
        self.placements: list[Placement] = []
        self._bodies: list[_Body] = []
        self._fronts: list[Footprint] = []  # free floor in front of wardrobes and the like
        self.doorsteps = [_doorstep(o, door_depth) for o in openings if o.kind != "window"]
        self._window_margin = [0.0] * len(self.openings)
        self._make_grid()

    def _make_grid(self) -> None:
        """Make the occupancy grid of the empty room, for the middle of a robot."""
        low, size = self.room.low, self.room.size
        self._origin = low[0] - _PAD * CELL, low[1] - _PAD * CELL
        shape = round(size[0] / CELL) + 2 * _PAD, round(size[1] / CELL) + 2 * _PAD
        x = self._origin[0] + (np.arange(shape[0]) + 0.5)[:, None] * CELL  # (X, 1)
        y = self._origin[1] + (np.arange(shape[1]) + 0.5)[None, :] * CELL  # (1, Y)
        radius = BODY_RADIUS
        inside = self.inside
        is_free = (
            (x > inside.x0 + radius) & (x < inside.x1 - radius) & (y > inside.y0 + radius) & (y < inside.y1 - radius)
        )
        self._door_cells: list[tuple[int, int]] = []
        for opening in self.openings:
            if opening.is_walkable:
                along, across = (x, y) if opening.axis == 0 else (y, x)
                clear = opening.width / 2 - (FRAME if opening.kind == "door" else 0.0)
                is_free = is_free | (
                    (abs(along - opening.centre) < clear - radius) & (abs(across - opening.line) < radius + 0.15)
                )
                point = (opening.centre, opening.line) if opening.axis == 0 else (opening.line, opening.centre)
                cell = int((point[0] - self._origin[0]) / CELL), int((point[1] - self._origin[1]) / CELL)
                self._door_cells.append(cell)
        self._blockers = np.where(is_free, 0, 100).astype(np.int16)  # (X, Y); number of objects that block a cell
        self._min_reachable = _MIN_REACHABLE * float(is_free.sum())

    def beside_wall(self, wall: int, along: Span, depth: Span) -> Footprint:
        """Floor beside a wall (0 to 3, see `WALL_YAW`), by extents along it and distances from it."""
        inside = self.inside
        if wall == 0:
            return Footprint(along[0], inside.y0 + depth[0], along[1], inside.y0 + depth[1])
        if wall == 1:
            return Footprint(inside.x0 + depth[0], along[0], inside.x0 + depth[1], along[1])
        if wall == 2:
            return Footprint(along[0], inside.y1 - depth[1], along[1], inside.y1 - depth[0])
        return Footprint(inside.x1 - depth[1], along[0], inside.x1 - depth[0], along[1])

    def openings_of_wall(self, wall: int) -> list[tuple[Opening, float]]:
        """Doors and windows in a wall, each with the margin beside it free of tall pieces, m."""
        axis = wall % 2
        line = self.room.low[1 - axis] if wall < 2 else self.room.high[1 - axis]
        return [
            (opening, margin)
            for opening, margin in zip(self.openings, self._window_margin, strict=True)
            if opening.axis == axis and abs(opening.line - line) < 1e-6
        ]

    def widen_windows(self, margin: float) -> None:
        """Keep tall furniture this far from windows from now on, m; for curtains."""
        self._window_margin = [margin] * len(self.openings)

    def try_at(self, group: FurnitureGroup, x: float, y: float, yaw: float) -> bool:
        """Place a group with its middle at (x, y), if it fits and a robot still passes.

        Returns:
            True if it was placed.
        """
        body = turned_bounds(group.width, group.depth, x, y, yaw)
        inside = self.inside
        if body.x0 < inside.x0 or body.y0 < inside.y0 or body.x1 > inside.x1 or body.y1 > inside.y1:
            return False
        taken = [other.footprint for other in self._bodies if other.bottom < ROBOT_HEIGHT]
        if any(body.overlaps(other) for other in (*taken, *self.doorsteps, *self._fronts)):
            return False
        cos = float(np.cos(yaw))
        sin = float(np.sin(yaw))
        ahead = (group.depth + group.front) / 2
        front = turned_bounds(group.width, group.front, x - sin * ahead, y + cos * ahead, yaw)
        if group.front > 0 and any(front.overlaps(other) for other in taken):
            return False
        placed = [
            Placement(
                item.model, x + cos * item.x - sin * item.y, y + sin * item.x + cos * item.y, yaw + item.yaw, item.z
            )
            for item in group.items
        ]
        if any(self._blocks_window(item) for item in placed):
            return False
        in_reach = [item for item in placed if item.bottom < ROBOT_HEIGHT]
        for item in in_reach:
            self._mark_item(item, 1)
        if not self._is_passable():
            for item in in_reach:
                self._mark_item(item, -1)
            return False
        self.placements += placed
        for item in placed:
            self._bodies.append(_Body(item.footprint, item.bottom, item.z + item.model.height))
        if len(group.items) > 1:  # nothing low between the pieces of a group
            self._bodies.append(_Body(body, 0.0, 0.4))
        if group.front > 0:
            self._fronts.append(front)
        return True

    def try_on_wall(self, rng: np.random.Generator, group: FurnitureGroup, *, where: str = "any") -> bool:
        """Place a group with its back to a wall.

        Args:
            rng: Random generator; draws the order of the walls.
            group: The pieces.
            where: Place in a free stretch of wall: "any", "corner" (as far to one side as possible) or "centre".

        Returns:
            True if it was placed.
        """
        for wall in [int(w) for w in rng.permutation(4)]:
            for low, high in self._free_spans(wall, group):
                slack = high - low - group.width
                drawn = rng.random(3)  # whatever `where` is: the houses of all seeds depend on it
                fractions = {"corner": [0.0, 1.0], "centre": [0.5, 0.3, 0.7]}.get(where, [*drawn, 0.0, 1.0])
                if where == "corner" and rng.random() < 0.5:
                    fractions = fractions[::-1]
                for fraction in fractions:
                    along = low + group.width / 2 + fraction * slack
                    across = _BACK + group.depth / 2
                    middle = self.beside_wall(wall, (along, along), (across, across))
                    if self.try_at(group, middle.x0, middle.y0, WALL_YAW[wall]):
                        return True
        return False

    def _free_spans(self, wall: int, group: FurnitureGroup) -> list[Span]:
        """Stretches of wall that are long enough and have nothing in front, the longest first."""
        axis = wall % 2
        low, high = self.inside.span(axis)
        low, high = low + _BACK, high - _BACK
        strip = self.beside_wall(wall, (low, high), (0.0, group.depth + _BACK))
        ahead = self.beside_wall(wall, (low, high), (0.0, group.depth + group.front))
        blocked = [floor.span(axis) for floor in (*self.doorsteps, *self._fronts) if floor.overlaps(strip)]
        for body in self._bodies:
            if body.bottom < ROBOT_HEIGHT and body.footprint.overlaps(ahead):
                start, end = body.footprint.span(axis)
                blocked.append((start - 0.02, end + 0.02))
        spans = []
        at = low
        for start, end in [*sorted(blocked), (high, high)]:
            if start - at > group.width:
                spans.append((at, start))
            at = max(at, end)
        return sorted(spans, key=lambda span: span[0] - span[1])

    def _blocks_window(self, item: Placement) -> bool:
        """True if a tall piece would stand in front of a window or a curtain."""
        footprint = item.footprint
        top = item.z + item.model.height
        for wall in range(4):
            for opening, margin in self.openings_of_wall(wall):
                if opening.kind != "window":
                    continue
                half = opening.width / 2 + 0.05
                for reach, limit in ((half, opening.bottom - 0.02), (half + margin, opening.bottom - TALLEST_OBJECT)):
                    along = opening.centre - reach, opening.centre + reach
                    if top > limit and footprint.overlaps(self.beside_wall(wall, along, (0.0, 0.12))):
                        return True
        return False

    def try_hang(self, rng: np.random.Generator, model: ObjectModel, bottom: float) -> bool:
        """Hang a flat object on a free piece of wall; True if there was one."""
        for wall in [int(w) for w in rng.permutation(4)]:
            low, high = self.inside.span(wall % 2)
            for fraction in rng.uniform(0.1, 0.9, 5):
                along = float(low + fraction * (high - low))
                if self.hang_at(model, wall, along, bottom):
                    return True
        return False

    def hang_at(
        self, model: ObjectModel, wall: int, along: float, bottom: float, *, opening_margin: float = 0.15
    ) -> bool:
        """Hang a flat object at a place along a wall; False if something is there.

        Args:
            model: The object.
            wall: 0 to 3, see `WALL_YAW`.
            along: Coordinate of its middle along the wall, m.
            bottom: Height of its lower edge, m.
            opening_margin: Distance from doors and windows, m; 0 hangs it beside a window that `widen_windows` widened.
        """
        axis = wall % 2
        top = bottom + model.height
        low, high = self.inside.span(axis)
        half = model.width / 2
        if along - half < low + 0.02 or along + half > high - 0.02:
            return False
        for opening, window_margin in self.openings_of_wall(wall):
            margin = window_margin if opening.kind == "window" and opening_margin > 0 else opening_margin
            reach = half + opening.width / 2 + margin
            if abs(along - opening.centre) < reach and bottom < opening.top and top > opening.bottom:
                return False
        footprint = self.beside_wall(wall, (along - half, along + half), (0.0, model.depth + _BACK))
        for body in self._bodies:
            if footprint.overlaps(body.footprint) and bottom < body.top + 0.02 and top > body.bottom:
                return False
        across = _BACK / 2 + model.depth / 2
        middle = self.beside_wall(wall, (along, along), (across, across))
        self.placements.append(Placement(model, middle.x0, middle.y0, WALL_YAW[wall], bottom))
        self._bodies.append(_Body(footprint, bottom, top))
        if bottom < ROBOT_HEIGHT:
            self._mark_item(self.placements[-1], 1)
        return True

    def lay(self, model: ObjectModel, x: float, y: float, yaw: float) -> bool:
        """Lay a rug, shifted to stay between the walls; False if it does not fit."""
        bounds = turned_bounds(model.width, model.depth, x, y, yaw)
        inside = self.inside
        dx = max(inside.x0 + 0.05 - bounds.x0, 0.0) - max(bounds.x1 - inside.x1 + 0.05, 0.0)
        dy = max(inside.y0 + 0.05 - bounds.y0, 0.0) - max(bounds.y1 - inside.y1 + 0.05, 0.0)
        bounds = turned_bounds(model.width, model.depth, x + dx, y + dy, yaw)
        if bounds.x0 < inside.x0 or bounds.y0 < inside.y0 or bounds.x1 > inside.x1 or bounds.y1 > inside.y1:
            return False
        self.placements.append(Placement(model, x + dx, y + dy, yaw))
        return True

    def block(self, footprint: Footprint, height: float) -> bool:
        """Reserve a place for an open door leaf or the like, if a robot still passes.

        Returns:
            True if it was reserved.
        """
        middle = (footprint.x0 + footprint.x1) / 2, (footprint.y0 + footprint.y1) / 2
        half = (footprint.x1 - footprint.x0) / 2, (footprint.y1 - footprint.y0) / 2
        self._mark_rectangle(*middle, *half, 0.0, 1)
        if not self._is_passable():
            self._mark_rectangle(*middle, *half, 0.0, -1)
            return False
        self._bodies.append(_Body(footprint, 0.0, height))
        return True

    def _mark_item(self, item: Placement, change: int) -> None:
        """Add `change` to the cells that a piece blocks."""
        self._mark_rectangle(item.x, item.y, item.model.width / 2, item.model.depth / 2, item.yaw, change)

    def _mark_rectangle(self, x: float, y: float, half_x: float, half_y: float, yaw: float, change: int) -> None:
        position = x - self._origin[0], y - self._origin[1]
        _mark_cells(self._blockers, *position, half_x, half_y, np.cos(yaw), np.sin(yaw), BODY_RADIUS, CELL, change)

    def _is_passable(self) -> bool:
        """True if a robot gets from each door to each other and to enough of the room."""
        if not self._door_cells:
            return True
        reached = flood(self._blockers, *self._door_cells[0])
        return all(reached[door] for door in self._door_cells) and float(reached.sum()) >= self._min_reachable


def _doorstep(opening: Opening, depth: float) -> Footprint:
    """Floor on both sides of a doorway."""
    half = opening.width / 2 + 0.05
    along = opening.centre - half, opening.centre + half
    across = opening.line - depth, opening.line + depth
    x, y = (along, across) if opening.axis == 0 else (across, along)
    return Footprint(x[0], y[0], x[1], y[1])


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
    cell: float,
    change: int,
) -> None:
    """Add `change` to all cells nearer than `radius` to a turned rectangle; (x, y) from the grid's corner."""
    reach = np.hypot(half_x, half_y) + radius
    for i in range(max(0, int((x - reach) / cell)), min(blockers.shape[0], int((x + reach) / cell) + 1)):
        for j in range(max(0, int((y - reach) / cell)), min(blockers.shape[1], int((y + reach) / cell) + 1)):
            dx = (i + 0.5) * cell - x
            dy = (j + 0.5) * cell - y
            # Distance from the rectangle in its own frame
            across = max(abs(cos * dx + sin * dy) - half_x, 0.0)
            along = max(abs(-sin * dx + cos * dy) - half_y, 0.0)
            if across * across + along * along < radius * radius:
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
