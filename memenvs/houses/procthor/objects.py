"""Objects of a ProcTHOR house: nested boxes become solids, and what is free on them receptacles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memenvs.houses.classes import CLASS_INDEX
from memenvs.houses.house import Receptacle, ShapeBuilder
from memenvs.houses.procthor.asset_builder import AssetBuilder, SupportSurface
from memenvs.houses.procthor.assets import ASSET_TYPES, UNKNOWN_TYPE, AssetType
from memenvs.houses.procthor.item_shapes import block
from memenvs.houses.procthor.walls import Extents, cut_rectangle
from memenvs.json_records import Field

SURFACE_HEIGHTS = (0.4, 1.5)  # m; where a robot of 1.5 m sees what stands there

_HOVER = 0.07  # m; a thing that is less above a surface stands on it
_TILTED = math.radians(5)  # a thing that leans more is drawn as its bounding box
_NEEDED_ROOM = 0.3  # m that must be free above a surface: the tallest thing to be put there
_NEEDED_SIDE = 0.15  # m; a smaller free place is no use
_GAP = 0.01  # m kept from what stands there already


@dataclass(frozen=True)
class ProcthorObject:
    """One object: its type, its bounding box in the home (m, rad), and what stands on it.

    Attributes:
        asset: Asset id.
        type: Its row of `ASSET_TYPES`.
        centre: (x, y, z) of the box.
        size: Width, depth and height of the box.
        yaw: Turn of the box.
        is_tilted: Whether the asset leans, so that the box is not the asset's own.
        rests: Heights above this box's bottom at which its children stand, in rising order.
    """

    asset: str
    type: AssetType
    centre: tuple[float, float, float]
    size: tuple[float, float, float]
    yaw: float
    is_tilted: bool
    rests: tuple[float, ...]

    @property
    def low(self) -> float:
        """Height of its underside, m."""
        return self.centre[2] - self.size[2] / 2

    @property
    def high(self) -> float:
        """Height of its top, m."""
        return self.centre[2] + self.size[2] / 2


def read_objects(objects: Sequence[Field], sizes: Field) -> list[ProcthorObject]:
    """All objects and their children, parents first.

    Args:
        objects: The list `objects` of a house.
        sizes: Asset id -> type and size.

    Returns:
        The objects.

    Raises:
        ValueError: A value is missing or wrong, or an asset has no size.
    """
    return [placed for item in objects for placed in _read(item, sizes)]


def add_objects(
    builder: ShapeBuilder, placed: Sequence[ProcthorObject], instances: list[str], ceiling: float
) -> list[Receptacle]:
    """Adds the solids of all objects.

    Args:
        builder: Takes the solids.
        placed: The objects.
        instances: Names of instances so far; one is added for each object.
        ceiling: Height of the ceiling, m.

    Returns:
        Free places on furniture; whatever the house has on it already is left out of them.
    """
    receptacles: list[Receptacle] = []
    corners = np.array([_corners(item) for item in placed]).reshape(-1, 4, 2)
    low = np.array([item.low for item in placed])
    high = np.array([item.high for item in placed])
    for i, item in enumerate(placed):
        parts = AssetBuilder(
            item.centre, item.size, item.yaw, item.asset, item.rests, builder,
            CLASS_INDEX[item.type.semantic], len(instances), item.type.material, item.type.colour(item.asset),
        )  # fmt: skip
        (block if item.is_tilted else item.type.form)(parts)
        instances.append(f"{item.type.semantic}|{len(instances)}")
        if item.type.is_receptacle and not item.is_tilted:
            others = np.arange(len(placed)) != i
            footprints = _footprints(corners[others], item)
            for surface in parts.surfaces:
                receptacles += _free(item, surface, parts.instance, (footprints, low[others], high[others]), ceiling)
    return receptacles


def _read(item: Field, sizes: Field) -> Iterator[ProcthorObject]:
    """One object and everything on it."""
    asset = item["assetId"].text()
    size = sizes.get(asset)
    if size is None:
        raise item["assetId"].error(f"one of the {len(sizes.value)} assets of {sizes.source}")
    lengths = size["size"].items()
    if len(lengths) != 3:
        raise size["size"].error("three lengths")
    width, height, depth = (length.number() for length in lengths)
    if min(width, height, depth) <= 0:
        raise size["size"].error("three lengths > 0 m")
    x, up, y = item["position"].numbers("xyz")
    pitch, turn, roll = (math.radians(angle) for angle in item["rotation"].numbers("xyz"))
    box = _tilted_size((width, depth, height), pitch, roll)
    centre = (x, y, up)
    children = [list(_read(child, sizes)) for child in item.children("children")]
    _set_down(children, up + box[2] / 2)
    rests = tuple(sorted({round(items[0].low - up + box[2] / 2, 3) for items in children}))
    is_tilted = max(abs(math.remainder(angle, math.tau)) for angle in (pitch, roll)) > _TILTED
    yield ProcthorObject(
        asset, ASSET_TYPES.get(size["type"].text(), UNKNOWN_TYPE), centre, box, -turn, is_tilted, rests
    )
    for items in children:
        yield from items


def _set_down(children: list[list[ProcthorObject]], top: float) -> None:
    """Lowers children, in place, to the top that they hover above, or to the lowest of those beside them.

    ProcTHOR leaves fragile things 5 cm above what they stand on, to let physics settle them.
    """
    level = -math.inf
    for k in sorted(range(len(children)), key=lambda k: children[k][0].low):
        low = children[k][0].low
        if low - level > _HOVER:
            level = top if 0 <= low - top <= _HOVER else low
        fall = low - level
        if fall:
            children[k] = [replace(item, centre=(*item.centre[:2], item.centre[2] - fall)) for item in children[k]]


def _tilted_size(size: tuple[float, float, float], pitch: float, roll: float) -> tuple[float, float, float]:
    """Size of the upright box around a box that is turned by `roll` about its y axis, then by `pitch` about x."""
    about_y = np.array([[math.cos(roll), 0, math.sin(roll)], [0, 1, 0], [-math.sin(roll), 0, math.cos(roll)]])
    about_x = np.array([[1, 0, 0], [0, math.cos(pitch), -math.sin(pitch)], [0, math.sin(pitch), math.cos(pitch)]])
    width, depth, height = np.abs(about_x @ about_y) @ np.array(size)
    return float(width), float(depth), float(height)


def _corners(item: ProcthorObject) -> np.ndarray:
    """float64, (4, 2); corners of a box on the floor plan, m."""
    half = np.array(item.size[:2]) / 2
    signs = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    cos, sin = math.cos(item.yaw), math.sin(item.yaw)
    return (signs * half) @ np.array([(cos, sin), (-sin, cos)]) + item.centre[:2]


def _footprints(corners: np.ndarray, item: ProcthorObject) -> np.ndarray:
    """Bounds of corners (K, 4, 2) in the frame of `thing`: float64, (K, 4); x from, to, y from, to, m."""
    cos, sin = math.cos(item.yaw), math.sin(item.yaw)
    local = (corners - np.array(item.centre[:2])) @ np.array([(cos, -sin), (sin, cos)])
    bounds = np.stack([local.min(1), local.max(1)], axis=2)  # (K, 2, 2): axis, from and to
    return bounds.reshape(len(corners), 4)


def _free(
    item: ProcthorObject,
    surface: SupportSurface,
    instance: int,
    others: tuple[np.ndarray, np.ndarray, np.ndarray],
    ceiling: float,
) -> list[Receptacle]:
    """Places on one surface that nothing stands on, largest first."""
    z = item.low + surface.z
    if not SURFACE_HEIGHTS[0] <= z <= SURFACE_HEIGHTS[1] or surface.clearance < _NEEDED_ROOM:
        return []
    footprints, low, high = others
    room = min(surface.clearance, ceiling - z)
    in_way = (high > z + 0.001) & (low < z + _NEEDED_ROOM)
    free: list[Extents] = [(*surface.x, *surface.y)]
    for x0, x1, y0, y1 in footprints[in_way]:
        hole = (x0 - _GAP, x1 + _GAP, y0 - _GAP, y1 + _GAP)
        free = [part for rectangle in free for part in cut_rectangle(rectangle, hole)]
    places = []
    for x0, x1, y0, y1 in sorted(free, key=lambda part: (part[0] - part[1]) * (part[3] - part[2])):
        if min(x1 - x0, y1 - y0) < _NEEDED_SIDE:
            continue
        over = (footprints[:, 0] < x1) & (footprints[:, 1] > x0) & (footprints[:, 2] < y1) & (footprints[:, 3] > y0)
        above = low[over & (low >= z + _NEEDED_ROOM)]
        mid_x, mid_y = (x0 + x1) / 2, (y0 + y1) / 2
        cos, sin = math.cos(item.yaw), math.sin(item.yaw)
        centre = (item.centre[0] + cos * mid_x - sin * mid_y, item.centre[1] + sin * mid_x + cos * mid_y, z)
        clearance = min(room, float(above.min()) - z) if len(above) else room
        places.append(Receptacle(instance, centre, ((x1 - x0) / 2, (y1 - y0) / 2), item.yaw, clearance))
    return places
