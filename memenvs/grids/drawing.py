"""Pictures of grid worlds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from PIL import Image, ImageDraw

Colour = tuple[int, int, int]


def draw_grid(
    size: int, cells: Mapping[tuple[int, int], Colour], agent: tuple[int, int], side: int = 320
) -> np.ndarray:
    """A square board seen from above, x to the right and y up.

    Args:
        size: Cells along each side.
        cells: (x, y) -> colour of the cells that are not plain.
        agent: Cell of the agent, a red disc.
        side: Side of the picture, pixels.

    Returns:
        uint8, (side, side, 3).
    """
    image = Image.new("RGB", (side, side), (38, 40, 46))
    draw = ImageDraw.Draw(image)
    step = side / size

    def box(cell: tuple[int, int], margin: float) -> tuple[float, float, float, float]:
        x, y = int(cell[0]) * step, side - (int(cell[1]) + 1) * step
        return x + margin, y + margin, x + step - margin - 1, y + step - margin - 1

    for x in range(size):
        for y in range(size):
            draw.rectangle(box((x, y), 1), fill=(58, 61, 70))
    for cell, colour in cells.items():
        draw.rectangle(box(cell, 1), fill=colour)
    draw.ellipse(box(agent, step * 0.2), fill=(226, 80, 70))
    return np.asarray(image)
