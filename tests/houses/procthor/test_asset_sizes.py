"""Sizes of assets: where they come from, and what is done without them."""

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest

from memenvs.cli import main
from memenvs.data import UNKNOWN_ASSETS
from memenvs.houses.procthor.asset_sizes import Asset, AssetFinder, AssetSizes, convert_databases, object_type
from memenvs.houses.procthor.loader import load_procthor
from memenvs.json_records import Field
from memenvs.objectnav.config import ExtObjNavConfig
from tests.houses.procthor.made_houses import SIZES, make_object, two_rooms, write_houses
from tests.houses.solids import span
from tests.vln.toys import write_json

OBJAVERSE = "3bed4d6cf58548a59b8a2a1d2f3c4e5f"  # its letters spell a bed


def test_object_types_by_name() -> None:
    names = {
        "Armchair_230_1": "ArmChair", "TV_Stand_212_1": "TVStand", "Wall_Decor_Painting_3V": "Painting",
        "RoboTHOR_chair_mella": "Chair", "Houseplant_6": "HousePlant", "Dining_Table_16_1": "DiningTable",
        "Countertop_L_8x8": "CounterTop", "dining table-0": "DiningTable", "sectional sofa-1": "Sofa",
        "coffee table": "CoffeeTable", "bookshelf-0": "ShelvingUnit", "CD_3": "CD", "side table lamp": "SideTable",
        "2": None, "gramophone": None, "": None,
    }  # fmt: skip
    assert {name: object_type([name]) for name in names} == names
    assert object_type(["gramophone", "Mug_3", "Sofa"]) == "Mug"


def test_every_database(tmp_path: Path) -> None:
    box = {"x": 1.00049, "y": 0.5, "z": 2.0}
    corners = {"min": {"x": -0.5, "y": 0, "z": 1}, "max": {"x": 0.5, "y": 0.25, "z": 3}}
    databases = {
        "procthor": {"Sofa": [{"assetId": "Sofa_1", "objectType": "Sofa", "boundingBox": box, "split": "val"}]},
        "ai2thor": {"Sofa_1": {"assetId": "Sofa_1", "objectType": "Sofa", "boundingBox": box}},
        "list": [{"assetId": "Sofa_1", "objectType": "Sofa", "boundingBox": box}],
        "sizes": {"Sofa_1": {"type": "Sofa", "size": [1.00049, 0.5, 2.0]}},
    }
    for name, content in databases.items():
        sizes, num_dropped = convert_databases([write_json(tmp_path / f"{name}.json", content)], tmp_path / "out.json")
        assert (sizes.assets, num_dropped) == ({"Sofa_1": Asset("Sofa", (1.0, 0.5, 2.0))}, 0)
        assert AssetSizes.read(tmp_path / "out.json").assets == sizes.assets
    objathor = {
        OBJAVERSE: {"category": "loveseat", "thor_metadata": {"assetMetadata": {"boundingBox": corners}}},
        "b" * 32: {"annotations": {"category": "gramophone"}, "assetMetadata": {"boundingBox": {"size": box}}},
        "flat": {"category": "rug", "assetMetadata": {"boundingBox": {"x": 1, "y": 0, "z": 1}}},
        "none": {"category": "rug"},
    }
    paths = [tmp_path / "procthor.json", write_json(tmp_path / "annotations.json", objathor)]
    sizes, num_dropped = convert_databases(paths, tmp_path / "asset_sizes.json.gz")
    assert num_dropped == 2
    assert sizes.assets == {
        "Sofa_1": Asset("Sofa", (1.0, 0.5, 2.0)),
        OBJAVERSE: Asset("Sofa", (1.0, 0.25, 2.0)),
        "b" * 32: Asset("gramophone", (1.0, 0.5, 2.0)),
    }
    assert AssetSizes.read(tmp_path / "asset_sizes.json.gz").median_sizes["Sofa"] == (1.0, 0.375, 2.0)


def test_wrong_databases(tmp_path: Path) -> None:
    cases = {
        "[1]": r"\[0\] must be a JSON object",
        "7": "a database of assets",
        "{}": "no asset with a size",
        '{"A": {"boundingBox": {"x": 1, "y": 1}}}': "A.boundingBox.z is missing",
        '{"A": {"boundingBox": {"x": 1e308, "y": 1, "z": 1}}}': "A.boundingBox.x must be a number from -100 to 100",
        '{"Sofa": [{"boundingBox": {}}]}': r"Sofa\[0\].assetId is missing",
        '{"A": {"type": "Mug", "size": [1, 2]}}': "A.size must be three lengths",
    }
    for text, message in cases.items():
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            convert_databases([tmp_path / "a.json"], tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()
    for size in ([1, 0, 1], "big", [1, 1, math.nan]):
        write_json(tmp_path / "a.json", {**SIZES, "Mug_1": {"type": "Mug", "size": size}})
        with pytest.raises(ValueError, match=r"a\.json: Mug_1\.size"):
            AssetSizes.read(tmp_path / "a.json")
    assert main(["assets", str(tmp_path / "nowhere.json"), "--out", str(tmp_path / "out.json")]) == 2


def test_a_house_file_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error of making the environment names the missing file and the command that makes it."""
    path = write_houses(tmp_path, two_rooms())
    (tmp_path / "asset_sizes.json.gz").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"asset_sizes\.json\.gz.*`memenvs assets DATABASE.*asset-database\.json"
    ):
        ExtObjNavConfig(world="procthor", split="all", houses=path).make_world()
    path.write_text("{,}")  # an error of the file itself comes first
    assert main(["house", "--file", str(path)]) == 2
    assert "made.jsonl, line 1: not JSON" in capsys.readouterr().err
    path = write_houses(tmp_path, two_rooms())
    (tmp_path / "asset_sizes.json.gz").unlink()
    database = [
        {"assetId": id, "objectType": entry["type"], "boundingBox": dict(zip("xyz", entry["size"], strict=True))}
        for id, entry in SIZES.items()
    ]
    source = write_json(tmp_path / "asset-database.json", {"Mug": [], "Any": database})
    assert main(["assets", str(source), "--out", str(tmp_path / "asset_sizes.json.gz"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["assets"] == len(SIZES)
    assert len(ExtObjNavConfig(world="procthor", split="all", houses=path).make_world().home(0).house.rooms) == 2
    (tmp_path / "asset_sizes.json.gz").rename(tmp_path / "elsewhere.json.gz")
    there = ExtObjNavConfig(world="procthor", split="all", houses=path, asset_sizes=tmp_path / "elsewhere.json.gz")
    assert len(there.make_world()) == 1


def house_with_unknown_assets() -> dict:
    """A house with a table, another object and a sofa of unknown sizes."""
    house = two_rooms()
    table = make_object(OBJAVERSE, (5.5, 0.2, 2), children=[make_object("Mug_1", (5.5, 0.8, 2))])
    table["id"] = "dining table-0 (bed room)"
    house["objects"] += [table, make_object("f" * 32, (2, 0.5, 1)), make_object("Sofa_99", (2, 0.5, 0.5))]
    return house


def test_assets_without_a_size(tmp_path: Path) -> None:
    path = write_houses(tmp_path, house_with_unknown_assets())
    with pytest.warns(UserWarning, match=r"line 1: .* lacks: 3, such as '3bed.*type: 1; left out .*: 2 \(") as caught:
        loaded = load_procthor(path, 0)
    assert len(caught) == 1
    assert loaded.instances[4:] == ("dining_table|4", "kitchenware|5", "sports|6", "dining_table|7", "kitchenware|8")
    low, high = span(loaded, 7)
    np.testing.assert_allclose([low, high], [(4.9, 1.6, 0), (6.1, 2.4, 0.75)], atol=1e-5)  # of a table, on the floor
    with pytest.warns(UserWarning, match=r"type: 0; left out with what stands on them: 3 \(unknown_assets='drop'\)"):
        assert load_procthor(path, 0, unknown_assets="drop").instances[4:] == loaded.instances[4:7]
    with pytest.raises(ValueError, match=r"line 1: objects\[2\].assetId must be one of the 4 assets of .*, got '3bed"):
        load_procthor(path, 0, unknown_assets="error")
    nameless = AssetFinder(AssetSizes("F", {"a": Asset("", (1.0, 1.0, 1.0))}), "drop")
    assert nameless.find(Field({"assetId": "b"}, "F")) is None  # the asset without a type is no class of others
    with pytest.raises(ValueError, match=r"unknown_assets 'size' is none of the choices; choose from \['class'"):
        load_procthor(path, 0, unknown_assets="size")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no word where every asset is known
        for choice in UNKNOWN_ASSETS:
            load_procthor(write_houses(tmp_path, two_rooms()), 0, unknown_assets=choice)
    path = write_houses(tmp_path, *[house_with_unknown_assets()] * 3)
    with pytest.warns(UserWarning, match="lacks: 3") as caught:
        config = ExtObjNavConfig(world="procthor", split="all", houses=path, unknown_assets="drop")
        world = config.make_world()
        assert [len(world.make_house(index).instances) for index in range(3)] == [7, 7, 7]
    assert len(caught) == 1  # of three homes
