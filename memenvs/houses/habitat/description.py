"""Homes of other data sets as our tasks need them: rooms, furniture and surfaces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, CLASSES, MATERIAL_INDEX, STRUCTURE_CLASSES
from memenvs.houses.habitat.dataset import Dataset, SceneName
from memenvs.houses.habitat.furniture import Furniture
from memenvs.houses.habitat.labels import object_class, room_type
from memenvs.houses.habitat.navmesh import island_triangles
from memenvs.houses.habitat.probes import DOWN, UP, free_height
from memenvs.houses.habitat.simulation import simulation
from memenvs.houses.habitat.surfaces import free_surfaces
from memenvs.houses.home_file import SemanticEntry
from memenvs.houses.house import BOX, House, Receptacle, Room, ShapeBuilder, polygon_area
from memenvs.json_records import Field

#: Height of walls where nothing is above the floor, m.
_OPEN_HEIGHT = 2.7
#: Places on an island from which depths are measured up and down, and the height of the eye above the floor there, m.
_PLACES, _EYE = 16, 0.5
#: Most islands that are tried.
_MAX_ISLANDS = 32
#: A region belongs to the floor if its own is at most this much above or below it, m.
_FLOOR_RANGE = 1.0
#: Cosine of the largest angle between the vertical and an object's y axis at which the object stands upright.
_UPRIGHT = math.cos(math.radians(5))
#: Smallest half of a box's side, m: flat objects get a volume.
_MIN_HALF = 1e-3
#: Of floors and objects on maps, sRGB; habitat-sim draws the images.
_FLOOR_COLOUR, _COLOUR = (170, 160, 150), (150, 140, 130)
#: Classes of pixels without a semantic id: nothing, floor, wall and ceiling; see `HabitatScene.building`.
BUILDING_CLASSES = np.array([CLASS_INDEX[name] for name in ("outside", "floor", "wall", "ceiling")], np.uint8)


@dataclass(frozen=True, eq=False)
class HomeDescription:
    """A home of another data set.

    Attributes:
        house: Its rooms, boxes around its furniture, and the free surfaces on it. Walls are not among its shapes.
        entries: Meaning of its semantic ids.
        navmesh: Content of a .navmesh file.
        main: Number of the island that robots are on: the largest one with something above it.
        floor: Height of the floor there in habitat-sim's frame, m.
        has_building: True if pixels without a semantic id are walls, floors and ceilings, as in data sets whose
            furniture is separate objects.
    """

    house: House
    entries: list[SemanticEntry]
    navmesh: bytes
    main: int
    floor: float
    has_building: bool


def describe_scene(dataset: Dataset, scene: SceneName, name: str, radius: float, height: float) -> HomeDescription:
    """Go to a scene and describe it.

    Args:
        dataset: Its data set.
        scene: The scene.
        name: Name of the home.
        radius: Radius of the robot, m.
        height: Its height, m.

    Returns:
        Its house, semantic ids and navigation mesh.

    Raises:
        ValueError: It cannot be loaded, has no floor for the robot, or something in it is described wrongly.
        FileNotFoundError: A file that it names is missing.
    """
    simulation().enter(scene)
    navmesh = simulation().navmesh(radius, height)
    pathfinder = simulation().load_navmesh(navmesh)
    main, floor, ceiling = _find_floor(pathfinder, name)
    triangles = island_triangles(pathfinder, main)
    rooms = _rooms(dataset.regions(name), triangles, radius, floor)
    builder, names, entries = ShapeBuilder(), ["building"], []
    parts = simulation().labelled_parts()
    for part in parts:
        semantic = object_class(part.name)
        entries.append(SemanticEntry(part.id, len(names), semantic, -1))
        if CLASSES[semantic] not in STRUCTURE_CLASSES:
            _add_box(builder, part.corners, floor, semantic, len(names))
        names.append(f"{CLASSES[semantic]}|{len(names)}")
    receptacles: list[Receptacle] = []
    furniture = simulation().furniture()
    for number, item in enumerate(furniture, start=simulation().first_furniture_id()):
        semantic = object_class(dataset.class_names.get(item.class_id, item.name))
        entries.append(SemanticEntry(number, len(names), semantic, -1))
        _add_box(builder, _corners(item), floor, semantic, len(names))
        for surface in item.surfaces:
            receptacles += free_surfaces(surface, len(names), floor)
        names.append(f"{CLASSES[semantic]}|{len(names)}")
    for surface in simulation().stage_surfaces():
        receptacles += free_surfaces(surface, 0, floor)
    house = House(name, builder.build(), rooms, (), tuple(receptacles), tuple(names), ceiling - floor)
    return HomeDescription(house, entries, navmesh, main, floor, has_building=bool(furniture) and not parts)


def _find_floor(pathfinder: Any, name: str) -> tuple[int, float, float]:
    """Find the island that robots are on; its number, and the heights of floor and ceiling in habitat-sim's frame, m.

    Roofs, yards and patios may be larger than what is indoors, so the largest island with something above it is taken;
    in scenes without ceilings the largest one.
    """
    islands = sorted(range(pathfinder.num_islands), key=lambda number: -pathfinder.island_area(number))
    fallback: tuple[int, float, float] | None = None
    for number in islands[:_MAX_ISLANDS]:
        triangles = island_triangles(pathfinder, number)
        if not len(triangles):
            continue
        sides = triangles[:, 1:] - triangles[:, :1]
        order = np.argsort(-np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1), kind="stable")
        eyes = triangles[order[:_PLACES]].mean(1)[:, (0, 2, 1)] * (1, -1, 1) + np.array([0, 0, _EYE])
        above = np.array([free_height(eye, UP) for eye in eyes])
        below = np.array([free_height(eye, DOWN) for eye in eyes])
        below = np.where(np.isfinite(below), below, _EYE)
        floor = float(np.median(eyes[:, 2] - below))
        is_indoors = np.isfinite(above)
        if 2 * is_indoors.sum() >= len(above):
            return number, floor, float(np.median((eyes[:, 2] + above)[is_indoors]))
        if fallback is None:
            fallback = number, floor, floor + _OPEN_HEIGHT
    if fallback is None:
        raise ValueError(f"house {name!r} has no floor in habitat-sim where the robot can be")
    return fallback


def _rooms(regions: Sequence[Field], triangles: np.ndarray, radius: float, floor: float) -> tuple[Room, ...]:
    """Rooms by annotated regions; where there are none, or they leave floor out, a rectangle around the island."""
    rooms = []
    for region in regions:
        outline = region["poly_loop"].items(3)
        corners = np.array([[part.number(1e4) for part in corner.items(3, 3)] for corner in outline])
        floor_height = region.get("floor_height")
        if abs((corners[:, 1].mean() if floor_height is None else floor_height.number(1e4)) - floor) < _FLOOR_RANGE:
            polygon = corners[:, (0, 2)] * (1, -1)
            polygon = polygon if polygon_area(polygon) > 0 else polygon[::-1]
            rooms.append(_room(room_type(region["label"].text()), polygon))
    points = triangles.reshape(-1, 3)[:, (0, 2)] * (1, -1)
    low, high = points.min(0) - radius, points.max(0) + radius
    within = [room.polygon for room in rooms]
    if (
        not within
        or (np.min([p.min(0) for p in within], 0) > points.min(0)).any()
        or (np.max([p.max(0) for p in within], 0) < points.max(0)).any()
    ):
        (x0, y0), (x1, y1) = low, high
        rooms.append(_room("other", np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])))
    return tuple(rooms)


def _room(kind: str, polygon: np.ndarray) -> Room:
    return Room(kind, polygon, MATERIAL_INDEX["plain"], _FLOOR_COLOUR)


def _corners(item: Furniture) -> np.ndarray:
    """Corners of an object's box in habitat-sim's frame, float64 (8, 3): the first is low, bits choose high axes."""
    bits = np.array([[(k >> axis) & 1 for axis in range(3)] for k in range(8)], bool)
    corners = np.where(bits, item.high, item.low)
    return corners @ item.to_world[:3, :3].T + item.to_world[:3, 3]


def _add_box(builder: ShapeBuilder, corners: np.ndarray, floor: float, semantic: int, instance: int) -> None:
    """Add the box of an object, turned about the vertical if it stands upright, else one around it."""
    points = corners[:, (0, 2, 1)] * (1, -1, 1) - np.array([0, 0, floor])
    centre = (points.min(0) + points.max(0)) / 2
    yaw = 0.0
    along = points[1] - points[0]
    size = np.linalg.norm(points[[1, 2, 4]] - points[0], axis=1)
    if abs(points[2, 2] - points[0, 2]) >= _UPRIGHT * size[1] > 0 and np.hypot(*along[:2]) > 0:
        yaw = math.atan2(along[1], along[0])
        half = size[[0, 2, 1]] / 2  # the object's x, z and y
    else:
        half = (points.max(0) - points.min(0)) / 2
    builder.add(
        BOX,
        centre.tolist(),
        np.maximum(half, _MIN_HALF).tolist(),
        yaw=yaw,
        material=MATERIAL_INDEX["plain"],
        colour=_COLOUR,
        semantic=semantic,
        instance=instance,
    )
