"""GLB files are read back with trimesh and compared with the home that they were made of."""

import io
import json
import struct
import sys

import numpy as np
import pytest

from memenvs.houses.classes import CLASS_INDEX, MATERIAL_INDEX
from memenvs.houses.gltf import CYLINDER_SIDES, _fan, make_scene
from memenvs.houses.house import BOX, CYLINDER, ELLIPSOID, House, Room, ShapeBuilder, polygon_area

trimesh = pytest.importorskip("trimesh")

CORNERS = np.array([(0, 0), (4, 0), (4, 1), (2, 1), (2, 3), (0, 3)], float)  # an L of 4 + 4 square metres


@pytest.fixture(scope="module")
def house() -> House:
    """An L-shaped room with a wall, a turned two-coloured table, a round bin and a ball."""
    builder = ShapeBuilder()
    builder.add(BOX, (2, 0, 1.25), (2, 0.05, 1.25), semantic=CLASS_INDEX["wall"], material=MATERIAL_INDEX["plaster"])
    table = {"semantic": CLASS_INDEX["dining_table"], "material": MATERIAL_INDEX["wood"], "instance": 1}
    builder.add(BOX, (1, 2, 0.7), (0.6, 0.3, 0.05), yaw=np.pi / 2, colour=(200, 100, 50), **table)
    builder.add(BOX, (1, 2, 0.3), (0.1, 0.1, 0.3), yaw=np.pi / 2, colour=(20, 30, 40), **table)
    builder.add(CYLINDER, (3, 0.5, 0.25), (0.2, 0.2, 0.25), semantic=CLASS_INDEX["bin"], instance=2)
    builder.add(ELLIPSOID, (3.5, 0.5, 0.3), (0.1, 0.2, 0.3), semantic=CLASS_INDEX["plant"], instance=3)
    room = Room("kitchen", CORNERS, MATERIAL_INDEX["tiles"], (180, 170, 160))
    names = ("building", "dining_table|1", "bin|2", "plant|3")
    return House("made", builder.build(), (room,), (), (), names, height=2.5)


@pytest.fixture(scope="module")
def scene(house):
    return read_back(house)


def read_back(house: House):
    return trimesh.load(io.BytesIO(make_scene(house).export(file_type="glb")), file_type="glb")


def meshes(scene, name):
    """Meshes of a class."""
    return [mesh for mesh in scene.geometry.values() if mesh.metadata["semantic_class"] == name]


def test_no_triangle_is_without_area(scene):
    """Corners on straight sides of the convex pieces of a floor would make triangles of no area."""
    outlines = [
        [(1.742, 10.45), (0.0, 10.45), (0.0, 0.0), (1.742, 0.0), (1.742, 5.225)],
        [(0, 0), (2, 0), (4, 0), (4, 4), (0, 4)],
        [(0, 0), (1, 0), (2, 0), (4, 0), (4, 4), (2, 4), (0, 4), (0, 2)],  # not without dropping some
    ]
    for outline in outlines:
        for shift in range(len(outline)):
            corners = np.roll(np.array(outline, float), shift, axis=0)
            triangles = corners[_fan(corners)]
            sides = triangles[:, 1:] - triangles[:, :1]
            areas = np.linalg.det(sides) / 2
            assert areas.min() > 0.1
            assert areas.sum() == pytest.approx(abs(polygon_area(corners)))
    assert min(mesh.area_faces.min() for mesh in scene.geometry.values()) > 1e-9


def test_a_node_for_every_instance(scene, house):
    content = make_scene(house).export(file_type="glb")
    (length,) = struct.unpack("<I", content[12:16])
    tree = json.loads(content[20 : 20 + length])
    nodes = {node["name"]: node for node in tree["nodes"]}
    assert set(house.instances) <= set(nodes)
    assert nodes["building"]["extras"] == {"instance_id": 0}
    for index, name in enumerate(house.instances[1:], start=1):
        expected = {"instance_id": index, "semantic_class": name.split("|")[0]}
        expected["semantic_id"] = CLASS_INDEX[expected["semantic_class"]]
        assert nodes[name]["extras"] == expected
        for child in nodes[name]["children"]:
            extras = tree["meshes"][tree["nodes"][child]["mesh"]]["extras"]
            assert expected.items() <= extras.items()
    children = [child for name in house.instances for child in nodes[name]["children"]]
    assert len(children) == len(scene.geometry) == 7
    numbers = {mesh.metadata["semantic_class"]: mesh.metadata["semantic_id"] for mesh in scene.geometry.values()}
    assert numbers == {name: CLASS_INDEX[name] for name in ("wall", "floor", "ceiling", "dining_table", "bin", "plant")}


def test_areas_and_volumes(scene):
    (wall,) = meshes(scene, "wall")
    assert wall.is_watertight
    assert wall.volume == pytest.approx(4 * 0.1 * 2.5, rel=1e-5)
    boards = meshes(scene, "dining_table")
    assert all(board.is_watertight for board in boards)
    assert sorted(board.volume for board in boards) == pytest.approx([0.2 * 0.2 * 0.6, 1.2 * 0.6 * 0.1], rel=1e-4)
    (bin_,) = meshes(scene, "bin")
    share = CYLINDER_SIDES / 2 * np.sin(2 * np.pi / CYLINDER_SIDES)  # of the inscribed prism, for radius 1
    assert bin_.is_watertight
    assert bin_.volume == pytest.approx(share * 0.2**2 * 0.5, rel=1e-4)
    (ball,) = meshes(scene, "plant")
    assert ball.is_watertight
    assert 0.95 * 4 / 3 * np.pi * 0.1 * 0.2 * 0.3 < ball.volume < 4 / 3 * np.pi * 0.1 * 0.2 * 0.3
    np.testing.assert_allclose(ball.bounds, [(3.4, 0, -0.7), (3.6, 0.6, -0.3)], atol=1e-6)
    (floor,), (ceiling,) = meshes(scene, "floor"), meshes(scene, "ceiling")
    assert floor.area == pytest.approx(8.0)
    assert ceiling.area == pytest.approx(8.0)
    assert (floor.face_normals[:, 1] > 0.99).all()
    assert (ceiling.face_normals[:, 1] < -0.99).all()
    np.testing.assert_allclose(floor.vertices[:, 1], 0)
    np.testing.assert_allclose(ceiling.vertices[:, 1], 2.5)


def test_turned_board_and_its_colour(scene):
    """0.6 m along its own x, turned by 90 degrees, it is 1.2 m long along our y.

    glTF's factors are linear; sRGB (200, 100, 50) is (0.578, 0.127, 0.032).
    """
    board = max(meshes(scene, "dining_table"), key=lambda mesh: mesh.volume)
    np.testing.assert_allclose(board.bounds, [(0.7, 0.65, -2.6), (1.3, 0.75, -1.4)], atol=1e-6)
    np.testing.assert_allclose(board.visual.material.baseColorFactor / 255, [0.578, 0.127, 0.032, 1], atol=0.003)
    assert board.metadata["material"] == "wood"


def test_without_trimesh(house, monkeypatch):
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(ImportError, match=r'pip install "memenvs\[export\]"'):
        make_scene(house)
