"""Faces that are drawn from a number: backgrounds, clothes, heads, hair and features."""

from __future__ import annotations

import colorsys
import math

import numpy as np

from memenvs.faces.backgrounds import paint_background
from memenvs.faces.canvas import Colour, CoordinateFrame, PictureCanvas
from memenvs.faces.episodes import PICTURE_PIXELS

#: First number of the seeds of faces; with it, no other generator of the package has the same seed.
_SEED = 88_16_8
#: Skin tones, RGB 0 ... 255, from light to dark.
_SKIN = np.array(
    [[255, 224, 196], [241, 194, 160], [224, 172, 132], [198, 134, 94], [157, 100, 66], [118, 72, 48], [84, 50, 36]]
)
#: Colours of hair: black, browns, reds, blonds, grey, white.
_HAIR = np.array(
    [[28, 24, 26], [62, 40, 28], [104, 66, 40], [150, 76, 38], [186, 110, 50], [214, 170, 98], [240, 216, 150],
     [140, 138, 140], [226, 224, 222]]
)  # fmt: skip
#: Colours of the iris: brown, hazel, green, blue, grey, dark.
_IRIS = np.array([[92, 54, 28], [140, 100, 40], [70, 130, 80], [64, 120, 190], [120, 134, 146], [44, 28, 22]])
_WHITE = np.array([0.96, 0.95, 0.93])
_DARK = np.array([0.08, 0.06, 0.06])


def draw_face(number: int) -> np.ndarray:
    """Draw a face.

    Args:
        number: Decides everything about it, >= 0.

    Returns:
        uint8, (88, 88, 3).
    """
    return _Portrait(np.random.default_rng([_SEED, number])).draw()


class _Portrait:
    """One face. Lengths are in pixels; positions on the head are relative to its centre.

    Args:
        rng: Source of everything that is drawn.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.canvas = PictureCanvas()
        self.width, self.height = rng.uniform(17, 23), rng.uniform(23, 29)  # half axes of the head
        self.x, self.y = rng.uniform(36, 52), rng.uniform(40, 50)
        self.head = CoordinateFrame(self.x, self.y, rng.normal(0.0, 0.12))
        self.turn = rng.uniform(-5.0, 5.0)  # the features are shifted where the head is turned
        self.skin = self._tint(_SKIN, 0.05)
        self.hair = self._any_colour(0.75, 0.9) if rng.random() < 0.15 else self._tint(_HAIR, 0.06)
        self.skull = self.head.ellipse(0, 0, self.width, self.height, rng.uniform(1.9, 2.7))
        self.eye_height = rng.uniform(-6.0, -1.0)
        self.eye_distance = self.width * rng.uniform(0.38, 0.48)
        self.mouth_height = self.height * rng.uniform(0.46, 0.58)
        self.style = str(rng.choice(["bald", "short", "side", "long", "bob", "curls", "afro", "bun", "spikes"]))

    def draw(self) -> np.ndarray:
        """Draw everything from back to front; uint8, (88, 88, 3)."""
        paint_background(self.canvas, self.rng)
        self._hair_behind()
        self._clothes()
        self._ears()
        self._head()
        self._cheeks_and_freckles()
        self._beard()
        self._nose()
        self._mouth()
        self._eyes()
        self._hair_in_front()
        self._hat()
        self._light()
        return self.canvas.to_bytes()

    def _any_colour(self, saturation: float, value: float) -> Colour:
        """A colour of any hue."""
        rng = self.rng
        hue, low = rng.random(), rng.uniform(0.5, 1.0)
        return np.array(colorsys.hsv_to_rgb(hue, saturation * low, value * rng.uniform(0.5, 1.1)))

    def _tint(self, table: np.ndarray, spread: float) -> Colour:
        """A colour between two neighbours of a table, or near to it."""
        at = self.rng.uniform(0, len(table) - 1)
        low = int(at)
        colour = table[low] + (at - low) * (table[min(low + 1, len(table) - 1)] - table[low])
        return np.clip(colour / 255.0 + self.rng.normal(0.0, spread, 3) * 0.5, 0.0, 1.0)

    def _cloth(self) -> Colour:
        """A colour or a pattern, (3,) or (88, 88, 3)."""
        rng = self.rng
        first, second = self._any_colour(0.8, 0.9), self._any_colour(0.8, 0.9)
        frame = CoordinateFrame(rng.uniform(0, 9), rng.uniform(0, 9), rng.uniform(-0.9, 0.9))
        kind = rng.integers(6)
        if kind == 0:
            return first
        if kind == 1:  # stripes, each with its own width
            edges = np.cumsum(rng.uniform(3, 9, 40)) - 120
            return frame.stripes(np.stack([first, second])[np.arange(41) % 2], edges)
        if kind == 2:  # checks
            side = rng.uniform(5, 10)
            return frame.tiles(np.stack([[first, second], [second, first]]), side)
        if kind == 3:  # patches
            return frame.tiles(np.stack([[self._any_colour(0.8, 0.9) for _ in range(9)] for _ in range(9)]), 9.0)
        side = rng.uniform(6, 11)
        cover = np.clip(0.5 - frame.dots(side, side * rng.uniform(0.2, 0.36)), 0, 1)[..., None]
        return first + cover * (second - first)

    def _hair_behind(self) -> None:
        rng, head, width, height = self.rng, self.head, self.width, self.height
        dark = 0.8 * self.hair
        if self.style == "long":
            end = height * rng.uniform(0.8, 1.7)
            shape = np.maximum(head.ellipse(0, end / 2 - height / 2, width * 1.25, end / 2 + height * 0.75, 3.0), -90)
            self.canvas.paint(shape, self._strands(dark))
        elif self.style == "bob":
            shape = head.ellipse(0, -1, width * 1.3, height * rng.uniform(0.9, 1.1), 3.0)
            self.canvas.paint(shape, self._strands(dark))
        elif self.style == "afro":
            size = rng.uniform(1.25, 1.6)
            self.canvas.ellipse(head, 0, -height * 0.35, width * size, height * size * 0.75, dark)
            self._curls(14, width * size, height * size * 0.75, -height * 0.35, 4.5)
        elif self.style == "curls":
            self._curls(16, width * 1.1, height * 1.05, -2.0, 5.5)
        elif self.style == "bun":
            side = rng.uniform(-0.6, 0.6)
            self.canvas.ellipse(head, side * width, -height * 1.1, 7.5, 7.0, self._strands(self.hair))

    def _curls(self, count: int, width: float, height: float, v: float, radius: float, low: float = 0.15) -> None:
        """Paint discs of hair along the upper half of an ellipse, and on both sides down to an angle of `low` pi."""
        for angle in np.linspace(-math.pi * (1 + low), math.pi * low, count).tolist():
            shade = self.hair * self.rng.uniform(0.65, 1.2)
            at = width * math.cos(angle), v + height * math.sin(angle)
            self.canvas.ellipse(self.head, *at, radius, radius * self.rng.uniform(0.8, 1.2), shade)

    def _strands(self, colour: Colour) -> Colour:
        """Hair with light and dark strands, (88, 88, 3)."""
        rng, head = self.rng, self.head
        wave = rng.uniform(0.5, 1.1) * head.u + rng.uniform(0.0, 2.5) * np.sin(head.v * rng.uniform(0.1, 0.3))
        return colour * (1.0 + 0.22 * np.sin(wave + rng.uniform(0, 6)))[..., None]

    def _clothes(self) -> None:
        rng, canvas = self.rng, self.canvas
        top = self.y + self.height * rng.uniform(0.98, 1.2)
        frame = CoordinateFrame(self.x + rng.uniform(-4, 4), top)
        slope = rng.uniform(0.15, 0.45)
        shoulders = np.maximum(
            slope * (abs(frame.u) - rng.uniform(7, 13)) - frame.v, abs(frame.u) - rng.uniform(34, 60)
        )
        canvas.paint(shoulders, self._cloth())
        neck = self.width * rng.uniform(0.42, 0.6)
        canvas.paint(CoordinateFrame(self.x, top).box(0, -8, neck, 12), 0.86 * self.skin)
        opening = rng.integers(4)
        if opening == 0:  # round
            canvas.ellipse(frame, 0, -1, neck * 1.3, 9, 0.9 * self.skin)
        elif opening == 1:  # pointed, with a collar
            collar = self._any_colour(0.5, 1.0)
            canvas.paint(np.maximum(abs(frame.u) * 1.3 + frame.v - 20, -frame.v - 3), collar)
            canvas.paint(np.maximum(abs(frame.u) * 1.4 + frame.v - 13, -frame.v - 6), 0.9 * self.skin)
        elif opening == 2:  # a shirt with a tie
            canvas.paint(np.maximum(abs(frame.u) * 1.2 + frame.v - 16, -frame.v - 2), _WHITE)
            tie = self._cloth()
            canvas.paint(np.maximum(abs(frame.u) - 2.5 - 0.12 * frame.v, -frame.v - 1), tie)
        else:  # a scarf
            canvas.paint(frame.ellipse(0, 0, neck * 1.7, 7, 3.0), self._cloth())
        if rng.random() < 0.3:  # a necklace
            beads = self._any_colour(0.7, 1.1)
            for angle in np.linspace(0.3, math.pi - 0.3, 9).tolist():
                canvas.ellipse(frame, neck * 1.4 * math.cos(angle), 10 * math.sin(angle) - 1, 1.6, 1.6, beads)

    def _ears(self) -> None:
        size, lobe = self.rng.uniform(3.0, 5.0), self.rng.random()
        metal = self._any_colour(0.8, 1.1)
        for side in (-1, 1):
            u = side * (self.width + 1.0) - 0.4 * self.turn
            self.canvas.ellipse(self.head, u, self.eye_height + 4, size, size * 1.6, 0.9 * self.skin)
            self.canvas.ellipse(self.head, u, self.eye_height + 4, size * 0.5, size, 0.75 * self.skin)
            if lobe < 0.2:
                self.canvas.ellipse(self.head, u + side, self.eye_height + 13, 1.8, 1.8, metal)
            elif lobe < 0.35:
                near = self.head.near(u + side, self.eye_height + 16, 7)
                ring = abs(near.ellipse(u + side, self.eye_height + 16, 4.0, 4.0)) - 0.9
                self.canvas.paint(ring, metal, box=near.window)

    def _head(self) -> None:
        side = self.rng.uniform(-1, 1)
        shade = 1.0 - 0.16 * np.clip(side * self.head.u / self.width + 0.3 * self.head.v / self.height, -0.3, 1.5)
        self.canvas.paint(self.skull, self.skin * shade[..., None])

    def _cheeks_and_freckles(self) -> None:
        rng = self.rng
        red = np.clip(self.skin * (1.05, 0.72, 0.72), 0, 1)
        strength = rng.uniform(0.0, 0.7)
        for side in (-1, 1):
            at = side * self.width * 0.55 + 0.5 * self.turn, self.height * 0.25
            self.canvas.ellipse(self.head, *at, 5.5, 4.5, red, strength, blur=4.0)
        if rng.random() < 0.2:
            for _ in range(12):
                at = rng.normal(0, self.width * 0.35) + self.turn, self.height * 0.2 + rng.normal(0, 2.5)
                self.canvas.ellipse(self.head, *at, 0.7, 0.7, 0.6 * self.skin, 0.8)

    def _nose(self) -> None:
        rng, head = self.rng, self.head
        length, width = rng.uniform(7, 12), rng.uniform(2.2, 4.5)
        u, tip = 1.2 * self.turn, self.eye_height + length + 1
        side = 1 if self.turn > 0 else -1
        self.canvas.line(
            head, (0.8 * self.turn + side * 1.5, self.eye_height + 2), (u + side, tip), 0.9, 0.8 * self.skin
        )
        self.canvas.ellipse(head, u, tip, width, width * 0.75, 0.92 * self.skin)
        self.canvas.ellipse(head, u - side, tip - 1, width * 0.4, width * 0.35, np.clip(1.15 * self.skin, 0, 1))
        for sign in (-1, 1):
            self.canvas.ellipse(head, u + sign * width * 0.55, tip + width * 0.4, 1.0, 0.7, 0.5 * self.skin)

    def _mouth(self) -> None:
        rng, head = self.rng, self.head
        u, v = self.turn, self.mouth_height
        width, smile = rng.uniform(5.5, 10.0), rng.uniform(-2.0, 4.0)
        lips = np.clip(self.skin * (0.95, 0.55, 0.55), 0, 1)
        if rng.random() < 0.4:
            lips = np.array([rng.uniform(0.5, 0.95), rng.uniform(0.05, 0.35), rng.uniform(0.1, 0.45)])
        if rng.random() < 0.4:  # open, with teeth
            depth = rng.uniform(2.5, 5.0)
            self.canvas.arc(head, u, v, width, smile, depth + 1.3, lips)
            self.canvas.arc(head, u, v, width * 0.85, smile, depth, 0.4 * lips)
            self.canvas.arc(head, u, v - depth * 0.35, width * 0.75, smile, depth * 0.55, _WHITE)
        else:
            self.canvas.arc(head, u, v, width, smile, rng.uniform(1.4, 2.8), lips)
            self.canvas.arc(head, u, v, width, smile, 0.6, 0.45 * lips)

    def _beard(self) -> None:
        rng, head = self.rng, self.head
        if rng.random() < 0.75:
            return
        colour = self._strands(0.85 * self.hair)
        if rng.random() < 0.6:
            inner = head.ellipse(self.turn, -self.height * 0.1, self.width * 0.8, self.height * 0.62)
            shape = np.maximum(np.maximum(self.skull - rng.uniform(0, 3), -inner), -head.above(1.0))
            self.canvas.paint(shape, colour, rng.uniform(0.5, 1.0))
        if rng.random() < 0.7:
            self.canvas.arc(head, self.turn, self.mouth_height - 4, 8.5, -rng.uniform(0, 3), 2.4, colour)

    def _eyes(self) -> None:
        rng, head, canvas = self.rng, self.head, self.canvas
        width, height = rng.uniform(3.2, 5.0), rng.uniform(1.8, 3.2)
        iris = self._tint(_IRIS, 0.03)
        gaze = rng.uniform(-1.3, 1.3)
        brow_bend, brow_lift, brow = -rng.uniform(0.5, 3.0), rng.uniform(5.0, 8.0), rng.uniform(0.7, 1.8)
        shadow = self._any_colour(0.6, 0.9) if rng.random() < 0.2 else None
        for side in (-1, 1):
            u = side * self.eye_distance + self.turn
            if shadow is not None:
                canvas.ellipse(head, u, self.eye_height - 1, width * 1.3, height * 1.6, shadow, 0.7, blur=2.0)
            canvas.ellipse(head, u, self.eye_height, width + 0.7, height + 0.7, 0.5 * self.skin)
            near = head.near(u, self.eye_height, width + 1)
            white = near.ellipse(u, self.eye_height, width, height)
            canvas.paint(white, _WHITE, box=near.window)
            radius = min(height * 0.95, 2.6)
            disc = near.ellipse(u + gaze, self.eye_height, radius, radius)
            canvas.paint(np.maximum(disc, white), iris, box=near.window)
            canvas.ellipse(head, u + gaze, self.eye_height, radius * 0.5, radius * 0.5, _DARK)
            canvas.ellipse(head, u + gaze - 0.8, self.eye_height - 0.8, 0.6, 0.6, _WHITE)
            canvas.arc(head, u, self.eye_height - brow_lift, width * 1.3, brow_bend, brow, 0.7 * self.hair)
        if rng.random() < 0.3:
            self._glasses()

    def _glasses(self) -> None:
        rng, head, canvas = self.rng, self.head, self.canvas
        frame, power = self._any_colour(0.9, 0.8), float(rng.choice([2.0, 4.0]))
        size, thick = rng.uniform(6.0, 8.0), rng.uniform(0.7, 1.4)
        glass = self._any_colour(0.7, 0.7) if rng.random() < 0.35 else None
        for side in (-1, 1):
            u = side * self.eye_distance + self.turn
            near = head.near(u, self.eye_height, 1.5 * size)
            rim = near.ellipse(u, self.eye_height, size, size * 0.85, power)
            if glass is not None:
                canvas.paint(rim, glass, rng.uniform(0.5, 0.95), box=near.window)
            canvas.paint(abs(rim) - thick, frame, box=near.window)
            ear = side * self.width
            canvas.line(head, (u + side * size, self.eye_height), (ear, self.eye_height - 1), thick, frame)
        gap = self.eye_distance - size
        canvas.line(head, (self.turn - gap, self.eye_height), (self.turn + gap, self.eye_height), thick, frame)

    def _hair_in_front(self) -> None:
        rng, head, width, height = self.rng, self.head, self.width, self.height
        if self.style == "bald":
            shine = np.clip(1.2 * self.skin, 0, 1)
            self.canvas.ellipse(head, rng.uniform(-6, 6), -height * 0.7, 6, 3, shine, 0.6, blur=3.0)
            return
        hair = self._strands(self.hair)
        line = self.eye_height - rng.uniform(6.0, 13.0)  # where the hair begins
        cap = head.ellipse(0, -1.5, width * 1.08, height * 1.08)
        if self.style in ("side", "long", "bob"):
            slope = rng.uniform(-0.5, 0.5)
            edge = head.v - line - slope * head.u
        elif self.style == "spikes":
            saw = abs((head.u * rng.uniform(0.12, 0.22)) % 1.0 - 0.5) * rng.uniform(6, 12)
            edge = head.v - line - saw
            for u in np.linspace(-width * 0.9, width * 0.9, 7).tolist():
                tip = u * 1.3, -height - rng.uniform(3, 9)
                self.canvas.line(head, (u, -height * 0.7), tip, 2.6, hair)
        else:
            edge = head.v - line - rng.uniform(-0.02, 0.03) * head.u**2
        if self.style in ("long", "bob", "curls", "afro"):  # down both sides of the face
            strip = np.maximum(cap - 1.0, self.width * rng.uniform(0.75, 0.9) - abs(head.u))
            self.canvas.paint(np.maximum(strip, head.above(height * rng.uniform(0.1, 0.6))), hair)
        self.canvas.paint(np.maximum(cap, edge), hair)
        if self.style in ("afro", "curls"):
            self._curls(9, width * 0.85, height * 0.85, -3.0, 4.0, -0.12)

    def _hat(self) -> None:
        rng, head, width, height = self.rng, self.head, self.width, self.height
        kind = rng.integers(12)
        if kind > 3:
            return
        cloth, line = self._cloth(), -height * rng.uniform(0.45, 0.6)
        crown = np.maximum(head.ellipse(0, line, width * 1.15, height * rng.uniform(0.7, 0.9), 2.5), head.above(line))
        if kind == 0:  # a band
            self.canvas.paint(np.maximum(self.skull - 2, abs(head.v - line) - rng.uniform(1.5, 4)), cloth)
            return
        self.canvas.paint(crown, cloth)
        if kind == 1:  # a cap with a peak
            side = int(rng.choice([-1, 1]))
            self.canvas.ellipse(head, side * width * 0.6, line, width * 0.95, 3.0, self._any_colour(0.8, 0.8))
        elif kind == 2:  # a brim
            self.canvas.ellipse(head, 0, line, width * 1.75, 3.6, self._any_colour(0.8, 0.8))
        else:  # a woollen hat with a fold and a ball
            self.canvas.rectangle(head, 0, line, width * 1.15, 3.2, self._any_colour(0.7, 0.9))
            self.canvas.ellipse(head, 0, line - height * 0.8, 5, 5, self._any_colour(0.7, 1.0))

    def _light(self) -> None:
        """Light from one side, over everything."""
        rng = self.rng
        angle, strength = rng.uniform(0, 2 * math.pi), rng.uniform(0.0, 0.16)
        frame = CoordinateFrame(PICTURE_PIXELS / 2, PICTURE_PIXELS / 2, angle)
        self.canvas.pixels *= (1.0 + strength * frame.u / (PICTURE_PIXELS / 2))[..., None]
        self.canvas.pixels *= rng.uniform(0.9, 1.08, 3).astype(np.float32)
