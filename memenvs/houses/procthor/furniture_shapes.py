"""Shapes of furniture: each function fills the bounding box of one asset so that it is known from afar."""

from __future__ import annotations

import itertools

from memenvs.houses.procthor.asset_builder import BLACK, DARK, STEEL, WHITE, AssetBuilder

_BOARD = 0.03  # m; thickness of boards and panels
_RUN = 0.61  # m; depth of a kitchen counter


def table(p: AssetBuilder) -> None:
    """A top on four legs."""
    thick, leg = min(0.05, 0.2 * p.z), min(0.07, 0.3 * p.x, 0.3 * p.y)
    p.box((-p.x, p.x), (-p.y, p.y), (p.z - thick, p.z))
    p.legs(p.x, p.y, p.z - thick, leg, colour=p.shade(0.8))
    p.top((-p.x, p.x), (-p.y, p.y), p.z)


def side_table(p: AssetBuilder) -> None:
    """A small table with a drawer and a low board."""
    leg = min(0.04, 0.2 * p.x, 0.2 * p.y)
    p.box((-p.x, p.x), (-p.y, p.y), (p.z - _BOARD, p.z))
    p.box((-0.94 * p.x, 0.94 * p.x), (-0.94 * p.y, 0.94 * p.y), (0.75 * p.z, p.z - _BOARD), colour=p.shade(0.85))
    p.box((-0.9 * p.x, 0.9 * p.x), (-0.9 * p.y, 0.9 * p.y), (0.2 * p.z, 0.2 * p.z + 0.02))
    p.legs(p.x, p.y, 0.75 * p.z, leg, colour=p.shade(0.8))
    p.top((-p.x, p.x), (-p.y, p.y), p.z)


def desk(p: AssetBuilder) -> None:
    """A top on side panels with drawers under it; a high one has shelves along its back."""
    top = p.z if p.z <= 1.0 else p.rest(0.6, 0.95, min(0.75, p.z))
    p.box((-p.x, p.x), (-p.y, p.y), (top - _BOARD, top))
    for x in ((-p.x, -p.x + _BOARD), (p.x - _BOARD, p.x)):
        p.box(x, (-p.y, p.y), (0, top - _BOARD), colour=p.shade(0.85))
    inner = p.x - _BOARD
    p.box((0.45 * p.x, inner), (-0.95 * p.y, 0.95 * p.y), (0.1, top - _BOARD), colour=p.shade(0.92))
    front = -p.y
    if p.z - top > 0.15:
        front = -p.y + min(0.3, p.y)
        p.box((-p.x, p.x), (-p.y, -p.y + _BOARD), (top, p.z), colour=p.shade(0.85))
        for x in ((-p.x, -p.x + _BOARD), (p.x - _BOARD, p.x)):
            p.box(x, (-p.y + _BOARD, front), (top, p.z - _BOARD))
        p.box((-p.x, p.x), (-p.y + _BOARD, front), (p.z - _BOARD, p.z))
        for z in [rest for rest in p.rests if top + 0.15 < rest < p.z - 0.1]:
            p.box((-inner, inner), (-p.y + _BOARD, front), (z - 0.02, z))
    p.top((-p.x, p.x), (front, p.y), top)


def counter(p: AssetBuilder) -> None:
    """Kitchen cupboards under a stone top, along one, two or three walls or free, as the asset's name has it."""
    deep = min(_RUN, 2 * p.y)
    runs = [((-p.x, p.x), (-p.y, -p.y + deep))]
    if "_L_" in p.asset or "_C_" in p.asset:
        runs.append(((p.x - _RUN, p.x), (-p.y + deep, p.y)))
        if "_C_" in p.asset:
            runs.append(((-p.x, -p.x + _RUN), (-p.y + deep, p.y)))
    else:
        runs = [((-p.x, p.x), (-p.y, p.y))]
    for x, y in runs:
        p.box((x[0] + 0.02, x[1] - 0.02), (y[0] + 0.02, y[1] - 0.02), (0, p.z - 0.04), "plain", p.colour)
        p.box(x, y, (p.z - 0.04, p.z), "marble", (214, 212, 206))
        p.top(x, y, p.z)
    count = max(1, round(2 * p.x / 0.6))
    width, front = 2 * p.x / count, runs[0][1][1]
    doors = range(count) if len(runs) == 1 else range(len(runs) > 2, count - 1)
    for i in doors:
        x = (-p.x + i * width + 0.02, -p.x + (i + 1) * width - 0.02)
        p.box(x, (front - 0.02, front - 0.005), (0.1, p.z - 0.07), "plain", p.shade(1.12))
        p.box((x[0] + 0.1, x[1] - 0.1), (front - 0.005, front), (p.z - 0.16, p.z - 0.14), "metal", STEEL)


def chair(p: AssetBuilder) -> None:
    """A seat on four legs with a back."""
    seat, back = p.rest(0.3, 0.7 * p.z, min(0.47, 0.55 * p.z)), 0.045
    p.box((-p.x, p.x), (-p.y + back, p.y), (seat - 0.05, seat))
    p.box((-p.x, p.x), (-p.y, -p.y + back), (seat + 0.1, p.z))
    for x in ((-p.x, -p.x + back), (p.x - back, p.x)):
        p.box(x, (-p.y, -p.y + back), (0, seat + 0.1), colour=p.shade(0.7))
        p.box(x, (p.y - back, p.y), (0, seat - 0.05), colour=p.shade(0.7))


def stool(p: AssetBuilder) -> None:
    """A seat on four legs."""
    p.round(1.0, (p.z - 0.06, p.z))
    reach = 0.7
    p.legs(reach * p.x, reach * p.y, p.z - 0.06, 0.03, "metal", DARK)


def sofa(p: AssetBuilder) -> None:
    """A seat between two arms before a back; two or three cushions if it is wide."""
    arm, back = min(0.2, 0.16 * p.x * 2), min(0.24, 0.6 * p.y)
    seat = p.rest(0.25, 0.75 * p.z, min(0.45, 0.5 * p.z))
    arms = min(p.z, seat + 0.2)
    p.box((-p.x, p.x), (-p.y, -p.y + back), (0.04, p.z))
    for x in ((-p.x, -p.x + arm), (p.x - arm, p.x)):
        p.box(x, (-p.y + back, p.y), (0.04, arms), colour=p.shade(0.92))
    p.box((-p.x + arm, p.x - arm), (-p.y + back, p.y - 0.02), (0.04, seat - 0.13), colour=p.shade(0.85))
    inner = p.x - arm
    count = max(1, round(2 * inner / 0.75))
    for i in range(count):
        x0 = -inner + 2 * inner / count * i
        p.box(
            (x0 + 0.005, x0 + 2 * inner / count - 0.005), (-p.y + back, p.y), (seat - 0.13, seat), colour=p.shade(1.08)
        )
    p.legs(p.x - 0.02, p.y - 0.02, 0.04, 0.05, "wood", DARK)


def bed(p: AssetBuilder) -> None:
    """A base, a mattress under a blanket, pillows and a headboard; a high one has a second bed above."""
    bunk = p.z > 1.5
    top = p.rest(0.25, min(0.8, p.z - 0.02), min(0.5, 0.7 * p.z))
    head = min(0.08, 0.1 * p.y)
    p.box((-p.x, p.x), (-p.y, -p.y + head), (0, p.z), "wood", p.shade(0.6))
    p.box((-p.x, p.x), (-p.y + head, p.y), (0.05, 0.55 * top), "wood", p.shade(0.6))
    p.legs(p.x, p.y, 0.05, 0.06, "wood", DARK)
    _bedding(p, -p.y + head, 0.55 * top, top)
    if bunk:
        upper = 0.72 * p.z
        for x in ((-p.x, -p.x + 0.06), (p.x - 0.06, p.x)):
            p.box(x, (p.y - 0.06, p.y), (0.55 * top, p.z), "wood", p.shade(0.6))
        p.box((-p.x, p.x), (-p.y + head, p.y - 0.06), (upper - 0.18, upper - 0.12), "wood", p.shade(0.6))
        _bedding(p, -p.y + head, upper - 0.12, upper)


def _bedding(p: AssetBuilder, start: float, low: float, high: float) -> None:
    """Mattress, blanket and pillows from y = `start` to the foot, between two heights, m."""
    p.box((-p.x + 0.03, p.x - 0.03), (start, p.y - 0.08), (low, high - 0.03), "fabric", WHITE)
    p.box((-p.x + 0.015, p.x - 0.015), (start + 0.3 * p.y * 2, p.y - 0.07), (0.5 * (low + high), high))
    count = 2 if p.x > 0.6 else 1
    for i in range(count):
        x0 = -p.x + 0.08 + i * (2 * p.x - 0.1) / count
        x1 = x0 + (2 * p.x - 0.1) / count - 0.06
        p.ball(
            (x0, x1),
            (start + 0.04, start + min(0.44, 0.28 * p.y * 2)),
            (high - 0.06, min(high + 0.07, p.z)),
            "fabric",
            WHITE,
        )


def drawers(p: AssetBuilder) -> None:
    """A closed chest with rows of drawers."""
    front = p.y - 0.02
    p.box((-p.x, p.x), (-p.y, front), (0, p.z - 0.02), colour=p.shade(0.85))
    p.box((-p.x, p.x), (-p.y, p.y), (p.z - 0.02, p.z))
    rows, columns = max(2, min(5, round(p.z / 0.24))), 1 if p.x < 0.45 else 2 if p.x < 0.95 else 3
    high, wide = (p.z - 0.08) / rows, 2 * p.x / columns
    for row, column in itertools.product(range(rows), range(columns)):
        x, z = -p.x + column * wide, 0.05 + row * high
        p.box((x + 0.015, x + wide - 0.015), (front, p.y - 0.005), (z + 0.01, z + high - 0.01), colour=p.shade(1.05))
        p.box(
            (x + wide / 2 - 0.05, x + wide / 2 + 0.05),
            (p.y - 0.005, p.y),
            (z + high / 2, z + high / 2 + 0.015),
            "metal",
            STEEL,
        )
    p.top((-p.x, p.x), (-p.y, p.y), p.z)


def shelf(p: AssetBuilder) -> None:
    """Boards between two sides before a back; a board wherever something stands."""
    for x in ((-p.x, -p.x + _BOARD), (p.x - _BOARD, p.x)):
        p.box(x, (-p.y, p.y), (0, p.z), colour=p.shade(0.85))
    inner = p.x - _BOARD
    p.box((-inner, inner), (-p.y, -p.y + 0.015), (0, p.z), colour=p.shade(0.75))
    levels = [0.05, p.z]
    count = max(1, round(p.z / 0.38))
    for z in [*p.rests, *(p.z * i / count for i in range(1, count))]:
        if 0 < z < p.z and all(abs(z - level) > 0.2 for level in levels):
            levels.append(z)
    levels.sort()
    for z, above in zip(levels, [*levels[1:], float("inf")], strict=True):
        p.box((-inner, inner), (-p.y + 0.015, p.y), (z - 0.025, z))
        p.top((-inner, inner), (-p.y + 0.015, p.y), z, above - 0.025 - z)


def fridge(p: AssetBuilder) -> None:
    """A body with two doors, one above the other, and their handles."""
    door, handle = p.y - 0.03, p.y - 0.1
    split = 0.62 * p.z
    p.box((-p.x, p.x), (-p.y, handle), (0, p.z), colour=p.shade(0.85))
    for z in ((0.05, split - 0.008), (split + 0.008, p.z)):
        p.box((-p.x, p.x), (handle, door), z)
        middle, long = (z[0] + z[1]) / 2, 0.3 * (z[1] - z[0])
        p.box((0.75 * p.x, 0.75 * p.x + 0.03), (door, p.y), (middle - long, middle + long), "metal", DARK)


def sink(p: AssetBuilder) -> None:
    """A basin; a high one stands on a cupboard."""
    rim, deep = min(0.06, 0.2 * p.y), 0.16 if p.z > 0.46 else p.z
    low = p.z - deep
    if low > 0.3:
        p.box((-0.9 * p.x, 0.9 * p.x), (-p.y, 0.85 * p.y), (0, low), "wood", (206, 196, 182))
    p.box((-p.x, p.x), (-p.y, p.y), (low, low + 0.3 * deep))
    for x in ((-p.x, -p.x + rim), (p.x - rim, p.x)):
        p.box(x, (-p.y, p.y), (low + 0.3 * deep, p.z))
    p.box((-p.x + rim, p.x - rim), (-p.y, -p.y + 2 * rim), (low + 0.3 * deep, p.z))
    p.box((-p.x + rim, p.x - rim), (p.y - rim, p.y), (low + 0.3 * deep, p.z))


def toilet(p: AssetBuilder) -> None:
    """A bowl with a seat before a tank."""
    tank, seat = -p.y + min(0.24, 0.5 * p.y), min(0.44, 0.5 * p.z)
    p.box((-p.x, p.x), (-p.y, tank), (0.8 * seat, p.z))
    p.box((-0.5 * p.x, 0.5 * p.x), (-p.y, 0.3 * p.y), (0, 0.85 * seat), colour=p.shade(0.93))
    p.ball((-0.8 * p.x, 0.8 * p.x), (tank - 0.1, p.y), (0.3 * seat, 1.1 * seat))
    p.ball((-0.5 * p.x, 0.5 * p.x), (tank + 0.08, p.y - 0.1), (seat, 1.1 * seat + 0.01), colour=(150, 176, 188))


def washer(p: AssetBuilder) -> None:
    """A machine with a glass door and a panel of switches."""
    p.box((-p.x, p.x), (-p.y, p.y - 0.04), (0, p.z))
    p.box((-p.x, p.x), (p.y - 0.04, p.y - 0.01), (0.82 * p.z, p.z), colour=p.shade(0.7))
    p.ball((-0.6 * p.x, 0.6 * p.x), (p.y - 0.12, p.y), (0.2 * p.z, 0.75 * p.z), "glass", BLACK)


def television(p: AssetBuilder) -> None:
    """A screen; a deep one stands on a foot."""
    back, front, low = -p.y, p.y, 0.0
    if p.y > 0.06:
        back, front, low = -0.03, 0.03, 0.08
        p.box((-0.4 * p.x, 0.4 * p.x), (-p.y, p.y), (0, 0.02), "plain", BLACK)
        p.box((-0.06, 0.06), (-0.03, 0.02), (0.02, low), "plain", BLACK)
    p.box((-p.x, p.x), (back, front - 0.004), (low, p.z), "plain", BLACK)
    p.box((-p.x + 0.02, p.x - 0.02), (front - 0.004, front), (low + 0.02, p.z - 0.02), "screen", (36, 46, 62))


def floor_lamp(p: AssetBuilder) -> None:
    """A foot, a pole and a shade."""
    shade = 0.78 * p.z
    p.round(0.6, (0, 0.03), "metal", DARK)
    p.post((0, 0), min(0.02, 0.2 * p.x), (0.03, shade), "metal", DARK)
    p.round(1.0, (shade, p.z), "paper", p.colour)


def cart(p: AssetBuilder) -> None:
    """Three trays on four posts."""
    p.legs(p.x, p.y, p.z, 0.03, "metal", STEEL)
    for z in (0.15, 0.5 * p.z, p.z):
        p.box((-p.x, p.x), (-p.y, p.y), (z - 0.03, z))
        p.top((-p.x + 0.03, p.x - 0.03), (-p.y + 0.03, p.y - 0.03), z, 0.5 * p.z - 0.15)
