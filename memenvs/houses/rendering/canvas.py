"""An image to draw maps on, in metres."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from memenvs.houses.house import Colour

#: Colour of the background, and of the light rims around text and marks; sRGB.
PAPER: Colour = (250, 249, 246)
#: Images are drawn larger by this factor and then reduced.
SUPERSAMPLE = 3


class MapCanvas:
    """An image that is drawn in metres.

    It is drawn `SUPERSAMPLE` times larger and reduced at the end, which smooths edges.

    Args:
        low: float, (2,); x and y of the lower left corner, m.
        high: float, (2,); x and y of the upper right corner, m.
        pixels_per_metre: Scale of the final image.
    """

    def __init__(self, low: np.ndarray, high: np.ndarray, pixels_per_metre: float) -> None:
        self.scale = pixels_per_metre * SUPERSAMPLE
        self._low, self._high = low, high
        size = np.ceil((high - low) * pixels_per_metre - 1e-6).astype(int)
        self.size = max(int(size[0]), 1), max(int(size[1]), 1)
        self.image = Image.new("RGB", (self.size[0] * SUPERSAMPLE, self.size[1] * SUPERSAMPLE), PAPER)
        self.draw = ImageDraw.Draw(self.image)

    def pixels(self, points: np.ndarray) -> list[tuple[float, float]]:
        """Positions on the enlarged image of points (Q, 2) in metres."""
        xy = (np.asarray(points, np.float64) - (self._low[0], self._high[1])) * (self.scale, -self.scale)
        return [(float(x), float(y)) for x, y in xy]

    def polygon(self, points: np.ndarray, fill: Colour, outline: Colour | None = None, width: float = 0.0) -> None:
        """Fill a polygon; the outline's width is in metres."""
        pixels = self.pixels(points)
        self.draw.polygon(pixels, fill=fill)
        if outline is not None:
            self.draw.line([*pixels, pixels[0]], fill=outline, width=max(1, round(width * self.scale)), joint="curve")

    def disc(
        self,
        centre: Sequence[float] | np.ndarray,
        radius: float,
        fill: Colour,
        outline: Colour | None = None,
        width: float = 0.0,
    ) -> None:
        """Fill a circle; all sizes in metres."""
        ((x, y),) = self.pixels(np.array([centre[:2]]))
        r = radius * self.scale
        self.draw.ellipse(
            (x - r, y - r, x + r, y + r), fill=fill, outline=outline, width=max(1, round(width * self.scale))
        )

    def square(self, centre: np.ndarray, side: float, colour: Colour) -> None:
        """Tint a square, so that what is under it can still be seen; its side in metres."""
        (left, top), (right, bottom) = self.pixels(centre[:2] + np.array([[-0.5, 0.5], [0.5, -0.5]]) * side)
        shape = left, top, right - 1, bottom - 1  # the square beside it begins at the next pixel
        ImageDraw.Draw(self.image, "RGBA").rectangle(shape, (*colour, 80), (*colour, 120), SUPERSAMPLE)

    def cross(self, centre: np.ndarray, half: float, colour: Colour) -> None:
        """Draw a cross with a light rim; half its side in metres."""
        for grown, width, ink in ((0.03, 0.11, PAPER), (0.0, 0.05, colour)):
            for turn in (1.0, -1.0):
                ends = centre[:2] + np.array([[-1.0, -turn], [1.0, turn]]) * (half + grown)
                self.draw.line(self.pixels(ends), ink, max(SUPERSAMPLE, round(width * self.scale)))

    def text(
        self, centre: Sequence[float] | np.ndarray, text: str, height: float, fill: Colour, anchor: str = "mm"
    ) -> None:
        """Write a line with a light rim, moved so that it fits into the image; its height in metres."""
        ((x, y),) = self.pixels(np.array([centre[:2]]))
        font = ImageFont.load_default(max(8 * SUPERSAMPLE, height * self.scale))
        rim = round(1.2 * SUPERSAMPLE)
        left, top, right, bottom = self.draw.textbbox((x, y), text, font, anchor, stroke_width=rim)
        x += max(0, -left) - max(0, right - self.image.width)
        y += max(0, -top) - max(0, bottom - self.image.height)
        self.draw.text((x, y), text, fill, font, anchor, stroke_width=rim, stroke_fill=PAPER)

    def finish(self) -> np.ndarray:
        """The image at its final size; uint8, (H, W, 3)."""
        return np.array(self.image.resize(self.size, Image.Resampling.LANCZOS))
