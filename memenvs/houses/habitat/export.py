"""Export homes as a scene dataset of habitat-sim."""

from __future__ import annotations

from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.files import atomic_replace, list_files, write_file
from memenvs.houses.classes import CLASSES
from memenvs.houses.gltf import import_trimesh, make_scene
from memenvs.houses.habitat.package import import_habitat, navmesh_settings
from memenvs.houses.home_file import SemanticEntry, describe_home
from memenvs.houses.house import House, points_in_polygon
from memenvs.houses.navigation.navmap import ROBOT_HEIGHT, ROBOT_RADIUS
from memenvs.json_records import format_json

#: Name of the file that describes all homes of a folder.
DATASET_FILE = "homes.scene_dataset_config.json"
#: Region of what belongs to no room.
_NO_ROOM = -1
_BUILDING = 0
_UPRIGHT = {"up": [0, 1, 0], "front": [0, 0, -1]}  # without them the package takes z for up
#: First line of a descriptor; the package recognises it by these words.
_HEADER = "HM3D Semantic Annotations"


def export_habitat(house: House, folder: str | Path) -> list[Path]:
    """Add a home to a scene dataset of habitat-sim.

    Coordinates are those of `memenvs.houses.gltf.make_scene`: metres, our (x, y, z) is (x, z, -y). Semantic ids are
    listed in `homes/NAME.json`, with instance, class and room of each, and with all of the house in our frame
    (`memenvs.houses.home_file`). They are encoded as in HM3D: colours of vertices and a text. The navigation
    mesh is for ExtObjNav's robot; it is written if habitat-sim is installed. World "habitat" plays the data set.

    Args:
        house: The home; its name becomes the name of the files, and replaces an older home of this name.
        folder: The data set; it is made if it does not exist.

    Returns:
        The files that were written. The last one, `homes.scene_dataset_config.json`, is the
        `scene_dataset_config_file` of the package, whose `scene_id` is the name of the home.

    Raises:
        ImportError: trimesh is not installed.
        ValueError: The home has more semantic ids than there are colours, or habitat-sim finds no floor in it.
    """
    folder = Path(folder)
    name = house.name
    scene = make_scene(house)
    entries, entry_of_mesh = _semantic_entries(house, scene)
    stage = {
        "render_asset": f"{name}.glb",
        **_UPRIGHT,
        "semantic_asset": f"{name}.semantic.glb",
        "semantic_descriptor_filename": f"{name}.semantic.txt",
        **{f"semantic_{key}": value for key, value in _UPRIGHT.items()},
        "has_semantic_textures": False,
    }
    # The suffix keeps home-1 apart from home-10: the package searches for parts of names.
    # It reads the descriptor of a scene instance that names it, not that of its stage.
    instance = {
        "stage_instance": {"template_name": f"stages/{name}.stage_config.json"},
        "navmesh_instance": name,
        "semantic_scene_instance": name,
    }
    files = {
        f"stages/{name}.glb": scene.export(file_type="glb"),
        f"stages/{name}.semantic.glb": _semantic_mesh(scene, entry_of_mesh).export(file_type="glb"),
        f"stages/{name}.semantic.txt": _descriptor(entries).encode(),
        f"stages/{name}.stage_config.json": _json(stage),
        f"scenes/{name}.scene_instance.json": _json(instance),
        f"homes/{name}.json": format_json(describe_home(house, entries)).encode(),
    }
    for path, content in files.items():
        write_file(folder / path, content)
    written = [folder / path for path in files]
    navmesh = folder / "navmeshes" / f"{name}.navmesh"
    navmesh.unlink(missing_ok=True)  # of an older home of this name
    try:
        habitat_sim = import_habitat()
    except ImportError:
        pass  # the package builds one itself, with settings of its own
    else:
        write_navmesh(habitat_sim, folder / f"stages/{name}.stage_config.json", navmesh)
        written.append(navmesh)
    navmeshes = {path.stem: f"navmeshes/{path.name}" for path in list_files(folder, "navmeshes/*.navmesh")}
    dataset = {
        "stages": {"paths": {".json": ["stages/*.stage_config.json"]}},
        "scene_instances": {"paths": {".json": ["scenes/*.scene_instance.json"]}},
        "navmesh_instances": navmeshes,
        "semantic_scene_descriptor_instances": {
            path.name.removesuffix(".semantic.txt"): f"stages/{path.name}"
            for path in list_files(folder, "stages/*.semantic.txt")
        },
    }
    write_file(folder / DATASET_FILE, _json(dataset))
    return [*written, folder / DATASET_FILE]


def write_navmesh(habitat_sim: Any, stage: Path, out: Path) -> None:
    """Build the navigation mesh of a stage for ExtObjNav's robot.

    Args:
        habitat_sim: The package.
        stage: A stage config.
        out: File to write.

    Raises:
        ValueError: The package finds no floor.
    """
    settings = navmesh_settings(habitat_sim, ROBOT_RADIUS, ROBOT_HEIGHT)
    scene = habitat_sim.SimulatorConfiguration()
    scene.scene_id = str(stage)
    agent = habitat_sim.agent.AgentConfiguration(sensor_specifications=[])  # without a camera nothing is drawn
    with habitat_sim.Simulator(habitat_sim.Configuration(scene, [agent])) as simulator:
        if not simulator.recompute_navmesh(simulator.pathfinder, settings) or not simulator.pathfinder.is_loaded:
            raise ValueError(f"habitat-sim finds no floor for a robot in {stage}")
        out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_replace(out) as temporary:
            simulator.pathfinder.save_nav_mesh(str(temporary))


def _json(document: Any) -> bytes:
    return format_json(document, indent=1).encode()


def _semantic_entries(house: House, scene: Any) -> tuple[list[SemanticEntry], dict[str, SemanticEntry]]:
    """Number the semantic ids of a home.

    Returns:
        The entries in the order of their ids, and that of each mesh of the scene, by its name.
    """
    numbers: dict[tuple[int, int, int], SemanticEntry] = {}
    entry_of_mesh = {}
    for name, mesh in scene.geometry.items():
        instance, semantic = mesh.metadata["instance_id"], mesh.metadata["semantic_id"]
        is_level = instance == _BUILDING and CLASSES[semantic] in ("floor", "ceiling")  # of one room each
        if is_level:
            point = mesh.triangles_center[0]
        else:
            rows = house.shapes.instance == instance
            x, y, z = house.shapes.centre[rows].mean(0)
            point = np.array([x, z, -y])
        room = _room_at(house, point[[0, 2]] * (1, -1)) if is_level or instance != _BUILDING else _NO_ROOM
        key = instance, semantic, room
        numbers.setdefault(key, SemanticEntry(len(numbers) + 1, *key))
        entry_of_mesh[name] = numbers[key]
    return list(numbers.values()), entry_of_mesh


def _room_at(house: House, point: np.ndarray) -> int:
    """Index of the first room that a point (2,) on the floor plan lies in."""
    inside = (room for room, data in enumerate(house.rooms) if points_in_polygon(point[None], data.polygon)[0])
    return next(inside, _NO_ROOM)


def _semantic_mesh(scene: Any, entry_of_mesh: dict[str, SemanticEntry]) -> Any:
    """One mesh of the whole home, whose vertices have the colours of their semantic ids."""
    library = import_trimesh()
    colours = _colours(max(entry.id for entry in entry_of_mesh.values()))
    vertices, faces, rgba, count = [], [], [], 0
    for name, mesh in scene.geometry.items():
        vertices.append(mesh.vertices)
        faces.append(mesh.faces + count)
        rgba.append(np.tile([*colours[entry_of_mesh[name].id - 1][0], 255], (len(mesh.vertices), 1)))
        count += len(mesh.vertices)
    whole = library.Trimesh(np.concatenate(vertices), np.concatenate(faces), process=False)
    whole.visual = library.visual.ColorVisuals(whole, vertex_colors=np.concatenate(rgba).astype(np.uint8))
    return whole


def _descriptor(entries: list[SemanticEntry]) -> str:
    """Text that maps colours to ids: id, colour, "class", room."""
    colours = _colours(len(entries))
    lines = [
        f'{entry.id},{"".join(f"{part:02X}" for part in encoded)},"{CLASSES[entry.semantic]}",{entry.room}'
        for entry, (_, encoded) in zip(entries, colours, strict=True)
    ]
    return "\n".join([_HEADER, *lines, ""])


def _colours(count: int) -> list[tuple[tuple[int, int, int], tuple[int, int, int]]]:
    """Choose distinct colours: the bytes that the mesh stores, and those that the package compares.

    The package takes the stored bytes for linear light and encodes them as sRGB, so both differ, and neighbouring
    bright bytes become equal.

    Raises:
        ValueError: More colours are wanted than there are.
    """
    linear = np.arange(256) / 255
    encoded = 255 * np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    levels: dict[int, int] = {}  # encoded -> stored
    for stored, value in enumerate(encoded):
        if abs(value - round(value)) < 0.25:  # rounding errors do not change it
            levels.setdefault(round(value), stored)
    colours = list(islice(product(list(levels.items())[1:], repeat=3), count))  # without 0: black stands for nothing
    if len(colours) < count:
        raise ValueError(f"there are colours for {len(colours)} semantic ids, got {count}")
    return [((r[1], g[1], b[1]), (r[0], g[0], b[0])) for r, g, b in colours]  # of (encoded, stored)
