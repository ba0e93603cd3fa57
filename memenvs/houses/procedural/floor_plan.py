"""Floor plans: rectangular rooms on a 5 cm grid, shared walls, and the openings in them.

`memenvs.houses.procedural.wings_plan` and `bsp_plan` draw floor plans. Furniture comes later.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from memenvs.houses.house import Span

GRID_STEP = 0.05  # m; wall lines lie on multiples of it, so that rooms on both sides of a wall share its line exactly
FRAME_WIDTH = 0.04  # m; a door frame's width on each side of the clear opening
DOOR_HEIGHT = 2.05  # m
PASSAGE_HEIGHT = 2.3  # m
WALL_HEIGHT = 2.7  # m
WALL_THICKNESS = 0.12  # m; of inner walls; only the inner half of outer walls is built


@dataclass(frozen=True)
class Rectangle:
    """A part of the floor, along the axes.

    Attributes:
        low: (x, y) of the smallest corner, m.
        high: (x, y) of the largest corner, m.
    """

    low: tuple[float, float]
    high: tuple[float, float]

    @property
    def size(self) -> tuple[float, float]:
        """Sides along x and y, m."""
        return self.high[0] - self.low[0], self.high[1] - self.low[1]

    @property
    def area(self) -> float:
        """Floor area, square metres."""
        return self.size[0] * self.size[1]

    def split(self, axis: int, at: float) -> tuple[Rectangle, Rectangle]:
        """The parts on both sides of x = `at` (axis 0) or y = `at` (axis 1)."""
        if axis == 0:
            return Rectangle(self.low, (at, self.high[1])), Rectangle((at, self.low[1]), self.high)
        return Rectangle(self.low, (self.high[0], at)), Rectangle((self.low[0], at), self.high)


@dataclass(frozen=True)
class PlanRoom(Rectangle):
    """A rectangular room; its sides are the middle lines of its walls.

    Attributes:
        type: One of `memenvs.houses.classes.ROOM_TYPES`.
    """

    type: str


@dataclass(frozen=True)
class Opening:
    """A door, passage or window in a wall.

    Attributes:
        kind: "door" (with a frame), "passage" (wide, without one), "entrance" (the closed front door) or "window".
        rooms: Indices of the rooms on both sides; -1 is outside.
        axis: 0 if the wall runs along x, 1 if along y.
        line: The wall's y (axis 0) or x (axis 1), m.
        centre: Centre of the opening along the wall, m.
        width: Width of the opening, m; a door's frame stands inside it.
        bottom: Lower edge, m.
        top: Upper edge, m.
    """

    kind: str
    rooms: tuple[int, int]
    axis: int
    line: float
    centre: float
    width: float
    bottom: float
    top: float

    @property
    def is_walkable(self) -> bool:
        """True if a robot can pass through."""
        return self.kind in ("door", "passage")


@dataclass(frozen=True)
class FloorPlan:
    """Rooms and the openings of their walls.

    Attributes:
        rooms: At least two; they do not overlap.
        openings: Doors first, windows last.
        cost: Penalty for unusual connections, such as a bedroom entered from a kitchen; lower is better.
    """

    rooms: tuple[PlanRoom, ...]
    openings: tuple[Opening, ...]
    cost: float


@dataclass(frozen=True)
class WallSegment:
    """A part of a wall line between two rooms, or between a room and the outside.

    Attributes:
        rooms: Indices of the rooms on both sides; -1 is outside.
        axis: 0 if the wall runs along x, 1 if along y.
        line: The wall's y (axis 0) or x (axis 1), m.
        low: Where the segment begins along the wall, m.
        high: Where it ends, m.
    """

    rooms: tuple[int, int]
    axis: int
    line: float
    low: float
    high: float

    @property
    def length(self) -> float:
        """Length along the wall, m."""
        return self.high - self.low


def find_wall_segments(rooms: list[PlanRoom]) -> tuple[list[WallSegment], list[WallSegment]]:
    """Find the walls between rooms, and the walls to the outside.

    Returns:
        inner: Segments between two rooms.
        outer: Segments between a room and the outside.
    """
    inner: list[WallSegment] = []
    #: (room, axis, 0 for its low or 1 for its high side) -> extents of that side that other rooms share
    shared: dict[tuple[int, int, int], list[Span]] = {}
    for (i, a), (j, b) in combinations(enumerate(rooms), 2):
        for axis in (0, 1):
            across = 1 - axis
            low = max(a.low[axis], b.low[axis])
            high = min(a.high[axis], b.high[axis])
            if high - low < 0.5 * GRID_STEP:
                continue
            if abs(a.high[across] - b.low[across]) < 0.5 * GRID_STEP:
                line = a.high[across]
                side_of_a, side_of_b = 1, 0
            elif abs(b.high[across] - a.low[across]) < 0.5 * GRID_STEP:
                line = a.low[across]
                side_of_a, side_of_b = 0, 1
            else:
                continue
            inner.append(WallSegment((i, j), axis, line, low, high))
            shared.setdefault((i, axis, side_of_a), []).append((low, high))
            shared.setdefault((j, axis, side_of_b), []).append((low, high))
    outer: list[WallSegment] = []
    for i, room in enumerate(rooms):
        for axis in (0, 1):
            for side, line in enumerate((room.low[1 - axis], room.high[1 - axis])):
                # What lies between the shared extents, in order, is open to the outside.
                begin = room.low[axis]
                for low, high in [*sorted(shared.get((i, axis, side), [])), (room.high[axis], room.high[axis])]:
                    if low - begin > 0.5 * GRID_STEP:
                        outer.append(WallSegment((i, -1), axis, line, begin, low))
                    begin = max(begin, high)
    return inner, outer


def add_outer_openings(
    rng: np.random.Generator, rooms: list[PlanRoom], outer: list[WallSegment], openings: list[Opening]
) -> tuple[Opening, ...]:
    """Add the front door and the windows to the openings between rooms; doors come first."""
    entrance = _draw_entrance(rng, rooms, outer)
    windows = []
    for segment in outer:
        windows += _draw_windows(rng, rooms[segment.rooms[0]].type, segment, entrance)
    return (*openings, *entrance, *windows)


def _draw_entrance(rng: np.random.Generator, rooms: list[PlanRoom], outer: list[WallSegment]) -> list[Opening]:
    """Draw the front door: in a hallway or a living area if one has an outer wall; none if no wall is long enough."""
    long_enough = [segment for segment in outer if segment.length >= 1.4]
    if not long_enough:
        return []
    rank = {"hallway": 0, "living_room": 1, "dining_room": 2, "kitchen": 2}
    wall = min(long_enough, key=lambda segment: (rank.get(rooms[segment.rooms[0]].type, 9), -segment.length))
    width = 0.95 + 2 * FRAME_WIDTH
    centre = wall.low + 0.16 + width / 2 if rng.random() < 0.5 else wall.high - 0.16 - width / 2
    return [Opening("entrance", wall.rooms, wall.axis, wall.line, centre, width, 0.0, DOOR_HEIGHT + FRAME_WIDTH)]


def _draw_windows(
    rng: np.random.Generator, room_type: str, wall: WallSegment, entrance: list[Opening]
) -> list[Opening]:
    """Draw none, one or two windows of one wall to the outside, beside the front door if it is there. Lengths in m."""
    low = wall.low + 0.35
    high = wall.high - 0.35
    for door in entrance:
        if (door.rooms, door.axis, door.line) == (wall.rooms, wall.axis, wall.line):
            if door.centre - low < high - door.centre:
                low = max(low, door.centre + door.width / 2 + 0.3)
            else:
                high = min(high, door.centre - door.width / 2 - 0.3)
    probability = {"bathroom": 0.6, "laundry": 0.4, "hallway": 0.5}.get(room_type, 0.85)
    is_small = room_type in ("bathroom", "laundry")
    if high - low < 0.6 or rng.random() > probability:
        return []
    bottom, top = (1.35, 1.95) if is_small else (0.95, 2.15)
    count = 2 if high - low > 4.2 and not is_small else 1
    step = (high - low) / count
    openings = []
    for k in range(count):
        width = min(step - 0.1, 0.65 if is_small else rng.uniform(1.0, 2.0))
        centre = low + (k + 0.5) * step + 0.5 * (step - 0.1 - width) * rng.uniform(-0.6, 0.6)
        openings.append(Opening("window", wall.rooms, wall.axis, wall.line, centre, width, bottom, top))
    return openings
