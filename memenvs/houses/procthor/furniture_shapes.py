"""Shapes of ProcTHOR's furniture: each function fills the bounding box of one asset.

The pieces are meant to be recognised from a distance. In each function `w` and `d` are half of the asset's width and
depth, and `h` is its height, in metres: the box reaches from -`w` to `w` along x, from -`d` (back) to `d` (front) along
y, and from 0 to `h` along z.
"""

from __future__ import annotations

import itertools

from memenvs.houses.house import Finish
from memenvs.houses.procthor.asset_model import (
    BARE_STEEL,
    BLACK_GLASS,
    BLACK_PLASTIC,
    DARK_METAL,
    DARK_WOOD,
    WHITE_FABRIC,
    AssetModel,
)

_BOARD = 0.03  # m; thickness of boards and panels
_COUNTER_DEPTH = 0.61  # m; of a kitchen counter


def table(asset: AssetModel) -> None:
    """A top on four legs."""
    w, d, h = asset.extents
    thickness = min(0.05, 0.2 * h)
    leg = min(0.07, 0.3 * w, 0.3 * d)
    asset.box(asset.x_span, asset.y_span, (h - thickness, h))
    asset.posts(w, d, h - thickness, leg, asset.shade(0.8))
    asset.surface(asset.x_span, asset.y_span, h)


def side_table(asset: AssetModel) -> None:
    """A small table with a drawer and a low board."""
    w, d, h = asset.extents
    leg = min(0.04, 0.2 * w, 0.2 * d)
    asset.box(asset.x_span, asset.y_span, (h - _BOARD, h))
    asset.box(asset.x_part(0.94), asset.y_part(0.94), (0.75 * h, h - _BOARD), asset.shade(0.85))
    asset.box(asset.x_part(0.9), asset.y_part(0.9), (0.2 * h, 0.2 * h + 0.02))
    asset.posts(w, d, 0.75 * h, leg, asset.shade(0.8))
    asset.surface(asset.x_span, asset.y_span, h)


def desk(asset: AssetModel) -> None:
    """A top on side panels with drawers under it; a high one has shelves along its back."""
    w, d, h = asset.extents
    top = h if h <= 1.0 else asset.support_height(0.6, 0.95, 0.75)
    asset.box(asset.x_span, asset.y_span, (top - _BOARD, top))
    for x in asset.x_sides(_BOARD):
        asset.box(x, asset.y_span, (0, top - _BOARD), asset.shade(0.85))
    inner = w - _BOARD
    asset.box((0.45 * w, inner), asset.y_part(0.95), (0.1, top - _BOARD), asset.shade(0.92))
    front = -d
    if h - top > 0.15:
        front = -d + min(0.3, d)
        asset.box(asset.x_span, (-d, -d + _BOARD), (top, h), asset.shade(0.85))
        for x in asset.x_sides(_BOARD):
            asset.box(x, (-d + _BOARD, front), (top, h - _BOARD))
        asset.box(asset.x_span, (-d + _BOARD, front), (h - _BOARD, h))
        for z in [rest for rest in asset.support_heights if top + 0.15 < rest < h - 0.1]:
            asset.box((-inner, inner), (-d + _BOARD, front), (z - 0.02, z))
    asset.surface(asset.x_span, (front, d), top)


def counter(asset: AssetModel) -> None:
    """Kitchen cupboards under a stone top, along one to three walls.

    The asset id names the form: "_L_" for two walls, "_C_" for three.
    """
    w, d, h = asset.extents
    depth = min(_COUNTER_DEPTH, 2 * d)
    runs = [(asset.x_span, (-d, -d + depth))]
    if "_L_" in asset.asset_id or "_C_" in asset.asset_id:
        runs.append(((w - _COUNTER_DEPTH, w), (-d + depth, d)))
        if "_C_" in asset.asset_id:
            runs.append(((-w, -w + _COUNTER_DEPTH), (-d + depth, d)))
    else:
        runs = [(asset.x_span, asset.y_span)]
    for x, y in runs:
        asset.box(
            (x[0] + 0.02, x[1] - 0.02), (y[0] + 0.02, y[1] - 0.02), (0, h - 0.04), Finish("plain", asset.finish.colour)
        )
        asset.box(x, y, (h - 0.04, h), Finish("marble", (214, 212, 206)))
        asset.surface(x, y, h)
    count = max(1, round(2 * w / 0.6))
    width = 2 * w / count
    front = runs[0][1][1]
    # The back run has no doors in the corners: at the right if there are two runs, at both ends if there are three.
    first, end = int(len(runs) == 3), count - int(len(runs) > 1)
    for i in range(first, end):
        x = (-w + i * width + 0.02, -w + (i + 1) * width - 0.02)
        asset.box(x, (front - 0.02, front - 0.005), (0.1, h - 0.07), asset.shade(1.12, "plain"))
        asset.box((x[0] + 0.1, x[1] - 0.1), (front - 0.005, front), (h - 0.16, h - 0.14), BARE_STEEL)


def chair(asset: AssetModel) -> None:
    """A seat on four legs with a back."""
    _, d, h = asset.extents
    seat = asset.support_height(0.3, 0.7 * h, min(0.47, 0.55 * h))
    back = 0.045
    asset.box(asset.x_span, (-d + back, d), (seat - 0.05, seat))
    asset.box(asset.x_span, (-d, -d + back), (seat + 0.1, h))
    for x in asset.x_sides(back):
        asset.box(x, (-d, -d + back), (0, seat + 0.1), asset.shade(0.7))
        asset.box(x, (d - back, d), (0, seat - 0.05), asset.shade(0.7))


def stool(asset: AssetModel) -> None:
    """A seat on four legs."""
    w, d, h = asset.extents
    asset.column(1.0, (h - 0.06, h))
    reach = 0.7
    asset.posts(reach * w, reach * d, h - 0.06, 0.03, DARK_METAL)


def sofa(asset: AssetModel) -> None:
    """A seat between two arms in front of a back; two or three cushions if it is wide."""
    w, d, h = asset.extents
    arm = min(0.2, 0.16 * w * 2)
    back = min(0.24, 0.6 * d)
    seat = asset.support_height(0.25, 0.75 * h, min(0.45, 0.5 * h))
    arms = min(h, seat + 0.2)
    asset.box(asset.x_span, (-d, -d + back), (0.04, h))
    for x in asset.x_sides(arm):
        asset.box(x, (-d + back, d), (0.04, arms), asset.shade(0.92))
    asset.box(asset.x_inside(arm), (-d + back, d - 0.02), (0.04, seat - 0.13), asset.shade(0.85))
    inner = w - arm
    count = max(1, round(2 * inner / 0.75))
    for i in range(count):
        x0 = -inner + 2 * inner / count * i
        asset.box((x0 + 0.005, x0 + 2 * inner / count - 0.005), (-d + back, d), (seat - 0.13, seat), asset.shade(1.08))
    asset.posts(w - 0.02, d - 0.02, 0.04, 0.05, DARK_WOOD)


def bed(asset: AssetModel) -> None:
    """A base, a mattress under a blanket, pillows and a headboard; a high one is a bunk bed."""
    w, d, h = asset.extents
    bunk = h > 1.5
    top = asset.support_height(0.25, min(0.8, h - 0.02), min(0.5, 0.7 * h))
    head = min(0.08, 0.1 * d)
    asset.box(asset.x_span, (-d, -d + head), (0, h), asset.shade(0.6, "wood"))
    asset.box(asset.x_span, (-d + head, d), (0.05, 0.55 * top), asset.shade(0.6, "wood"))
    asset.posts(w, d, 0.05, 0.06, DARK_WOOD)
    _add_bedding(asset, -d + head, 0.55 * top, top)
    if bunk:
        upper = 0.72 * h
        for x in asset.x_sides(0.06):
            asset.box(x, (d - 0.06, d), (0.55 * top, h), asset.shade(0.6, "wood"))
        asset.box(asset.x_span, (-d + head, d - 0.06), (upper - 0.18, upper - 0.12), asset.shade(0.6, "wood"))
        _add_bedding(asset, -d + head, upper - 0.12, upper)


def _add_bedding(asset: AssetModel, start: float, low: float, high: float) -> None:
    """Add mattress, blanket and pillows from y = `start` to the foot, between two heights, m."""
    w, d, h = asset.extents
    asset.box(asset.x_inside(0.03), (start, d - 0.08), (low, high - 0.03), WHITE_FABRIC)
    asset.box(asset.x_inside(0.015), (start + 0.3 * d * 2, d - 0.07), (0.5 * (low + high), high))
    count = 2 if w > 0.6 else 1
    for i in range(count):
        x0 = -w + 0.08 + i * (2 * w - 0.1) / count
        x1 = x0 + (2 * w - 0.1) / count - 0.06
        asset.oval(
            (x0, x1), (start + 0.04, start + min(0.44, 0.28 * d * 2)), (high - 0.06, min(high + 0.07, h)), WHITE_FABRIC
        )


def drawers(asset: AssetModel) -> None:
    """A closed chest with rows of drawers."""
    w, d, h = asset.extents
    front = d - 0.02
    asset.box(asset.x_span, (-d, front), (0, h - 0.02), asset.shade(0.85))
    asset.box(asset.x_span, asset.y_span, (h - 0.02, h))
    rows = max(2, min(5, round(h / 0.24)))
    columns = 1 if w < 0.45 else 2 if w < 0.95 else 3
    drawer_height = (h - 0.08) / rows
    drawer_width = 2 * w / columns
    for row, column in itertools.product(range(rows), range(columns)):
        x = -w + column * drawer_width
        z = 0.05 + row * drawer_height
        asset.box(
            (x + 0.015, x + drawer_width - 0.015),
            (front, d - 0.005),
            (z + 0.01, z + drawer_height - 0.01),
            asset.shade(1.05),
        )
        asset.box(
            (x + drawer_width / 2 - 0.05, x + drawer_width / 2 + 0.05),
            (d - 0.005, d),
            (z + drawer_height / 2, z + drawer_height / 2 + 0.015),
            BARE_STEEL,
        )
    asset.surface(asset.x_span, asset.y_span, h)


def shelf(asset: AssetModel) -> None:
    """Boards between two sides in front of a back.

    They are more than 0.2 m apart, first at the heights at which objects of the house stand, then at even distances.
    """
    w, d, h = asset.extents
    for x in asset.x_sides(_BOARD):
        asset.box(x, asset.y_span, (0, h), asset.shade(0.85))
    inner = w - _BOARD
    asset.box((-inner, inner), (-d, -d + 0.015), (0, h), asset.shade(0.75))
    levels = [0.05, h]
    count = max(1, round(h / 0.38))
    for z in [*asset.support_heights, *(h * i / count for i in range(1, count))]:
        if 0 < z < h and all(abs(z - level) > 0.2 for level in levels):
            levels.append(z)
    levels.sort()
    for z, above in zip(levels, [*levels[1:], float("inf")], strict=True):
        asset.box((-inner, inner), (-d + 0.015, d), (z - 0.025, z))
        asset.surface((-inner, inner), (-d + 0.015, d), z, above - 0.025 - z)


def fridge(asset: AssetModel) -> None:
    """A body with two doors, one above the other, and their handles."""
    w, d, h = asset.extents
    door = d - 0.03
    handle = d - 0.1
    split = 0.62 * h
    asset.box(asset.x_span, (-d, handle), (0, h), asset.shade(0.85))
    for z in ((0.05, split - 0.008), (split + 0.008, h)):
        asset.box(asset.x_span, (handle, door), z)
        middle = (z[0] + z[1]) / 2
        half_length = 0.3 * (z[1] - z[0])
        asset.box((0.75 * w, 0.75 * w + 0.03), (door, d), (middle - half_length, middle + half_length), DARK_METAL)


def sink(asset: AssetModel) -> None:
    """A basin; a high one stands on a cupboard."""
    _, d, h = asset.extents
    rim = min(0.06, 0.2 * d)
    depth = 0.16 if h > 0.46 else h
    low = h - depth
    if low > 0.3:
        asset.box(asset.x_part(0.9), (-d, 0.85 * d), (0, low), Finish("wood", (206, 196, 182)))
    asset.box(asset.x_span, asset.y_span, (low, low + 0.3 * depth))
    for x in asset.x_sides(rim):
        asset.box(x, asset.y_span, (low + 0.3 * depth, h))
    asset.box(asset.x_inside(rim), (-d, -d + 2 * rim), (low + 0.3 * depth, h))
    asset.box(asset.x_inside(rim), (d - rim, d), (low + 0.3 * depth, h))


def toilet(asset: AssetModel) -> None:
    """A bowl with a seat in front of a tank."""
    _, d, h = asset.extents
    tank = -d + min(0.24, 0.5 * d)
    seat = min(0.44, 0.5 * h)
    asset.box(asset.x_span, (-d, tank), (0.8 * seat, h))
    asset.box(asset.x_part(0.5), (-d, 0.3 * d), (0, 0.85 * seat), asset.shade(0.93))
    asset.oval(asset.x_part(0.8), (tank - 0.1, d), (0.3 * seat, 1.1 * seat))
    asset.oval(
        asset.x_part(0.5),
        (tank + 0.08, d - 0.1),
        (seat, 1.1 * seat + 0.01),
        Finish(asset.finish.material, (150, 176, 188)),
    )


def washer(asset: AssetModel) -> None:
    """A machine with a glass door and a panel of switches."""
    _, d, h = asset.extents
    asset.box(asset.x_span, (-d, d - 0.04), (0, h))
    asset.box(asset.x_span, (d - 0.04, d - 0.01), (0.82 * h, h), asset.shade(0.7))
    asset.oval(asset.x_part(0.6), (d - 0.12, d), (0.2 * h, 0.75 * h), BLACK_GLASS)


def television(asset: AssetModel) -> None:
    """A screen; a deep one stands on a foot."""
    _, d, h = asset.extents
    is_deep = d > 0.06
    back = -0.03 if is_deep else -d
    front = 0.03 if is_deep else d
    low = 0.08 if is_deep else 0.0
    if is_deep:
        asset.box(asset.x_part(0.4), asset.y_span, (0, 0.02), BLACK_PLASTIC)
        asset.box((-0.06, 0.06), (-0.03, 0.02), (0.02, low), BLACK_PLASTIC)
    asset.box(asset.x_span, (back, front - 0.004), (low, h), BLACK_PLASTIC)
    asset.box(asset.x_inside(0.02), (front - 0.004, front), (low + 0.02, h - 0.02), Finish("screen", (36, 46, 62)))


def floor_lamp(asset: AssetModel) -> None:
    """A foot, a pole and a shade."""
    w, _, h = asset.extents
    shade = 0.78 * h
    asset.column(0.6, (0, 0.03), DARK_METAL)
    asset.cylinder(0.0, 0.0, (0.03, shade), min(0.02, 0.2 * w), DARK_METAL)
    asset.column(1.0, (shade, h), Finish("paper", asset.finish.colour))


def cart(asset: AssetModel) -> None:
    """Three trays on four posts."""
    w, d, h = asset.extents
    asset.posts(w, d, h, 0.03, BARE_STEEL)
    for z in (0.15, 0.5 * h, h):
        asset.box(asset.x_span, asset.y_span, (z - 0.03, z))
        asset.surface(asset.x_inside(0.03), (-d + 0.03, d - 0.03), z, 0.5 * h - 0.15)
