"""Models of kitchen and bathroom fixtures, shelves, and decoration.

In each function `w`, `d` and `h` are width (x), depth (y, from back to front) and height (z) of the piece in metres.
Left (-x) and right (+x) are the piece's own, as it faces its front; see `memenvs.houses.object_model` for the frame.
"""

from __future__ import annotations

import numpy as np

from memenvs.houses.house import Finish
from memenvs.houses.object_model import ObjectModel
from memenvs.houses.procedural.finishes import (
    ACCENTS,
    BLACK,
    BRASS,
    CERAMIC,
    CHROME,
    DARK_METAL,
    METAL,
    RUG_COLOURS,
    STEEL,
    WHITE,
    FurnitureStyle,
    shade,
)

LEAF_GREENS = ((62, 118, 58), (84, 140, 66), (48, 100, 70))


def counter(
    rng: np.random.Generator, style: FurnitureStyle, *, width: float, has_sink: bool, has_microwave: bool
) -> ObjectModel:
    """A kitchen base cabinet with a worktop; a sink is on its left, a microwave on its right."""
    w, d, h = width, 0.62, 0.9
    model = ObjectModel("counter", w, d)
    model.box(model.x_span, (-d / 2, d / 2 - 0.07), (0.0, 0.1), Finish("plain", BLACK))
    model.box(model.x_span, (-d / 2, d / 2 - 0.045), (0.1, 0.7 if has_sink else h - 0.04), style.cabinet_front)
    model.drawers(model.x_span, (0.11, h - 0.06), max(1, round(w / 0.5)), 1, shade(style.cabinet_front, 1.06), METAL)
    left = -w / 2  # the worktop is free from here to `right`
    right = w / 2
    if has_sink:
        basin = -w / 2 + 0.08, -w / 2 + 0.58
        y = -d / 2 + 0.12, d / 2 - 0.1
        model.box((basin[1], w / 2), model.y_span, (h - 0.04, h), style.worktop)
        model.box((-w / 2, basin[0]), model.y_span, (h - 0.04, h), style.worktop)
        model.box(basin, (-d / 2, y[0]), (h - 0.04, h), style.worktop)
        model.box(basin, (y[1], d / 2), (h - 0.04, h), style.worktop)
        model.box(model.x_span, (d / 2 - 0.06, d / 2 - 0.045), (0.7, h - 0.04), style.cabinet_front)
        model.begin_instance("sink")
        model.box(basin, y, (0.7, 0.72), Finish("metal", STEEL))
        for x in basin:
            inner = x - 0.01 * np.sign(x - sum(basin) / 2)
            model.box((min(x, inner), max(x, inner)), y, (0.72, h), CHROME)
        middle = sum(basin) / 2
        model.cylinder(middle, -d / 2 + 0.06, (h, h + 0.26), 0.014, CHROME)
        model.box((middle - 0.012, middle + 0.012), (-d / 2 + 0.06, -d / 2 + 0.24), (h + 0.24, h + 0.264), CHROME)
        left = basin[1] + 0.02
    else:
        model.box(model.x_span, model.y_span, (h - 0.04, h), style.worktop)
    if has_microwave:
        model.begin_instance("microwave")
        model.box((w / 2 - 0.52, w / 2 - 0.04), (-d / 2 + 0.02, -d / 2 + 0.38), (h, h + 0.28), Finish("metal", STEEL))
        model.box(
            (w / 2 - 0.5, w / 2 - 0.18),
            (-d / 2 + 0.38, -d / 2 + 0.39),
            (h + 0.03, h + 0.25),
            Finish("plain", (26, 28, 32)),
        )
        model.box(
            (w / 2 - 0.15, w / 2 - 0.06), (-d / 2 + 0.38, -d / 2 + 0.39), (h + 0.03, h + 0.25), Finish("plain", BLACK)
        )
        right = w / 2 - 0.55
    elif right - left > 0.7 and rng.random() < 0.6:
        model.begin_instance("kitchenware")
        model.cylinder(right - 0.15, -d / 2 + 0.14, (h, h + 0.18), 0.08, Finish("ceramic", style.accent.colour))
        for dx in (-0.03, 0.0, 0.035):
            model.cylinder(
                right - 0.15 + dx, -d / 2 + 0.14 + dx / 2, (h + 0.18, h + 0.32), 0.01, Finish("wood", (190, 150, 100))
            )
        right -= 0.28
    if right - left > 0.25:
        model.surface((left, right), model.y_span, h, 0.5)
    return model


def stove(style: FurnitureStyle) -> ObjectModel:
    """A cooker with an oven and four burners, and a hood above it."""
    w, d, h = 0.6, 0.62, 0.9
    model = ObjectModel("stove", w, d)
    body = Finish("metal", STEEL)
    model.box(model.x_span, (-d / 2, d / 2 - 0.04), (0.0, h - 0.02), body)
    model.box(model.x_span, (-d / 2, d / 2 - 0.02), (h - 0.02, h), Finish("plain", BLACK))
    model.box(model.x_inside(0.04), (d / 2 - 0.04, d / 2 - 0.025), (0.2, 0.66), Finish("plain", (28, 28, 32)))
    model.box(model.x_inside(0.06), (d / 2 - 0.025, d / 2), (0.68, 0.7), CHROME)
    for k in range(4):
        model.ellipsoid((-0.21 + 0.14 * k, d / 2 - 0.03, 0.8), (0.025, 0.025, 0.025), Finish("plain", BLACK))
    for x in (-0.15, 0.15):
        for y, r in ((-0.15, 0.085), (0.13, 0.1)):
            model.cylinder(x, y, (h, h + 0.008), r, Finish("plain", (70, 66, 66)))
    model.box(model.x_span, (-d / 2, d / 2 - 0.15), (1.62, 1.72), body)
    model.box((-0.14, 0.14), (-d / 2, -d / 2 + 0.26), (1.72, 2.3), shade(style.cabinet_front, 0.98))
    return model


def refrigerator(rng: np.random.Generator) -> ObjectModel:
    """A tall refrigerator with a freezer door below."""
    w, d, h = 0.7, 0.68, rng.uniform(1.75, 1.95)
    model = ObjectModel("refrigerator", w, d)
    finish = Finish("metal", STEEL) if rng.random() < 0.6 else Finish("plain", WHITE)
    model.box(model.x_span, (-d / 2, d / 2 - 0.1), (0.02, h), shade(finish, 0.85))
    model.box(model.x_inside(0.03), (-d / 2 + 0.03, d / 2 - 0.14), (0.0, 0.02), DARK_METAL)
    model.box(model.x_span, (d / 2 - 0.1, d / 2 - 0.04), (0.04, 0.62), finish)
    model.box(model.x_span, (d / 2 - 0.1, d / 2 - 0.04), (0.64, h), finish)
    for z in ((0.3, 0.58), (0.72, 1.2)):
        model.box((-w / 2 + 0.04, -w / 2 + 0.07), (d / 2 - 0.04, d / 2), z, DARK_METAL)
    return model


def wall_cabinet(style: FurnitureStyle, *, width: float) -> ObjectModel:
    """A cabinet that hangs above a counter; its z = 0 is at the floor."""
    w, d = width, 0.34
    model = ObjectModel("cabinet", w, d)
    model.box(model.x_span, (-d / 2, d / 2 - 0.025), (1.5, 2.15), style.cabinet_front)
    model.drawers(model.x_span, (1.5, 2.15), max(1, round(w / 0.45)), 1, shade(style.cabinet_front, 1.06), METAL)
    return model


def toilet() -> ObjectModel:
    """A toilet with a tank at its back."""
    w, d, h = 0.4, 0.7, 0.8
    model = ObjectModel("toilet", w, d)
    model.box((-0.2, 0.2), (-d / 2, -d / 2 + 0.19), (0.38, 0.78), CERAMIC)
    model.box((-0.2, 0.2), (-d / 2, -d / 2 + 0.19), (0.78, h), shade(CERAMIC, 0.94))
    model.box((-0.11, 0.11), (-d / 2 + 0.02, 0.12), (0.0, 0.3), CERAMIC)
    model.ellipsoid((0.0, 0.1, 0.28), (0.18, 0.24, 0.14), CERAMIC)
    model.box((-0.18, 0.18), (-d / 2 + 0.19, 0.05), (0.3, 0.4), CERAMIC)
    model.cylinder(0.0, 0.13, (0.36, 0.4), 0.19, CERAMIC)
    model.cylinder(0.0, 0.13, (0.4, 0.425), 0.2, shade(CERAMIC, 0.97))
    model.cylinder(0.0, 0.13, (0.425, 0.43), 0.13, Finish("plain", (120, 150, 160)))
    return model


def bathtub(rng: np.random.Generator) -> ObjectModel:
    """A bathtub filled with water."""
    w, d, h = rng.uniform(1.5, 1.7), 0.75, 0.55
    model = ObjectModel("bathtub", w, d)
    rim = 0.07
    model.box(model.x_span, (-d / 2, -d / 2 + rim), (0.0, h), CERAMIC)
    model.box(model.x_span, (d / 2 - rim, d / 2), (0.0, h), CERAMIC)
    model.box((-w / 2, -w / 2 + rim), model.y_inside(rim), (0.0, h), CERAMIC)
    model.box((w / 2 - rim, w / 2), model.y_inside(rim), (0.0, h), CERAMIC)
    model.box(model.x_inside(rim), model.y_inside(rim), (0.0, 0.36), Finish("glass", (150, 200, 214)))
    model.cylinder(-w / 2 + 0.035, 0.0, (h, h + 0.12), 0.02, CHROME)
    model.box((-w / 2 + 0.035, -w / 2 + 0.2), (-0.015, 0.015), (h + 0.1, h + 0.13), CHROME)
    return model


def shower() -> ObjectModel:
    """A shower tray with a glass wall on its right."""
    w, d = 0.9, 0.9
    model = ObjectModel("shower", w, d)
    model.box(model.x_span, model.y_span, (0.0, 0.12), CERAMIC)
    model.box((w / 2 - 0.02, w / 2), model.y_span, (0.12, 1.95), Finish("glass", (190, 218, 222)))
    model.cylinder(0.0, -d / 2 + 0.04, (0.9, 2.05), 0.014, CHROME)
    model.box((-0.012, 0.012), (-d / 2 + 0.04, -d / 2 + 0.28), (2.03, 2.06), CHROME)
    model.cylinder(0.0, -d / 2 + 0.28, (2.0, 2.03), 0.1, CHROME)
    model.cylinder(0.0, 0.0, (0.12, 0.125), 0.05, Finish("metal", (120, 120, 124)))
    return model


def vanity(rng: np.random.Generator, style: FurnitureStyle) -> ObjectModel:
    """A bathroom sink in a cabinet, with a mirror above it."""
    w, d, h = rng.uniform(0.8, 1.15), 0.5, 0.84
    model = ObjectModel("sink", w, d)
    model.box(model.x_inside(0.02), (-d / 2, d / 2 - 0.04), (0.12, h - 0.05), style.cabinet_front)
    model.drawers(model.x_inside(0.02), (0.14, h - 0.06), 2, 1, shade(style.cabinet_front, 1.06), METAL)
    model.box(model.x_inside(0.06), (-d / 2, d / 2 - 0.1), (0.0, 0.12), Finish("plain", BLACK))
    model.box(model.x_span, model.y_span, (h - 0.05, h), style.worktop)
    x = -w / 2 + 0.28
    model.cylinder(x, 0.02, (h, h + 0.1), 0.19, CERAMIC)
    model.cylinder(x, 0.02, (h + 0.1, h + 0.105), 0.16, Finish("plain", (150, 170, 178)))
    model.cylinder(x, -d / 2 + 0.035, (h, h + 0.24), 0.014, CHROME)
    model.box((x - 0.012, x + 0.012), (-d / 2 + 0.035, -d / 2 + 0.17), (h + 0.22, h + 0.244), CHROME)
    model.surface((x + 0.22, w / 2), model.y_span, h, 0.8)
    model.begin_instance("mirror")
    model.box(model.x_inside(0.05), (-d / 2, -d / 2 + 0.02), (1.15, 1.95), Finish("metal", (150, 150, 150)))
    model.box(model.x_inside(0.08), (-d / 2 + 0.02, -d / 2 + 0.025), (1.18, 1.92), Finish("glass", (204, 220, 226)))
    return model


def washing_machine() -> ObjectModel:
    """A washing machine with a round door."""
    w, d, h = 0.6, 0.62, 0.86
    model = ObjectModel("washing_machine", w, d)
    model.box(model.x_span, (-d / 2, d / 2 - 0.04), (0.0, h), Finish("plain", WHITE))
    model.box(
        model.x_inside(0.02), (d / 2 - 0.04, d / 2 - 0.03), (h - 0.14, h - 0.03), Finish("plain", (206, 210, 214))
    )
    model.box((0.06, 0.24), (d / 2 - 0.03, d / 2 - 0.025), (h - 0.12, h - 0.05), Finish("plain", (40, 60, 80)))
    model.ellipsoid((0.0, d / 2 - 0.04, 0.42), (0.2, 0.04, 0.2), CHROME)
    model.ellipsoid((0.0, d / 2 - 0.03, 0.42), (0.15, 0.03, 0.15), Finish("glass", (60, 80, 96)))
    model.surface(model.x_span, (-d / 2, d / 2 - 0.04), h)
    return model


def bookshelf(rng: np.random.Generator, style: FurnitureStyle, *, is_low: bool) -> ObjectModel:
    """An open shelf with books; some boards are left free."""
    boards = 3 if is_low else 5
    w, d = rng.uniform(0.8, 1.2), 0.32
    spacing = rng.uniform(0.34, 0.38)  # from board to board
    h = 0.08 + boards * spacing + 0.025
    model = ObjectModel("bookshelf", w, d)
    model.box(model.x_span, (-d / 2, -d / 2 + 0.015), (0.0, h), shade(style.wood, 0.85))
    for x in (-w / 2, w / 2 - 0.025):
        model.box((x, x + 0.025), (-d / 2 + 0.015, d / 2), (0.0, h), style.wood)
    inner = -w / 2 + 0.025, w / 2 - 0.025
    free = set(rng.choice(boards, 1 if is_low else 2, replace=False).tolist())
    for k in range(boards + 1):
        z = 0.08 + k * spacing
        model.box(inner, (-d / 2 + 0.015, d / 2), (z, z + 0.025), style.wood)
    model.box(inner, (-d / 2 + 0.015, d / 2 - 0.02), (0.0, 0.08), style.wood)
    for k in range(boards):
        z = 0.08 + k * spacing + 0.025
        if k in free and 0.4 <= z <= 1.5:  # heights at which a robot of 1.5 m sees what stands there
            model.surface(inner, (-d / 2 + 0.02, d / 2), z, spacing - 0.03)
            continue
        model.begin_instance("book")
        end = inner[0] + (inner[1] - inner[0]) * rng.uniform(0.55, 1.0)
        model.box(
            (inner[0], end),
            (-d / 2 + 0.02, d / 2 - 0.05),
            (z, z + rng.uniform(0.6, 0.85) * spacing),
            Finish("books", (150, 90, 70)),
        )
    if h <= 1.5:
        model.surface(model.x_span, model.y_span, h)
    return model


def shelf(rng: np.random.Generator) -> ObjectModel:
    """An open metal shelf with boxes, for kitchens and laundries."""
    w, d, h = rng.uniform(0.75, 1.0), 0.4, 1.42
    model = ObjectModel("shelf", w, d)
    model.legs((0.0, h - 0.02), 0.015, DARK_METAL, 0.02)
    for k, z in enumerate((0.12, 0.55, 0.98, h)):
        model.box(model.x_span, model.y_span, (z - 0.02, z), Finish("metal", (120, 124, 128)))
        if k > 0:
            model.surface(model.x_inside(0.04), model.y_inside(0.04), z, 0.38 if z < h else 1.0)
    model.begin_instance("box")
    model.box((-w / 2 + 0.06, -0.02), (-0.15, 0.15), (0.12, 0.36), Finish("paper", (182, 142, 96)))
    model.box(
        (0.04, w / 2 - 0.06), (-0.15, 0.15), (0.12, 0.4), Finish("plain", ACCENTS[int(rng.integers(len(ACCENTS)))])
    )
    return model


def cabinet(rng: np.random.Generator, style: FurnitureStyle) -> ObjectModel:
    """A sideboard."""
    w, d, h = rng.uniform(1.1, 1.6), 0.45, rng.uniform(0.82, 0.95)
    model = ObjectModel("cabinet", w, d)
    model.legs((0.0, 0.14), 0.022, shade(style.second_wood))
    model.box(model.x_span, (-d / 2, d / 2 - 0.025), (0.14, h), style.second_wood)
    model.drawers(model.x_span, (0.15, h - 0.02), 3, 1, shade(style.second_wood, 1.12), BRASS)
    model.surface(model.x_span, (-d / 2, d / 2 - 0.025), h)
    return model


def bench(rng: np.random.Generator, style: FurnitureStyle) -> ObjectModel:
    """A narrow bench for hallways and bed ends."""
    w, d, h = rng.uniform(0.8, 1.1), 0.36, 0.46
    model = ObjectModel("bench", w, d)
    model.legs((0.0, h - 0.06), 0.022, style.second_wood)
    model.box(model.x_span, model.y_span, (h - 0.06, h), style.fabric)
    model.surface(model.x_span, model.y_span, h)
    return model


def floor_lamp() -> ObjectModel:
    """A lamp on a pole."""
    model = ObjectModel("lamp", 0.36, 0.36)
    model.cylinder(0.0, 0.0, (0.0, 0.025), 0.14, DARK_METAL)
    model.cylinder(0.0, 0.0, (0.025, 1.34), 0.014, DARK_METAL)
    model.cylinder(0.0, 0.0, (1.34, 1.6), 0.18, Finish("paper", (250, 238, 204)))
    return model


def plant(rng: np.random.Generator) -> ObjectModel:
    """A plant in a pot."""
    r, h = rng.uniform(0.16, 0.22), rng.uniform(0.8, 1.5)
    model = ObjectModel("plant", 2 * r + 0.1, 2 * r + 0.1)
    model.cylinder(0.0, 0.0, (0.0, 0.3), 0.75 * r, Finish("ceramic", ACCENTS[int(rng.integers(len(ACCENTS)))]))
    model.cylinder(0.0, 0.0, (0.3, h - 0.2), 0.02, Finish("wood", (96, 72, 46)))
    for k in range(5):
        angle = 2.4 * k
        z = h - 0.16 - 0.09 * k if h > 0.9 else h - 0.16 - 0.05 * k
        size = 0.5 * r + 0.02 * (k % 2)
        green = LEAF_GREENS[int(rng.integers(3))]
        model.ellipsoid(
            (0.4 * r * np.cos(angle), 0.4 * r * np.sin(angle), z), (size, size, 0.13), Finish("leaves", green)
        )
    return model


def waste_bin(rng: np.random.Generator) -> ObjectModel:
    """A round bin."""
    model = ObjectModel("bin", 0.3, 0.3)
    model.cylinder(0.0, 0.0, (0.0, 0.36), 0.14, Finish("metal", ACCENTS[int(rng.integers(len(ACCENTS)))]))
    model.cylinder(0.0, 0.0, (0.36, 0.38), 0.15, Finish("plain", BLACK))
    return model


def hamper(style: FurnitureStyle) -> ObjectModel:
    """A basket with clothes in it."""
    model = ObjectModel("box", 0.46, 0.38)
    model.box((-0.23, 0.23), (-0.19, 0.19), (0.0, 0.5), Finish("stripes", (196, 168, 128)))
    model.begin_instance("clothing")
    model.ellipsoid((0.0, 0.0, 0.56), (0.2, 0.16, 0.06), style.accent)
    return model


def rug(rng: np.random.Generator, *, width: float, depth: float) -> ObjectModel:
    """A flat rug of material "carpet" with a border; 1.2 cm high, so robots drive over it."""
    model = ObjectModel("rug", width, depth)
    colour = RUG_COLOURS[int(rng.integers(len(RUG_COLOURS)))]
    model.box(model.x_span, model.y_span, (0.0, 0.008), shade(Finish("carpet", colour), 0.7))
    inner = Finish("stripes" if rng.random() < 0.4 else "carpet", colour)
    model.box(model.x_inside(0.09), model.y_inside(0.09), (0.008, 0.012), inner)
    return model


def painting(rng: np.random.Generator) -> ObjectModel:
    """A framed picture of a landscape or of blocks of colour; its z = 0 is its lower edge."""
    w, h = rng.uniform(0.45, 0.95), rng.uniform(0.4, 0.7)
    model = ObjectModel("painting", w, 0.035)
    model.box(model.x_span, (-0.0175, 0.0025), (0.0, h), Finish("wood", (60, 46, 36)))
    x = model.x_inside(0.04)
    z = (0.04, h - 0.04)
    horizon = z[0] + rng.uniform(0.3, 0.6) * (z[1] - z[0])
    colours = rng.permutation(len(ACCENTS))
    sky, ground, spot = (ACCENTS[int(k)] for k in colours[:3])
    model.box(x, (0.0025, 0.0075), (horizon, z[1]), Finish("paper", sky))
    model.box(x, (0.0025, 0.0075), (z[0], horizon), Finish("paper", ground))
    radius = 0.13 * (z[1] - z[0]) + 0.03
    model.ellipsoid(
        (rng.uniform(-0.25, 0.25) * w, 0.0075, horizon + 0.05), (radius, 0.01, radius), Finish("paper", spot)
    )
    return model


def wall_clock() -> ObjectModel:
    """A round clock; its z = 0 is its lower edge."""
    model = ObjectModel("clock", 0.32, 0.06)
    model.ellipsoid((0.0, -0.01, 0.16), (0.16, 0.02, 0.16), Finish("plain", BLACK))
    model.ellipsoid((0.0, 0.0, 0.16), (0.14, 0.018, 0.14), Finish("paper", WHITE))
    model.box((-0.006, 0.006), (0.018, 0.024), (0.16, 0.27), Finish("plain", BLACK))
    model.box((0.0, 0.08), (0.018, 0.024), (0.154, 0.166), Finish("plain", BLACK))
    return model


def curtain(style: FurnitureStyle) -> ObjectModel:
    """Half a curtain, pulled aside; its z = 0 is its lower edge."""
    model = ObjectModel("curtain", 0.3, 0.07)
    for k in range(4):
        finish = shade(Finish("fabric", style.accent.colour), 1.0 if k % 2 else 0.86)
        model.box((-0.15 + 0.075 * k, -0.15 + 0.075 * (k + 1)), (-0.02, 0.015 + 0.012 * (k % 2)), (0.0, 1.36), finish)
    return model
