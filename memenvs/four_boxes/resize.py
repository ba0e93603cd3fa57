"""Making pictures smaller as scikit-image's `resize(..., anti_aliasing=True)` does, for many pictures at once."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


class Resize:
    """Makes pictures of one size into smaller ones of another.

    A Gaussian of deviation (k - 1) / 2 pixels along an axis that becomes k times shorter, mirrored at the edges and cut off at four
    deviations, then linear interpolation at the middles of the new pixels. The new value is rounded.

    Args:
        source: Rows and columns of the pictures that come in.
        target: Rows and columns of those that go out; >= 1, not more than `source`.
    """

    def __init__(self, source: tuple[int, int], target: tuple[int, int]) -> None:
        self._rows = _bands(source[0], target[0])
        self._columns = _bands(source[1], target[1])

    def __call__(self, images: np.ndarray, which: np.ndarray, out: np.ndarray) -> None:
        """Fills the rows of `which` (bool, (N,)) in `out`, uint8, (N, h, w, 3), from `images`, uint8, (N, H, W, 3)."""
        _resize(images, np.flatnonzero(which), *self._rows, *self._columns, out)


def _bands(source: int, target: int) -> tuple[np.ndarray, np.ndarray]:
    """What each new pixel of a line is made of: first old pixel, int64 (target,), and weights from there on, float32 (target, K)."""
    factor = source / target
    deviation = (factor - 1) / 2
    reach = int(4 * deviation + 0.5)
    offsets = np.arange(-reach, reach + 1)
    kernel = np.exp(-0.5 * (offsets / max(deviation, 1e-9)) ** 2)
    kernel /= kernel.sum()
    weights = np.zeros((target, source))
    for new in range(target):
        middle = (new + 0.5) * factor - 0.5
        for old, share in ((math.floor(middle), 1 - middle % 1), (math.floor(middle) + 1, middle % 1)):
            for offset, weight in zip(offsets.tolist(), kernel.tolist(), strict=True):
                at = abs(old + offset)
                weights[new, min(at, 2 * (source - 1) - at)] += share * weight  # mirrored about the outermost pixels
    used = [np.flatnonzero(row) for row in weights]
    length = max(int(each[-1] - each[0]) + 1 for each in used)
    first = np.array([min(int(each[0]), source - length) for each in used])
    return first, np.stack([weights[new, at : at + length] for new, at in enumerate(first)]).astype(np.float32)


@njit(nogil=True, cache=True)
def _resize(
    images: np.ndarray, which: np.ndarray, first_row: np.ndarray, row_weights: np.ndarray, first_column: np.ndarray,
    column_weights: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    width = images.shape[2]
    line = np.zeros(3 * width, np.float32)
    for i in which:
        for row in range(len(first_row)):
            line[:] = 0.0
            for k in range(row_weights.shape[1]):
                old, weight = images[i, first_row[row] + k].reshape(3 * width), row_weights[row, k]
                for at in range(3 * width):
                    line[at] += weight * np.float32(old[at])
            for column in range(len(first_column)):
                for channel in range(3):
                    total = np.float32(0.5)
                    for k in range(column_weights.shape[1]):
                        total += column_weights[column, k] * line[3 * (first_column[column] + k) + channel]
                    out[i, row, column, channel] = np.uint8(total)
