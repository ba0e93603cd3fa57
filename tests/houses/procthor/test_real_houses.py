"""The real ProcTHOR houses of $MEMENVS_DATA, against the raw JSON."""

import gzip
import itertools
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from memenvs.houses.classes import CLASS_INDEX, FIRST_YCB_CLASS
from memenvs.houses.house import House, ShapeBuilder, points_in_polygon
from memenvs.houses.procthor import loader
from memenvs.houses.procthor.asset_model import AssetModel
from memenvs.houses.procthor.asset_sizes import AssetSizes
from memenvs.houses.procthor.assets import ASSET_TYPES
from memenvs.houses.procthor.loader import count_procthor, load_procthor
from memenvs.json_records import each_record
from tests.houses.solids import check_connected, solid_at, span


@pytest.fixture(scope="module")
def folder() -> Path:
    if not os.environ.get("MEMENVS_DATA"):
        pytest.skip("needs MEMENVS_DATA, a folder with procthor/four_room.jsonl.gz and the like")
    return Path(os.environ["MEMENVS_DATA"]) / "procthor"


@pytest.fixture(scope="module")
def assets(folder) -> dict[str, dict]:
    """Type and size of each asset."""
    with gzip.open(folder / "asset_sizes.json.gz") as file:
        return json.load(file)


@pytest.fixture(scope="module", params=[pytest.param(1, marks=pytest.mark.nightly), 5])
def real(request, folder) -> list[tuple[dict, House]]:
    """Houses, raw and loaded: those of four rooms and every fifth of one room, or all.

    Each file is read once; `load_procthor` alone would go through it again for every house.
    """
    pairs = []
    sizes = AssetSizes.read(folder / "asset_sizes.json.gz")
    for name in ("four_room", "one_room_train", "one_room_val"):
        path = folder / f"{name}.jsonl.gz"
        records = [read() for read in each_record(path)]
        with gzip.open(path, "rt") as file, pytest.MonkeyPatch.context() as patch:
            patch.setattr(loader, "read_record", lambda _, index, records=records: records[index])
            patch.setattr(loader.AssetSizes, "read", lambda _: sizes)
            chosen = list(enumerate(file))[:: 1 if name == "four_room" else request.param]
            pairs += [(json.loads(line), load_procthor(path, index)) for index, line in chosen]
    return pairs


@pytest.mark.slow
def test_all_houses_load(folder, real):
    assert len(real) in (134, 614)
    alone, last = load_procthor(folder / "one_room_val.jsonl.gz", 95), real[-1 if len(real) == 134 else -5][1]
    assert (alone.name, alone.shapes.centre.tobytes()) == (last.name, last.shapes.centre.tobytes())  # read from files
    counts = [count_procthor(folder / f"{name}.jsonl.gz") for name in ("four_room", "one_room_train", "one_room_val")]
    assert counts == [14, 500, 100]


def test_numbers_of_rooms_doors_windows_and_objects(real):
    for raw, house in real:
        assert len(house.rooms) == len(raw["rooms"])
        empty = [side for side in raw["walls"] if side.get("empty")]
        assert len(house.doors) == len(raw["doors"]) + len(empty) // 2
        objects = list(flatten(raw["objects"]))
        assert len(house.instances) == 1 + len(raw["doors"]) + len(raw["windows"]) + len(objects)
        assert sum(-1 in door.rooms for door in house.doors) == 1
        assert set(house.shapes.instance.tolist()) == set(range(len(house.instances)))
        assert house.shapes.semantic.max() < FIRST_YCB_CLASS


def assert_fills(low: np.ndarray, high: np.ndarray, size: np.ndarray, asset_id: str) -> None:
    """Assert that extents are within a box around the origin and reach most of its sides."""
    assert (low >= -size / 2 - 1e-4).all(), asset_id
    assert (high <= size / 2 + 1e-4).all(), asset_id
    assert (high - low >= 0.85 * size - 1e-4).all(), asset_id


def test_every_asset_fills_its_box(assets):
    """Shapes of all 1653 assets lie within the bounding box and reach its sides, whatever stands on them."""
    assert {row["type"] for row in assets.values()} == set(ASSET_TYPES)
    for (asset_id, row), support_heights in itertools.product(assets.items(), [(), (0.3, 0.5, 0.9)]):
        kind = ASSET_TYPES[row["type"]]
        width, height, depth = row["size"]
        builder = ShapeBuilder()
        size = width, depth, height
        asset = AssetModel(kind.semantic, size, kind.finish(asset_id), asset_id, support_heights)
        kind.fill(asset)
        asset.build(builder, ["building"], (0.0, 0.0), 0.0)
        shapes, middle = builder.build(), (0.0, 0.0, height / 2)
        low, high = (shapes.centre - shapes.half).min(0), (shapes.centre + shapes.half).max(0)
        assert_fills(low - middle, high - middle, np.array(size), asset_id)


def test_objects_stay_in_their_boxes(assets, real):
    """Shapes of an object are where the file has its bounding box."""
    for raw, house in real[::2]:
        first = 1 + len(raw["doors"]) + len(raw["windows"])
        for instance, item in enumerate(flatten(raw["objects"]), start=first):
            if max(abs(math.sin(math.radians(item["rotation"][key]))) for key in "xz") > 0.01:
                continue
            width, height, depth = assets[item["assetId"]]["size"]
            shapes = house.shapes.take(house.shapes.instance == instance)
            yaw = -math.radians(item["rotation"]["y"])
            np.testing.assert_allclose(np.cos(shapes.yaw - yaw), 1, atol=1e-5)
            at = np.array([item["position"][key] for key in "xzy"])
            at[2] += min(0.0, max(-0.0701, span(house, instance)[0][2] - at[2] + height / 2))  # set down
            turn = np.array([(math.cos(yaw), math.sin(yaw), 0), (-math.sin(yaw), math.cos(yaw), 0), (0, 0, 1)])
            local = (shapes.centre - at) @ turn.T
            low, high = (local - shapes.half).min(0), (local + shapes.half).max(0)
            assert_fills(low, high, np.array([width, depth, height]), item["assetId"])


@pytest.mark.slow
def test_all_is_within_the_house(real):
    for _, house in real:
        low, high = house.bounds
        for instance in range(len(house.instances)):
            least, most = span(house, instance)
            assert (least[:2] > low - 0.06).all(), (house.name, house.instances[instance])
            assert (most[:2] < high + 0.06).all(), (house.name, house.instances[instance])
            assert least[2] > -0.05, (house.name, house.instances[instance])
            assert most[2] < house.height + 0.001, (house.name, house.instances[instance])


@pytest.mark.slow
def test_every_room_can_be_reached(real):
    for _, house in real[:14]:
        check_connected(house)


@pytest.mark.slow
def test_nothing_leaks_out(real):
    """Flooding every floor from inside never gets past the outer walls: the doors to the outside are closed."""
    for _, house in real[::4]:
        low, high = house.bounds
        x, y = (np.arange(low[k] - 0.3, high[k] + 0.3, 0.03) for k in range(2))
        solid, points = solid_at(house, x, y), np.stack(np.meshgrid(x, y), 2).reshape(-1, 2)
        indoors = np.zeros(solid.size, bool)
        for room in house.rooms:
            indoors |= points_in_polygon(points, room.polygon)
        islands, _ = ndimage.label(~solid)
        assert not set(islands[0]) & set(islands[indoors.reshape(solid.shape) & ~solid].tolist()), house.name


def test_receptacles_are_free(real):
    """Places lie over their furniture's box, at its top or a board, with nothing standing in them."""
    for _, house in real:
        shapes = house.shapes
        for place in house.receptacles:
            x, y, z = place.centre
            assert 0.4 <= z <= 1.5
            assert min(place.half) >= 0.07
            assert place.clearance >= 0.3
            low, high = span(house, place.instance)
            assert (low[:2] - 1e-3 <= (x, y)).all()
            assert (high[:2] + 1e-3 >= (x, y)).all()
            above = (shapes.centre[:, 2] + shapes.half[:, 2] > z + 0.0015) & (
                shapes.centre[:, 2] - shapes.half[:, 2] < z + 0.25
            )
            for i in np.flatnonzero(above & (shapes.semantic != CLASS_INDEX["wall"])):
                offset = shapes.centre[i, :2] - (x, y)
                u = offset @ (math.cos(place.yaw), math.sin(place.yaw))
                v = offset @ (-math.sin(place.yaw), math.cos(place.yaw))
                gap = np.abs([u, v]) - place.half
                assert (gap > 0).any(), (house.name, place, house.instances[shapes.instance[i]])


def flatten(items):
    for item in items:
        yield item
        yield from flatten(item.get("children") or [])
