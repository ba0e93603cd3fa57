"""Depth pictures that measure a scene of habitat-sim.

Axes are ours: x and y on the floor plan, z up. Heights are those of the scene: its floor need not be at 0.
"""

from __future__ import annotations

import math

import numpy as np

from memenvs.houses.habitat.simulation import DEPTH, simulation
from memenvs.houses.habitat.views import SampledView

#: Pitch of a camera that points straight up, and down, rad.
UP, DOWN = math.pi / 2, -math.pi / 2
_NARROW = SampledView.whole(3, 3, math.radians(2))


def measure(view: SampledView, position: np.ndarray, heading: float, pitch: float) -> np.ndarray:
    """Draw a depth picture.

    Args:
        view: Size and field of view.
        position: float, (3,); of the camera, m.
        heading: rad.
        pitch: rad, positive upwards.

    Returns:
        float32, (H, W); m along the optical axis, 0 where nothing is hit.
    """
    x, y, z = np.asarray(position, np.float64).tolist()
    return simulation().draw(view, (DEPTH,), np.array([x, z, -y, heading, pitch]))[DEPTH]


def axes(heading: float, pitch: float) -> np.ndarray:
    """Unit vectors ahead, to the right and up of a camera.

    Args:
        heading: rad.
        pitch: rad, positive upwards.

    Returns:
        float64, (3, 3); one a row.
    """
    cos, sin, cos_pitch, sin_pitch = math.cos(heading), math.sin(heading), math.cos(pitch), math.sin(pitch)
    ahead = (cos * cos_pitch, sin * cos_pitch, sin_pitch)
    return np.array([ahead, (sin, -cos, 0.0), (-cos * sin_pitch, -sin * sin_pitch, cos_pitch)])


def tangents(view: SampledView) -> tuple[np.ndarray, np.ndarray]:
    """Tangents of the angles between the rays of a view and its optical axis.

    Returns:
        float64, (W,) and (H,); to the right for each column, and up for each row.
    """
    focal = view.width / 2 / math.tan(view.hfov / 2)
    columns, rows = np.arange(view.width) + 0.5, np.arange(view.height) + 0.5
    return (columns - view.width / 2) / focal, (view.height / 2 - rows) / focal


def seen_points(view: SampledView, position: np.ndarray, heading: float, pitch: float) -> np.ndarray:
    """Find the points that a camera sees; arguments are those of `measure`.

    Returns:
        float64, (P, 3); a point for each pixel that hits something, m.
    """
    depth = measure(view, position, heading, pitch).astype(np.float64)
    right, up = tangents(view)
    rays = np.stack(np.broadcast_arrays(1.0, right[None, :], up[:, None]), -1) @ axes(heading, pitch)
    return (position + rays * depth[..., None])[depth > 0]


def free_height(position: np.ndarray, pitch: float) -> float:
    """Measure the distance from a position (3,) straight up or down to a surface, m; or inf."""
    depth = float(measure(_NARROW, position, 0.0, pitch)[1, 1])
    return depth if depth > 0 else math.inf
