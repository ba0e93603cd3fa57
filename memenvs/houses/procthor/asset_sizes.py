"""Types and sizes of assets: their file, its making, and assets that it lacks.

A house file says which asset stands where, not how large it is. That is in `asset_sizes.json.gz`: asset id ->
{"type": name of ProcTHOR's object type, "size": [x, y, z] of its bounding box, m, y up}.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memenvs.checks import choices_for
from memenvs.data import ASSET_SIZES_HELP, UNKNOWN_ASSETS
from memenvs.files import write_file
from memenvs.houses.procthor.assets import ASSET_TYPES
from memenvs.json_records import Field, read_json

#: Longest side of an asset, m.
MAX_SIDE = 100.0

#: Names that other data sets have for object types, in lower case without spaces.
_SYNONYMS = {
    "bin": "GarbageCan", "trashcan": "GarbageCan", "wastebasket": "GarbageCan", "hamper": "LaundryHamper",
    "bookcase": "ShelvingUnit", "bookshelf": "ShelvingUnit", "shelf": "ShelvingUnit", "shelves": "ShelvingUnit",
    "cabinet": "Dresser", "wardrobe": "Dresser", "sideboard": "Dresser", "chestofdrawers": "Dresser",
    "nightstand": "SideTable", "endtable": "SideTable", "table": "DiningTable", "counter": "CounterTop",
    "couch": "Sofa", "loveseat": "Sofa", "recliner": "ArmChair", "bench": "Ottoman", "pouf": "Ottoman",
    "tv": "Television", "monitor": "Television", "computer": "Laptop", "phone": "CellPhone", "remote": "RemoteControl",
    "refrigerator": "Fridge", "dryer": "ClothesDryer", "washer": "WashingMachine", "lamp": "DeskLamp",
    "plant": "HousePlant", "picture": "Painting", "photo": "Painting", "artwork": "Painting", "poster": "Painting",
    "curtain": "ShowerCurtain", "clock": "AlarmClock", "cushion": "Pillow", "sculpture": "Statue",
    "boot": "Boots", "papertowel": "PaperTowelRoll", "tennisracquet": "TennisRacket",
}  # fmt: skip
_TYPE_OF_NAME = {**_SYNONYMS, **{name.lower(): name for name in ASSET_TYPES}}
_OBJAVERSE_ID = re.compile("[0-9a-f]{32}")


class Asset(NamedTuple):
    """Type and size of an asset.

    Attributes:
        type: A name of `ASSET_TYPES`, or any other.
        size: Width, height and depth of its bounding box, m.
        is_estimated: Whether the size is the median of its type, because its own is not known.
    """

    type: str
    size: tuple[float, float, float]
    is_estimated: bool = False


class AssetSizes:
    """Types and sizes of assets by id.

    Args:
        source: Where they are from, for messages.
        assets: Asset id -> asset.
    """

    def __init__(self, source: str, assets: dict[str, Asset]) -> None:
        self.source = source
        self.assets = assets

    @classmethod
    def read(cls, path: Path) -> AssetSizes:
        """Read a file of asset sizes.

        Args:
            path: A .json file, gzipped or not; see the module.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file has another form; the message names the asset and the value.
        """
        content = read_json(path)
        if not isinstance(content.value, dict):
            raise content.error(f"a JSON object, asset id -> type and size; {ASSET_SIZES_HELP}")
        return cls(str(path), {id: _read_asset(content[id]) for id in content.value})

    @cached_property
    def median_sizes(self) -> dict[str, tuple[float, float, float]]:
        """Type -> median width, height and depth of its assets, m."""
        sizes: dict[str, list[tuple[float, float, float]]] = {}
        for asset in self.assets.values():
            sizes.setdefault(asset.type, []).append(asset.size)
        return {name: tuple(np.median(values, axis=0).tolist()) for name, values in sizes.items()}


class AssetFinder:
    """Find the assets of one house, and count those without a size.

    Args:
        sizes: Known assets.
        unknown: One of `UNKNOWN_ASSETS`: what to do about other assets.
    """

    def __init__(self, sizes: AssetSizes, unknown: str) -> None:
        self._sizes = sizes
        self._unknown = unknown
        self._estimated: list[str] = []
        self._dropped: list[str] = []

    def find(self, item: Field) -> Asset | None:
        """Find the asset of an object of a house file; None if the object is to be left out.

        Raises:
            ValueError: The object has no asset, or one without a size and `unknown` is "error".
        """
        id = item["assetId"].text()
        asset = self._sizes.assets.get(id)
        if asset is not None:
            return asset
        if self._unknown == "error":
            raise item["assetId"].error(f"one of the {len(self._sizes.assets)} assets of {self._sizes.source}")
        name = object_type(_names(item, id)) if self._unknown == "class" else None
        size = None if name is None else self._sizes.median_sizes.get(name)
        (self._dropped if size is None else self._estimated).append(id)
        return None if size is None else Asset(str(name), size, is_estimated=True)

    def report(self, source: str) -> str | None:
        """Say how many assets had no size, in one sentence; None if all had one."""
        if not self._estimated and not self._dropped:
            return None
        unknown = self._estimated + self._dropped
        return (
            f"{source}: objects whose assets {self._sizes.source} lacks: {len(unknown)}, such as {unknown[0]!r}; "
            f"with the median size of their type: {len(self._estimated)}; "
            f"left out with what stands on them: {len(self._dropped)} (unknown_assets={self._unknown!r})"
        )


def check_unknown_assets(value: object) -> None:
    """Raise a ValueError unless this is one of `UNKNOWN_ASSETS`."""
    if value not in UNKNOWN_ASSETS:
        raise ValueError(f"unknown_assets {value!r} is none of the choices; {choices_for(value, UNKNOWN_ASSETS)}")


def object_type(names: Iterable[str]) -> str | None:
    """Find the object type that names speak of, such as "Armchair_230_1" or "coffee table".

    Args:
        names: In descending order of trust.

    Returns:
        A name of `ASSET_TYPES`, from the first of `names` that has one; None if none has. If several runs of words in
        it name a type, the longest run counts; of equally long runs the last.
    """
    for name in names:
        words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
        for length in range(len(words), 0, -1):
            for start in range(len(words) - length, -1, -1):
                kind = _TYPE_OF_NAME.get("".join(words[start : start + length]))
                if kind is not None:
                    return kind
    return None


def convert_databases(paths: Iterable[Path], target: Path) -> tuple[AssetSizes, int]:
    """Write the file of asset sizes from databases of assets.

    Args:
        paths: JSON files, gzipped or not. If several have the same asset, the last file counts. Each is ProcTHOR's
            asset-database.json (type -> list of assets), the return value of ai2thor's GetAssetDatabase or Objathor's
            annotations (asset id -> asset), a list of assets, or a file of asset sizes.
        target: The file to write; gzipped if it ends in .gz.

    Returns:
        The asset sizes, and the number of assets that were left out because they have no size above 0.

    Raises:
        FileNotFoundError: A database is not there.
        ValueError: A database has another form, or no asset at all.
    """
    assets: dict[str, Asset] = {}
    num_dropped = 0
    for path in paths:
        for id, asset in _read_database(read_json(path)):
            if asset is None:
                num_dropped += 1
            else:
                assets[id] = asset
    if not assets:
        raise ValueError(f"no asset with a size in {', '.join(map(str, paths))}")
    content = json.dumps({id: {"type": assets[id].type, "size": assets[id].size} for id in sorted(assets)}).encode()
    write_file(target, gzip.compress(content, mtime=0) if target.suffix == ".gz" else content)
    return AssetSizes(str(target), assets), num_dropped


def _read_asset(field: Field) -> Asset:
    """Read an entry of a file of asset sizes."""
    lengths = field["size"].items()
    if len(lengths) != 3:
        raise field["size"].error("three lengths")
    width, height, depth = (length.number(MAX_SIDE) for length in lengths)
    if min(width, height, depth) <= 0:
        raise field["size"].error("three lengths > 0 m")
    return Asset(field["type"].text(), (width, height, depth))


def _names(item: Field, id: str) -> Iterator[str]:
    """Names that may give the type of an object of a house file, in descending order of trust."""
    for key in ("objectType", "object_name", "id"):
        name = item.get(key)
        if name is not None and isinstance(name.value, str):
            yield re.split(r"[|(]", name.value)[0]  # ProcTHOR: TYPE|ROOM|NUMBER; Holodeck: NAME-NUMBER (ROOM)
    if not _OBJAVERSE_ID.fullmatch(id):  # hexadecimal digits name no type, but may spell a word, such as "bed"
        yield id


def _read_database(content: Field) -> Iterator[tuple[str, Asset | None]]:
    """Read id and asset of each entry of a database; None for one without a size."""
    if isinstance(content.value, list):
        for asset in content.items():
            yield asset["assetId"].text(), _database_asset(asset, [])
        return
    if not isinstance(content.value, dict):
        raise content.error("a database of assets: a JSON object or list")
    for key in content.value:
        entry = content.get(key)
        if entry is not None and isinstance(entry.value, list):  # the assets of one type
            for asset in entry.items():
                yield asset["assetId"].text(), _database_asset(asset, [key])
        elif entry is not None:
            yield key, _database_asset(entry, [])


def _database_asset(entry: Field, names: list[str]) -> Asset | None:
    """Read an entry of a database; None if it has no size.

    Args:
        entry: The entry.
        names: Type names from outside the entry; those inside it are appended.
    """
    metadata = entry.get("thor_metadata") or entry  # Objathor has it one level deeper
    fields = (entry, metadata.get("assetMetadata"), entry.get("annotations"))
    parts = [part for part in fields if part is not None]
    for key in ("type", "objectType", "category"):
        names += [name.text() for part in parts if (name := part.get(key)) is not None]
    boxes = [box for part in parts for key in ("size", "boundingBox") if (box := part.get(key)) is not None]
    if not boxes:
        return None
    size = _box_size(boxes[0])
    if min(size) <= 0:
        return None
    exact = next((name for name in names if name in ASSET_TYPES), None)
    type_name = exact or object_type(names) or (names[0] if names else "Undefined")
    # Whole millimetres, as in the file that comes with the data set.
    width, height, depth = (max(0.001, round(length, 3)) for length in size)
    return Asset(type_name, (width, height, depth))


def _box_size(box: Field) -> tuple[float, ...]:
    """Read a bounding box: three lengths, x, y and z of its size, or its smallest and largest corner."""
    if isinstance(box.value, list):
        lengths = [length.number(MAX_SIDE) for length in box.items()]
        if len(lengths) != 3:
            raise box.error("three lengths")
        return tuple(lengths)
    size = box.get("size")
    if size is not None:
        return size.numbers("xyz", MAX_SIDE)
    if box.get("min") is not None:
        low, high = box["min"].numbers("xyz", MAX_SIDE), box["max"].numbers("xyz", MAX_SIDE)
        return tuple(b - a for a, b in zip(low, high, strict=True))
    return box.numbers("xyz", MAX_SIDE)
