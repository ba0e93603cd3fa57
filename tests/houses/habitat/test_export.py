"""Homes as a scene dataset of habitat-sim, read back by the rules of the package."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from memenvs.houses.classes import CLASS_INDEX, CLASSES
from memenvs.houses.habitat import export
from memenvs.houses.habitat.export import DATASET_FILE, export_habitat
from memenvs.houses.home_file import read_home
from memenvs.houses.house import BOX, House, ShapeBuilder, Shapes
from tests.houses.habitat import fake_habitat_sim
from tests.houses.habitat.scenes import make_house

trimesh = pytest.importorskip("trimesh", reason="needs the extra export")


@pytest.fixture
def house() -> House:
    """Rooms x 0 to 4 and 4 to 8, y 0 to 4, a wall between, the table and a two-class shelf."""
    made, builder = make_house("home-1"), ShapeBuilder()
    builder.add(BOX, (4, 0.4, 1.25), (0.05, 0.4, 1.25), semantic=CLASS_INDEX["wall"])
    builder.add(BOX, (7.5, 1.5, 0.6), (0.3, 0.2, 0.6), semantic=CLASS_INDEX["bookshelf"], instance=2)
    builder.add(BOX, (7.5, 1.5, 1.3), (0.1, 0.1, 0.1), semantic=CLASS_INDEX["book"], instance=2, colour=(9, 9, 9))
    shapes = Shapes.concatenate([made.shapes, builder.build()])
    return replace(made, shapes=shapes, instances=(*made.instances, "bookshelf|2"), height=2.5)


@pytest.fixture
def no_package(monkeypatch):
    def refuse():
        raise ImportError("not installed")

    monkeypatch.setattr(export, "import_habitat", refuse)


def colour_of(stored: np.ndarray) -> str:
    """Hex colour that the package compares.

    It takes the bytes of a vertex for linear light and encodes them as sRGB.
    """
    linear = stored / 255
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "".join(f"{int(value):02X}" for value in np.round(255 * encoded))


def test_every_surface_has_the_id_of_its_instance_and_class(house, tmp_path, no_package):
    export_habitat(house, tmp_path / "new" / "set")
    stages = tmp_path / "new" / "set" / "stages"
    header, *lines = (stages / "home-1.semantic.txt").read_text().splitlines()
    assert "HM3D Semantic Annotations" in header
    rows = {}
    for line in lines:
        number, colour, name, room = line.split(",")
        rows[colour] = int(number), name.strip('"'), int(room)
    assert sorted(number for number, *_ in rows.values()) == list(range(1, len(lines) + 1))
    assert len(rows) == len(lines) == 8  # a wall, two floors, two ceilings, a table, and two parts of a shelf
    listed = json.loads((tmp_path / "new" / "set" / "homes" / "home-1.json").read_text())["semantic_ids"]
    of_id = {entry["id"]: entry for entry in listed}
    mesh = trimesh.load(stages / "home-1.semantic.glb", force="mesh", process=False)
    colours = np.asarray(mesh.visual.vertex_colors)[:, :3]
    bounds = {}
    for stored in np.unique(colours, axis=0):
        number, name, room = rows[colour_of(stored)]  # each colour of the mesh is in the text, exactly
        points = mesh.vertices[(colours == stored).all(1)][:, [0, 2, 1]] * (1, -1, 1)  # our x, y, z
        bounds[of_id[number]["instance"], name, room] = points.min(0).round(5).tolist(), points.max(0).round(5).tolist()
        assert of_id[number]["semantic_class"] == name
        assert of_id[number]["semantic_id"] == CLASS_INDEX[name]
        assert of_id[number]["room"] == room
    assert bounds == {
        ("building", "wall", -1): ([3.95, 0, 0], [4.05, 0.8, 2.5]),
        ("building", "floor", 0): ([0, 0, 0], [4, 4, 0]),
        ("building", "floor", 1): ([4, 0, 0], [8, 4, 0]),
        ("building", "ceiling", 0): ([0, 0, 2.5], [4, 4, 2.5]),
        ("building", "ceiling", 1): ([4, 0, 2.5], [8, 4, 2.5]),
        ("table|1", "dining_table", 0): ([1.2, 1.6, 0], [2.8, 2.4, 0.8]),
        ("bookshelf|2", "bookshelf", 1): ([7.2, 1.3, 0], [7.8, 1.7, 1.2]),
        ("bookshelf|2", "book", 1): ([7.4, 1.4, 1.2], [7.6, 1.6, 1.4]),
    }
    assert trimesh.load(stages / "home-1.glb").bounds.tolist() == mesh.bounds.tolist()


def test_colours_stay_apart():
    """Neighbouring bright bytes become one colour when they are encoded; thousands of others must not."""
    chosen = export._colours(5000)
    assert len({colour_of(np.array(stored)) for stored, _ in chosen}) == 5000
    for stored, encoded in chosen[::97]:
        assert colour_of(np.array(stored)) == "".join(f"{value:02X}" for value in encoded)
        assert 0 not in encoded
    assert colour_of(np.array([37, 37, 37])) == "6A6A6A"  # as the package was seen to encode it
    with pytest.raises(ValueError, match="got 9000000"):
        export._colours(9_000_000)


def test_a_folder_of_homes(house, tmp_path, monkeypatch):
    """The second home is added, a home of the same name replaced; each navigation mesh is that of the task's robot."""
    monkeypatch.setattr(export, "import_habitat", lambda: fake_habitat_sim)
    export_habitat(house, tmp_path)
    other = replace(house, name="home-10", height=3.0)
    paths = export_habitat(other, tmp_path)
    assert all(path.is_file() for path in paths)
    dataset = json.loads((tmp_path / DATASET_FILE).read_text())
    names = {"home-1": "navmeshes/home-1.navmesh", "home-10": "navmeshes/home-10.navmesh"}
    assert dataset["navmesh_instances"] == names
    descriptors = dataset["semantic_scene_descriptor_instances"]
    assert descriptors == {name: f"stages/{name}.semantic.txt" for name in names}
    for name in names:
        settings = json.loads((tmp_path / names[name]).read_text())["settings"]
        assert settings["agent_radius"] == 0.30 and settings["agent_max_climb"] == 0.2
        assert settings["cell_height"] == settings["cell_size"] == 0.05
        scene = json.loads((tmp_path / "scenes" / f"{name}.scene_instance.json").read_text())
        configs = [
            path.name for path in tmp_path.glob("stages/*") if scene["stage_instance"]["template_name"][7:] in path.name
        ]
        assert configs == [f"{name}.stage_config.json"]  # the package takes the first whose name has this part
        assert scene["navmesh_instance"] == scene["semantic_scene_instance"] == name
    stage = json.loads((tmp_path / "stages" / "home-1.stage_config.json").read_text())
    assert stage["up"] == stage["semantic_up"] == [0, 1, 0]
    assert stage["front"] == stage["semantic_front"] == [0, 0, -1]
    before = (tmp_path / "navmeshes" / "home-10.navmesh").read_bytes()
    monkeypatch.setattr(export, "ROBOT_RADIUS", 9.0)
    with pytest.raises(ValueError, match=r"finds no floor for a robot in .*home-1\.stage_config\.json"):
        export_habitat(house, tmp_path)
    assert sorted(path.name for path in (tmp_path / "navmeshes").iterdir()) == ["home-10.navmesh"]
    assert (tmp_path / "navmeshes" / "home-10.navmesh").read_bytes() == before


def test_description_is_in_our_frame(house, tmp_path, no_package):
    export_habitat(house, tmp_path)
    home = json.loads((tmp_path / "homes" / "home-1.json").read_text())
    assert [room["type"] for room in home["rooms"]] == ["kitchen", "study"]
    assert home["rooms"][1]["polygon"] == [[4, 0], [8, 0], [8, 4], [4, 4]]
    assert home["doors"] == [{"rooms": [0, 1], "centre": [4.0, 2.0], "width": 4.0, "height": 2.1, "yaw": math.pi / 2}]
    assert home["receptacles"][0]["centre"] == [2, 2, 0.8]
    assert {entry["semantic_class"] for entry in home["semantic_ids"]} <= set(CLASSES)
    assert json.loads((tmp_path / DATASET_FILE).read_text())["navmesh_instances"] == {}
    _, entries = read_home(tmp_path / "homes" / "home-1.json")
    assert [entry.id for entry in entries] == list(range(1, len(entries) + 1))
    home["semantic_ids"][2]["room"] = 99
    (tmp_path / "homes" / "home-1.json").write_text(json.dumps(home))
    with pytest.raises(ValueError, match=r"home-1\.json.*semantic_ids\[2\]\.room must be a whole number from -1"):
        read_home(tmp_path / "homes" / "home-1.json")
