"""Houses as JSON in our frame, and the semantic ids of habitat-sim in exported ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.houses.classes import CLASSES, MATERIAL_INDEX, MATERIALS
from memenvs.houses.house import SHAPE_KINDS, Door, House, Receptacle, Room, Shapes, polygon_area
from memenvs.json_records import Field, read_json

#: Columns of shapes: type, numbers of a row, and the number that they must be below.
_COLUMNS: dict[str, tuple[Any, int, float]] = {
    "kind": (np.uint8, 1, len(SHAPE_KINDS)),
    "centre": (np.float32, 3, 1e4),
    "half": (np.float32, 3, 1e4),
    "yaw": (np.float32, 1, 1e4),
    "material": (np.uint8, 1, len(MATERIALS)),
    "colour": (np.uint8, 3, 256),
    "semantic": (np.uint8, 1, len(CLASSES)),
    "instance": (np.uint16, 1, 2**16),
}


@dataclass(frozen=True)
class SemanticEntry:
    """Meaning of a semantic id of habitat-sim.

    Attributes:
        id: Value of a pixel; >= 1, because 0 is the package's "Unknown".
        instance: Index into `House.instances`.
        semantic: Index into `memenvs.houses.classes.CLASSES`.
        room: Index into `House.rooms`; -1 for walls, doors and windows.
    """

    id: int
    instance: int
    semantic: int
    room: int


def describe_home(house: House, entries: Sequence[SemanticEntry] = ()) -> dict[str, Any]:
    """Describe a house and its semantic ids as a JSON document.

    `read_house` and `read_home` read it.
    """
    return {
        "name": house.name,
        "height": house.height,
        "instances": list(house.instances),
        "semantic_ids": [
            {
                "id": entry.id,
                "instance_id": entry.instance,
                "instance": house.instances[entry.instance],
                "semantic_id": entry.semantic,
                "semantic_class": CLASSES[entry.semantic],
                "room": entry.room,
            }
            for entry in entries
        ],
        "rooms": [
            {
                "type": room.type,
                "polygon": np.asarray(room.polygon).tolist(),
                "floor_material": MATERIALS[room.floor_material],
                "floor_colour": list(room.floor_colour),
            }
            for room in house.rooms
        ],
        "doors": [vars(door) for door in house.doors],
        "receptacles": [vars(receptacle) for receptacle in house.receptacles],
        "shapes": {name: getattr(house.shapes, name).tolist() for name in _COLUMNS},
    }


def read_home(path: Path) -> tuple[House, list[SemanticEntry]]:
    """Read a file that `export_habitat` has written.

    Returns:
        The house without small objects, equal to the exported one, and its semantic ids.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not such a file; the message names the value.
    """
    home = read_json(path)
    house = read_house(home)
    entries = [
        SemanticEntry(
            entry["id"].integer(2**31),
            entry["instance_id"].integer(len(house.instances)),
            entry["semantic_id"].integer(len(CLASSES)),
            entry["room"].integer(len(house.rooms), at_least=-1),
        )
        for entry in home["semantic_ids"].items()
    ]
    return house, entries


def read_house(home: Field) -> House:
    """Read the house of a record that `describe_home` has made, without small objects.

    Raises:
        ValueError: It is not such a record; the message names the value.
    """
    instances = tuple(name.text() for name in home["instances"].items(1))
    rooms = tuple(_room(room) for room in home["rooms"].items(1))
    return House(
        name=home["name"].text(),
        shapes=_shapes(home["shapes"], len(instances)),
        rooms=rooms,
        doors=tuple(_door(door, len(rooms)) for door in home["doors"].items()),
        receptacles=tuple(_receptacle(receptacle, len(instances)) for receptacle in home["receptacles"].items()),
        instances=instances,
        height=home["height"].number(1e4),
    )


def _shapes(field: Field, num_instances: int) -> Shapes:
    columns = {}
    count = len(field["kind"].items())
    for name, (dtype, width, limit) in _COLUMNS.items():
        limit = num_instances if name == "instance" else limit
        shape = (count,) if width == 1 else (count, width)
        try:
            values = np.array(field[name].value, np.float64).reshape(shape) if count else np.zeros(shape)
        except (TypeError, ValueError):
            raise field[name].error(f"a list of {count} times {width} numbers") from None
        lowest = -limit if dtype is np.float32 else 0
        if not ((values >= lowest) & (values < limit)).all():
            raise field[name].error(f"numbers from {lowest} to below {limit:g}")
        if name == "half" and not (values > 0).all():
            raise field[name].error("numbers above 0")
        columns[name] = values.astype(dtype)
    return Shapes(**columns)


def _room(field: Field) -> Room:
    polygon = np.array([[part.number(1e4) for part in _pair(corner)] for corner in field["polygon"].items(3)])
    if polygon_area(polygon) <= 0:
        raise field["polygon"].error("corners counter-clockwise")
    material = field["floor_material"].text()
    if material not in MATERIAL_INDEX:
        raise field["floor_material"].error(f"one of {list(MATERIALS)}")
    red, green, blue = (channel.integer(256) for channel in _numbers(field["floor_colour"], 3))
    return Room(field["type"].text(), polygon, MATERIAL_INDEX[material], (red, green, blue))


def _door(field: Field, num_rooms: int) -> Door:
    first, second = (room.integer(num_rooms, at_least=-1) for room in _pair(field["rooms"]))
    x, y = (number.number(1e4) for number in _pair(field["centre"]))
    width, height, yaw = (field[name].number(1e4) for name in ("width", "height", "yaw"))
    return Door((first, second), (x, y), width, height, yaw)


def _receptacle(field: Field, num_instances: int) -> Receptacle:
    x, y, z = (number.number(1e4) for number in _numbers(field["centre"], 3))
    half_x, half_y = (number.number(1e4) for number in _pair(field["half"]))
    yaw, clearance = field["yaw"].number(1e4), field["clearance"].number()
    return Receptacle(field["instance"].integer(num_instances), (x, y, z), (half_x, half_y), yaw, clearance)


def _pair(field: Field) -> list[Field]:
    return _numbers(field, 2)


def _numbers(field: Field, count: int) -> list[Field]:
    return field.items(count, count)
