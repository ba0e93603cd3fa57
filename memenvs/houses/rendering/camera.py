"""A pinhole camera: the size of its images and which rays they show."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Camera:
    """A pinhole camera with square pixels.

    Attributes:
        height: H, rows of an image; 1 to 4096.
        width: W, columns of an image; 1 to 4096.
        hfov_deg: Horizontal field of view: the angle between the left and the right edge of the image, degrees; 1 to
            170.
        sample_of: None, or (k * H, k * W) for an integer k: the size of a larger image of the same field of view. The
            image then shows the rays through every k-th pixel of the larger one: depth, class and instance equal
            `large[::k, ::k]`. In colour, textures are filtered for the size of the small image's pixels.
        principal_point: (column, row) of the optical axis in the image, as indices of pixels: the centre of pixel i is
            at i, not at i + 0.5. None is the centre of the image. It may lie outside, so that a camera can show some
            rows of another one's image. Not together with `sample_of`.
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
                    f"sample_of must be (k * {self.height}, k * {self.width}) for integer k >= 1, got {self.sample_of}"
                )
        if self.principal_point is not None:
            if self.sample_of is not None:
                raise ValueError(f"principal_point must be None with sample_of, got {self.principal_point}")
            if not all(math.isfinite(coordinate) for coordinate in self.principal_point):
                raise ValueError(f"principal_point must be finite, got {self.principal_point}")

    @property
    def focal(self) -> float:
        """Focal length in pixels of this image, for both axes."""
        return self.width / 2 / math.tan(math.radians(self.hfov_deg) / 2)

    @property
    def centre(self) -> tuple[float, float]:
        """(column, row) of the optical axis, as indices of pixels: the centre of pixel i is at i."""
        if self.principal_point is not None:
            return self.principal_point
        offset = 0.5 if self.sample_of is None else 0.5 * self.width / self.sample_of[1]
        return self.width / 2 - offset, self.height / 2 - offset
