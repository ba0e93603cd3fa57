"""A home made ready for drawing: flat arrays that the compiled renderer reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, CLASSES, MATERIAL_INDEX, MATERIALS
from memenvs.houses.house import BOX, SHAPE_KINDS, House, Room, Shapes, polygon_area
from memenvs.houses.rendering.materials import texture_numbers, texture_tints

#: Kinds of rows beside BOX, CYLINDER and SPHERE of `memenvs.houses.house`.
FLOOR, CEILING = 3, 4

#: Columns of `Scene.bounds`, `Scene.geometry` and `Scene.attributes`.
X, Y, RADIUS, Z0, Z1 = range(5)
HALF_X, HALF_Y, COS, SIN, RED, GREEN, BLUE = range(5, 12)
KIND, TEXTURE, SEMANTIC, INSTANCE, IN_WORLD = range(5)

#: Most corners of one convex piece of a floor.
PIECE_CORNERS = 8

_CEILING_COLOUR = (242, 240, 234)
_HALF_TEXTURE = 128.0  # the texture value that leaves a colour as it is


@dataclass(frozen=True, eq=False)
class Scene:
    """A home as arrays. Rows are its S shapes, then P pieces of floor, then the same P pieces of ceiling.

    Attributes:
        geometry: float32, (S + 2P, 12); columns X, Y, RADIUS (on the plan), Z0, Z1, HALF_X, HALF_Y, COS, SIN (of the yaw), RED,
            GREEN, BLUE (colour divided by the neutral texture value).
        attributes: int32, (S + 2P, 5); columns KIND, TEXTURE, SEMANTIC, INSTANCE, IN_WORLD (1: its texture is anchored in the
            world, so that the parts of one wall match; 0: in the shape).
        pieces: float64, (P, 8, 2); convex parts of the rooms' floors, counter-clockwise, m.
        corners: int32, (P,); how many corners of a piece count.
        occluders: float64, (B, 5); boxes that reach from the floor to the ceiling: x, y, x, y of the ends of the centre line and
            half the thickness, m.
        shapes: S.
        height: Of the ceiling, m.
    """

    geometry: np.ndarray
    attributes: np.ndarray
    pieces: np.ndarray
    corners: np.ndarray
    occluders: np.ndarray
    shapes: int
    height: float

    @staticmethod
    def from_house(house: House) -> Scene:
        """The arrays of a home.

        Raises:
            ValueError: A shape or a room has an unknown kind, material or class, a size that is not positive, or a number
                that is not finite.
        """
        _check(house)
        pieces, corners, room_of_piece = floor_pieces(house.rooms)
        floors = _floor_rows(house, pieces, corners, room_of_piece)
        geometry, attributes = _shape_rows(house.shapes)
        return Scene(
            geometry=np.concatenate([geometry, floors[0]]),
            attributes=np.concatenate([attributes, floors[1]]),
            pieces=pieces,
            corners=corners,
            occluders=_occluders(house),
            shapes=len(house.shapes),
            height=float(house.height),
        )


def _check(house: House) -> None:
    """Raises ValueError if a home cannot be drawn."""
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
    attributes[:, TEXTURE] = texture_numbers(shapes.material, shapes.semantic)
    attributes[:, SEMANTIC] = shapes.semantic
    attributes[:, INSTANCE] = shapes.instance
    attributes[:, IN_WORLD] = shapes.semantic == CLASS_INDEX["wall"]
    geometry[:, RED:] = _tinted(shapes.colour, attributes[:, TEXTURE])
    return geometry, attributes


def _floor_rows(
    house: House, pieces: np.ndarray, corners: np.ndarray, room_of_piece: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`geometry` (2P, 12) and `attributes` (2P, 5) of floor and ceiling."""
    count = len(pieces)
    geometry = np.zeros((2 * count, 12), np.float32)
    attributes = np.zeros((2 * count, 5), np.int32)
    geometry[:, COS] = 1.0
    attributes[:, IN_WORLD] = 1
    attributes[:count, KIND], attributes[count:, KIND] = FLOOR, CEILING
    attributes[:count, SEMANTIC], attributes[count:, SEMANTIC] = CLASS_INDEX["floor"], CLASS_INDEX["ceiling"]
    material = np.array([room.floor_material for room in house.rooms])[room_of_piece]
    attributes[:count, TEXTURE] = texture_numbers(material, attributes[:count, SEMANTIC])
    attributes[count:, TEXTURE] = texture_numbers(
        np.full(count, MATERIAL_INDEX["plaster"]), attributes[count:, SEMANTIC]
    )
    geometry[count:, [Z0, Z1]] = house.height
    colour = np.empty((2 * count, 3), np.uint8)
    colour[:count] = np.array([room.floor_colour for room in house.rooms])[room_of_piece]
    colour[count:] = _CEILING_COLOUR
    geometry[:, RED:] = _tinted(colour, attributes[:, TEXTURE])
    for piece in range(count):
        polygon = pieces[piece, : corners[piece]]
        middle = (polygon.min(0) + polygon.max(0)) / 2
        geometry[[piece, piece + count], X] = middle[0]
        geometry[[piece, piece + count], Y] = middle[1]
        geometry[[piece, piece + count], RADIUS] = np.hypot(*(polygon - middle).T).max()
    return geometry, attributes


def _tinted(colour: np.ndarray, texture: np.ndarray) -> np.ndarray:
    """float32, (S, 3); what a texture value is multiplied with to give sRGB: base colour, or white for coloured textures."""
    tint = texture_tints()[texture][:, None]
    return (255.0 + tint * (colour - 255.0)) / _HALF_TEXTURE


def _occluders(house: House) -> np.ndarray:
    """float64, (B, 5); the boxes that nothing inside the home can be seen through, over or under: see `Scene`."""
    shapes = house.shapes
    bottom, top = shapes.centre[:, 2] - shapes.half[:, 2], shapes.centre[:, 2] + shapes.half[:, 2]
    long = shapes.half[:, :2].max(1, initial=0) > 0.2
    rows = (shapes.kind == BOX) & (bottom <= 1e-4) & (top >= house.height - 1e-4) & long
    shapes = shapes.take(rows)
    along_x = shapes.half[:, 0] >= shapes.half[:, 1]
    angle = shapes.yaw.astype(np.float64) + np.where(along_x, 0.0, np.pi / 2)
    reach = shapes.half[:, :2].max(1, initial=0)[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    centre = shapes.centre[:, :2].astype(np.float64)
    return np.concatenate([centre - reach, centre + reach, shapes.half[:, :2].min(1, initial=np.inf)[:, None]], 1)


def floor_pieces(rooms: tuple[Room, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cuts the floors of rooms into convex pieces.

    Returns:
        float64 (P, 8, 2) corners in m, counter-clockwise, unused ones zero; int32 (P,) how many count; int64 (P,) the room.
    """
    found = [
        (piece, index)
        for index, room in enumerate(rooms)
        for piece in _convex_pieces(tuple(map(tuple, np.asarray(room.polygon, np.float64).tolist())))
    ]
    pieces = np.zeros((len(found), PIECE_CORNERS, 2))
    for row, (piece, _) in enumerate(found):
        pieces[row, : len(piece)] = piece
    corners = np.array([len(piece) for piece, _ in found], np.int32)
    return pieces, corners, np.array([index for _, index in found], np.int64)


@lru_cache(maxsize=4096)
def _convex_pieces(polygon: tuple[tuple[float, float], ...]) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Convex pieces of a simple counter-clockwise polygon, each with at most `PIECE_CORNERS` corners.

    Source:
        Ear clipping, then Hertel and Mehlhorn (1983): diagonals that are not needed are taken out again.
    """
    points = [np.array(point) for point in polygon]
    pieces = [list(triangle) for triangle in _ears(points)]
    merged = True
    while merged:
        merged = False
        for first in range(len(pieces)):
            for second in range(first + 1, len(pieces)):
                union = _union(pieces[first], pieces[second], points)
                if union is not None:
                    pieces[first] = union
                    del pieces[second]
                    merged = True
                    break
            if merged:
                break
    return tuple(tuple(polygon[index] for index in piece) for piece in pieces)


def _ears(points: list[np.ndarray]) -> list[tuple[int, int, int]]:
    """Triangles (indices of corners) of a simple counter-clockwise polygon."""
    left = list(range(len(points)))
    triangles = []
    while len(left) > 3:
        for at in range(len(left)):
            a, b, c = left[at - 1], left[at], left[(at + 1) % len(left)]
            area = _turn(points[a], points[b], points[c])
            if abs(area) < 1e-12:  # b lies on the line from a to c
                del left[at]
                break
            if area > 0 and not any(
                _inside(points[other], points[a], points[b], points[c]) for other in left if other not in (a, b, c)
            ):
                triangles.append((a, b, c))
                del left[at]
                break
        else:
            raise ValueError(f"a room's polygon crosses itself: {[tuple(map(float, point)) for point in points]}")
    triangles.append((left[0], left[1], left[2]))
    return triangles


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """Twice the signed area of a triangle; positive if it runs counter-clockwise."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _inside(point: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> bool:
    """Whether a point lies in a counter-clockwise triangle or on its edge."""
    return _turn(a, b, point) >= 0 and _turn(b, c, point) >= 0 and _turn(c, a, point) >= 0


def _union(first: list[int], second: list[int], points: list[np.ndarray]) -> list[int] | None:
    """Two polygons that share an edge as one, if that is convex and small enough; otherwise None."""
    for at, start in enumerate(first):
        end = first[(at + 1) % len(first)]
        if end not in second or second[(second.index(end) + 1) % len(second)] != start:
            continue
        back = second.index(start)
        around = [second[(back + step) % len(second)] for step in range(1, len(second) - 1)]
        union = first[: at + 1] + around + first[at + 1 :]
        corners = [points[index] for index in union]
        turns = [_turn(corners[i - 2], corners[i - 1], corners[i]) for i in range(len(corners))]
        return union if min(turns) >= -1e-12 and len(union) <= PIECE_CORNERS else None
    return None
