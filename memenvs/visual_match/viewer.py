"""Pictures of Visual Match for people."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np
from PIL import Image, ImageDraw

from memenvs.visual_match.rooms import BLUE, EMPTY, FIELD, GREEN, RED, ROOM, VIEW, WALL, YELLOW

#: Pixels of a cell of the map, and of the view.
_MAP_CELL, _VIEW_CELL = 10, 42
#: Column and row, from below, of the corner of room and field on the map.
_CORNERS = np.array([(0, (FIELD - ROOM) // 2), (ROOM + 1, 0)])
_COLUMNS = ROOM + 1 + FIELD
_BALLS = {RED: (226, 70, 60), GREEN: (70, 200, 90), BLUE: (80, 120, 250), YELLOW: (236, 214, 60)}
_BACKGROUND, _FLOOR, _WALL, _AGENT = (38, 40, 46), (58, 61, 70), (128, 128, 134), (255, 255, 255)


def map_poses(pose: np.ndarray, in_field: np.ndarray) -> np.ndarray:
    """Convert poses in a room to poses on the map.

    Args:
        pose: int64, (N, 3); column, row and heading (0 right, 1 down, 2 left, 3 up).
        in_field: bool, (N,); True in the field, False in the room.

    Returns:
        float64, (N, 3); column, row from below, and heading, rad.
    """
    side = np.where(in_field, FIELD, ROOM)
    corner = _CORNERS[in_field.astype(np.intp)]
    heading = np.pi / 2 * (-pose[:, 2] % 4)  # right 0, down 3 pi/2, left pi, up pi/2
    return np.column_stack([corner[:, 0] + pose[:, 0], corner[:, 1] + side - 1 - pose[:, 1], heading])


def map_pixels(poses: np.ndarray) -> np.ndarray:
    """Convert poses on the map (T, 3) to column and row of its image, float64 (T, 2)."""
    poses = np.asarray(poses, np.float64)
    return np.column_stack([poses[:, 0] + 0.5, FIELD - poses[:, 1] - 0.5]) * _MAP_CELL


def draw_rooms(room: Iterable[tuple[int, int, int]], fruits: np.ndarray, path: np.ndarray) -> np.ndarray:
    """Draw room and field from above.

    Args:
        room: Column, row and kind of each ball in the room.
        fruits: int64, (F, 2); column and row of each fruit in the field.
        path: (T, 3); poses on the map, T >= 1. A triangle marks the last one.

    Returns:
        uint8, (300, 390, 3).
    """
    image = Image.new("RGB", (_COLUMNS * _MAP_CELL, FIELD * _MAP_CELL), _BACKGROUND)
    draw = ImageDraw.Draw(image)
    for in_field, side, balls in ((0, ROOM, room), (1, FIELD, ((*cell, YELLOW) for cell in fruits))):
        left = int(_CORNERS[in_field, 0])
        top = FIELD - int(_CORNERS[in_field, 1]) - side
        for column, row in itertools.product(range(side), repeat=2):
            is_wall = not (0 < column < side - 1 and 0 < row < side - 1)
            _cell(draw, left + column, top + row, WALL if is_wall else EMPTY, _MAP_CELL)
        for column, row, kind in balls:
            _cell(draw, left + int(column), top + int(row), int(kind), _MAP_CELL)
    pixels = map_pixels(path)
    for t, (start, end) in enumerate(itertools.pairwise(pixels.tolist())):
        if math.dist(start, end) > 1.5 * _MAP_CELL:
            continue  # brought to another room
        progress = t / max(1, len(pixels) - 2)  # blue at the first step, red at the last
        draw.line([*start, *end], fill=(int(80 + 150 * progress), 110, int(230 - 150 * progress)), width=2)
    _triangle(draw, tuple(pixels[-1]), float(path[-1, 2]), 0.45 * _MAP_CELL)
    return np.asarray(image)


def draw_view(kinds: np.ndarray) -> np.ndarray:
    """Draw the view of an agent, which faces up.

    Args:
        kinds: uint8, (7, 7); as from `GridRooms.view`.

    Returns:
        uint8, (300, 310, 3).
    """
    size = FIELD * _MAP_CELL
    image = Image.new("RGB", (size + _MAP_CELL, size), _BACKGROUND)
    draw = ImageDraw.Draw(image)
    for u, v in itertools.product(range(VIEW), repeat=2):
        _cell(draw, u, v, int(kinds[u, v]), _VIEW_CELL)
    _triangle(draw, ((VIEW // 2 + 0.5) * _VIEW_CELL, (VIEW - 0.5) * _VIEW_CELL), math.pi / 2, 0.35 * _VIEW_CELL)
    return np.asarray(image)


def _cell(draw: ImageDraw.ImageDraw, column: int, row: int, kind: int, size: int) -> None:
    """Draw a cell with its ball, if it has one."""
    left, top = column * size, row * size
    draw.rectangle((left, top, left + size - 2, top + size - 2), fill=_WALL if kind == WALL else _FLOOR)
    if kind in _BALLS:
        margin = size * 0.1
        draw.ellipse(
            (left + margin, top + margin, left + size - 2 - margin, top + size - 2 - margin), fill=_BALLS[kind]
        )


def _triangle(draw: ImageDraw.ImageDraw, middle: tuple[float, ...], heading: float, radius: float) -> None:
    """Draw an agent with a heading, rad."""
    corners = [
        (middle[0] + radius * math.cos(heading + turn), middle[1] - radius * math.sin(heading + turn))
        for turn in (0.0, 2.5, -2.5)
    ]
    draw.polygon(corners, fill=_AGENT)
