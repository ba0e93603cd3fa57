"""Images of FFHQ-world for people."""

from __future__ import annotations

import itertools

import numpy as np
from PIL import Image, ImageDraw

from memenvs.faces.episodes import GRID, NUM_CELLS, PATCH_PIXELS, PATCH_STRIDE, PICTURE_PIXELS
from memenvs.faces.places import cell_positions

#: Pictures are enlarged by this factor, patches of the strips by half of it.
_SCALE = 4
_SIDE = PICTURE_PIXELS * _SCALE
_PATCH = PATCH_PIXELS * _SCALE // 2
_BACKGROUND, _FRAME = (24, 25, 29), (255, 70, 60)
#: Patches in a row of the strips, and pixels between patches and between rows.
_COLUMNS, _GAP, _ROW_GAP = 12, 2, 14


def path_pixels(poses: np.ndarray) -> np.ndarray:
    """Convert poses to column and row on the enlarged picture; float64, (T, 2)."""
    cells = np.asarray(poses, np.float64)[:, :2] * (1, -1) + (0, GRID - 1)
    return (cells * PATCH_STRIDE + PATCH_PIXELS / 2) * _SCALE


def draw_path(picture: np.ndarray, path: np.ndarray) -> np.ndarray:
    """Draw a picture with a path.

    Args:
        picture: uint8, (88, 88, 3).
        path: (T, 3), T >= 1; poses. A disc marks the last one.

    Returns:
        uint8, (352, 352, 3).
    """
    image = Image.fromarray(_enlarged(picture, _SCALE))
    draw = ImageDraw.Draw(image)
    points = [(x, y) for x, y in path_pixels(path).tolist()]
    for t, (start, end) in enumerate(itertools.pairwise(points)):
        progress = t / max(1, len(points) - 2)  # blue at the first step, red at the last
        draw.line([start, end], fill=(int(80 + 150 * progress), 110, int(230 - 150 * progress)), width=3)
    x, y = points[-1]
    draw.ellipse((x - 8, y - 8, x + 8, y + 8), fill=_FRAME, outline=(255, 255, 255), width=2)
    return np.asarray(image)


def draw_scene(
    picture: np.ndarray,
    *,
    seen: np.ndarray,
    cell: int,
    observed: np.ndarray,
    targets: np.ndarray,
    produced: np.ndarray,
) -> np.ndarray:
    """Draw the picture with the current cell, and the strips of true and of produced patches.

    Args:
        picture: uint8, (88, 88, 3).
        seen: int, (T,); cells that were observed; the others are dark.
        cell: Cell with a frame.
        observed: uint8, (16, 16, 3); the patch that is observed.
        targets: uint8, (Q, 16, 16, 3); true patches of the query. They appear once one was produced.
        produced: uint8, (K, 16, 16, 3); patches that were produced so far.

    Returns:
        uint8, (352, 782, 3).
    """
    is_seen = np.zeros(NUM_CELLS, bool)
    is_seen[seen] = True
    lit = np.zeros(picture.shape[:2], bool)
    for x, y in (cell_positions(np.flatnonzero(is_seen)) * PATCH_STRIDE).tolist():
        lit[y : y + PATCH_PIXELS, x : x + PATCH_PIXELS] = True
    left = Image.fromarray(_enlarged(np.where(lit[..., None], picture, picture // 5), _SCALE))
    x, y = (cell_positions(np.array(cell)) * PATCH_STRIDE * _SCALE).tolist()
    end = PATCH_PIXELS * _SCALE - 1
    ImageDraw.Draw(left).rectangle((x, y, x + end, y + end), outline=_FRAME, width=3)

    width = _COLUMNS * (_PATCH + _GAP) + 2 * _GAP + 18
    image = Image.new("RGB", (_SIDE + width, _SIDE), _BACKGROUND)
    image.paste(left, (0, 0))
    margin = _SIDE + 12
    image.paste(Image.fromarray(_enlarged(observed, _SCALE)), (margin, 12))
    top = 12 + PATCH_PIXELS * _SCALE + _ROW_GAP
    for k, made in enumerate(produced):
        row, column = divmod(k, _COLUMNS)
        at = margin + column * (_PATCH + _GAP), top + row * (2 * _PATCH + _GAP + _ROW_GAP)
        image.paste(Image.fromarray(_enlarged(targets[k], _SCALE // 2)), at)
        image.paste(Image.fromarray(_enlarged(made, _SCALE // 2)), (at[0], at[1] + _PATCH + _GAP))
    return np.asarray(image)


def _enlarged(picture: np.ndarray, factor: int) -> np.ndarray:
    return picture.repeat(factor, 0).repeat(factor, 1)
