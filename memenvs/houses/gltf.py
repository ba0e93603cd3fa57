"""A house as a scene of glTF, for habitat-sim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, CLASSES, MATERIALS
from memenvs.houses.house import BOX, CYLINDER, ELLIPSOID, House, Shapes
from memenvs.houses.rendering.scene import floor_pieces

if TYPE_CHECKING:
    import trimesh

#: Sides of an exported cylinder.
CYLINDER_SIDES = 32
#: Number of times that the faces of an icosahedron are split for an exported ellipsoid.
SPHERE_SPLITS = 2

_TO_GLTF = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # x, y, z -> x, z, -y: glTF has y up
_BUILDING = 0  # index of the building among the instances
_MIN_TRIANGLE = 1e-9  # square metres
_CEILING_COLOUR = (242, 240, 234)  # sRGB, as the renderer draws it


def make_scene(house: House) -> trimesh.Scene:
    """Make a house as a scene of glTF 2.0, in metres, with y up.

    Our (x, y, z) is (x, z, -y) there. Every instance is a node with its name; below it is one mesh for each class,
    material and colour. The colour becomes the base colour of the mesh's glTF material. The `extras` of nodes and
    meshes have `instance_id`, `semantic_class` and `semantic_id`; those of meshes also have `material`. Floors (one for
    each room) and the ceiling belong to instance 0. Cylinders have 32 sides. Textures are not exported.

    Raises:
        ImportError: trimesh is not installed.
    """
    library = import_trimesh()
    scene = library.Scene(base_frame="world")
    templates = _templates(library)
    shapes = house.shapes
    for instance, name in enumerate(house.instances):
        rows = np.flatnonzero(shapes.instance == instance)
        extras: dict[str, Any] = {"instance_id": instance}
        classes = np.unique(shapes.semantic[rows])
        if instance != _BUILDING and len(classes) == 1:
            extras |= {"semantic_class": CLASSES[classes[0]], "semantic_id": int(classes[0])}
        scene.graph.update(frame_from="world", frame_to=name, matrix=np.eye(4), metadata=extras)
        _add_solids(scene, name, instance, shapes.take(rows), templates)
    pieces, corners, room_of_piece = floor_pieces(house.rooms)
    for room, data in enumerate(house.rooms):
        outlines = [pieces[i, : corners[i]] for i in np.flatnonzero(room_of_piece == room)]
        appearance = np.array([CLASS_INDEX["floor"], data.floor_material, *data.floor_colour])
        mesh = _mesh_horizontal(outlines, 0.0, faces_up=True)
        _add_mesh(scene, house.instances[_BUILDING], _BUILDING, appearance, *mesh)
        appearance = np.array([CLASS_INDEX["ceiling"], MATERIALS.index("plaster"), *_CEILING_COLOUR])
        mesh = _mesh_horizontal(outlines, house.height, faces_up=False)
        _add_mesh(scene, house.instances[_BUILDING], _BUILDING, appearance, *mesh)
    return scene


def make_object(shapes: Shapes) -> trimesh.Scene:
    """Make the scene of one object alone, as part of `make_scene`.

    Raises:
        ImportError: trimesh is not installed.
    """
    library = import_trimesh()
    scene = library.Scene(base_frame="world")
    _add_solids(scene, "world", 1, shapes, _templates(library))
    return scene


def import_trimesh() -> Any:
    """Import trimesh, an optional dependency.

    Raises:
        ImportError: It is not installed; the message names the extra to install.
    """
    try:
        import trimesh
    except ImportError as error:
        raise ImportError('export needs trimesh: pip install "memenvs[export]"') from error
    return trimesh


def _templates(library: Any) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Vertices (V, 3) and faces (F, 3) of each kind of shape with half sizes 1."""
    made = {
        BOX: library.creation.box(extents=(2, 2, 2)),
        CYLINDER: library.creation.cylinder(radius=1, height=2, sections=CYLINDER_SIDES),
        ELLIPSOID: library.creation.icosphere(subdivisions=SPHERE_SPLITS, radius=1),
    }
    return {kind: (np.asarray(mesh.vertices), np.asarray(mesh.faces)) for kind, mesh in made.items()}


def _add_solids(
    scene: trimesh.Scene,
    parent: str,
    instance: int,
    shapes: Shapes,
    templates: dict[int, tuple[np.ndarray, np.ndarray]],
) -> None:
    """Add the meshes of an instance below its node: one for each class, material and colour."""
    appearances = np.column_stack([shapes.semantic, shapes.material, shapes.colour])  # (S, 5)
    for appearance in np.unique(appearances, axis=0):
        part = shapes.take((appearances == appearance).all(1))
        vertices, faces = _mesh_solids(part, templates)
        _add_mesh(scene, parent, instance, appearance, vertices, faces)


def _mesh_solids(shapes: Shapes, templates: dict[int, tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (V, 3) in our frame and faces (F, 3) of shapes."""
    vertices, faces = [], []
    count = 0  # vertices so far
    for i in range(len(shapes)):
        points, triangles = templates[int(shapes.kind[i])]
        cos = np.cos(float(shapes.yaw[i]))
        sin = np.sin(float(shapes.yaw[i]))
        rotation = np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])
        vertices.append((points * shapes.half[i].astype(float)) @ rotation.T + shapes.centre[i].astype(float))
        faces.append(triangles + count)
        count += len(points)
    return np.concatenate(vertices), np.concatenate(faces)


def _mesh_horizontal(outlines: list[np.ndarray], height: float, *, faces_up: bool) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (V, 3) in our frame and faces (F, 3) of level convex polygons, each (P, 2), counter-clockwise."""
    vertices, faces = [], []
    count = 0  # vertices so far
    for outline in outlines:
        vertices.append(np.column_stack([outline, np.full(len(outline), height)]))
        fan = count + _fan(outline)
        faces += (fan if faces_up else fan[:, ::-1]).tolist()
        count += len(outline)
    return np.concatenate(vertices), np.array(faces)


def _fan(outline: np.ndarray) -> np.ndarray:
    """Triangles, int (T, 3), of a convex outline (P, 2), without those that have no area.

    A corner that lies on a straight side makes a triangle without area if the fan starts at an end of that side. So
    the fan starts at the corner for which the smallest triangle is largest.
    """
    best, largest = np.zeros((0, 3), np.int64), -1.0
    corners = np.arange(len(outline))
    for first in range(len(outline)):
        order = np.roll(corners, -first)
        fan = np.stack([np.full(len(outline) - 2, first), order[1:-1], order[2:]], axis=1)
        sides = outline[fan[:, 1:]] - outline[first]  # (T, 2, 2)
        areas = (sides[:, 0, 0] * sides[:, 1, 1] - sides[:, 0, 1] * sides[:, 1, 0]) / 2
        if areas.min() > largest:
            best, largest = fan[areas > _MIN_TRIANGLE], float(areas.min())
    return best


def _add_mesh(
    scene: trimesh.Scene, parent: str, instance: int, appearance: np.ndarray, vertices: np.ndarray, faces: np.ndarray
) -> None:
    """Add a mesh below an instance's node; `appearance` is (class, material, red, green, blue)."""
    library = import_trimesh()
    semantic = int(appearance[0])
    material = int(appearance[1])
    srgb = np.asarray(appearance[2:], float) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    surface = library.visual.material.PBRMaterial(
        name=MATERIALS[material], baseColorFactor=[*linear, 1.0], metallicFactor=0.0, roughnessFactor=1.0
    )
    mesh = library.Trimesh(vertices @ _TO_GLTF.T, faces, process=False)
    mesh.visual = library.visual.TextureVisuals(material=surface)
    mesh.metadata.update(
        instance_id=instance,
        semantic_class=CLASSES[semantic],
        semantic_id=semantic,
        material=MATERIALS[material],
    )
    name = f"{parent}/{len(scene.geometry)}"
    scene.add_geometry(mesh, node_name=name, geom_name=name, parent_node_name=parent)
