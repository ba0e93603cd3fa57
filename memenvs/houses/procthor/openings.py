"""Doors and windows of ProcTHOR's houses: holes in walls, and what fills them."""

from __future__ import annotations

import math
from dataclasses import replace

from memenvs.houses.house import Colour, Door, Finish, ShapeBuilder
from memenvs.houses.procthor.asset_model import DARK_METAL, WHITE, AssetModel
from memenvs.houses.procthor.walls import Hole, WallSide, door_between
from memenvs.json_records import Field

DOOR_FRAME = 0.05  # m; width of a door's frame inside its hole
WINDOW_FRAME = 0.04  # m
FRAME_DEPTH = 0.1  # m; of both, through the wall
TOLERANCE = 0.01  # m; of the coordinates in a file: corners of walls below this stand on the floor, for example
_DOOR_COLOURS = ((226, 222, 212), (148, 104, 66), (110, 76, 52))


def lookup_room(field: Field, room_index: dict[str, int]) -> int:
    """Return the index of a room.

    Args:
        field: Its id.
        room_index: Index of each room by its id.

    Raises:
        ValueError: There is no such room.
    """
    if field.text() not in room_index:
        raise field.error(f"the id of one of the rooms {sorted(room_index)}")
    return room_index[field.text()]


def read_hole(field: Field, walls: dict[str, WallSide]) -> Hole:
    """Read the hole of a door or window.

    `holePolygon` has two opposite corners, in metres: x is along `wall0` from its first corner, y is up from the floor.

    Args:
        field: The door or window.
        walls: Sides of walls by their id.

    Raises:
        ValueError: Its wall is unknown, or the hole is too small or not within its wall.
    """
    if field["wall0"].text() not in walls:
        raise field["wall0"].error("the id of one of the walls")
    wall = walls[field["wall0"].text()]
    corners = field["holePolygon"].items(at_least=2)
    (a, low), (b, high) = corners[0].numbers("xy"), corners[1].numbers("xy")
    a, b = min(a, b), max(a, b)
    low, high = min(low, high), max(low, high)
    if a < -TOLERANCE or b > wall.length + TOLERANCE or low < -TOLERANCE or high > wall.height + TOLERANCE:
        raise field["holePolygon"].error(f"within its wall of {wall.length:.3f} by {wall.height:.3f} m")
    if b - a < 3 * DOOR_FRAME or high - low < 3 * DOOR_FRAME:
        raise field["holePolygon"].error(f"at least {3 * DOOR_FRAME:.2f} m wide and high")
    return Hole(wall.point(a), wall.point(b), max(0.0, low), min(high, wall.height))


def read_door(field: Field, hole: Hole, room_index: dict[str, int]) -> Door:
    """Read a door: the clear opening inside its frame.

    Args:
        field: The door.
        hole: Its hole.
        room_index: Index of each room by its id.

    Raises:
        ValueError: It has no room, or one that is unknown.
    """
    # ProcTHOR names the one room of a front door twice; Holodeck calls the other "exterior", on either side.
    fields = [room for key in ("room0", "room1") if (room := field.get(key)) is not None and room.value != "exterior"]
    if not fields:
        raise ValueError(f"{field.source}: {field.path} must have a room0 or room1 that is a room")
    first, second = (lookup_room(room, room_index) for room in (fields[0], fields[-1]))
    walls = [wall.text() for key in ("wall0", "wall1") if (wall := field.get(key)) is not None]
    if first == second or any("exterior" in wall for wall in walls):
        second = -1
    opening = door_between(hole.start, hole.end, (first, second))
    return replace(opening, width=opening.width - 2 * DOOR_FRAME, height=hole.high - DOOR_FRAME)


def _make_model(hole: Hole, name: str, colour: Colour) -> AssetModel:
    """Make the empty model of a door or window: x along the wall, y through it, z up from the hole's lower edge."""
    size = (math.dist(hole.start, hole.end), FRAME_DEPTH, hole.high - hole.low)
    return AssetModel(name, size, Finish("ceramic", colour))


def _build(asset: AssetModel, builder: ShapeBuilder, hole: Hole, instances: list[str]) -> None:
    """Put the model of a door or window into its hole."""
    (x0, y0), (x1, y1) = hole.start, hole.end
    bottom = (hole.low + hole.high) / 2 - asset.height / 2
    asset.build(builder, instances, ((x0 + x1) / 2, (y0 + y1) / 2), math.atan2(y1 - y0, x1 - x0), bottom)


def _add_frame(asset: AssetModel, width: float, *, with_sill: bool) -> None:
    """Add a frame along the edges of a hole."""
    low = width if with_sill else 0.0
    for x in asset.x_sides(width):
        asset.box(x, asset.y_span, (low, asset.height - width))
    asset.box(asset.x_span, asset.y_span, (asset.height - width, asset.height))
    if with_sill:
        asset.box(asset.x_span, asset.y_span, (0, width))


def add_door(builder: ShapeBuilder, hole: Hole, instances: list[str], *, is_closed: bool) -> None:
    """Add the shapes of a door: its frame, and its panel with a handle if it is closed.

    Args:
        builder: Shapes of the house.
        hole: The hole of the door.
        instances: Names of the instances of the house; the door is appended.
        is_closed: False for a frame alone.
    """
    asset = _make_model(hole, "door", _DOOR_COLOURS[len(instances) % len(_DOOR_COLOURS)])
    _add_frame(asset, DOOR_FRAME, with_sill=False)
    if is_closed:
        half = asset.width / 2 - DOOR_FRAME
        asset.box((-half, half), (-0.025, 0.025), (0, asset.height - DOOR_FRAME), asset.shade(0.95, "wood"))
        asset.box((half - 0.16, half - 0.05), (-0.045, 0.045), (1.0, 1.03), DARK_METAL)
    _build(asset, builder, hole, instances)


def add_window(builder: ShapeBuilder, hole: Hole, instances: list[str]) -> None:
    """Add a pane of glass in a frame; args as in `add_door`."""
    asset = _make_model(hole, "window", WHITE)
    _add_frame(asset, WINDOW_FRAME, with_sill=True)
    pane = Finish("glass", (206, 224, 232))
    asset.box(asset.x_inside(WINDOW_FRAME), (-0.005, 0.005), (WINDOW_FRAME, asset.height - WINDOW_FRAME), pane)
    _build(asset, builder, hole, instances)
