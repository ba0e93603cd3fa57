"""Walls of a ProcTHOR house: both sides of a wall become one, cut around doors and windows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from memenvs.houses.house import Finish

#: Half of a wall's thickness, m: ProcTHOR leaves 0.025 m between the line of a wall and furniture. Pictures, 0.005 m
#: from the line and at least 0.016 m deep, must still stand out of the wall.
WALL_HALF = 0.02

_SAME_LINE = 0.01  # m; walls whose lines are nearer than this are one wall
_OVERLAP = WALL_HALF - 0.0005  # m beyond a wall's end, to close corners; less than WALL_HALF, lest faces coincide

Extents = tuple[float, float, float, float]  # smallest and largest first coordinate, smallest and largest second


@dataclass(frozen=True)
class WallSide:
    """One side of a wall as a house file has it.

    Attributes:
        start: (x, y) of its first corner, m.
        end: (x, y) of its second corner, m.
        height: m.
        room: Index of the room that it looks into; -1 for the outside.
        left: Whether that room lies to the left of start -> end.
        finish: Material and colour.
        empty: Whether no wall stands there.
    """

    start: tuple[float, float]
    end: tuple[float, float]
    height: float
    room: int
    left: bool
    finish: Finish
    empty: bool

    @property
    def length(self) -> float:
        """Length along the floor, m."""
        return float(np.hypot(self.end[0] - self.start[0], self.end[1] - self.start[1]))

    def point(self, along: float) -> tuple[float, float]:
        """(x, y) at a distance from the first corner, m."""
        share = along / self.length
        return (
            self.start[0] + share * (self.end[0] - self.start[0]),
            self.start[1] + share * (self.end[1] - self.start[1]),
        )


@dataclass(frozen=True)
class Hole:
    """A door or window: two points on the floor line of its wall, and the heights between which it is open, m."""

    start: tuple[float, float]
    end: tuple[float, float]
    low: float
    high: float


@dataclass(frozen=True)
class WallBox:
    """A solid part of a wall: (x, y, z) of its centre, half sizes along and across the wall and up, m; yaw, rad."""

    centre: tuple[float, float, float]
    half: tuple[float, float, float]
    yaw: float
    finish: Finish


@dataclass(frozen=True)
class WallGap:
    """A stretch without a wall between two rooms: its two ends, (x, y), and its height, m."""

    rooms: tuple[int, int]
    start: tuple[float, float]
    end: tuple[float, float]
    height: float


@dataclass
class _Line:
    """All wall sides on one line; `direction` and `normal` (to its left) are unit vectors."""

    origin: np.ndarray
    direction: np.ndarray
    sides: list[WallSide] = field(default_factory=list)

    @property
    def normal(self) -> np.ndarray:
        return np.array([-self.direction[1], self.direction[0]])

    def along(self, point: Sequence[float]) -> float:
        return float((np.asarray(point) - self.origin) @ self.direction)

    def span(self, start: Sequence[float], end: Sequence[float]) -> tuple[float, float]:
        a, b = self.along(start), self.along(end)
        return min(a, b), max(a, b)

    def holds(self, point: Sequence[float]) -> bool:
        return abs(float((np.asarray(point) - self.origin) @ self.normal)) < _SAME_LINE

    def at(self, along: float) -> tuple[float, float]:
        x, y = self.origin + along * self.direction
        return float(x), float(y)


@dataclass(frozen=True)
class _Run:
    """A stretch of one line with the same two finishes; both None if no wall stands there."""

    start: float
    end: float
    height: float
    left: Finish | None
    right: Finish | None
    rooms: tuple[int, int]


def build_walls(sides: Sequence[WallSide], holes: Sequence[Hole]) -> tuple[list[WallBox], list[WallGap]]:
    """Boxes of all walls, and the stretches between rooms where none stands.

    A wall whose two rooms see different finishes is two boxes, back to back, each half as thick.

    Args:
        sides: Every side of every wall, those to the outside too.
        holes: Every door and window, once.

    Returns:
        The boxes, and the openings.
    """
    boxes: list[WallBox] = []
    openings: list[WallGap] = []
    for line in _lines(sides):
        cuts = [
            (*line.span(hole.start, hole.end), hole.low, hole.high)
            for hole in holes
            if line.holds(hole.start) and line.holds(hole.end)
        ]
        runs = _runs(line)
        for i, run in enumerate(runs):
            if run.left is None or run.right is None:
                if min(run.rooms) >= 0:
                    openings.append(WallGap(run.rooms, line.at(run.start), line.at(run.end), run.height))
                continue
            before = i > 0 and runs[i - 1].left is not None and runs[i - 1].end == run.start
            after = i + 1 < len(runs) and runs[i + 1].left is not None and runs[i + 1].start == run.end
            start = run.start - (0 if before else _OVERLAP)
            end = run.end + (0 if after else _OVERLAP)
            boxes += _boxes(line, (start, end, 0.0, run.height), cuts, run.left, run.right)
    return boxes, openings


def cut_rectangle(rectangle: Extents, hole: Extents) -> list[Extents]:
    """A rectangle without a hole: up to four, those beside the hole as high as the rectangle itself."""
    a0, a1, b0, b1 = rectangle
    c0, c1, d0, d1 = max(a0, hole[0]), min(a1, hole[1]), max(b0, hole[2]), min(b1, hole[3])
    if c0 >= c1 or d0 >= d1:
        return [rectangle]
    parts = [(a0, c0, b0, b1), (c1, a1, b0, b1), (c0, c1, b0, d0), (c0, c1, d1, b1)]
    return [part for part in parts if part[1] - part[0] > 1e-4 and part[3] - part[2] > 1e-4]


def _lines(sides: Sequence[WallSide]) -> list[_Line]:
    """Sides sorted by the line that they lie on."""
    lines: list[_Line] = []
    for side in sides:
        line = next((line for line in lines if line.holds(side.start) and line.holds(side.end)), None)
        if line is None:
            origin, end = np.array(side.start), np.array(side.end)
            line = _Line(origin, (end - origin) / side.length)
            lines.append(line)
        line.sides.append(side)
    return lines


def _runs(line: _Line) -> list[_Run]:
    """Stretches of a line along which the same sides stand, in order; neighbours that look alike are joined."""
    spans = [(*line.span(side.start, side.end), side) for side in line.sides]
    ends = sorted({round(end, 4) for low, high, _ in spans for end in (low, high)})
    runs: list[_Run] = []
    for start, end in itertools.pairwise(ends):
        middle = (start + end) / 2
        here = [side for low, high, side in spans if low < middle < high]
        if end - start < _SAME_LINE or not here:
            continue
        run = _run(line, start, end, here)
        last = runs[-1] if runs else None
        solid = run.left is not None and last is not None and last.left is not None
        if last is not None and last.end == start and (last.left, last.right, last.height) == (
            run.left, run.right, run.height,
        ) and (solid or last.rooms == run.rooms):  # fmt: skip
            runs[-1] = _Run(last.start, end, run.height, run.left, run.right, run.rooms)
        else:
            runs.append(run)
    return runs


def _run(line: _Line, start: float, end: float, here: Sequence[WallSide]) -> _Run:
    """What stands on one stretch."""
    left = right = None
    for side in here:
        forward = (np.subtract(side.end, side.start) @ line.direction) > 0
        if side.room < 0:
            continue
        if side.left == forward:
            left = side
        else:
            right = side
    rooms = (-1 if left is None else left.room, -1 if right is None else right.room)
    height = max(side.height for side in here)
    if any(side.empty for side in here):
        return _Run(start, end, height, None, None, rooms)
    only = left or right or here[0]  # the outside of a wall is never seen: it is painted like the inside
    return _Run(start, end, height, (left or only).finish, (right or only).finish, rooms)


def _boxes(line: _Line, rectangle: Extents, cuts: Sequence[Extents], left: Finish, right: Finish) -> list[WallBox]:
    """Boxes of one stretch, `rectangle` (along, up), without its holes."""
    parts = [rectangle]
    for cut in cuts:
        parts = [rest for part in parts for rest in cut_rectangle(part, cut)]
    layers = [(0.0, WALL_HALF, left)]
    if left != right:
        layers = [(WALL_HALF / 2, WALL_HALF / 2, left), (-WALL_HALF / 2, WALL_HALF / 2, right)]
    yaw = float(np.arctan2(line.direction[1], line.direction[0]))
    boxes = []
    for a0, a1, z0, z1 in parts:
        for offset, half, finish in layers:
            x, y = line.origin + (a0 + a1) / 2 * line.direction + offset * line.normal
            boxes.append(
                WallBox((float(x), float(y), (z0 + z1) / 2), ((a1 - a0) / 2, half, (z1 - z0) / 2), yaw, finish)
            )
    return boxes
