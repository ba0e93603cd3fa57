"""Walls of a ProcTHOR house: merge the two sides of each, and cut out doors and windows.

A house file lists every wall twice, once for the room on each side. All sides on one line are sorted into stretches
along which the same sides stand, and each stretch becomes one box, or two where its rooms have different finishes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, MATERIAL_INDEX
from memenvs.houses.house import BOX, Door, Finish, ShapeBuilder

#: Half of a wall's thickness, m. Furniture stays clear of it: ProcTHOR leaves 0.025 m between the line of a wall and
#: furniture. Pictures stand out of it: they begin 0.005 m from the line and are at least 0.016 m deep.
WALL_HALF = 0.02

_SAME_LINE = 0.01  # m; walls whose lines are nearer than this are one wall
#: m; walls are longer by this at both ends, which closes corners. It is less than WALL_HALF, so that no two faces
#: coincide (z-fighting).
_CORNER_OVERLAP = WALL_HALF - 0.0005

#: Rectangle in a plane: smallest and largest first coordinate, smallest and largest second coordinate, m.
Extents = tuple[float, float, float, float]


@dataclass(frozen=True)
class WallSide:
    """One side of a wall as a house file has it.

    Attributes:
        start: (x, y) of its first corner, m.
        end: (x, y) of its second corner, m.
        height: m.
        room: Index of the room on this side; -1 for the outside.
        is_room_on_left: Whether that room lies to the left of start -> end.
        finish: Material and colour.
        empty: Whether the two rooms are joined here, without a wall.
    """

    start: tuple[float, float]
    end: tuple[float, float]
    height: float
    room: int
    is_room_on_left: bool
    finish: Finish
    empty: bool

    @property
    def length(self) -> float:
        """Length along the floor, m."""
        return float(np.hypot(self.end[0] - self.start[0], self.end[1] - self.start[1]))

    def point(self, along: float) -> tuple[float, float]:
        """(x, y) at a distance from the first corner, m."""
        fraction = along / self.length
        return (
            self.start[0] + fraction * (self.end[0] - self.start[0]),
            self.start[1] + fraction * (self.end[1] - self.start[1]),
        )


@dataclass(frozen=True)
class Hole:
    """A door or window.

    Attributes:
        start: (x, y) of one end on the line of its wall, m.
        end: (x, y) of the other end, m.
        low: Lower edge, m.
        high: Upper edge, m.
    """

    start: tuple[float, float]
    end: tuple[float, float]
    low: float
    high: float


@dataclass
class _WallLine:
    """All wall sides on one line.

    Attributes:
        origin: float64, (2,); a point of the line, m.
        direction: float64, (2,); unit vector.
        sides: The wall sides.
    """

    origin: np.ndarray
    direction: np.ndarray
    sides: list[WallSide] = field(default_factory=list)

    @property
    def normal(self) -> np.ndarray:
        """Unit vector to the left of the direction."""
        return np.array([-self.direction[1], self.direction[0]])

    def along(self, point: Sequence[float]) -> float:
        """Coordinate of a point along the line, m."""
        return float((np.asarray(point) - self.origin) @ self.direction)

    def span(self, start: Sequence[float], end: Sequence[float]) -> tuple[float, float]:
        """Smallest and largest coordinate of two points along the line, m."""
        a, b = self.along(start), self.along(end)
        return min(a, b), max(a, b)

    def contains(self, point: Sequence[float]) -> bool:
        """Test whether a point lies on the line, within 1 cm."""
        return abs(float((np.asarray(point) - self.origin) @ self.normal)) < _SAME_LINE

    def point(self, along: float) -> tuple[float, float]:
        """(x, y) at a coordinate along the line, m."""
        x, y = self.origin + along * self.direction
        return float(x), float(y)


@dataclass(frozen=True)
class _Stretch:
    """A part of one line along which the same sides stand.

    Attributes:
        start: Where it begins along the line, m.
        end: Where it ends, m.
        height: Height of the wall, m.
        left: Finish of the left side; None if no wall stands there.
        right: Finish of the right side; None if no wall stands there.
        rooms: Indices of the rooms to the left and right; -1 is outside.
    """

    start: float
    end: float
    height: float
    left: Finish | None
    right: Finish | None
    rooms: tuple[int, int]


def add_walls(builder: ShapeBuilder, sides: Sequence[WallSide], holes: Sequence[Hole]) -> list[Door]:
    """Add all walls to a house.

    A wall with different finishes on its two sides becomes two boxes, back to back, each half as thick.

    Args:
        builder: Gets the boxes.
        sides: Every side of every wall, those to the outside too.
        holes: Every door and window, once.

    Returns:
        The gaps between rooms where no wall stands, as doors as high as the missing wall.
    """
    gaps: list[Door] = []
    for line in _sort_by_line(sides):
        cuts = [
            (*line.span(hole.start, hole.end), hole.low, hole.high)
            for hole in holes
            if line.contains(hole.start) and line.contains(hole.end)
        ]
        stretches = _find_stretches(line)
        for i, stretch in enumerate(stretches):
            if stretch.left is None or stretch.right is None:
                if min(stretch.rooms) >= 0:
                    opening = door_between(line.point(stretch.start), line.point(stretch.end), stretch.rooms)
                    gaps.append(replace(opening, height=stretch.height))
                continue
            # Walls grow a little beyond their ends, to close corners, unless the next stretch continues them.
            before = stretches[i - 1] if i > 0 else None
            after = stretches[i + 1] if i + 1 < len(stretches) else None
            goes_on_before = before is not None and before.left is not None and before.end == stretch.start
            goes_on_after = after is not None and after.left is not None and after.start == stretch.end
            extents = (
                stretch.start - (0 if goes_on_before else _CORNER_OVERLAP),
                stretch.end + (0 if goes_on_after else _CORNER_OVERLAP),
                0.0,
                stretch.height,
            )
            _add_boxes(builder, line, extents, cuts, stretch.left, stretch.right)
    return gaps


def door_between(start: tuple[float, float], end: tuple[float, float], rooms: tuple[int, int]) -> Door:
    """Make the door, without a height, of an opening between two points, m."""
    (x0, y0), (x1, y1) = start, end
    return Door(rooms, ((x0 + x1) / 2, (y0 + y1) / 2), math.dist(start, end), 0.0, math.atan2(y1 - y0, x1 - x0))


def cut_rectangle(rectangle: Extents, hole: Extents) -> list[Extents]:
    """Cut a hole out of a rectangle.

    Returns:
        Up to four rectangles: left and right of the hole as high as the rectangle, below and above it as wide as the
        hole. Slivers under 0.1 mm are dropped.
    """
    x0, x1, y0, y1 = rectangle
    hole_x0 = max(x0, hole[0])
    hole_x1 = min(x1, hole[1])
    hole_y0 = max(y0, hole[2])
    hole_y1 = min(y1, hole[3])
    if hole_x0 >= hole_x1 or hole_y0 >= hole_y1:
        return [rectangle]
    parts = [
        (x0, hole_x0, y0, y1),
        (hole_x1, x1, y0, y1),
        (hole_x0, hole_x1, y0, hole_y0),
        (hole_x0, hole_x1, hole_y1, y1),
    ]
    return [part for part in parts if part[1] - part[0] > 1e-4 and part[3] - part[2] > 1e-4]


def _sort_by_line(sides: Sequence[WallSide]) -> list[_WallLine]:
    """Sort sides by the line that they lie on."""
    lines: list[_WallLine] = []
    for side in sides:
        line = next((line for line in lines if line.contains(side.start) and line.contains(side.end)), None)
        if line is None:
            origin, end = np.array(side.start), np.array(side.end)
            line = _WallLine(origin, (end - origin) / side.length)
            lines.append(line)
        line.sides.append(side)
    return lines


def _find_stretches(line: _WallLine) -> list[_Stretch]:
    """Stretches of a line along which the same sides stand, in order; equal neighbours are joined."""
    spans = [(*line.span(side.start, side.end), side) for side in line.sides]
    ends = sorted({round(end, 4) for low, high, _ in spans for end in (low, high)})
    stretches: list[_Stretch] = []
    for start, end in itertools.pairwise(ends):
        middle = (start + end) / 2
        present = [side for low, high, side in spans if low < middle < high]
        if end - start < _SAME_LINE or not present:
            continue
        stretch = _make_stretch(line, start, end, present)
        if stretches and _are_joinable(stretches[-1], stretch):
            stretches[-1] = replace(stretch, start=stretches[-1].start)
        else:
            stretches.append(stretch)
    return stretches


def _are_joinable(first: _Stretch, second: _Stretch) -> bool:
    """Test whether two stretches touch and form one wall, or one gap between the same rooms."""
    if first.end != second.start or first.height != second.height:
        return False
    if (first.left, first.right) != (second.left, second.right):
        return False
    return second.left is not None or first.rooms == second.rooms


def _make_stretch(line: _WallLine, start: float, end: float, present: Sequence[WallSide]) -> _Stretch:
    """The stretch along which the sides `present` stand."""
    left = right = None
    for side in present:
        if side.room < 0:
            continue
        is_forward = (np.subtract(side.end, side.start) @ line.direction) > 0
        if side.is_room_on_left == is_forward:
            left = side
        else:
            right = side
    rooms = (-1 if left is None else left.room, -1 if right is None else right.room)
    height = max(side.height for side in present)
    if any(side.empty for side in present):
        return _Stretch(start, end, height, None, None, rooms)
    visible = left or right or present[0]  # the outside of a wall is never seen: it gets the finish of the inside
    return _Stretch(start, end, height, (left or visible).finish, (right or visible).finish, rooms)


def _add_boxes(
    builder: ShapeBuilder, line: _WallLine, extents: Extents, cuts: Sequence[Extents], left: Finish, right: Finish
) -> None:
    """Add the boxes of one stretch, given by its extents along the line and up, without its holes."""
    parts = [extents]
    for cut in cuts:
        parts = [rest for part in parts for rest in cut_rectangle(part, cut)]
    layers = [(0.0, WALL_HALF, left)]  # offset to the left, half thickness, finish
    if left != right:
        layers = [(WALL_HALF / 2, WALL_HALF / 2, left), (-WALL_HALF / 2, WALL_HALF / 2, right)]
    yaw = float(np.arctan2(line.direction[1], line.direction[0]))
    for low, high, bottom, top in parts:
        half_length = (high - low) / 2
        half_height = (top - bottom) / 2
        for offset, half_thickness, finish in layers:
            x, y = line.origin + (low + high) / 2 * line.direction + offset * line.normal
            builder.add(
                BOX,
                (float(x), float(y), (bottom + top) / 2),
                (half_length, half_thickness, half_height),
                yaw=yaw,
                material=MATERIAL_INDEX[finish.material],
                colour=finish.colour,
                semantic=CLASS_INDEX["wall"],
            )
