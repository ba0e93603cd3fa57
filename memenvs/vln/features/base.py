"""Image features of views, behind one interface; and the angle features that go with them."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from memenvs.vln.graph import COLUMNS, NUM_VIEWS, STEP

FEATURES = ("synthetic", "none")
#: Numbers of an angle feature: (sin h, cos h, sin e, cos e), this many times.
ANGLE_SIZE, _REPEATS = 128, 32
#: Numbers of an image feature where nothing else decides it.
DEFAULT_SIZE = 64


class Features(ABC):
    """What the views of a world's viewpoints look like.

    Attributes:
        size: Numbers D of a feature.
    """

    size: int

    @abstractmethod
    def view_features(self, node: np.ndarray, view: np.ndarray) -> np.ndarray:
        """Features of views.

        Args:
            node: int64; viewpoints, numbered through as in `Graphs`.
            view: int64, 0 ... 35; broadcasts with `node`.

        Returns:
            float32, (..., D).
        """


def angle_features(heading: np.ndarray, elevation: np.ndarray) -> np.ndarray:
    """(sin h, cos h, sin e, cos e), 32 times: float32, (..., 128); angles in radians, which broadcast."""
    heading, elevation = np.broadcast_arrays(heading, elevation)
    four = np.stack([np.sin(heading), np.cos(heading), np.sin(elevation), np.cos(elevation)], -1).astype(np.float32)
    return np.tile(four, _REPEATS)


def view_angles() -> np.ndarray:
    """Angle features of the 36 views as seen by an agent whose column is c: float32, (12, 36, 128)."""
    views = np.arange(NUM_VIEWS)
    turned = (views % COLUMNS - np.arange(COLUMNS)[:, None]) * STEP
    return angle_features(turned, (views // COLUMNS - 1) * STEP)
