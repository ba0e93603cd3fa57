"""A bounding box that is filled with a few solids, so that a chair looks like a chair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from memenvs.houses.classes import MATERIAL_INDEX
from memenvs.houses.house import BOX, CYLINDER, SPHERE, Colour, ShapeBuilder, SupportSurface

WHITE, BLACK, STEEL, DARK = (240, 240, 236), (28, 28, 30), (176, 180, 184), (62, 56, 52)
WOOD, GREEN, TERRACOTTA, BRASS = (150, 106, 66), (72, 116, 58), (176, 98, 66), (196, 170, 110)


@dataclass
class AssetBuilder:
    """The bounding box of one asset and the solids put into it so far.

    Frame: metres, x to the asset's right, y to its front, z up; the origin is the middle of the box's bottom face.

    Attributes:
        centre: (x, y, z) of the box in the home, m.
        size: Width along x, depth along y, height, m.
        yaw: Turn of its x axis in the home, rad.
        asset: Asset id.
        rests: Heights at which other objects stand on or in it, m, in rising order.
        builder: Takes the solids.
        semantic: Index into CLASSES.
        instance: Index into `House.instances`.
        material: Material of what is not said otherwise; a name of MATERIALS.
        colour: Colour of what is not said otherwise.
        surfaces: Where things can be put.
    """

    centre: tuple[float, float, float]
    size: tuple[float, float, float]
    yaw: float
    asset: str
    rests: tuple[float, ...]
    builder: ShapeBuilder
    semantic: int
    instance: int
    material: str
    colour: Colour
    surfaces: list[SupportSurface] = field(default_factory=list)

    @property
    def x(self) -> float:
        """Half the width, m."""
        return self.size[0] / 2

    @property
    def y(self) -> float:
        """Half the depth, m."""
        return self.size[1] / 2

    @property
    def z(self) -> float:
        """Height, m."""
        return self.size[2]

    def rest(self, low: float, high: float, default: float) -> float:
        """The lowest height between `low` and `high` at which something stands, else `default`, m."""
        return next((rest for rest in self.rests if low <= rest <= high), default)

    def shade(self, factor: float) -> Colour:
        """The asset's colour, lighter (> 1) or darker."""
        red, green, blue = (min(255, round(channel * factor)) for channel in self.colour)
        return red, green, blue

    def box(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        z: tuple[float, float],
        material: str | None = None,
        colour: Colour | None = None,
    ) -> None:
        """Adds a box between these coordinates, m."""
        self._add(BOX, x, y, z, material, colour)

    def ball(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        z: tuple[float, float],
        material: str | None = None,
        colour: Colour | None = None,
    ) -> None:
        """Adds an ellipsoid between these coordinates, m."""
        self._add(SPHERE, x, y, z, material, colour)

    def round(
        self,
        share: float,
        z: tuple[float, float],
        material: str | None = None,
        colour: Colour | None = None,
        at: Sequence[float] = (0.0, 0.0),
    ) -> None:
        """Adds an upright cylinder as wide as `share` of the box; a box if the asset is clearly longer than wide.

        Args:
            share: Of the width and depth.
            z: Between these heights, m.
            material: Name; None is the asset's own.
            colour: None is the asset's own.
            at: (x, y) of its axis, m.
        """
        x, y = self.x * share, self.y * share
        kind = BOX
        if max(x, y) < 1.15 * min(x, y):
            kind, x, y = CYLINDER, min(x, y), min(x, y)
        self._add(kind, (at[0] - x, at[0] + x), (at[1] - y, at[1] + y), z, material, colour)

    def post(
        self, at: tuple[float, float], radius: float, z: tuple[float, float], material: str, colour: Colour
    ) -> None:
        """Adds an upright cylinder of a radius in metres."""
        x, y = at
        self._add(CYLINDER, (x - radius, x + radius), (y - radius, y + radius), z, material, colour)

    def whole(self, material: str | None = None, colour: Colour | None = None) -> None:
        """Fills all of the box."""
        self.box((-self.x, self.x), (-self.y, self.y), (0, self.z), material, colour)

    def legs(
        self, x: float, y: float, height: float, width: float, material: str | None = None, colour: Colour | None = None
    ) -> None:
        """Adds four square legs inside the rectangle from (-x, -y) to (x, y), m."""
        for x0 in (-x, x - width):
            for y0 in (-y, y - width):
                self.box((x0, x0 + width), (y0, y0 + width), (0, height), material, colour)

    def top(self, x: tuple[float, float], y: tuple[float, float], z: float, room: float = math.inf) -> None:
        """Notes that things can stand there, at height `z` with `room` above, m."""
        self.surfaces.append(SupportSurface(x, y, z, room))

    def _add(
        self,
        kind: int,
        x: tuple[float, float],
        y: tuple[float, float],
        z: tuple[float, float],
        material: str | None,
        colour: Colour | None,
    ) -> None:
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        mid_x, mid_y, mid_z = (x[0] + x[1]) / 2, (y[0] + y[1]) / 2, (z[0] + z[1]) / 2
        self.builder.add(
            kind,
            (
                self.centre[0] + cos * mid_x - sin * mid_y,
                self.centre[1] + sin * mid_x + cos * mid_y,
                self.centre[2] - self.z / 2 + mid_z,
            ),
            ((x[1] - x[0]) / 2, (y[1] - y[0]) / 2, (z[1] - z[0]) / 2),
            yaw=self.yaw,
            material=MATERIAL_INDEX[material or self.material],
            colour=colour or self.colour,
            semantic=self.semantic,
            instance=self.instance,
        )
