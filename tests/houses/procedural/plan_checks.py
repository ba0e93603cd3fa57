"""Independent measurements of homes for tests: extents of instances, and what a disc on the floor plan runs into."""

from __future__ import annotations

import numpy as np

from memenvs.houses.house import BOX, House


def span(house: House, instance: int) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest (x, y, z) of an instance."""
    shapes = house.shapes.take(house.shapes.instance == instance)
    cos, sin = np.abs(np.cos(shapes.yaw)), np.abs(np.sin(shapes.yaw))
    x, y, z = shapes.half.T
    ellipse = shapes.kind != BOX
    half = np.stack([
        np.where(ellipse, np.hypot(cos * x, sin * y), cos * x + sin * y),
        np.where(ellipse, np.hypot(sin * x, cos * y), sin * x + cos * y),
        z,
    ], axis=1)  # fmt: skip
    return (shapes.centre - half).min(0), (shapes.centre + half).max(0)


def solid_at(house: House, x: np.ndarray, y: np.ndarray, below: float = 1.5) -> np.ndarray:
    """Which points of a grid, (len(y), len(x)), are covered by something that begins below a height, seen from above."""
    shapes, found = house.shapes, np.zeros((len(y), len(x)), bool)
    for i in np.flatnonzero(shapes.centre[:, 2] - shapes.half[:, 2] < below):
        half, centre = shapes.half[i, :2], shapes.centre[i, :2]
        reach = np.hypot(*half)
        columns = slice(*np.searchsorted(x, (centre[0] - reach, centre[0] + reach)))
        rows = slice(*np.searchsorted(y, (centre[1] - reach, centre[1] + reach)))
        offset = np.stack(np.meshgrid(x[columns] - centre[0], y[rows] - centre[1]), 2)
        cos, sin = np.cos(shapes.yaw[i]), np.sin(shapes.yaw[i])
        local = np.abs(offset @ np.array([(cos, -sin), (sin, cos)])) / half
        found[rows, columns] |= (local <= 1).all(2) if shapes.kind[i] == BOX else (local**2).sum(2) <= 1
    return found


def blocked(house: House, point: tuple[float, float], radius: float) -> bool:
    """Whether a disc touches anything below 1.5 m."""
    step = np.arange(-radius, radius + 1e-9, 0.01)
    disc = step**2 + step[:, None] ** 2 <= radius**2
    return bool((solid_at(house, step + point[0], step + point[1]) & disc).any())


def raster(house: House, cell: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Origin, bool (H, W) and points (H * W, 2) of a grid 0.3 m larger than a house."""
    low, high = house.bounds
    x, y = (np.arange(low[k] - 0.3, high[k] + 0.3, cell) + cell / 2 for k in range(2))
    return low - 0.3, solid_at(house, x, y), np.stack(np.meshgrid(x, y), 2).reshape(-1, 2)
