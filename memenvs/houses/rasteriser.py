"""Which surface is seen in each pixel, and how far away: a z-buffer of boxes, cylinders, ellipsoids, floors and ceilings.

Everything here is compiled. `set_up` lists the surfaces that meet a view; they get numbers from 1 up. `fill` draws them into the
z-buffer, which holds one key for each pixel (see `memenvs.houses.blocks.make_key`): the nearer surface has the larger key. Rows are
done in whole blocks of pixels.

For the frame and for views see `memenvs.houses.culling`.
"""

from __future__ import annotations

import math

import numpy as np

from memenvs.houses.blocks import BLOCK, EDGES, ROWS, compiled, make_key, raise_block, span_rows
from memenvs.houses.culling import (
    CENTRE_I,
    CENTRE_J,
    COS_HEADING,
    COS_PITCH,
    EYE_X,
    EYE_Y,
    EYE_Z,
    FOCAL,
    NEAR,
    SIN_HEADING,
    SIN_PITCH,
    find_hidden,
    is_hidden,
    list_around,
    list_shapes,
    widest_slope,
)
from memenvs.houses.house import BOX, CYLINDER
from memenvs.houses.scene import COS, HALF_X, HALF_Y, KIND, PIECE_CORNERS, SIN, Z0, Z1, X, Y

#: Parts of a shape that are surfaces of their own; a floor is a TOP and a ceiling a BOTTOM.
FRONT_X, BACK_X, FRONT_Y, BACK_Y, TOP, BOTTOM, ROUND = range(7)

#: What describes the F surfaces of a view: whole numbers (int32, (F, 5)) and real ones (float64, (F, REALS)). Columns of the first:
#: row in the scene, part, first and last row of the picture (exclusive), how many groups of edges.
Surfaces = tuple[np.ndarray, np.ndarray]
ROW, PART, FIRST, LAST, GROUPS = range(5)
#: Columns of the second: one over depth at pixel (i, j) as NEAR_0 + NEAR_I i + NEAR_J j; from FIRST_EDGE on, slope and start of three
#: left and three right edges, then of three more of each and so on. Round surfaces have other entries: the eye in the axes in which it
#: is the unit cylinder or ball, the ray at pixel (0, 0) and its change along i and j in those axes, and the columns that it spans.
NEAR_0, NEAR_I, NEAR_J, FIRST_EDGE = range(4)
_GROUP = 4 * EDGES
REALS = FIRST_EDGE + _GROUP * -(-PIECE_CORNERS // EDGES)
EYE_U, EYE_V, EYE_W, RAY_U, RAY_V, RAY_W, RAY_U_I, RAY_V_I, RAY_U_J, RAY_V_J, RAY_W_J, FIRST_I, LAST_I, IS_BALL = range(
    14
)

#: H, W and W rounded up to whole blocks, the stride of the keys.
Size = tuple[int, int, int]

_SLACK = 1e-3  # px; surfaces reach this far over their edges, so that no gap opens between neighbours

# The corners of each face of a box, clockwise as seen from outside: 0 to 3 are the lower ones, counter-clockwise from the one at
# -x, -y; 4 to 7 lie above them. The last row is for polygons whose corners are in order.
_ORDERS = np.array(
    [
        (5, 6, 2, 1, 0, 0, 0, 0), (7, 4, 0, 3, 0, 0, 0, 0), (6, 7, 3, 2, 0, 0, 0, 0), (4, 5, 1, 0, 0, 0, 0, 0),
        (7, 6, 5, 4, 0, 0, 0, 0), (0, 1, 2, 3, 0, 0, 0, 0), (0, 1, 2, 3, 4, 5, 6, 7),
    ]
)  # fmt: skip
_IN_ORDER = 6


@compiled
def _set_plane(
    nf: float, nr: float, nu: float, distance: float, view: np.ndarray, reals: np.ndarray, number: int
) -> None:
    """Writes the plane of a surface with normal n (forward, right, up) whose points p relative to the eye have n . p = distance."""
    cp, sp, scale = view[COS_PITCH], view[SIN_PITCH], 1.0 / distance
    along, upward = nf * cp + nu * sp, nu * cp - nf * sp
    near_i, near_j = nr / view[FOCAL] * scale, -upward / view[FOCAL] * scale
    reals[number, NEAR_0] = along * scale - near_i * view[CENTRE_I] - near_j * view[CENTRE_J]
    reals[number, NEAR_I], reals[number, NEAR_J] = near_i, near_j


@compiled
def _project(forward: float, right: float, up: float, view: np.ndarray, corners: np.ndarray, k: int) -> float:
    """Fills one row of corners, float64, (8, 5): column * depth, row * depth, depth, row, column. Returns the depth."""
    depth = forward * view[COS_PITCH] + up * view[SIN_PITCH]
    rise = up * view[COS_PITCH] - forward * view[SIN_PITCH]
    across, down = right * view[FOCAL] + view[CENTRE_I] * depth, view[CENTRE_J] * depth - rise * view[FOCAL]
    scale = 1.0 / depth if depth > NEAR else 0.0
    corners[k, 0], corners[k, 1], corners[k, 2] = across, down, depth
    corners[k, 3], corners[k, 4] = down * scale, across * scale
    return depth


@compiled
def _add_polygon(
    corners: np.ndarray,
    order: int,
    count: int,
    first: int,
    last: int,
    number: int,
    wholes: np.ndarray,
    reals: np.ndarray,
) -> None:
    """Describes a convex polygon by its edges in the picture.

    Args:
        corners: See `_project`; may lie behind the eye.
        order: Row of `_ORDERS`.
        count: How many of them.
        first: First row that it can reach.
        last: Last row (exclusive).
        number: Of the surface.
        wholes: See `Surfaces`; filled at `number`.
        reals: See there.
    """
    lefts, rights = 0, 0
    for side in range(count):
        a, b = _ORDERS[order, side], _ORDERS[order, side + 1 if side + 1 < count else 0]
        ei = corners[a, 1] * corners[b, 2] - corners[a, 2] * corners[b, 1]
        ej = corners[a, 2] * corners[b, 0] - corners[a, 0] * corners[b, 2]
        ek = corners[a, 0] * corners[b, 1] - corners[a, 1] * corners[b, 0]
        if abs(ei) <= 1e-9 * abs(ej):  # a level edge: rows on one side of it
            if ej > 0:
                first = max(first, math.ceil(min(max(-ek / ej - _SLACK, -1.0), 1e6)))
            elif ej < 0:
                last = min(last, math.floor(min(max(-ek / ej + _SLACK, -1.0), 1e6)) + 1)
        elif ei > 0:
            _set_edge(reals, number, lefts, 0, -ej / ei, -ek / ei - _SLACK)
            lefts += 1
        else:
            _set_edge(reals, number, rights, 1, -ej / ei, -ek / ei + _SLACK)
            rights += 1
    groups = (max(lefts, rights, 1) + EDGES - 1) // EDGES
    for edge in range(lefts, groups * EDGES):
        _set_edge(reals, number, edge, 0, 0.0, -1.0)
    for edge in range(rights, groups * EDGES):
        _set_edge(reals, number, edge, 1, 0.0, 1e6)
    wholes[number, FIRST], wholes[number, LAST], wholes[number, GROUPS] = first, last, groups


@compiled
def _set_edge(reals: np.ndarray, number: int, edge: int, side: int, slope: float, start: float) -> None:
    """Writes the left (side 0) or right (side 1) edge `edge` of a surface."""
    at = FIRST_EDGE + _GROUP * (edge // EDGES) + 2 * (EDGES * side + edge % EDGES)
    reals[number, at], reals[number, at + 1] = slope, start


@compiled
def _narrow_rows(reals: np.ndarray, number: int, groups: int, row: int, width: int, spans: np.ndarray) -> None:
    """Narrows `spans`, int32, (4 * ROWS,), by all groups of edges but the first; see `span_rows`."""
    at, other = number * REALS + FIRST_EDGE, spans[2 * ROWS :]
    for group in range(1, groups):
        span_rows(reals, np.uint64(at + group * _GROUP), float(row), float(width), other)
        for k in range(ROWS):
            spans[k], spans[ROWS + k] = max(spans[k], other[k]), min(spans[ROWS + k], other[ROWS + k])


@compiled
def _fill_polygon(
    wholes: np.ndarray, reals: np.ndarray, number: int, size: Size, keys: np.ndarray, mask: np.uint32, spans: np.ndarray
) -> None:
    """Draws a polygon; `keys` uint32, (>= H * stride,); `mask` as in `fill`; `spans` as in `fill`. See `Surfaces` for the other arrays."""
    _, width, stride = size
    near_0, near_i, near_j = reals[number, NEAR_0], reals[number, NEAR_I], reals[number, NEAR_J]
    step, at_edges = np.float32(near_i), np.uint64(number * REALS + FIRST_EDGE)
    first, last, groups = wholes[number, FIRST], wholes[number, LAST], wholes[number, GROUPS]
    for row in range(first, last):
        k = (row - first) % ROWS
        if k == 0:
            span_rows(reals, at_edges, float(row), float(width), spans)
            if groups > 1:
                _narrow_rows(reals, number, groups, row, width, spans)
        start, stop = spans[k], spans[k + ROWS]
        if start >= stop:
            continue
        block = start & -BLOCK
        base = np.float32(near_0 + near_j * row + near_i * block)
        at = np.uint64(row * stride + block)
        while block < stop:
            since, until = np.int32(start - block), np.int32(stop - block)
            raise_block(keys, at, base, step, since, until, np.uint32(number), mask)
            block += BLOCK
            at += np.uint64(BLOCK)
            base += step * np.float32(BLOCK)


@compiled
def _add_round(
    is_ball: bool, centre: tuple[float, float, float], turn: tuple[float, float], half: tuple[float, float, float],
    columns: tuple[int, int], view: np.ndarray, entries: np.ndarray,
) -> None:  # fmt: skip
    """Describes a cylinder or an ellipsoid by rays in the axes in which it is the unit cylinder or ball.

    Args:
        is_ball: Whether it is an ellipsoid.
        centre: Forward, right and up of the eye, m.
        turn: Forward and right part of its x axis.
        half: Half sizes, m.
        columns: First and last column (exclusive) that it can reach.
        view: The view.
        entries: float64, (>= 14,); filled.
    """
    cf, cr, cu = centre
    xf, xr = turn
    step, i, j = 1.0 / view[FOCAL], view[CENTRE_I], view[CENTRE_J]
    entries[EYE_U], entries[EYE_V], entries[EYE_W] = (
        -(cf * xf + cr * xr) / half[0],
        -(cf * xr - cr * xf) / half[1],
        -cu / half[2],
    )
    entries[RAY_U_I], entries[RAY_V_I] = xr * step / half[0], -xf * step / half[1]
    forward_j, up_j = view[SIN_PITCH] * step, -view[COS_PITCH] * step
    entries[RAY_U_J], entries[RAY_V_J] = forward_j * xf / half[0], forward_j * xr / half[1]
    entries[RAY_W_J] = up_j / half[2]
    entries[RAY_U] = view[COS_PITCH] * xf / half[0] - entries[RAY_U_I] * i - entries[RAY_U_J] * j
    entries[RAY_V] = view[COS_PITCH] * xr / half[1] - entries[RAY_V_I] * i - entries[RAY_V_J] * j
    entries[RAY_W] = view[SIN_PITCH] / half[2] - entries[RAY_W_J] * j
    entries[FIRST_I], entries[LAST_I], entries[IS_BALL] = columns[0], columns[1], 1.0 if is_ball else 0.0


@compiled
def _fill_round(
    wholes: np.ndarray, reals: np.ndarray, number: int, size: Size, keys: np.ndarray, mask: np.uint32
) -> None:
    """As `_fill_polygon`, ray by ray; the flat part of a cylinder has the next number."""
    entries = reals[number]
    ex, ey, ez = np.float32(entries[EYE_U]), np.float32(entries[EYE_V]), np.float32(entries[EYE_W])
    px, py = np.float32(entries[RAY_U_I]), np.float32(entries[RAY_V_I])
    is_ball = entries[IS_BALL] > 0
    zero, one, tiny = np.float32(0), np.float32(1), np.float32(1e-12)
    rest = ex * ex + ey * ey - one
    first, last = int(entries[FIRST_I]), int(entries[LAST_I])
    for row in range(wholes[number, FIRST], wholes[number, LAST]):
        dx0 = np.float32(entries[RAY_U] + entries[RAY_U_I] * first + entries[RAY_U_J] * row)
        dy0 = np.float32(entries[RAY_V] + entries[RAY_V_I] * first + entries[RAY_V_J] * row)
        dz = np.float32(entries[RAY_W] + entries[RAY_W_J] * row)
        dz = dz if abs(dz) > tiny else tiny
        enter_slab = (-ez - one) / dz if dz > zero else (one - ez) / dz  # between the ends of a cylinder
        leave_slab = (one - ez) / dz if dz > zero else (-ez - one) / dz
        at = np.uint64(row * size[2] + first)
        for k in range(last - first):
            dx, dy = dx0 + px * np.float32(k), dy0 + py * np.float32(k)
            if is_ball:
                a, b = dx * dx + dy * dy + dz * dz, ex * dx + ey * dy + ez * dz
                root = b * b - a * (rest + ez * ez)
                t = (-b - math.sqrt(max(root, zero))) / a
                is_side, is_met = True, bool(root > zero)
            else:
                a, b = max(dx * dx + dy * dy, tiny), ex * dx + ey * dy
                root = b * b - a * rest
                wide = math.sqrt(max(root, zero))
                t, leave = (-b - wide) / a, min((wide - b) / a, leave_slab)
                is_side = bool(t > enter_slab)
                t = t if is_side else enter_slab
                is_met = bool(root > zero) and bool(t < leave)
            if is_met and t > tiny:
                key = np.uint32(make_key(np.float32(one / t), number if is_side else number + 1, mask))
                keys[at] = max(keys[at], key)
            at += np.uint64(1)


@compiled
def _reach(corners: np.ndarray, size: Size) -> tuple[int, int, int, int]:
    """First and last row, first and last column (exclusive) that eight corners, all in front of the eye, span in the picture."""
    top, bottom, left, right = 1e30, -1e30, 1e30, -1e30
    for k in range(8):
        i, j = corners[k, 4], corners[k, 3]
        top, bottom, left, right = min(top, j), max(bottom, j), min(left, i), max(right, i)
    top, left = min(max(top, -1.0), 1e6), min(max(left, -1.0), 1e6)
    bottom, right = min(max(bottom, -2.0), 1e6), min(max(right, -2.0), 1e6)
    return (
        max(0, math.ceil(top - _SLACK)), min(size[0], math.floor(bottom + _SLACK) + 1),
        max(0, math.ceil(left - _SLACK)), min(size[1], math.floor(right + _SLACK) + 1),
    )  # fmt: skip


@compiled
def _add_shape(
    row: int,
    form: np.ndarray,
    kind: int,
    view: np.ndarray,
    size: Size,
    number: int,
    surfaces: Surfaces,
    corners: np.ndarray,
) -> int:
    """Describes the surfaces of one shape that face the eye and may be in the picture. Returns the last number given out."""
    ch, sh = view[COS_HEADING], view[SIN_HEADING]
    dx, dy = form[X] - view[EYE_X], form[Y] - view[EYE_Y]
    cf, cr = dx * ch + dy * sh, dx * sh - dy * ch
    xf, xr = (
        form[COS] * ch + form[SIN] * sh,
        form[COS] * sh - form[SIN] * ch,
    )  # the shape's x axis; its y axis is (xr, -xf)
    hx, hy = float(form[HALF_X]), float(form[HALF_Y])
    low, high = form[Z0] - view[EYE_Z], form[Z1] - view[EYE_Z]
    nearest = 1e30
    for k in range(4):
        sx, sy = (hx if k in (1, 2) else -hx), (hy if k >= 2 else -hy)
        forward, right = cf + sx * xf + sy * xr, cr + sx * xr - sy * xf
        nearest = min(nearest, _project(forward, right, low, view, corners, k))
        nearest = min(nearest, _project(forward, right, high, view, corners, k + 4))
    reach = _reach(corners, size) if nearest > NEAR else (0, size[0], 0, size[1])
    if reach[0] >= reach[1] or reach[2] >= reach[3]:
        return number
    wholes, reals = surfaces
    if kind == BOX:
        eye = (-(cf * xf + cr * xr), -(cf * xr - cr * xf))
        extent = (hx, hy, low, high)
        return _add_box(
            row, eye, (xf, xr), extent, reach, nearest > NEAR, view, number, wholes, reals, corners
        )  # fmt: skip
    number += 1
    centre, half = (cf, cr, (low + high) / 2), (hx, hy, (high - low) / 2)
    _add_round(kind != CYLINDER, centre, (xf, xr), half, (reach[2], reach[3]), view, reals[number])
    wholes[number, ROW], wholes[number, PART] = row, ROUND
    wholes[number, FIRST], wholes[number, LAST] = reach[0], reach[1]
    if kind == CYLINDER:  # an end, drawn together with the curved part
        number += 1
        wholes[number, ROW], wholes[number, PART] = row, TOP if high < 0 else BOTTOM
        wholes[number, FIRST], wholes[number, LAST] = 0, 0
        _set_plane(0.0, 0.0, 1.0, high if high < 0 else low, view, reals, number)
    return number


@compiled
def _add_box(
    row: int, eye: tuple[float, float], turn: tuple[float, float], extent: tuple[float, float, float, float],
    reach: tuple[int, int, int, int], is_in_front: bool, view: np.ndarray, number: int, wholes: np.ndarray, reals: np.ndarray,
    corners: np.ndarray,
) -> int:  # fmt: skip
    """Describes the faces of a box that face the eye.

    Args:
        row: In the scene.
        eye: Where it is along the box's own x and y axes from the box's centre, m.
        turn: Forward and right part of the box's x axis.
        extent: Half sizes along x and y, then bottom and top above the eye, m.
        reach: See `_reach`.
        is_in_front: Whether all corners are in front of the eye.
        view: The view.
        number: The last one given out.
        wholes: See `Surfaces`.
        reals: See `Surfaces`.
        corners: See `_project`.

    Returns:
        The last number given out.
    """
    xf, xr = turn
    hx, hy, low, high = extent
    for part in range(6):
        sign = 1.0 if part in (FRONT_X, FRONT_Y, TOP) else -1.0
        if part < FRONT_Y:
            beyond, nf, nr, nu = sign * eye[0] - hx, xf, xr, 0.0
        elif part < TOP:
            beyond, nf, nr, nu = sign * eye[1] - hy, xr, -xf, 0.0
        else:
            beyond, nf, nr, nu = -high if part == TOP else low, 0.0, 0.0, 1.0
        if beyond <= 1e-6:
            continue
        first, last, is_between = reach[0], reach[1], False
        if is_in_front:
            p, q, r, s = _ORDERS[part, 0], _ORDERS[part, 1], _ORDERS[part, 2], _ORDERS[part, 3]
            a, b, c, d = corners[p, 3], corners[q, 3], corners[r, 3], corners[s, 3]
            first = max(first, math.ceil(min(a, b, c, d, 1e6) - _SLACK))
            last = min(last, math.floor(max(a, b, c, d, -2.0) + _SLACK) + 1)
            a, b, c, d = corners[p, 4], corners[q, 4], corners[r, 4], corners[s, 4]
            left, right = max(min(a, b, c, d), -0.5), min(max(a, b, c, d), 1e6)
            is_between = math.ceil(left - _SLACK) > min(
                math.floor(right + _SLACK), reach[3] - 1
            )  # two columns of pixels
        if is_between:
            continue
        if first < last:
            number += 1
            wholes[number, ROW], wholes[number, PART] = row, part
            _set_plane(sign * nf, sign * nr, sign * nu, -beyond, view, reals, number)
            _add_polygon(corners, part, 4, first, last, number, wholes, reals)
    return number


@compiled
def _add_level(
    piece: np.ndarray, row: int, z: float, view: np.ndarray, size: Size, widest: float, hidden: np.ndarray, number: int,
    surfaces: Surfaces, corners: np.ndarray,
) -> int:  # fmt: skip
    """Describes a piece of floor (z is below the eye) or ceiling (above). Returns the last number given out.

    Args:
        piece: float64, (K, 2); its corners, counter-clockwise, m.
        row: In the scene.
        z: Its height, m.
        view: The view.
        size: Of the picture.
        widest: See `memenvs.houses.culling.widest_slope`.
        hidden: See `memenvs.houses.culling.find_hidden`.
        number: The last one given out.
        surfaces: Filled.
        corners: See `_project`.
    """
    up, count = z - view[EYE_Z], piece.shape[0]
    if abs(up) < 1e-6:  # seen edge-on
        return number
    ch, sh = view[COS_HEADING], view[SIN_HEADING]
    least, most, nearest, furthest = 1e30, -1e30, 1e30, -1e30
    top, bottom, least_depth = 1e30, -1e30, 1e30
    for k in range(count):
        dx, dy = piece[k, 0] - view[EYE_X], piece[k, 1] - view[EYE_Y]
        forward, right = dx * ch + dy * sh, dx * sh - dy * ch
        nearest, furthest = min(nearest, forward), max(furthest, forward)
        slope = right / forward if forward > NEAR else 0.0
        least, most = min(least, slope), max(most, slope)
        to = k if up > 0 else count - 1 - k
        least_depth = min(least_depth, _project(forward, right, up, view, corners, to))
        top, bottom = min(top, corners[to, 3]), max(bottom, corners[to, 3])
    if widest > 0 and (furthest <= 0 or (nearest > NEAR and is_hidden(least, most, nearest, widest, hidden))):
        return number
    first, last = 0, size[0]
    if least_depth > NEAR:
        first = max(0, math.ceil(min(max(top, -1.0), 1e6) - _SLACK))
        last = min(size[0], math.floor(min(max(bottom, -2.0), 1e6) + _SLACK) + 1)
    if first >= last:
        return number
    number += 1
    wholes, reals = surfaces
    wholes[number, ROW], wholes[number, PART] = row, BOTTOM if up > 0 else TOP
    _set_plane(0.0, 0.0, 1.0, up, view, reals, number)
    _add_polygon(corners, _IN_ORDER, count, first, last, number, wholes, reals)
    return number


@compiled
def set_up(
    view: np.ndarray, size: Size, cull: bool, scene: tuple, surfaces: Surfaces, listed: np.ndarray, hidden: np.ndarray,
    corners: np.ndarray,
) -> int:  # fmt: skip
    """Describes the surfaces of a home that meet a view.

    Args:
        view: float64, (10,); see `memenvs.houses.culling`.
        size: Of the picture.
        cull: Whether to leave out early what walls hide; the picture is the same.
        scene: `forms`, `looks`, `pieces`, `corners`, `blockers`, `shapes` and `height` of `memenvs.houses.scene.Scene`.
        surfaces: Filled from 1 on; 3 S + 2 P + 1 of them are enough.
        listed: int32, (>= S,); room for a list of shapes.
        hidden: float64, (WEDGE_LEVELS, WEDGES); room for what walls hide.
        corners: float64, (8, 5); room for the corners of a shape.

    Returns:
        The number of the last surface.
    """
    forms, looks, pieces, counts, blockers, shapes, ceiling = scene
    widest = widest_slope(view, size[0], size[1]) if cull else 0.0
    if widest > 0:
        is_inside = 0.0 <= view[EYE_Z] <= ceiling
        find_hidden(view, widest, blockers if is_inside else blockers[:0], hidden)
        count = list_shapes(forms, shapes, view, widest, ceiling, hidden, listed)
    elif cull:
        count = list_around(forms, shapes, view, size[0], size[1], listed)
    else:
        count = shapes
        for row in range(shapes):
            listed[row] = row
    number = 0
    for place in range(count):
        row = listed[place]
        number = _add_shape(row, forms[row], looks[row, KIND], view, size, number, surfaces, corners)
    for level in range(2):
        z = 0.0 if level == 0 else ceiling
        for k in range(len(counts)):
            row, piece = shapes + level * len(counts) + k, pieces[k, : counts[k]]
            number = _add_level(piece, row, z, view, size, widest, hidden, number, surfaces, corners)
    return number


@compiled
def fill(surfaces: Surfaces, last: int, size: Size, keys: np.ndarray, mask: np.uint32, spans: np.ndarray) -> None:
    """Draws surfaces 1 to `last`.

    Args:
        surfaces: As `set_up` fills them.
        last: <= `mask`.
        size: Of the picture.
        keys: uint32, (>= H * stride,); filled.
        mask: The bits of a key that hold the number of a surface.
        spans: int32, (4 * ROWS,); room for the pixels of some rows.
    """
    keys[:] = 0
    wholes, reals = surfaces
    for number in range(1, last + 1):
        if wholes[number, PART] == ROUND:
            _fill_round(wholes, reals, number, size, keys, mask)
        else:
            _fill_polygon(wholes, reals, number, size, keys, mask, spans)
