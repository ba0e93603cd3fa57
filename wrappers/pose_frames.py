"""Relative poses. A pose is (x m, y m, heading rad), heading counter-clockwise from +x."""

from __future__ import annotations

import numpy as np


def wrap_angle(angle: np.ndarray) -> np.ndarray:
    """Wrap angles into [-pi, pi), rad."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def relative_pose(pose: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """Poses relative to `origin`: x ahead, y to the left, heading relative to that of `origin`.

    Args:
        pose: float, (..., 3); in any frame.
        origin: float, (..., 3); in the same frame.

    Returns:
        float64, (..., 3); headings within [-pi, pi).
    """
    dx, dy, turn = np.moveaxis(np.asarray(pose, np.float64) - origin, -1, 0)
    cos, sin = np.cos(origin[..., 2]), np.sin(origin[..., 2])
    return np.stack([cos * dx + sin * dy, cos * dy - sin * dx, wrap_angle(turn)], axis=-1)
