"""Shapes of ProcTHOR's small objects: each function fills the bounding box of one asset.

Coordinates are those of `AssetBuilder`: x from -`asset.x` to `asset.x`, y from -`asset.y` (back) to `asset.y` (front),
z from 0 to `asset.z`, in metres.
"""

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


def block(asset: AssetBuilder) -> None:
    """One box."""
    asset.fill()


def ellipsoid(asset: AssetBuilder) -> None:
    """One ellipsoid."""
    asset.ellipsoid(asset.x_span, asset.y_span, (0, asset.z))


def cylinder(asset: AssetBuilder) -> None:
    """One upright cylinder."""
    asset.cylinder(1.0, (0, asset.z))


def bottle(asset: AssetBuilder) -> None:
    """A body, a neck and a cap."""
    asset.cylinder(1.0, (0, 0.65 * asset.z))
    asset.cylinder(0.45, (0.65 * asset.z, 0.9 * asset.z))
    asset.cylinder(0.5, (0.9 * asset.z, asset.z), "plain", WHITE)


def vase(asset: AssetBuilder) -> None:
    """A foot, a belly and a rim."""
    asset.cylinder(0.6, (0, 0.15 * asset.z))
    asset.ellipsoid(asset.x_span, asset.y_span, (0.05 * asset.z, 0.8 * asset.z))
    asset.cylinder(0.5, (0.7 * asset.z, asset.z))


def bowl(asset: AssetBuilder) -> None:
    """A foot and a wide rim."""
    asset.cylinder(0.55, (0, 0.4 * asset.z))
    asset.cylinder(1.0, (0.4 * asset.z, asset.z))


def candle(asset: AssetBuilder) -> None:
    """A stick on a foot."""
    asset.cylinder(1.0, (0, 0.2 * asset.z), "metal", BRASS)
    asset.cylinder(0.6, (0.2 * asset.z, asset.z))


def statue(asset: AssetBuilder) -> None:
    """A plinth, a body and a head."""
    asset.box(asset.x_span, asset.y_span, (0, 0.12 * asset.z), colour=asset.shade(0.6))
    asset.ellipsoid(asset.x_part(0.7), asset.y_part(0.7), (0.1 * asset.z, 0.75 * asset.z))
    asset.ellipsoid(asset.x_part(0.4), asset.y_part(0.4), (0.7 * asset.z, asset.z))


def teddy(asset: AssetBuilder) -> None:
    """A body, a head and two ears."""
    asset.ellipsoid(asset.x_span, asset.y_span, (0, 0.65 * asset.z))
    asset.ellipsoid(asset.x_part(0.6), asset.y_part(0.7), (0.5 * asset.z, 0.95 * asset.z))
    for x in asset.x_part(0.45):
        asset.ellipsoid(
            (x - 0.2 * asset.x, x + 0.2 * asset.x),
            asset.y_part(0.2),
            (0.82 * asset.z, asset.z),
            colour=asset.shade(0.7),
        )


def plant(asset: AssetBuilder) -> None:
    """A pot with leaves."""
    asset.cylinder(0.6, (0, 0.35 * asset.z), "ceramic", TERRACOTTA)
    asset.ellipsoid(asset.x_span, asset.y_span, (0.3 * asset.z, asset.z), "leaves", GREEN)


def hollow(asset: AssetBuilder) -> None:
    """A box without a lid."""
    wall = min(0.02, 0.2 * asset.x, 0.2 * asset.y)
    asset.box(asset.x_span, asset.y_span, (0, min(0.02, 0.2 * asset.z)), colour=asset.shade(0.8))
    for x in ((-asset.x, -asset.x + wall), (asset.x - wall, asset.x)):
        asset.box(x, asset.y_span, (min(0.02, 0.2 * asset.z), asset.z))
    for y in ((-asset.y, -asset.y + wall), (asset.y - wall, asset.y)):
        asset.box((-asset.x + wall, asset.x - wall), y, (min(0.02, 0.2 * asset.z), asset.z))


def picture(asset: AssetBuilder) -> None:
    """A framed picture that hangs with its back to -y; the asset's id chooses which."""
    asset.fill(PAINTING_MATERIALS[zlib.crc32(asset.asset_id.encode()) % len(PAINTING_MATERIALS)])


def desk_lamp(asset: AssetBuilder) -> None:
    """A foot, a pole and a shade."""
    asset.cylinder(0.7, (0, 0.06 * asset.z), "metal", DARK)
    asset.cylinder(0.12, (0.06 * asset.z, 0.6 * asset.z), "metal", DARK)
    asset.cylinder(1.0, (0.6 * asset.z, asset.z), "paper", asset.colour)


def laptop(asset: AssetBuilder) -> None:
    """Keys below, a screen at the back."""
    asset.box(asset.x_span, asset.y_span, (0, 0.02))
    asset.box(asset.x_part(0.9), (-0.6 * asset.y, 0.2 * asset.y), (0.02, 0.024), "plain", BLACK)
    asset.box(asset.x_span, (-asset.y, -asset.y + 0.015), (0.02, asset.z))
    asset.box(asset.x_part(0.94), (-asset.y + 0.015, -asset.y + 0.018), (0.04, 0.95 * asset.z), "screen", (60, 90, 130))


def microwave(asset: AssetBuilder) -> None:
    """A box with a dark window and a panel to its right."""
    asset.box(asset.x_span, (-asset.y, asset.y - 0.01), (0, asset.z))
    asset.box(
        (-0.9 * asset.x, 0.5 * asset.x), (asset.y - 0.01, asset.y), (0.12 * asset.z, 0.88 * asset.z), "glass", BLACK
    )
    asset.box(
        (0.6 * asset.x, 0.92 * asset.x), (asset.y - 0.01, asset.y), (0.12 * asset.z, 0.88 * asset.z), "plain", DARK
    )


def toaster(asset: AssetBuilder) -> None:
    """A body with two slots."""
    asset.box(asset.x_span, asset.y_span, (0, asset.z - 0.004))
    for x in asset.x_part(0.35):
        asset.box(
            (x - 0.1 * asset.x, x + 0.1 * asset.x),
            asset.y_part(0.8),
            (asset.z - 0.004, asset.z),
            "plain",
            BLACK,
        )


def coffee_machine(asset: AssetBuilder) -> None:
    """A back with a head over a jug."""
    asset.box(asset.x_span, (-asset.y, -0.2 * asset.y), (0, 0.7 * asset.z))
    asset.box(asset.x_span, asset.y_span, (0.7 * asset.z, asset.z))
    asset.box(asset.x_span, (-0.2 * asset.y, asset.y), (0, 0.06 * asset.z), "metal", STEEL)
    asset.ellipsoid(asset.x_part(0.5), (-0.1 * asset.y, 0.8 * asset.y), (0.06 * asset.z, 0.6 * asset.z), "glass", DARK)


def kettle(asset: AssetBuilder) -> None:
    """A belly with a handle over it."""
    asset.ellipsoid(asset.x_span, asset.y_span, (0, 0.8 * asset.z))
    asset.box(asset.x_part(0.1), asset.y_part(0.6), (0.88 * asset.z, asset.z), "plain", BLACK)
    for y in (-0.6 * asset.y, 0.5 * asset.y):
        asset.box(asset.x_part(0.1), (y, y + 0.1 * asset.y), (0.6 * asset.z, 0.88 * asset.z), "plain", BLACK)


def pan(asset: AssetBuilder) -> None:
    """A flat disc with a handle to its longer side."""
    round_half = min(asset.x, asset.y)
    along_y = asset.y >= asset.x
    rest = max(asset.x, asset.y) - 2 * round_half  # where the disc ends, from the middle
    if along_y:
        asset.ellipsoid(asset.x_span, (-asset.y, -asset.y + 2 * round_half), (0, asset.z))
        if asset.y > 1.1 * asset.x:
            asset.box(
                asset.x_part(0.1),
                (-rest - 0.1 * asset.y, asset.y),
                (0.5 * asset.z, 0.8 * asset.z),
                "plain",
                BLACK,
            )
    else:
        asset.ellipsoid((-asset.x, -asset.x + 2 * round_half), asset.y_span, (0, asset.z))
        if asset.x > 1.1 * asset.y:
            asset.box(
                (-rest - 0.1 * asset.x, asset.x),
                asset.y_part(0.1),
                (0.5 * asset.z, 0.8 * asset.z),
                "plain",
                BLACK,
            )


def pot(asset: AssetBuilder) -> None:
    """A body between two handles along its longer side."""
    x, y = (0.8 * asset.x, asset.y) if asset.x > asset.y else (asset.x, 0.8 * asset.y)
    asset.ellipsoid((-x, x), (-y, y), (0, asset.z))
    handle_x = asset.x_span if x < asset.x else asset.x_part(0.15)
    handle_y = asset.y_span if y < asset.y else asset.y_part(0.15)
    asset.box(handle_x, handle_y, (0.6 * asset.z, 0.7 * asset.z), "plain", BLACK)


def racket(asset: AssetBuilder) -> None:
    """A flat ellipse with a handle towards +y."""
    asset.ellipsoid(asset.x_span, (-asset.y, 0.2 * asset.y), (0, asset.z))
    asset.box(asset.x_part(0.12), (0.1 * asset.y, asset.y), (0.25 * asset.z, 0.75 * asset.z), "leather", DARK)


def plunger(asset: AssetBuilder) -> None:
    """A cup on a stick."""
    asset.cylinder(1.0, (0, 0.2 * asset.z))
    asset.cylinder(0.2, (0.2 * asset.z, asset.z), "wood", WOOD)


def vacuum(asset: AssetBuilder) -> None:
    """A head on the floor, a body and a handle."""
    asset.box(asset.x_span, asset.y_span, (0, 0.1 * asset.z), "plain", DARK)
    asset.box(asset.x_part(0.5), (-0.8 * asset.y, 0.2 * asset.y), (0.1 * asset.z, 0.6 * asset.z))
    asset.box(asset.x_part(0.12), (-0.8 * asset.y, -0.5 * asset.y), (0.6 * asset.z, asset.z), "plain", DARK)


def dog_bed(asset: AssetBuilder) -> None:
    """A cushion inside a thick rim."""
    rim = 0.18
    asset.box(asset.x_span, asset.y_span, (0, 0.6 * asset.z), colour=asset.shade(1.15))
    for side in (-1, 1):
        x = sorted((side * asset.x, side * (1 - rim) * asset.x))
        y = sorted((side * asset.y, side * (1 - rim) * asset.y))
        asset.box((x[0], x[1]), asset.y_span, (0.6 * asset.z, asset.z))
        asset.box((-(1 - rim) * asset.x, (1 - rim) * asset.x), (y[0], y[1]), (0.6 * asset.z, asset.z))


def boots(asset: AssetBuilder) -> None:
    """A pair: shafts at the back, feet to the front."""
    for x in ((-asset.x, -0.08 * asset.x), (0.08 * asset.x, asset.x)):
        asset.box(x, asset.y_span, (0, 0.25 * asset.z))
        asset.box(x, (-asset.y, 0.0), (0.25 * asset.z, asset.z))


def safe(asset: AssetBuilder) -> None:
    """A box with a door and its wheel."""
    asset.box(asset.x_span, (-asset.y, asset.y - 0.03), (0, asset.z))
    asset.box(
        asset.x_part(0.85), (asset.y - 0.03, asset.y - 0.015), (0.08 * asset.z, 0.92 * asset.z), colour=asset.shade(1.4)
    )
    asset.ellipsoid(asset.x_part(0.2), (asset.y - 0.025, asset.y), (0.4 * asset.z, 0.6 * asset.z), "metal", STEEL)


def dumbbell(asset: AssetBuilder) -> None:
    """Two weights on a bar along y."""
    asset.ellipsoid(asset.x_span, (-asset.y, -0.4 * asset.y), (0, asset.z))
    asset.ellipsoid(asset.x_span, (0.4 * asset.y, asset.y), (0, asset.z))
    asset.box(asset.x_part(0.25), asset.y_part(0.5), (0.4 * asset.z, 0.6 * asset.z), "metal", STEEL)


def faucet(asset: AssetBuilder) -> None:
    """A foot along the wall, a pipe and a spout to the front."""
    asset.box(asset.x_span, (-asset.y, -0.4 * asset.y), (0, 0.25 * asset.z))
    asset.box(asset.x_part(0.2), (-0.9 * asset.y, -0.5 * asset.y), (0.25 * asset.z, asset.z))
    asset.box(asset.x_part(0.2), (-0.5 * asset.y, asset.y), (0.8 * asset.z, asset.z))


def alarm_clock(asset: AssetBuilder) -> None:
    """A body with a pale face."""
    asset.box(asset.x_span, (-asset.y, 0.9 * asset.y), (0, asset.z))
    asset.box(asset.x_part(0.8), (0.9 * asset.y, asset.y), (0.15 * asset.z, 0.85 * asset.z), "paper", WHITE)


def book(asset: AssetBuilder) -> None:
    """Pages between two covers."""
    cover = 0.15 * asset.z
    asset.box(asset.x_span, asset.y_span, (0, cover))
    asset.box((-asset.x, 0.94 * asset.x), asset.y_part(0.96), (cover, asset.z - cover), "paper", WHITE)
    asset.box(asset.x_span, asset.y_span, (asset.z - cover, asset.z))
