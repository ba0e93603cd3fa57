"""A ProcTHOR house of two rooms, written out by hand, and files of such houses."""

import gzip
import json
from pathlib import Path

SIZES = {
    "Table_1": {"type": "DiningTable", "size": [1.2, 0.75, 0.8]},
    "Mug_1": {"type": "Mug", "size": [0.1, 0.1, 0.1]},
    "Bat_1": {"type": "BaseballBat", "size": [0.1, 1.0, 0.1]},
    "Strange_1": {"type": "Teleporter", "size": [0.5, 0.5, 0.5]},
}


def wall(name, room, start, end, **more):
    corners = [{"x": x, "y": y, "z": z} for y in (0, 2.5) for x, z in (start, end)]
    return {"id": name, "roomId": room, "polygon": corners, "material": {"name": "PureWhite"}, **more}


def make_object(asset, position, rotation=(0, 0, 0), **more):
    at, turned = (dict(zip("xyz", values, strict=True)) for values in (position, rotation))
    return {"id": asset, "assetId": asset, "position": at, "rotation": turned, **more}


def opening(name, walls, rooms, low, high):
    hole = [{"x": x, "y": y, "z": 0} for x, y in (low, high)]
    sides = dict(zip(("wall0", "wall1", "room0", "room1"), (*walls, *rooms), strict=True))
    return {"id": name, **sides, "holePolygon": hole, "assetId": "Doorway_1"}


def two_rooms():
    """A living room, x 0 to 4, and a red bedroom, x 4 to 7; both y 0 to 3, 2.5 m high."""
    outline = {"A": [(0, 0), (0, 3), (4, 3), (4, 0)], "B": [(4, 0), (4, 3), (7, 3), (7, 0)]}
    types = {"A": "LivingRoom", "B": "Bedroom"}
    rooms, walls = [], []
    for key, corners in outline.items():
        room = {
            "id": key,
            "roomType": types[key],
            "floorMaterial": {"name": "DarkWoodPlanks"},
            "floorPolygon": [{"x": x, "y": 0, "z": z} for x, z in corners],
        }
        rooms.append(room)
        for i in range(4):
            start, end = corners[i], corners[(i + 1) % 4]
            walls.append(wall(f"wall|{key}{i}", key, start, end))
            if (start, end) not in (((4, 3), (4, 0)), ((4, 0), (4, 3))):
                walls.append(wall(f"wall|exterior|{key}{i}", key, end, start))
            if key == "B":
                walls[-1]["material"] = walls[-2]["material"] = {"name": "RedBricks"}
    walls[0]["material"] = {"name": "PureWhite", "color": {"r": 1.0, "g": 0.5, "b": 0.0}}
    table = make_object("Table_1", (1, 0.375, 2), (0, 90, 0), children=[make_object("Mug_1", (1, 0.8, 2.4))])
    return {
        "rooms": rooms,
        "walls": walls,
        "doors": [
            opening("inner", ("wall|B0", "wall|A2"), "BA", (1, 0), (2, 2.1)),
            opening("outer", ("wall|A3", "wall|exterior|A3"), "AA", (0.5, 0), (1.5, 2.1)),
        ],
        "windows": [opening("window", ("wall|B2", "wall|exterior|B2"), "BB", (0.5, 1), (1.5, 2))],
        "objects": [table, make_object("Bat_1", (6, 0.05, 1), (90, 0, 0))],
    }


def without_doors():
    return {**two_rooms(), "doors": []}


def full_of_blocks():
    """Every place on the floor is within 0.2 m of a block."""
    blocks = [make_object("Strange_1", (0.45 + 0.7 * i, 0.25, 0.45 + 0.7 * j)) for i in range(10) for j in range(4)]
    return {**two_rooms(), "objects": blocks}


def write_houses(folder: Path, *houses: dict) -> Path:
    """Write houses as made.jsonl, and the sizes of their assets beside it."""
    path = folder / "made.jsonl"
    path.write_text("\n".join(json.dumps(house) for house in houses) + "\n")
    (folder / "asset_sizes.json.gz").write_bytes(gzip.compress(json.dumps(SIZES).encode()))
    return path
