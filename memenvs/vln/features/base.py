"""Interface of image features, and the angle features beside them."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from memenvs.vln.graph import COLUMNS, NUM_VIEWS, VIEW_STEP

FEATURES = ("synthetic", "none")
#: Size of an angle feature, which repeats (sin h, cos h, sin e, cos e).
ANGLE_SIZE = 128
_REPEATS = ANGLE_SIZE // 4
#: Default size of an image feature.
DEFAULT_SIZE = 64


class Features(ABC):
    """Image features of the views of a world.

    Attributes:
        size: Size D of a feature.
    """

    size: int

    @abstractmethod
    def view_features(self, node: np.ndarray, view: np.ndarray) -> np.ndarray:
        """Features of views.

        Args:
            node: int64; viewpoints with global numbers, as in `Graphs`.
            view: int64, 0 ... 35; broadcasts with `node`.

        Returns:
            float32, (..., D).
        """


def angle_features(heading: np.ndarray, elevation: np.ndarray) -> np.ndarray:
    """Angle features (sin h, cos h, sin e, cos e), 32 times.

    Args:
        heading: rad; broadcasts with `elevation`.
        elevation: rad.

    Returns:
        float32, (..., 128).
    """
    heading, elevation = np.broadcast_arrays(heading, elevation)
    four = np.stack([np.sin(heading), np.cos(heading), np.sin(elevation), np.cos(elevation)], -1).astype(np.float32)
    return np.tile(four, _REPEATS)


def view_angles() -> np.ndarray:
    """Angle features of the 36 views relative to each column; float32, (12, 36, 128)."""
    views = np.arange(NUM_VIEWS)
    turned = (views % COLUMNS - np.arange(COLUMNS)[:, None]) * VIEW_STEP
    return angle_features(turned, (views // COLUMNS - 1) * VIEW_STEP)
