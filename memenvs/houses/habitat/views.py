"""Images of our cameras as parts of images that habitat-sim can draw."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from memenvs.houses.rendering.camera import Camera

#: Largest number of pixels that are drawn for one, along each axis.
_MAX_STEP = 16


@dataclass(frozen=True)
class SampledView:
    """An image with the optical axis in its middle, and which of its pixels are wanted.

    Attributes:
        height: Rows.
        width: Columns.
        hfov: Horizontal field of view, rad.
        rows: First wanted row, distance of wanted rows, and their number.
        columns: The same of columns.
    """

    height: int
    width: int
    hfov: float
    rows: tuple[int, int, int]
    columns: tuple[int, int, int]

    @staticmethod
    def whole(height: int, width: int, hfov: float) -> SampledView:
        """All pixels of an image."""
        return SampledView(height, width, hfov, (0, 1, height), (0, 1, width))

    @staticmethod
    def of(camera: Camera) -> SampledView:
        """Find the smallest image that has the rays of a camera.

        The package draws images with the optical axis in the middle. Where ours is elsewhere, as in every k-th pixel of
        a larger image, a denser image is drawn.

        Raises:
            ValueError: No image of up to 16 times as many rows and columns has these rays.
        """
        centres = camera.centre
        for step in range(1, _MAX_STEP + 1):
            if all(abs(2 * step * middle - round(2 * step * middle)) < 1e-6 for middle in centres):
                width, columns = _axis(centres[0], camera.width, step)
                height, rows = _axis(centres[1], camera.height, step)
                return SampledView(height, width, 2 * math.atan(width / 2 / (step * camera.focal)), rows, columns)
        raise ValueError(f"habitat-sim cannot draw a camera with the optical axis at {centres}")

    def crop(self, image: np.ndarray) -> np.ndarray:
        """Take the wanted pixels of an image (H, W, ...)."""
        parts = (slice(first, first + (count - 1) * step + 1, step) for first, step, count in (self.rows, self.columns))
        return image[tuple(parts)]


def _axis(middle: float, count: int, step: int) -> tuple[int, tuple[int, int, int]]:
    """Size of the image along an axis, and the wanted pixels: first, step and number."""
    middle = round(2 * step * middle) / 2  # of the wanted pixel 0, in pixels of the image
    reach = max(middle, step * (count - 1) - middle)
    size = round(2 * reach) + 1  # the outermost wanted pixel is the outermost of the image
    return size, (round((size - 1) / 2 - middle), step, count)
