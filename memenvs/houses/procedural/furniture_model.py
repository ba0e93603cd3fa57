"""What a piece of furniture is made of: `Model`, a few boxes, cylinders and ellipsoids in the piece's own frame, and colours.

Frame of a piece: origin on the floor in the middle of its outline, x to the right, y from its back to its front, z up;
metres. The pieces themselves are in `memenvs.houses.procedural.furniture` and `memenvs.houses.procedural.fixtures`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, MATERIAL_INDEX
from memenvs.houses.house import BOX, CYLINDER, SPHERE, Receptacle, ShapeBuilder

Colour = tuple[int, int, int]
Span = tuple[float, float]


class Look(NamedTuple):
    """Material (a name of `MATERIALS`) and base colour (sRGB)."""

    material: str
    colour: Colour


class Part(NamedTuple):
    """One shape of a model; `thing` is an index into `Model.things`."""

    thing: int
    kind: int
    centre: tuple[float, float, float]
    half: tuple[float, float, float]
    look: Look


class Surface(NamedTuple):
    """A place for objects on a model: extents along x and y, height and free height above it, m."""

    x: Span
    y: Span
    z: float
    clearance: float


WOODS: tuple[Colour, ...] = (
    (186, 140, 92),
    (140, 94, 58),
    (92, 60, 42),
    (214, 180, 134),
    (236, 232, 224),
    (70, 58, 52),
)
FABRICS: tuple[Colour, ...] = (
    (72, 92, 118), (120, 124, 128), (176, 160, 136), (96, 112, 84), (150, 72, 60), (196, 150, 70), (64, 104, 108),
    (128, 86, 110), (58, 60, 68), (206, 198, 184),
)  # fmt: skip
ACCENTS: tuple[Colour, ...] = (
    (214, 82, 62), (236, 178, 54), (58, 134, 158), (86, 148, 96), (226, 130, 150), (122, 92, 168), (240, 236, 226),
    (40, 70, 120),
)  # fmt: skip
WHITE: Colour = (240, 240, 238)
BLACK: Colour = (34, 34, 38)
STEEL: Colour = (176, 180, 184)


@dataclass(frozen=True)
class Style:
    """Colours that the furniture of one room shares.

    Attributes:
        wood: Main wood.
        second_wood: Another wood.
        fabric: Of sofas, chairs and blankets.
        accent: Of pillows, vases and the like.
        counter: Fronts of kitchen and bathroom cabinets.
        top: Worktops.
    """

    wood: Look
    second_wood: Look
    fabric: Look
    accent: Look
    counter: Look
    top: Look


def draw_style(rng: np.random.Generator) -> Style:
    """A random set of colours that go together well enough."""

    def pick(colours: tuple[Colour, ...]) -> Colour:
        return colours[int(rng.integers(len(colours)))]

    leather = rng.random() < 0.2
    fronts: tuple[Colour, ...] = (
        WHITE,
        (206, 212, 204),
        (96, 122, 136),
        (126, 150, 122),
        (188, 148, 104),
        (72, 76, 84),
    )
    tops: tuple[Colour, ...] = ((66, 66, 70), (222, 216, 206), (160, 120, 80), (140, 140, 142))
    return Style(
        Look("wood", pick(WOODS)),
        Look("wood", pick(WOODS)),
        Look("leather", (112, 70, 44)) if leather else Look("fabric", pick(FABRICS)),
        Look("fabric", pick(ACCENTS)),
        Look("plain", pick(fronts)),
        Look("marble", pick(tops)),
    )


class Model:
    """A piece of furniture with what stands on it.

    Attributes:
        width: Outline along x, m.
        depth: Outline along y, m.
        things: Semantic class of each thing; entry 0 is the piece itself.
        parts: The shapes.
        surfaces: Where objects may be put.
    """

    def __init__(self, name: str, width: float, depth: float) -> None:
        self.width, self.depth = width, depth
        self.things = [name]
        self.parts: list[Part] = []
        self.surfaces: list[Surface] = []

    @property
    def name(self) -> str:
        """Semantic class of the piece."""
        return self.things[0]

    @property
    def height(self) -> float:
        """Top of the highest part, m."""
        return max(part.centre[2] + part.half[2] for part in self.parts)

    def thing(self, name: str) -> None:
        """What is added from now on is another thing, such as a pillow on the bed."""
        self.things.append(name)

    def box(self, x: Span, y: Span, z: Span, look: Look) -> None:
        """Adds a box with these extents."""
        self._add(
            BOX,
            ((x[0] + x[1]) / 2, (y[0] + y[1]) / 2, (z[0] + z[1]) / 2),
            (x[1] - x[0], y[1] - y[0], z[1] - z[0]),
            look,
        )

    def cylinder(self, x: float, y: float, z: Span, radius: float, look: Look) -> None:
        """Adds an upright cylinder."""
        self._add(CYLINDER, (x, y, (z[0] + z[1]) / 2), (2 * radius, 2 * radius, z[1] - z[0]), look)

    def ellipsoid(self, centre: tuple[float, float, float], half: tuple[float, float, float], look: Look) -> None:
        """Adds an ellipsoid."""
        self._add(SPHERE, centre, (2 * half[0], 2 * half[1], 2 * half[2]), look)

    def surface(self, x: Span, y: Span, z: float, clearance: float = 1.0) -> None:
        """Objects may stand within these extents."""
        self.surfaces.append(Surface(x, y, z, clearance))

    def legs(self, z: Span, radius: float, look: Look, inset: float = 0.05) -> None:
        """Adds four legs near the corners of the outline."""
        x, y = self.width / 2 - inset, self.depth / 2 - inset
        for sx, sy in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            self.cylinder(sx * x, sy * y, z, radius, look)

    def absorb(self, *names: str) -> Model:
        """Makes things of these classes part of the piece itself; returns the model."""
        kept = [k for k, thing in enumerate(self.things) if k == 0 or thing not in names]
        self.parts = [p._replace(thing=kept.index(p.thing) if p.thing in kept else 0) for p in self.parts]
        self.things = [self.things[k] for k in kept]
        return self

    def stretched(self, width: float, depth: float) -> Model:
        """The same piece with another outline (m); heights stay, and what is round stays round."""
        fx, fy = width / self.width, depth / self.depth
        other = Model(self.name, width, depth)
        other.things = list(self.things)
        for part in self.parts:
            (x, y, z), (hx, hy, hz) = part.centre, part.half
            sx, sy = (fx, fy) if part.kind == BOX else (min(fx, fy), min(fx, fy))
            other.parts.append(part._replace(centre=(fx * x, fy * y, z), half=(sx * hx, sy * hy, hz)))
        for (x0, x1), (y0, y1), z, clearance in self.surfaces:
            other.surface((fx * x0, fx * x1), (fy * y0, fy * y1), z, clearance)
        return other

    def _add(self, kind: int, centre: tuple[float, float, float], size: tuple[float, float, float], look: Look) -> None:
        self.parts.append(Part(len(self.things) - 1, kind, centre, (size[0] / 2, size[1] / 2, size[2] / 2), look))

    def build(
        self, builder: ShapeBuilder, names: list[str], position: tuple[float, float], yaw: float, height: float = 0.0
    ) -> list[Receptacle]:
        """Puts the model into a home.

        Args:
            builder: Gets the shapes.
            names: Names of the home's instances; those of this model are appended.
            position: (x, y) of the outline's middle, m.
            yaw: Turn of the model's own x axis, rad.
            height: Of the model's z = 0 above the floor, m.

        Returns:
            The model's surfaces in the frame of the home.
        """
        cos, sin = float(np.cos(yaw)), float(np.sin(yaw))
        first = len(names)
        names.extend(f"{thing}|{first + k}" for k, thing in enumerate(self.things))
        for thing, kind, (x, y, z), half, look in self.parts:
            builder.add(
                kind,
                (position[0] + cos * x - sin * y, position[1] + sin * x + cos * y, z + height),
                half,
                yaw=yaw,
                material=MATERIAL_INDEX[look.material],
                colour=look.colour,
                semantic=CLASS_INDEX[self.things[thing]],
                instance=first + thing,
            )
        receptacles = []
        for (x0, x1), (y0, y1), z, clearance in self.surfaces:
            x, y = (x0 + x1) / 2, (y0 + y1) / 2
            centre = float(position[0] + cos * x - sin * y), float(position[1] + sin * x + cos * y), float(z + height)
            receptacles.append(
                Receptacle(first, centre, (float(x1 - x0) / 2, float(y1 - y0) / 2), float(yaw), float(clearance))
            )
        return receptacles


def darker(look: Look, factor: float = 0.75) -> Look:
    """The same material with a darker (factor < 1) or lighter colour."""
    red, green, blue = (int(min(255.0, c * factor)) for c in look.colour)
    return Look(look.material, (red, green, blue))


def drawers(model: Model, x: Span, z: Span, columns: int, rows: int, front: Look, knob: Look) -> None:
    """Adds drawer or door fronts with knobs on a body whose front is 2 cm behind the model's outline."""
    y = model.depth / 2
    wide, high = (x[1] - x[0]) / columns, (z[1] - z[0]) / rows
    for column in range(columns):
        for row in range(rows):
            x0, z0 = x[0] + column * wide, z[0] + row * high
            model.box((x0 + 0.01, x0 + wide - 0.01), (y - 0.025, y - 0.012), (z0 + 0.01, z0 + high - 0.01), front)
            middle = x0 + wide / 2, z0 + high / 2
            model.box(
                (middle[0] - 0.04, middle[0] + 0.04), (y - 0.012, y), (middle[1] - 0.008, middle[1] + 0.008), knob
            )


METAL = Look("metal", (150, 150, 150))
DARK_METAL = Look("metal", (52, 52, 56))
BRASS = Look("metal", (190, 150, 80))
