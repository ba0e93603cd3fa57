"""Loading of ProcTHOR houses: one written out by hand, every file format, and wrong ones."""

import copy
import gzip
import json
import math
import pickle
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from memenvs.cli import main
from memenvs.houses.classes import CLASS_INDEX, CLASSES, MATERIAL_INDEX
from memenvs.houses.house import House, polygon_area
from memenvs.houses.procedural.generator import procedural_house
from memenvs.houses.procthor.loader import count_procthor, load_procthor
from memenvs.houses.worlds import make_house_world
from tests.houses.procthor.made_houses import make_object, two_rooms, write_houses
from tests.houses.solids import is_blocked, span

EXAMPLE = Path(__file__).parents[3] / "examples" / "house"


def boxes(house, semantic):
    """Rows (centre, half) of all shapes of a class, rounded."""
    shapes = house.shapes.take(house.shapes.semantic == CLASS_INDEX[semantic])
    return {tuple(row) for row in np.round(np.hstack([shapes.centre, shapes.half]).astype(float), 5).tolist()}


@pytest.fixture
def made(tmp_path) -> House:
    return load_procthor(write_houses(tmp_path, two_rooms()), 0)


def test_rooms_by_hand(made):
    assert made.name == "made-0"
    assert [room.type for room in made.rooms] == ["living_room", "bedroom"]
    assert [polygon_area(room.polygon) for room in made.rooms] == [12.0, 9.0]
    assert made.bounds.tolist() == [[0, 0], [7, 3]]
    assert made.height == 2.5
    assert made.rooms[0].floor_material == MATERIAL_INDEX["planks"]
    assert made.rooms[0].floor_colour == (96, 72, 56)


def test_walls_by_hand(made):
    """The inner wall is two layers of 0.02 m around x = 4, each in the finish of its room."""
    shapes = made.shapes.take(made.shapes.semantic == CLASS_INDEX["wall"])
    inner = np.abs(shapes.centre[:, 0] - 4) < 0.02
    rows = {
        (round(float(x), 4), round(float(y), 5), round(float(z), 4), *(round(float(h), 5) for h in half))
        for (x, y, z), half in zip(shapes.centre[inner], shapes.half[inner], strict=True)
    }
    expected = set()
    for x in (3.99, 4.01):
        expected |= {
            (x, 2.50975, 1.25, 0.50975, 0.01, 1.25),  # y 2 to 3.0195
            (x, 0.49025, 1.25, 0.50975, 0.01, 1.25),  # y -0.0195 to 1
            (x, 1.5, 2.3, 0.5, 0.01, 0.2),  # lintel, z 2.1 to 2.5
        }
    assert rows == expected
    brick = shapes.material == MATERIAL_INDEX["brick"]
    assert brick[shapes.centre[:, 0] > 4.005].all()
    assert not brick[shapes.centre[:, 0] < 3.995].any()
    left = shapes.take(shapes.centre[:, 0] < 0.1)
    assert left.colour.tolist() == [[255, 128, 0]]
    np.testing.assert_allclose(left.half, [[1.5195, 0.02, 1.25]], atol=1e-6)
    np.testing.assert_allclose(np.sin(left.yaw), [1], atol=1e-6)


def test_wall_with_a_window_by_hand(made):
    """The window's wall runs from y = 3 to 0; its hole, 0.5 to 1.5 m along it, is y 1.5 to 2.5, z 1 to 2."""
    right = {row for row in boxes(made, "wall") if abs(row[0] - 7) < 0.01}
    assert right == {
        (7.0, 2.75975, 1.25, 0.25975, 0.02, 1.25),
        (7.0, 0.74025, 1.25, 0.75975, 0.02, 1.25),
        (7.0, 2.0, 0.5, 0.5, 0.02, 0.5),
        (7.0, 2.0, 2.25, 0.5, 0.02, 0.25),
    }
    glass = made.shapes.take(made.shapes.material == MATERIAL_INDEX["glass"])
    np.testing.assert_allclose(glass.centre, [[7, 2, 1.5]], atol=1e-6)
    np.testing.assert_allclose(glass.half, [[0.46, 0.005, 0.46]], atol=1e-6)
    assert [CLASSES[k] for k in glass.semantic] == ["window"]


def test_doors_by_hand(made):
    inner, outer = made.doors
    assert inner.rooms == (1, 0)
    assert inner.centre == (4.0, 1.5)
    assert (inner.width, inner.height, inner.yaw) == pytest.approx((0.9, 2.05, math.pi / 2))
    assert outer.rooms == (0, -1)
    assert outer.centre == (3.0, 0.0)
    assert math.isclose(abs(outer.yaw), math.pi)
    panel = [row for row in boxes(made, "door") if row[2] == 1.025 and row[3] == 0.45]
    assert panel == [(3.0, 0.0, 1.025, 0.45, 0.025, 1.025)]
    assert not is_blocked(made, (4, 1.5), 0.4)
    assert is_blocked(made, (3, 0), 0.01)


def test_objects_by_hand(made):
    """Unity's yaw of 90 degrees turns the table's right side towards -y; the mug stands on its -x half."""
    assert made.instances == ("building", "door|1", "door|2", "window|3", "dining_table|4", "kitchenware|5", "sports|6")
    table = made.shapes.take(made.shapes.instance == 4)
    np.testing.assert_allclose(table.yaw, -math.pi / 2, atol=1e-6)
    low, high = span(made, 4)
    np.testing.assert_allclose([low, high], [(0.6, 1.4, 0), (1.4, 2.6, 0.75)], atol=1e-5)
    np.testing.assert_allclose(span(made, 5), [(0.95, 2.35, 0.75), (1.05, 2.45, 0.85)], atol=1e-5)
    np.testing.assert_allclose(span(made, 6), [(5.95, 0.5, 0), (6.05, 1.5, 0.1)], atol=1e-5)  # lies along y


def test_receptacle_by_hand(made):
    """Of the table's top, what the mug and 1 cm around it take is cut out, and strips under 0.15 m are dropped."""
    (free,) = made.receptacles
    assert free.instance == 4
    assert free.centre == pytest.approx((1.0, 1.87, 0.75))
    assert free.half == pytest.approx((0.47, 0.4))
    assert free.yaw == pytest.approx(-math.pi / 2)
    assert free.clearance == pytest.approx(1.75)


def test_hovering_objects_are_set_down(tmp_path):
    house = two_rooms()
    mug = house["objects"][0]["children"][0]
    mug["position"]["y"] += 0.055
    mug["children"] = [make_object("Mug_1", (1, 0.955, 2.4))]
    house["objects"].append(make_object("Strange_1", (1, 0.25, 1)))
    loaded = load_procthor(write_houses(tmp_path, house), 0)
    np.testing.assert_allclose([span(loaded, k)[0][2] for k in (5, 6)], [0.75, 0.85], atol=1e-5)
    assert loaded.instances[-1] == "other|8"  # a type that is unknown


def assert_open(loaded: House) -> None:
    """The side of both rooms is one opening, which is the last door."""
    door = loaded.doors[-1]
    assert sorted(door.rooms) == [0, 1]
    assert door.centre == pytest.approx((4, 1.5))
    assert (door.width, door.height) == (3.0, 2.5)
    assert not is_blocked(loaded, (4, 1.5), 1.4)


def test_no_wall_between_rooms(tmp_path):
    house = two_rooms()
    house["doors"] = []
    for side in house["walls"]:
        if side["id"] in ("wall|A2", "wall|B0"):
            side["empty"] = True
    assert_open(load_procthor(write_houses(tmp_path, house), 0))


def test_same_finish_is_one_box(tmp_path):
    house = two_rooms()
    for side in house["walls"]:
        side["material"] = {"name": "Drywall"}
    inner = {row for row in boxes(load_procthor(write_houses(tmp_path, house), 0), "wall") if abs(row[0] - 4) < 0.02}
    assert {(row[0], row[4]) for row in inner} == {(4.0, 0.02)}
    assert len(inner) == 3


def test_every_file_format(tmp_path):
    write_houses(tmp_path)  # for its sizes of assets
    houses = [two_rooms(), {**two_rooms(), "windows": []}]
    lines = "\n".join(map(json.dumps, houses)).encode()
    array = json.dumps(houses).encode()
    for ending, content in (("jsonl", lines), ("json", array)):
        (tmp_path / f"houses.{ending}").write_bytes(content)
        (tmp_path / f"houses.{ending}.gz").write_bytes(gzip.compress(content))
    for path in tmp_path.glob("houses.*"):
        assert count_procthor(path) == 2
        assert [load_procthor(path, i).instances.count("window|3") for i in range(2)] == [1, 0]


def test_materials_of_older_houses_are_names(tmp_path):
    house = two_rooms()
    for part in (house["rooms"][1], *house["walls"]):
        key = "material" if "material" in part else "floorMaterial"
        part[key] = part[key]["name"] if "color" not in part[key] else part[key]
    old = load_procthor(write_houses(tmp_path, two_rooms(), house), 1)
    new = load_procthor(tmp_path / "made.jsonl", 0)
    assert pickle.dumps((old.shapes, old.rooms)) == pickle.dumps((new.shapes, new.rooms))


def test_the_example_of_the_page_is_played():
    files = {"houses": str(EXAMPLE / "my_house.json"), "asset_sizes": str(EXAMPLE / "my_sizes.json")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make("memenvs/ExtObjNav-v0", world="procthor", split="all", obs_mode="symbolic", **files)
        env.reset(seed=0)
    loaded = load_procthor(files["houses"], 0, asset_sizes=files["asset_sizes"])
    assert loaded.instances == ("building", "door|1", "dining_table|2", "sofa|3")
    assert (loaded.area, loaded.doors[0].rooms) == (20.0, (0, -1))


def test_a_written_home_is_read_as_it_was(tmp_path, capsys):
    """Also without sizes of assets; a wrong value is named with the file, its line and the key."""
    made = write_houses(tmp_path, two_rooms())
    (tmp_path / "other").mkdir()
    out = tmp_path / "other" / "home.json"
    for source in (("--file", str(made)), ("--seed", "1002")):
        assert main(["house", *source, "--json-out", str(out), "--json"]) == 0
        facts = capsys.readouterr().out
        assert main(["house", "--file", str(out), "--json"]) == 0
        assert capsys.readouterr().out == facts
        house = load_procthor(made, 0) if source[0] == "--file" else procedural_house(1002)
        read = load_procthor(out, 0)
        assert pickle.dumps(read.shapes) == pickle.dumps(house.shapes)
        for name in ("doors", "receptacles", "instances", "height"):
            assert getattr(read, name) == getattr(house, name), name
        for room, expected in zip(read.rooms, house.rooms, strict=True):
            assert (room.polygon == expected.polygon).all() and room.type == expected.type
            assert (room.floor_material, room.floor_colour) == (expected.floor_material, tuple(expected.floor_colour))
    world = make_house_world("procthor", split="all", houses=out)
    assert (len(world), world.max_rooms) == (1, len(house.rooms))
    assert len(world.home(0).house.shapes) == len(house.shapes)
    document = json.loads(out.read_text())
    for edit, message in (
        (_set("shapes", "half", 0, 0, 0.0), r"shapes\.half must be numbers above 0"),
        (_set("shapes", "half", 0, [1, 2]), r"shapes\.half must be a list of \d+ times 3 numbers"),
        (_set("shapes", "semantic", 0, 255), r"shapes\.semantic must be numbers from 0"),
        (_set("shapes", "instance", 1, 9999), r"shapes\.instance must be numbers"),
        (_set("rooms", 0, "floor_material", "gold"), r"rooms\[0\]\.floor_material must be one of"),
        (_set("instances", KeyError), "instances is missing"),
        (_set("rooms", 0, "polygon", document["rooms"][0]["polygon"][::-1]), r"polygon must be corners counter-clock"),
        (_set("rooms", 0, "polygon", 0, 0, -99.0), "rooms must lie within 100 by 100 m"),
        (_set("doors", []), "doors must join all"),
    ):
        broken = copy.deepcopy(document)
        edit(broken)
        out.write_text(json.dumps(broken))
        with pytest.raises(ValueError, match=rf"home\.json.*{message}"):
            load_procthor(out, 0)


def _set(*keys_and_value):
    *keys, last, value = keys_and_value

    def edit(house):
        for key in keys:
            house = house[key]
        if value is KeyError:
            del house[last]
        else:
            house[last] = value

    return edit


FLAT = [{"x": 0, "y": 0, "z": 0}, {"x": 1, "y": 0, "z": 0}, {"x": 2, "y": 0, "z": 0}]
BOW = [{"x": x, "y": 0, "z": z} for x, z in ((0, 0), (4, 3), (4, 0), (0, 3), (-1, 1))]


WRONG_HOUSES = (
    (_set("rooms", []), "rooms must be a list of at least 1"),
    (_set("rooms", 0, "id", 7), r"rooms\[0\].id must be a string, got 7"),
    (_set("rooms", 0, "floorPolygon", FLAT), r"rooms\[0\].floorPolygon must be a polygon"),
    (_set("rooms", 1, "floorPolygon", BOW), r"rooms\[1\].floorPolygon must be a polygon"),
    (_set("rooms", 0, "floorPolygon", 2, "z", math.nan), r"floorPolygon\[2\].z must be a finite number, got nan"),
    (_set("walls", {}), "walls must be a list"),
    (_set("walls", 0, "roomId", "C"), r"walls\[0\].roomId must be the id of one of the rooms \['A', 'B'\]"),
    (_set("walls", 0, "polygon", 1, "z", 0), r"walls\[0\].polygon must be two different corners"),
    (_set("walls", 0, "empty", "yes"), r"walls\[0\].empty must be true or false"),
    (_set("doors", []), r"doors must join all 2 rooms.* no path leads from rooms\[0\] to rooms\[1\]"),
    (_set("doors", 0, "wall0", "nowhere"), r"doors\[0\].wall0 must be the id of one of the walls, got 'nowhere'"),
    (_set("doors", 0, "holePolygon", 1, "x", 9), r"doors\[0\].holePolygon must be within its wall of 3.000 by 2.5"),
    (_set("windows", 0, "holePolygon", 1, "x", 0.5), r"windows\[0\].holePolygon must be at least 0.15 m wide"),
    (_set("objects", 0, "children", 0, "position", KeyError), r"objects\[0\].children\[0\].position is missing"),
    (_set("rooms", 0, "floorPolygon", 2, "z", 1e308), r"floorPolygon\[2\].z must be a number from -10000 to 10000"),
    (_set("walls", 3, "polygon", 2, "y", 250), r"walls\[3\].polygon must be at most 100 m long and high"),
    (_set("rooms", [two_rooms()["rooms"][0]] * 101), "rooms must have at most 100 entries, got 101"),
    (_set("objects", two_rooms()["objects"] * 3000), "objects must have at most 5000 entries, got 6000"),
    (_set("objects", two_rooms()["objects"] * 1700), "objects must be at most 5000 with all children, got 5100"),
    (_set("open_walls", {"segments": [[[1, 1], [1, 1]]]}), r"open_walls.segments\[0\] must be two different corners"),
)


@pytest.mark.slow
def test_wrong_houses(tmp_path):
    for edit, message in WRONG_HOUSES:
        house = two_rooms()
        edit(house)
        path = write_houses(tmp_path, two_rooms(), house)
        assert load_procthor(path, 0).name == "made-0"
        with pytest.raises(ValueError, match=message) as caught:
            load_procthor(path, 1)
        assert str(caught.value).startswith(f"{path}, line 2: ")


def test_one_room_of_a_front_door(tmp_path):
    """Holodeck calls the outside "exterior", first or second; others leave the second room out."""
    for rooms in ({"room0": "exterior"}, {"room1": "exterior"}, {"room1": None}):
        house = two_rooms()
        house["doors"][1] |= rooms
        house["windows"][0] |= rooms
        loaded = load_procthor(write_houses(tmp_path, house), 0)
        assert [door.rooms for door in loaded.doors] == [(1, 0), (0, -1)]
        assert is_blocked(loaded, (3, 0), 0.01)
        assert "window|3" in loaded.instances
    house["doors"][1] |= {"room0": "exterior", "room1": "exterior"}
    with pytest.raises(ValueError, match=r"line 1: doors\[1\] must have a room0 or room1 that is a room"):
        load_procthor(write_houses(tmp_path, house), 0)


def test_walls_that_holodeck_leaves_out(tmp_path):
    house = two_rooms()
    house["doors"] = house["doors"][1:]
    house["walls"] = [side for side in house["walls"] if side["id"] not in ("wall|A2", "wall|B0")]
    house["rooms"][0]["roomType"] = "living room-1"
    for segment in ([[4, 0], [4, 3]], [[4, 3], [4, 0]]):
        house["open_walls"] = {"segments": [segment], "openWallBoxes": []}
        loaded = load_procthor(write_houses(tmp_path, house), 0)
        assert_open(loaded)
        assert loaded.rooms[0].type == "living_room"
    house["open_walls"] = []
    with pytest.raises(ValueError, match="doors must join all 2 rooms"):
        load_procthor(write_houses(tmp_path, house), 0)
