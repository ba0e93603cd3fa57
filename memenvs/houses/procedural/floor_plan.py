"""What a floor plan is: rooms as rectangles on a 5 cm raster, the walls that they share, and where these open. No furniture."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

GRID = 0.05  # m; all wall lines lie on multiples of it, so that neighbours can be found by comparing integers
FRAME = 0.04  # m; a door frame's width on each side of the clear opening
DOOR_HEIGHT = 2.05


@dataclass(frozen=True)
class Rectangle:
    """A part of the floor.

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


@dataclass(frozen=True)
class PlanRoom(Rectangle):
    """A rectangular room; its walls' middle lines are the sides.

    Attributes:
        type: One of `memenvs.houses.classes.ROOM_TYPES`.
    """

    type: str


@dataclass(frozen=True)
class Opening:
    """A hole in a wall.

    Attributes:
        kind: "door" (with a frame), "passage" (wide, without one), "entrance" (the closed front door) or "window".
        rooms: Indices of the rooms on both sides; -1 is outside.
        axis: 0 if the wall runs along x, 1 if along y.
        line: The wall's y (axis 0) or x (axis 1), m.
        centre: Middle of the hole along the wall, m.
        width: Width of the hole, m; a door's frame stands inside it.
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
        """Whether one can go through."""
        return self.kind in ("door", "passage")


@dataclass(frozen=True)
class FloorPlan:
    """Rooms and the openings of their walls.

    Attributes:
        rooms: At least two; they do not overlap.
        openings: Doors first, windows last.
        cost: How unusual the way through the home is; lower is better.
    """

    rooms: tuple[PlanRoom, ...]
    openings: tuple[Opening, ...]
    cost: float


@dataclass(frozen=True)
class WallSegment:
    """A piece of wall that two rooms share, or that one room shares with the outside.

    Attributes:
        rooms: Indices of the rooms on both sides; -1 is outside.
        axis: 0 if the wall runs along x, 1 if along y.
        line: The wall's y (axis 0) or x (axis 1), m.
        low: Where the piece begins along the wall, m.
        high: Where it ends, m.
    """

    rooms: tuple[int, int]
    axis: int
    line: float
    low: float
    high: float

    @property
    def length(self) -> float:
        """Of the piece along the wall, m."""
        return self.high - self.low


def find_wall_segments(rooms: list[PlanRoom]) -> tuple[list[WallSegment], list[WallSegment]]:
    """Pieces of wall between two rooms, and pieces between a room and the outside."""
    inner: list[WallSegment] = []
    shared: dict[tuple[int, int, int], list[tuple[float, float]]] = {}
    for (i, a), (j, b) in combinations(enumerate(rooms), 2):
        for axis in (0, 1):
            across = 1 - axis
            low, high = max(a.low[axis], b.low[axis]), min(a.high[axis], b.high[axis])
            if high - low < 0.5 * GRID:
                continue
            if abs(a.high[across] - b.low[across]) < 0.5 * GRID:
                line, end_a, end_b = a.high[across], 1, 0
            elif abs(b.high[across] - a.low[across]) < 0.5 * GRID:
                line, end_a, end_b = a.low[across], 0, 1
            else:
                continue
            inner.append(WallSegment((i, j), axis, line, low, high))
            shared.setdefault((i, axis, end_a), []).append((low, high))
            shared.setdefault((j, axis, end_b), []).append((low, high))
    outer: list[WallSegment] = []
    for i, room in enumerate(rooms):
        for axis in (0, 1):
            for end, line in enumerate((room.low[1 - axis], room.high[1 - axis])):
                at = room.low[axis]
                for low, high in [*sorted(shared.get((i, axis, end), [])), (room.high[axis], room.high[axis])]:
                    if low - at > 0.5 * GRID:
                        outer.append(WallSegment((i, -1), axis, line, at, low))
                    at = max(at, high)
    return inner, outer


def add_outer_openings(
    rng: np.random.Generator, rooms: list[PlanRoom], outer: list[WallSegment], openings: list[Opening]
) -> tuple[Opening, ...]:
    """The openings between rooms, then the front door and the windows, in the pieces of wall to the outside."""
    entrance = _entrance(rng, rooms, outer)
    windows = [opening for c in outer for opening in _windows(rng, rooms[c.rooms[0]].type, c, entrance)]
    return (*openings, *entrance, *windows)


def _entrance(rng: np.random.Generator, rooms: list[PlanRoom], outer: list[WallSegment]) -> list[Opening]:
    """The front door, in a hallway or a living area if these have an outer wall."""
    fits = [contact for contact in outer if contact.length >= 1.4]
    if not fits:
        return []
    rank = {"hallway": 0, "living_room": 1, "dining_room": 2, "kitchen": 2}
    contact = min(fits, key=lambda c: (rank.get(rooms[c.rooms[0]].type, 9), -c.length))
    width = 0.95 + 2 * FRAME
    centre = contact.low + 0.16 + width / 2 if rng.random() < 0.5 else contact.high - 0.16 - width / 2
    return [Opening("entrance", contact.rooms, contact.axis, contact.line, centre, width, 0.0, DOOR_HEIGHT + FRAME)]


def _windows(rng: np.random.Generator, room_type: str, contact: WallSegment, taken: list[Opening]) -> list[Opening]:
    """Windows of one piece of outer wall."""
    low, high = contact.low + 0.35, contact.high - 0.35
    for door in taken:
        if (door.rooms, door.axis, door.line) == (contact.rooms, contact.axis, contact.line):
            if door.centre - low < high - door.centre:
                low = max(low, door.centre + door.width / 2 + 0.3)
            else:
                high = min(high, door.centre - door.width / 2 - 0.3)
    chance = {"bathroom": 0.6, "laundry": 0.4, "hallway": 0.5}.get(room_type, 0.85)
    is_small = room_type in ("bathroom", "laundry")
    if high - low < 0.6 or rng.random() > chance:
        return []
    bottom, top = (1.35, 1.95) if is_small else (0.95, 2.15)
    count = 2 if high - low > 4.2 and not is_small else 1
    step = (high - low) / count
    openings = []
    for k in range(count):
        width = min(step - 0.1, 0.65 if is_small else rng.uniform(1.0, 2.0))
        centre = low + (k + 0.5) * step + 0.5 * (step - 0.1 - width) * rng.uniform(-0.6, 0.6)
        openings.append(Opening("window", contact.rooms, contact.axis, contact.line, centre, width, bottom, top))
    return openings
