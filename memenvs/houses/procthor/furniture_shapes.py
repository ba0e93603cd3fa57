"""Shapes of ProcTHOR's furniture: each function fills the bounding box of one asset.

The pieces are meant to be recognised from a distance. Coordinates are those of `AssetBuilder`: x from -`asset.x` to
`asset.x`, y from -`asset.y` (back) to `asset.y` (front), z from 0 to `asset.z`, in metres.
"""

from __future__ import annotations

import itertools

from memenvs.houses.procthor.asset_builder import BLACK, DARK, STEEL, WHITE, AssetBuilder

_BOARD = 0.03  # m; thickness of boards and panels
_RUN = 0.61  # m; depth of a kitchen counter


def table(asset: AssetBuilder) -> None:
    """A top on four legs."""
    thick = min(0.05, 0.2 * asset.z)
    leg = min(0.07, 0.3 * asset.x, 0.3 * asset.y)
    asset.box(asset.x_span, asset.y_span, (asset.z - thick, asset.z))
    asset.legs(asset.x, asset.y, asset.z - thick, leg, colour=asset.shade(0.8))
    asset.surface(asset.x_span, asset.y_span, asset.z)


def side_table(asset: AssetBuilder) -> None:
    """A small table with a drawer and a low board."""
    leg = min(0.04, 0.2 * asset.x, 0.2 * asset.y)
    asset.box(asset.x_span, asset.y_span, (asset.z - _BOARD, asset.z))
    asset.box(asset.x_part(0.94), asset.y_part(0.94), (0.75 * asset.z, asset.z - _BOARD), colour=asset.shade(0.85))
    asset.box(asset.x_part(0.9), asset.y_part(0.9), (0.2 * asset.z, 0.2 * asset.z + 0.02))
    asset.legs(asset.x, asset.y, 0.75 * asset.z, leg, colour=asset.shade(0.8))
    asset.surface(asset.x_span, asset.y_span, asset.z)


def desk(asset: AssetBuilder) -> None:
    """A top on side panels with drawers under it; a high one has shelves along its back."""
    top = asset.z if asset.z <= 1.0 else asset.support_height(0.6, 0.95, min(0.75, asset.z))
    asset.box(asset.x_span, asset.y_span, (top - _BOARD, top))
    for x in ((-asset.x, -asset.x + _BOARD), (asset.x - _BOARD, asset.x)):
        asset.box(x, asset.y_span, (0, top - _BOARD), colour=asset.shade(0.85))
    inner = asset.x - _BOARD
    asset.box((0.45 * asset.x, inner), asset.y_part(0.95), (0.1, top - _BOARD), colour=asset.shade(0.92))
    front = -asset.y
    if asset.z - top > 0.15:
        front = -asset.y + min(0.3, asset.y)
        asset.box(asset.x_span, (-asset.y, -asset.y + _BOARD), (top, asset.z), colour=asset.shade(0.85))
        for x in ((-asset.x, -asset.x + _BOARD), (asset.x - _BOARD, asset.x)):
            asset.box(x, (-asset.y + _BOARD, front), (top, asset.z - _BOARD))
        asset.box(asset.x_span, (-asset.y + _BOARD, front), (asset.z - _BOARD, asset.z))
        for z in [rest for rest in asset.support_heights if top + 0.15 < rest < asset.z - 0.1]:
            asset.box((-inner, inner), (-asset.y + _BOARD, front), (z - 0.02, z))
    asset.surface(asset.x_span, (front, asset.y), top)


def counter(asset: AssetBuilder) -> None:
    """Kitchen cupboards under a stone top, along one to three walls.

    The asset id names the form: "_L_" for two walls, "_C_" for three.
    """
    deep = min(_RUN, 2 * asset.y)
    runs = [(asset.x_span, (-asset.y, -asset.y + deep))]
    if "_L_" in asset.asset_id or "_C_" in asset.asset_id:
        runs.append(((asset.x - _RUN, asset.x), (-asset.y + deep, asset.y)))
        if "_C_" in asset.asset_id:
            runs.append(((-asset.x, -asset.x + _RUN), (-asset.y + deep, asset.y)))
    else:
        runs = [(asset.x_span, asset.y_span)]
    for x, y in runs:
        asset.box((x[0] + 0.02, x[1] - 0.02), (y[0] + 0.02, y[1] - 0.02), (0, asset.z - 0.04), "plain", asset.colour)
        asset.box(x, y, (asset.z - 0.04, asset.z), "marble", (214, 212, 206))
        asset.surface(x, y, asset.z)
    count = max(1, round(2 * asset.x / 0.6))
    width = 2 * asset.x / count
    front = runs[0][1][1]
    doors = range(count) if len(runs) == 1 else range(len(runs) > 2, count - 1)
    for i in doors:
        x = (-asset.x + i * width + 0.02, -asset.x + (i + 1) * width - 0.02)
        asset.box(x, (front - 0.02, front - 0.005), (0.1, asset.z - 0.07), "plain", asset.shade(1.12))
        asset.box((x[0] + 0.1, x[1] - 0.1), (front - 0.005, front), (asset.z - 0.16, asset.z - 0.14), "metal", STEEL)


def chair(asset: AssetBuilder) -> None:
    """A seat on four legs with a back."""
    seat = asset.support_height(0.3, 0.7 * asset.z, min(0.47, 0.55 * asset.z))
    back = 0.045
    asset.box(asset.x_span, (-asset.y + back, asset.y), (seat - 0.05, seat))
    asset.box(asset.x_span, (-asset.y, -asset.y + back), (seat + 0.1, asset.z))
    for x in ((-asset.x, -asset.x + back), (asset.x - back, asset.x)):
        asset.box(x, (-asset.y, -asset.y + back), (0, seat + 0.1), colour=asset.shade(0.7))
        asset.box(x, (asset.y - back, asset.y), (0, seat - 0.05), colour=asset.shade(0.7))


def stool(asset: AssetBuilder) -> None:
    """A seat on four legs."""
    asset.cylinder(1.0, (asset.z - 0.06, asset.z))
    reach = 0.7
    asset.legs(reach * asset.x, reach * asset.y, asset.z - 0.06, 0.03, "metal", DARK)


def sofa(asset: AssetBuilder) -> None:
    """A seat between two arms before a back; two or three cushions if it is wide."""
    arm = min(0.2, 0.16 * asset.x * 2)
    back = min(0.24, 0.6 * asset.y)
    seat = asset.support_height(0.25, 0.75 * asset.z, min(0.45, 0.5 * asset.z))
    arms = min(asset.z, seat + 0.2)
    asset.box(asset.x_span, (-asset.y, -asset.y + back), (0.04, asset.z))
    for x in ((-asset.x, -asset.x + arm), (asset.x - arm, asset.x)):
        asset.box(x, (-asset.y + back, asset.y), (0.04, arms), colour=asset.shade(0.92))
    asset.box(
        (-asset.x + arm, asset.x - arm),
        (-asset.y + back, asset.y - 0.02),
        (0.04, seat - 0.13),
        colour=asset.shade(0.85),
    )
    inner = asset.x - arm
    count = max(1, round(2 * inner / 0.75))
    for i in range(count):
        x0 = -inner + 2 * inner / count * i
        asset.box(
            (x0 + 0.005, x0 + 2 * inner / count - 0.005),
            (-asset.y + back, asset.y),
            (seat - 0.13, seat),
            colour=asset.shade(1.08),
        )
    asset.legs(asset.x - 0.02, asset.y - 0.02, 0.04, 0.05, "wood", DARK)


def bed(asset: AssetBuilder) -> None:
    """A base, a mattress under a blanket, pillows and a headboard; a high one is a bunk bed."""
    bunk = asset.z > 1.5
    top = asset.support_height(0.25, min(0.8, asset.z - 0.02), min(0.5, 0.7 * asset.z))
    head = min(0.08, 0.1 * asset.y)
    asset.box(asset.x_span, (-asset.y, -asset.y + head), (0, asset.z), "wood", asset.shade(0.6))
    asset.box(asset.x_span, (-asset.y + head, asset.y), (0.05, 0.55 * top), "wood", asset.shade(0.6))
    asset.legs(asset.x, asset.y, 0.05, 0.06, "wood", DARK)
    _bedding(asset, -asset.y + head, 0.55 * top, top)
    if bunk:
        upper = 0.72 * asset.z
        for x in ((-asset.x, -asset.x + 0.06), (asset.x - 0.06, asset.x)):
            asset.box(x, (asset.y - 0.06, asset.y), (0.55 * top, asset.z), "wood", asset.shade(0.6))
        asset.box(
            asset.x_span,
            (-asset.y + head, asset.y - 0.06),
            (upper - 0.18, upper - 0.12),
            "wood",
            asset.shade(0.6),
        )
        _bedding(asset, -asset.y + head, upper - 0.12, upper)


def _bedding(asset: AssetBuilder, start: float, low: float, high: float) -> None:
    """Add mattress, blanket and pillows from y = `start` to the foot, between two heights, m."""
    asset.box((-asset.x + 0.03, asset.x - 0.03), (start, asset.y - 0.08), (low, high - 0.03), "fabric", WHITE)
    asset.box(
        (-asset.x + 0.015, asset.x - 0.015), (start + 0.3 * asset.y * 2, asset.y - 0.07), (0.5 * (low + high), high)
    )
    count = 2 if asset.x > 0.6 else 1
    for i in range(count):
        x0 = -asset.x + 0.08 + i * (2 * asset.x - 0.1) / count
        x1 = x0 + (2 * asset.x - 0.1) / count - 0.06
        asset.ellipsoid(
            (x0, x1),
            (start + 0.04, start + min(0.44, 0.28 * asset.y * 2)),
            (high - 0.06, min(high + 0.07, asset.z)),
            "fabric",
            WHITE,
        )


def drawers(asset: AssetBuilder) -> None:
    """A closed chest with rows of drawers."""
    front = asset.y - 0.02
    asset.box(asset.x_span, (-asset.y, front), (0, asset.z - 0.02), colour=asset.shade(0.85))
    asset.box(asset.x_span, asset.y_span, (asset.z - 0.02, asset.z))
    rows = max(2, min(5, round(asset.z / 0.24)))
    columns = 1 if asset.x < 0.45 else 2 if asset.x < 0.95 else 3
    high = (asset.z - 0.08) / rows
    wide = 2 * asset.x / columns
    for row, column in itertools.product(range(rows), range(columns)):
        x = -asset.x + column * wide
        z = 0.05 + row * high
        asset.box(
            (x + 0.015, x + wide - 0.015),
            (front, asset.y - 0.005),
            (z + 0.01, z + high - 0.01),
            colour=asset.shade(1.05),
        )
        asset.box(
            (x + wide / 2 - 0.05, x + wide / 2 + 0.05),
            (asset.y - 0.005, asset.y),
            (z + high / 2, z + high / 2 + 0.015),
            "metal",
            STEEL,
        )
    asset.surface(asset.x_span, asset.y_span, asset.z)


def shelf(asset: AssetBuilder) -> None:
    """Boards between two sides before a back; one wherever an object of the house stands."""
    for x in ((-asset.x, -asset.x + _BOARD), (asset.x - _BOARD, asset.x)):
        asset.box(x, asset.y_span, (0, asset.z), colour=asset.shade(0.85))
    inner = asset.x - _BOARD
    asset.box((-inner, inner), (-asset.y, -asset.y + 0.015), (0, asset.z), colour=asset.shade(0.75))
    levels = [0.05, asset.z]
    count = max(1, round(asset.z / 0.38))
    for z in [*asset.support_heights, *(asset.z * i / count for i in range(1, count))]:
        if 0 < z < asset.z and all(abs(z - level) > 0.2 for level in levels):
            levels.append(z)
    levels.sort()
    for z, above in zip(levels, [*levels[1:], float("inf")], strict=True):
        asset.box((-inner, inner), (-asset.y + 0.015, asset.y), (z - 0.025, z))
        asset.surface((-inner, inner), (-asset.y + 0.015, asset.y), z, above - 0.025 - z)


def fridge(asset: AssetBuilder) -> None:
    """A body with two doors, one above the other, and their handles."""
    door = asset.y - 0.03
    handle = asset.y - 0.1
    split = 0.62 * asset.z
    asset.box(asset.x_span, (-asset.y, handle), (0, asset.z), colour=asset.shade(0.85))
    for z in ((0.05, split - 0.008), (split + 0.008, asset.z)):
        asset.box(asset.x_span, (handle, door), z)
        middle = (z[0] + z[1]) / 2
        long = 0.3 * (z[1] - z[0])
        asset.box(
            (0.75 * asset.x, 0.75 * asset.x + 0.03), (door, asset.y), (middle - long, middle + long), "metal", DARK
        )


def sink(asset: AssetBuilder) -> None:
    """A basin; a high one stands on a cupboard."""
    rim = min(0.06, 0.2 * asset.y)
    deep = 0.16 if asset.z > 0.46 else asset.z
    low = asset.z - deep
    if low > 0.3:
        asset.box(asset.x_part(0.9), (-asset.y, 0.85 * asset.y), (0, low), "wood", (206, 196, 182))
    asset.box(asset.x_span, asset.y_span, (low, low + 0.3 * deep))
    for x in ((-asset.x, -asset.x + rim), (asset.x - rim, asset.x)):
        asset.box(x, asset.y_span, (low + 0.3 * deep, asset.z))
    asset.box((-asset.x + rim, asset.x - rim), (-asset.y, -asset.y + 2 * rim), (low + 0.3 * deep, asset.z))
    asset.box((-asset.x + rim, asset.x - rim), (asset.y - rim, asset.y), (low + 0.3 * deep, asset.z))


def toilet(asset: AssetBuilder) -> None:
    """A bowl with a seat before a tank."""
    tank = -asset.y + min(0.24, 0.5 * asset.y)
    seat = min(0.44, 0.5 * asset.z)
    asset.box(asset.x_span, (-asset.y, tank), (0.8 * seat, asset.z))
    asset.box(asset.x_part(0.5), (-asset.y, 0.3 * asset.y), (0, 0.85 * seat), colour=asset.shade(0.93))
    asset.ellipsoid(asset.x_part(0.8), (tank - 0.1, asset.y), (0.3 * seat, 1.1 * seat))
    asset.ellipsoid(asset.x_part(0.5), (tank + 0.08, asset.y - 0.1), (seat, 1.1 * seat + 0.01), colour=(150, 176, 188))


def washer(asset: AssetBuilder) -> None:
    """A machine with a glass door and a panel of switches."""
    asset.box(asset.x_span, (-asset.y, asset.y - 0.04), (0, asset.z))
    asset.box(asset.x_span, (asset.y - 0.04, asset.y - 0.01), (0.82 * asset.z, asset.z), colour=asset.shade(0.7))
    asset.ellipsoid(asset.x_part(0.6), (asset.y - 0.12, asset.y), (0.2 * asset.z, 0.75 * asset.z), "glass", BLACK)


def television(asset: AssetBuilder) -> None:
    """A screen; a deep one stands on a foot."""
    is_deep = asset.y > 0.06
    back = -0.03 if is_deep else -asset.y
    front = 0.03 if is_deep else asset.y
    low = 0.08 if is_deep else 0.0
    if is_deep:
        asset.box(asset.x_part(0.4), asset.y_span, (0, 0.02), "plain", BLACK)
        asset.box((-0.06, 0.06), (-0.03, 0.02), (0.02, low), "plain", BLACK)
    asset.box(asset.x_span, (back, front - 0.004), (low, asset.z), "plain", BLACK)
    asset.box(
        (-asset.x + 0.02, asset.x - 0.02), (front - 0.004, front), (low + 0.02, asset.z - 0.02), "screen", (36, 46, 62)
    )


def floor_lamp(asset: AssetBuilder) -> None:
    """A foot, a pole and a shade."""
    shade = 0.78 * asset.z
    asset.cylinder(0.6, (0, 0.03), "metal", DARK)
    asset.pole((0, 0), min(0.02, 0.2 * asset.x), (0.03, shade), "metal", DARK)
    asset.cylinder(1.0, (shade, asset.z), "paper", asset.colour)


def cart(asset: AssetBuilder) -> None:
    """Three trays on four posts."""
    asset.legs(asset.x, asset.y, asset.z, 0.03, "metal", STEEL)
    for z in (0.15, 0.5 * asset.z, asset.z):
        asset.box(asset.x_span, asset.y_span, (z - 0.03, z))
        asset.surface((-asset.x + 0.03, asset.x - 0.03), (-asset.y + 0.03, asset.y - 0.03), z, 0.5 * asset.z - 0.15)
