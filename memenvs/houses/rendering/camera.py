"""A pinhole camera: the size of its images and which rays it draws."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Camera:
    """A pinhole camera with square pixels.

    Attributes:
        height: Rows of an image, H; 1 to 4096.
        width: Columns of an image, W; 1 to 4096.
        hfov_deg: Angle between the left and the right edge of the image, degrees; between 1 and 170.
        sample_of: None, or (rows, columns) of a larger image of the same field of view, both the same whole multiple k of
            `height` and `width`. Drawn are then the rays through the centres of every k-th pixel of the larger image: depth, class
            and instance equal `large[::k, ::k]`; in colour, patterns are as smooth as pixels of this size need.
        principal_point: Where the optical axis meets the image, as (column, row) in units in which the pixel of index i is drawn at i;
            may lie outside, so that a camera can draw some rows of another one's image. None for the middle of the image (or for
            what follows from `sample_of`, with which it does not go together).
    """

    height: int = 64
    width: int = 64
    hfov_deg: float = 90.0
    sample_of: tuple[int, int] | None = None
    principal_point: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name in ("height", "width"):
            if not 1 <= getattr(self, name) <= 4096:
                raise ValueError(f"{name} must be between 1 and 4096 pixels, got {getattr(self, name)}")
        if not 1.0 <= self.hfov_deg <= 170.0:
            raise ValueError(f"hfov_deg must be between 1 and 170 degrees, got {self.hfov_deg}")
        if self.sample_of is not None:
            k = self.sample_of[1] // self.width
            if k < 1 or tuple(self.sample_of) != (k * self.height, k * self.width):
                raise ValueError(
                    f"sample_of must be (k * {self.height}, k * {self.width}) with a whole k >= 1, got {self.sample_of}"
                )
        if self.principal_point is not None:
            if self.sample_of is not None:
                raise ValueError(f"principal_point must be None with sample_of, got {self.principal_point}")
            if not all(math.isfinite(each) for each in self.principal_point):
                raise ValueError(f"principal_point must be finite, got {self.principal_point}")

    @property
    def focal(self) -> float:
        """Focal length in pixels of this image, for both axes."""
        return self.width / 2 / math.tan(math.radians(self.hfov_deg) / 2)

    @property
    def centre(self) -> tuple[float, float]:
        """Where the optical axis meets the image, as (column, row) in units in which the pixel of index i is drawn at i."""
        if self.principal_point is not None:
            return self.principal_point
        offset = 0.5 if self.sample_of is None else 0.5 * self.width / self.sample_of[1]
        return self.width / 2 - offset, self.height / 2 - offset
