"""Shapes of ProcTHOR's small objects: each function fills the bounding box of one asset.

Coordinates are those of `AssetBuilder`, in metres: x from -`asset.half_width` to `asset.half_width`, y from
-`asset.half_depth` (back) to `asset.half_depth` (front), z from 0 to `asset.height`.
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
    asset.ellipsoid(asset.x_span, asset.y_span, (0, asset.height))


def cylinder(asset: AssetBuilder) -> None:
    """One upright cylinder."""
    asset.cylinder(1.0, (0, asset.height))


def bottle(asset: AssetBuilder) -> None:
    """A body, a neck and a cap."""
    asset.cylinder(1.0, (0, 0.65 * asset.height))
    asset.cylinder(0.45, (0.65 * asset.height, 0.9 * asset.height))
    asset.cylinder(0.5, (0.9 * asset.height, asset.height), "plain", WHITE)


def vase(asset: AssetBuilder) -> None:
    """A foot, a belly and a rim."""
    asset.cylinder(0.6, (0, 0.15 * asset.height))
    asset.ellipsoid(asset.x_span, asset.y_span, (0.05 * asset.height, 0.8 * asset.height))
    asset.cylinder(0.5, (0.7 * asset.height, asset.height))


def bowl(asset: AssetBuilder) -> None:
    """A foot and a wide rim."""
    asset.cylinder(0.55, (0, 0.4 * asset.height))
    asset.cylinder(1.0, (0.4 * asset.height, asset.height))


def candle(asset: AssetBuilder) -> None:
    """A stick on a foot."""
    asset.cylinder(1.0, (0, 0.2 * asset.height), "metal", BRASS)
    asset.cylinder(0.6, (0.2 * asset.height, asset.height))


def statue(asset: AssetBuilder) -> None:
    """A plinth, a body and a head."""
    asset.box(asset.x_span, asset.y_span, (0, 0.12 * asset.height), colour=asset.shade(0.6))
    asset.ellipsoid(asset.x_part(0.7), asset.y_part(0.7), (0.1 * asset.height, 0.75 * asset.height))
    asset.ellipsoid(asset.x_part(0.4), asset.y_part(0.4), (0.7 * asset.height, asset.height))


def teddy(asset: AssetBuilder) -> None:
    """A body, a head and two ears."""
    asset.ellipsoid(asset.x_span, asset.y_span, (0, 0.65 * asset.height))
    asset.ellipsoid(asset.x_part(0.6), asset.y_part(0.7), (0.5 * asset.height, 0.95 * asset.height))
    for x in asset.x_part(0.45):
        asset.ellipsoid(
            (x - 0.2 * asset.half_width, x + 0.2 * asset.half_width),
            asset.y_part(0.2),
            (0.82 * asset.height, asset.height),
            colour=asset.shade(0.7),
        )


def plant(asset: AssetBuilder) -> None:
    """A pot with leaves."""
    asset.cylinder(0.6, (0, 0.35 * asset.height), "ceramic", TERRACOTTA)
    asset.ellipsoid(asset.x_span, asset.y_span, (0.3 * asset.height, asset.height), "leaves", GREEN)


def hollow(asset: AssetBuilder) -> None:
    """A box without a lid."""
    wall = min(0.02, 0.2 * asset.half_width, 0.2 * asset.half_depth)
    asset.box(asset.x_span, asset.y_span, (0, min(0.02, 0.2 * asset.height)), colour=asset.shade(0.8))
    for x in ((-asset.half_width, -asset.half_width + wall), (asset.half_width - wall, asset.half_width)):
        asset.box(x, asset.y_span, (min(0.02, 0.2 * asset.height), asset.height))
    for y in ((-asset.half_depth, -asset.half_depth + wall), (asset.half_depth - wall, asset.half_depth)):
        asset.box((-asset.half_width + wall, asset.half_width - wall), y, (min(0.02, 0.2 * asset.height), asset.height))


def picture(asset: AssetBuilder) -> None:
    """A framed picture that hangs with its back to -y; the asset's id chooses which."""
    asset.fill(PAINTING_MATERIALS[zlib.crc32(asset.asset_id.encode()) % len(PAINTING_MATERIALS)])


def desk_lamp(asset: AssetBuilder) -> None:
    """A foot, a pole and a shade."""
    asset.cylinder(0.7, (0, 0.06 * asset.height), "metal", DARK)
    asset.cylinder(0.12, (0.06 * asset.height, 0.6 * asset.height), "metal", DARK)
    asset.cylinder(1.0, (0.6 * asset.height, asset.height), "paper", asset.colour)


def laptop(asset: AssetBuilder) -> None:
    """Keys below, a screen at the back."""
    asset.box(asset.x_span, asset.y_span, (0, 0.02))
    asset.box(asset.x_part(0.9), (-0.6 * asset.half_depth, 0.2 * asset.half_depth), (0.02, 0.024), "plain", BLACK)
    asset.box(asset.x_span, (-asset.half_depth, -asset.half_depth + 0.015), (0.02, asset.height))
    asset.box(
        asset.x_part(0.94),
        (-asset.half_depth + 0.015, -asset.half_depth + 0.018),
        (0.04, 0.95 * asset.height),
        "screen",
        (60, 90, 130),
    )


def microwave(asset: AssetBuilder) -> None:
    """A box with a dark window and a panel to its right."""
    asset.box(asset.x_span, (-asset.half_depth, asset.half_depth - 0.01), (0, asset.height))
    asset.box(
        (-0.9 * asset.half_width, 0.5 * asset.half_width),
        (asset.half_depth - 0.01, asset.half_depth),
        (0.12 * asset.height, 0.88 * asset.height),
        "glass",
        BLACK,
    )
    asset.box(
        (0.6 * asset.half_width, 0.92 * asset.half_width),
        (asset.half_depth - 0.01, asset.half_depth),
        (0.12 * asset.height, 0.88 * asset.height),
        "plain",
        DARK,
    )


def toaster(asset: AssetBuilder) -> None:
    """A body with two slots."""
    asset.box(asset.x_span, asset.y_span, (0, asset.height - 0.004))
    for x in asset.x_part(0.35):
        asset.box(
            (x - 0.1 * asset.half_width, x + 0.1 * asset.half_width),
            asset.y_part(0.8),
            (asset.height - 0.004, asset.height),
            "plain",
            BLACK,
        )


def coffee_machine(asset: AssetBuilder) -> None:
    """A back with a head over a jug."""
    asset.box(asset.x_span, (-asset.half_depth, -0.2 * asset.half_depth), (0, 0.7 * asset.height))
    asset.box(asset.x_span, asset.y_span, (0.7 * asset.height, asset.height))
    asset.box(asset.x_span, (-0.2 * asset.half_depth, asset.half_depth), (0, 0.06 * asset.height), "metal", STEEL)
    asset.ellipsoid(
        asset.x_part(0.5),
        (-0.1 * asset.half_depth, 0.8 * asset.half_depth),
        (0.06 * asset.height, 0.6 * asset.height),
        "glass",
        DARK,
    )


def kettle(asset: AssetBuilder) -> None:
    """A belly with a handle over it."""
    asset.ellipsoid(asset.x_span, asset.y_span, (0, 0.8 * asset.height))
    asset.box(asset.x_part(0.1), asset.y_part(0.6), (0.88 * asset.height, asset.height), "plain", BLACK)
    for y in (-0.6 * asset.half_depth, 0.5 * asset.half_depth):
        asset.box(
            asset.x_part(0.1),
            (y, y + 0.1 * asset.half_depth),
            (0.6 * asset.height, 0.88 * asset.height),
            "plain",
            BLACK,
        )


def pan(asset: AssetBuilder) -> None:
    """A flat disc with a handle to its longer side."""
    radius = min(asset.half_width, asset.half_depth)
    along_y = asset.half_depth >= asset.half_width
    disc_end = 2 * radius - max(asset.half_width, asset.half_depth)  # along the longer side, from the middle
    if along_y:
        asset.ellipsoid(asset.x_span, (-asset.half_depth, -asset.half_depth + 2 * radius), (0, asset.height))
        if asset.half_depth > 1.1 * asset.half_width:
            asset.box(
                asset.x_part(0.1),
                (disc_end - 0.1 * asset.half_depth, asset.half_depth),
                (0.5 * asset.height, 0.8 * asset.height),
                "plain",
                BLACK,
            )
    else:
        asset.ellipsoid((-asset.half_width, -asset.half_width + 2 * radius), asset.y_span, (0, asset.height))
        if asset.half_width > 1.1 * asset.half_depth:
            asset.box(
                (disc_end - 0.1 * asset.half_width, asset.half_width),
                asset.y_part(0.1),
                (0.5 * asset.height, 0.8 * asset.height),
                "plain",
                BLACK,
            )


def pot(asset: AssetBuilder) -> None:
    """A body between two handles along its longer side."""
    x, y = (
        (0.8 * asset.half_width, asset.half_depth)
        if asset.half_width > asset.half_depth
        else (asset.half_width, 0.8 * asset.half_depth)
    )
    asset.ellipsoid((-x, x), (-y, y), (0, asset.height))
    handle_x = asset.x_span if x < asset.half_width else asset.x_part(0.15)
    handle_y = asset.y_span if y < asset.half_depth else asset.y_part(0.15)
    asset.box(handle_x, handle_y, (0.6 * asset.height, 0.7 * asset.height), "plain", BLACK)


def racket(asset: AssetBuilder) -> None:
    """A flat ellipse with a handle towards +y."""
    asset.ellipsoid(asset.x_span, (-asset.half_depth, 0.2 * asset.half_depth), (0, asset.height))
    asset.box(
        asset.x_part(0.12),
        (0.1 * asset.half_depth, asset.half_depth),
        (0.25 * asset.height, 0.75 * asset.height),
        "leather",
        DARK,
    )


def plunger(asset: AssetBuilder) -> None:
    """A cup on a stick."""
    asset.cylinder(1.0, (0, 0.2 * asset.height))
    asset.cylinder(0.2, (0.2 * asset.height, asset.height), "wood", WOOD)


def vacuum(asset: AssetBuilder) -> None:
    """A head on the floor, a body and a handle."""
    asset.box(asset.x_span, asset.y_span, (0, 0.1 * asset.height), "plain", DARK)
    asset.box(
        asset.x_part(0.5), (-0.8 * asset.half_depth, 0.2 * asset.half_depth), (0.1 * asset.height, 0.6 * asset.height)
    )
    asset.box(
        asset.x_part(0.12),
        (-0.8 * asset.half_depth, -0.5 * asset.half_depth),
        (0.6 * asset.height, asset.height),
        "plain",
        DARK,
    )


def dog_bed(asset: AssetBuilder) -> None:
    """A cushion inside a thick rim."""
    rim = 0.18
    asset.box(asset.x_span, asset.y_span, (0, 0.6 * asset.height), colour=asset.shade(1.15))
    for side in (-1, 1):
        x = sorted((side * asset.half_width, side * (1 - rim) * asset.half_width))
        y = sorted((side * asset.half_depth, side * (1 - rim) * asset.half_depth))
        asset.box((x[0], x[1]), asset.y_span, (0.6 * asset.height, asset.height))
        asset.box(
            (-(1 - rim) * asset.half_width, (1 - rim) * asset.half_width),
            (y[0], y[1]),
            (0.6 * asset.height, asset.height),
        )


def boots(asset: AssetBuilder) -> None:
    """A pair: shafts at the back, feet to the front."""
    for x in ((-asset.half_width, -0.08 * asset.half_width), (0.08 * asset.half_width, asset.half_width)):
        asset.box(x, asset.y_span, (0, 0.25 * asset.height))
        asset.box(x, (-asset.half_depth, 0.0), (0.25 * asset.height, asset.height))


def safe(asset: AssetBuilder) -> None:
    """A box with a door and its wheel."""
    asset.box(asset.x_span, (-asset.half_depth, asset.half_depth - 0.03), (0, asset.height))
    asset.box(
        asset.x_part(0.85),
        (asset.half_depth - 0.03, asset.half_depth - 0.015),
        (0.08 * asset.height, 0.92 * asset.height),
        colour=asset.shade(1.4),
    )
    asset.ellipsoid(
        asset.x_part(0.2),
        (asset.half_depth - 0.025, asset.half_depth),
        (0.4 * asset.height, 0.6 * asset.height),
        "metal",
        STEEL,
    )


def dumbbell(asset: AssetBuilder) -> None:
    """Two weights on a bar along y."""
    asset.ellipsoid(asset.x_span, (-asset.half_depth, -0.4 * asset.half_depth), (0, asset.height))
    asset.ellipsoid(asset.x_span, (0.4 * asset.half_depth, asset.half_depth), (0, asset.height))
    asset.box(asset.x_part(0.25), asset.y_part(0.5), (0.4 * asset.height, 0.6 * asset.height), "metal", STEEL)


def faucet(asset: AssetBuilder) -> None:
    """A foot along the wall, a pipe and a spout to the front."""
    asset.box(asset.x_span, (-asset.half_depth, -0.4 * asset.half_depth), (0, 0.25 * asset.height))
    asset.box(
        asset.x_part(0.2), (-0.9 * asset.half_depth, -0.5 * asset.half_depth), (0.25 * asset.height, asset.height)
    )
    asset.box(asset.x_part(0.2), (-0.5 * asset.half_depth, asset.half_depth), (0.8 * asset.height, asset.height))


def alarm_clock(asset: AssetBuilder) -> None:
    """A body with a pale face."""
    asset.box(asset.x_span, (-asset.half_depth, 0.9 * asset.half_depth), (0, asset.height))
    asset.box(
        asset.x_part(0.8),
        (0.9 * asset.half_depth, asset.half_depth),
        (0.15 * asset.height, 0.85 * asset.height),
        "paper",
        WHITE,
    )


def book(asset: AssetBuilder) -> None:
    """Pages between two covers."""
    cover = 0.15 * asset.height
    asset.box(asset.x_span, asset.y_span, (0, cover))
    asset.box(
        (-asset.half_width, 0.94 * asset.half_width), asset.y_part(0.96), (cover, asset.height - cover), "paper", WHITE
    )
    asset.box(asset.x_span, asset.y_span, (asset.height - cover, asset.height))
