"""Groups of furniture that are placed together, such as a bed with its nightstands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from memenvs.houses.house import Span
from memenvs.houses.object_model import ObjectModel
from memenvs.houses.procedural import fixtures
from memenvs.houses.procedural.finishes import FurnitureStyle

_ROW_GAP = 0.006  # m; between the pieces of a kitchen row
_NIGHTSTAND_GAP = 0.04  # m; between bed and nightstand


class Footprint(NamedTuple):
    """Bounding rectangle on the floor plan, with sides along the axes, m."""

    x0: float
    y0: float
    x1: float
    y1: float

    def span(self, axis: int) -> Span:
        """Extents along x (0) or y (1)."""
        return (self.x0, self.x1) if axis == 0 else (self.y0, self.y1)

    def overlaps(self, other: Footprint) -> bool:
        """True if both share more than an edge."""
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1


class Placement(NamedTuple):
    """A model in a house or in a group.

    Attributes:
        model: The model.
        x: Centre of its outline, m.
        y: Centre of its outline, m.
        yaw: Rotation of its own x axis, rad.
        z: Height of its own z = 0 above the floor, m.
    """

    model: ObjectModel
    x: float
    y: float
    yaw: float
    z: float = 0.0

    @property
    def footprint(self) -> Footprint:
        """Bounding rectangle of its outline."""
        return turned_bounds(self.model.width, self.model.depth, self.x, self.y, self.yaw)

    @property
    def bottom(self) -> float:
        """Height of its lowest part, m."""
        return self.z + min(part.centre[2] - part.half[2] for part in self.model.parts)


@dataclass
class FurnitureGroup:
    """Pieces that are placed together, in a frame like that of an `ObjectModel`.

    Attributes:
        width: Outline along x, m.
        depth: Outline along y, m.
        items: The pieces; positions in the frame of the group.
        front: Free depth wanted in front of the outline, m.
    """

    width: float
    depth: float
    items: list[Placement] = field(default_factory=list)
    front: float = 0.0

    @staticmethod
    def of(model: ObjectModel, front: float = 0.0) -> FurnitureGroup:
        """A group of one piece."""
        return FurnitureGroup(model.width, model.depth, [Placement(model, 0.0, 0.0, 0.0)], front)

    def add_at_back(self, model: ObjectModel, x: float) -> None:
        """Add a piece with its back in line with the group's back."""
        self.items.append(Placement(model, x, (model.depth - self.depth) / 2, 0.0))

    def turned(self, yaw: float) -> FurnitureGroup:
        """The same pieces turned by 0 or pi / 2, without free depth in front."""
        width, depth = (self.width, self.depth) if yaw == 0.0 else (self.depth, self.width)
        cos = round(np.cos(yaw))
        sin = round(np.sin(yaw))
        items = [
            Placement(item.model, cos * item.x - sin * item.y, sin * item.x + cos * item.y, item.yaw + yaw)
            for item in self.items
        ]
        return FurnitureGroup(width, depth, items)


def turned_bounds(width: float, depth: float, x: float, y: float, yaw: float) -> Footprint:
    """Bounds along the axes of a rectangle turned by `yaw` around its centre (x, y)."""
    cos = abs(np.cos(yaw))
    sin = abs(np.sin(yaw))
    half_x = (cos * width + sin * depth) / 2
    half_y = (sin * width + cos * depth) / 2
    return Footprint(x - half_x, y - half_y, x + half_x, y + half_y)


def bed_group(bed: ObjectModel, sides: Sequence[int], stands: Sequence[ObjectModel]) -> FurnitureGroup:
    """A bed with nightstands.

    Args:
        bed: The bed.
        sides: -1 (left) or 1 (right) for each nightstand.
        stands: The nightstands.
    """
    group = FurnitureGroup(bed.width, bed.depth, [], 0.4)
    extent = [-bed.width / 2, bed.width / 2]  # of the group along x, with the bed in the middle
    for side, stand in zip(sides, stands, strict=True):
        extent[0 if side < 0 else 1] += side * (stand.width + _NIGHTSTAND_GAP)
    middle = (extent[0] + extent[1]) / 2
    group.width = extent[1] - extent[0]
    group.add_at_back(bed, -middle)
    for side, stand in zip(sides, stands, strict=True):
        group.add_at_back(stand, side * (bed.width + stand.width + 2 * _NIGHTSTAND_GAP) / 2 - middle)
    return group


def desk_group(desk: ObjectModel, chair: ObjectModel) -> FurnitureGroup:
    """A desk with a chair that stands partly under it."""
    overlap = 0.12
    group = FurnitureGroup(desk.width, desk.depth + chair.depth - overlap, [], 0.25)
    group.add_at_back(desk, 0.0)
    group.items.append(Placement(chair, -0.15, group.depth / 2 - chair.depth / 2, np.pi))
    return group


def seating_group(sofa: ObjectModel, coffee_table: ObjectModel) -> FurnitureGroup:
    """A sofa with a coffee table in front of it."""
    group = FurnitureGroup(sofa.width, sofa.depth + 0.38 + coffee_table.depth, [])
    group.add_at_back(sofa, 0.0)
    group.items.append(Placement(coffee_table, 0.0, (group.depth - coffee_table.depth) / 2, 0.0))
    return group


def dining_group(table: ObjectModel, chairs: Sequence[ObjectModel]) -> FurnitureGroup:
    """A table with 2, 4 or 6 chairs along its longer sides."""
    width = table.width
    reach = chairs[0].depth - 0.2  # of a chair beyond the table's edge
    group = FurnitureGroup(width + 0.02, table.depth + 2 * reach, [Placement(table, 0.0, 0.0, 0.0)])
    columns = {6: (-0.31 * width, 0.0, 0.31 * width), 4: (-0.25 * width, 0.25 * width), 2: (0.0,)}[len(chairs)]
    spots = [(x, side) for x in columns for side in (-1, 1)]
    for chair, (x, side) in zip(chairs, spots, strict=True):
        y = side * (group.depth - chair.depth) / 2
        group.items.append(Placement(chair, x, y, 0.0 if side < 0 else np.pi))
    return group


def kitchen_group(row: Sequence[ObjectModel], style: FurnitureStyle, *, has_cabinets: bool) -> FurnitureGroup:
    """Kitchen pieces side by side, perhaps with cabinets on the wall above the counters."""
    width = sum(model.width for model in row) + _ROW_GAP * (len(row) - 1)
    group = FurnitureGroup(width, max(model.depth for model in row), [], 0.8)
    x = -group.width / 2
    for model in row:
        group.add_at_back(model, x + model.width / 2)
        if has_cabinets and model.name == "counter":
            group.add_at_back(fixtures.wall_cabinet(style, width=model.width - 0.01), x + model.width / 2)
        x += model.width + _ROW_GAP
    return group
