"""Pictures of grid worlds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from PIL import Image, ImageDraw

Colour = tuple[int, int, int]
SIDE = 320
"""Side of a picture, pixels."""


def draw_grid(size: int, cells: Mapping[tuple[int, int], Colour], way: np.ndarray, side: int = SIDE) -> np.ndarray:
    """A square board seen from above, x to the right and y up, with an agent and the way it came.

    Args:
        size: Cells along each side.
        cells: (x, y) -> colour of the cells that are not plain.
        way: (T, 2) or more columns; cells of the agent, step by step; the last one, a disc, is where it is. T >= 1.
        side: Side of the picture, pixels.

    Returns:
        uint8, (side, side, 3).
    """
    image = Image.new("RGB", (side, side), (38, 40, 46))
    draw = ImageDraw.Draw(image)
    step = side / size

    def box(x: int, y: int, margin: float) -> tuple[float, float, float, float]:
        left, top = x * step, side - (y + 1) * step
        return left + margin, top + margin, left + step - margin - 1, top + step - margin - 1

    for x in range(size):
        for y in range(size):
            draw.rectangle(box(x, y, 1), fill=(58, 61, 70))
    for (x, y), colour in cells.items():
        draw.rectangle(box(int(x), int(y), 1), fill=colour)
    points = [(x, y) for x, y in grid_pixels(size, way, side).tolist()]
    for t, (start, end) in enumerate(itertools.pairwise(points)):
        share = t / max(1, len(points) - 2)
        draw.line(
            [start, end], fill=(int(80 + 150 * share), 110, int(230 - 150 * share)), width=max(2, int(step * 0.12))
        )
    x, y = (int(value) for value in np.asarray(way)[-1, :2])
    draw.ellipse(box(x, y, step * 0.2), fill=(226, 80, 70))
    return np.asarray(image)


def grid_pixels(size: int, cells: np.ndarray, side: int = SIDE) -> np.ndarray:
    """Column and row, float (T, 2), of the middles of cells (T, 2) or more columns, on a picture of `draw_grid`."""
    middles = (np.asarray(cells, np.float64)[:, :2] + 0.5) * (side / size)
    return np.stack([middles[:, 0], side - middles[:, 1]], 1)
