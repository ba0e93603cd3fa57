"""Which surfaces of a home meet a view: faces of boxes, cylinders, ellipsoids, pieces of floor and ceiling, as planes and edges.

Everything here is compiled. `set_up` lists the surfaces; they get numbers from 1 up. For the frame and for views see
`memenvs.houses.rendering.culling`.
"""

from __future__ import annotations

import math

import numpy as np

from memenvs.houses.house import BOX, CYLINDER
from memenvs.houses.rendering.culling import NEAR, View, find_hidden, is_hidden, list_around, list_shapes, widest_slope
from memenvs.houses.rendering.kernels.edges import (
    ACROSS,
    AROUND,
    COLUMN,
    DEPTH,
    DOWN,
    EDGE_ENDS,
    LINE,
    SLACK,
    find_edges,
    project_box,
)
from memenvs.houses.rendering.kernels.simd import compiled
from memenvs.houses.rendering.kernels.zbuffer import EDGES, GROUP
from memenvs.houses.rendering.scene import COS, HALF_X, HALF_Y, KIND, PIECE_CORNERS, SIN, Z0, Z1, X, Y

#: Parts of a shape that are surfaces of their own; a floor is a TOP and a ceiling a BOTTOM.
FRONT_X, BACK_X, FRONT_Y, BACK_Y, TOP, BOTTOM, ROUND = range(7)

#: What describes the F surfaces of a view: whole numbers (int32, (F, 5)) and real ones (float64, (F, REALS)). Columns of the first:
#: row in the scene, part, first and last row of the picture (exclusive), how many groups of edges.
Primitives = tuple[np.ndarray, np.ndarray]
ROW, PART, FIRST, LAST, GROUPS = range(5)
#: Columns of the second: one over depth at pixel (i, j) as NEAR_0 + NEAR_I i + NEAR_J j; from FIRST_EDGE on, groups of edges, see
#: `memenvs.houses.rendering.kernels.zbuffer.span_rows`. Round surfaces have other entries: the eye in the axes in which it is the unit cylinder or ball,
#: the ray at pixel (0, 0) and its change along i and j in those axes, and the columns that it spans.
NEAR_0, NEAR_I, NEAR_J, FIRST_EDGE = range(4)
REALS = FIRST_EDGE + GROUP * -(-PIECE_CORNERS // EDGES)
EYE_U, EYE_V, EYE_W, RAY_U, RAY_V, RAY_W, RAY_U_I, RAY_V_I, RAY_U_J, RAY_V_J, RAY_W_J, FIRST_I, LAST_I, IS_BALL = range(
    14
)

#: H, W and W rounded up to whole blocks, the stride of the keys.
Size = tuple[int, int, int]


@compiled
def _set_plane(nf: float, nr: float, nu: float, distance: float, view: View, reals: np.ndarray, number: int) -> None:
    """Writes the plane of a surface with normal n (forward, right, up) whose points p relative to the eye have n . p = distance."""
    cp, sp = view.cos_pitch, view.sin_pitch
    along, upward = nf * cp + nu * sp, nu * cp - nf * sp
    scale = 1.0 / (distance * view.focal)
    near_i, near_j = nr * scale, -upward * scale
    reals[number, NEAR_0] = along * (scale * view.focal) - near_i * view.centre_i - near_j * view.centre_j
    reals[number, NEAR_I], reals[number, NEAR_J] = near_i, near_j


@compiled
def _project(forward: float, right: float, up: float, view: View, corners: np.ndarray, k: int) -> float:
    """Fills the first three rows of column k of `corners`; see `memenvs.houses.rendering.kernels.edges.project_box`. Returns the depth."""
    depth = forward * view.cos_pitch + up * view.sin_pitch
    rise = up * view.cos_pitch - forward * view.sin_pitch
    corners[ACROSS, k] = right * view.focal + view.centre_i * depth
    corners[DOWN, k], corners[DEPTH, k] = view.centre_j * depth - rise * view.focal, depth
    return depth


@compiled
def _add_polygon(
    corners: np.ndarray, order: int, groups: int, first: int, last: int, number: int, wholes: np.ndarray, reals: np.ndarray
) -> None:  # fmt: skip
    """Describes a convex polygon by its edges in the picture.

    Args:
        corners: See `memenvs.houses.rendering.kernels.edges.project_box`; may lie behind the eye.
        order: Row of `EDGE_ENDS`.
        groups: How many rows of it.
        first: First row that it can reach.
        last: Last row (exclusive).
        number: Of the surface.
        wholes: See `Primitives`; filled at `number`.
        reals: See there.
    """
    for group in range(groups):
        at = np.uint64(number * REALS + FIRST_EDGE + group * GROUP)
        level = find_edges(corners, EDGE_ENDS, np.uint64(2 * EDGES * (order + group)), reals, at)
        for edge in range(EDGES if level > 0 else 0):  # rows on one side of it
            if level >> edge & 1:
                a, b = EDGE_ENDS[order + group, edge], EDGE_ENDS[order + group, EDGES + edge]
                ej = corners[DEPTH, a] * corners[ACROSS, b] - corners[ACROSS, a] * corners[DEPTH, b]
                ek = corners[ACROSS, a] * corners[DOWN, b] - corners[DOWN, a] * corners[ACROSS, b]
                if ej > 0:
                    first = max(first, math.ceil(min(max(-ek / ej - SLACK, -1.0), 1e6)))
                else:
                    last = min(last, math.floor(min(max(-ek / ej + SLACK, -1.0), 1e6)) + 1)
    wholes[number, FIRST], wholes[number, LAST], wholes[number, GROUPS] = first, last, groups


@compiled
def _add_round(
    is_ball: bool, centre: tuple[float, float, float], turn: tuple[float, float], half: tuple[float, float, float],
    columns: tuple[int, int], view: View, entries: np.ndarray,
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
    step, i, j = 1.0 / view.focal, view.centre_i, view.centre_j
    entries[EYE_U], entries[EYE_V], entries[EYE_W] = (
        -(cf * xf + cr * xr) / half[0],
        -(cf * xr - cr * xf) / half[1],
        -cu / half[2],
    )
    entries[RAY_U_I], entries[RAY_V_I] = xr * step / half[0], -xf * step / half[1]
    forward_j, up_j = view.sin_pitch * step, -view.cos_pitch * step
    entries[RAY_U_J], entries[RAY_V_J] = forward_j * xf / half[0], forward_j * xr / half[1]
    entries[RAY_W_J] = up_j / half[2]
    entries[RAY_U] = view.cos_pitch * xf / half[0] - entries[RAY_U_I] * i - entries[RAY_U_J] * j
    entries[RAY_V] = view.cos_pitch * xr / half[1] - entries[RAY_V_I] * i - entries[RAY_V_J] * j
    entries[RAY_W] = view.sin_pitch / half[2] - entries[RAY_W_J] * j
    entries[FIRST_I], entries[LAST_I], entries[IS_BALL] = columns[0], columns[1], 1.0 if is_ball else 0.0


@compiled
def _reach(bounds: tuple[float, float, float, float], size: Size) -> tuple[int, int, int, int]:
    """First and last row, first and last column (exclusive) of what lies in the picture between least and most row and column."""
    top, bottom, left, right = bounds
    top, left = min(max(top, -1.0), 1e6), min(max(left, -1.0), 1e6)
    bottom, right = min(max(bottom, -2.0), 1e6), min(max(right, -2.0), 1e6)
    return (
        max(0, math.ceil(top - SLACK)), min(size[0], math.floor(bottom + SLACK) + 1),
        max(0, math.ceil(left - SLACK)), min(size[1], math.floor(right + SLACK) + 1),
    )  # fmt: skip


@compiled
def _add_shape(
    row: int, form: np.ndarray, kind: int, view: View, size: Size, number: int, surfaces: Primitives, corners: np.ndarray
) -> int:  # fmt: skip
    """Describes the surfaces of one shape that face the eye and may be in the picture. Returns the last number given out."""
    ch, sh = view.cos_heading, view.sin_heading
    dx, dy = form[X] - view.eye_x, form[Y] - view.eye_y
    cf, cr = dx * ch + dy * sh, dx * sh - dy * ch
    # the shape's x axis; its y axis is (xr, -xf)
    xf, xr = form[COS] * ch + form[SIN] * sh, form[COS] * sh - form[SIN] * ch
    hx, hy = float(form[HALF_X]), float(form[HALF_Y])
    low, high = form[Z0] - view.eye_z, form[Z1] - view.eye_z
    lens = (view.cos_pitch, view.sin_pitch, view.focal, view.centre_i, view.centre_j)
    bounds = project_box((cf, cr), (xf, xr), (hx, hy, low, high), lens, corners)
    is_in_front = bounds[0] > NEAR
    reach = _reach(bounds[1:], size) if is_in_front else (0, size[0], 0, size[1])
    if reach[0] >= reach[1] or reach[2] >= reach[3]:
        return number
    wholes, reals = surfaces
    if kind == BOX:
        eye, extent = (-(cf * xf + cr * xr), -(cf * xr - cr * xf)), (hx, hy, low, high)
        return _add_box(row, eye, (xf, xr), extent, reach, is_in_front, view, number, surfaces, corners)
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
    reach: tuple[int, int, int, int], is_in_front: bool, view: View, number: int, surfaces: Primitives, corners: np.ndarray,
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
        surfaces: Filled.
        corners: See `memenvs.houses.rendering.kernels.edges.project_box`.

    Returns:
        The last number given out.
    """
    wholes, reals = surfaces
    xf, xr = turn
    hx, hy, low, high = extent
    for part in range(FRONT_X, ROUND, 2):  # this face or the one after it
        nf, nr, nu, before, behind = 0.0, 0.0, 1.0, -high, low
        if part == FRONT_X:
            nf, nr, nu, before, behind = xf, xr, 0.0, eye[0] - hx, -eye[0] - hx
        elif part == FRONT_Y:
            nf, nr, nu, before, behind = xr, -xf, 0.0, eye[1] - hy, -eye[1] - hy
        is_back = before <= 1e-6
        beyond, sign, face = (behind, -1.0, part + 1) if is_back else (before, 1.0, part)
        if beyond <= 1e-6:
            continue
        first, last = reach[0], reach[1]
        if is_in_front:
            p, q, r, s = EDGE_ENDS[face, 0], EDGE_ENDS[face, 1], EDGE_ENDS[face, 2], EDGE_ENDS[face, 3]
            a, b, c, d = corners[LINE, p], corners[LINE, q], corners[LINE, r], corners[LINE, s]
            first = max(first, math.ceil(min(min(a, b), min(c, d), 1e6) - SLACK))
            last = min(last, math.floor(max(max(a, b), max(c, d), -2.0) + SLACK) + 1)
            a, b, c, d = corners[COLUMN, p], corners[COLUMN, q], corners[COLUMN, r], corners[COLUMN, s]
            left, right = max(min(min(a, b), min(c, d)), -0.5), min(max(max(a, b), max(c, d)), 1e6)
            if math.ceil(left - SLACK) > min(math.floor(right + SLACK), reach[3] - 1):  # between two columns of pixels
                continue
        if first < last:
            number += 1
            wholes[number, ROW], wholes[number, PART] = row, face
            _set_plane(sign * nf, sign * nr, sign * nu, -beyond, view, reals, number)
            _add_polygon(corners, face, 1, first, last, number, wholes, reals)
    return number


@compiled
def _add_level(
    piece: np.ndarray, row: int, z: float, view: View, size: Size, widest: float, hidden: np.ndarray, number: int,
    surfaces: Primitives, corners: np.ndarray,
) -> int:  # fmt: skip
    """Describes a piece of floor (z is below the eye) or ceiling (above). Returns the last number given out.

    Args:
        piece: float64, (K, 2); its corners, counter-clockwise, m.
        row: In the scene.
        z: Its height, m.
        view: The view.
        size: Of the picture.
        widest: See `memenvs.houses.rendering.culling.widest_slope`.
        hidden: See `memenvs.houses.rendering.culling.find_hidden`.
        number: The last one given out.
        surfaces: Filled.
        corners: See `memenvs.houses.rendering.kernels.edges.project_box`.
    """
    up, count = z - view.eye_z, piece.shape[0]
    if abs(up) < 1e-6:  # seen edge-on
        return number
    ch, sh = view.cos_heading, view.sin_heading
    least, most, nearest, furthest = 1e30, -1e30, 1e30, -1e30
    top, bottom, least_depth = 1e30, -1e30, 1e30
    for k in range(count):
        dx, dy = piece[k, 0] - view.eye_x, piece[k, 1] - view.eye_y
        forward, right = dx * ch + dy * sh, dx * sh - dy * ch
        nearest, furthest = min(nearest, forward), max(furthest, forward)
        slope = right / forward if forward > NEAR else 0.0
        least, most = min(least, slope), max(most, slope)
        to = k if up > 0 else count - 1 - k
        depth = _project(forward, right, up, view, corners, to)
        least_depth, line = min(least_depth, depth), corners[DOWN, to] / depth
        top, bottom = min(top, line), max(bottom, line)
    if widest > 0 and (furthest <= 0 or (nearest > NEAR and is_hidden(least, most, nearest, widest, hidden))):
        return number
    first, last = 0, size[0]
    if least_depth > NEAR:
        first, last, _, _ = _reach((top, bottom, 0.0, 0.0), size)
    if first >= last:
        return number
    number += 1
    wholes, reals = surfaces
    wholes[number, ROW], wholes[number, PART] = row, BOTTOM if up > 0 else TOP
    _set_plane(0.0, 0.0, 1.0, up, view, reals, number)
    _add_polygon(corners, AROUND[count], -(-count // EDGES), first, last, number, wholes, reals)
    return number


@compiled
def set_up(
    view: View, size: Size, cull: bool, scene: tuple, surfaces: Primitives, listed: np.ndarray, hidden: np.ndarray,
    corners: np.ndarray,
) -> int:  # fmt: skip
    """Describes the surfaces of a home that meet a view.

    Args:
        view: The view.
        size: Of the picture.
        cull: Whether to leave out early what walls hide; the picture is the same.
        scene: `geometry`, `attributes`, `pieces`, `corners`, `occluders`, `shapes` and `height` of `memenvs.houses.rendering.scene.Scene`.
        surfaces: Filled from 1 on; 3 S + 2 P + 1 of them are enough.
        listed: int32, (>= S,); room for a list of shapes.
        hidden: float64, (WEDGE_LEVELS, WEDGES); room for what walls hide.
        corners: float64, (5, 8); room for the corners of a shape.

    Returns:
        The number of the last surface.
    """
    geometry, attributes, pieces, counts, occluders, shapes, ceiling = scene
    widest = widest_slope(view, size[0], size[1]) if cull else 0.0
    if widest > 0:
        is_inside = 0.0 <= view.eye_z <= ceiling
        find_hidden(view, widest, occluders if is_inside else occluders[:0], hidden)
        count = list_shapes(geometry, shapes, view, widest, ceiling, hidden, listed)
    elif cull:
        count = list_around(geometry, shapes, view, size[0], size[1], listed)
    else:
        count = shapes
        for row in range(shapes):
            listed[row] = row
    number = 0
    for place in range(count):
        row = listed[place]
        number = _add_shape(row, geometry[row], attributes[row, KIND], view, size, number, surfaces, corners)
    for level in range(2):
        z = 0.0 if level == 0 else ceiling
        for k in range(len(counts)):
            row, piece = shapes + level * len(counts) + k, pieces[k, : counts[k]]
            number = _add_level(piece, row, z, view, size, widest, hidden, number, surfaces, corners)
    return number
