"""Floor plans of usual houses: living areas, and wings of rooms along a hallway.

Each try lays out rooms of drawn types, then joins neighbours by doors, the most usual connections first. The plan
with the least unusual connections is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

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

SHORTEST_WALL = 1.23  # m; a shared wall must be this long to take a door of at least 0.9 m

#: Usual floor area (square metres) and smallest side (m, between wall lines) of each type of room.
TYPICAL_AREA = {
    "living_room": 24.0, "kitchen": 12.5, "bedroom": 14.0, "bathroom": 6.5, "dining_room": 12.5, "study": 10.0,
    "laundry": 6.0, "hallway": 7.0,
}  # fmt: skip
SMALLEST_SIDE = {
    "living_room": 3.2, "kitchen": 2.5, "bedroom": 2.7, "bathroom": 1.85, "dining_room": 2.8, "study": 2.4,
    "laundry": 1.85, "hallway": 1.2,
}  # fmt: skip

#: Rooms of every house of at least 4 rooms; a smaller one has the first of them.
_BASE = ("living_room", "bedroom", "kitchen", "bathroom")
#: Further rooms and their weights; they are drawn without replacement.
_EXTRAS = (
    ("bedroom", 3.0), ("dining_room", 2.0), ("bathroom", 1.6), ("study", 1.8), ("laundry", 1.0), ("bedroom", 1.6),
    ("bathroom", 0.7), ("bedroom", 0.8), ("study", 0.5),
)  # fmt: skip
_PUBLIC = ("living_room", "kitchen", "dining_room")
_DEAD_ENDS = ("bathroom", "laundry")  # rooms that should have a single door

_PASSAGES = 0.5  # probability that living areas are joined by a wide passage instead of a door
_EXTRA_DOORS = 0.3  # probability of a door between living areas that are connected already
_TRIES = 120  # random plans of which the cheapest is taken
_GOOD_COST = 4.2  # no more tries once a plan costs less
#: Penalty of a door between two types of room; `_UNUSUAL` for pairs that are not listed.
_UNUSUAL = 12.0
_DOOR_COST = {
    frozenset(pair): cost
    for pair, cost in {
        ("hallway", "living_room"): 0.5, ("hallway", "bedroom"): 1.0, ("hallway", "bathroom"): 1.0,
        ("hallway", "study"): 1.0, ("hallway", "laundry"): 1.2, ("hallway", "kitchen"): 1.5,
        ("hallway", "dining_room"): 1.5, ("hallway",): 0.8,
        ("living_room", "kitchen"): 0.6, ("living_room", "dining_room"): 0.4, ("kitchen", "dining_room"): 0.3,
        ("living_room", "bedroom"): 2.0, ("living_room", "study"): 2.0, ("living_room", "bathroom"): 3.0,
        ("living_room", "laundry"): 3.5, ("kitchen", "laundry"): 1.5, ("dining_room", "bedroom"): 4.0,
        ("dining_room", "study"): 3.0, ("dining_room", "bathroom"): 4.5, ("bedroom", "bathroom"): 3.5,
        ("kitchen", "bathroom"): 5.0, ("kitchen", "bedroom"): 5.0, ("bathroom", "laundry"): 5.0,
        ("bedroom", "study"): 5.0, ("kitchen", "study"): 4.5, ("living_room",): 1.0,
    }.items()
}  # fmt: skip
_MAX_EXTRA_COST = 1.9  # a second connection must not be less usual than this
_DEAD_END_COST = 20.0  # of a dead end with more than one door


class _RoomSize(NamedTuple):
    """Type and area of a room that is not laid out yet."""

    type: str
    area: float  # square metres


def draw_wings_plan(rng: np.random.Generator, num_rooms: int, area: float) -> FloorPlan | None:
    """Draw a floor plan with sensible rooms and doors; the best of several tries.

    Args:
        rng: Random generator.
        num_rooms: Number of rooms, 2 to 14.
        area: Target floor area, square metres; met within a few per cent.

    Returns:
        A plan in which every room can be reached, its smallest corner at the origin; None if no plan was found with
        rooms that are wide enough, which is rare unless `area` is small for `num_rooms`.
    """
    best: FloorPlan | None = None
    for _ in range(_TRIES):
        rooms = _lay_out_rooms(rng, _draw_types(rng, num_rooms), area)
        plan = None if rooms is None else _add_openings(rng, rooms)
        if plan is not None and (best is None or plan.cost < best.cost):
            best = plan
        if best is not None and best.cost < _GOOD_COST:
            break
    return best


def _draw_types(rng: np.random.Generator, num_rooms: int) -> list[str]:
    """Draw the types of 2 to 14 rooms; hallways come last."""
    types = list(_BASE[: min(num_rooms, 4)])
    num_hallways = 0
    if num_rooms >= 6:
        num_hallways = 2 if num_rooms >= 11 and rng.random() < 0.5 else 1
    # The smallest of exponential variables over weights is a weighted draw without replacement.
    weights = np.array([weight for _, weight in _EXTRAS])
    keys = rng.exponential(size=len(_EXTRAS)) / weights
    types += [_EXTRAS[i][0] for i in np.argsort(keys)[: num_rooms - len(types) - num_hallways]]
    return types + ["hallway"] * num_hallways


def _lay_out_rooms(rng: np.random.Generator, types: list[str], area: float) -> list[PlanRoom] | None:
    """Place rooms of these types, or None if one comes out too narrow."""
    num_hallways = types.count("hallway")
    others = [name for name in types if name != "hallway"]
    areas = np.array([TYPICAL_AREA[name] * rng.uniform(0.8, 1.25) for name in others])
    corridor_width = rng.uniform(1.35, 1.65)  # m
    # The rooms share what the corridors leave; the length of the corridors is a rough guess, in m. The exact area comes
    # from `_align_to_grid`, which scales the plan.
    areas *= max(area - corridor_width * (5.0 + 1.2 * num_hallways), 0.5 * area) / areas.sum()
    sizes = [_RoomSize(name, float(room_area)) for name, room_area in zip(others, areas, strict=True)]
    if num_hallways == 0:
        depth = np.sqrt(area * rng.uniform(0.6, 1.6))
        floor = Rectangle((0.0, 0.0), (area / depth, depth))
        rooms = _retry_until_wide(lambda: _split_floor(rng, sizes, floor))
    else:
        rooms = _add_wings(rng, sizes, corridor_width, num_hallways)
    rooms = _align_to_grid(rng, rooms, area)
    return rooms if _are_wide(rooms, slack=GRID_STEP) else None


def _split_floor(rng: np.random.Generator, sizes: list[_RoomSize], floor: Rectangle) -> list[PlanRoom]:
    """Split a rectangle into rooms whose areas are in proportion to those given."""
    if len(sizes) == 1:
        return [PlanRoom(floor.low, floor.high, sizes[0].type)]
    order = rng.permutation(len(sizes))
    num_first = int(rng.integers(1, len(sizes)))
    first = [sizes[i] for i in order[:num_first]]
    second = [sizes[i] for i in order[num_first:]]
    fraction = sum(size.area for size in first) / sum(size.area for size in sizes)
    sides = floor.size
    axis = int(sides[1] > sides[0]) if rng.random() < 0.8 else int(rng.integers(2))
    first_part, second_part = floor.split(axis, floor.low[axis] + fraction * sides[axis])
    return _split_floor(rng, first, first_part) + _split_floor(rng, second, second_part)


def _add_wings(
    rng: np.random.Generator, sizes: list[_RoomSize], corridor_width: float, num_wings: int
) -> list[PlanRoom]:
    """A public part (living room, kitchen, dining room) and one or two wings with a corridor each."""
    public = [size for size in sizes if size.type in _PUBLIC]
    private = [size for size in sizes if size.type not in _PUBLIC]
    order = rng.permutation(len(private))
    wings = [[private[i] for i in order[k::num_wings]] for k in range(num_wings)]
    depth = rng.uniform(6.0, 9.5)
    width = sum(size.area for size in public) / depth
    floor = Rectangle((0.0, 0.0), (width, depth))
    rooms = _retry_until_wide(lambda: _split_floor(rng, public, floor))
    for side, wing in zip((1, -1), wings, strict=False):
        rooms += _retry_until_wide(partial(_draw_wing, rng, wing, side, floor, corridor_width))
    return rooms


def _draw_wing(
    rng: np.random.Generator, sizes: list[_RoomSize], side: int, public: Rectangle, corridor_width: float
) -> list[PlanRoom]:
    """Two rows of rooms with a corridor between them, to the right (side 1) or left (-1) of the public part."""
    # Each room, the largest first, goes to the row with the smaller area so far, so that both rows get equally deep.
    rows: list[list[_RoomSize]] = [[], []]
    noise = rng.uniform(0.7, 1.4, len(sizes))
    for k in np.argsort([-size.area * factor for size, factor in zip(sizes, noise, strict=True)]):
        rows[int(sum(size.area for size in rows[0]) > sum(size.area for size in rows[1]))].append(sizes[k])
    if rng.random() < 0.5:
        rows.reverse()
    public_width, public_depth = public.high
    room_depth = np.clip(public_depth * rng.uniform(0.75, 1.1) - corridor_width, 4.0, 8.5)  # of both rows together
    length = sum(size.area for size in sizes) / room_depth
    depths = [sum(size.area for size in row) / length for row in rows]
    bottom = rng.uniform(-0.3, 0.3) + 0.5 * (public_depth - sum(depths) - corridor_width)
    if abs(bottom) < 0.6:
        bottom = 0.0
    start = public_width if side == 1 else -length
    low_corridor = bottom + depths[0]
    rooms = [PlanRoom((start, low_corridor), (start + length, low_corridor + corridor_width), "hallway")]
    for row, low, depth in zip(rows, (bottom, low_corridor + corridor_width), depths, strict=True):
        x = start
        for i in rng.permutation(len(row)):
            width = row[i].area / depth
            rooms.append(PlanRoom((x, low), (x + width, low + depth), row[i].type))
            x += width
    return rooms


def _retry_until_wide(make: Callable[[], list[PlanRoom]]) -> list[PlanRoom]:
    """Call `make` until all its rooms are wide enough, 12 times at most; the last result."""
    for _ in range(11):
        rooms = make()
        if _are_wide(rooms, slack=0.0):
            return rooms
    return make()


def _are_wide(rooms: list[PlanRoom], slack: float) -> bool:
    """False if a room is narrower than its type allows by more than `slack` (m), or much longer than wide."""
    for room in rooms:
        short, long = sorted(room.size)
        max_aspect = 12.0 if room.type == "hallway" else 2.2
        if short < SMALLEST_SIDE[room.type] - slack or long > max_aspect * short:
            return False
    return True


def _align_to_grid(rng: np.random.Generator, rooms: list[PlanRoom], area: float) -> list[PlanRoom]:
    """Rotate and mirror a plan at random, scale it to an area, move its corner to the origin, and round."""
    corners = np.array([[room.low, room.high] for room in rooms])  # (R, 2, 2): room, low or high, axis
    if rng.random() < 0.5:
        corners = corners[:, :, ::-1]
    for axis in (0, 1):
        if rng.random() < 0.5:
            corners[:, :, axis] = -corners[:, ::-1, axis]
    scale = np.sqrt(area / sum(room.area for room in rooms))
    corners = np.round((corners - corners.min((0, 1))) * scale / GRID_STEP) * GRID_STEP
    return [
        PlanRoom((float(low[0]), float(low[1])), (float(high[0]), float(high[1])), room.type)
        for room, (low, high) in zip(rooms, corners, strict=True)
    ]


def _add_openings(rng: np.random.Generator, rooms: list[PlanRoom]) -> FloorPlan | None:
    """Doors, front door and windows for these rooms, or None if not all rooms can be connected.

    Walls are taken in the order of their door's cost, as Kruskal's algorithm does for a minimum spanning tree.
    """
    inner, outer = find_wall_segments(rooms)
    costs = [_DOOR_COST.get(frozenset(rooms[k].type for k in wall.rooms), _UNUSUAL) for wall in inner]
    group = list(range(len(rooms)))  # rooms of the same number are connected
    num_doors = [0] * len(rooms)
    openings: list[Opening] = []
    plan_cost = 0.0  # of the least usual connection that the tree needs
    for cost, k in sorted((cost + 0.3 * rng.random(), k) for k, cost in enumerate(costs)):
        wall = inner[k]
        a, b = wall.rooms
        if wall.length < SHORTEST_WALL:
            continue
        if group[a] == group[b]:
            is_dead_end = rooms[a].type in _DEAD_ENDS or rooms[b].type in _DEAD_ENDS
            if cost > _MAX_EXTRA_COST or is_dead_end or rng.random() >= _EXTRA_DOORS:
                continue
        else:
            plan_cost = max(plan_cost, cost)
            group = [group[a] if number == group[b] else number for number in group]
        num_doors[a] += 1
        num_doors[b] += 1
        openings.append(_draw_doorway(rng, wall, (rooms[a].type, rooms[b].type)))
    if len(set(group)) > 1:
        return None
    plan_cost += sum(
        _DEAD_END_COST for room, doors in zip(rooms, num_doors, strict=True) if room.type in _DEAD_ENDS and doors > 1
    )
    return FloorPlan(tuple(rooms), add_outer_openings(rng, rooms, outer, openings), plan_cost)


def _draw_doorway(rng: np.random.Generator, wall: WallSegment, types: tuple[str, str]) -> Opening:
    """Draw a door, mostly near one end of the wall, or a wide passage between living areas."""
    is_public = all(name in (*_PUBLIC, "hallway") for name in types)
    if is_public and wall.length > 2.2 and rng.random() < _PASSAGES:
        width = min(rng.uniform(1.4, 2.4), wall.length - 0.7)
        centre = rng.uniform(wall.low + 0.3 + width / 2, wall.high - 0.3 - width / 2)
        return Opening("passage", wall.rooms, wall.axis, wall.line, centre, width, 0.0, PASSAGE_HEIGHT)
    width = min(rng.uniform(0.92, 1.0) + 2 * FRAME_WIDTH, wall.length - 0.24)
    low = wall.low + 0.12 + width / 2
    high = wall.high - 0.12 - width / 2
    draw = rng.random()
    if draw < 0.35:
        centre = low
    elif draw < 0.7:
        centre = high
    else:
        centre = low + (high - low) * rng.random()
    return Opening("door", wall.rooms, wall.axis, wall.line, centre, width, 0.0, DOOR_HEIGHT + FRAME_WIDTH)
