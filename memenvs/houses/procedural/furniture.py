"""Models of furniture for living, dining, working and sleeping.

Kitchens, bathrooms, shelves and decoration are in `fixtures`. In each function `w`, `d` and `h` are width (x), depth
(y, from back to front) and height (z) of the piece in metres; see `memenvs.houses.object_model` for the frame.
"""

from __future__ import annotations

import numpy as np

from memenvs.houses.house import Finish
from memenvs.houses.object_model import ObjectModel
from memenvs.houses.procedural.finishes import BLACK, BRASS, DARK_METAL, METAL, FurnitureStyle, shade


def bed(rng: np.random.Generator, style: FurnitureStyle, *, is_double: bool) -> ObjectModel:
    """A bed with its head at the back."""
    w = rng.uniform(1.45, 1.8) if is_double else rng.uniform(0.95, 1.1)
    d = 2.08
    head = rng.uniform(0.9, 1.15)
    model = ObjectModel("bed", w, d)
    sheet = Finish("fabric", (236, 234, 228))
    blanket = style.accent if rng.random() < 0.6 else style.fabric
    model.box(model.x_span, (-d / 2, -d / 2 + 0.06), (0.0, head), style.wood)
    model.legs((0.0, 0.12), 0.035, shade(style.wood), 0.06)
    model.box(model.x_span, (-d / 2 + 0.06, d / 2), (0.12, 0.3), style.wood)
    model.box(model.x_inside(0.03), (-d / 2 + 0.06, d / 2 - 0.03), (0.3, 0.48), sheet)
    fold = -d / 2 + 0.62
    model.box(model.x_inside(0.005), (fold, d / 2 - 0.005), (0.33, 0.53), Finish("fabric", blanket.colour))
    model.box(model.x_inside(0.005), (fold, fold + 0.22), (0.53, 0.55), sheet)
    for x in (-w / 4, w / 4) if is_double else (0.0,):
        model.begin_instance("pillow")
        model.ellipsoid((x, -d / 2 + 0.33, 0.55), (min(0.33, w / 4 - 0.02) if is_double else 0.33, 0.2, 0.07), sheet)
    return model


def nightstand(rng: np.random.Generator, style: FurnitureStyle, *, has_lamp: bool) -> ObjectModel:
    """A nightstand with one or two drawers, perhaps a lamp at its back."""
    w, d, h = rng.uniform(0.42, 0.52), 0.42, rng.uniform(0.48, 0.6)
    model = ObjectModel("nightstand", w, d)
    model.legs((0.0, 0.1), 0.02, shade(style.wood), 0.04)
    model.box(model.x_inside(0.01), (-d / 2, d / 2 - 0.025), (0.1, h - 0.025), style.wood)
    model.box(model.x_span, model.y_span, (h - 0.025, h), shade(style.wood, 0.85))
    model.drawers(model.x_inside(0.01), (0.11, h - 0.03), 1, 2, shade(style.wood, 1.15), BRASS)
    model.surface(model.x_span, (-d / 2 + (0.22 if has_lamp else 0.0), d / 2), h)
    if has_lamp:
        table_lamp(model, 0.0, -d / 2 + 0.11, h, style)
    return model


def table_lamp(model: ObjectModel, x: float, y: float, z: float, style: FurnitureStyle) -> None:
    """Add a small lamp to a model."""
    model.begin_instance("lamp")
    model.cylinder(x, y, (z, z + 0.02), 0.06, BRASS)
    model.cylinder(x, y, (z + 0.02, z + 0.2), 0.015, BRASS)
    model.cylinder(x, y, (z + 0.2, z + 0.38), 0.1, Finish("paper", (250, 236, 196)))


def wardrobe(rng: np.random.Generator, style: FurnitureStyle) -> ObjectModel:
    """A tall wardrobe with two or three doors."""
    doors = int(rng.integers(2, 4))
    w, d, h = 0.52 * doors + rng.uniform(0.0, 0.1), 0.6, rng.uniform(1.95, 2.2)
    model = ObjectModel("wardrobe", w, d)
    model.box(model.x_span, (-d / 2, d / 2 - 0.05), (0.0, h), style.wood)
    for k in range(doors):
        x0 = -w / 2 + k * w / doors
        model.box(
            (x0 + 0.008, x0 + w / doors - 0.008),
            (d / 2 - 0.05, d / 2 - 0.03),
            (0.08, h - 0.03),
            shade(style.wood, 1.12),
        )
        side = x0 + w / doors - 0.05 if k % 2 == 0 else x0 + 0.05
        model.box((side - 0.01, side + 0.01), (d / 2 - 0.03, d / 2), (0.95, 1.2), METAL)
    return model


def dresser(rng: np.random.Generator, style: FurnitureStyle) -> ObjectModel:
    """A chest of drawers."""
    w, d, h = rng.uniform(0.9, 1.35), 0.48, rng.uniform(0.8, 1.0)
    model = ObjectModel("dresser", w, d)
    model.box(model.x_inside(0.01), (-d / 2, d / 2 - 0.025), (0.06, h - 0.03), style.wood)
    model.box(model.x_inside(0.03), (-d / 2, d / 2 - 0.05), (0.0, 0.06), shade(style.wood))
    model.box(model.x_span, model.y_span, (h - 0.03, h), shade(style.wood, 0.85))
    model.drawers(model.x_inside(0.01), (0.08, h - 0.04), 2, 3, shade(style.wood, 1.12), BRASS)
    model.surface(model.x_span, model.y_span, h)
    return model


def desk(rng: np.random.Generator, style: FurnitureStyle, *, has_computer: bool) -> ObjectModel:
    """A desk with drawers on its right, perhaps a computer."""
    w, d, h = rng.uniform(1.2, 1.5), rng.uniform(0.62, 0.72), 0.74
    model = ObjectModel("desk", w, d)
    model.box(model.x_span, model.y_span, (h - 0.035, h), style.wood)
    model.box((-w / 2 + 0.02, -w / 2 + 0.06), (-d / 2 + 0.02, d / 2 - 0.03), (0.0, h - 0.035), style.second_wood)
    model.box((w / 2 - 0.4, w / 2 - 0.02), (-d / 2 + 0.02, d / 2 - 0.03), (0.06, h - 0.035), style.second_wood)
    model.drawers((w / 2 - 0.4, w / 2 - 0.02), (0.08, h - 0.05), 1, 3, shade(style.second_wood, 1.1), METAL)
    model.box((w / 2 - 0.38, w / 2 - 0.04), (-d / 2 + 0.04, d / 2 - 0.06), (0.0, 0.06), shade(style.second_wood))
    if has_computer:
        model.begin_instance("computer")
        x = -0.12
        model.box((x - 0.12, x + 0.12), (-d / 2 + 0.06, -d / 2 + 0.22), (h, h + 0.015), DARK_METAL)
        model.box((x - 0.02, x + 0.02), (-d / 2 + 0.1, -d / 2 + 0.13), (h + 0.015, h + 0.2), DARK_METAL)
        model.box((x - 0.3, x + 0.3), (-d / 2 + 0.13, -d / 2 + 0.16), (h + 0.1, h + 0.46), Finish("plain", BLACK))
        model.box(
            (x - 0.285, x + 0.285),
            (-d / 2 + 0.16, -d / 2 + 0.165),
            (h + 0.115, h + 0.445),
            Finish("screen", (70, 120, 190)),
        )
        model.box((x - 0.2, x + 0.2), (-d / 2 + 0.3, -d / 2 + 0.43), (h, h + 0.02), Finish("plain", (60, 62, 66)))
        model.surface((x + 0.34, w / 2), model.y_span, h)
        model.surface((-w / 2, x - 0.32), model.y_span, h)
    else:
        model.surface(model.x_span, model.y_span, h)
    return model


def chair(style: FurnitureStyle) -> ObjectModel:
    """A dining chair; its backrest is at the back."""
    w, d, seat, h = 0.43, 0.46, 0.45, 0.92
    model = ObjectModel("chair", w, d)
    model.legs((0.0, seat - 0.03), 0.02, style.second_wood, 0.03)
    model.box(model.x_span, model.y_span, (seat - 0.03, seat), style.second_wood)
    model.box(model.x_inside(0.02), (-d / 2 + 0.04, d / 2 - 0.02), (seat, seat + 0.025), style.fabric)
    for x in model.x_inside(0.02):
        model.box((x - 0.018, x + 0.018), (-d / 2, -d / 2 + 0.035), (seat, h), style.second_wood)
    for z in (0.6, 0.76):
        model.box(model.x_inside(0.038), (-d / 2 + 0.005, -d / 2 + 0.03), (z, z + 0.1), style.second_wood)
    return model


def office_chair(style: FurnitureStyle) -> ObjectModel:
    """A swivel chair on a base of two crossed bars."""
    w, d, h = 0.56, 0.56, 1.02
    model = ObjectModel("office_chair", w, d)
    model.box(model.x_span, (-0.03, 0.03), (0.03, 0.07), DARK_METAL)
    model.box((-0.03, 0.03), model.y_span, (0.03, 0.07), DARK_METAL)
    for x, y in ((-0.25, 0.0), (0.25, 0.0), (0.0, -0.25), (0.0, 0.25)):
        model.cylinder(x, y, (0.0, 0.03), 0.028, Finish("plain", BLACK))
    model.cylinder(0.0, 0.0, (0.07, 0.42), 0.03, METAL)
    model.box((-0.24, 0.24), (-0.22, 0.26), (0.42, 0.5), style.fabric)
    model.box((-0.03, 0.03), (-0.26, -0.22), (0.4, 0.62), DARK_METAL)
    model.box((-0.22, 0.22), (-0.26, -0.19), (0.58, h), style.fabric)
    return model


def sofa(rng: np.random.Generator, style: FurnitureStyle, *, seats: int) -> ObjectModel:
    """A sofa (two or three seats) or an armchair (one seat)."""
    w, d, h = 0.36 + 0.62 * seats, rng.uniform(0.85, 0.95), rng.uniform(0.8, 0.92)
    model = ObjectModel("armchair" if seats == 1 else "sofa", w, d)
    body = style.fabric
    cushion = shade(style.fabric, 1.15)
    model.legs((0.0, 0.1), 0.03, style.wood, 0.06)
    model.box(model.x_span, model.y_span, (0.1, 0.28), body)
    model.box(model.x_span, (-d / 2, -d / 2 + 0.2), (0.28, h), body)
    for side in (-1, 1):
        outer = side * w / 2
        inner = side * (w / 2 - 0.17)
        model.box((min(outer, inner), max(outer, inner)), (-d / 2 + 0.2, d / 2), (0.28, 0.6), body)
    seat_width = (w - 0.36) / seats
    for k in range(seats):
        x = -w / 2 + 0.18 + k * seat_width
        model.box((x + 0.008, x + seat_width - 0.008), (-d / 2 + 0.2, d / 2 - 0.01), (0.28, 0.43), cushion)
        model.box((x + 0.008, x + seat_width - 0.008), (-d / 2 + 0.2, -d / 2 + 0.32), (0.43, h - 0.05), cushion)
    for side in (-1, 1)[: 2 if seats > 1 else int(rng.integers(0, 2))]:
        model.begin_instance("pillow")
        model.ellipsoid((side * (w / 2 - 0.36), -d / 2 + 0.4, 0.58), (0.17, 0.08, 0.15), style.accent)
    return model


def coffee_table(rng: np.random.Generator, style: FurnitureStyle) -> ObjectModel:
    """A low table, rectangular or round, perhaps with books on it."""
    h = rng.uniform(0.41, 0.47)
    if rng.random() < 0.3:
        model = ObjectModel("coffee_table", 0.8, 0.8)
        model.cylinder(0.0, 0.0, (h - 0.04, h), 0.4, style.wood)
        model.cylinder(0.0, 0.0, (0.03, h - 0.04), 0.05, DARK_METAL)
        model.cylinder(0.0, 0.0, (0.0, 0.03), 0.24, DARK_METAL)
        model.surface((-0.28, 0.28), (-0.28, 0.28), h)
        return model
    w, d = rng.uniform(0.95, 1.25), rng.uniform(0.5, 0.65)
    model = ObjectModel("coffee_table", w, d)
    model.box(model.x_span, model.y_span, (h - 0.04, h), style.wood)
    model.legs((0.0, h - 0.04), 0.028, shade(style.wood))
    model.box(model.x_inside(0.04), model.y_inside(0.04), (0.14, 0.16), style.wood)
    left = -w / 2
    if rng.random() < 0.6:
        model.begin_instance("book")
        model.box((-w / 2 + 0.08, -w / 2 + 0.32), (-0.1, 0.08), (h, h + 0.03), style.accent)
        model.box((-w / 2 + 0.1, -w / 2 + 0.3), (-0.08, 0.07), (h + 0.03, h + 0.055), Finish("paper", (70, 90, 120)))
        left += 0.34
    model.surface((left, w / 2), model.y_span, h)
    return model


def side_table(rng: np.random.Generator, style: FurnitureStyle, *, has_lamp: bool) -> ObjectModel:
    """A small round table."""
    h, r = rng.uniform(0.5, 0.62), rng.uniform(0.23, 0.28)
    model = ObjectModel("side_table", 2 * r, 2 * r)
    model.cylinder(0.0, 0.0, (h - 0.025, h), r, style.second_wood)
    model.cylinder(0.0, 0.0, (0.02, h - 0.025), 0.03, shade(style.second_wood))
    model.cylinder(0.0, 0.0, (0.0, 0.02), 0.7 * r, shade(style.second_wood))
    if has_lamp:
        table_lamp(model, 0.0, -r + 0.11, h, style)
        model.surface((-0.7 * r, 0.7 * r), (-r + 0.22, 0.65 * r), h)
    else:
        model.surface((-0.7 * r, 0.7 * r), (-0.7 * r, 0.7 * r), h)
    return model


def table(rng: np.random.Generator, style: FurnitureStyle, *, width: float, depth: float) -> ObjectModel:
    """A dining table with four legs, perhaps with a vase in the middle."""
    h = 0.75
    model = ObjectModel("dining_table", width, depth)
    model.box(model.x_span, model.y_span, (h - 0.04, h), style.wood)
    model.legs((0.0, h - 0.04), 0.035, style.wood, 0.05)
    model.box(model.x_inside(0.08), model.y_inside(0.06), (h - 0.09, h - 0.04), shade(style.wood, 0.9))
    if width > 1.15 and rng.random() < 0.7:
        vase(model, 0.0, 0.0, h, style)
        model.surface((-width / 2, -0.12), model.y_span, h)
        model.surface((0.12, width / 2), model.y_span, h)
    else:
        model.surface(model.x_span, model.y_span, h)
    return model


def vase(model: ObjectModel, x: float, y: float, z: float, style: FurnitureStyle) -> None:
    """Add a vase with flowers to a model."""
    model.begin_instance("vase")
    model.cylinder(x, y, (z, z + 0.16), 0.05, Finish("ceramic", style.accent.colour))
    model.cylinder(x, y, (z + 0.16, z + 0.28), 0.01, Finish("leaves", (70, 120, 60)))
    for dx, dy, dz, colour in (
        (0.0, 0.03, 0.33, (232, 96, 110)),
        (0.05, -0.03, 0.3, (244, 200, 80)),
        (-0.05, -0.02, 0.31, (236, 236, 240)),
    ):
        model.ellipsoid((x + dx, y + dy, z + dz), (0.045, 0.045, 0.045), Finish("leaves", colour))


def tv_stand(
    rng: np.random.Generator, style: FurnitureStyle, *, width: float | None = None, has_television: bool = True
) -> ObjectModel:
    """A low cabinet with a television on it, 1.4 to 1.9 m wide if no width is given."""
    w, d, h = rng.uniform(1.4, 1.9) if width is None else width, 0.45, rng.uniform(0.46, 0.55)
    model = ObjectModel("tv_stand", w, d)
    model.legs((0.0, 0.1), 0.025, shade(style.wood))
    model.box(model.x_span, (-d / 2, d / 2 - 0.025), (0.1, h), style.wood)
    model.drawers(model.x_span, (0.11, h - 0.02), 3, 1, shade(style.wood, 1.12), METAL)
    if not has_television:
        model.surface(model.x_span, (-d / 2, d / 2 - 0.025), h)
        return model
    model.begin_instance("television")
    tv = rng.uniform(0.95, 1.25)
    z0, z1 = h + 0.06, h + 0.06 + 0.56 * tv
    model.box((-0.2, 0.2), (-0.16, 0.02), (h, h + 0.015), Finish("plain", BLACK))
    model.box((-0.04, 0.04), (-0.1, -0.05), (h + 0.015, z0), Finish("plain", BLACK))
    model.box((-tv / 2, tv / 2), (-0.11, -0.06), (z0, z1), Finish("plain", BLACK))
    model.box((-tv / 2 + 0.02, tv / 2 - 0.02), (-0.06, -0.055), (z0 + 0.03, z1 - 0.02), Finish("screen", (36, 44, 62)))
    model.surface((tv / 2 + 0.02 if w - tv > 0.4 else 0.22, w / 2), (-0.04, d / 2 - 0.025), h)
    model.surface((-w / 2, -tv / 2 - 0.02 if w - tv > 0.4 else -0.22), (-0.04, d / 2 - 0.025), h)
    return model
