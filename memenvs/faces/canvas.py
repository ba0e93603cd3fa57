"""Shapes and patterns with smooth edges, from which faces are drawn."""

from __future__ import annotations

import math

import numpy as np

from memenvs.faces.episodes import PICTURE_PIXELS

#: RGB, float, (3,) or one colour a pixel, (88, 88, 3); 0 to 1.
Colour = np.ndarray
#: Signed distance of each pixel from the edge of a shape, (88, 88), pixels; negative inside.
Shape = np.ndarray

#: Rows and columns of a part of the picture.
Box = tuple[slice, slice]
WHOLE: Box = (slice(0, PICTURE_PIXELS), slice(0, PICTURE_PIXELS))

#: Row and column of the centre of each pixel, (88, 88).
Y, X = (axis.astype(np.float32) + np.float32(0.5) for axis in np.mgrid[:PICTURE_PIXELS, :PICTURE_PIXELS])


class PictureCanvas:
    """A picture that shapes are painted on.

    Attributes:
        pixels: float32, (88, 88, 3); 0 to 1.
    """

    def __init__(self) -> None:
        self.pixels = np.zeros((PICTURE_PIXELS, PICTURE_PIXELS, 3), np.float32)

    def paint(self, shape: Shape, colour: Colour, opacity: float = 1.0, blur: float = 1.0, box: Box = WHOLE) -> None:
        """Paint a shape.

        Args:
            shape: Its distances, within the box.
            colour: Its colour.
            opacity: 0 to 1.
            blur: Width of the edge, pixels.
            box: Rows and columns of the shape.
        """
        cover = np.minimum(np.maximum(0.5 - shape * (1.0 / blur), 0.0), opacity)  # faster than `clip`
        part = self.pixels[box]
        colour = (colour if colour.ndim == 1 else colour[box]).astype(np.float32)
        part += cover[..., None] * (colour - part)

    def ellipse(
        self,
        frame: CoordinateFrame,
        u: float,
        v: float,
        width: float,
        height: float,
        colour: Colour,
        opacity: float = 1.0,
        blur: float = 1.0,
    ) -> None:
        """Paint an ellipse; arguments as in `CoordinateFrame.ellipse` and `paint`."""
        near = frame.near(u, v, max(width, height) + blur)
        self.paint(near.ellipse(u, v, width, height), colour, opacity, blur, near.window)

    def rectangle(
        self, frame: CoordinateFrame, u: float, v: float, width: float, height: float, colour: Colour
    ) -> None:
        """Paint a rectangle; arguments as in `CoordinateFrame.box` and `paint`."""
        near = frame.near(u, v, math.hypot(width, height) + 1.0)
        self.paint(near.box(u, v, width, height), colour, box=near.window)

    def line(
        self,
        frame: CoordinateFrame,
        start: tuple[float, float],
        end: tuple[float, float],
        radius: float,
        colour: Colour,
    ) -> None:
        """Paint a line with round ends; arguments as in `CoordinateFrame.line` and `paint`."""
        near = frame.near((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, math.dist(start, end) / 2 + radius + 1.0)
        self.paint(near.line(start, end, radius), colour, box=near.window)

    def arc(
        self, frame: CoordinateFrame, u: float, v: float, width: float, bend: float, radius: float, colour: Colour
    ) -> None:
        """Paint a curve; arguments as in `CoordinateFrame.arc` and `paint`."""
        near = frame.near(u, v, width + abs(bend) + radius + 1.0)
        self.paint(near.arc(u, v, width, bend, radius), colour, box=near.window)

    def to_bytes(self) -> np.ndarray:
        """The picture, uint8, (88, 88, 3)."""
        return np.rint(255.0 * np.clip(self.pixels, 0.0, 1.0)).astype(np.uint8)


class CoordinateFrame:
    """Coordinates that are shifted, and turned by an angle.

    Args:
        x: Column of the origin, pixels.
        y: Row of the origin, pixels.
        angle: Turn, rad, clockwise.

    Attributes:
        u: Position of each pixel to the right of the origin, (H, W), pixels; in general (88, 88).
        v: Position below the origin.
        window: Rows and columns of these pixels.
    """

    def __init__(self, x: float, y: float, angle: float = 0.0) -> None:
        self._x, self._y = x, y
        self._cos, self._sin = math.cos(angle), math.sin(angle)
        dx, dy = X - x, Y - y
        self.u = self._cos * dx + self._sin * dy
        self.v = self._cos * dy - self._sin * dx
        self.window = WHOLE

    def near(self, u: float, v: float, reach: float) -> CoordinateFrame:
        """The same coordinates for the pixels around a point alone, which takes less time.

        Args:
            u: The point.
            v: The point.
            reach: Pixels at least this near are there.
        """
        x, y = self._x + self._cos * u - self._sin * v, self._y + self._sin * u + self._cos * v
        part = CoordinateFrame.__new__(CoordinateFrame)  # without `__init__`, which would compute everything again
        part.window = _span(y, reach), _span(x, reach)
        part.u, part.v = self.u[part.window], self.v[part.window]
        return part

    def ellipse(self, u: float, v: float, width: float, height: float, power: float = 2.0) -> Shape:
        """Ellipse by its centre and half axes; a larger power makes it more like a rectangle."""
        across, down = abs(self.u - u) / width, abs(self.v - v) / height
        if power == 2.0:
            size = np.sqrt(across * across + down * down)
        else:
            size = (across**power + down**power) ** (1.0 / power)
        return (size - 1.0) * min(width, height)

    def box(self, u: float, v: float, width: float, height: float) -> Shape:
        """Rectangle by its centre and half sides."""
        return np.maximum(abs(self.u - u) - width, abs(self.v - v) - height)

    def line(self, start: tuple[float, float], end: tuple[float, float], radius: float) -> Shape:
        """Line with round ends."""
        du, dv = end[0] - start[0], end[1] - start[1]
        along = ((self.u - start[0]) * du + (self.v - start[1]) * dv) / max(du * du + dv * dv, 1e-6)
        along = np.clip(along, 0.0, 1.0)
        return np.hypot(self.u - start[0] - along * du, self.v - start[1] - along * dv) - radius

    def arc(self, u: float, v: float, width: float, bend: float, radius: float) -> Shape:
        """Part of a parabola, such as a brow or a mouth.

        Args:
            u: Middle.
            v: Height of the ends.
            width: Half its width.
            bend: How far the middle is below the ends.
            radius: Half its thickness in the middle; it is pointed at the ends.
        """
        across = np.clip(abs(self.u - u) / width, 0.0, 1.5)
        taper = 1.0 - across * across
        thick = radius * np.clip(taper, 0.2, 1.0)
        return np.maximum(abs(self.v - v - bend * taper) - thick, abs(self.u - u) - width)

    def above(self, v: float) -> Shape:
        """Half plane above a height."""
        return self.v - v

    def stripes(self, colours: np.ndarray, edges: np.ndarray) -> Colour:
        """Stripes across u, one colour each, (S, 3); `edges`, (S - 1,), are where one ends."""
        samples = [colours[np.searchsorted(edges, self.u + shift)] for shift in (-0.25, 0.25)]
        return (samples[0] + samples[1]) / 2

    def tiles(self, colours: np.ndarray, side: float, shift: float = 0.0) -> Colour:
        """Tiles with one colour each, repeated if need be.

        Args:
            colours: (R, C, 3).
            side: Their width and height, pixels.
            shift: Part of a tile by which every other row is shifted, as with bricks.
        """
        row = np.floor(self.v / side).astype(np.int64)
        column = np.floor(self.u / side + shift * (row % 2)).astype(np.int64)
        return colours[row % colours.shape[0], column % colours.shape[1]]

    def gaps(self, side: float, shift: float = 0.0) -> Shape:
        """Distance from the lines between `tiles`, below 0 on a line that is one pixel wide."""
        row = np.floor(self.v / side)
        across = (self.u / side + shift * (row % 2)) % 1.0
        down = (self.v / side) % 1.0
        nearest = np.minimum(np.minimum(across, 1.0 - across), np.minimum(down, 1.0 - down))
        return nearest * side - 0.5

    def dots(self, side: float, radius: float) -> Shape:
        """Discs on a square grid."""
        return np.hypot(self.u % side - side / 2, self.v % side - side / 2) - radius


def _span(middle: float, reach: float) -> slice:
    """Rows or columns up to a distance from the middle, within the picture."""
    return slice(max(0, math.floor(middle - reach)), max(0, min(PICTURE_PIXELS, math.ceil(middle + reach))))
