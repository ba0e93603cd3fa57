"""Small scene datasets in the layout of HSSD and ReplicaCAD, made from homes of ours."""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, CLASSES, MATERIAL_INDEX, YCB_CLASSES
from memenvs.houses.gltf import make_object, make_scene
from memenvs.houses.habitat import export, package, simulation, world
from memenvs.houses.house import BOX, Door, House, Receptacle, Room, ShapeBuilder
from memenvs.houses.ycb import object_shapes
from tests.houses.habitat import fake_habitat_sim
from tests.vln.toys import write_json

#: Offset of semantic ids of classes from ours, so that a test notices where one is taken for the other.
FIRST_CLASS = 100
_UPRIGHT = {"up": [0, 1, 0], "front": [0, 0, -1]}


def install_fake(monkeypatch) -> None:
    """Put the stand-in in the place of the package."""
    monkeypatch.setattr(package, "choose_gpu", lambda: -1)
    monkeypatch.setattr(simulation, "choose_gpu", lambda: -1)
    monkeypatch.setattr(simulation, "check_drawing", lambda: None)
    magnum = SimpleNamespace(
        Rad=float, Vector3=SimpleNamespace(y_axis=tuple), Quaternion=SimpleNamespace(rotation=lambda *parts: parts)
    )
    monkeypatch.setitem(sys.modules, "magnum", magnum)
    for module in (export, simulation, world):
        monkeypatch.setattr(module, "import_habitat", lambda: fake_habitat_sim)
    simulation.simulation.cache_clear()


def make_house(name: str, yaw: float = 0.0) -> House:
    """Two rooms of 4 by 4 m and a table, turned by `yaw`, rad."""
    builder = ShapeBuilder()
    table = CLASS_INDEX["dining_table"]
    builder.add(BOX, (2, 2, 0.4), (0.8, 0.4, 0.4), yaw=yaw, semantic=table, instance=1)
    rooms = tuple(
        Room(type, np.array([(x, 0), (x + 4, 0), (x + 4, 4), (x, 4)], float), MATERIAL_INDEX["tiles"], (180, 170, 160))
        for type, x in (("kitchen", 0), ("study", 4))
    )
    door = Door((0, 1), (4.0, 2.0), 4.0, 2.1, math.pi / 2)
    return House(
        name, builder.build(), rooms, (door,), (Receptacle(1, (2, 2, 0.8), (0.8, 0.4), yaw),), ("building", "table|1")
    )


def write_scene(house: House, folder: Path) -> Path:
    """Add a home to a data set: walls are the stage, furniture are objects with receptacles.

    Returns:
        The scene dataset config.
    """
    name = house.name
    (folder / "stages").mkdir(parents=True, exist_ok=True)
    (folder / "objects").mkdir(exist_ok=True)
    walls = replace(house, shapes=house.shapes.take(house.shapes.instance == 0), instances=house.instances[:1])
    (folder / "stages" / f"{name}.glb").write_bytes(make_scene(walls).export(file_type="glb"))
    write_json(folder / "stages" / f"{name}.stage_config.json", {"render_asset": f"{name}.glb", **_UPRIGHT})
    objects = []
    for instance in range(1, len(house.instances)):
        shapes = house.shapes.take(house.shapes.instance == instance)
        if not len(shapes):
            continue
        template = f"{name}_{instance}"
        x, y = shapes.centre[0, :2].astype(float)
        yaw = float(shapes.yaw[0])
        cos, sin = math.cos(yaw), math.sin(yaw)
        to_object = np.array([[cos, sin], [-sin, cos]])  # of the floor plan
        centre = shapes.centre.copy()
        centre[:, :2] = (centre[:, :2] - (x, y)) @ to_object.T
        own = replace(shapes, centre=centre.astype(np.float32), yaw=(shapes.yaw - yaw).astype(np.float32))
        (folder / "objects" / f"{template}.glb").write_bytes(make_object(own).export(file_type="glb"))
        receptacles = {}
        own_receptacles = [receptacle for receptacle in house.receptacles if receptacle.instance == instance]
        for number, receptacle in enumerate(own_receptacles):
            px, py = to_object @ (np.array(receptacle.centre[:2]) - (x, y))
            turn = round((receptacle.yaw - yaw) / (math.pi / 2))  # all surfaces are at right angles to their furniture
            half = receptacle.half if turn % 2 == 0 else receptacle.half[::-1]
            receptacles[f"receptacle_aabb_{number}_{template}"] = {
                "name": f"receptacle_aabb_{number}_{template}",
                "parent_object": template,
                "position": [float(px), receptacle.centre[2] + 0.02, -float(py)],
                "scale": [float(half[0]), 0.01, float(half[1])],
                "up": [0.0, 1.0, 0.0],
            }
        semantic = int(shapes.semantic[0])
        write_json(
            folder / "objects" / f"{template}.object_config.json",
            {"render_asset": f"{template}.glb", "semantic_id": FIRST_CLASS + semantic, "user_defined": receptacles},
        )
        kind = {"template_name": template, "motion_type": "STATIC", "translation_origin": "asset_local"}
        turned = [math.cos(yaw / 2), 0.0, math.sin(yaw / 2), 0.0]
        objects.append({**kind, "translation": [float(x), 0.0, -float(y)], "rotation": turned})
    regions = [
        {
            "name": f"{room.type}_{number}",
            "label": room.type.replace("_", " "),
            "poly_loop": [[float(x), 0.0, -float(y)] for x, y in room.polygon],
            "floor_height": 0.0,
            "extrusion_height": house.height,
        }
        for number, room in enumerate(house.rooms)
    ]
    labels = [{"id": FIRST_CLASS + number, "name": label} for number, label in enumerate(CLASSES)]
    stage = {"template_name": f"stages/{name}"}
    scene = {"stage_instance": stage, "object_instances": objects, "semantic_scene_instance": name}
    write_json(folder / "semantics" / "scenes" / f"{name}.semantic_config.json", {"region_annotations": regions})
    write_json(folder / "semantics" / "test_semantic_lexicon.json", {"classes": labels})
    write_json(folder / "scenes" / f"{name}.scene_instance.json", scene)
    files = {
        "stages": "stages/*.stage_config.json",
        "objects": "objects",
        "scene_instances": "scenes",
        "semantic_scene_descriptor_instances": "semantics/scenes/*.semantic_config.json",
    }
    dataset = {kind: {"paths": {".json": [pattern]}} for kind, pattern in files.items()}
    return write_json(folder / "test.scene_dataset_config.json", dataset)


def write_stage(house: House, path: Path, *, y_up: bool = False) -> Path:
    """Write a home as one mesh: with z up, as the package takes it, or with y up and a config."""
    scene = make_scene(house)
    if not y_up:
        turn = np.eye(4)
        turn[:3, :3] = [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
        scene.apply_transform(turn)
    path.write_bytes(scene.export(file_type="glb"))
    if not y_up:
        return path
    config = path.with_suffix(".stage_config.json")
    write_json(config, {"render_asset": path.name, **_UPRIGHT})
    return config


def write_cabinet(folder: Path, scene: str, at: tuple[float, float]) -> None:
    """Add an articulated cabinet with a drawer to a scene, as ReplicaCAD has them.

    Args:
        folder: The data set.
        scene: Name of the scene.
        at: Where it stands on our floor plan, m.
    """
    urdf = folder / "urdf" / "cabinet"
    urdf.mkdir(parents=True, exist_ok=True)
    for name, half in (("body", (0.3, 0.2, 0.4)), ("drawer", (0.25, 0.15, 0.1))):
        builder = ShapeBuilder()
        builder.add(BOX, (0.0, 0.0, half[2]), half, semantic=CLASSES.index("cabinet"), instance=1)
        (urdf / f"{name}.glb").write_bytes(make_object(builder.build()).export(file_type="glb"))
    mass = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    links = "".join(
        f'<link name="{link}"><visual><geometry><mesh filename="{mesh}.glb"/></geometry></visual>{mass}</link>'
        for link, mesh in (("base", "body"), ("drawer", "drawer"))
    )
    (urdf / "cabinet.urdf").write_text(
        f'<robot name="cabinet">{links}<joint name="slide" type="prismatic"><parent link="base"/><child link="drawer"/>'
        '<origin xyz="0 0.1 0.3" rpy="0 0 0"/><axis xyz="0 0 1"/><limit lower="0" upper="0.3" effort="1" velocity="1"/>'
        "</joint></robot>"
    )
    surface = {"position": [0.0, 0.81, 0.0], "scale": [0.3, 0.01, 0.2], "up": [0.0, 1.0, 0.0], "parent_link": "base"}
    write_json(
        urdf / "cabinet.ao_config.json",
        {"urdf_filepath": "cabinet.urdf", "user_defined": {"receptacle_aabb_top_cabinet": surface}},
    )
    path = folder / "test.scene_dataset_config.json"
    dataset = json.loads(path.read_text())
    dataset["articulated_objects"] = {"paths": {".urdf": ["urdf/*"]}}
    write_json(path, dataset)
    path = folder / "scenes" / f"{scene}.scene_instance.json"
    instance = json.loads(path.read_text())
    cabinet = {"template_name": "cabinet", "fixed_base": True, "translation_origin": "asset_local"}
    instance["articulated_object_instances"] = [{**cabinet, "translation": [at[0], 0.0, -at[1]]}]
    write_json(path, instance)


def write_objects(folder: Path, own: Sequence[int] = range(len(YCB_CLASSES))) -> Path:
    """Write the 20 objects of ExtObjNav as object configs; returns their folder.

    Those that are not in `own` have the mesh of the first one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for category in own:
        shapes = object_shapes(category, (0.0, 0.0, 0.0))
        (folder / f"{YCB_CLASSES[category]}.glb").write_bytes(make_object(shapes).export(file_type="glb"))
    for category, name in enumerate(YCB_CLASSES):
        mesh = YCB_CLASSES[category if category in own else own[0]]
        write_json(folder / f"{name}.object_config.json", {"render_asset": f"{mesh}.glb"})
    return folder
