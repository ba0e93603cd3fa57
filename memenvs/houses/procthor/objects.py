"""Objects of a ProcTHOR house: shapes that fill bounding boxes, receptacles on furniture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memenvs.houses.house import Receptacle, ShapeBuilder, SupportSurface
from memenvs.houses.procthor.asset_model import AssetModel
from memenvs.houses.procthor.asset_sizes import AssetFinder
from memenvs.houses.procthor.assets import ASSET_TYPES, UNKNOWN_TYPE, AssetType
from memenvs.houses.procthor.item_shapes import block
from memenvs.houses.procthor.walls import Extents, cut_rectangle
from memenvs.json_records import Field

#: Most objects of a house.
MAX_OBJECTS = 5000
#: Largest coordinate in a house, m.
MAX_COORDINATE = 10_000.0
SURFACE_HEIGHTS = (0.4, 1.5)  # m; of receptacles: a robot of 1.5 m sees what stands there

_HOVER = 0.07  # m; an object up to this above a surface stands on it
_TILTED = math.radians(5)  # an object that leans more is drawn as its bounding box
_MIN_CLEARANCE = 0.3  # m that must be free above a surface: the tallest object to be put there
_MIN_SIDE = 0.15  # m; smaller free rectangles are left out
_GAP = 0.01  # m; distance kept from objects that stand there already


@dataclass(frozen=True)
class ProcthorObject:
    """One object of a house file.

    Attributes:
        asset_id: Name of its asset.
        type: Its row of `ASSET_TYPES`.
        centre: (x, y, z) of its bounding box in the house, m.
        size: Width, depth and height of the box, m.
        yaw: Rotation of the box, rad.
        is_tilted: Whether the asset leans; then the box is an upright one around the leaning asset.
        support_heights: Heights above the box's bottom at which its children stand, m, in rising order.
    """

    asset_id: str
    type: AssetType
    centre: tuple[float, float, float]
    size: tuple[float, float, float]
    yaw: float
    is_tilted: bool
    support_heights: tuple[float, ...]

    @property
    def bottom(self) -> float:
        """Height of its underside, m."""
        return self.centre[2] - self.size[2] / 2

    @property
    def top(self) -> float:
        """Height of its top, m."""
        return self.centre[2] + self.size[2] / 2


@dataclass(frozen=True)
class _Obstacles:
    """Bounding boxes of K other objects in the frame of a piece of furniture.

    Attributes:
        footprint: float64, (K, 4); smallest and largest x, smallest and largest y, m.
        bottom: float64, (K,); m above the floor.
        top: float64, (K,); m above the floor.
    """

    footprint: np.ndarray
    bottom: np.ndarray
    top: np.ndarray


def read_objects(house: Field, finder: AssetFinder) -> list[ProcthorObject]:
    """Read all objects of a house and their children, parents first.

    Args:
        house: The house.
        finder: Finds the assets. An object that it leaves out is left out with what stands on it.

    Raises:
        ValueError: A value is missing or wrong, there are more than `MAX_OBJECTS`, or an asset is refused.
    """
    objects = house.optional_items("objects", at_most=MAX_OBJECTS)
    read = [item for field in objects for item in _read_subtree(field, finder)]
    if len(read) > MAX_OBJECTS:
        raise ValueError(f"{house.source}: objects must be at most {MAX_OBJECTS} with all children, got {len(read)}")
    return read


def add_objects(
    builder: ShapeBuilder, objects: Sequence[ProcthorObject], instances: list[str], ceiling: float
) -> list[Receptacle]:
    """Add the solids of all objects to a house.

    Args:
        builder: Gets the solids.
        objects: The objects.
        instances: Names of the instances so far; one is added for each object.
        ceiling: Height of the ceiling, m.

    Returns:
        The free rectangles of level surfaces of furniture; where objects stand already is left out.
    """
    receptacles: list[Receptacle] = []
    corners = np.array([_corners(item) for item in objects]).reshape(-1, 4, 2)
    bottom = np.array([item.bottom for item in objects])
    top = np.array([item.top for item in objects])
    for i, item in enumerate(objects):
        kind, instance = item.type, len(instances)
        asset = AssetModel(kind.semantic, item.size, kind.finish(item.asset_id), item.asset_id, item.support_heights)
        fill = block if item.is_tilted else kind.fill
        fill(asset)
        asset.build(builder, instances, item.centre[:2], item.yaw, item.bottom)
        if kind.is_receptacle and not item.is_tilted:
            others = np.arange(len(objects)) != i
            obstacles = _Obstacles(_footprints(corners[others], item), bottom[others], top[others])
            for surface in asset.surfaces:
                receptacles += _find_receptacles(item, surface, instance, obstacles, ceiling)
    return receptacles


def _read_subtree(field: Field, finder: AssetFinder) -> Iterator[ProcthorObject]:
    """Read one object and everything on it."""
    asset_id = field["assetId"].text()
    asset = finder.find(field)
    if asset is None:
        return
    width, height, depth = asset.size
    # Unity: the position is the centre of the bounding box, y is up, and the turn about y is clockwise, in degrees.
    x, up, y = field["position"].numbers("xyz", MAX_COORDINATE)
    pitch, turn, roll = (math.radians(angle) for angle in field["rotation"].numbers("xyz"))
    box = _tilted_size((width, depth, height), pitch, roll)
    if asset.is_estimated:
        up = max(up, box[2] / 2)  # an asset larger than its true size does not sink into the floor
    children = [list(_read_subtree(child, finder)) for child in field.optional_items("children", MAX_OBJECTS)]
    subtrees = [child for child in children if child]
    _set_down(subtrees, up + box[2] / 2)
    heights = {round(subtree[0].bottom - up + box[2] / 2, 3) for subtree in subtrees}
    is_tilted = max(abs(math.remainder(angle, math.tau)) for angle in (pitch, roll)) > _TILTED
    yield ProcthorObject(
        asset_id=asset_id,
        type=ASSET_TYPES.get(asset.type, UNKNOWN_TYPE),
        centre=(x, y, up),
        size=box,
        yaw=-turn,
        is_tilted=is_tilted,
        support_heights=tuple(sorted(heights)),
    )
    for subtree in subtrees:
        yield from subtree


def _set_down(subtrees: list[list[ProcthorObject]], top: float) -> None:
    """Lower children, in place, onto the surface that they hover above.

    ProcTHOR leaves fragile objects 5 cm above what they stand on, to let physics settle them. The surface is the
    object's top or a board inside it. The height of a board is not in the file, so it is taken from the lowest child
    there.

    Args:
        subtrees: Each child of one object, followed by everything on it.
        top: Height of the object's top, m.
    """
    surface = -math.inf  # height, m
    for k in sorted(range(len(subtrees)), key=lambda k: subtrees[k][0].bottom):
        bottom = subtrees[k][0].bottom
        if bottom - surface > _HOVER:  # the lowest child on another surface
            surface = top if 0 <= bottom - top <= _HOVER else bottom
        fall = bottom - surface
        if fall:
            subtrees[k] = [replace(item, centre=(*item.centre[:2], item.centre[2] - fall)) for item in subtrees[k]]


def _tilted_size(size: tuple[float, float, float], pitch: float, roll: float) -> tuple[float, float, float]:
    """Size of the upright box around a box that is turned by `roll` about its y axis, then by `pitch` about x.

    The senses of the two rotations differ between Unity's frame and ours, but do not change the size.
    """
    about_y = np.array([[math.cos(roll), 0, math.sin(roll)], [0, 1, 0], [-math.sin(roll), 0, math.cos(roll)]])
    about_x = np.array([[1, 0, 0], [0, math.cos(pitch), -math.sin(pitch)], [0, math.sin(pitch), math.cos(pitch)]])
    width, depth, height = np.abs(about_x @ about_y) @ np.array(size)
    return float(width), float(depth), float(height)


def _corners(item: ProcthorObject) -> np.ndarray:
    """Corners of an object's box on the floor plan: float64, (4, 2), m."""
    half = np.array(item.size[:2]) / 2
    signs = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    cos = math.cos(item.yaw)
    sin = math.sin(item.yaw)
    return (signs * half) @ np.array([(cos, sin), (-sin, cos)]) + item.centre[:2]


def _footprints(corners: np.ndarray, item: ProcthorObject) -> np.ndarray:
    """Bounds of corners (K, 4, 2) in the frame of `item`: float64, (K, 4); x from, to, y from, to, m."""
    cos = math.cos(item.yaw)
    sin = math.sin(item.yaw)
    local = (corners - np.array(item.centre[:2])) @ np.array([(cos, -sin), (sin, cos)])
    bounds = np.stack([local.min(1), local.max(1)], axis=2)  # (K, 2, 2): axis, from and to
    return bounds.reshape(len(corners), 4)


def _find_receptacles(
    item: ProcthorObject, surface: SupportSurface, instance: int, obstacles: _Obstacles, ceiling: float
) -> list[Receptacle]:
    """Find the rectangles of one surface on which nothing stands, largest first."""
    z = item.bottom + surface.z
    if not SURFACE_HEIGHTS[0] <= z <= SURFACE_HEIGHTS[1] or surface.clearance < _MIN_CLEARANCE:
        return []
    footprint = obstacles.footprint
    stands_there = (obstacles.top > z + 0.001) & (obstacles.bottom < z + _MIN_CLEARANCE)  # (K,)
    free: list[Extents] = [(*surface.x, *surface.y)]
    for x0, x1, y0, y1 in footprint[stands_there]:
        hole = (x0 - _GAP, x1 + _GAP, y0 - _GAP, y1 + _GAP)
        free = [part for rectangle in free for part in cut_rectangle(rectangle, hole)]
    cos = math.cos(item.yaw)
    sin = math.sin(item.yaw)
    receptacles = []
    for x0, x1, y0, y1 in sorted(free, key=lambda part: (part[0] - part[1]) * (part[3] - part[2])):
        if min(x1 - x0, y1 - y0) < _MIN_SIDE:
            continue
        # What hangs above this rectangle, such as a cabinet, limits its clearance.
        is_over = (footprint[:, 0] < x1) & (footprint[:, 1] > x0) & (footprint[:, 2] < y1) & (footprint[:, 3] > y0)
        above = obstacles.bottom[is_over & (obstacles.bottom >= z + _MIN_CLEARANCE)]
        clearance = min(surface.clearance, ceiling - z)
        if len(above):
            clearance = min(clearance, float(above.min()) - z)
        mid_x = (x0 + x1) / 2
        mid_y = (y0 + y1) / 2
        centre = (item.centre[0] + cos * mid_x - sin * mid_y, item.centre[1] + sin * mid_x + cos * mid_y, z)
        receptacles.append(Receptacle(instance, centre, ((x1 - x0) / 2, (y1 - y0) / 2), item.yaw, clearance))
    return receptacles
