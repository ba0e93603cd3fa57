"""Kitchens, bathrooms, shelves and decoration, as `Model`s; see `memenvs.houses.procedural.furniture_model` for the frame."""

from __future__ import annotations

import numpy as np

from memenvs.houses.procedural.furniture_model import (  # fmt: skip
    ACCENTS,
    BLACK,
    BRASS,
    DARK_METAL,
    FABRICS,
    METAL,
    STEEL,
    WHITE,
    Look,
    Model,
    Style,
    darker,
    drawers,
)

CERAMIC = Look("ceramic", (244, 244, 242))
CHROME = Look("metal", (206, 210, 214))
LEAVES = ((62, 118, 58), (84, 140, 66), (48, 100, 70))


def counter(rng: np.random.Generator, style: Style, *, width: float, has_sink: bool, has_microwave: bool) -> Model:
    """A kitchen base cabinet with a worktop, perhaps with a sink on its left or a microwave on its right."""
    w, d, h = width, 0.62, 0.9
    m = Model("counter", w, d)
    m.box((-w / 2, w / 2), (-d / 2, d / 2 - 0.07), (0.0, 0.1), Look("plain", BLACK))
    m.box((-w / 2, w / 2), (-d / 2, d / 2 - 0.045), (0.1, 0.7 if has_sink else h - 0.04), style.counter)
    drawers(m, (-w / 2, w / 2), (0.11, h - 0.06), max(1, round(w / 0.5)), 1, darker(style.counter, 1.06), METAL)
    left, right = -w / 2, w / 2
    if has_sink:
        basin = -w / 2 + 0.08, -w / 2 + 0.58
        y = -d / 2 + 0.12, d / 2 - 0.1
        m.box((basin[1], w / 2), (-d / 2, d / 2), (h - 0.04, h), style.top)
        m.box((-w / 2, basin[0]), (-d / 2, d / 2), (h - 0.04, h), style.top)
        m.box(basin, (-d / 2, y[0]), (h - 0.04, h), style.top)
        m.box(basin, (y[1], d / 2), (h - 0.04, h), style.top)
        m.box((-w / 2, w / 2), (d / 2 - 0.06, d / 2 - 0.045), (0.7, h - 0.04), style.counter)
        m.thing("sink")
        m.box(basin, y, (0.7, 0.72), Look("metal", STEEL))
        for x in basin:
            m.box(
                (min(x, x - 0.01 * np.sign(x - sum(basin) / 2)), max(x, x - 0.01 * np.sign(x - sum(basin) / 2))),
                y,
                (0.72, h),
                CHROME,
            )
        middle = sum(basin) / 2
        m.cylinder(middle, -d / 2 + 0.06, (h, h + 0.26), 0.014, CHROME)
        m.box((middle - 0.012, middle + 0.012), (-d / 2 + 0.06, -d / 2 + 0.24), (h + 0.24, h + 0.264), CHROME)
        left = basin[1] + 0.02
    else:
        m.box((-w / 2, w / 2), (-d / 2, d / 2), (h - 0.04, h), style.top)
    if has_microwave:
        m.thing("microwave")
        m.box((w / 2 - 0.52, w / 2 - 0.04), (-d / 2 + 0.02, -d / 2 + 0.38), (h, h + 0.28), Look("metal", STEEL))
        m.box(
            (w / 2 - 0.5, w / 2 - 0.18),
            (-d / 2 + 0.38, -d / 2 + 0.39),
            (h + 0.03, h + 0.25),
            Look("plain", (26, 28, 32)),
        )
        m.box((w / 2 - 0.15, w / 2 - 0.06), (-d / 2 + 0.38, -d / 2 + 0.39), (h + 0.03, h + 0.25), Look("plain", BLACK))
        right = w / 2 - 0.55
    elif right - left > 0.7 and rng.random() < 0.6:
        m.thing("kitchenware")
        m.cylinder(right - 0.15, -d / 2 + 0.14, (h, h + 0.18), 0.08, Look("ceramic", style.accent.colour))
        for dx in (-0.03, 0.0, 0.035):
            m.cylinder(
                right - 0.15 + dx, -d / 2 + 0.14 + dx / 2, (h + 0.18, h + 0.32), 0.01, Look("wood", (190, 150, 100))
            )
        right -= 0.28
    if right - left > 0.25:
        m.surface((left, right), (-d / 2, d / 2), h, 0.5)
    return m


def stove(style: Style) -> Model:
    """A cooker with an oven and four plates, and a hood above it."""
    w, d, h = 0.6, 0.62, 0.9
    m = Model("stove", w, d)
    body = Look("metal", STEEL)
    m.box((-w / 2, w / 2), (-d / 2, d / 2 - 0.04), (0.0, h - 0.02), body)
    m.box((-w / 2, w / 2), (-d / 2, d / 2 - 0.02), (h - 0.02, h), Look("plain", BLACK))
    m.box((-w / 2 + 0.04, w / 2 - 0.04), (d / 2 - 0.04, d / 2 - 0.025), (0.2, 0.66), Look("plain", (28, 28, 32)))
    m.box((-w / 2 + 0.06, w / 2 - 0.06), (d / 2 - 0.025, d / 2), (0.68, 0.7), CHROME)
    for k in range(4):
        m.ellipsoid((-0.21 + 0.14 * k, d / 2 - 0.03, 0.8), (0.025, 0.025, 0.025), Look("plain", BLACK))
    for x in (-0.15, 0.15):
        for y, r in ((-0.15, 0.085), (0.13, 0.1)):
            m.cylinder(x, y, (h, h + 0.008), r, Look("plain", (70, 66, 66)))
    m.box((-w / 2, w / 2), (-d / 2, d / 2 - 0.15), (1.62, 1.72), body)
    m.box((-0.14, 0.14), (-d / 2, -d / 2 + 0.26), (1.72, 2.3), darker(style.counter, 0.98))
    return m


def refrigerator(rng: np.random.Generator) -> Model:
    """A tall refrigerator with a freezer door below."""
    w, d, h = 0.7, 0.68, rng.uniform(1.75, 1.95)
    m = Model("refrigerator", w, d)
    look = Look("metal", STEEL) if rng.random() < 0.6 else Look("plain", WHITE)
    m.box((-w / 2, w / 2), (-d / 2, d / 2 - 0.1), (0.02, h), darker(look, 0.85))
    m.box((-w / 2 + 0.03, w / 2 - 0.03), (-d / 2 + 0.03, d / 2 - 0.14), (0.0, 0.02), DARK_METAL)
    m.box((-w / 2, w / 2), (d / 2 - 0.1, d / 2 - 0.04), (0.04, 0.62), look)
    m.box((-w / 2, w / 2), (d / 2 - 0.1, d / 2 - 0.04), (0.64, h), look)
    for z in ((0.3, 0.58), (0.72, 1.2)):
        m.box((-w / 2 + 0.04, -w / 2 + 0.07), (d / 2 - 0.04, d / 2), z, DARK_METAL)
    return m


def wall_cabinet(style: Style, *, width: float) -> Model:
    """A cabinet that hangs above a counter; its z = 0 is at the floor."""
    w, d = width, 0.34
    m = Model("cabinet", w, d)
    m.box((-w / 2, w / 2), (-d / 2, d / 2 - 0.025), (1.5, 2.15), style.counter)
    drawers(m, (-w / 2, w / 2), (1.5, 2.15), max(1, round(w / 0.45)), 1, darker(style.counter, 1.06), METAL)
    return m


def toilet() -> Model:
    """A toilet with a tank at its back."""
    w, d, h = 0.4, 0.7, 0.8
    m = Model("toilet", w, d)
    m.box((-0.2, 0.2), (-d / 2, -d / 2 + 0.19), (0.38, 0.78), CERAMIC)
    m.box((-0.2, 0.2), (-d / 2, -d / 2 + 0.19), (0.78, h), darker(CERAMIC, 0.94))
    m.box((-0.11, 0.11), (-d / 2 + 0.02, 0.12), (0.0, 0.3), CERAMIC)
    m.ellipsoid((0.0, 0.1, 0.28), (0.18, 0.24, 0.14), CERAMIC)
    m.box((-0.18, 0.18), (-d / 2 + 0.19, 0.05), (0.3, 0.4), CERAMIC)
    m.cylinder(0.0, 0.13, (0.36, 0.4), 0.19, CERAMIC)
    m.cylinder(0.0, 0.13, (0.4, 0.425), 0.2, darker(CERAMIC, 0.97))
    m.cylinder(0.0, 0.13, (0.425, 0.43), 0.13, Look("plain", (120, 150, 160)))
    return m


def bathtub(rng: np.random.Generator) -> Model:
    """A bathtub filled with water."""
    w, d, h = rng.uniform(1.5, 1.7), 0.75, 0.55
    m = Model("bathtub", w, d)
    rim = 0.07
    m.box((-w / 2, w / 2), (-d / 2, -d / 2 + rim), (0.0, h), CERAMIC)
    m.box((-w / 2, w / 2), (d / 2 - rim, d / 2), (0.0, h), CERAMIC)
    m.box((-w / 2, -w / 2 + rim), (-d / 2 + rim, d / 2 - rim), (0.0, h), CERAMIC)
    m.box((w / 2 - rim, w / 2), (-d / 2 + rim, d / 2 - rim), (0.0, h), CERAMIC)
    m.box((-w / 2 + rim, w / 2 - rim), (-d / 2 + rim, d / 2 - rim), (0.0, 0.36), Look("glass", (150, 200, 214)))
    m.cylinder(-w / 2 + 0.035, 0.0, (h, h + 0.12), 0.02, CHROME)
    m.box((-w / 2 + 0.035, -w / 2 + 0.2), (-0.015, 0.015), (h + 0.1, h + 0.13), CHROME)
    return m


def shower() -> Model:
    """A shower tray with a glass wall on its right."""
    w, d = 0.9, 0.9
    m = Model("shower", w, d)
    m.box((-w / 2, w / 2), (-d / 2, d / 2), (0.0, 0.12), CERAMIC)
    m.box((w / 2 - 0.02, w / 2), (-d / 2, d / 2), (0.12, 1.95), Look("glass", (190, 218, 222)))
    m.cylinder(0.0, -d / 2 + 0.04, (0.9, 2.05), 0.014, CHROME)
    m.box((-0.012, 0.012), (-d / 2 + 0.04, -d / 2 + 0.28), (2.03, 2.06), CHROME)
    m.cylinder(0.0, -d / 2 + 0.28, (2.0, 2.03), 0.1, CHROME)
    m.cylinder(0.0, 0.0, (0.12, 0.125), 0.05, Look("metal", (120, 120, 124)))
    return m


def vanity(rng: np.random.Generator, style: Style) -> Model:
    """A bathroom sink in a cabinet, with a mirror above it."""
    w, d, h = rng.uniform(0.8, 1.15), 0.5, 0.84
    m = Model("sink", w, d)
    m.box((-w / 2 + 0.02, w / 2 - 0.02), (-d / 2, d / 2 - 0.04), (0.12, h - 0.05), style.counter)
    drawers(m, (-w / 2 + 0.02, w / 2 - 0.02), (0.14, h - 0.06), 2, 1, darker(style.counter, 1.06), METAL)
    m.box((-w / 2 + 0.06, w / 2 - 0.06), (-d / 2, d / 2 - 0.1), (0.0, 0.12), Look("plain", BLACK))
    m.box((-w / 2, w / 2), (-d / 2, d / 2), (h - 0.05, h), style.top)
    x = -w / 2 + 0.28
    m.cylinder(x, 0.02, (h, h + 0.1), 0.19, CERAMIC)
    m.cylinder(x, 0.02, (h + 0.1, h + 0.105), 0.16, Look("plain", (150, 170, 178)))
    m.cylinder(x, -d / 2 + 0.035, (h, h + 0.24), 0.014, CHROME)
    m.box((x - 0.012, x + 0.012), (-d / 2 + 0.035, -d / 2 + 0.17), (h + 0.22, h + 0.244), CHROME)
    m.surface((x + 0.22, w / 2), (-d / 2, d / 2), h, 0.8)
    m.thing("mirror")
    m.box((-w / 2 + 0.05, w / 2 - 0.05), (-d / 2, -d / 2 + 0.02), (1.15, 1.95), Look("metal", (150, 150, 150)))
    m.box((-w / 2 + 0.08, w / 2 - 0.08), (-d / 2 + 0.02, -d / 2 + 0.025), (1.18, 1.92), Look("glass", (204, 220, 226)))
    return m


def washing_machine() -> Model:
    """A washing machine with a round door."""
    w, d, h = 0.6, 0.62, 0.86
    m = Model("washing_machine", w, d)
    m.box((-w / 2, w / 2), (-d / 2, d / 2 - 0.04), (0.0, h), Look("plain", WHITE))
    m.box(
        (-w / 2 + 0.02, w / 2 - 0.02),
        (d / 2 - 0.04, d / 2 - 0.03),
        (h - 0.14, h - 0.03),
        Look("plain", (206, 210, 214)),
    )
    m.box((0.06, 0.24), (d / 2 - 0.03, d / 2 - 0.025), (h - 0.12, h - 0.05), Look("plain", (40, 60, 80)))
    m.ellipsoid((0.0, d / 2 - 0.04, 0.42), (0.2, 0.04, 0.2), CHROME)
    m.ellipsoid((0.0, d / 2 - 0.03, 0.42), (0.15, 0.03, 0.15), Look("glass", (60, 80, 96)))
    m.surface((-w / 2, w / 2), (-d / 2, d / 2 - 0.04), h)
    return m


def bookshelf(rng: np.random.Generator, style: Style, *, is_low: bool) -> Model:
    """An open shelf with books; some boards are left free."""
    boards = 3 if is_low else 5
    w, d = rng.uniform(0.8, 1.2), 0.32
    pitch = rng.uniform(0.34, 0.38)
    h = 0.08 + boards * pitch + 0.025
    m = Model("bookshelf", w, d)
    m.box((-w / 2, w / 2), (-d / 2, -d / 2 + 0.015), (0.0, h), darker(style.wood, 0.85))
    for x in (-w / 2, w / 2 - 0.025):
        m.box((x, x + 0.025), (-d / 2 + 0.015, d / 2), (0.0, h), style.wood)
    inner = -w / 2 + 0.025, w / 2 - 0.025
    free = set(rng.choice(boards, 1 if is_low else 2, replace=False).tolist())
    for k in range(boards + 1):
        z = 0.08 + k * pitch
        m.box(inner, (-d / 2 + 0.015, d / 2), (z, z + 0.025), style.wood)
    m.box(inner, (-d / 2 + 0.015, d / 2 - 0.02), (0.0, 0.08), style.wood)
    for k in range(boards):
        z = 0.08 + k * pitch + 0.025
        if k in free and 0.4 <= z <= 1.5:
            m.surface(inner, (-d / 2 + 0.02, d / 2), z, pitch - 0.03)
            continue
        m.thing("book")
        end = inner[0] + (inner[1] - inner[0]) * rng.uniform(0.55, 1.0)
        m.box(
            (inner[0], end),
            (-d / 2 + 0.02, d / 2 - 0.05),
            (z, z + rng.uniform(0.6, 0.85) * pitch),
            Look("books", (150, 90, 70)),
        )
    if h <= 1.5:
        m.surface((-w / 2, w / 2), (-d / 2, d / 2), h)
    return m


def shelf(rng: np.random.Generator) -> Model:
    """An open metal shelf with boxes, for kitchens and laundries."""
    w, d, h = rng.uniform(0.75, 1.0), 0.4, 1.42
    m = Model("shelf", w, d)
    m.legs((0.0, h - 0.02), 0.015, DARK_METAL, 0.02)
    for k, z in enumerate((0.12, 0.55, 0.98, h)):
        m.box((-w / 2, w / 2), (-d / 2, d / 2), (z - 0.02, z), Look("metal", (120, 124, 128)))
        if k > 0:
            m.surface((-w / 2 + 0.04, w / 2 - 0.04), (-d / 2 + 0.04, d / 2 - 0.04), z, 0.38 if z < h else 1.0)
    m.thing("box")
    m.box((-w / 2 + 0.06, -0.02), (-0.15, 0.15), (0.12, 0.36), Look("paper", (182, 142, 96)))
    m.box((0.04, w / 2 - 0.06), (-0.15, 0.15), (0.12, 0.4), Look("plain", ACCENTS[int(rng.integers(len(ACCENTS)))]))
    return m


def cabinet(rng: np.random.Generator, style: Style) -> Model:
    """A sideboard."""
    w, d, h = rng.uniform(1.1, 1.6), 0.45, rng.uniform(0.82, 0.95)
    m = Model("cabinet", w, d)
    m.legs((0.0, 0.14), 0.022, darker(style.second_wood))
    m.box((-w / 2, w / 2), (-d / 2, d / 2 - 0.025), (0.14, h), style.second_wood)
    drawers(m, (-w / 2, w / 2), (0.15, h - 0.02), 3, 1, darker(style.second_wood, 1.12), BRASS)
    m.surface((-w / 2, w / 2), (-d / 2, d / 2 - 0.025), h)
    return m


def bench(rng: np.random.Generator, style: Style) -> Model:
    """A narrow bench for hallways and bed ends."""
    w, d, h = rng.uniform(0.8, 1.1), 0.36, 0.46
    m = Model("bench", w, d)
    m.legs((0.0, h - 0.06), 0.022, style.second_wood)
    m.box((-w / 2, w / 2), (-d / 2, d / 2), (h - 0.06, h), style.fabric)
    m.surface((-w / 2, w / 2), (-d / 2, d / 2), h)
    return m


def floor_lamp() -> Model:
    """A lamp on a pole."""
    m = Model("lamp", 0.36, 0.36)
    m.cylinder(0.0, 0.0, (0.0, 0.025), 0.14, DARK_METAL)
    m.cylinder(0.0, 0.0, (0.025, 1.34), 0.014, DARK_METAL)
    m.cylinder(0.0, 0.0, (1.34, 1.6), 0.18, Look("paper", (250, 238, 204)))
    return m


def plant(rng: np.random.Generator) -> Model:
    """A plant in a pot."""
    r, h = rng.uniform(0.16, 0.22), rng.uniform(0.8, 1.5)
    m = Model("plant", 2 * r + 0.1, 2 * r + 0.1)
    m.cylinder(0.0, 0.0, (0.0, 0.3), 0.75 * r, Look("ceramic", ACCENTS[int(rng.integers(len(ACCENTS)))]))
    m.cylinder(0.0, 0.0, (0.3, h - 0.2), 0.02, Look("wood", (96, 72, 46)))
    for k in range(5):
        angle = 2.4 * k
        z = h - 0.16 - 0.09 * k if h > 0.9 else h - 0.16 - 0.05 * k
        size = 0.5 * r + 0.02 * (k % 2)
        green = LEAVES[int(rng.integers(3))]
        m.ellipsoid((0.4 * r * np.cos(angle), 0.4 * r * np.sin(angle), z), (size, size, 0.13), Look("leaves", green))
    return m


def waste_bin(rng: np.random.Generator) -> Model:
    """A round bin."""
    m = Model("bin", 0.3, 0.3)
    m.cylinder(0.0, 0.0, (0.0, 0.36), 0.14, Look("metal", ACCENTS[int(rng.integers(len(ACCENTS)))]))
    m.cylinder(0.0, 0.0, (0.36, 0.38), 0.15, Look("plain", BLACK))
    return m


def hamper(style: Style) -> Model:
    """A basket with clothes in it."""
    m = Model("box", 0.46, 0.38)
    m.box((-0.23, 0.23), (-0.19, 0.19), (0.0, 0.5), Look("stripes", (196, 168, 128)))
    m.thing("clothing")
    m.ellipsoid((0.0, 0.0, 0.56), (0.2, 0.16, 0.06), style.accent)
    return m


def rug(rng: np.random.Generator, *, width: float, depth: float) -> Model:
    """A flat rug with a border; 1.2 cm high, to be walked over."""
    m = Model("rug", width, depth)
    colour = (*FABRICS, *ACCENTS)[int(rng.integers(len(FABRICS) + len(ACCENTS)))]
    m.box((-width / 2, width / 2), (-depth / 2, depth / 2), (0.0, 0.008), darker(Look("carpet", colour), 0.7))
    inner = Look("stripes" if rng.random() < 0.4 else "carpet", colour)
    m.box((-width / 2 + 0.09, width / 2 - 0.09), (-depth / 2 + 0.09, depth / 2 - 0.09), (0.008, 0.012), inner)
    return m


def painting(rng: np.random.Generator) -> Model:
    """A framed picture of a landscape or of blocks of colour; its z = 0 is its lower edge."""
    w, h = rng.uniform(0.45, 0.95), rng.uniform(0.4, 0.7)
    m = Model("painting", w, 0.035)
    m.box((-w / 2, w / 2), (-0.0175, 0.0025), (0.0, h), Look("wood", (60, 46, 36)))
    x, z = (-w / 2 + 0.04, w / 2 - 0.04), (0.04, h - 0.04)
    cut = z[0] + rng.uniform(0.3, 0.6) * (z[1] - z[0])
    colours = rng.permutation(len(ACCENTS))
    sky, ground, spot = (ACCENTS[int(k)] for k in colours[:3])
    m.box(x, (0.0025, 0.0075), (cut, z[1]), Look("paper", sky))
    m.box(x, (0.0025, 0.0075), (z[0], cut), Look("paper", ground))
    radius = 0.13 * (z[1] - z[0]) + 0.03
    m.ellipsoid((rng.uniform(-0.25, 0.25) * w, 0.0075, cut + 0.05), (radius, 0.01, radius), Look("paper", spot))
    return m


def wall_clock() -> Model:
    """A round clock; its z = 0 is its lower edge."""
    m = Model("clock", 0.32, 0.06)
    m.ellipsoid((0.0, -0.01, 0.16), (0.16, 0.02, 0.16), Look("plain", BLACK))
    m.ellipsoid((0.0, 0.0, 0.16), (0.14, 0.018, 0.14), Look("paper", WHITE))
    m.box((-0.006, 0.006), (0.018, 0.024), (0.16, 0.27), Look("plain", BLACK))
    m.box((0.0, 0.08), (0.018, 0.024), (0.154, 0.166), Look("plain", BLACK))
    return m


def curtain(style: Style) -> Model:
    """Half a curtain, pulled aside; its z = 0 is its lower edge."""
    m = Model("curtain", 0.3, 0.07)
    for k in range(4):
        look = darker(Look("fabric", style.accent.colour), 1.0 if k % 2 else 0.86)
        m.box((-0.15 + 0.075 * k, -0.15 + 0.075 * (k + 1)), (-0.02, 0.015 + 0.012 * (k % 2)), (0.0, 1.36), look)
    return m
