"""Where furniture fits: one room with what stands in it, and a raster on which a robot must still get from door to door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numba import njit

from memenvs.houses.house import Span
from memenvs.houses.object_model import ObjectModel
from memenvs.houses.procedural.floor_plan import FRAME, Opening, PlanRoom

CELL = 0.05
BODY_RADIUS = 0.35  # m; the robot's 0.30 m and one raster cell, so that other rasters agree that it passes
DOOR_DEPTH = 0.75  # m; no furniture so close to a doorway
TALLEST_OBJECT = 0.26  # m; free height wanted on tops below a curtain
ROBOT_HEIGHT = 1.5  # m; what hangs higher is in nobody's way
_PAD = 3  # cells of the raster beyond the room's sides, so that the middle of each doorway is on it
_BACK = 0.006  # m; furniture stands this far from its wall

#: Turn of a piece with its back to the wall at small y, small x, large y, large x.
WALL_YAW = (0.0, -np.pi / 2, np.pi, np.pi / 2)


class Footprint(NamedTuple):
    """A rectangle along the axes, m."""

    x0: float
    y0: float
    x1: float
    y1: float

    def span(self, axis: int) -> Span:
        """Extents along x (0) or y (1)."""
        return (self.x0, self.x1) if axis == 0 else (self.y0, self.y1)

    def overlaps(self, other: Footprint) -> bool:
        """Whether both share more than an edge."""
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1


class Placement(NamedTuple):
    """A model somewhere in the home: (x, y) of its middle, turn, and height of its z = 0 above the floor."""

    model: ObjectModel
    x: float
    y: float
    yaw: float
    z: float = 0.0


@dataclass
class FurnitureGroup:
    """Pieces that are placed together, in a frame like that of a `ObjectModel`: back to front along y.

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
        """Adds a piece with its back in line with the group's back."""
        self.items.append(Placement(model, x, (model.depth - self.depth) / 2, 0.0))


def footprint(width: float, depth: float, x: float, y: float, yaw: float) -> Footprint:
    """Bounds along the axes of a turned rectangle."""
    cos, sin = abs(np.cos(yaw)), abs(np.sin(yaw))
    half = (cos * width + sin * depth) / 2, (sin * width + cos * depth) / 2
    return Footprint(x - half[0], y - half[1], x + half[0], y + half[1])


class RoomPlacer:
    """One room being furnished.

    Args:
        room: The room.
        openings: Its doors and windows.
        wall_thickness: m.
        door_depth: No furniture is so close to the middle of a doorway's wall, m.

    Attributes:
        room: The room.
        openings: As given.
        inside: Floor between the walls' faces.
        placements: What has been placed so far.
        doorsteps: Floor on both sides of each door, to be kept free; in the order of the doors among `openings`.
    """

    def __init__(
        self, room: PlanRoom, openings: Sequence[Opening], wall_thickness: float, door_depth: float = DOOR_DEPTH
    ) -> None:
        half_wall = wall_thickness / 2
        self.room, self.openings = room, tuple(openings)
        self.inside = Footprint(
            room.low[0] + half_wall, room.low[1] + half_wall, room.high[0] - half_wall, room.high[1] - half_wall
        )
        self.placements: list[Placement] = []
        self._bodies: list[tuple[Footprint, float, float]] = []  # outline, lowest and highest z
        self._fronts: list[Footprint] = []
        self.doorsteps = [self._doorstep(o, door_depth) for o in openings if o.kind != "window"]
        self._window_margin = [0.0] * len(self.openings)
        self._make_raster()

    def _doorstep(self, opening: Opening, depth: float) -> Footprint:
        half = opening.width / 2 + 0.05
        along = opening.centre - half, opening.centre + half
        across = opening.line - depth, opening.line + depth
        return (
            Footprint(along[0], across[0], along[1], across[1])
            if opening.axis == 0
            else Footprint(across[0], along[0], across[1], along[1])
        )

    def _make_raster(self) -> None:
        low, size = self.room.low, self.room.size
        self._origin = low[0] - _PAD * CELL, low[1] - _PAD * CELL
        shape = round(size[0] / CELL) + 2 * _PAD, round(size[1] / CELL) + 2 * _PAD
        x = self._origin[0] + (np.arange(shape[0]) + 0.5)[:, None] * CELL
        y = self._origin[1] + (np.arange(shape[1]) + 0.5)[None, :] * CELL
        r, inside = BODY_RADIUS, self.inside
        free = (x > inside.x0 + r) & (x < inside.x1 - r) & (y > inside.y0 + r) & (y < inside.y1 - r)
        self._doors: list[tuple[int, int]] = []
        for opening in self.openings:
            if opening.is_walkable:
                along, across = (x, y) if opening.axis == 0 else (y, x)
                clear = opening.width / 2 - (FRAME if opening.kind == "door" else 0.0)
                free = free | ((abs(along - opening.centre) < clear - r) & (abs(across - opening.line) < r + 0.15))
                point = (opening.centre, opening.line) if opening.axis == 0 else (opening.line, opening.centre)
                cell = int((point[0] - self._origin[0]) / CELL), int((point[1] - self._origin[1]) / CELL)
                self._doors.append(cell)
        self._blockers = np.where(free, 0, 100).astype(np.int16)  # (X, Y); number of things that block a cell
        self._wanted = 0.3 * float(free.sum())

    def wall_rect(self, wall: int, along: Span, depth: Span) -> Footprint:
        """Rectangle beside a wall (0 to 3, see `WALL_YAW`): extents along it and distances from it."""
        i = self.inside
        if wall == 0:
            return Footprint(along[0], i.y0 + depth[0], along[1], i.y0 + depth[1])
        if wall == 1:
            return Footprint(i.x0 + depth[0], along[0], i.x0 + depth[1], along[1])
        if wall == 2:
            return Footprint(along[0], i.y1 - depth[1], along[1], i.y1 - depth[0])
        return Footprint(i.x1 - depth[1], along[0], i.x1 - depth[0], along[1])

    def openings_of_wall(self, wall: int) -> list[tuple[Opening, float]]:
        """Doors and windows in a wall, each with the margin beside it that tall things must keep free."""
        axis = wall % 2
        line = self.room.low[1 - axis] if wall < 2 else self.room.high[1 - axis]
        return [
            (opening, margin)
            for opening, margin in zip(self.openings, self._window_margin, strict=True)
            if opening.axis == axis and abs(opening.line - line) < 1e-6
        ]

    def widen_windows(self, margin: float) -> None:
        """Tall things keep this distance from windows from now on, m; for curtains."""
        self._window_margin = [margin] * len(self.openings)

    def try_at(self, group: FurnitureGroup, x: float, y: float, yaw: float, *, ignore_fronts: bool = False) -> bool:
        """Places a group with its middle here if nothing is in the way and a robot still passes."""
        body = footprint(group.width, group.depth, x, y, yaw)
        i = self.inside
        if body.x0 < i.x0 or body.y0 < i.y0 or body.x1 > i.x1 or body.y1 > i.y1:
            return False
        taken = [rect for rect, low, _ in self._bodies if low < ROBOT_HEIGHT]
        fronts = [] if ignore_fronts else self._fronts
        if any(body.overlaps(other) for other in (*taken, *self.doorsteps, *fronts)):
            return False
        cos, sin = float(np.cos(yaw)), float(np.sin(yaw))
        ahead = (group.depth + group.front) / 2
        front = footprint(group.width, group.front, x - sin * ahead, y + cos * ahead, yaw)
        if group.front > 0 and any(front.overlaps(other) for other in taken):
            return False
        placed = [
            Placement(model, x + cos * mx - sin * my, y + sin * mx + cos * my, yaw + turn, z)
            for model, mx, my, turn, z in group.items
        ]
        if any(self._is_before_window(p) for p in placed):
            return False
        on_floor = [
            p for p in placed if p.z + min(part.centre[2] - part.half[2] for part in p.model.parts) < ROBOT_HEIGHT
        ]
        for p in on_floor:
            self._mark(p, 1)
        if not self._is_passable():
            for p in on_floor:
                self._mark(p, -1)
            return False
        self.placements += placed
        for p in placed:
            low = p.z + min(part.centre[2] - part.half[2] for part in p.model.parts)
            self._bodies.append((footprint(p.model.width, p.model.depth, p.x, p.y, p.yaw), low, p.z + p.model.height))
        if len(group.items) > 1:
            self._bodies.append((body, 0.0, 0.4))
        if group.front > 0:
            self._fronts.append(front)
        return True

    def try_on_wall(
        self, rng: np.random.Generator, group: FurnitureGroup, *, where: str = "any", walls: Sequence[int] = ()
    ) -> bool:
        """Places a group with its back to a wall.

        Args:
            rng: Source of chance.
            group: What to place.
            where: "any", "corner" (as far to one side as possible) or "centre" (of a free piece of wall).
            walls: Walls to try, best first; all in random order if empty.

        Returns:
            Whether it was placed.
        """
        for wall in walls or [int(w) for w in rng.permutation(4)]:
            for low, high in self._free_spans(wall, group):
                slack = high - low - group.width
                shares = {"corner": [0.0, 1.0], "centre": [0.5, 0.3, 0.7]}.get(where, [*rng.random(3), 0.0, 1.0])
                if where == "corner" and rng.random() < 0.5:
                    shares = shares[::-1]
                for share in shares:
                    at = low + group.width / 2 + share * slack
                    across = _BACK + group.depth / 2
                    rect = self.wall_rect(wall, (at, at), (across, across))
                    if self.try_at(group, rect.x0, rect.y0, WALL_YAW[wall]):
                        return True
        return False

    def _free_spans(self, wall: int, group: FurnitureGroup) -> list[Span]:
        """Pieces of wall that are long enough and have nothing in front, the longest first."""
        axis = wall % 2
        low, high = self.inside.span(axis)
        low, high = low + _BACK, high - _BACK
        strip = self.wall_rect(wall, (low, high), (0.0, group.depth + _BACK))
        ahead = self.wall_rect(wall, (low, high), (0.0, group.depth + group.front))
        blocked = [r.span(axis) for r in (*self.doorsteps, *self._fronts) if r.overlaps(strip)]
        blocked += [
            (s[0] - 0.02, s[1] + 0.02)
            for r, z, _ in self._bodies
            if z < ROBOT_HEIGHT and r.overlaps(ahead)
            for s in [r.span(axis)]
        ]
        spans, at = [], low
        for start, end in [*sorted(blocked), (high, high)]:
            if start - at > group.width:
                spans.append((at, start))
            at = max(at, end)
        return sorted(spans, key=lambda span: span[0] - span[1])

    def _is_before_window(self, p: Placement) -> bool:
        """Whether a tall piece would stand in front of a window or a curtain."""
        rect = footprint(p.model.width, p.model.depth, p.x, p.y, p.yaw)
        for wall in range(4):
            for opening, margin in self.openings_of_wall(wall):
                half = opening.width / 2 + 0.05
                if opening.kind != "window":
                    continue
                for reach, limit in ((half, opening.bottom - 0.02), (half + margin, opening.bottom - TALLEST_OBJECT)):
                    along = opening.centre - reach, opening.centre + reach
                    if p.z + p.model.height > limit and rect.overlaps(self.wall_rect(wall, along, (0.0, 0.12))):
                        return True
        return False

    def try_hang(
        self, rng: np.random.Generator, model: ObjectModel, bottom: float, *, walls: Sequence[int] = ()
    ) -> bool:
        """Hangs a flat thing on a free piece of wall; True if there was one."""
        top = bottom + model.height
        for wall in walls or [int(w) for w in rng.permutation(4)]:
            low, high = self.inside.span(wall % 2)
            for share in rng.uniform(0.1, 0.9, 5):
                at = float(low + share * (high - low))
                if self.hang_at(model, wall, at, bottom, top):
                    return True
        return False

    def hang_at(
        self, model: ObjectModel, wall: int, at: float, bottom: float, top: float, *, margin: float = 0.15
    ) -> bool:
        """Hangs a flat thing at this place along a wall unless something is there."""
        axis = wall % 2
        low, high = self.inside.span(axis)
        half = model.width / 2
        if at - half < low + 0.02 or at + half > high - 0.02:
            return False
        for opening, window_margin in self.openings_of_wall(wall):
            reach = half + opening.width / 2 + (window_margin if opening.kind == "window" and margin > 0 else margin)
            if abs(at - opening.centre) < reach and bottom < opening.top and top > opening.bottom:
                return False
        rect = self.wall_rect(wall, (at - half, at + half), (0.0, model.depth + _BACK))
        if any(rect.overlaps(r) and bottom < z1 + 0.02 and top > z0 for r, z0, z1 in self._bodies):
            return False
        middle = self.wall_rect(wall, (at, at), (_BACK / 2 + model.depth / 2,) * 2)
        self.placements.append(Placement(model, middle.x0, middle.y0, WALL_YAW[wall], bottom))
        self._bodies.append((rect, bottom, top))
        if bottom < ROBOT_HEIGHT:
            self._mark(self.placements[-1], 1)
        return True

    def lay(self, model: ObjectModel, x: float, y: float, yaw: float) -> bool:
        """Lays a rug, shifted to stay inside and clear of doorsteps' frames; False if it does not fit."""
        rect, i = footprint(model.width, model.depth, x, y, yaw), self.inside
        dx = max(i.x0 + 0.05 - rect.x0, 0.0) - max(rect.x1 - i.x1 + 0.05, 0.0)
        dy = max(i.y0 + 0.05 - rect.y0, 0.0) - max(rect.y1 - i.y1 + 0.05, 0.0)
        rect = footprint(model.width, model.depth, x + dx, y + dy, yaw)
        if rect.x0 < i.x0 or rect.y0 < i.y0 or rect.x1 > i.x1 or rect.y1 > i.y1:
            return False
        self.placements.append(Placement(model, x + dx, y + dy, yaw))
        return True

    def block(self, rect: Footprint, height: float) -> bool:
        """Takes a rectangle for something solid of the building, such as an open door leaf, if a robot still passes."""
        middle = (rect.x0 + rect.x1) / 2, (rect.y0 + rect.y1) / 2
        half = (rect.x1 - rect.x0) / 2, (rect.y1 - rect.y0) / 2
        self._mark_rect(*middle, *half, 0.0, 1)
        if not self._is_passable():
            self._mark_rect(*middle, *half, 0.0, -1)
            return False
        self._bodies.append((rect, 0.0, height))
        return True

    def _mark(self, p: Placement, change: int) -> None:
        self._mark_rect(p.x, p.y, p.model.width / 2, p.model.depth / 2, p.yaw, change)

    def _mark_rect(self, x: float, y: float, half_x: float, half_y: float, yaw: float, change: int) -> None:
        position = x - self._origin[0], y - self._origin[1]
        _mark(self._blockers, *position, half_x, half_y, np.cos(yaw), np.sin(yaw), BODY_RADIUS, CELL, change)

    def _is_passable(self) -> bool:
        """Whether a robot gets from each door to each other and to much of the room."""
        if not self._doors:
            return True
        reached = flood(self._blockers, *self._doors[0])
        return all(reached[door] for door in self._doors) and float(reached.sum()) >= self._wanted


@njit(cache=True, nogil=True)
def _mark(
    blockers: np.ndarray, x: float, y: float, half_x: float, half_y: float, cos: float, sin: float,
    radius: float, cell: float, change: int,
) -> None:  # fmt: skip
    """Adds `change` to all cells nearer than `radius` to a turned rectangle; (x, y) from the raster's corner."""
    reach = np.hypot(half_x, half_y) + radius
    for i in range(max(0, int((x - reach) / cell)), min(blockers.shape[0], int((x + reach) / cell) + 1)):
        for j in range(max(0, int((y - reach) / cell)), min(blockers.shape[1], int((y + reach) / cell) + 1)):
            dx, dy = (i + 0.5) * cell - x, (j + 0.5) * cell - y
            across = max(abs(cos * dx + sin * dy) - half_x, 0.0)
            along = max(abs(-sin * dx + cos * dy) - half_y, 0.0)
            if across * across + along * along < radius * radius:
                blockers[i, j] += change


@njit(cache=True, nogil=True)
def flood(blockers: np.ndarray, row: int, column: int) -> np.ndarray:
    """Cells that can be reached from one cell over cells that nothing blocks.

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
            a, b = i + di, j + dj
            if 0 <= a < blockers.shape[0] and 0 <= b < blockers.shape[1] and blockers[a, b] == 0 and not reached[a, b]:
                reached[a, b] = True
                stack[count] = a, b
                count += 1
    return reached
