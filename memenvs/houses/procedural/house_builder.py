"""Walls, doors and windows of a floor plan as shapes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, MATERIAL_INDEX
from memenvs.houses.house import BOX, SPHERE, Colour, Finish, ShapeBuilder, Span
from memenvs.houses.procedural.finishes import BRASS, WHITE, darker
from memenvs.houses.procedural.floor_plan import DOOR_HEIGHT, FRAME, Opening, PlanRoom
from memenvs.houses.procedural.placement import Footprint, RoomPlacer

_LEAF = 0.04  # m; thickness of a door leaf
_LEAF_ROOMS = ("bedroom", "bathroom", "study", "laundry")


@dataclass(frozen=True)
class DoorLeaf:
    """An open door leaf that lies flat against a wall.

    Attributes:
        opening: Index of its door among the plan's openings.
        rect: Its outline with the knob, m.
        wall: The wall of the room it lies against; see `memenvs.houses.procedural.placement.WALL_YAW`.
        knob: Where the knob is along the wall, m.
    """

    opening: int
    rect: Footprint
    wall: int
    knob: float


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
    """Adds a box given by its extents along and across a wall along x (axis 0) or y (axis 1); none if flat."""
    if along[1] - along[0] < 1e-6 or z[1] - z[0] < 1e-6:
        return
    a, c = (along, across) if axis == 0 else (across, along)
    builder.add(
        BOX,
        ((a[0] + a[1]) / 2, (c[0] + c[1]) / 2, (z[0] + z[1]) / 2),
        ((a[1] - a[0]) / 2, (c[1] - c[0]) / 2, (z[1] - z[0]) / 2),
        material=MATERIAL_INDEX[finish.material],
        colour=finish.colour,
        semantic=CLASS_INDEX[semantic],
        instance=instance,
    )


def add_walls(builder: ShapeBuilder, room: PlanRoom, placer: RoomPlacer, finish: Finish, height: float) -> None:
    """Adds the inner halves of a room's four walls, cut around its openings."""
    thickness = placer.inside.x0 - room.low[0]
    for wall in range(4):
        axis = wall % 2
        line = room.low[1 - axis] if wall < 2 else room.high[1 - axis]
        across = (line, line + thickness) if wall < 2 else (line - thickness, line)
        low, high = room.low[axis], room.high[axis]
        if axis == 1:
            low, high = low + thickness, high - thickness
        at = low
        for opening, _ in sorted(placer.openings_of_wall(wall), key=lambda pair: pair[0].centre):
            hole = opening.centre - opening.width / 2, opening.centre + opening.width / 2
            span_box(builder, axis, (at, hole[0]), across, (0.0, height), finish, "wall")
            span_box(builder, axis, hole, across, (0.0, opening.bottom), finish, "wall")
            span_box(builder, axis, hole, across, (opening.top, height), finish, "wall")
            at = hole[1]
        span_box(builder, axis, (at, high), across, (0.0, height), finish, "wall")


def find_door_leaf(rng: np.random.Generator, index: int, opening: Opening, placer: RoomPlacer) -> DoorLeaf | None:
    """Where the leaf of a door can rest, fully opened, in one of its two rooms; None where it cannot."""
    if opening.kind != "door" or placer.room.type not in _LEAF_ROOMS:
        return None
    wall = next(w for w in range(4) if any(o is opening for o, _ in placer.openings_of_wall(w)))
    width = opening.width - 2 * FRAME
    low, high = placer.inside.span(wall % 2)
    for side in rng.permutation([-1, 1]):
        hinge = opening.centre + side * (opening.width / 2 + 0.01)
        span = (hinge, hinge + width) if side > 0 else (hinge - width, hinge)
        if span[0] < low + 0.01 or span[1] > high - 0.01:
            continue
        others = [o for o, _ in placer.openings_of_wall(wall) if o is not opening and o.bottom < DOOR_HEIGHT]
        if any(abs(o.centre - sum(span) / 2) < (o.width + width) / 2 + 0.02 for o in others):
            continue
        rect = placer.wall_rect(wall, span, (0.014, 0.014 + _LEAF + 0.05))
        doors = [o for o in placer.openings if o.kind != "window"]
        steps = [step for door, step in zip(doors, placer.doorsteps, strict=True) if door is not opening]
        if not any(rect.overlaps(step) for step in steps) and placer.block(rect, DOOR_HEIGHT):
            return DoorLeaf(index, rect, wall, span[1] - 0.07 if side > 0 else span[0] + 0.07)
    return None


def add_door(
    builder: ShapeBuilder, opening: Opening, wood: Colour, wall_thickness: float, leaf: DoorLeaf | None, instance: int
) -> None:
    """Adds a door's frame and, if it has one, its open leaf."""
    finish = Finish("wood", wood)
    axis, half = opening.axis, wall_thickness / 2 + 0.012
    across = opening.line - half, opening.line + half
    low, high = opening.centre - opening.width / 2, opening.centre + opening.width / 2
    frame = darker(finish, 0.9)
    for along in ((low, low + FRAME), (high - FRAME, high)):
        span_box(builder, axis, along, across, (0.0, opening.top), frame, "door", instance)
    span_box(
        builder, axis, (low + FRAME, high - FRAME), across, (opening.top - FRAME, opening.top), frame, "door", instance
    )
    if leaf is None:
        return
    along, depth = leaf.rect.span(axis), leaf.rect.span(1 - axis)
    inward = leaf.wall < 2  # whether the room lies on the side of larger coordinates
    front = depth[0] + _LEAF if inward else depth[1] - _LEAF
    panel = (depth[0], front) if inward else (front, depth[1])
    span_box(builder, axis, along, panel, (0.01, DOOR_HEIGHT - 0.01), finish, "door", instance)
    inlay = (front, front + 0.006) if inward else (front - 0.006, front)
    for z in ((0.2, 0.9), (1.1, 1.85)):
        span_box(builder, axis, (along[0] + 0.14, along[1] - 0.14), inlay, z, darker(finish, 0.82), "door", instance)
    _add_knob(builder, axis, leaf.knob, front + (0.025 if inward else -0.025), instance)


def add_entrance(builder: ShapeBuilder, opening: Opening, placer: RoomPlacer, colour: Colour, instance: int) -> None:
    """Adds the closed front door."""
    finish = Finish("wood", colour)
    inner = placer.inside.span(1 - opening.axis)
    inward = abs(inner[0] - opening.line) < abs(inner[1] - opening.line)
    face = inner[0] if inward else inner[1]
    across = (opening.line, face) if inward else (face, opening.line)
    low, high = opening.centre - opening.width / 2, opening.centre + opening.width / 2
    axis, white = opening.axis, Finish("wood", WHITE)
    span_box(builder, axis, (low, low + FRAME), across, (0.0, opening.top), white, "door", instance)
    span_box(builder, axis, (high - FRAME, high), across, (0.0, opening.top), white, "door", instance)
    span_box(builder, axis, (low + FRAME, high - FRAME), across, (DOOR_HEIGHT, opening.top), white, "door", instance)
    leaf = (across[0], across[1] - 0.012) if inward else (across[0] + 0.012, across[1])
    span_box(builder, axis, (low + FRAME, high - FRAME), leaf, (0.0, DOOR_HEIGHT), finish, "door", instance)
    front = leaf[1] if inward else leaf[0]
    inlay = (front, front + 0.005) if inward else (front - 0.005, front)
    for z in ((0.2, 0.9), (1.1, 1.85)):
        span_box(builder, axis, (low + 0.2, high - 0.2), inlay, z, darker(finish, 0.8), "door", instance)
    _add_knob(builder, axis, low + 0.12, front + (0.025 if inward else -0.025), instance)


def _add_knob(builder: ShapeBuilder, axis: int, along: float, across: float, instance: int) -> None:
    x, y = (along, across) if axis == 0 else (across, along)
    builder.add(
        SPHERE, (x, y, 1.02), (0.025, 0.025, 0.025), material=MATERIAL_INDEX[BRASS.material], colour=BRASS.colour,
        semantic=CLASS_INDEX["door"], instance=instance,
    )  # fmt: skip


def add_window(builder: ShapeBuilder, opening: Opening, placer: RoomPlacer, instance: int) -> None:
    """Adds a window's pane and frame."""
    inner = placer.inside.span(1 - opening.axis)
    inward = abs(inner[0] - opening.line) < abs(inner[1] - opening.line)
    face = inner[0] if inward else inner[1]
    across = (opening.line, face) if inward else (face, opening.line)
    low, high = opening.centre - opening.width / 2, opening.centre + opening.width / 2
    middle, axis, white = sum(across) / 2, opening.axis, Finish("plain", WHITE)
    bars = [((low, low + 0.05), (opening.bottom, opening.top)), ((high - 0.05, high), (opening.bottom, opening.top))]
    bars += [
        ((low + 0.05, high - 0.05), z)
        for z in ((opening.bottom, opening.bottom + 0.05), (opening.top - 0.05, opening.top))
    ]
    if opening.width > 0.9:
        bars.append(((opening.centre - 0.025, opening.centre + 0.025), (opening.bottom + 0.05, opening.top - 0.05)))
    for along, z in bars:
        span_box(builder, axis, along, across, z, white, "window", instance)
    glass = Finish("glass", (176, 208, 226))
    z_glass = opening.bottom + 0.05, opening.top - 0.05
    span_box(
        builder, axis, (low + 0.05, high - 0.05), (middle - 0.008, middle + 0.008), z_glass, glass, "window", instance
    )
