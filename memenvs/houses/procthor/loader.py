"""Load houses from files in the JSON format of ProcTHOR-10K.

Those of `memenvs house --json-out` are read too (`memenvs.houses.home_file`).

Unity's y points up and its yaw is clockwise. Our (x, y, z) is Unity's (x, z, y), and our yaw is minus Unity's. Seen
from above, the floor plan is the same.

Source:
    Deitke et al., "ProcTHOR: Large-Scale Embodied AI Using Procedural Generation", 2022; schema 1.0.0 of its houses.
"""

from __future__ import annotations

import math
import operator
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from memenvs.data import find_asset_sizes
from memenvs.houses.classes import MATERIAL_INDEX
from memenvs.houses.home_file import read_house
from memenvs.houses.house import Colour, Door, Finish, House, Room, ShapeBuilder, points_in_polygon, polygon_area
from memenvs.houses.procthor.asset_model import WHITE
from memenvs.houses.procthor.asset_sizes import AssetFinder, AssetSizes, check_unknown_assets
from memenvs.houses.procthor.assets import ROOM_TYPES, surface_finish
from memenvs.houses.procthor.objects import MAX_COORDINATE, add_objects, read_objects
from memenvs.houses.procthor.openings import (
    TOLERANCE,
    add_door,
    add_window,
    lookup_room,
    read_door,
    read_hole,
)
from memenvs.houses.procthor.walls import Hole, WallSide, add_walls
from memenvs.json_records import Field, count_records, each_record, read_record

#: Largest width and depth of a house and largest height and length of a wall, m. A house of this size has four million
#: cells of 5 cm; a plan in centimetres would have ten thousand times as many.
MAX_EXTENT = 100.0
#: Most rooms of a house, corners of a room or wall, sides of walls, doors, and windows.
MAX_ROOMS, MAX_CORNERS, MAX_WALLS, MAX_HOLES = 100, 200, 1000, 500

_MIN_AREA = 0.01  # square metres; a smaller room is an error


def count_procthor(path: str | Path) -> int:
    """Count the houses of a file.

    Args:
        path: A .jsonl or .jsonl.gz file with one house a line, or a .json or .json.gz file with one house or a list.

    Returns:
        Number of records; they are not checked.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file cannot be read.
    """
    return count_records(Path(path))


def max_rooms(path: str | Path) -> int:
    """Find the largest number of rooms that a house of a file has.

    Args:
        path: See `count_procthor`.

    Returns:
        The number; 0 for a file without houses.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file cannot be read, or a house has no list of rooms.
    """
    return max((len(read()["rooms"].items()) for read in each_record(Path(path))), default=0)


def load_procthor(
    path: str | Path, index: int, *, asset_sizes: str | Path | None = None, unknown_assets: str = "class"
) -> House:
    """Load one house of a file.

    Walls are 0.04 m thick; each side has the colour of its room. Doors between rooms stand open, those to the outside
    are closed. A stretch between rooms without a wall counts as a door as high as the missing wall.

    The shapes of an object fill its bounding box. An object that leans by more than 5 degrees is drawn as the upright
    box around it. An object that hovers up to 7 cm above another is set down on it, as physics would do. Each object,
    door and window is an instance. Receptacles are the free rectangles of level surfaces 0.4 to 1.5 m above the floor.

    Args:
        path: See `count_procthor`.
        index: Number of the house in the file, from 0.
        asset_sizes: JSON file, gzip or not: asset id -> {"type": name, "size": [x, y, z] in m}, as `memenvs assets`
            makes it; None for `asset_sizes.json.gz` beside the house file.
        unknown_assets: What to do about objects whose assets have no size there. "class": they get the median size of
            the known assets of their object type, which the object's name or the asset's id gives; without a type, or a
            size for it, they are dropped. "drop": they are left out, with what stands on them. "error": the house is
            refused.

    Returns:
        The house; its name is the file's, without endings, and the index, such as "four_room-7".

    Warns:
        UserWarning: Some assets have no size; the message counts them.

    Raises:
        FileNotFoundError: There is no such file, or no file of asset sizes.
        TypeError: `index` is no integer.
        ValueError: The file cannot be read or has no house `index`; or in that house a key is missing or wrong, a room
            has no area, rooms are not joined, or something is too large or there is too much of it (`MAX_EXTENT` and
            the constants beside it). The message names file, line and key.
    """
    check_unknown_assets(unknown_assets)
    path, index = Path(path), operator.index(index)
    sizes = read_asset_sizes(path, index, asset_sizes)
    house, report = make_house(read_record(path, index), path, index, sizes, unknown_assets)
    if report is not None:
        warnings.warn(report, stacklevel=2)
    return house


def read_asset_sizes(path: Path, index: int, asset_sizes: str | Path | None) -> AssetSizes:
    """Read the sizes of a file's assets.

    A house of `memenvs house --json-out` needs none.

    Args:
        path: The file.
        index: Number of a house in it, which says whether sizes are needed.
        asset_sizes: See `load_procthor`.

    Raises:
        FileNotFoundError: There is no such file, or no file of asset sizes.
        ValueError: See `load_procthor`.
    """
    try:
        return AssetSizes.read(find_asset_sizes(path, asset_sizes))
    except FileNotFoundError:
        if asset_sizes is None and read_record(path, index).get("shapes") is not None:
            return AssetSizes(str(path), {})
        raise


def make_house(
    house: Field, path: Path, index: int, sizes: AssetSizes, unknown_assets: str
) -> tuple[House, str | None]:
    """Make the house of a record that was read before; see `load_procthor`.

    Args:
        house: The record.
        path: Its file.
        index: Its number there.
        sizes: Sizes of assets.
        unknown_assets: See `load_procthor`.

    Returns:
        The house, and a sentence about assets without a size; None if all have one.
    """
    name = f"{path.name.split('.')[0]}-{index}"
    if house.get("shapes") is not None:  # of `memenvs house --json-out`
        made = read_house(house)
        _check_extent(house["rooms"], made.rooms)
        _check_joined(house, len(made.rooms), made.doors)
        return replace(made, name=name), None
    finder = AssetFinder(sizes, unknown_assets)
    room_fields = house["rooms"].items(at_least=1, at_most=MAX_ROOMS)
    rooms = [_read_room(field) for field in room_fields]
    _check_extent(house["rooms"], rooms)
    room_index = {field["id"].text(): i for i, field in enumerate(room_fields)}
    wall_fields = house["walls"].items(at_most=MAX_WALLS)
    walls = {field["id"].text(): _read_wall_side(field, room_index, rooms) for field in wall_fields}
    height = max((wall.height for wall in walls.values()), default=2.7)
    builder, instances = ShapeBuilder(), ["building"]
    doors: list[Door] = []
    holes: list[Hole] = []
    for field in house.optional_items("doors", MAX_HOLES):
        hole = read_hole(field, walls)
        holes.append(hole)
        doors.append(read_door(field, hole, room_index))
        add_door(builder, hole, instances, is_closed=-1 in doors[-1].rooms)
    for field in house.optional_items("windows", MAX_HOLES):
        holes.append(read_hole(field, walls))
        add_window(builder, holes[-1], instances)
    doors += add_walls(builder, [*walls.values(), *_open_sides(house, rooms, height)], holes)
    _check_joined(house, len(rooms), doors)
    receptacles = add_objects(builder, read_objects(house, finder), instances, height)
    loaded = House(name, builder.build(), tuple(rooms), tuple(doors), tuple(receptacles), tuple(instances), height)
    return loaded, finder.report(house.source)


def _read_room(field: Field) -> Room:
    """Read a room; its polygon runs counter-clockwise, without redundant corners."""
    listed = field["floorPolygon"].items(at_least=3, at_most=MAX_CORNERS)
    corners = np.array([corner.numbers("xz", MAX_COORDINATE) for corner in listed])
    corners = _needed_corners(corners)
    if len(corners) < 3 or abs(polygon_area(corners)) < _MIN_AREA or _crosses_itself(corners):
        raise field["floorPolygon"].error(
            f"a polygon that does not cross itself, of at least {_MIN_AREA} square metres"
        )
    if polygon_area(corners) < 0:
        corners = corners[::-1].copy()
    floor = _read_finish(field["floorMaterial"], "planks")
    room_type = ROOM_TYPES.get(re.sub(r"[^a-z]", "", field["roomType"].text().lower()), "other")
    return Room(room_type, corners, MATERIAL_INDEX[floor.material], floor.colour)


def _check_extent(field: Field, rooms: Sequence[Room]) -> None:
    """Raise a ValueError if the rooms are too far from each other for a grid of them."""
    corners = np.concatenate([room.polygon for room in rooms])
    width, depth = (corners.max(0) - corners.min(0)).tolist()
    if max(width, depth) > MAX_EXTENT:
        raise ValueError(
            f"{field.source}: rooms must lie within {MAX_EXTENT:g} by {MAX_EXTENT:g} m, got {width:g} by {depth:g}; "
            "lengths are in metres"
        )


def _open_sides(house: Field, rooms: Sequence[Room], height: float) -> Iterator[WallSide]:
    """Sides where Holodeck leaves a wall out between two rooms; ProcTHOR marks such walls as empty instead."""
    open_walls = house.get("open_walls")
    if open_walls is None or not isinstance(open_walls.value, dict):  # Holodeck writes an empty list for none
        return
    for segment in open_walls.optional_items("segments", MAX_WALLS):
        ends = [[part.number(MAX_COORDINATE) for part in corner.items(2, 2)] for corner in segment.items(2, 2)]
        (x0, y0), (x1, y1) = ends
        length = math.dist(*ends)
        if length < TOLERANCE:
            raise segment.error("two different corners")
        for is_left in (True, False):
            # The room on this side has the point 2 cm beside the segment's middle inside it.
            step = np.array([y0 - y1, x1 - x0]) / length * 2 * TOLERANCE * (1 if is_left else -1)
            beside = (np.array([(x0 + x1) / 2, (y0 + y1) / 2]) + step)[None]
            for i, room in enumerate(rooms):
                if points_in_polygon(beside, room.polygon)[0]:
                    finish = Finish("plaster", WHITE)
                    yield WallSide((x0, y0), (x1, y1), height, i, is_left, finish, empty=True)


def _needed_corners(corners: np.ndarray) -> np.ndarray:
    """Corners (P, 2) without those that are repeated or lie on a straight side."""
    kept = corners[np.linalg.norm(corners - np.roll(corners, 1, 0), axis=1) > 1e-6]
    before, after = kept - np.roll(kept, 1, 0), np.roll(kept, -1, 0) - kept
    return kept[np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]) > 1e-6]


def _crosses_itself(corners: np.ndarray) -> bool:
    """Test whether two sides of a polygon (P, 2) that are no neighbours cross."""

    def side_of(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    count = len(corners)
    for i in range(count):
        for j in range(i + 2, count - (i == 0)):
            a, b, c, d = corners[i], corners[(i + 1) % count], corners[j], corners[(j + 1) % count]
            if side_of(a, b, c) * side_of(a, b, d) < 0 and side_of(c, d, a) * side_of(c, d, b) < 0:
                return True
    return False


def _read_finish(field: Field, default_material: str) -> Finish:
    """Read material and colour of a floor or wall; unknown names get the default material.

    Older houses of AI2-THOR have the name alone, in place of an object with it.
    """
    if isinstance(field.value, str):
        return surface_finish(field.value, None, default_material)
    rgb = field.get("color")
    colour: Colour | None = None
    if rgb is not None:
        red, green, blue = (round(255 * min(1.0, max(0.0, channel))) for channel in rgb.numbers("rgb"))
        colour = red, green, blue
    return surface_finish(field["name"].text(), colour, default_material)


def _read_wall_side(field: Field, room_index: dict[str, int], rooms: Sequence[Room]) -> WallSide:
    """Read one entry of `walls`: the side of a wall that belongs to one room or to the outside."""
    listed = field["polygon"].items(at_least=4, at_most=MAX_CORNERS)
    corners = [corner.numbers("xyz", MAX_COORDINATE) for corner in listed]
    ground = [(x, z) for x, y, z in corners if abs(y) < TOLERANCE]
    height = max(y for _, y, _ in corners)
    if len(ground) != 2 or height < TOLERANCE or math.dist(*ground) < TOLERANCE:
        raise field["polygon"].error("two different corners at y = 0 and two above them")
    if height > MAX_EXTENT or math.dist(*ground) > MAX_EXTENT:
        raise field["polygon"].error(f"at most {MAX_EXTENT:g} m long and high")
    room = -1
    if "exterior" not in field["id"].text():
        room = lookup_room(field["roomId"], room_index)
    start, end = ground
    empty = field.get("empty")
    if empty is not None and not isinstance(empty.value, bool):
        raise empty.error("true or false")
    side = WallSide(
        start=start,
        end=end,
        height=height,
        room=room,
        is_room_on_left=False,
        finish=_read_finish(field["material"], "plaster"),
        empty=empty is not None and empty.value,
    )
    if room < 0:
        return side
    # The room lies to the left if a point 2 cm to the left of the wall's middle is inside it.
    step = np.array([start[1] - end[1], end[0] - start[0]]) / side.length * 2 * TOLERANCE
    is_left = points_in_polygon((np.add(start, end) / 2 + step)[None], rooms[room].polygon)[0]
    return replace(side, is_room_on_left=bool(is_left))


def _check_joined(house: Field, num_rooms: int, doors: Sequence[Door]) -> None:
    """Raise a ValueError if some room cannot be reached through doors from the first one."""
    reached = {0}
    stack = [0]
    while stack:
        room = stack.pop()
        for door in doors:
            if room in door.rooms:
                for other in set(door.rooms) - reached - {-1}:
                    reached.add(other)
                    stack.append(other)
    if len(reached) < num_rooms:
        cut_off = next(room for room in range(num_rooms) if room not in reached)
        raise ValueError(
            f"{house.source}: doors must join all {num_rooms} rooms, or walls between them be empty; "
            f"no path leads from rooms[0] to rooms[{cut_off}]"
        )
