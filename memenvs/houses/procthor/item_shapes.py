"""Shapes of ProcTHOR's small objects: each function fills the bounding box of one asset.

In each function `w` and `d` are half of the asset's width and depth, and `h` is its height, in metres: the box reaches
from -`w` to `w` along x, from -`d` (back) to `d` (front) along y, and from 0 to `h` along z.
"""

from __future__ import annotations

import zlib

from memenvs.houses.classes import PAINTING_MATERIALS
from memenvs.houses.house import Finish
from memenvs.houses.procthor.asset_model import (
    BARE_STEEL,
    BLACK_GLASS,
    BLACK_PLASTIC,
    BRASS,
    DARK,
    DARK_METAL,
    DARK_PLASTIC,
    WHITE_PAPER,
    WHITE_PLASTIC,
    AssetModel,
)


def block(asset: AssetModel) -> None:
    """One box."""
    asset.fill()


def ellipsoid(asset: AssetModel) -> None:
    """One ellipsoid."""
    h = asset.height
    asset.oval(asset.x_span, asset.y_span, (0, h))


def cylinder(asset: AssetModel) -> None:
    """One upright cylinder."""
    h = asset.height
    asset.column(1.0, (0, h))


def bottle(asset: AssetModel) -> None:
    """A body, a neck and a cap."""
    h = asset.height
    asset.column(1.0, (0, 0.65 * h))
    asset.column(0.45, (0.65 * h, 0.9 * h))
    asset.column(0.5, (0.9 * h, h), WHITE_PLASTIC)


def vase(asset: AssetModel) -> None:
    """A foot, a belly and a rim."""
    h = asset.height
    asset.column(0.6, (0, 0.15 * h))
    asset.oval(asset.x_span, asset.y_span, (0.05 * h, 0.8 * h))
    asset.column(0.5, (0.7 * h, h))


def bowl(asset: AssetModel) -> None:
    """A foot and a wide rim."""
    h = asset.height
    asset.column(0.55, (0, 0.4 * h))
    asset.column(1.0, (0.4 * h, h))


def candle(asset: AssetModel) -> None:
    """A stick on a foot."""
    h = asset.height
    asset.column(1.0, (0, 0.2 * h), BRASS)
    asset.column(0.6, (0.2 * h, h))


def statue(asset: AssetModel) -> None:
    """A plinth, a body and a head."""
    h = asset.height
    asset.box(asset.x_span, asset.y_span, (0, 0.12 * h), asset.shade(0.6))
    asset.oval(asset.x_part(0.7), asset.y_part(0.7), (0.1 * h, 0.75 * h))
    asset.oval(asset.x_part(0.4), asset.y_part(0.4), (0.7 * h, h))


def teddy(asset: AssetModel) -> None:
    """A body, a head and two ears."""
    w, _, h = asset.extents
    asset.oval(asset.x_span, asset.y_span, (0, 0.65 * h))
    asset.oval(asset.x_part(0.6), asset.y_part(0.7), (0.5 * h, 0.95 * h))
    for x in asset.x_part(0.45):
        asset.oval((x - 0.2 * w, x + 0.2 * w), asset.y_part(0.2), (0.82 * h, h), asset.shade(0.7))


def plant(asset: AssetModel) -> None:
    """A pot with leaves."""
    h = asset.height
    asset.column(0.6, (0, 0.35 * h), Finish("ceramic", (176, 98, 66)))
    asset.oval(asset.x_span, asset.y_span, (0.3 * h, h), Finish("leaves", (72, 116, 58)))


def hollow(asset: AssetModel) -> None:
    """A box without a lid."""
    w, d, h = asset.extents
    wall = min(0.02, 0.2 * w, 0.2 * d)
    asset.box(asset.x_span, asset.y_span, (0, min(0.02, 0.2 * h)), asset.shade(0.8))
    for x in asset.x_sides(wall):
        asset.box(x, asset.y_span, (min(0.02, 0.2 * h), h))
    for y in ((-d, -d + wall), (d - wall, d)):
        asset.box(asset.x_inside(wall), y, (min(0.02, 0.2 * h), h))


def picture(asset: AssetModel) -> None:
    """A framed picture that hangs with its back to -y; the asset's id chooses which."""
    material = PAINTING_MATERIALS[zlib.crc32(asset.asset_id.encode()) % len(PAINTING_MATERIALS)]
    asset.fill(Finish(material, asset.finish.colour))


def desk_lamp(asset: AssetModel) -> None:
    """A foot, a pole and a shade."""
    h = asset.height
    asset.column(0.7, (0, 0.06 * h), DARK_METAL)
    asset.column(0.12, (0.06 * h, 0.6 * h), DARK_METAL)
    asset.column(1.0, (0.6 * h, h), Finish("paper", asset.finish.colour))


def laptop(asset: AssetModel) -> None:
    """Keys below, a screen at the back."""
    _, d, h = asset.extents
    asset.box(asset.x_span, asset.y_span, (0, 0.02))
    asset.box(asset.x_part(0.9), (-0.6 * d, 0.2 * d), (0.02, 0.024), BLACK_PLASTIC)
    asset.box(asset.x_span, (-d, -d + 0.015), (0.02, h))
    asset.box(asset.x_part(0.94), (-d + 0.015, -d + 0.018), (0.04, 0.95 * h), Finish("screen", (60, 90, 130)))


def microwave(asset: AssetModel) -> None:
    """A box with a dark window and a panel to its right."""
    w, d, h = asset.extents
    asset.box(asset.x_span, (-d, d - 0.01), (0, h))
    asset.box((-0.9 * w, 0.5 * w), (d - 0.01, d), (0.12 * h, 0.88 * h), BLACK_GLASS)
    asset.box((0.6 * w, 0.92 * w), (d - 0.01, d), (0.12 * h, 0.88 * h), DARK_PLASTIC)


def toaster(asset: AssetModel) -> None:
    """A body with two slots."""
    w, _, h = asset.extents
    asset.box(asset.x_span, asset.y_span, (0, h - 0.004))
    for x in asset.x_part(0.35):
        asset.box((x - 0.1 * w, x + 0.1 * w), asset.y_part(0.8), (h - 0.004, h), BLACK_PLASTIC)


def coffee_machine(asset: AssetModel) -> None:
    """A back with a head over a jug."""
    _, d, h = asset.extents
    asset.box(asset.x_span, (-d, -0.2 * d), (0, 0.7 * h))
    asset.box(asset.x_span, asset.y_span, (0.7 * h, h))
    asset.box(asset.x_span, (-0.2 * d, d), (0, 0.06 * h), BARE_STEEL)
    asset.oval(asset.x_part(0.5), (-0.1 * d, 0.8 * d), (0.06 * h, 0.6 * h), Finish("glass", DARK))


def kettle(asset: AssetModel) -> None:
    """A belly with a handle over it."""
    _, d, h = asset.extents
    asset.oval(asset.x_span, asset.y_span, (0, 0.8 * h))
    asset.box(asset.x_part(0.1), asset.y_part(0.6), (0.88 * h, h), BLACK_PLASTIC)
    for y in (-0.6 * d, 0.5 * d):
        asset.box(asset.x_part(0.1), (y, y + 0.1 * d), (0.6 * h, 0.88 * h), BLACK_PLASTIC)


def pan(asset: AssetModel) -> None:
    """A flat disc with a handle to its longer side."""
    w, d, h = asset.extents
    radius = min(w, d)
    along_y = d >= w
    disc_end = 2 * radius - max(w, d)  # along the longer side, from the middle
    if along_y:
        asset.oval(asset.x_span, (-d, -d + 2 * radius), (0, h))
        if d > 1.1 * w:
            asset.box(asset.x_part(0.1), (disc_end - 0.1 * d, d), (0.5 * h, 0.8 * h), BLACK_PLASTIC)
    else:
        asset.oval((-w, -w + 2 * radius), asset.y_span, (0, h))
        if w > 1.1 * d:
            asset.box((disc_end - 0.1 * w, w), asset.y_part(0.1), (0.5 * h, 0.8 * h), BLACK_PLASTIC)


def pot(asset: AssetModel) -> None:
    """A body between two handles along its longer side."""
    w, d, h = asset.extents
    x, y = (0.8 * w, d) if w > d else (w, 0.8 * d)
    asset.oval((-x, x), (-y, y), (0, h))
    handle_x = asset.x_span if x < w else asset.x_part(0.15)
    handle_y = asset.y_span if y < d else asset.y_part(0.15)
    asset.box(handle_x, handle_y, (0.6 * h, 0.7 * h), BLACK_PLASTIC)


def racket(asset: AssetModel) -> None:
    """A flat ellipse with a handle towards +y."""
    _, d, h = asset.extents
    asset.oval(asset.x_span, (-d, 0.2 * d), (0, h))
    asset.box(asset.x_part(0.12), (0.1 * d, d), (0.25 * h, 0.75 * h), Finish("leather", DARK))


def plunger(asset: AssetModel) -> None:
    """A cup on a stick."""
    h = asset.height
    asset.column(1.0, (0, 0.2 * h))
    asset.column(0.2, (0.2 * h, h), Finish("wood", (150, 106, 66)))


def vacuum(asset: AssetModel) -> None:
    """A head on the floor, a body and a handle."""
    _, d, h = asset.extents
    asset.box(asset.x_span, asset.y_span, (0, 0.1 * h), DARK_PLASTIC)
    asset.box(asset.x_part(0.5), (-0.8 * d, 0.2 * d), (0.1 * h, 0.6 * h))
    asset.box(asset.x_part(0.12), (-0.8 * d, -0.5 * d), (0.6 * h, h), DARK_PLASTIC)


def dog_bed(asset: AssetModel) -> None:
    """A cushion inside a thick rim."""
    w, d, h = asset.extents
    rim = 0.18
    asset.box(asset.x_span, asset.y_span, (0, 0.6 * h), asset.shade(1.15))
    for side in (-1, 1):
        x = sorted((side * w, side * (1 - rim) * w))
        y = sorted((side * d, side * (1 - rim) * d))
        asset.box((x[0], x[1]), asset.y_span, (0.6 * h, h))
        asset.box((-(1 - rim) * w, (1 - rim) * w), (y[0], y[1]), (0.6 * h, h))


def boots(asset: AssetModel) -> None:
    """A pair: shafts at the back, feet to the front."""
    w, d, h = asset.extents
    for x in ((-w, -0.08 * w), (0.08 * w, w)):
        asset.box(x, asset.y_span, (0, 0.25 * h))
        asset.box(x, (-d, 0.0), (0.25 * h, h))


def safe(asset: AssetModel) -> None:
    """A box with a door and its wheel."""
    _, d, h = asset.extents
    asset.box(asset.x_span, (-d, d - 0.03), (0, h))
    asset.box(asset.x_part(0.85), (d - 0.03, d - 0.015), (0.08 * h, 0.92 * h), asset.shade(1.4))
    asset.oval(asset.x_part(0.2), (d - 0.025, d), (0.4 * h, 0.6 * h), BARE_STEEL)


def dumbbell(asset: AssetModel) -> None:
    """Two weights on a bar along y."""
    _, d, h = asset.extents
    asset.oval(asset.x_span, (-d, -0.4 * d), (0, h))
    asset.oval(asset.x_span, (0.4 * d, d), (0, h))
    asset.box(asset.x_part(0.25), asset.y_part(0.5), (0.4 * h, 0.6 * h), BARE_STEEL)


def faucet(asset: AssetModel) -> None:
    """A foot along the wall, a pipe and a spout to the front."""
    _, d, h = asset.extents
    asset.box(asset.x_span, (-d, -0.4 * d), (0, 0.25 * h))
    asset.box(asset.x_part(0.2), (-0.9 * d, -0.5 * d), (0.25 * h, h))
    asset.box(asset.x_part(0.2), (-0.5 * d, d), (0.8 * h, h))


def alarm_clock(asset: AssetModel) -> None:
    """A body with a pale face."""
    _, d, h = asset.extents
    asset.box(asset.x_span, (-d, 0.9 * d), (0, h))
    asset.box(asset.x_part(0.8), (0.9 * d, d), (0.15 * h, 0.85 * h), WHITE_PAPER)


def book(asset: AssetModel) -> None:
    """Pages between two covers."""
    w, _, h = asset.extents
    cover = 0.15 * h
    asset.box(asset.x_span, asset.y_span, (0, cover))
    asset.box((-w, 0.94 * w), asset.y_part(0.96), (cover, h - cover), WHITE_PAPER)
    asset.box(asset.x_span, asset.y_span, (h - cover, h))
