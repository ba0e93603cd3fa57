"""Model of one ProcTHOR asset: fills its bounding box with a few solids that resemble it."""

from __future__ import annotations

from math import inf

from memenvs.houses.house import Colour, Finish, Span
from memenvs.houses.object_model import ObjectModel

WHITE: Colour = (240, 240, 236)
BLACK: Colour = (28, 28, 30)
DARK: Colour = (62, 56, 52)
STEEL: Colour = (176, 180, 184)

BLACK_PLASTIC = Finish("plain", BLACK)
DARK_PLASTIC = Finish("plain", DARK)
WHITE_PLASTIC = Finish("plain", WHITE)
DARK_METAL = Finish("metal", DARK)
BARE_STEEL = Finish("metal", STEEL)
BRASS = Finish("metal", (196, 170, 110))
DARK_WOOD = Finish("wood", DARK)
WHITE_FABRIC = Finish("fabric", WHITE)
WHITE_PAPER = Finish("paper", WHITE)
BLACK_GLASS = Finish("glass", BLACK)


class AssetModel(ObjectModel):
    """An `ObjectModel` that fills a bounding box.

    Args:
        name: Semantic class of the asset.
        size: Width along x, depth along y and height of the box, m.
        finish: Finish of solids that name none.
        asset_id: Name of the asset in the house file.
        support_heights: Heights at which other objects of the house stand on or in it, m, in rising order.

    Attributes:
        size, finish, asset_id, support_heights: As given.
    """

    def __init__(
        self,
        name: str,
        size: tuple[float, float, float],
        finish: Finish,
        asset_id: str = "",
        support_heights: tuple[float, ...] = (),
    ) -> None:
        super().__init__(name, size[0], size[1])
        self.size = size
        self.finish = finish
        self.asset_id = asset_id
        self.support_heights = support_heights

    @property
    def height(self) -> float:
        """Height of the box, m."""
        return self.size[2]

    @property
    def extents(self) -> tuple[float, float, float]:
        """Half the width, half the depth, and the height, m."""
        return self.width / 2, self.depth / 2, self.height

    def x_part(self, fraction: float) -> Span:
        """Extents of a fraction of the width, in its centre, m."""
        return -fraction * (self.width / 2), fraction * (self.width / 2)

    def y_part(self, fraction: float) -> Span:
        """Extents of a fraction of the depth, in its centre, m."""
        return -fraction * (self.depth / 2), fraction * (self.depth / 2)

    def x_sides(self, rim: float) -> tuple[Span, Span]:
        """Extents of a rim at the left and at the right, m."""
        left, right = self.x_inside(rim)
        return (-self.width / 2, left), (right, self.width / 2)

    def support_height(self, low: float, high: float, default: float) -> float:
        """The lowest height between `low` and `high` at which an object stands, else `default`, m."""
        return next((height for height in self.support_heights if low <= height <= high), default)

    def shade(self, factor: float, material: str | None = None) -> Finish:
        """The asset's finish with its colour times a factor: darker below 1, lighter above.

        Args:
            factor: > 0.
            material: Another material; None for the asset's own.
        """
        red, green, blue = (min(255, round(channel * factor)) for channel in self.finish.colour)
        return Finish(material or self.finish.material, (red, green, blue))

    def box(self, x: Span, y: Span, z: Span, finish: Finish | None = None) -> None:
        """Add a box with these extents, m."""
        super().box(x, y, z, finish or self.finish)

    def oval(self, x: Span, y: Span, z: Span, finish: Finish | None = None) -> None:
        """Add an ellipsoid with these extents, m."""
        centre = ((x[0] + x[1]) / 2, (y[0] + y[1]) / 2, (z[0] + z[1]) / 2)
        half = ((x[1] - x[0]) / 2, (y[1] - y[0]) / 2, (z[1] - z[0]) / 2)
        self.ellipsoid(centre, half, finish or self.finish)

    def column(self, fraction: float, z: Span, finish: Finish | None = None) -> None:
        """Add an upright cylinder that takes a part of the width; a box if the asset is not round.

        Args:
            fraction: Part of the asset's width and depth, 0 to 1.
            z: Lowest and highest z, m.
            finish: None for the asset's own.
        """
        x, y = self.width / 2 * fraction, self.depth / 2 * fraction
        if max(x, y) < 1.15 * min(x, y):
            self.cylinder(0.0, 0.0, z, min(x, y), finish or self.finish)
        else:
            self.box((-x, x), (-y, y), z, finish)

    def fill(self, finish: Finish | None = None) -> None:
        """Fill all of the box."""
        self.box(self.x_span, self.y_span, (0, self.height), finish)

    def posts(self, x: float, y: float, height: float, width: float, finish: Finish | None = None) -> None:
        """Add four square legs inside the rectangle from (-x, -y) to (x, y), m."""
        for x0 in (-x, x - width):
            for y0 in (-y, y - width):
                self.box((x0, x0 + width), (y0, y0 + width), (0, height), finish)

    def surface(self, x: Span, y: Span, z: float, clearance: float = inf) -> None:
        """Allow small objects to stand within these extents, m."""
        super().surface(x, y, z, clearance)
