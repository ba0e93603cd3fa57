"""A house as flat arrays that the compiled renderer reads.

`Scene.from_house` converts everything that stays the same from frame to frame: sizes and colours of shapes, which
texture each one shows, floors cut into convex polygons, and the walls that hide what is behind them (occluders).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, CLASSES, MATERIAL_INDEX, MATERIALS
from memenvs.houses.house import BOX, SHAPE_KINDS, House, Room, Shapes, polygon_area
from memenvs.houses.rendering.materials import base_colour_shares, texture_rows

#: Kinds of rows beside BOX, CYLINDER and ELLIPSOID of `memenvs.houses.house`.
FLOOR, CEILING = 3, 4

#: Columns of `Scene.geometry`.
X, Y, RADIUS, Z0, Z1 = range(5)
HALF_X, HALF_Y, COS, SIN, RED, GREEN, BLUE = range(5, 12)
#: Columns of `Scene.attributes`.
KIND, TEXTURE, SEMANTIC, INSTANCE, WORLD_ANCHORED = range(5)

#: Largest number of corners of one convex floor polygon.
MAX_FLOOR_CORNERS = 8

_CEILING_COLOUR = (242, 240, 234)
_NEUTRAL_TEXEL = 128.0  # the texture value that leaves a colour as it is


class SceneArrays(NamedTuple):
    """A `Scene` in the form that compiled functions take.

    Geometry and attributes may have unused rows at their ends.

    Attributes:
        geometry: As in `Scene`.
        attributes: As in `Scene`.
        floor_polygons: As in `Scene`; exactly P rows.
        floor_corners: As in `Scene`; exactly P entries.
        occluders: As in `Scene`; exactly B rows.
        num_shapes: S.
        ceiling: Height of the ceiling, m.
    """

    geometry: np.ndarray
    attributes: np.ndarray
    floor_polygons: np.ndarray
    floor_corners: np.ndarray
    occluders: np.ndarray
    num_shapes: int
    ceiling: float


@dataclass(frozen=True, eq=False)
class Scene:
    """A house as arrays.

    Rows are its S shapes, then P floor polygons, then the same P polygons at the ceiling.

    Attributes:
        geometry: float32, (S + 2P, 12); columns X, Y, RADIUS (on the floor plan), Z0 (bottom), Z1 (top), HALF_X, HALF_Y
            (half sizes), COS, SIN (of the yaw), RED, GREEN, BLUE (colour divided by the neutral texture value); lengths
            in m.
        attributes: int32, (S + 2P, 5); columns KIND, TEXTURE, SEMANTIC, INSTANCE, WORLD_ANCHORED (1: texture
            coordinates start at the world's origin, so that the parts of one wall match; 0: at the shape).
        floor_polygons: float64, (P, 8, 2); convex parts of the rooms' floors, counter-clockwise, m.
        floor_corners: int32, (P,); how many corners of a floor polygon are used.
        occluders: float64, (B, 5); boxes that reach from the floor to the ceiling: x, y, x, y of the ends of the centre
            line and half the thickness, m.
        num_shapes: S.
        height: Height of the ceiling, m.
    """

    geometry: np.ndarray
    attributes: np.ndarray
    floor_polygons: np.ndarray
    floor_corners: np.ndarray
    occluders: np.ndarray
    num_shapes: int
    height: float

    @staticmethod
    def from_house(house: House) -> Scene:
        """Convert a house.

        Raises:
            ValueError: A shape or a room has an unknown kind, material or class, a size that is not positive, or a
                number that is not finite.
        """
        _check(house)
        polygons, corners, room_of_polygon = floor_pieces(house.rooms)
        shape_geometry, shape_attributes = _shape_rows(house.shapes)
        floor_geometry, floor_attributes = _floor_rows(house, polygons, corners, room_of_polygon)
        return Scene(
            geometry=np.concatenate([shape_geometry, floor_geometry]),
            attributes=np.concatenate([shape_attributes, floor_attributes]),
            floor_polygons=polygons,
            floor_corners=corners,
            occluders=_occluders(house),
            num_shapes=len(house.shapes),
            height=float(house.height),
        )

    def relabel(self, labels: np.ndarray) -> Scene:
        """Return the scene with other classes.

        Args:
            labels: int32; one label for each of `memenvs.houses.classes.CLASSES`.
        """
        attributes = self.attributes.copy()
        attributes[:, SEMANTIC] = labels[attributes[:, SEMANTIC]]
        return replace(self, attributes=attributes)


def _check(house: House) -> None:
    """Raise a ValueError if a house cannot be drawn."""
    shapes = house.shapes
    for name, limit in (("kind", SHAPE_KINDS), ("material", MATERIALS), ("semantic", CLASSES)):
        worst = int(getattr(shapes, name).max(initial=0))
        if worst >= len(limit):
            raise ValueError(f"shapes.{name} of {house.name} must be 0 to {len(limit) - 1}, got {worst}")
    numbers = (shapes.centre, shapes.half, shapes.yaw)
    if not all(np.isfinite(part).all() for part in numbers):
        raise ValueError(f"centre, half and yaw of the shapes of {house.name} must be finite")
    if len(shapes) and not shapes.half.min() > 0:
        raise ValueError(f"shapes.half of {house.name} must be > 0 m, got {shapes.half.min()}")
    if not house.height > 0:
        raise ValueError(f"height of {house.name} must be > 0 m, got {house.height}")
    for room in house.rooms:
        if not 0 <= room.floor_material < len(MATERIALS):
            raise ValueError(f"floor_material must be 0 to {len(MATERIALS) - 1}, got {room.floor_material}")
        if len(room.polygon) < 3 or not polygon_area(room.polygon) > 0:
            raise ValueError(
                f"polygon of a {room.type} must run counter-clockwise around an area, got {room.polygon.tolist()}"
            )


def _shape_rows(shapes: Shapes) -> tuple[np.ndarray, np.ndarray]:
    """`geometry` (S, 12) and `attributes` (S, 5) of shapes."""
    geometry = np.empty((len(shapes), 12), np.float32)
    geometry[:, [X, Y]] = shapes.centre[:, :2]
    geometry[:, RADIUS] = np.hypot(shapes.half[:, 0], shapes.half[:, 1])
    geometry[:, Z0] = shapes.centre[:, 2] - shapes.half[:, 2]
    geometry[:, Z1] = shapes.centre[:, 2] + shapes.half[:, 2]
    geometry[:, [HALF_X, HALF_Y]] = shapes.half[:, :2]
    geometry[:, COS] = np.cos(shapes.yaw.astype(np.float64))
    geometry[:, SIN] = np.sin(shapes.yaw.astype(np.float64))
    attributes = np.empty((len(shapes), 5), np.int32)
    attributes[:, KIND] = shapes.kind
    attributes[:, TEXTURE] = texture_rows(shapes.material, shapes.semantic)
    attributes[:, SEMANTIC] = shapes.semantic
    attributes[:, INSTANCE] = shapes.instance
    attributes[:, WORLD_ANCHORED] = shapes.semantic == CLASS_INDEX["wall"]
    geometry[:, RED:] = _tints(shapes.colour, attributes[:, TEXTURE])
    return geometry, attributes


def _floor_rows(
    house: House, polygons: np.ndarray, corners: np.ndarray, room_of_polygon: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`geometry` (2P, 12) and `attributes` (2P, 5) of floors and ceilings.

    Args:
        house: The house.
        polygons: First result of `floor_pieces`.
        corners: Its second result.
        room_of_polygon: Its third result.
    """
    count = len(polygons)
    geometry = np.zeros((2 * count, 12), np.float32)
    attributes = np.zeros((2 * count, 5), np.int32)
    is_floor = np.arange(2 * count) < count
    geometry[:, COS] = 1.0
    geometry[count:, [Z0, Z1]] = house.height
    for row in range(count):
        polygon = polygons[row, : corners[row]]
        middle = (polygon.min(0) + polygon.max(0)) / 2
        geometry[[row, row + count], X] = middle[0]
        geometry[[row, row + count], Y] = middle[1]
        geometry[[row, row + count], RADIUS] = np.hypot(*(polygon - middle).T).max()
    attributes[:, WORLD_ANCHORED] = 1
    attributes[:, KIND] = np.where(is_floor, FLOOR, CEILING)
    attributes[:, SEMANTIC] = np.where(is_floor, CLASS_INDEX["floor"], CLASS_INDEX["ceiling"])
    material = np.full(2 * count, MATERIAL_INDEX["plaster"])
    material[:count] = np.array([room.floor_material for room in house.rooms])[room_of_polygon]
    attributes[:, TEXTURE] = texture_rows(material, attributes[:, SEMANTIC])
    colour = np.empty((2 * count, 3), np.uint8)
    colour[:count] = np.array([room.floor_colour for room in house.rooms])[room_of_polygon]
    colour[count:] = _CEILING_COLOUR
    geometry[:, RED:] = _tints(colour, attributes[:, TEXTURE])
    return geometry, attributes


def _tints(colour: np.ndarray, texture: np.ndarray) -> np.ndarray:
    """Factors that turn texture values into sRGB: the base colour, or white for textures with colours of their own.

    Args:
        colour: uint8, (S, 3); base colours, sRGB.
        texture: int, (S,); rows of the texture table.

    Returns:
        float64, (S, 3).
    """
    share = base_colour_shares()[texture][:, None]
    return (255.0 + share * (colour - 255.0)) / _NEUTRAL_TEXEL


def _occluders(house: House) -> np.ndarray:
    """Boxes that nothing inside the house can be seen through, over or under; see `Scene.occluders`."""
    shapes = house.shapes
    bottom = shapes.centre[:, 2] - shapes.half[:, 2]
    top = shapes.centre[:, 2] + shapes.half[:, 2]
    # Shorter ones, such as posts, hide hardly anything.
    is_long = shapes.half[:, :2].max(1, initial=0) > 0.2
    is_full_height = (bottom <= 1e-4) & (top >= house.height - 1e-4)
    shapes = shapes.take((shapes.kind == BOX) & is_full_height & is_long)
    is_along_x = shapes.half[:, 0] >= shapes.half[:, 1]
    angle = shapes.yaw.astype(np.float64) + np.where(is_along_x, 0.0, np.pi / 2)
    half_axis = shapes.half[:, :2].max(1, initial=0)[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    centre = shapes.centre[:, :2].astype(np.float64)
    return np.concatenate(
        [centre - half_axis, centre + half_axis, shapes.half[:, :2].min(1, initial=np.inf)[:, None]], 1
    )


def floor_pieces(rooms: tuple[Room, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut the floors of rooms into P convex polygons.

    Returns:
        float64, (P, 8, 2); corners in m, counter-clockwise; unused ones are zero.
        int32, (P,); how many corners are used.
        int64, (P,); index of the room.
    """
    pieces = [
        (polygon, index)
        for index, room in enumerate(rooms)
        for polygon in _convex_pieces(tuple(map(tuple, np.asarray(room.polygon, np.float64).tolist())))
    ]
    polygons = np.zeros((len(pieces), MAX_FLOOR_CORNERS, 2))
    for row, (polygon, _) in enumerate(pieces):
        polygons[row, : len(polygon)] = polygon
    corners = np.array([len(polygon) for polygon, _ in pieces], np.int32)
    return polygons, corners, np.array([index for _, index in pieces], np.int64)


@lru_cache(maxsize=4096)
def _convex_pieces(polygon: tuple[tuple[float, float], ...]) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Cut a simple counter-clockwise polygon into convex pieces of at most `MAX_FLOOR_CORNERS` corners.

    Source:
        Ear clipping, then Hertel and Mehlhorn (1983): diagonals that are not needed are taken out again.
    """
    points = [np.array(point) for point in polygon]
    pieces = [list(triangle) for triangle in _ear_clip(points)]
    is_merged = True
    while is_merged:
        is_merged = _merge_one_pair(pieces, points)
    return tuple(tuple(polygon[index] for index in piece) for piece in pieces)


def _merge_one_pair(pieces: list[list[int]], points: list[np.ndarray]) -> bool:
    """Replace the first two pieces whose union is convex by that union; False if there are none."""
    for first in range(len(pieces)):
        for second in range(first + 1, len(pieces)):
            union = _convex_union(pieces[first], pieces[second], points)
            if union is not None:
                pieces[first] = union
                del pieces[second]
                return True
    return False


def _ear_clip(points: list[np.ndarray]) -> list[tuple[int, int, int]]:
    """Triangulate a simple counter-clockwise polygon; triangles are indices of its corners."""
    remaining = list(range(len(points)))
    triangles = []
    while len(remaining) > 3:
        for k in range(len(remaining)):
            a, b, c = remaining[k - 1], remaining[k], remaining[(k + 1) % len(remaining)]
            area = _doubled_area(points[a], points[b], points[c])
            if abs(area) < 1e-12:  # b lies on the line from a to c
                del remaining[k]
                break
            others = (points[index] for index in remaining if index not in (a, b, c))
            if area > 0 and not any(_in_triangle(point, points[a], points[b], points[c]) for point in others):
                triangles.append((a, b, c))
                del remaining[k]
                break
        else:
            raise ValueError(f"a room's polygon crosses itself: {[tuple(map(float, point)) for point in points]}")
    triangles.append((remaining[0], remaining[1], remaining[2]))
    return triangles


def _doubled_area(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """Twice the signed area of a triangle; positive if it runs counter-clockwise."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _in_triangle(point: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> bool:
    """True if a point lies in a counter-clockwise triangle or on its edge."""
    edges = ((a, b), (b, c), (c, a))
    return all(_doubled_area(start, end, point) >= 0 for start, end in edges)


def _convex_union(first: list[int], second: list[int], points: list[np.ndarray]) -> list[int] | None:
    """Join two polygons that share an edge, if the union is convex and small enough; otherwise None."""
    for position, start in enumerate(first):
        end = first[(position + 1) % len(first)]
        if end not in second or second[(second.index(end) + 1) % len(second)] != start:
            continue  # the second polygon has no edge from end to start
        back = second.index(start)
        around = [second[(back + step) % len(second)] for step in range(1, len(second) - 1)]
        union = first[: position + 1] + around + first[position + 1 :]
        corners = [points[index] for index in union]
        turns = [_doubled_area(corners[i - 2], corners[i - 1], corners[i]) for i in range(len(corners))]
        return union if min(turns) >= -1e-12 and len(union) <= MAX_FLOOR_CORNERS else None
    return None
