"""Shapes of a furnished floor plan: walls, doors, windows and furniture.

A wall is given by its axis: 0 if it runs along x, 1 if along y. Extents *along* it are coordinates on that axis,
extents *across* it on the other one. Each room has walls 0 to 3: at small y, small x, large y, large x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, MATERIAL_INDEX
from memenvs.houses.house import BOX, ELLIPSOID, Colour, Door, Finish, House, Receptacle, Room, ShapeBuilder, Span
from memenvs.houses.procedural.finishes import (
    BRASS,
    CARPET_FLOORS,
    DOOR_WOODS,
    DRY_WALLS,
    ENTRANCE_WOOD,
    TILE_FLOORS,
    WET_WALLS,
    WHITE,
    WOOD_FLOORS,
    pick_finish,
    shade,
)
from memenvs.houses.procedural.floor_plan import (
    DOOR_HEIGHT,
    FRAME_WIDTH,
    WALL_HEIGHT,
    WALL_THICKNESS,
    FloorPlan,
    Opening,
    PlanRoom,
)
from memenvs.houses.procedural.furniture_groups import Footprint
from memenvs.houses.procedural.placement import RoomPlacer

_LEAF_THICKNESS = 0.04  # m
_LEAF_ROOMS = ("bedroom", "bathroom", "study", "laundry")  # doors open into these


@dataclass(frozen=True)
class DoorLeaf:
    """An open door leaf that rests flat against a wall.

    Attributes:
        footprint: Its outline with the knob, m.
        wall: The wall that it rests against, 0 to 3.
        knob: Coordinate of the knob along the wall, m.
    """

    footprint: Footprint
    wall: int
    knob: float


def build_house(
    rng: np.random.Generator,
    name: str,
    plan: FloorPlan,
    placers: Sequence[RoomPlacer],
    leaves: dict[int, DoorLeaf],
) -> House:
    """Make the shapes of walls, doors, windows and furniture.

    Args:
        rng: Random generator; draws the finishes of floors and walls.
        name: Name of the house.
        plan: The floor plan.
        placers: The furnished rooms, in the order of the plan.
        leaves: Open door leaves by the index of their opening.
    """
    builder = ShapeBuilder()
    names = ["building"]
    wood_floor = pick_finish(rng, WOOD_FLOORS)
    main_wall = pick_finish(rng, DRY_WALLS)
    door_wood = DOOR_WOODS[int(rng.integers(len(DOOR_WOODS)))]
    rooms = []
    for room, placer in zip(plan.rooms, placers, strict=True):
        has_tiles = room.type in ("bathroom", "laundry", "kitchen")
        floor = pick_finish(rng, TILE_FLOORS) if has_tiles else wood_floor
        if room.type == "bedroom" and rng.random() < 0.4:
            floor = pick_finish(rng, CARPET_FLOORS)
        wall = main_wall if rng.random() < 0.4 else pick_finish(rng, DRY_WALLS)
        if room.type == "bathroom":
            wall = pick_finish(rng, WET_WALLS)
        add_walls(builder, room, placer, wall)
        (x0, y0), (x1, y1) = room.low, room.high
        polygon = np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])
        rooms.append(Room(room.type, polygon, MATERIAL_INDEX[floor.material], floor.colour))
    for index, opening in enumerate(plan.openings):
        if opening.kind == "passage":
            continue
        instance = len(names)
        names.append(f"{'window' if opening.kind == 'window' else 'door'}|{instance}")
        placer = placers[opening.rooms[0]]
        if opening.kind == "door":
            add_door(builder, opening, door_wood, leaves.get(index), instance)
        elif opening.kind == "entrance":
            add_entrance(builder, opening, placer, ENTRANCE_WOOD, instance)
        else:
            add_window(builder, opening, placer, instance)
    receptacles: list[Receptacle] = []
    for placer in placers:
        for model, x, y, yaw, z in placer.placements:
            receptacles += model.build(builder, names, (x, y), yaw, z)
    doors = tuple(_clear_opening(opening) for opening in plan.openings if opening.is_walkable)
    return House(name, builder.build(), tuple(rooms), doors, tuple(receptacles), tuple(names), WALL_HEIGHT)


def _clear_opening(opening: Opening) -> Door:
    """The door of an opening: what its frame leaves free."""
    centre = (opening.centre, opening.line) if opening.axis == 0 else (opening.line, opening.centre)
    frame = FRAME_WIDTH if opening.kind == "door" else 0.0
    return Door(opening.rooms, centre, opening.width - 2 * frame, opening.top - frame, opening.axis * np.pi / 2)


def span_box(
    builder: ShapeBuilder,
    axis: int,
    along: Span,
    across: Span,
    z: Span,
    finish: Finish,
    semantic: str,
    instance: int = 0,
) -> None:
    """Add a box by its extents along and across a wall; none if it is flat."""
    if along[1] - along[0] < 1e-6 or z[1] - z[0] < 1e-6:
        return
    x, y = (along, across) if axis == 0 else (across, along)
    builder.add(
        BOX,
        ((x[0] + x[1]) / 2, (y[0] + y[1]) / 2, (z[0] + z[1]) / 2),
        ((x[1] - x[0]) / 2, (y[1] - y[0]) / 2, (z[1] - z[0]) / 2),
        material=MATERIAL_INDEX[finish.material],
        colour=finish.colour,
        semantic=CLASS_INDEX[semantic],
        instance=instance,
    )


def add_walls(builder: ShapeBuilder, room: PlanRoom, placer: RoomPlacer, finish: Finish) -> None:
    """Add the inner side of a room's four walls, cut around its openings."""
    thickness = placer.inside.x0 - room.low[0]
    for wall in range(4):
        axis = wall % 2
        line = room.low[1 - axis] if wall < 2 else room.high[1 - axis]
        across = (line, line + thickness) if wall < 2 else (line - thickness, line)
        low, high = room.low[axis], room.high[axis]
        if axis == 1:  # the walls along x take the corners
            low, high = low + thickness, high - thickness
        begin = low
        for opening in sorted(placer.openings_of_wall(wall), key=lambda opening: opening.centre):
            hole = opening.centre - opening.width / 2, opening.centre + opening.width / 2
            span_box(builder, axis, (begin, hole[0]), across, (0.0, WALL_HEIGHT), finish, "wall")
            span_box(builder, axis, hole, across, (0.0, opening.bottom), finish, "wall")
            span_box(builder, axis, hole, across, (opening.top, WALL_HEIGHT), finish, "wall")
            begin = hole[1]
        span_box(builder, axis, (begin, high), across, (0.0, WALL_HEIGHT), finish, "wall")


def open_door_leaves(rng: np.random.Generator, plan: FloorPlan, placers: Sequence[RoomPlacer]) -> dict[int, DoorLeaf]:
    """Draw open leaves for some of the doors, and block their places in `placers`.

    Returns:
        Leaves by the index of their opening.
    """
    leaves: dict[int, DoorLeaf] = {}
    for index, opening in enumerate(plan.openings):
        if opening.kind == "door" and rng.random() < 0.75:
            for k in opening.rooms:
                leaf = _open_leaf(rng, opening, placers[k])
                if leaf is not None:
                    leaves[index] = leaf
                    break
    return leaves


def _open_leaf(rng: np.random.Generator, opening: Opening, placer: RoomPlacer) -> DoorLeaf | None:
    """Find a place for the fully opened leaf of a door in one of its two rooms, and block it; None if there is none."""
    if placer.room.type not in _LEAF_ROOMS:
        return None
    wall = next(w for w in range(4) if any(o is opening for o in placer.openings_of_wall(w)))
    width = opening.width - 2 * FRAME_WIDTH
    low, high = placer.inside.span(wall % 2)
    for side in rng.permutation([-1, 1]):
        hinge = opening.centre + side * (opening.width / 2 + 0.01)
        span = (hinge, hinge + width) if side > 0 else (hinge - width, hinge)
        if span[0] < low + 0.01 or span[1] > high - 0.01:
            continue
        others = [o for o in placer.openings_of_wall(wall) if o is not opening and o.bottom < DOOR_HEIGHT]
        if any(abs(o.centre - sum(span) / 2) < (o.width + width) / 2 + 0.02 for o in others):
            continue
        footprint = placer.beside_wall(wall, span, (0.014, 0.014 + _LEAF_THICKNESS + 0.05))
        doors = [o for o in placer.openings if o.kind != "window"]
        other_steps = [step for door, step in zip(doors, placer.doorsteps, strict=True) if door is not opening]
        if not any(footprint.overlaps(step) for step in other_steps) and placer.block(footprint, DOOR_HEIGHT):
            knob = span[1] - 0.07 if side > 0 else span[0] + 0.07
            return DoorLeaf(footprint, wall, knob)
    return None


def add_door(builder: ShapeBuilder, opening: Opening, wood: Colour, leaf: DoorLeaf | None, instance: int) -> None:
    """Add a door's frame and, if it has one, its open leaf."""
    finish = Finish("wood", wood)
    axis = opening.axis
    half = WALL_THICKNESS / 2 + 0.012
    across = opening.line - half, opening.line + half
    _add_frame(builder, opening, across, opening.top - FRAME_WIDTH, shade(finish, 0.9), instance)
    if leaf is None:
        return
    along = leaf.footprint.span(axis)
    depth = leaf.footprint.span(1 - axis)
    room_on_high_side = leaf.wall < 2  # whether the room lies on the side of larger coordinates
    front = depth[0] + _LEAF_THICKNESS if room_on_high_side else depth[1] - _LEAF_THICKNESS
    panel = (depth[0], front) if room_on_high_side else (front, depth[1])
    span_box(builder, axis, along, panel, (0.01, DOOR_HEIGHT - 0.01), finish, "door", instance)
    inlay = (front, front + 0.006) if room_on_high_side else (front - 0.006, front)
    for z in ((0.2, 0.9), (1.1, 1.85)):
        span_box(builder, axis, (along[0] + 0.14, along[1] - 0.14), inlay, z, shade(finish, 0.82), "door", instance)
    _add_knob(builder, axis, leaf.knob, front + (0.025 if room_on_high_side else -0.025), instance)


def add_entrance(builder: ShapeBuilder, opening: Opening, placer: RoomPlacer, wood: Colour, instance: int) -> None:
    """Add the closed front door."""
    finish = Finish("wood", wood)
    axis = opening.axis
    across, room_on_high_side = _inner_side(opening, placer)
    _add_frame(builder, opening, across, DOOR_HEIGHT, Finish("wood", WHITE), instance)
    low = opening.centre - opening.width / 2
    high = opening.centre + opening.width / 2
    leaf = (across[0], across[1] - 0.012) if room_on_high_side else (across[0] + 0.012, across[1])
    span_box(builder, axis, (low + FRAME_WIDTH, high - FRAME_WIDTH), leaf, (0.0, DOOR_HEIGHT), finish, "door", instance)
    front = leaf[1] if room_on_high_side else leaf[0]
    inlay = (front, front + 0.005) if room_on_high_side else (front - 0.005, front)
    for z in ((0.2, 0.9), (1.1, 1.85)):
        span_box(builder, axis, (low + 0.2, high - 0.2), inlay, z, shade(finish, 0.8), "door", instance)
    _add_knob(builder, axis, low + 0.12, front + (0.025 if room_on_high_side else -0.025), instance)


def _inner_side(opening: Opening, placer: RoomPlacer) -> tuple[Span, bool]:
    """Extents across an outer wall from its line to the room, and whether the room is on the high side."""
    inner = placer.inside.span(1 - opening.axis)
    room_on_high_side = abs(inner[0] - opening.line) < abs(inner[1] - opening.line)
    return ((opening.line, inner[0]) if room_on_high_side else (inner[1], opening.line)), room_on_high_side


def _add_frame(
    builder: ShapeBuilder, opening: Opening, across: Span, lintel: float, finish: Finish, instance: int
) -> None:
    """Add two posts, and a lintel from the height `lintel` up, inside an opening."""
    axis = opening.axis
    low = opening.centre - opening.width / 2
    high = opening.centre + opening.width / 2
    for along in ((low, low + FRAME_WIDTH), (high - FRAME_WIDTH, high)):
        span_box(builder, axis, along, across, (0.0, opening.top), finish, "door", instance)
    span_box(
        builder, axis, (low + FRAME_WIDTH, high - FRAME_WIDTH), across, (lintel, opening.top), finish, "door", instance
    )


def _add_knob(builder: ShapeBuilder, axis: int, along: float, across: float, instance: int) -> None:
    x, y = (along, across) if axis == 0 else (across, along)
    builder.add(
        ELLIPSOID,
        (x, y, 1.02),
        (0.025, 0.025, 0.025),
        material=MATERIAL_INDEX[BRASS.material],
        colour=BRASS.colour,
        semantic=CLASS_INDEX["door"],
        instance=instance,
    )


def add_window(builder: ShapeBuilder, opening: Opening, placer: RoomPlacer, instance: int) -> None:
    """Add a window's pane and frame."""
    axis = opening.axis
    across, _ = _inner_side(opening, placer)
    low = opening.centre - opening.width / 2
    high = opening.centre + opening.width / 2
    inner = (low + 0.05, high - 0.05)
    bars: list[tuple[Span, Span]] = [  # extents along the wall, and in height
        ((low, low + 0.05), (opening.bottom, opening.top)),
        ((high - 0.05, high), (opening.bottom, opening.top)),
        (inner, (opening.bottom, opening.bottom + 0.05)),
        (inner, (opening.top - 0.05, opening.top)),
    ]
    if opening.width > 0.9:
        bars.append(((opening.centre - 0.025, opening.centre + 0.025), (opening.bottom + 0.05, opening.top - 0.05)))
    for along, z in bars:
        span_box(builder, axis, along, across, z, Finish("plain", WHITE), "window", instance)
    middle = sum(across) / 2
    pane = (middle - 0.008, middle + 0.008)
    z = (opening.bottom + 0.05, opening.top - 0.05)
    span_box(builder, axis, inner, pane, z, Finish("glass", (176, 208, 226)), "window", instance)
