"""Frames of Room Ballet: 15 shapes in 19 colours on 9 cells."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from memenvs.room_ballet.episodes import NUM_CELLS, NUM_FRAMES

#: Side of a cell, pixels.
CELL_PIXELS = 9
#: Side of a frame, cells: a floor of 3 x 3 within a wall of one cell.
FRAME_CELLS = 5
FRAME_PIXELS = FRAME_CELLS * CELL_PIXELS
#: Colours, RGB.
WALL = (40, 40, 40)
FLOOR = (0, 0, 0)

#: Rows and columns within a cell whose pixels distinguish all dancers.
_PROBES = ((0, 0), (0, 2), (0, 3), (1, 2), (2, 4), (3, 3), (4, 2))

_Mask = Callable[[np.ndarray, np.ndarray], np.ndarray]
#: Shape -> function of row i and column j, 0 ... 8, that is True at pixels of the dancer.
SHAPES: dict[str, _Mask] = {
    "triangle": lambda i, j: i >= 2 * abs(j - 4),
    "empty_square": lambda i, j: (i < 2) | (i > 6) | (j < 2) | (j > 6),
    "plus": lambda i, j: _middle(i) | _middle(j),
    "inverse_plus": lambda i, j: ~(_middle(i) | _middle(j)),
    "ex": lambda i, j: _diagonals(i, j),
    "inverse_ex": lambda i, j: ~_diagonals(i, j),
    "circle": lambda i, j: (i - 4) ** 2 + (j - 4) ** 2 <= 16,
    "empty_circle": lambda i, j: abs((i - 4) ** 2 + (j - 4) ** 2 - 16) < 6,
    "tee": lambda i, j: _middle(j) | (i < 3),
    "upside_down_tee": lambda i, j: _middle(j) | (i > 5),
    "h": lambda i, j: (j < 3) | (j > 5) | _middle(i),
    "u": lambda i, j: (j < 3) | (j > 5) | (i > 5),
    "upside_down_u": lambda i, j: (j < 3) | (j > 5) | (i < 3),
    "vertical_stripes": lambda i, j: j % 2 == 0,
    "horizontal_stripes": lambda i, j: i % 2 == 0,
}
COLOURS = {
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "purple": (128, 0, 128),
    "orange": (255, 165, 0),
    "yellow": (255, 255, 0),
    "brown": (128, 64, 0),
    "pink": (255, 64, 255),
    "cyan": (0, 255, 255),
    "dark_green": (0, 100, 0),
    "dark_red": (100, 0, 0),
    "dark_blue": (0, 0, 100),
    "olive": (100, 100, 0),
    "teal": (0, 100, 100),
    "lavender": (215, 200, 255),
    "peach": (255, 210, 170),
    "rose": (255, 205, 230),
    "light_green": (200, 255, 200),
    "light_yellow": (255, 255, 200),
}


def _middle(k: np.ndarray) -> np.ndarray:
    return (k >= 3) & (k <= 5)


def _diagonals(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    return (abs(i - j) <= 1) | (abs(8 - i - j) <= 1)


@cache
def sprites() -> np.ndarray:
    """Render each dancer on one cell of floor.

    Returns:
        uint8, (285, 9, 9, 3), read-only; row shape * 19 + colour.
    """
    i, j = np.mgrid[:CELL_PIXELS, :CELL_PIXELS]
    masks = np.stack([mask(i, j) for mask in SHAPES.values()])  # (15, 9, 9)
    colours = np.array(list(COLOURS.values()), np.uint8)  # (19, 3)
    images = np.where(
        masks[:, None, :, :, None], colours[:, None, None], np.array(FLOOR, np.uint8)
    )  # (15, 19, 9, 9, 3)
    images = images.reshape(-1, CELL_PIXELS, CELL_PIXELS, 3)
    images.flags.writeable = False
    return images


def empty_room() -> np.ndarray:
    """Render walls and floor without a dancer; uint8, (45, 45, 3)."""
    room = np.full((FRAME_PIXELS, FRAME_PIXELS, 3), WALL, np.uint8)
    room[CELL_PIXELS:-CELL_PIXELS, CELL_PIXELS:-CELL_PIXELS] = FLOOR
    return room


@cache
def frame_table() -> np.ndarray:
    """Render all frames, once per process.

    Returns:
        uint8, (2565, 45, 45, 3), read-only; row dancer * 9 + cell, cells numbered row by row.
    """
    table = np.tile(empty_room(), (NUM_FRAMES, 1, 1, 1))
    for cell in range(NUM_CELLS):
        top = CELL_PIXELS * (1 + cell // 3)
        left = CELL_PIXELS * (1 + cell % 3)
        table[cell::NUM_CELLS, top : top + CELL_PIXELS, left : left + CELL_PIXELS] = sprites()
    table.flags.writeable = False
    return table


def frame_rows(images: np.ndarray) -> np.ndarray:
    """Find the rows of the frame table, from a few pixels of each image.

    Args:
        images: uint8, (K, 45, 45, 3); frames, or images without a dancer.

    Returns:
        int64, (K,); row of `frame_table()`; -1 for an image without a dancer.
    """
    codes, rows = _frame_codes()
    code = _codes_of(images)
    index = np.minimum(np.searchsorted(codes, code), len(codes) - 1)
    return np.where(codes[index] == code, rows[index], -1)


@cache
def _frame_codes() -> tuple[np.ndarray, np.ndarray]:
    """The sorted codes of all frames, int64 (2565,), and their rows, int64 (2565,)."""
    codes = _codes_of(frame_table())
    rows = np.argsort(codes)
    return codes[rows], rows


def _codes_of(images: np.ndarray) -> np.ndarray:
    """Number that stands for the pixels at `_PROBES` in every cell, int64, (K,); 0 if all of them are black."""
    pixels, weights = _probe_pixels()
    return images.reshape(len(images), 3 * FRAME_PIXELS**2)[:, pixels].astype(np.int64) @ weights


@cache
def _probe_pixels() -> tuple[np.ndarray, np.ndarray]:
    """Indices of the probes in a flat image, and fixed random weights for them; both int64."""
    top_left = CELL_PIXELS * (1 + np.stack(np.divmod(np.arange(NUM_CELLS), 3), 1))  # (9, 2)
    row, column = (top_left[:, None] + np.array(_PROBES)).reshape(-1, 2).T
    pixels = (3 * (row * FRAME_PIXELS + column)[:, None] + np.arange(3)).ravel()
    return pixels, np.random.default_rng(0).integers(1, 2**50, len(pixels))
