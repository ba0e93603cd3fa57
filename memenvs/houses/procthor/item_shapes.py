"""Shapes of things that stand, lie or hang: each function fills the bounding box of one asset."""

from __future__ import annotations

import zlib

from memenvs.houses.classes import PAINTING_MATERIALS
from memenvs.houses.procthor.asset_builder import (
    BLACK,
    BRASS,
    DARK,
    GREEN,
    STEEL,
    TERRACOTTA,
    WHITE,
    WOOD,
    AssetBuilder,
)


def block(p: AssetBuilder) -> None:
    """One box."""
    p.whole()


def ball(p: AssetBuilder) -> None:
    """One ellipsoid."""
    p.ball((-p.x, p.x), (-p.y, p.y), (0, p.z))


def cylinder(p: AssetBuilder) -> None:
    """One upright cylinder."""
    p.round(1.0, (0, p.z))


def bottle(p: AssetBuilder) -> None:
    """A body, a neck and a cap."""
    p.round(1.0, (0, 0.65 * p.z))
    p.round(0.45, (0.65 * p.z, 0.9 * p.z))
    p.round(0.5, (0.9 * p.z, p.z), "plain", WHITE)


def vase(p: AssetBuilder) -> None:
    """A foot, a belly and a rim."""
    p.round(0.6, (0, 0.15 * p.z))
    p.ball((-p.x, p.x), (-p.y, p.y), (0.05 * p.z, 0.8 * p.z))
    p.round(0.5, (0.7 * p.z, p.z))


def bowl(p: AssetBuilder) -> None:
    """A foot and a wide rim."""
    p.round(0.55, (0, 0.4 * p.z))
    p.round(1.0, (0.4 * p.z, p.z))


def candle(p: AssetBuilder) -> None:
    """A stick on a foot."""
    p.round(1.0, (0, 0.2 * p.z), "metal", BRASS)
    p.round(0.6, (0.2 * p.z, p.z))


def statue(p: AssetBuilder) -> None:
    """A plinth, a body and a head."""
    p.box((-p.x, p.x), (-p.y, p.y), (0, 0.12 * p.z), colour=p.shade(0.6))
    p.ball((-0.7 * p.x, 0.7 * p.x), (-0.7 * p.y, 0.7 * p.y), (0.1 * p.z, 0.75 * p.z))
    p.ball((-0.4 * p.x, 0.4 * p.x), (-0.4 * p.y, 0.4 * p.y), (0.7 * p.z, p.z))


def teddy(p: AssetBuilder) -> None:
    """A body, a head and two ears."""
    p.ball((-p.x, p.x), (-p.y, p.y), (0, 0.65 * p.z))
    p.ball((-0.6 * p.x, 0.6 * p.x), (-0.7 * p.y, 0.7 * p.y), (0.5 * p.z, 0.95 * p.z))
    for x in (-0.45 * p.x, 0.45 * p.x):
        p.ball((x - 0.2 * p.x, x + 0.2 * p.x), (-0.2 * p.y, 0.2 * p.y), (0.82 * p.z, p.z), colour=p.shade(0.7))


def plant(p: AssetBuilder) -> None:
    """A pot with leaves."""
    p.round(0.6, (0, 0.35 * p.z), "ceramic", TERRACOTTA)
    p.ball((-p.x, p.x), (-p.y, p.y), (0.3 * p.z, p.z), "leaves", GREEN)


def hollow(p: AssetBuilder) -> None:
    """A box without a lid."""
    wall = min(0.02, 0.2 * p.x, 0.2 * p.y)
    p.box((-p.x, p.x), (-p.y, p.y), (0, min(0.02, 0.2 * p.z)), colour=p.shade(0.8))
    for x in ((-p.x, -p.x + wall), (p.x - wall, p.x)):
        p.box(x, (-p.y, p.y), (min(0.02, 0.2 * p.z), p.z))
    for y in ((-p.y, -p.y + wall), (p.y - wall, p.y)):
        p.box((-p.x + wall, p.x - wall), y, (min(0.02, 0.2 * p.z), p.z))


def picture(p: AssetBuilder) -> None:
    """A framed picture that hangs with its back to -y; which one, the asset's id says."""
    p.whole(PAINTING_MATERIALS[zlib.crc32(p.asset.encode()) % len(PAINTING_MATERIALS)])


def desk_lamp(p: AssetBuilder) -> None:
    """A foot, a pole and a shade."""
    p.round(0.7, (0, 0.06 * p.z), "metal", DARK)
    p.round(0.12, (0.06 * p.z, 0.6 * p.z), "metal", DARK)
    p.round(1.0, (0.6 * p.z, p.z), "paper", p.colour)


def laptop(p: AssetBuilder) -> None:
    """Keys below, a screen at the back."""
    p.box((-p.x, p.x), (-p.y, p.y), (0, 0.02))
    p.box((-0.9 * p.x, 0.9 * p.x), (-0.6 * p.y, 0.2 * p.y), (0.02, 0.024), "plain", BLACK)
    p.box((-p.x, p.x), (-p.y, -p.y + 0.015), (0.02, p.z))
    p.box((-0.94 * p.x, 0.94 * p.x), (-p.y + 0.015, -p.y + 0.018), (0.04, 0.95 * p.z), "screen", (60, 90, 130))


def microwave(p: AssetBuilder) -> None:
    """A box with a dark window and a panel to its right."""
    p.box((-p.x, p.x), (-p.y, p.y - 0.01), (0, p.z))
    p.box((-0.9 * p.x, 0.5 * p.x), (p.y - 0.01, p.y), (0.12 * p.z, 0.88 * p.z), "glass", BLACK)
    p.box((0.6 * p.x, 0.92 * p.x), (p.y - 0.01, p.y), (0.12 * p.z, 0.88 * p.z), "plain", DARK)


def toaster(p: AssetBuilder) -> None:
    """A body with two slots."""
    p.box((-p.x, p.x), (-p.y, p.y), (0, p.z - 0.004))
    for x in (-0.35 * p.x, 0.35 * p.x):
        p.box((x - 0.1 * p.x, x + 0.1 * p.x), (-0.8 * p.y, 0.8 * p.y), (p.z - 0.004, p.z), "plain", BLACK)


def coffee_machine(p: AssetBuilder) -> None:
    """A back with a head over a jug."""
    p.box((-p.x, p.x), (-p.y, -0.2 * p.y), (0, 0.7 * p.z))
    p.box((-p.x, p.x), (-p.y, p.y), (0.7 * p.z, p.z))
    p.box((-p.x, p.x), (-0.2 * p.y, p.y), (0, 0.06 * p.z), "metal", STEEL)
    p.ball((-0.5 * p.x, 0.5 * p.x), (-0.1 * p.y, 0.8 * p.y), (0.06 * p.z, 0.6 * p.z), "glass", DARK)


def kettle(p: AssetBuilder) -> None:
    """A belly with a handle over it."""
    p.ball((-p.x, p.x), (-p.y, p.y), (0, 0.8 * p.z))
    p.box((-0.1 * p.x, 0.1 * p.x), (-0.6 * p.y, 0.6 * p.y), (0.88 * p.z, p.z), "plain", BLACK)
    for y in (-0.6 * p.y, 0.5 * p.y):
        p.box((-0.1 * p.x, 0.1 * p.x), (y, y + 0.1 * p.y), (0.6 * p.z, 0.88 * p.z), "plain", BLACK)


def pan(p: AssetBuilder) -> None:
    """A flat disc with a handle to its longer side."""
    round_half = min(p.x, p.y)
    along_y = p.y >= p.x
    rest = max(p.x, p.y) - 2 * round_half  # where the disc ends, from the middle
    if along_y:
        p.ball((-p.x, p.x), (-p.y, -p.y + 2 * round_half), (0, p.z))
        if p.y > 1.1 * p.x:
            p.box((-0.1 * p.x, 0.1 * p.x), (-rest - 0.1 * p.y, p.y), (0.5 * p.z, 0.8 * p.z), "plain", BLACK)
    else:
        p.ball((-p.x, -p.x + 2 * round_half), (-p.y, p.y), (0, p.z))
        if p.x > 1.1 * p.y:
            p.box((-rest - 0.1 * p.x, p.x), (-0.1 * p.y, 0.1 * p.y), (0.5 * p.z, 0.8 * p.z), "plain", BLACK)


def pot(p: AssetBuilder) -> None:
    """A body between two handles along its longer side."""
    x, y = (0.8 * p.x, p.y) if p.x > p.y else (p.x, 0.8 * p.y)
    p.ball((-x, x), (-y, y), (0, p.z))
    p.box((-p.x, p.x) if x < p.x else (-0.15 * p.x, 0.15 * p.x), (-p.y, p.y) if y < p.y else (-0.15 * p.y, 0.15 * p.y),
          (0.6 * p.z, 0.7 * p.z), "plain", BLACK)  # fmt: skip


def racket(p: AssetBuilder) -> None:
    """A flat ellipse with a handle towards +y."""
    p.ball((-p.x, p.x), (-p.y, 0.2 * p.y), (0, p.z))
    p.box((-0.12 * p.x, 0.12 * p.x), (0.1 * p.y, p.y), (0.25 * p.z, 0.75 * p.z), "leather", DARK)


def plunger(p: AssetBuilder) -> None:
    """A cup on a stick."""
    p.round(1.0, (0, 0.2 * p.z))
    p.round(0.2, (0.2 * p.z, p.z), "wood", WOOD)


def vacuum(p: AssetBuilder) -> None:
    """A head on the floor, a body and a handle."""
    p.box((-p.x, p.x), (-p.y, p.y), (0, 0.1 * p.z), "plain", DARK)
    p.box((-0.5 * p.x, 0.5 * p.x), (-0.8 * p.y, 0.2 * p.y), (0.1 * p.z, 0.6 * p.z))
    p.box((-0.12 * p.x, 0.12 * p.x), (-0.8 * p.y, -0.5 * p.y), (0.6 * p.z, p.z), "plain", DARK)


def dog_bed(p: AssetBuilder) -> None:
    """A cushion inside a thick rim."""
    rim = 0.18
    p.box((-p.x, p.x), (-p.y, p.y), (0, 0.6 * p.z), colour=p.shade(1.15))
    for side in (-1, 1):
        x = sorted((side * p.x, side * (1 - rim) * p.x))
        y = sorted((side * p.y, side * (1 - rim) * p.y))
        p.box((x[0], x[1]), (-p.y, p.y), (0.6 * p.z, p.z))
        p.box((-(1 - rim) * p.x, (1 - rim) * p.x), (y[0], y[1]), (0.6 * p.z, p.z))


def boots(p: AssetBuilder) -> None:
    """A pair: shafts at the back, feet to the front."""
    for x in ((-p.x, -0.08 * p.x), (0.08 * p.x, p.x)):
        p.box(x, (-p.y, p.y), (0, 0.25 * p.z))
        p.box(x, (-p.y, 0.0), (0.25 * p.z, p.z))


def safe(p: AssetBuilder) -> None:
    """A box with a door and its wheel."""
    p.box((-p.x, p.x), (-p.y, p.y - 0.03), (0, p.z))
    p.box((-0.85 * p.x, 0.85 * p.x), (p.y - 0.03, p.y - 0.015), (0.08 * p.z, 0.92 * p.z), colour=p.shade(1.4))
    p.ball((-0.2 * p.x, 0.2 * p.x), (p.y - 0.025, p.y), (0.4 * p.z, 0.6 * p.z), "metal", STEEL)


def dumbbell(p: AssetBuilder) -> None:
    """Two weights on a bar along y."""
    p.ball((-p.x, p.x), (-p.y, -0.4 * p.y), (0, p.z))
    p.ball((-p.x, p.x), (0.4 * p.y, p.y), (0, p.z))
    p.box((-0.25 * p.x, 0.25 * p.x), (-0.5 * p.y, 0.5 * p.y), (0.4 * p.z, 0.6 * p.z), "metal", STEEL)


def faucet(p: AssetBuilder) -> None:
    """A foot along the wall, a pipe and a spout to the front."""
    p.box((-p.x, p.x), (-p.y, -0.4 * p.y), (0, 0.25 * p.z))
    p.box((-0.2 * p.x, 0.2 * p.x), (-0.9 * p.y, -0.5 * p.y), (0.25 * p.z, p.z))
    p.box((-0.2 * p.x, 0.2 * p.x), (-0.5 * p.y, p.y), (0.8 * p.z, p.z))


def alarm_clock(p: AssetBuilder) -> None:
    """A body with a pale face."""
    p.box((-p.x, p.x), (-p.y, 0.9 * p.y), (0, p.z))
    p.box((-0.8 * p.x, 0.8 * p.x), (0.9 * p.y, p.y), (0.15 * p.z, 0.85 * p.z), "paper", WHITE)


def book(p: AssetBuilder) -> None:
    """Pages between two covers."""
    cover = 0.15 * p.z
    p.box((-p.x, p.x), (-p.y, p.y), (0, cover))
    p.box((-p.x, 0.94 * p.x), (-0.96 * p.y, 0.96 * p.y), (cover, p.z - cover), "paper", WHITE)
    p.box((-p.x, p.x), (-p.y, p.y), (p.z - cover, p.z))
