"""Downsampling of a batch of images, as by scikit-image's `resize(..., anti_aliasing=True)`."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


class Resize:
    """Downsamples images to a smaller size.

    An axis that becomes k times shorter is smoothed with a Gaussian of standard deviation (k - 1) / 2 pixels. The
    Gaussian is cut off at four standard deviations, and the image is mirrored at its edges. Linear interpolation at the
    centres of the new pixels follows. Values are rounded.

    Args:
        source: Rows and columns of the input.
        target: Rows and columns of the output; >= 1, not more than `source`.
    """

    def __init__(self, source: tuple[int, int], target: tuple[int, int]) -> None:
        self._rows = _axis_weights(source[0], target[0])
        self._columns = _axis_weights(source[1], target[1])

    def __call__(self, images: np.ndarray, env_mask: np.ndarray, out: np.ndarray) -> None:
        """Downsample images.

        Args:
            images: uint8, (N, H, W, 3).
            env_mask: bool, (N,); images to downsample.
            out: uint8, (N, h, w, 3); written for those images.
        """
        _resize(images, np.flatnonzero(env_mask), *self._rows, *self._columns, out)


def _axis_weights(source: int, target: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights of old pixels in each new pixel along one axis.

    Returns:
        The first old pixel, int64 (target,), and the weights of K pixels from there on, float32 (target, K).
    """
    factor = source / target
    sigma = (factor - 1) / 2
    radius = int(4 * sigma + 0.5)
    offsets = np.arange(-radius, radius + 1)
    kernel = np.exp(-0.5 * (offsets / max(sigma, 1e-9)) ** 2)
    kernel /= kernel.sum()
    weights = np.zeros((target, source))
    for new in range(target):
        middle = (new + 0.5) * factor - 0.5
        for old, fraction in ((math.floor(middle), 1 - middle % 1), (math.floor(middle) + 1, middle % 1)):
            for offset, weight in zip(offsets.tolist(), kernel.tolist(), strict=True):
                pixel = abs(old + offset)  # mirrored about the first pixel, and in the next line about the last one
                weights[new, min(pixel, 2 * (source - 1) - pixel)] += fraction * weight
    used = [np.flatnonzero(row) for row in weights]
    length = max(int(pixels[-1] - pixels[0]) + 1 for pixels in used)
    first = np.array([min(int(pixels[0]), source - length) for pixels in used])
    return first, np.stack([weights[new, k : k + length] for new, k in enumerate(first)]).astype(np.float32)


@njit(nogil=True, cache=True)
def _resize(
    images: np.ndarray,
    indices: np.ndarray,
    first_row: np.ndarray,
    row_weights: np.ndarray,
    first_column: np.ndarray,
    column_weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Resize some images: each new row of pixels is first summed over old rows, then over old columns."""
    width = images.shape[2]
    line = np.zeros(3 * width, np.float32)
    for i in indices:
        for row in range(len(first_row)):
            line[:] = 0.0
            for k in range(row_weights.shape[1]):
                old, weight = images[i, first_row[row] + k].reshape(3 * width), row_weights[row, k]
                for index in range(3 * width):
                    line[index] += weight * np.float32(old[index])
            for column in range(len(first_column)):
                for channel in range(3):
                    total = np.float32(0.5)  # so that cutting off the fraction rounds to the nearest integer
                    for k in range(column_weights.shape[1]):
                        total += column_weights[column, k] * line[3 * (first_column[column] + k) + channel]
                    out[i, row, column, channel] = np.uint8(total)
