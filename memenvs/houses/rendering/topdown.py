"""Maps of homes seen from above: walls, furniture, objects, and the path of a robot."""

from __future__ import annotations

import colorsys
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageFont

from memenvs.files import atomic_replace
from memenvs.houses.classes import CLASS_INDEX, FIRST_YCB_CLASS, YCB_CLASSES
from memenvs.houses.house import BOX, Colour, House, Room, Shapes, points_in_polygon
from memenvs.houses.rendering.canvas import PAPER, MapCanvas

if TYPE_CHECKING:
    from memenvs.houses.navigation.navmap import NavigationMap

_INK: Colour = (52, 52, 58)
_WALL: Colour = (62, 62, 70)
_GLASS: Colour = (120, 190, 232)
_DOOR: Colour = (168, 116, 70)
_START: Colour = (34, 160, 84)
_END: Colour = (214, 48, 49)
_SQUARE: Colour = (92, 84, 232)
_CROSS: Colour = (196, 0, 120)
_CUT_HEIGHT = 1.2  # m; the walls are cut at this height
_HANGING_HEIGHT = 1.45  # m; what is entirely above is not drawn
_FLAT_HEIGHT = 0.03  # m; rugs and the like, which a robot drives over
_FURNITURE: Colour = (202, 202, 208)
_FREE: Colour = (60, 170, 90)
_FREE_TINT = 90  # of 255
#: Colours along a path, from its first to its last step.
_TIME_COLOURS: tuple[Colour, ...] = ((48, 70, 200), (0, 160, 190), (60, 180, 75), (240, 180, 20), (220, 50, 40))
#: Symbols of a legend that are patches of a colour.
_PATCHES = {"wall": _WALL, "window": _GLASS, "door": _DOOR, "furniture": _FURNITURE, "free": _FREE}
#: Width of each symbol of a legend, m, and height of its text, m.
_SYMBOL_WIDTHS = {"path": 1.3, "square": 0.4, "cross": 0.3, **dict.fromkeys(_PATCHES, 0.4)}
_LEGEND_TEXT = 0.35
#: Entries of `draw_legend` for a home itself; the last applies to maps with `navigation`.
HOUSE_LEGEND = (
    ("wall", "wall"),
    ("window", "window"),
    ("door", "door"),
    ("furniture", "furniture, in its own colours"),
    ("free", "where a robot can be"),
)


@dataclass(frozen=True)
class Marker:
    """A point of interest on a map.

    Attributes:
        position: (x, y), m.
        colour: sRGB.
        radius: m.
        is_filled: True for a disc, False for a ring.
        label: Text beside it.
    """

    position: tuple[float, float]
    colour: Colour = _END
    radius: float = 0.12
    is_filled: bool = True
    label: str = ""


def draw_topdown(
    house: House,
    *,
    pixels_per_metre: float = 60.0,
    paths: Sequence[np.ndarray] = (),
    markers: Sequence[Marker] = (),
    squares: np.ndarray | None = None,
    crosses: np.ndarray | None = None,
    navigation: NavigationMap | None = None,
    has_labels: bool = True,
    margin: float = 0.4,
) -> np.ndarray:
    """Draw a map of a home and, on request, what a robot did there.

    Args:
        house: The home.
        pixels_per_metre: Scale, > 0.
        paths: Positions step by step, each (T, 2) or more columns; x and y in m. Their colour runs from blue to red; a
            green disc is the start, a red one the end.
        markers: Points to show.
        squares: Squares to tint, float (K, 3): x and y of the centre and the side, m; None for none.
        crosses: Points to cross, float (K, 2), m; None for none.
        navigation: The cells where a robot can be are tinted green; None for no tint.
        has_labels: Write the names of rooms and draw a scale.
        margin: Empty rim around the home, m; >= 0.

    Returns:
        uint8, (H, W, 3); sRGB; +x is right and +y is up. The home's point (x, y) is at column (x - x0 + margin) *
        `pixels_per_metre` and row (y1 + margin - y) * `pixels_per_metre` with `house.bounds` (x0, y0), (x1, y1).

    Raises:
        ValueError: `pixels_per_metre` is not positive, `margin` is negative, or a path, `squares` or `crosses`
            has the wrong shape.
    """
    if not pixels_per_metre > 0:
        raise ValueError(f"pixels_per_metre must be > 0, got {pixels_per_metre}")
    if not margin >= 0:
        raise ValueError(f"margin must be at least 0 m, got {margin}")
    low, high = house.bounds
    canvas = MapCanvas(low - margin, high + margin, pixels_per_metre)
    for room in house.rooms:
        canvas.polygon(room.polygon, _mix(room.floor_colour, PAPER, 0.55))
    lies_flat = house.shapes.centre[:, 2] + house.shapes.half[:, 2] < _FLAT_HEIGHT
    _draw_shapes(canvas, house.shapes.take(lies_flat))
    if navigation is not None:
        _draw_navigable(canvas, navigation)
    _draw_shapes(canvas, house.shapes.take(~lies_flat))
    for square in _rows("squares", squares, 3):
        canvas.square(square, square[2], _SQUARE)
    for path in paths:
        _draw_path(canvas, np.asarray(path, np.float64))
    if has_labels:
        for room in house.rooms:
            size = np.ptp(room.polygon, axis=0).min()
            spot = _label_position(room)
            canvas.text(spot, room.type.replace("_", " "), min(0.3, 0.11 * size), _INK)
        _draw_scale(canvas, low, margin)
    for cross in _rows("crosses", crosses, 2):
        canvas.cross(cross, 0.1, _CROSS)
    for marker in markers:
        _draw_marker(canvas, marker)
    for marker in markers:  # no disc hides a label
        if marker.label:
            x, y = marker.position
            canvas.text((x, y + marker.radius + 0.05), marker.label, 0.32, _INK, "mb")
    return canvas.finish()


def draw_legend(entries: Sequence[tuple[str | Marker, str]], width: int) -> np.ndarray:
    """Draw a legend: the symbols on a map and their meanings, in as many lines as needed.

    Args:
        entries: Pairs of a symbol and its meaning. A symbol is "path", "square", "cross", a key of `HOUSE_LEGEND`
            or a `Marker` of any position.
        width: Of the image, pixels.

    Returns:
        uint8, (H, `width`, 3).

    Raises:
        ValueError: An unknown symbol.
    """
    scale = 40.0  # pixels per metre
    line_height, gap = 0.6, 0.35  # m
    font = ImageFont.load_default(_LEGEND_TEXT * scale)
    x, line = gap, 0
    placed = []  # symbol, meaning, left end of the symbol (m), width of the symbol (m), line
    for symbol, text in entries:
        if not isinstance(symbol, Marker) and symbol not in _SYMBOL_WIDTHS:
            raise ValueError(f"a symbol must be a Marker or one of {list(_SYMBOL_WIDTHS)}, got {symbol!r}")
        symbol_width = _SYMBOL_WIDTHS["square"] if isinstance(symbol, Marker) else _SYMBOL_WIDTHS[symbol]
        needed = symbol_width + 0.1 + font.getlength(text) / scale
        if x > gap and (x + needed + gap) * scale > width:
            x, line = gap, line + 1
        placed.append((symbol, text, x, symbol_width, line))
        x += needed + 1.5 * gap
    height = (line + 1) * line_height
    canvas = MapCanvas(np.zeros(2), np.array([width / scale, height]), scale)
    for symbol, text, x, symbol_width, line in placed:
        y = height - (line + 0.5) * line_height
        _draw_symbol(canvas, symbol, x, symbol_width, y)
        canvas.text((x + symbol_width + 0.1, y), text, _LEGEND_TEXT, _INK, "lm")
    return canvas.finish()


def _draw_symbol(canvas: MapCanvas, symbol: str | Marker, x: float, width: float, y: float) -> None:
    """Draw one symbol of a legend; x is its left end and y its centre, m."""
    middle = np.array([x + width / 2, y])
    if isinstance(symbol, Marker):
        _draw_marker(canvas, replace(symbol, position=(x + width / 2, y)))
    elif symbol == "path":
        _draw_path(canvas, np.stack([np.linspace(x + 0.15, x + width - 0.15, 30), np.full(30, y)], 1))
    elif symbol == "square":
        canvas.square(middle, 0.36, _SQUARE)
    elif symbol in _PATCHES:
        corners = middle + 0.18 * np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)])
        colour = _PATCHES[symbol] if symbol != "free" else _mix(_FREE, PAPER, _FREE_TINT / 255)
        canvas.polygon(corners, colour, _mix(colour, _INK, 0.6), 0.02)
    else:
        canvas.cross(middle, 0.1, _CROSS)


def save_png(image: np.ndarray, path: str | os.PathLike[str]) -> None:
    """Write an image, uint8 (H, W, 3), as PNG; readers see the old file or the whole new one."""
    with atomic_replace(Path(path)) as temporary:
        Image.fromarray(image).save(temporary, "PNG")


def object_colour(category: int) -> Colour:
    """The colour of one of the 20 categories of YCB objects on maps, sRGB."""
    hue = (category * 0.381966) % 1.0  # steps of the golden ratio keep neighbours apart
    red, green, blue = colorsys.hsv_to_rgb(hue, 0.85 if category % 2 else 0.65, 0.95 if category % 3 else 0.75)
    return round(255 * red), round(255 * green), round(255 * blue)


def _draw_shapes(canvas: MapCanvas, shapes: Shapes) -> None:
    """Draw furniture from low to high, then walls, windows and doors, then small objects."""
    bottom, top = shapes.centre[:, 2] - shapes.half[:, 2], shapes.centre[:, 2] + shapes.half[:, 2]
    structure = shapes.semantic < CLASS_INDEX["bed"]
    is_object = (shapes.semantic >= FIRST_YCB_CLASS) & (shapes.semantic < FIRST_YCB_CLASS + len(YCB_CLASSES))
    furniture = np.flatnonzero(~structure & ~is_object & (bottom < _HANGING_HEIGHT))
    for row in furniture[np.argsort(top[furniture], kind="stable")]:
        colour = _mix(tuple(shapes.colour[row]), PAPER, 0.85)
        canvas.polygon(_footprint(shapes, row), colour, _mix(colour, _INK, 0.6), 0.012)
    is_building = structure & (bottom < _CUT_HEIGHT)
    for name, colour in (("wall", _WALL), ("window", _GLASS), ("door", _DOOR)):
        for row in np.flatnonzero((shapes.semantic == CLASS_INDEX[name]) & (is_building | (name == "window"))):
            is_sill = name == "wall" and top[row] < _CUT_HEIGHT  # the wall below a window
            canvas.polygon(_footprint(shapes, row), _mix(_WALL, PAPER, 0.5) if is_sill else colour)
    instances = shapes.instance[is_object]
    for instance in np.unique(instances):
        rows = np.flatnonzero(is_object & (shapes.instance == instance))
        category = int(shapes.semantic[rows[0]]) - FIRST_YCB_CLASS
        centre = shapes.centre[rows[0]]
        canvas.disc(centre, 0.075, object_colour(category), _INK, 0.015)


def _footprint(shapes: Shapes, row: int | np.integer) -> np.ndarray:
    """Outline of a shape seen from above; float64, (P, 2), m."""
    half_x, half_y = (float(h) for h in shapes.half[row, :2])
    if shapes.kind[row] == BOX:
        corners = np.array([(-half_x, -half_y), (half_x, -half_y), (half_x, half_y), (-half_x, half_y)])
    else:
        angles = np.linspace(0.0, 2 * np.pi, 24, endpoint=False)
        corners = np.stack([half_x * np.cos(angles), half_y * np.sin(angles)], 1)
    cos, sin = math.cos(shapes.yaw[row]), math.sin(shapes.yaw[row])
    return corners @ np.array([[cos, sin], [-sin, cos]]) + shapes.centre[row, :2]


def _draw_navigable(canvas: MapCanvas, navigation: NavigationMap) -> None:
    """Tint the cells where a robot can be."""
    width, height = canvas.image.size
    mask = Image.fromarray(np.where(navigation.free[::-1], _FREE_TINT, 0).astype(np.uint8))
    rows, columns = navigation.free.shape
    low = np.asarray(navigation.origin)
    high = low + np.array([columns, rows]) * navigation.cell_size
    (left, upper), (right, lower) = canvas.pixels(np.array([(low[0], high[1]), (high[0], low[1])]))
    scale_x, scale_y = columns / (right - left), rows / (lower - upper)
    coefficients = (scale_x, 0.0, -left * scale_x, 0.0, scale_y, -upper * scale_y)
    mask = mask.transform((width, height), Image.Transform.AFFINE, coefficients, Image.Resampling.NEAREST)
    canvas.image.paste(Image.new("RGB", (width, height), _FREE), (0, 0), mask)


def _draw_path(canvas: MapCanvas, points: np.ndarray) -> None:
    """Draw a path in the colours of time, its start and its end."""
    if points.ndim != 2 or points.shape[1] < 2 or len(points) == 0:
        raise ValueError(f"a path must have the shape (T, 2) with T >= 1, got {points.shape}")
    pixels = canvas.pixels(points[:, :2])
    width = max(2, round(0.05 * canvas.scale))
    for step in range(len(pixels) - 1):
        colour = _time_colour(step / max(1, len(pixels) - 2))
        canvas.draw.line([pixels[step], pixels[step + 1]], fill=colour, width=width, joint="curve")
        x, y = pixels[step + 1]
        canvas.draw.ellipse((x - width / 2, y - width / 2, x + width / 2, y + width / 2), fill=colour)
    canvas.disc(points[0], 0.13, _START, PAPER, 0.03)
    canvas.disc(points[-1], 0.13, _END, PAPER, 0.03)


def _draw_marker(canvas: MapCanvas, marker: Marker) -> None:
    """Draw a disc or a ring with a light rim."""
    rim = 0.03
    canvas.disc(marker.position, marker.radius + (0.0 if marker.is_filled else rim), marker.colour, PAPER, rim)
    if not marker.is_filled:
        canvas.disc(marker.position, 0.55 * marker.radius, PAPER)


def _rows(name: str, values: np.ndarray | None, width: int) -> np.ndarray:
    """The rows of a table, float64, (K, width); none for None."""
    table = np.zeros((0, width)) if values is None else np.asarray(values, np.float64)
    if table.ndim != 2 or table.shape[1] != width:
        raise ValueError(f"{name} must have the shape (K, {width}), got {table.shape}")
    return table


def _draw_scale(canvas: MapCanvas, low: np.ndarray, margin: float) -> None:
    """Draw a bar of one metre below the home."""
    if margin < 0.25:
        return
    y = low[1] - 0.62 * margin
    ends = np.array([(low[0], y), (low[0] + 1.0, y)])
    canvas.draw.line(canvas.pixels(ends), fill=_INK, width=max(2, round(0.03 * canvas.scale)))
    canvas.text((low[0] + 1.12, y), "1 m", 0.18, _INK, "lm")


def _label_position(room: Room) -> np.ndarray:
    """Find a point for a label, float64 (2,), m: far from the walls, and among similar points near the middle."""
    polygon = room.polygon
    low, high = polygon.min(0), polygon.max(0)
    steps = (np.arange(15) + 0.5) / 15
    grid = np.stack(np.meshgrid(low[0] + steps * (high[0] - low[0]), low[1] + steps * (high[1] - low[1])), -1).reshape(
        -1, 2
    )
    inside = grid[points_in_polygon(grid, polygon)]
    if len(inside) == 0:
        return polygon.mean(0)
    start, edge = polygon[None], (np.roll(polygon, -1, 0) - polygon)[None]
    along = ((inside[:, None] - start) * edge).sum(-1) / np.maximum((edge**2).sum(-1), 1e-12)
    nearest = start + np.clip(along, 0.0, 1.0)[..., None] * edge
    distance = np.linalg.norm(inside[:, None] - nearest, axis=-1).min(1)
    off_centre = np.linalg.norm(inside - inside.mean(0), axis=1)
    return inside[np.argmax(distance - 0.05 * off_centre)]


def _time_colour(share: float) -> Colour:
    """Colour at a share (0 to 1) of a path."""
    position = share * (len(_TIME_COLOURS) - 1)
    k = min(int(position), len(_TIME_COLOURS) - 2)
    return _mix(_TIME_COLOURS[k + 1], _TIME_COLOURS[k], position - k)


def _mix(first: Sequence[int], second: Sequence[int], share: float) -> Colour:
    """`share` of the first colour and the rest of the second."""
    red, green, blue = (round(share * int(a) + (1 - share) * int(b)) for a, b in zip(first, second, strict=True))
    return red, green, blue
