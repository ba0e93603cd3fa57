"""Builder of one ProcTHOR asset: fills its bounding box with a few solids that resemble it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from memenvs.houses.classes import MATERIAL_INDEX
from memenvs.houses.house import BOX, CYLINDER, ELLIPSOID, Colour, ShapeBuilder, Span, SupportSurface

WHITE: Colour = (240, 240, 236)
BLACK: Colour = (28, 28, 30)
DARK: Colour = (62, 56, 52)
STEEL: Colour = (176, 180, 184)
BRASS: Colour = (196, 170, 110)
WOOD: Colour = (150, 106, 66)
GREEN: Colour = (72, 116, 58)
TERRACOTTA: Colour = (176, 98, 66)


@dataclass
class AssetBuilder:
    """The bounding box of one asset and the solids put into it so far.

    Frame: metres, x to the asset's right, y to its front, z up. The origin is the centre of the box's bottom face.

    Attributes:
        centre: (x, y, z) of the box in the house, m.
        size: Width along x, depth along y, height, m.
        yaw: Rotation of its x axis in the house, rad.
        asset_id: Name of the asset in the house file.
        support_heights: Heights at which other objects of the house stand on or in it, m, in rising order.
        builder: Gets the solids.
        semantic: Index into `memenvs.houses.classes.CLASSES`.
        instance: Index into `House.instances`.
        material: Material of solids that name none; one of `memenvs.houses.classes.MATERIALS`.
        colour: Colour of solids that name none.
        surfaces: Where small objects can be put.
    """

    centre: tuple[float, float, float]
    size: tuple[float, float, float]
    yaw: float
    asset_id: str
    support_heights: tuple[float, ...]
    builder: ShapeBuilder
    semantic: int
    instance: int
    material: str
    colour: Colour
    surfaces: list[SupportSurface] = field(default_factory=list)

    @property
    def half_width(self) -> float:
        """Half the width, m."""
        return self.size[0] / 2

    @property
    def half_depth(self) -> float:
        """Half the depth, m."""
        return self.size[1] / 2

    @property
    def height(self) -> float:
        """Height, m."""
        return self.size[2]

    @property
    def x_span(self) -> Span:
        """Extents of the whole width, m."""
        return -self.half_width, self.half_width

    @property
    def y_span(self) -> Span:
        """Extents of the whole depth, m."""
        return -self.half_depth, self.half_depth

    def x_part(self, fraction: float) -> Span:
        """Extents of a fraction of the width, in its centre, m."""
        return -fraction * self.half_width, fraction * self.half_width

    def y_part(self, fraction: float) -> Span:
        """Extents of a fraction of the depth, in its centre, m."""
        return -fraction * self.half_depth, fraction * self.half_depth

    def support_height(self, low: float, high: float, default: float) -> float:
        """The lowest height between `low` and `high` at which an object stands, else `default`, m."""
        return next((height for height in self.support_heights if low <= height <= high), default)

    def shade(self, factor: float) -> Colour:
        """The asset's colour times a factor: darker below 1, lighter above."""
        red, green, blue = (min(255, round(channel * factor)) for channel in self.colour)
        return red, green, blue

    def box(
        self,
        x: Span,
        y: Span,
        z: Span,
        material: str | None = None,
        colour: Colour | None = None,
    ) -> None:
        """Add a box with these extents, m."""
        self._add(BOX, x, y, z, material, colour)

    def ellipsoid(
        self,
        x: Span,
        y: Span,
        z: Span,
        material: str | None = None,
        colour: Colour | None = None,
    ) -> None:
        """Add an ellipsoid with these extents, m."""
        self._add(ELLIPSOID, x, y, z, material, colour)

    def cylinder(
        self,
        share: float,
        z: Span,
        material: str | None = None,
        colour: Colour | None = None,
        at: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        """Add an upright cylinder that takes a part of the width; a box if the asset is not round.

        Args:
            share: Part of the asset's width and depth, 0 to 1.
            z: Lowest and highest z, m.
            material: Name of a material; None for the asset's own.
            colour: None for the asset's own.
            at: (x, y) of its axis, m.
        """
        x = self.half_width * share
        y = self.half_depth * share
        if max(x, y) < 1.15 * min(x, y):
            radius = min(x, y)
            self.pole(at, radius, z, material, colour)
        else:
            self._add(BOX, (at[0] - x, at[0] + x), (at[1] - y, at[1] + y), z, material, colour)

    def pole(
        self,
        at: tuple[float, float],
        radius: float,
        z: Span,
        material: str | None = None,
        colour: Colour | None = None,
    ) -> None:
        """Add an upright cylinder of a given radius, m."""
        x, y = at
        self._add(CYLINDER, (x - radius, x + radius), (y - radius, y + radius), z, material, colour)

    def fill(self, material: str | None = None, colour: Colour | None = None) -> None:
        """Fill all of the box."""
        self.box(self.x_span, self.y_span, (0, self.height), material, colour)

    def legs(
        self, x: float, y: float, height: float, width: float, material: str | None = None, colour: Colour | None = None
    ) -> None:
        """Add four square legs inside the rectangle from (-x, -y) to (x, y), m."""
        for x0 in (-x, x - width):
            for y0 in (-y, y - width):
                self.box((x0, x0 + width), (y0, y0 + width), (0, height), material, colour)

    def surface(self, x: Span, y: Span, z: float, clearance: float = math.inf) -> None:
        """Allow small objects to stand within these extents, m."""
        self.surfaces.append(SupportSurface(x, y, z, clearance))

    def _add(
        self,
        kind: int,
        x: Span,
        y: Span,
        z: Span,
        material: str | None,
        colour: Colour | None,
    ) -> None:
        cos = math.cos(self.yaw)
        sin = math.sin(self.yaw)
        mid_x = (x[0] + x[1]) / 2
        mid_y = (y[0] + y[1]) / 2
        mid_z = (z[0] + z[1]) / 2
        self.builder.add(
            kind,
            (
                self.centre[0] + cos * mid_x - sin * mid_y,
                self.centre[1] + sin * mid_x + cos * mid_y,
                self.centre[2] - self.height / 2 + mid_z,
            ),
            ((x[1] - x[0]) / 2, (y[1] - y[0]) / 2, (z[1] - z[0]) / 2),
            yaw=self.yaw,
            material=MATERIAL_INDEX[material or self.material],
            colour=colour or self.colour,
            semantic=self.semantic,
            instance=self.instance,
        )
