"""Shapes of ProcTHOR's furniture: each function fills the bounding box of one asset.

The pieces are meant to be recognised from a distance. Coordinates are those of `AssetBuilder`, in metres: x from
-`asset.half_width` to `asset.half_width`, y from -`asset.half_depth` (back) to `asset.half_depth` (front), z from 0 to
`asset.height`.
"""

from __future__ import annotations

import itertools

from memenvs.houses.procthor.asset_builder import BLACK, DARK, STEEL, WHITE, AssetBuilder

_BOARD = 0.03  # m; thickness of boards and panels
_COUNTER_DEPTH = 0.61  # m; of a kitchen counter


def table(asset: AssetBuilder) -> None:
    """A top on four legs."""
    thickness = min(0.05, 0.2 * asset.height)
    leg = min(0.07, 0.3 * asset.half_width, 0.3 * asset.half_depth)
    asset.box(asset.x_span, asset.y_span, (asset.height - thickness, asset.height))
    asset.legs(asset.half_width, asset.half_depth, asset.height - thickness, leg, colour=asset.shade(0.8))
    asset.surface(asset.x_span, asset.y_span, asset.height)


def side_table(asset: AssetBuilder) -> None:
    """A small table with a drawer and a low board."""
    leg = min(0.04, 0.2 * asset.half_width, 0.2 * asset.half_depth)
    asset.box(asset.x_span, asset.y_span, (asset.height - _BOARD, asset.height))
    asset.box(
        asset.x_part(0.94), asset.y_part(0.94), (0.75 * asset.height, asset.height - _BOARD), colour=asset.shade(0.85)
    )
    asset.box(asset.x_part(0.9), asset.y_part(0.9), (0.2 * asset.height, 0.2 * asset.height + 0.02))
    asset.legs(asset.half_width, asset.half_depth, 0.75 * asset.height, leg, colour=asset.shade(0.8))
    asset.surface(asset.x_span, asset.y_span, asset.height)


def desk(asset: AssetBuilder) -> None:
    """A top on side panels with drawers under it; a high one has shelves along its back."""
    top = asset.height if asset.height <= 1.0 else asset.support_height(0.6, 0.95, 0.75)
    asset.box(asset.x_span, asset.y_span, (top - _BOARD, top))
    for x in ((-asset.half_width, -asset.half_width + _BOARD), (asset.half_width - _BOARD, asset.half_width)):
        asset.box(x, asset.y_span, (0, top - _BOARD), colour=asset.shade(0.85))
    inner = asset.half_width - _BOARD
    asset.box((0.45 * asset.half_width, inner), asset.y_part(0.95), (0.1, top - _BOARD), colour=asset.shade(0.92))
    front = -asset.half_depth
    if asset.height - top > 0.15:
        front = -asset.half_depth + min(0.3, asset.half_depth)
        asset.box(
            asset.x_span, (-asset.half_depth, -asset.half_depth + _BOARD), (top, asset.height), colour=asset.shade(0.85)
        )
        for x in ((-asset.half_width, -asset.half_width + _BOARD), (asset.half_width - _BOARD, asset.half_width)):
            asset.box(x, (-asset.half_depth + _BOARD, front), (top, asset.height - _BOARD))
        asset.box(asset.x_span, (-asset.half_depth + _BOARD, front), (asset.height - _BOARD, asset.height))
        for z in [rest for rest in asset.support_heights if top + 0.15 < rest < asset.height - 0.1]:
            asset.box((-inner, inner), (-asset.half_depth + _BOARD, front), (z - 0.02, z))
    asset.surface(asset.x_span, (front, asset.half_depth), top)


def counter(asset: AssetBuilder) -> None:
    """Kitchen cupboards under a stone top, along one to three walls.

    The asset id names the form: "_L_" for two walls, "_C_" for three.
    """
    depth = min(_COUNTER_DEPTH, 2 * asset.half_depth)
    runs = [(asset.x_span, (-asset.half_depth, -asset.half_depth + depth))]
    if "_L_" in asset.asset_id or "_C_" in asset.asset_id:
        runs.append(
            ((asset.half_width - _COUNTER_DEPTH, asset.half_width), (-asset.half_depth + depth, asset.half_depth))
        )
        if "_C_" in asset.asset_id:
            runs.append(
                ((-asset.half_width, -asset.half_width + _COUNTER_DEPTH), (-asset.half_depth + depth, asset.half_depth))
            )
    else:
        runs = [(asset.x_span, asset.y_span)]
    for x, y in runs:
        asset.box(
            (x[0] + 0.02, x[1] - 0.02), (y[0] + 0.02, y[1] - 0.02), (0, asset.height - 0.04), "plain", asset.colour
        )
        asset.box(x, y, (asset.height - 0.04, asset.height), "marble", (214, 212, 206))
        asset.surface(x, y, asset.height)
    count = max(1, round(2 * asset.half_width / 0.6))
    width = 2 * asset.half_width / count
    front = runs[0][1][1]
    # The back run has no doors in the corners: at the right if there are two runs, at both ends if there are three.
    first, end = int(len(runs) == 3), count - int(len(runs) > 1)
    for i in range(first, end):
        x = (-asset.half_width + i * width + 0.02, -asset.half_width + (i + 1) * width - 0.02)
        asset.box(x, (front - 0.02, front - 0.005), (0.1, asset.height - 0.07), "plain", asset.shade(1.12))
        asset.box(
            (x[0] + 0.1, x[1] - 0.1), (front - 0.005, front), (asset.height - 0.16, asset.height - 0.14), "metal", STEEL
        )


def chair(asset: AssetBuilder) -> None:
    """A seat on four legs with a back."""
    seat = asset.support_height(0.3, 0.7 * asset.height, min(0.47, 0.55 * asset.height))
    back = 0.045
    asset.box(asset.x_span, (-asset.half_depth + back, asset.half_depth), (seat - 0.05, seat))
    asset.box(asset.x_span, (-asset.half_depth, -asset.half_depth + back), (seat + 0.1, asset.height))
    for x in ((-asset.half_width, -asset.half_width + back), (asset.half_width - back, asset.half_width)):
        asset.box(x, (-asset.half_depth, -asset.half_depth + back), (0, seat + 0.1), colour=asset.shade(0.7))
        asset.box(x, (asset.half_depth - back, asset.half_depth), (0, seat - 0.05), colour=asset.shade(0.7))


def stool(asset: AssetBuilder) -> None:
    """A seat on four legs."""
    asset.cylinder(1.0, (asset.height - 0.06, asset.height))
    reach = 0.7
    asset.legs(reach * asset.half_width, reach * asset.half_depth, asset.height - 0.06, 0.03, "metal", DARK)


def sofa(asset: AssetBuilder) -> None:
    """A seat between two arms in front of a back; two or three cushions if it is wide."""
    arm = min(0.2, 0.16 * asset.half_width * 2)
    back = min(0.24, 0.6 * asset.half_depth)
    seat = asset.support_height(0.25, 0.75 * asset.height, min(0.45, 0.5 * asset.height))
    arms = min(asset.height, seat + 0.2)
    asset.box(asset.x_span, (-asset.half_depth, -asset.half_depth + back), (0.04, asset.height))
    for x in ((-asset.half_width, -asset.half_width + arm), (asset.half_width - arm, asset.half_width)):
        asset.box(x, (-asset.half_depth + back, asset.half_depth), (0.04, arms), colour=asset.shade(0.92))
    asset.box(
        (-asset.half_width + arm, asset.half_width - arm),
        (-asset.half_depth + back, asset.half_depth - 0.02),
        (0.04, seat - 0.13),
        colour=asset.shade(0.85),
    )
    inner = asset.half_width - arm
    count = max(1, round(2 * inner / 0.75))
    for i in range(count):
        x0 = -inner + 2 * inner / count * i
        asset.box(
            (x0 + 0.005, x0 + 2 * inner / count - 0.005),
            (-asset.half_depth + back, asset.half_depth),
            (seat - 0.13, seat),
            colour=asset.shade(1.08),
        )
    asset.legs(asset.half_width - 0.02, asset.half_depth - 0.02, 0.04, 0.05, "wood", DARK)


def bed(asset: AssetBuilder) -> None:
    """A base, a mattress under a blanket, pillows and a headboard; a high one is a bunk bed."""
    bunk = asset.height > 1.5
    top = asset.support_height(0.25, min(0.8, asset.height - 0.02), min(0.5, 0.7 * asset.height))
    head = min(0.08, 0.1 * asset.half_depth)
    asset.box(asset.x_span, (-asset.half_depth, -asset.half_depth + head), (0, asset.height), "wood", asset.shade(0.6))
    asset.box(asset.x_span, (-asset.half_depth + head, asset.half_depth), (0.05, 0.55 * top), "wood", asset.shade(0.6))
    asset.legs(asset.half_width, asset.half_depth, 0.05, 0.06, "wood", DARK)
    _add_bedding(asset, -asset.half_depth + head, 0.55 * top, top)
    if bunk:
        upper = 0.72 * asset.height
        for x in ((-asset.half_width, -asset.half_width + 0.06), (asset.half_width - 0.06, asset.half_width)):
            asset.box(
                x, (asset.half_depth - 0.06, asset.half_depth), (0.55 * top, asset.height), "wood", asset.shade(0.6)
            )
        asset.box(
            asset.x_span,
            (-asset.half_depth + head, asset.half_depth - 0.06),
            (upper - 0.18, upper - 0.12),
            "wood",
            asset.shade(0.6),
        )
        _add_bedding(asset, -asset.half_depth + head, upper - 0.12, upper)


def _add_bedding(asset: AssetBuilder, start: float, low: float, high: float) -> None:
    """Add mattress, blanket and pillows from y = `start` to the foot, between two heights, m."""
    asset.box(
        (-asset.half_width + 0.03, asset.half_width - 0.03),
        (start, asset.half_depth - 0.08),
        (low, high - 0.03),
        "fabric",
        WHITE,
    )
    asset.box(
        (-asset.half_width + 0.015, asset.half_width - 0.015),
        (start + 0.3 * asset.half_depth * 2, asset.half_depth - 0.07),
        (0.5 * (low + high), high),
    )
    count = 2 if asset.half_width > 0.6 else 1
    for i in range(count):
        x0 = -asset.half_width + 0.08 + i * (2 * asset.half_width - 0.1) / count
        x1 = x0 + (2 * asset.half_width - 0.1) / count - 0.06
        asset.ellipsoid(
            (x0, x1),
            (start + 0.04, start + min(0.44, 0.28 * asset.half_depth * 2)),
            (high - 0.06, min(high + 0.07, asset.height)),
            "fabric",
            WHITE,
        )


def drawers(asset: AssetBuilder) -> None:
    """A closed chest with rows of drawers."""
    front = asset.half_depth - 0.02
    asset.box(asset.x_span, (-asset.half_depth, front), (0, asset.height - 0.02), colour=asset.shade(0.85))
    asset.box(asset.x_span, asset.y_span, (asset.height - 0.02, asset.height))
    rows = max(2, min(5, round(asset.height / 0.24)))
    columns = 1 if asset.half_width < 0.45 else 2 if asset.half_width < 0.95 else 3
    drawer_height = (asset.height - 0.08) / rows
    drawer_width = 2 * asset.half_width / columns
    for row, column in itertools.product(range(rows), range(columns)):
        x = -asset.half_width + column * drawer_width
        z = 0.05 + row * drawer_height
        asset.box(
            (x + 0.015, x + drawer_width - 0.015),
            (front, asset.half_depth - 0.005),
            (z + 0.01, z + drawer_height - 0.01),
            colour=asset.shade(1.05),
        )
        asset.box(
            (x + drawer_width / 2 - 0.05, x + drawer_width / 2 + 0.05),
            (asset.half_depth - 0.005, asset.half_depth),
            (z + drawer_height / 2, z + drawer_height / 2 + 0.015),
            "metal",
            STEEL,
        )
    asset.surface(asset.x_span, asset.y_span, asset.height)


def shelf(asset: AssetBuilder) -> None:
    """Boards between two sides in front of a back.

    They are more than 0.2 m apart, first at the heights at which objects of the house stand, then at even distances.
    """
    for x in ((-asset.half_width, -asset.half_width + _BOARD), (asset.half_width - _BOARD, asset.half_width)):
        asset.box(x, asset.y_span, (0, asset.height), colour=asset.shade(0.85))
    inner = asset.half_width - _BOARD
    asset.box(
        (-inner, inner), (-asset.half_depth, -asset.half_depth + 0.015), (0, asset.height), colour=asset.shade(0.75)
    )
    levels = [0.05, asset.height]
    count = max(1, round(asset.height / 0.38))
    for z in [*asset.support_heights, *(asset.height * i / count for i in range(1, count))]:
        if 0 < z < asset.height and all(abs(z - level) > 0.2 for level in levels):
            levels.append(z)
    levels.sort()
    for z, above in zip(levels, [*levels[1:], float("inf")], strict=True):
        asset.box((-inner, inner), (-asset.half_depth + 0.015, asset.half_depth), (z - 0.025, z))
        asset.surface((-inner, inner), (-asset.half_depth + 0.015, asset.half_depth), z, above - 0.025 - z)


def fridge(asset: AssetBuilder) -> None:
    """A body with two doors, one above the other, and their handles."""
    door = asset.half_depth - 0.03
    handle = asset.half_depth - 0.1
    split = 0.62 * asset.height
    asset.box(asset.x_span, (-asset.half_depth, handle), (0, asset.height), colour=asset.shade(0.85))
    for z in ((0.05, split - 0.008), (split + 0.008, asset.height)):
        asset.box(asset.x_span, (handle, door), z)
        middle = (z[0] + z[1]) / 2
        half_length = 0.3 * (z[1] - z[0])
        asset.box(
            (0.75 * asset.half_width, 0.75 * asset.half_width + 0.03),
            (door, asset.half_depth),
            (middle - half_length, middle + half_length),
            "metal",
            DARK,
        )


def sink(asset: AssetBuilder) -> None:
    """A basin; a high one stands on a cupboard."""
    rim = min(0.06, 0.2 * asset.half_depth)
    depth = 0.16 if asset.height > 0.46 else asset.height
    low = asset.height - depth
    if low > 0.3:
        asset.box(asset.x_part(0.9), (-asset.half_depth, 0.85 * asset.half_depth), (0, low), "wood", (206, 196, 182))
    asset.box(asset.x_span, asset.y_span, (low, low + 0.3 * depth))
    for x in ((-asset.half_width, -asset.half_width + rim), (asset.half_width - rim, asset.half_width)):
        asset.box(x, asset.y_span, (low + 0.3 * depth, asset.height))
    asset.box(
        (-asset.half_width + rim, asset.half_width - rim),
        (-asset.half_depth, -asset.half_depth + 2 * rim),
        (low + 0.3 * depth, asset.height),
    )
    asset.box(
        (-asset.half_width + rim, asset.half_width - rim),
        (asset.half_depth - rim, asset.half_depth),
        (low + 0.3 * depth, asset.height),
    )


def toilet(asset: AssetBuilder) -> None:
    """A bowl with a seat in front of a tank."""
    tank = -asset.half_depth + min(0.24, 0.5 * asset.half_depth)
    seat = min(0.44, 0.5 * asset.height)
    asset.box(asset.x_span, (-asset.half_depth, tank), (0.8 * seat, asset.height))
    asset.box(
        asset.x_part(0.5), (-asset.half_depth, 0.3 * asset.half_depth), (0, 0.85 * seat), colour=asset.shade(0.93)
    )
    asset.ellipsoid(asset.x_part(0.8), (tank - 0.1, asset.half_depth), (0.3 * seat, 1.1 * seat))
    asset.ellipsoid(
        asset.x_part(0.5), (tank + 0.08, asset.half_depth - 0.1), (seat, 1.1 * seat + 0.01), colour=(150, 176, 188)
    )


def washer(asset: AssetBuilder) -> None:
    """A machine with a glass door and a panel of switches."""
    asset.box(asset.x_span, (-asset.half_depth, asset.half_depth - 0.04), (0, asset.height))
    asset.box(
        asset.x_span,
        (asset.half_depth - 0.04, asset.half_depth - 0.01),
        (0.82 * asset.height, asset.height),
        colour=asset.shade(0.7),
    )
    asset.ellipsoid(
        asset.x_part(0.6),
        (asset.half_depth - 0.12, asset.half_depth),
        (0.2 * asset.height, 0.75 * asset.height),
        "glass",
        BLACK,
    )


def television(asset: AssetBuilder) -> None:
    """A screen; a deep one stands on a foot."""
    is_deep = asset.half_depth > 0.06
    back = -0.03 if is_deep else -asset.half_depth
    front = 0.03 if is_deep else asset.half_depth
    low = 0.08 if is_deep else 0.0
    if is_deep:
        asset.box(asset.x_part(0.4), asset.y_span, (0, 0.02), "plain", BLACK)
        asset.box((-0.06, 0.06), (-0.03, 0.02), (0.02, low), "plain", BLACK)
    asset.box(asset.x_span, (back, front - 0.004), (low, asset.height), "plain", BLACK)
    asset.box(
        (-asset.half_width + 0.02, asset.half_width - 0.02),
        (front - 0.004, front),
        (low + 0.02, asset.height - 0.02),
        "screen",
        (36, 46, 62),
    )


def floor_lamp(asset: AssetBuilder) -> None:
    """A foot, a pole and a shade."""
    shade = 0.78 * asset.height
    asset.cylinder(0.6, (0, 0.03), "metal", DARK)
    asset.pole((0, 0), min(0.02, 0.2 * asset.half_width), (0.03, shade), "metal", DARK)
    asset.cylinder(1.0, (shade, asset.height), "paper", asset.colour)


def cart(asset: AssetBuilder) -> None:
    """Three trays on four posts."""
    asset.legs(asset.half_width, asset.half_depth, asset.height, 0.03, "metal", STEEL)
    for z in (0.15, 0.5 * asset.height, asset.height):
        asset.box(asset.x_span, asset.y_span, (z - 0.03, z))
        asset.surface(
            (-asset.half_width + 0.03, asset.half_width - 0.03),
            (-asset.half_depth + 0.03, asset.half_depth - 0.03),
            z,
            0.5 * asset.height - 0.15,
        )
