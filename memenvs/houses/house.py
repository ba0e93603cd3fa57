"""Houses as plain data: solid shapes, rooms, doors, and surfaces to put objects on.

Nothing here renders, moves or rewards. One frame serves all: metres, right-handed, x and y on the floor plan, z up,
the floor at z = 0. Angles are in radians, counter-clockwise seen from above, 0 along +x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np

Colour = tuple[int, int, int]  # sRGB, 0 to 255 each
Span = tuple[float, float]  # smallest and largest coordinate, m

#: Kinds of shapes, and their names.
BOX, CYLINDER, ELLIPSOID = 0, 1, 2
SHAPE_KINDS = ("box", "cylinder", "ellipsoid")
_CHUNK = 2**22  # points times corners that are tested at once for lying inside a polygon


class Finish(NamedTuple):
    """Surface of a solid: material (a name of `memenvs.houses.classes.MATERIALS`) and colour."""

    material: str
    colour: Colour


class SupportSurface(NamedTuple):
    """Level part of an object that small objects can stand on, in the object's own frame.

    Attributes:
        x: Extents along x, m.
        y: Extents along y, m.
        z: Height, m.
        clearance: Free height above it, m.
    """

    x: Span
    y: Span
    z: float
    clearance: float = inf


@dataclass(frozen=True, eq=False)
class Shapes:
    """S solid shapes, one row each.

    Attributes:
        kind: uint8, (S,); `BOX`, `CYLINDER` (upright) or `ELLIPSOID`.
        centre: float32, (S, 3); m.
        half: float32, (S, 3); half sizes along the shape's own axes, m, > 0; of a cylinder (radius, radius, half its
            height).
        yaw: float32, (S,); rotation of the shape's own x axis, rad.
        material: uint8, (S,); index into `memenvs.houses.classes.MATERIALS`.
        colour: uint8, (S, 3); base colour, sRGB; the material's texture varies around it.
        semantic: uint8, (S,); index into `memenvs.houses.classes.CLASSES`.
        instance: uint16, (S,); index into `House.instances`; the shapes of one object share it. 0 is the building.
    """

    kind: np.ndarray
    centre: np.ndarray
    half: np.ndarray
    yaw: np.ndarray
    material: np.ndarray
    colour: np.ndarray
    semantic: np.ndarray
    instance: np.ndarray

    def __len__(self) -> int:
        return len(self.kind)

    @staticmethod
    def empty() -> Shapes:
        """No shapes."""
        return Shapes(
            kind=np.zeros(0, np.uint8),
            centre=np.zeros((0, 3), np.float32),
            half=np.zeros((0, 3), np.float32),
            yaw=np.zeros(0, np.float32),
            material=np.zeros(0, np.uint8),
            colour=np.zeros((0, 3), np.uint8),
            semantic=np.zeros(0, np.uint8),
            instance=np.zeros(0, np.uint16),
        )

    @staticmethod
    def concatenate(parts: Sequence[Shapes]) -> Shapes:
        """All shapes of `parts`, in order."""
        if not parts:
            return Shapes.empty()
        return Shapes(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in Shapes.__dataclass_fields__)
        )

    def take(self, rows: np.ndarray) -> Shapes:
        """The shapes of `rows` (indices or a mask)."""
        return Shapes(*(getattr(self, name)[rows] for name in Shapes.__dataclass_fields__))


class ShapeBuilder:
    """Collect shapes one at a time, then make a `Shapes` of them."""

    def __init__(self) -> None:
        self._rows: list[tuple] = []

    def add(
        self,
        kind: int,
        centre: Sequence[float],
        half: Sequence[float],
        *,
        yaw: float = 0.0,
        material: int = 0,
        colour: Sequence[int] = (200, 200, 200),
        semantic: int = 0,
        instance: int = 0,
    ) -> None:
        """Add one shape; see `Shapes` for units.

        Raises:
            ValueError: A half size is not positive.
        """
        if min(half) <= 0:
            raise ValueError(f"half sizes of a shape must be > 0 m, got {tuple(half)}")
        self._rows.append((kind, tuple(centre), tuple(half), yaw, material, tuple(colour), semantic, instance))

    def build(self) -> Shapes:
        """The shapes added so far."""
        if not self._rows:
            return Shapes.empty()
        kind, centre, half, yaw, material, colour, semantic, instance = zip(*self._rows, strict=True)
        return Shapes(
            kind=np.array(kind, np.uint8),
            centre=np.array(centre, np.float32),
            half=np.array(half, np.float32),
            yaw=np.array(yaw, np.float32),
            material=np.array(material, np.uint8),
            colour=np.array(colour, np.uint8),
            semantic=np.array(semantic, np.uint8),
            instance=np.array(instance, np.uint16),
        )


@dataclass(frozen=True, eq=False)
class Room:
    """One room of a house.

    Attributes:
        type: One of `memenvs.houses.classes.ROOM_TYPES`.
        polygon: float64, (P, 2); corners on the floor plan, counter-clockwise, m; not always convex.
        floor_material: Index into `memenvs.houses.classes.MATERIALS`.
        floor_colour: Base colour of the floor.
    """

    type: str
    polygon: np.ndarray
    floor_material: int
    floor_colour: Colour


@dataclass(frozen=True)
class Door:
    """An opening between two rooms, or to the outside, on the floor plan.

    Attributes:
        rooms: Indices of the two rooms; -1 is outside.
        centre: (x, y) of the centre of the opening on the floor, m.
        width: Clear width, m.
        height: Clear height, m.
        yaw: Direction of its wall, rad; the robot passes through at right angles to it.
    """

    rooms: tuple[int, int]
    centre: tuple[float, float]
    width: float
    height: float
    yaw: float


@dataclass(frozen=True)
class Receptacle:
    """A level surface in a house that small objects can stand on.

    Attributes:
        instance: The piece of furniture; index into `House.instances`.
        centre: (x, y, z) of the centre of the surface, m.
        half: Half sizes along the surface's own axes, m.
        yaw: Rotation of its own x axis, rad.
        clearance: Free height above it, m.
    """

    instance: int
    centre: tuple[float, float, float]
    half: tuple[float, float]
    yaw: float
    clearance: float = 1.0


@dataclass(frozen=True)
class PlacedObject:
    """A small object in a house.

    Attributes:
        category: 0 to 19, index into `memenvs.houses.classes.YCB_CLASSES`.
        position: (x, y, z) of the centre of its bounding box, m.
        yaw: Rotation of its own x axis, rad.
        instance: Index into `House.instances`.
        receptacle: Index into `House.receptacles` of the surface that it stands on.
    """

    category: int
    position: tuple[float, float, float]
    yaw: float
    instance: int
    receptacle: int


@dataclass(frozen=True, eq=False)
class House:
    """A house, with or without small objects in it.

    Attributes:
        name: Stable and different for each house, such as "procedural-1003" or "four_room-7".
        shapes: Everything solid: walls (cut around doors and windows), furniture, objects. Floor and ceiling are not
            among them; they follow from `rooms` and `height`.
        rooms: At least one.
        doors: Openings between rooms, and to the outside.
        receptacles: Surfaces that small objects may be put on.
        instances: Name of every instance, such as "bed|3"; entry 0 is "building".
        height: Height of the walls, m; the ceiling is there.
        objects: The small objects that were put into it; their shapes are among `shapes`.
    """

    name: str
    shapes: Shapes
    rooms: tuple[Room, ...]
    doors: tuple[Door, ...]
    receptacles: tuple[Receptacle, ...]
    instances: tuple[str, ...]
    height: float = 2.7
    objects: tuple[PlacedObject, ...] = ()

    @property
    def bounds(self) -> np.ndarray:
        """float64, (2, 2); smallest and largest (x, y) of all rooms, m."""
        corners = np.concatenate([room.polygon for room in self.rooms])
        return np.stack([corners.min(0), corners.max(0)])

    @property
    def area(self) -> float:
        """Floor area of all rooms, square metres."""
        return float(sum(polygon_area(room.polygon) for room in self.rooms))

    def with_objects(self, shapes: Shapes, instances: Sequence[str], objects: tuple[PlacedObject, ...] = ()) -> House:
        """This house with more objects in it.

        Args:
            shapes: The new shapes; `instance` k means the name `instances[k - 1]`.
            instances: Names of the new instances.
            objects: The new small objects.

        Returns:
            A new house; the first new instance has the index `len(self.instances)`.
        """
        numbered = replace(shapes, instance=(shapes.instance + (len(self.instances) - 1)).astype(np.uint16))
        return replace(
            self,
            shapes=Shapes.concatenate([self.shapes, numbered]),
            instances=(*self.instances, *instances),
            objects=(*self.objects, *objects),
        )

    def without(self, instances: np.ndarray) -> House:
        """This house without the shapes of some instances (K,); the others keep their numbers."""
        removed = set(instances.tolist())
        return replace(
            self,
            shapes=self.shapes.take(~np.isin(self.shapes.instance, instances)),
            objects=tuple(placed for placed in self.objects if placed.instance not in removed),
        )


def polygon_area(polygon: np.ndarray) -> float:
    """Signed area of a polygon (P, 2); positive if its corners run counter-clockwise."""
    x, y = polygon[:, 0], polygon[:, 1]
    return 0.5 * float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))


def points_in_polygon(points: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """Test points (Q, 2) for lying inside a polygon (P, 2), by the crossing rule; bool, (Q,)."""
    chunk = max(1, _CHUNK // len(polygon))
    if len(points) > chunk:  # the arrays below are Q x P
        parts = [points_in_polygon(points[i : i + chunk], polygon) for i in range(0, len(points), chunk)]
        return np.concatenate(parts)
    return _are_inside(points[:, 0], points[:, 1], polygon)


def grid_in_polygon(x: np.ndarray, y: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """Test the points of a grid for lying inside a polygon.

    Args:
        x: (W,); of the columns.
        y: (H,); of the rows.
        polygon: (P, 2).

    Returns:
        bool, (H, W); bit for bit as `points_in_polygon` of each point.
    """
    rows = max(1, _CHUNK // max(1, len(x) * len(polygon)))
    if len(y) > rows:
        return np.concatenate([grid_in_polygon(x, y[i : i + rows], polygon) for i in range(0, len(y), rows)])
    return _are_inside(x, y[:, None], polygon)


def _are_inside(x: np.ndarray, y: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """Crossing rule for points whose coordinates have shapes that broadcast."""
    y = y[..., None]
    x0, y0 = polygon[:, 0], polygon[:, 1]  # (P,); an edge goes from (x0, y0) to (x1, y1)
    x1, y1 = np.roll(x0, -1), np.roll(y0, -1)
    # A ray from the point along +x meets an edge that spans its y and lies right of it; an odd count means inside.
    spans_y = (y0 > y) != (y1 > y)
    with np.errstate(divide="ignore", invalid="ignore"):  # level edges divide by 0, but do not span y
        x_of_edge = np.where(spans_y, x0 + (y - y0) * (x1 - x0) / (y1 - y0), -np.inf)
    return (x[..., None] < x_of_edge).sum(-1) % 2 == 1
