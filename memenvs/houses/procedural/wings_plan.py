"""Floor plans as usual homes have them: living areas, bedrooms along corridors, doors where one would walk."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from memenvs.houses.procedural.floor_plan import (
    DOOR_HEIGHT,
    FRAME,
    GRID,
    FloorPlan,
    Opening,
    PlanRoom,
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

_BASE = ("living_room", "bedroom", "kitchen", "bathroom")
_EXTRAS = (
    ("bedroom", 3.0), ("dining_room", 2.0), ("bathroom", 1.6), ("study", 1.8), ("laundry", 1.0), ("bedroom", 1.6),
    ("bathroom", 0.7), ("bedroom", 0.8), ("study", 0.5),
)  # fmt: skip
_PUBLIC = ("living_room", "kitchen", "dining_room")
_LEAVES = ("bathroom", "laundry")

_TRIES = 120
# How odd it is to walk from one type of room straight into another; missing pairs are `_ODD`.
_ODD = 12.0
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


def draw_wings_plan(
    rng: np.random.Generator, num_rooms: int, area: float, *, passages: float = 0.5, extra_doors: float = 0.3
) -> FloorPlan | None:
    """A floor plan with sensible rooms and doors; the best of several tries.

    Args:
        rng: Source of chance.
        num_rooms: Number of rooms, 2 to 14.
        area: Wanted floor area, square metres; met within some per cent.
        passages: Chance that living areas are joined by a wide passage instead of a door.
        extra_doors: Chance of a door between living areas that are connected already.

    Returns:
        A plan in which every room can be reached, its smallest corner at the origin; None if no plan was found with rooms
        that are wide enough, which is rare unless `area` is small for `num_rooms`.
    """
    best: FloorPlan | None = None
    for _ in range(_TRIES):
        rooms = _arrange(rng, _room_types(rng, num_rooms), area)
        plan = None if rooms is None else _with_openings(rng, rooms, passages, extra_doors)
        if plan is not None and (best is None or plan.cost < best.cost):
            best = plan
        if best is not None and best.cost < 4.2:
            break
    return best


def _room_types(rng: np.random.Generator, num_rooms: int) -> list[str]:
    """Types of all rooms; two or more rooms, up to 14."""
    types = list(_BASE[: min(num_rooms, 4)])
    num_hallways = 0 if num_rooms < 6 else 2 if num_rooms >= 11 and rng.random() < 0.5 else 1
    weights = np.array([weight for _, weight in _EXTRAS])
    keys = rng.exponential(size=len(_EXTRAS)) / weights
    types += [_EXTRAS[i][0] for i in np.argsort(keys)[: num_rooms - len(types) - num_hallways]]
    return types + ["hallway"] * num_hallways


def _arrange(rng: np.random.Generator, types: list[str], area: float) -> list[PlanRoom] | None:
    """Places rooms of these types, or None if one comes out too narrow."""
    num_hallways = types.count("hallway")
    wanted = np.array([TYPICAL_AREA[t] * rng.uniform(0.8, 1.25) for t in types if t != "hallway"])
    corridor = rng.uniform(1.35, 1.65)
    wanted *= max(area - corridor * (5.0 + 1.2 * num_hallways), 0.5 * area) / wanted.sum()
    sized = [(t, float(a)) for t, a in zip([t for t in types if t != "hallway"], wanted, strict=True)]
    if num_hallways == 0:
        height = np.sqrt(area * rng.uniform(0.6, 1.6))
        rooms = _first_wide(lambda: _split(rng, sized, (0.0, 0.0), (area / height, height)))
    else:
        rooms = _with_wings(rng, sized, corridor, num_hallways)
    rooms = _on_raster(rng, rooms, area)
    return rooms if _are_wide(rooms, slack=GRID) else None


def _split(
    rng: np.random.Generator, sized: list[tuple[str, float]], low: tuple[float, float], high: tuple[float, float]
) -> list[PlanRoom]:
    """Cuts a rectangle into rooms whose areas are in proportion to those wanted."""
    if len(sized) == 1:
        return [PlanRoom(low, high, sized[0][0])]
    order = rng.permutation(len(sized))
    num_first = int(rng.integers(1, len(sized)))
    first, second = [sized[i] for i in order[:num_first]], [sized[i] for i in order[num_first:]]
    share = sum(a for _, a in first) / sum(a for _, a in sized)
    sides = high[0] - low[0], high[1] - low[1]
    axis = int(sides[1] > sides[0]) if rng.random() < 0.8 else int(rng.integers(2))
    at = low[axis] + share * sides[axis]
    middle_high = (at, high[1]) if axis == 0 else (high[0], at)
    middle_low = (at, low[1]) if axis == 0 else (low[0], at)
    return _split(rng, first, low, middle_high) + _split(rng, second, middle_low, high)


def _with_wings(
    rng: np.random.Generator, sized: list[tuple[str, float]], corridor: float, num_wings: int
) -> list[PlanRoom]:
    """A public part (living room, kitchen, dining room) and one or two wings of rooms on both sides of a corridor."""
    public = [room for room in sized if room[0] in _PUBLIC]
    private = [room for room in sized if room[0] not in _PUBLIC]
    order = rng.permutation(len(private))
    wings = [[private[i] for i in order[k::num_wings]] for k in range(num_wings)]
    depth = rng.uniform(6.0, 9.5)
    width = sum(a for _, a in public) / depth
    rooms = _first_wide(lambda: _split(rng, public, (0.0, 0.0), (width, depth)))
    for side, wing in zip((1, -1), wings, strict=False):
        rooms += _first_wide(partial(_wing, rng, wing, side, (width, depth), corridor))
    return rooms


def _wing(
    rng: np.random.Generator, sized: list[tuple[str, float]], side: int, public: tuple[float, float], corridor: float
) -> list[PlanRoom]:
    """Two rows of rooms with a corridor between them, to the right (side 1) or left (-1) of a public part of this size."""
    rows: list[list[tuple[str, float]]] = [[], []]
    noise = rng.uniform(0.7, 1.4, len(sized))
    for k in np.argsort([-area * n for (_, area), n in zip(sized, noise, strict=True)]):
        rows[int(sum(a for _, a in rows[0]) > sum(a for _, a in rows[1]))].append(sized[k])
    if rng.random() < 0.5:
        rows.reverse()
    length = sum(a for _, a in sized) / np.clip(public[1] * rng.uniform(0.75, 1.1) - corridor, 4.0, 8.5)
    depths = [sum(a for _, a in row) / length for row in rows]
    bottom = rng.uniform(-0.3, 0.3) + 0.5 * (public[1] - sum(depths) - corridor)
    if abs(bottom) < 0.6:
        bottom = 0.0
    start = public[0] if side == 1 else -length
    low_corridor = bottom + depths[0]
    rooms = [PlanRoom((start, low_corridor), (start + length, low_corridor + corridor), "hallway")]
    for row, low, deep in zip(rows, (bottom, low_corridor + corridor), depths, strict=True):
        x = start
        for i in rng.permutation(len(row)):
            room_type, area = row[i]
            rooms.append(PlanRoom((x, low), (x + area / deep, low + deep), room_type))
            x += area / deep
    return rooms


def _first_wide(make: Callable[[], list[PlanRoom]]) -> list[PlanRoom]:
    """Calls `make` until all its rooms are wide enough, a few times at most; the last result."""
    for _ in range(11):
        rooms = make()
        if _are_wide(rooms, slack=0.0):
            return rooms
    return make()


def _are_wide(rooms: list[PlanRoom], slack: float) -> bool:
    """Whether no room is narrower than its type allows by more than `slack` (m) or much longer than wide."""
    for room in rooms:
        short, long = sorted(room.size)
        if short < SMALLEST_SIDE[room.type] - slack or long > (12.0 if room.type == "hallway" else 2.2) * short:
            return False
    return True


def _on_raster(rng: np.random.Generator, rooms: list[PlanRoom], area: float) -> list[PlanRoom]:
    """Turns and mirrors the plan at random, scales it to an area, moves its smallest corner to the origin, and rounds."""
    corners = np.array([[room.low, room.high] for room in rooms])  # (R, 2, 2): room, low or high, axis
    if rng.random() < 0.5:
        corners = corners[:, :, ::-1]
    for axis in (0, 1):
        if rng.random() < 0.5:
            corners[:, :, axis] = -corners[:, ::-1, axis]
    scale = np.sqrt(area / sum(room.area for room in rooms))
    corners = np.round((corners - corners.min((0, 1))) * scale / GRID) * GRID
    return [
        PlanRoom((float(low[0]), float(low[1])), (float(high[0]), float(high[1])), room.type)
        for room, (low, high) in zip(rooms, corners, strict=True)
    ]


def _with_openings(
    rng: np.random.Generator, rooms: list[PlanRoom], passages: float, extra_doors: float
) -> FloorPlan | None:
    """Doors, front door and windows for these rooms, or None if not all rooms can be connected."""
    inner, outer = find_wall_segments(rooms)
    costs = [_DOOR_COST.get(frozenset(rooms[k].type for k in c.rooms), _ODD) for c in inner]
    group = list(range(len(rooms)))
    degree = [0] * len(rooms)
    openings: list[Opening] = []
    worst = 0.0
    for cost, k in sorted((cost + 0.3 * rng.random(), k) for k, cost in enumerate(costs)):
        contact = inner[k]
        a, b = contact.rooms
        if contact.length < SHORTEST_WALL:
            continue
        if group[a] == group[b]:
            if cost > 1.9 or rooms[a].type in _LEAVES or rooms[b].type in _LEAVES or rng.random() >= extra_doors:
                continue
        else:
            worst = max(worst, cost)
            group = [group[a] if g == group[b] else g for g in group]
        degree[a] += 1
        degree[b] += 1
        openings.append(_doorway(rng, contact, (rooms[a].type, rooms[b].type), passages))
    if len(set(group)) > 1:
        return None
    worst += sum(20.0 for room, d in zip(rooms, degree, strict=True) if room.type in _LEAVES and d > 1)
    return FloorPlan(tuple(rooms), add_outer_openings(rng, rooms, outer, openings), worst)


def _doorway(rng: np.random.Generator, contact: WallSegment, types: tuple[str, str], passages: float) -> Opening:
    """A door near one end of a shared wall, or a wide passage in its middle."""
    if all(t in (*_PUBLIC, "hallway") for t in types) and contact.length > 2.2 and rng.random() < passages:
        width = min(rng.uniform(1.4, 2.4), contact.length - 0.7)
        centre = rng.uniform(contact.low + 0.3 + width / 2, contact.high - 0.3 - width / 2)
        return Opening("passage", contact.rooms, contact.axis, contact.line, centre, width, 0.0, 2.3)
    width = min(rng.uniform(0.92, 1.0) + 2 * FRAME, contact.length - 0.24)
    low, high = contact.low + 0.12 + width / 2, contact.high - 0.12 - width / 2
    draw = rng.random()
    centre = low if draw < 0.35 else high if draw < 0.7 else low + (high - low) * rng.random()
    return Opening("door", contact.rooms, contact.axis, contact.line, centre, width, 0.0, DOOR_HEIGHT + FRAME)
