"""Images of grid worlds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from PIL import Image, ImageDraw

Colour = tuple[int, int, int]
#: Side of an image, pixels.
SIDE = 320


def draw_grid(size: int, cells: Mapping[tuple[int, int], Colour], path: np.ndarray, side: int = SIDE) -> np.ndarray:
    """Draw a square board from above, x to the right and y up, with the path of an agent.

    Args:
        size: Cells along each side.
        cells: (x, y) -> colour of the cells that are not plain.
        path: (T, 2) or more columns, T >= 1; cells of the agent, step by step. A disc marks the last one.
        side: Side of the image, pixels.

    Returns:
        uint8, (side, side, 3).
    """
    image = Image.new("RGB", (side, side), (38, 40, 46))
    draw = ImageDraw.Draw(image)
    cell = side / size  # pixels

    def box(x: int, y: int, margin: float) -> tuple[float, float, float, float]:
        left, top = x * cell, side - (y + 1) * cell
        return left + margin, top + margin, left + cell - margin - 1, top + cell - margin - 1

    for x in range(size):
        for y in range(size):
            draw.rectangle(box(x, y, 1), fill=(58, 61, 70))
    for (x, y), colour in cells.items():
        draw.rectangle(box(int(x), int(y), 1), fill=colour)
    points = [(x, y) for x, y in grid_pixels(size, path, side).tolist()]
    for t, (start, end) in enumerate(itertools.pairwise(points)):
        progress = t / max(1, len(points) - 2)  # blue at the first step, red at the last
        colour = int(80 + 150 * progress), 110, int(230 - 150 * progress)
        draw.line([start, end], fill=colour, width=max(2, int(cell * 0.12)))
    x, y = (int(value) for value in np.asarray(path)[-1, :2])
    draw.ellipse(box(x, y, cell * 0.2), fill=(226, 80, 70))
    return np.asarray(image)


def grid_pixels(size: int, cells: np.ndarray, side: int = SIDE) -> np.ndarray:
    """Convert cells to pixels of the image of `draw_grid`.

    Args:
        size: Cells along each side.
        cells: (T, 2) or more columns; x and y.
        side: Side of the image, pixels.

    Returns:
        float64, (T, 2); column and row of the centre of each cell.
    """
    centres = (np.asarray(cells, np.float64)[:, :2] + 0.5) * (side / size)
    return np.stack([centres[:, 0], side - centres[:, 1]], 1)
