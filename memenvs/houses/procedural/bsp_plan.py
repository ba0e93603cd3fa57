"""Floor plans of SUNCG's openness: a rectangle cut in two again and again, most rooms joined by wide openings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memenvs.checks import check_fields
from memenvs.houses.procedural.floor_plan import (
    DOOR_HEIGHT,
    FRAME,
    GRID,
    FloorPlan,
    Opening,
    PlanRoom,
    Rectangle,
    WallSegment,
    add_outer_openings,
    find_wall_segments,
)

#: A home of n rooms has the first n of these.
ROOM_ORDER = (
    "living_room", "bedroom", "kitchen", "bedroom", "bathroom", "dining_room", "bedroom", "study",
    "bathroom", "other", "bedroom", "hallway", "study", "other", "bedroom", "hallway",
)  # fmt: skip
#: These take the smallest rooms.
SMALL_TYPES = ("bathroom", "other", "hallway")

DOOR_WIDTH = 0.95  # m; clear
PASSAGE_WIDTH = 1.4, 2.4  # m
_WALL_BESIDE = 0.5  # m; what a shared wall must be longer than the opening in it
_ASPECT = 1.7  # the largest, of the whole floor
_SQUARE = 1.15  # rooms no longer than this, in widths, are cut across either side
_STOP = 0.7, 1.5  # a room is not cut below `room_area` times a draw from this range
_CUT = 0.35, 0.65  # where a room is cut, in parts of its length
_SHORTEST_CUT_SIDE = 6.0  # m; no shorter side is cut
_SMALLEST_SIDE = 3.0  # m; of a room


@dataclass(frozen=True, kw_only=True)
class BSPConfig:
    """Settings of floor plans that are made by cutting.

    Attributes:
        median_area: Median of the floor area, square metres; > 0.
        area_spread: Standard deviation of the logarithm of the floor area; >= 0.
        room_area: Rooms are cut while they are larger than about this, square metres; > 0. Rooms have about 0.75 times as much.

    Source:
        Scene Memory Transformer: none published (its SUNCG houses were withdrawn). The numbers make a random policy walk, collide and
        discover as in the article's Table 1.
    """

    median_area: float = 190.0
    area_spread: float = 0.35
    room_area: float = 30.0

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("median_area", "room_area"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be > 0 square metres, got {getattr(self, name)}")
        if self.area_spread < 0:
            raise ValueError(f"area_spread must be at least 0, got {self.area_spread}")


def draw_bsp_plan(
    rng: np.random.Generator,
    settings: BSPConfig,
    *,
    rooms: tuple[int, int],
    area: tuple[float, float],
    passages: float,
    extra_doors: float,
) -> FloorPlan | None:
    """A floor plan made by cutting a rectangle.

    Args:
        rng: Source of chance.
        settings: How large floor and rooms are.
        rooms: Fewest and most rooms; at most 16.
        area: Floor areas outside this range become its ends, square metres.
        passages: Chance that a way between two rooms is a wide opening instead of a door.
        extra_doors: Chance of a way between neighbours that are connected already.

    Returns:
        A plan in which every room can be reached, its smallest corner at the origin; None if this draw has too few or too many rooms
        or a room that shares no wall long enough for a door.
    """
    size = float(np.clip(settings.median_area * np.exp(settings.area_spread * rng.standard_normal()), *area))
    height = np.sqrt(size / rng.uniform(1.0, _ASPECT))
    sides = float(size / height), float(height)
    if rng.random() < 0.5:
        sides = sides[::-1]
    parts = split_rectangle(
        rng, Rectangle((0.0, 0.0), (snap_to_grid(sides[0]), snap_to_grid(sides[1]))), settings.room_area
    )
    if not rooms[0] <= len(parts) <= rooms[1]:
        return None
    named = [PlanRoom(part.low, part.high, name) for name, part in zip(_types(rng, parts), parts, strict=True)]
    inner, outer = find_wall_segments(named)
    openings = draw_doorways(rng, inner, len(named), passages, extra_doors)
    return None if openings is None else FloorPlan(tuple(named), add_outer_openings(rng, named, outer, openings), 0.0)


def snap_to_grid(length: float) -> float:
    """A length rounded to the raster of wall lines, m."""
    return round(length / GRID) * GRID


def split_rectangle(rng: np.random.Generator, part: Rectangle, room_area: float) -> list[Rectangle]:
    """Cuts a rectangle, mostly across its longer side, until the parts are small; for `room_area` see `BSPConfig`."""
    short, long = sorted(part.size)
    if part.area < room_area * rng.uniform(*_STOP) or long < _SHORTEST_CUT_SIDE:
        return [part]
    axis = int(part.size[1] > part.size[0])
    if long < _SQUARE * short:
        axis = int(rng.integers(2))
    length = part.size[axis]
    if length < 2 * _SMALLEST_SIDE:
        return [part]
    share = rng.uniform(*_CUT)
    at = part.low[axis] + snap_to_grid(float(np.clip(share * length, _SMALLEST_SIDE, length - _SMALLEST_SIDE)))
    middle_high = (at, part.high[1]) if axis == 0 else (part.high[0], at)
    middle_low = (at, part.low[1]) if axis == 0 else (part.low[0], at)
    return split_rectangle(rng, Rectangle(part.low, middle_high), room_area) + split_rectangle(
        rng, Rectangle(middle_low, part.high), room_area
    )


def _types(rng: np.random.Generator, parts: list[Rectangle]) -> list[str]:
    """What each part becomes: bathrooms, stores and halls are the smallest, the others anywhere."""
    wanted = ROOM_ORDER[: len(parts)]
    small = [name for name in wanted if name in SMALL_TYPES]
    large = [name for name in wanted if name not in SMALL_TYPES]
    order = [*(small[k] for k in rng.permutation(len(small))), *(large[k] for k in rng.permutation(len(large)))]
    types = [""] * len(parts)
    for name, index in zip(order, np.argsort([part.area for part in parts], kind="stable"), strict=True):
        types[index] = name
    return types


def draw_doorways(
    rng: np.random.Generator, contacts: list[WallSegment], num_rooms: int, passages: float, extra_doors: float
) -> list[Opening] | None:
    """Openings along a random spanning tree of the neighbours, and some more; None if no tree joins all rooms."""
    wide_enough = [c for c in contacts if c.length >= DOOR_WIDTH + 2 * FRAME + _WALL_BESIDE]
    group = list(range(num_rooms))
    openings = []
    for k in rng.permutation(len(wide_enough)):
        a, b = (group[room] for room in wide_enough[k].rooms)
        if a == b and rng.random() >= extra_doors:
            continue
        group = [a if each == b else each for each in group]
        openings.append(_draw_doorway(rng, wide_enough[k], passages))
    return openings if len(set(group)) == 1 else None


def _draw_doorway(rng: np.random.Generator, contact: WallSegment, passages: float) -> Opening:
    """A wide opening, if chance wants it and the wall is long enough, else a door; anywhere along the wall."""
    kind, width, top = "door", DOOR_WIDTH + 2 * FRAME, DOOR_HEIGHT + FRAME
    most = contact.length - _WALL_BESIDE
    if rng.random() < passages and most >= PASSAGE_WIDTH[0]:
        kind, width, top = "passage", rng.uniform(PASSAGE_WIDTH[0], min(PASSAGE_WIDTH[1], most)), 2.3
    reach = (width + _WALL_BESIDE) / 2
    centre = rng.uniform(contact.low + reach, contact.high - reach)
    return Opening(kind, contact.rooms, contact.axis, contact.line, centre, width, 0.0, top)
