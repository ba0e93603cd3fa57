"""Backgrounds of faces: walls, shelves, landscapes, towns, leaves, lights."""

from __future__ import annotations

import colorsys
from collections.abc import Callable

import numpy as np

from memenvs.faces.canvas import Colour, CoordinateFrame, PictureCanvas, X, Y
from memenvs.faces.episodes import PICTURE_PIXELS


def paint_background(canvas: PictureCanvas, rng: np.random.Generator) -> None:
    """Paint one of the backgrounds, all over the canvas.

    Args:
        canvas: It is painted on.
        rng: Source of what is drawn.
    """
    _BACKGROUNDS[rng.integers(len(_BACKGROUNDS))](canvas, rng)


def _colours(rng: np.random.Generator, count: int, spread: float = 1.0) -> np.ndarray:
    """Colours around a hue, (count, 3); `spread` 1 has all hues."""
    hues = rng.random() + spread * rng.uniform(-0.5, 0.5, count)
    saturations, values = rng.uniform(0.1, 0.9, count), rng.uniform(0.2, 1.0, count)
    return np.array([colorsys.hsv_to_rgb(h % 1.0, s, v) for h, s, v in zip(hues, saturations, values, strict=True)])


def _fade(first: Colour, second: Colour, at: np.ndarray) -> Colour:
    """Mix two colours by a share, (88, 88), 0 to 1; (88, 88, 3)."""
    return first + np.clip(at, 0.0, 1.0)[..., None] * (second - first)


def _mosaic(canvas: PictureCanvas, rng: np.random.Generator) -> None:
    """A wall of tiles."""
    frame = CoordinateFrame(rng.uniform(0, 16), rng.uniform(0, 16), rng.uniform(-0.4, 0.4))
    side = rng.uniform(8, 16)
    canvas.pixels[:] = frame.tiles(_colours(rng, 256, rng.uniform(0.2, 1.0)).reshape(16, 16, 3), side)
    canvas.paint(frame.gaps(side), _colours(rng, 1)[0])


def _bricks(canvas: PictureCanvas, rng: np.random.Generator) -> None:
    """A brick wall, or one of planks."""
    frame = CoordinateFrame(rng.uniform(0, 16), rng.uniform(0, 16), rng.normal(0, 0.05))
    frame.u *= rng.uniform(0.25, 0.6)  # wide stones
    side = rng.uniform(6, 11)
    canvas.pixels[:] = frame.tiles(_colours(rng, 323, rng.uniform(0.05, 0.4)).reshape(17, 19, 3), side, 0.5)
    canvas.paint(frame.gaps(side, 0.5), rng.uniform(0.3, 0.9) * np.ones(3))


def _bands(canvas: PictureCanvas, rng: np.random.Generator) -> None:
    """Bands of different widths, each with a colour of its own."""
    frame = CoordinateFrame(PICTURE_PIXELS / 2, PICTURE_PIXELS / 2, rng.uniform(-1.6, 1.6))
    edges = np.cumsum(rng.uniform(3, 16, 30)) - 120
    canvas.pixels[:] = frame.stripes(_colours(rng, 31, rng.uniform(0.3, 1.0)), edges)


def _shelf(canvas: PictureCanvas, rng: np.random.Generator) -> None:
    """Shelves full of books."""
    wood = _colours(rng, 1)[0] * 0.6
    canvas.pixels[:] = 0.4 * wood
    frame = CoordinateFrame(0, 0)
    step = rng.uniform(20, 30)
    bottom = rng.uniform(10, step)
    while bottom < PICTURE_PIXELS + step:
        x = rng.uniform(-4, 0)
        for colour in _colours(rng, 30):
            wide, high = rng.uniform(1.5, 4.0), rng.uniform(0.28, 0.46) * step
            canvas.rectangle(frame, x + wide, bottom - high, wide, high, colour)
            canvas.rectangle(frame, x + wide, bottom - high * rng.uniform(1.0, 1.6), wide, 0.9, 0.4 * colour + 0.5)
            x += 2 * wide
            if x > PICTURE_PIXELS:
                break
        canvas.rectangle(frame, PICTURE_PIXELS / 2, bottom + 1, PICTURE_PIXELS, 1.3, wood)
        bottom += step


def _landscape(canvas: PictureCanvas, rng: np.random.Generator) -> None:
    """Sky, hills and trees."""
    sky = _colours(rng, 2, 0.3) * 0.5 + 0.5
    canvas.pixels[:] = _fade(sky[0], sky[1], Y / PICTURE_PIXELS)
    frame = CoordinateFrame(0, 0)
    sun = rng.uniform(4, 84), rng.uniform(4, 30)
    canvas.ellipse(frame, *sun, 7, 7, np.array([1.0, rng.uniform(0.6, 1.0), rng.uniform(0.2, 0.9)]))
    for _ in range(rng.integers(2, 6)):
        cloud = rng.uniform(0, 88), rng.uniform(4, 36)
        canvas.ellipse(frame, *cloud, rng.uniform(6, 16), rng.uniform(2, 5), np.ones(3), 0.8, blur=2.0)
    height = rng.uniform(25, 45)
    for colour in _colours(rng, 4, 0.5):
        waves = rng.uniform(0.03, 0.16, 3), rng.uniform(0, 6, 3), rng.uniform(1, 7, 3)
        ridge = height + sum(size * np.sin(rate * X + phase) for rate, phase, size in zip(*waves, strict=True))
        canvas.paint(ridge - Y, colour * 0.8)
        for _ in range(rng.integers(0, 5)):
            x, size, leaf = rng.uniform(0, 88), rng.uniform(3, 7), _colours(rng, 1)[0]
            canvas.rectangle(frame, x, height + 2, 1.0, size * 1.2, 0.3 * np.ones(3))
            canvas.ellipse(frame, x, height - size, size, size * rng.uniform(0.9, 1.8), leaf)
        height += rng.uniform(9, 18)


def _town(canvas: PictureCanvas, rng: np.random.Generator) -> None:
    """Houses with lit windows."""
    sky = _colours(rng, 2, 0.3)
    canvas.pixels[:] = _fade(sky[0], sky[1], Y / 70)
    frame = CoordinateFrame(0, 0)
    x = rng.uniform(-10, 0)
    while x < PICTURE_PIXELS:
        wide, top = rng.uniform(10, 22), rng.uniform(0, 45)
        wall, light = _colours(rng, 2)
        canvas.rectangle(frame, x + wide / 2, top + 60, wide / 2, 60, wall * 0.8)
        for row in np.arange(top + 4, PICTURE_PIXELS, rng.uniform(7, 11)).tolist():
            for column in np.arange(x + 3, x + wide - 3, 5.5).tolist():
                if rng.random() < 0.6:
                    canvas.rectangle(frame, column + 1.5, row + 2, 1.5, 2.2, light)
        x += wide


def _leaves(canvas: PictureCanvas, rng: np.random.Generator) -> None:
    """Leaves and flowers."""
    colours = _colours(rng, 70, rng.uniform(0.1, 0.8))
    canvas.pixels[:] = 0.4 * colours[0]
    frames = [CoordinateFrame(44, 44, angle) for angle in rng.uniform(0, 3.2, 7).tolist()]
    for i, colour in enumerate(colours):
        length = rng.uniform(5, 11)
        at = rng.uniform(-54, 54), rng.uniform(-54, 54)
        canvas.ellipse(frames[i % len(frames)], *at, length, length * rng.uniform(0.25, 0.8), colour)


def _lights(canvas: PictureCanvas, rng: np.random.Generator) -> None:
    """Discs of light out of focus."""
    first, second = _colours(rng, 2) * 0.6
    canvas.pixels[:] = _fade(first, second, (X + Y) / (2 * PICTURE_PIXELS))
    frame = CoordinateFrame(0, 0)
    for colour in _colours(rng, 45):
        radius = rng.uniform(3, 10)
        at = rng.uniform(0, 88), rng.uniform(0, 88)
        canvas.ellipse(frame, *at, radius, radius, colour * 0.5 + 0.5, rng.uniform(0.5, 1.0), blur=1.5)


def _window(canvas: PictureCanvas, rng: np.random.Generator) -> None:
    """A wall with pictures and a window."""
    wall = _colours(rng, 2, 0.1)
    frame = CoordinateFrame(0, 0)
    canvas.pixels[:] = wall[0]
    canvas.paint(frame.dots(rng.uniform(6, 12), rng.uniform(1.5, 3)), wall[1])
    for _ in range(9):
        x, y, wide, high = rng.uniform(0, 88), rng.uniform(0, 88), rng.uniform(6, 14), rng.uniform(6, 14)
        rim, inside, shape = _colours(rng, 3)
        canvas.rectangle(frame, x, y, wide, high, rim)
        canvas.rectangle(frame, x, y, wide - 2, high - 2, inside)
        canvas.ellipse(frame, x, y, wide * 0.5, high * 0.4, shape)


_BACKGROUNDS: tuple[Callable[[PictureCanvas, np.random.Generator], None], ...] = (
    _mosaic,
    _bricks,
    _bands,
    _shelf,
    _landscape,
    _town,
    _leaves,
    _lights,
    _window,
)
