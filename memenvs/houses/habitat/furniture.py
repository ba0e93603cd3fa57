"""Objects that a scene of habitat-sim has of its own, and the surfaces marked on them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.houses.gltf import import_trimesh
from memenvs.houses.habitat.glb import check_glb

_BOX, _MESH = "receptacle_aabb_", "receptacle_mesh_"


@dataclass(frozen=True, eq=False)
class MarkedSurface:
    """A surface for small objects, or a box above it, as a data set marks it ("receptacle").

    Attributes:
        name: Its name.
        to_world: float64, (4, 4); from its own frame to habitat-sim's.
        low: float64, (3,); corner of its bounding box in its own frame, m.
        high: float64, (3,); the opposite corner.
        triangles: float64, (T, 3, 3); the surface itself, in its own frame; None for the whole box.
    """

    name: str
    to_world: np.ndarray
    low: np.ndarray
    high: np.ndarray
    triangles: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Furniture:
    """An object of a scene.

    Attributes:
        name: Its handle, such as "frl_apartment_chair_01_:0000".
        class_id: Semantic id of its class in the data set.
        to_world: float64, (4, 4); from its own frame to habitat-sim's.
        low: float64, (3,); corner of its bounding box in its own frame, m.
        high: float64, (3,); the opposite corner.
        surfaces: What is marked on it.
    """

    name: str
    class_id: int
    to_world: np.ndarray
    low: np.ndarray
    high: np.ndarray
    surfaces: tuple[MarkedSurface, ...]


def read_furniture(simulator: Any) -> list[Furniture]:
    """List the objects of the scene in a fixed order: rigid ones, then articulated ones.

    Raises:
        ValueError: A marked surface is described wrongly.
        FileNotFoundError: Its mesh is missing.
    """
    return [_rigid(item) for item in _rigid_objects(simulator)] + [
        _articulated(item) for item in _articulated_objects(simulator)
    ]


def read_stage_surfaces(simulator: Any) -> list[MarkedSurface]:
    """List the surfaces that belong to the stage; errors are those of `read_furniture`."""
    stage = simulator.get_stage_initialization_template()
    # The package turns a stage so that `up` is up; what is marked on it turns likewise.
    up, front = (np.array(axis, np.float64) for axis in (stage.orient_up, stage.orient_front))
    to_world = np.eye(4)
    to_world[:3, :3] = np.stack([np.cross(front, up), up, -front])
    return _surfaces(stage.get_user_config(), Path(stage.file_directory), {None: to_world}, turns=True)


def settle_objects(simulator: Any, first: int, static: Any) -> None:
    """Fix the objects in place, so that navigation meshes have them, and number them.

    Args:
        simulator: The simulator.
        first: Id of the first one, in the order of `read_furniture`; the others follow.
        static: The package's motion type of objects that do not move.
    """
    number = first
    for item in _rigid_objects(simulator):
        item.motion_type = static
        item.semantic_id = number
        number += 1
    for item in _articulated_objects(simulator):
        item.motion_type = static
        for link in range(-1, item.num_links):
            for node in item.get_link_visual_nodes(link):
                node.semantic_id = number
        number += 1


def _rigid_objects(simulator: Any) -> list[Any]:
    objects = simulator.get_rigid_object_manager().get_objects_by_handle_substring("")
    return sorted(objects.values(), key=lambda item: item.object_id)


def _articulated_objects(simulator: Any) -> list[Any]:
    objects = simulator.get_articulated_object_manager().get_objects_by_handle_substring("")
    return sorted(objects.values(), key=lambda item: item.object_id)


def _rigid(item: Any) -> Furniture:
    # The second node of what is drawn is the asset itself, with its scale, wherever the centre of mass is.
    asset = _matrix(item.visual_scene_nodes[1].absolute_transformation())
    folder = Path(item.creation_attributes.file_directory)
    surfaces = _surfaces(item.user_attributes, folder, {None: asset})
    class_id = int(item.creation_attributes.semantic_id)  # its own is changed by `settle_objects`
    low, high = (np.array(corner, np.float64) for corner in (item.aabb.min, item.aabb.max))
    return Furniture(item.handle, class_id, _matrix(item.transformation), low, high, tuple(surfaces))


def _articulated(item: Any) -> Furniture:
    links = range(-1, item.num_links)
    frames: dict[str | None, np.ndarray] = {
        item.get_link_name(link): _matrix(item.get_link_scene_node(link).absolute_transformation()) for link in links
    }
    folder = Path(item.creation_attributes.file_directory)
    surfaces = _surfaces(item.user_attributes, folder, frames, scale=float(item.global_scale))
    node = item.root_scene_node
    low, high = (np.array(corner, np.float64) for corner in (node.cumulative_bb.min, node.cumulative_bb.max))
    class_id = int(item.creation_attributes.semantic_id)
    return Furniture(item.handle, class_id, _matrix(node.absolute_transformation()), low, high, tuple(surfaces))


def _surfaces(
    attributes: Any, folder: Path, frames: dict[str | None, np.ndarray], *, scale: float = 1.0, turns: bool = False
) -> list[MarkedSurface]:
    """Read the surfaces in the user's part of a config.

    Args:
        attributes: That part.
        folder: Folder of the config, for meshes.
        frames: Frame of each link, by name; None is the name of an object without links.
        scale: Factor from sizes in the config to those in the scene.
        turns: True if boxes may be turned about their middle, as those of stages.
    """
    surfaces = []
    for key in sorted(attributes.get_subconfig_keys()):
        if not key.startswith((_BOX, _MESH)):
            continue
        config = attributes.get_subconfig(key)
        link = config.get("parent_link") if config.has_value("parent_link") else None
        if link not in frames or not (config.has_value("position") and config.has_value("scale")):
            raise ValueError(f"{folder}: {key} must have position and scale, and a known parent_link, got {link!r}")
        frame = frames[link]
        if key.startswith(_MESH):
            triangles = scale * _mesh(folder / str(config.get("mesh_filepath")))
            corners = triangles.reshape(-1, 3)
            surfaces.append(MarkedSurface(key, frame, corners.min(0), corners.max(0), triangles))
            continue
        centre, half = (scale * np.array(config.get(name), np.float64) for name in ("position", "scale"))
        if turns and config.has_value("rotation"):
            turn = np.eye(4)
            turn[:3, :3] = np.array(config.get("rotation").to_matrix(), np.float64)
            turn[:3, 3] = centre - turn[:3, :3] @ centre
            frame = frame @ turn
        surfaces.append(MarkedSurface(key, frame, centre - half, centre + half))
    return surfaces


def _mesh(path: Path) -> np.ndarray:
    """Triangles (T, 3, 3) of a mesh.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It cannot be read.
    """
    if path.suffix == ".glb":
        check_glb(path)
    elif not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    try:
        mesh = import_trimesh().load(path, force="mesh", process=False)
        return np.asarray(mesh.triangles, np.float64).reshape(-1, 3, 3)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: cannot be read as a mesh: {error}") from error


def _matrix(value: Any) -> np.ndarray:
    return np.array(value, np.float64)
