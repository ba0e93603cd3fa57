"""Floor plans by binary space partition (BSP), as open as SUNCG's houses.

A rectangle is split in two, and each part again, until the parts are rooms. A random spanning tree joins the rooms,
mostly by wide passages.
"""

from __future__ import annotations

import numpy as np

from memenvs.houses.procedural.floor_plan import (
    DOOR_HEIGHT,
    FRAME_WIDTH,
    GRID_STEP,
    PASSAGE_HEIGHT,
    FloorPlan,
    Opening,
    PlanRoom,
    Rectangle,
    WallSegment,
    add_outer_openings,
    find_wall_segments,
)

#: A house of n rooms has the first n of these, and at least the first two.
ROOM_ORDER = (
    "living_room", "bedroom", "kitchen", "bedroom", "bathroom", "dining_room", "bedroom", "study",
    "bathroom", "other", "bedroom", "hallway", "study", "other", "bedroom", "hallway",
)  # fmt: skip
#: These take the smallest rooms.
SMALL_TYPES = ("bathroom", "other", "hallway")

FEWEST_ROOMS = 2
PASSAGES = 0.7  # probability that two joined rooms have a wide passage instead of a door
_EXTRA_DOORS = 0.15  # probability of an opening between neighbours that are connected already
_MEDIAN_AREA = 190.0  # square metres; of the floor, whose logarithm is normal
_AREA_SPREAD = 0.35  # standard deviation of the logarithm
_AREA = 50.0, 320.0  # square metres; smallest and largest floor, to which a draw is clipped
_ROOM_AREA = 30.0  # square metres; larger parts are split; the mean room has about 0.75 times as much
DOOR_WIDTH = 0.95  # m; clear
PASSAGE_WIDTH = 1.4, 2.4  # m; narrowest and widest
_WALL_BESIDE = 0.5  # m; a shared wall must be this much longer than the opening in it
_MAX_ASPECT = 1.7  # of the whole floor
_SQUARE_ASPECT = 1.15  # rooms up to this aspect are split across either side, others across the longer one
_STOP_FACTOR = 0.7, 1.5  # a part is not split below `room_area` times a draw from this range
_SPLIT_FRACTION = 0.35, 0.65  # where a part is split, as a fraction of its length
_MIN_SPLIT_LENGTH = 6.0  # m; parts whose longer side is shorter are not split
_MIN_SIDE = 3.0  # m; of a room


def draw_bsp_plan(rng: np.random.Generator) -> FloorPlan | None:
    """Draw a floor plan by splitting a rectangle.

    Returns:
        A plan in which every room can be reached, its smallest corner at the origin; None if this draw has too few or
        too many rooms, or a room that shares no wall long enough for a door.

    Source:
        The numbers were chosen for this project, because SUNCG, in which the Scene Memory Transformer was trained, was
        withdrawn. With them a random policy moves, collides and discovers as much as in Table 1 of its paper.
    """
    # The floor area is log-normal.
    floor_area = float(np.clip(_MEDIAN_AREA * np.exp(_AREA_SPREAD * rng.standard_normal()), *_AREA))
    shorter = np.sqrt(floor_area / rng.uniform(1.0, _MAX_ASPECT))
    sides = float(floor_area / shorter), float(shorter)
    if rng.random() < 0.5:
        sides = sides[::-1]
    floor = Rectangle((0.0, 0.0), (snap_to_grid(sides[0]), snap_to_grid(sides[1])))
    parts = split_rectangle(rng, floor, _ROOM_AREA)
    if not FEWEST_ROOMS <= len(parts) <= len(ROOM_ORDER):
        return None
    types = _draw_types(rng, parts)
    plan_rooms = [PlanRoom(part.low, part.high, name) for name, part in zip(types, parts, strict=True)]
    inner, outer = find_wall_segments(plan_rooms)
    openings = draw_doorways(rng, inner, len(plan_rooms), PASSAGES, _EXTRA_DOORS)
    if openings is None:
        return None
    # Only `wings_plan` compares plans by their cost.
    return FloorPlan(tuple(plan_rooms), add_outer_openings(rng, plan_rooms, outer, openings), cost=0.0)


def snap_to_grid(length: float) -> float:
    """Round a length to the grid of wall lines, m."""
    return round(length / GRID_STEP) * GRID_STEP


def split_rectangle(rng: np.random.Generator, part: Rectangle, room_area: float) -> list[Rectangle]:
    """Split a rectangle, mostly across its longer side, until all parts are small.

    Args:
        rng: Random generator.
        part: The rectangle.
        room_area: Parts are split while they are larger than about this, square metres.
    """
    short, long = sorted(part.size)
    if part.area < room_area * rng.uniform(*_STOP_FACTOR) or long < _MIN_SPLIT_LENGTH:
        return [part]
    axis = int(part.size[1] > part.size[0])
    if long < _SQUARE_ASPECT * short:
        axis = int(rng.integers(2))
    length = part.size[axis]
    if length < 2 * _MIN_SIDE:
        return [part]
    fraction = rng.uniform(*_SPLIT_FRACTION)
    offset = snap_to_grid(float(np.clip(fraction * length, _MIN_SIDE, length - _MIN_SIDE)))
    first, second = part.split(axis, part.low[axis] + offset)
    return split_rectangle(rng, first, room_area) + split_rectangle(rng, second, room_area)


def _draw_types(rng: np.random.Generator, parts: list[Rectangle]) -> list[str]:
    """Draw the type of each part: `SMALL_TYPES` for the smallest parts, the other types in random order."""
    present = ROOM_ORDER[: len(parts)]
    small = [name for name in present if name in SMALL_TYPES]
    large = [name for name in present if name not in SMALL_TYPES]
    order = [*(small[k] for k in rng.permutation(len(small))), *(large[k] for k in rng.permutation(len(large)))]
    types = [""] * len(parts)
    for name, index in zip(order, np.argsort([part.area for part in parts], kind="stable"), strict=True):
        types[index] = name
    return types


def draw_doorways(
    rng: np.random.Generator, walls: list[WallSegment], num_rooms: int, passages: float, extra_doors: float
) -> list[Opening] | None:
    """Draw openings along a random spanning tree of the rooms, and some more.

    Args:
        rng: Random generator.
        walls: Walls between rooms.
        num_rooms: Number of rooms.
        passages: Probability of a wide passage instead of a door, where the wall is long enough.
        extra_doors: Probability of an opening between rooms that are connected already.

    Returns:
        The openings; None if no tree joins all rooms.
    """
    long_enough = [wall for wall in walls if wall.length >= DOOR_WIDTH + 2 * FRAME_WIDTH + _WALL_BESIDE]
    group = list(range(num_rooms))  # rooms of the same number are connected
    openings = []
    for k in rng.permutation(len(long_enough)):
        a, b = (group[room] for room in long_enough[k].rooms)
        if a == b and rng.random() >= extra_doors:
            continue
        group = [a if number == b else number for number in group]
        openings.append(_draw_doorway(rng, long_enough[k], passages))
    return openings if len(set(group)) == 1 else None


def _draw_doorway(rng: np.random.Generator, wall: WallSegment, passages: float) -> Opening:
    """Draw a passage with probability `passages` if the wall is long enough, else a door."""
    kind = "door"
    width = DOOR_WIDTH + 2 * FRAME_WIDTH
    top = DOOR_HEIGHT + FRAME_WIDTH
    max_width = wall.length - _WALL_BESIDE
    if rng.random() < passages and max_width >= PASSAGE_WIDTH[0]:
        kind = "passage"
        width = rng.uniform(PASSAGE_WIDTH[0], min(PASSAGE_WIDTH[1], max_width))
        top = PASSAGE_HEIGHT
    margin = (width + _WALL_BESIDE) / 2
    centre = rng.uniform(wall.low + margin, wall.high - margin)
    return Opening(kind, wall.rooms, wall.axis, wall.line, centre, width, 0.0, top)
