"""Poses on the floor plan: (x m, y m, heading rad), heading counter-clockwise from +x."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

Angle = TypeVar("Angle", float, np.ndarray)


def wrap_angle(angle: Angle) -> Angle:
    """Wrap angles into [-pi, pi), rad."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def relative_poses(poses: np.ndarray, origins: np.ndarray) -> np.ndarray:
    """Express poses relative to other poses.

    Args:
        poses: float, (..., 3); in any frame.
        origins: float, (..., 3); the poses that become the origins, in the same frame.

    Returns:
        float64, (..., 3); x ahead of the origin, y to its left, heading in [-pi, pi) from its own.
    """
    dx, dy, turn = np.moveaxis(np.asarray(poses, np.float64) - origins, -1, 0)
    cos, sin = np.cos(origins[..., 2]), np.sin(origins[..., 2])
    return np.stack([cos * dx + sin * dy, cos * dy - sin * dx, wrap_angle(turn)], axis=-1)
