"""Which surface is seen in each pixel, and how far away: culling, and a z-buffer of boxes, cylinders, ellipsoids and floors.

Everything here is compiled. Surfaces that meet a view get a number from 1 up, in the order in which they are drawn; the z-buffer
holds one over the depth along the optical axis and the surface's number, 0 where nothing is hit.

A frame of three axes is used throughout, turned with the camera's heading but not with its pitch: forward, right, up. In a
picture, the pixel of index (column i, row j) shows the ray `forward + (i - centre_i) / focal * right - (j - centre_j) / focal * up`
of the pitched camera.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from memenvs.houses.house import BOX, CYLINDER
from memenvs.houses.scene import COS, HALF_X, HALF_Y, KIND, RADIUS, SIN, Z0, Z1, X, Y

#: Entries of a view: eye, cosine and sine of heading and pitch, focal length and principal point in pixels.
EYE_X, EYE_Y, EYE_Z, COS_HEADING, SIN_HEADING, COS_PITCH, SIN_PITCH, FOCAL, CENTRE_I, CENTRE_J = range(10)
VIEW_SIZE = 10

#: Parts of a shape that are surfaces of their own; a floor is a TOP and a ceiling a BOTTOM.
FRONT_X, BACK_X, FRONT_Y, BACK_Y, TOP, BOTTOM, ROUND = range(7)

#: The field of view is cut into this many upright wedges to find out what walls hide.
WEDGES = 128

_NEAR = 1e-3  # nearer corners are not projected; what they bound is drawn all the same
_SLACK = 1e-3  # px; surfaces reach this far over their edges, so that no gap opens between neighbours

# The corners (on the plan; counter-clockwise from the one at -x, -y) at which an upright face of a box starts and ends,
# for FRONT_X, BACK_X, FRONT_Y, BACK_Y; as seen from outside it goes from left to right.
_STARTS = (1, 3, 2, 0)
_ENDS = (2, 0, 3, 1)

_FAST = {"contract", "reassoc", "nsz", "arcp"}


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def set_view(pose, focal, centre_i, centre_j, view):
    """Fills `view` (10,) from a pose (x, y, z, heading, pitch)."""
    view[EYE_X], view[EYE_Y], view[EYE_Z] = pose[0], pose[1], pose[2]
    view[COS_HEADING], view[SIN_HEADING] = math.cos(pose[3]), math.sin(pose[3])
    view[COS_PITCH], view[SIN_PITCH] = math.cos(pose[4]), math.sin(pose[4])
    view[FOCAL], view[CENTRE_I], view[CENTRE_J] = focal, centre_i, centre_j


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _widest(view, width, height):
    """Largest right / forward over all rays of a picture; 0 if some ray does not go forward enough to say."""
    across = max(view[CENTRE_I], width - 1 - view[CENTRE_I]) / view[FOCAL]
    tall = max(view[CENTRE_J], height - 1 - view[CENTRE_J]) / view[FOCAL]
    ahead = view[COS_PITCH] - tall * abs(view[SIN_PITCH])
    return across / ahead * 1.0001 + 1e-4 if ahead > 0.15 else 0.0


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _find_hidden(view, widest, blockers, hidden):
    """Fills `hidden` (WEDGES,): one over the forward distance from which on nothing is seen in a wedge; 0 if all is seen."""
    hidden[:] = 0.0
    scale = WEDGES / (2 * widest)
    ch, sh = view[COS_HEADING], view[SIN_HEADING]
    for row in range(blockers.shape[0]):
        ax, ay = blockers[row, 0] - view[EYE_X], blockers[row, 1] - view[EYE_Y]
        bx, by = blockers[row, 2] - view[EYE_X], blockers[row, 3] - view[EYE_Y]
        af, ar = ax * ch + ay * sh, ax * sh - ay * ch
        bf, br = bx * ch + by * sh, bx * sh - by * ch
        near = 0.02
        if af < near and bf < near:
            continue
        if af < near:
            part = (near - af) / (bf - af)
            af, ar = near, ar + part * (br - ar)
        elif bf < near:
            part = (near - bf) / (af - bf)
            bf, br = near, br + part * (ar - br)
        ai, bi = 1.0 / af, 1.0 / bf
        at, bt = (ar * ai + widest) * scale, (br * bi + widest) * scale  # in wedges
        if at > bt:
            at, bt, ai, bi = bt, at, bi, ai
        first, last = math.ceil(max(at, 0.0)), math.floor(min(bt, float(WEDGES)))
        if first >= last:
            continue
        slope = (bi - ai) / (bt - at)
        start = ai + slope * (first - at)
        low = min(0.0, slope)
        for wedge in range(first, last):
            least = start + slope * (wedge - first) + low
            if least > hidden[wedge]:
                hidden[wedge] = least


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _is_hidden(low, high, nearest, widest, hidden):
    """Whether all of right / forward in low..high, from the forward distance `nearest` on, is hidden or out of the picture."""
    if low > widest or high < -widest:
        return True
    scale = WEDGES / (2 * widest)
    first = max(0, int((low + widest) * scale))
    last = min(WEDGES - 1, int((high + widest) * scale))
    limit = 1.0 / nearest
    for wedge in range(first, last + 1):
        if hidden[wedge] <= limit:
            return False
    return True


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _fill_polygon(corners, order, count, first_row, last_row, plane, number, width, depths, surfaces, ramp, edges):
    """Draws a convex polygon into rows first_row..last_row - 1.

    Args:
        view-space corners: float64, (K, 3); (column * depth, row * depth, depth).
        order: Which corners, clockwise in the picture.
        count: How many.
        first_row: Row to start at.
        last_row: Row to stop before.
        plane: One over depth at pixel (i, j) is plane[0] + plane[1] * i + plane[2] * j.
        number: Of the surface.
        width: W.
        depths: float32, (H * W,); one over the depth so far.
        surfaces: int32, (H * W,); the surfaces so far.
        ramp: float32, (W,); 0, 1, 2, ...
        edges: float64, (4, >= count); room for the edges.

    Returns:
        Whether any pixel may have been drawn.
    """
    lefts, rights = 0, 0
    for side in range(count):
        a, b = order[side], order[side + 1 if side + 1 < count else 0]
        ei = corners[a, 1] * corners[b, 2] - corners[a, 2] * corners[b, 1]
        ej = corners[a, 2] * corners[b, 0] - corners[a, 0] * corners[b, 2]
        ek = corners[a, 0] * corners[b, 1] - corners[a, 1] * corners[b, 0]
        if abs(ei) <= 1e-9 * abs(ej):  # a level edge: rows on one side of it
            if ej > 0:
                first_row = max(first_row, math.ceil(max(-ek / ej - _SLACK, -1.0)))
            elif ej < 0:
                last_row = min(last_row, math.floor(min(max(-ek / ej + _SLACK, -1.0), 1e6)) + 1)
        elif ei > 0:
            edges[0, lefts], edges[1, lefts] = -ej / ei, -ek / ei - _SLACK
            lefts += 1
        else:
            edges[2, rights], edges[3, rights] = -ej / ei, -ek / ei + _SLACK
            rights += 1
    drawn = False
    step = np.float32(plane[1])
    number = np.int32(number)
    for row in range(first_row, last_row):
        low, high = 0.0, width - 1.0
        for k in range(lefts):
            low = max(low, edges[0, k] * row + edges[1, k])
        for k in range(rights):
            high = min(high, edges[2, k] * row + edges[3, k])
        if low > high:
            continue
        start, stop = math.ceil(low), math.floor(high) + 1
        if start >= stop:
            continue
        drawn = True
        base = np.float32(plane[0] + plane[2] * row)
        at = row * width
        z, s, i = depths[at + start : at + stop], surfaces[at + start : at + stop], ramp[start:stop]
        for k in range(z.shape[0]):
            new = base + step * i[k]
            nearer = new > z[k]
            z[k] = new if nearer else z[k]
            s[k] = number if nearer else s[k]
    return drawn


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def set_plane(nf, nr, nu, distance, view, plane):
    """Fills `plane` (3,) for a surface with normal (forward, right, up) whose points p relative to the eye have n . p = distance."""
    cp, sp, scale = view[COS_PITCH], view[SIN_PITCH], 1.0 / distance
    along, upward = nf * cp + nu * sp, nu * cp - nf * sp
    plane[1] = nr / view[FOCAL] * scale
    plane[2] = -upward / view[FOCAL] * scale
    plane[0] = along * scale - plane[1] * view[CENTRE_I] - plane[2] * view[CENTRE_J]


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _project(corner, forward, right, up, view, corners):
    """Fills one row of `corners`: (column * depth, row * depth, depth, row)."""
    depth = forward * view[COS_PITCH] + up * view[SIN_PITCH]
    rise = up * view[COS_PITCH] - forward * view[SIN_PITCH]
    corners[corner, 0] = right * view[FOCAL] + view[CENTRE_I] * depth
    corners[corner, 1] = view[CENTRE_J] * depth - rise * view[FOCAL]
    corners[corner, 2] = depth


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _fill_round(kind, cf, cr, axes, half, middle, view, box, number, width, depths, surfaces, ramp):
    """Draws a cylinder or an ellipsoid: ray by ray within a rectangle of the picture.

    Args:
        kind: CYLINDER or SPHERE.
        cf: Forward distance of the centre.
        cr: The same to the right.
        axes: Forward and right part of the shape's x axis.
        half: Half sizes (3,).
        middle: Height of the centre above the eye.
        view: The view.
        box: First row, last row, first column, last column (exclusive).
        number: Of the curved surface; the flat one of a cylinder has the next one.
        width: W.
        depths: As in `_fill_polygon`.
        surfaces: As in `_fill_polygon`.
        ramp: As in `_fill_polygon`.
    """
    xf, xr = axes
    ex = np.float32(-(cf * xf + cr * xr) / half[0])
    ey = np.float32(-(cf * xr - cr * xf) / half[1])
    ez = np.float32(-middle / half[2])
    step = 1.0 / view[FOCAL]
    px, py = np.float32(xr / half[0] * step), np.float32(-xf / half[1] * step)
    rest = ex * ex + ey * ey - np.float32(1)
    flat = np.int32(number + 1)
    number = np.int32(number)
    zero, one, tiny = np.float32(0), np.float32(1), np.float32(1e-12)
    first_row, last_row, first_column, last_column = box
    for row in range(first_row, last_row):
        down = (row - view[CENTRE_J]) * step
        forward = view[COS_PITCH] + down * view[SIN_PITCH]
        left = -view[CENTRE_I] * step
        dx0 = np.float32((forward * xf + left * xr) / half[0])
        dy0 = np.float32((forward * xr - left * xf) / half[1])
        dz = np.float32((view[SIN_PITCH] - down * view[COS_PITCH]) / half[2])
        at = row * width
        z, s = depths[at + first_column : at + last_column], surfaces[at + first_column : at + last_column]
        i = ramp[first_column:last_column]
        if kind == CYLINDER:
            dz = dz if abs(dz) > tiny else tiny
            cap = (-ez - one) / dz if dz > zero else (one - ez) / dz  # where the ray enters the slab between the caps
            cup = (one - ez) / dz if dz > zero else (-ez - one) / dz
            for k in range(z.shape[0]):
                dx, dy = dx0 + px * i[k], dy0 + py * i[k]
                a, b = dx * dx + dy * dy, ex * dx + ey * dy
                root = b * b - a * rest
                a = a if a > tiny else tiny
                wide = math.sqrt(root if root > zero else zero)
                enter, leave = (-b - wide) / a, (wide - b) / a
                side = enter > cap
                t = enter if side else cap
                end = leave if leave < cup else cup
                new = one / (t if t > tiny else tiny)
                nearer = (root > zero) & (t < end) & (t > tiny) & (new > z[k])
                z[k] = new if nearer else z[k]
                s[k] = (number if side else flat) if nearer else s[k]
        else:
            for k in range(z.shape[0]):
                dx, dy = dx0 + px * i[k], dy0 + py * i[k]
                a, b = dx * dx + dy * dy + dz * dz, ex * dx + ey * dy + ez * dz
                root = b * b - a * (rest + ez * ez)
                t = (-b - math.sqrt(root if root > zero else zero)) / a
                new = one / (t if t > tiny else tiny)
                nearer = (root > zero) & (t > tiny) & (new > z[k])
                z[k] = new if nearer else z[k]
                s[k] = number if nearer else s[k]
    return


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _draw_shape(row, forms, looks, view, size, widest, ceiling, hidden, number, surface_row, surface_part, scratch):
    """Draws one shape unless it is hidden or out of the picture. Returns the last number given out."""
    depths, surfaces, ramp, corners, edges, plane, order = scratch
    height, width = size
    form = forms[row]
    ch, sh = view[COS_HEADING], view[SIN_HEADING]
    dx, dy = form[X] - view[EYE_X], form[Y] - view[EYE_Y]
    cf, cr = dx * ch + dy * sh, dx * sh - dy * ch
    xf, xr = form[COS] * ch + form[SIN] * sh, form[COS] * sh - form[SIN] * ch
    yf, yr = xr, -xf  # the y axis of the shape
    hx, hy = float(form[HALF_X]), float(form[HALF_Y])
    low, high = form[Z0] - view[EYE_Z], form[Z1] - view[EYE_Z]
    lowest, highest = -view[EYE_Z] - 1e-3, ceiling - view[EYE_Z] + 1e-3  # what blockers hide lies between
    reach = abs(hx * xf) + abs(hy * yf)
    nearest = cf - reach
    for k in range(4):
        sx, sy = (hx if k == 1 or k == 2 else -hx), (hy if k >= 2 else -hy)
        corners[k, 3], corners[k, 4] = cf + sx * xf + sy * yf, cr + sx * xr + sy * yr
    if widest > 0:
        if cf + reach <= 0:
            return number
        if nearest > _NEAR:
            least, most = 1e30, -1e30
            for k in range(4):
                slope = corners[k, 4] / corners[k, 3]
                least, most = min(least, slope), max(most, slope)
            if low >= lowest and high <= highest and _is_hidden(least, most, nearest, widest, hidden):
                return number
    least_depth = 1e30
    for k in range(4):
        _project(k, corners[k, 3], corners[k, 4], low, view, corners)
        _project(k + 4, corners[k, 3], corners[k, 4], high, view, corners)
        least_depth = min(least_depth, corners[k, 2], corners[k + 4, 2])
    first_row, last_row, first_column, last_column = 0, height, 0, width
    in_front = least_depth > _NEAR
    if in_front:
        top, bottom, left, right = 1e30, -1e30, 1e30, -1e30
        for k in range(8):
            scale = 1.0 / corners[k, 2]
            i, j = corners[k, 0] * scale, corners[k, 1] * scale
            corners[k, 3] = j
            top, bottom, left, right = min(top, j), max(bottom, j), min(left, i), max(right, i)
        if bottom < -_SLACK or right < -_SLACK or top > height - 1 + _SLACK or left > width - 1 + _SLACK:
            return number
        first_row, last_row = max(0, math.ceil(top - _SLACK)), min(height, math.floor(bottom + _SLACK) + 1)
        first_column, last_column = max(0, math.ceil(left - _SLACK)), min(width, math.floor(right + _SLACK) + 1)
        if first_row >= last_row or first_column >= last_column:
            return number
    kind = looks[row, KIND]
    if kind != BOX:
        half = (hx, hy, (high - low) / 2)
        box = (first_row, last_row, first_column, last_column)
        number += 1
        _fill_round(
            kind, cf, cr, (xf, xr), half, (high + low) / 2, view, box, number, width, depths, surfaces, ramp
        )
        surface_row[number], surface_part[number] = row, ROUND
        if kind == CYLINDER:
            number += 1
            surface_row[number], surface_part[number] = row, TOP if high < 0 else BOTTOM
        return number
    eye_x, eye_y = -(cf * xf + cr * xr), -(cf * yf + cr * yr)
    for part in range(6):
        if part < 2:
            beyond = (eye_x if part == FRONT_X else -eye_x) - hx
        elif part < 4:
            beyond = (eye_y if part == FRONT_Y else -eye_y) - hy
        else:
            beyond = -high if part == TOP else low
        if beyond <= 1e-6:
            continue
        if part < 4:
            sign = 1.0 if part == FRONT_X or part == FRONT_Y else -1.0
            nf, nr = (xf, xr) if part < 2 else (yf, yr)
            set_plane(sign * nf, sign * nr, 0.0, -beyond, view, plane)
            start, end = _STARTS[part], _ENDS[part]
            order[0], order[1], order[2], order[3] = start + 4, end + 4, end, start
        elif part == TOP:
            set_plane(0.0, 0.0, 1.0, -beyond, view, plane)
            order[0], order[1], order[2], order[3] = 7, 6, 5, 4
        else:
            set_plane(0.0, 0.0, -1.0, -beyond, view, plane)
            order[0], order[1], order[2], order[3] = 0, 1, 2, 3
        first, last = first_row, last_row
        if in_front:
            a, b, c, d = corners[order[0], 3], corners[order[1], 3], corners[order[2], 3], corners[order[3], 3]
            first = max(first, math.ceil(min(a, b, c, d) - _SLACK))
            last = min(last, math.floor(max(a, b, c, d) + _SLACK) + 1)
        if first < last and _fill_polygon(
            corners, order, 4, first, last, plane, number + 1, width, depths, surfaces, ramp, edges
        ):
            number += 1
            surface_row[number], surface_part[number] = row, part
    return number


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _draw_level(pieces, counts, first, view, size, z, widest, hidden, number, surface_row, surface_part, scratch):
    """Draws the floors (z is below the eye) or ceilings (above); `first` is the row of the first one. Returns the last number."""
    depths, surfaces, ramp, corners, edges, plane, order = scratch
    height, width = size
    up = z - view[EYE_Z]
    if up == 0:
        return number
    ch, sh = view[COS_HEADING], view[SIN_HEADING]
    for piece in range(pieces.shape[0]):
        count = counts[piece]
        least, most, nearest, furthest = 1e30, -1e30, 1e30, -1e30
        top, bottom, least_depth = 1e30, -1e30, 1e30
        for k in range(count):
            dx, dy = pieces[piece, k, 0] - view[EYE_X], pieces[piece, k, 1] - view[EYE_Y]
            forward, right = dx * ch + dy * sh, dx * sh - dy * ch
            nearest, furthest = min(nearest, forward), max(furthest, forward)
            slope = right / forward if forward > _NEAR else 0.0
            least, most = min(least, slope), max(most, slope)
            _project(k, forward, right, up, view, corners)
            depth = corners[k, 2]
            least_depth = min(least_depth, depth)
            j = corners[k, 1] / depth if depth > _NEAR else 0.0
            top, bottom = min(top, j), max(bottom, j)
            order[k] = k if up > 0 else count - 1 - k
        if widest > 0:
            if furthest <= 0:
                continue
            if nearest > _NEAR and _is_hidden(least, most, nearest, widest, hidden):
                continue
        first_row, last_row = 0, height
        if least_depth > _NEAR:
            first_row = max(0, math.ceil(min(max(top, -1.0), 1e6) - _SLACK))
            last_row = min(height, math.floor(min(max(bottom, -2.0), 1e6) + _SLACK) + 1)
            if first_row >= last_row:
                continue
        set_plane(0.0, 0.0, 1.0, up, view, plane)
        if _fill_polygon(
            corners, order, count, first_row, last_row, plane, number + 1, width, depths, surfaces, ramp, edges
        ):
            number += 1
            surface_row[number], surface_part[number] = first + piece, BOTTOM if up > 0 else TOP
    return number


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def draw(view, size, cull, forms, looks, shapes, pieces, counts, blockers, ceiling, surface_row, surface_part, hidden, scratch):
    """Draws one view into `scratch` and lists its surfaces.

    Args:
        view: float64, (10,); see `set_view`.
        size: (H, W).
        cull: Whether to leave out early what walls hide; the picture is the same.
        forms: See `memenvs.houses.scene.Scene`; so `looks`, `pieces`, `counts`, `blockers`.
        looks: See there.
        shapes: S.
        pieces: See there.
        counts: See there.
        blockers: See there.
        ceiling: Height of the ceiling, m.
        surface_row: int32; filled with the row of each surface.
        surface_part: int32; filled with the part of the shape that each surface is.
        hidden: float64, (WEDGES,); room for what walls hide.
        scratch: Depths (H * W,), surfaces (H * W,), ramp (W,), corners (8, 5), edges (4, 8), plane (3,), order (8,).

    Returns:
        The number of the last surface.
    """
    depths, surfaces = scratch[0], scratch[1]
    depths[:] = 0
    surfaces[:] = 0
    widest = 0.0
    inside = 0.0 <= view[EYE_Z] <= ceiling
    if cull:
        widest = _widest(view, size[1], size[0])
    if widest > 0:
        _find_hidden(view, widest, blockers if inside else blockers[:0], hidden)
    number = 0
    ch, sh = view[COS_HEADING], view[SIN_HEADING]
    slant = math.sqrt(1.0 + widest * widest)
    for row in range(shapes):
        if widest > 0:
            dx, dy = forms[row, X] - view[EYE_X], forms[row, Y] - view[EYE_Y]
            forward, right, radius = dx * ch + dy * sh, dx * sh - dy * ch, forms[row, RADIUS]
            if forward < -radius or abs(right) - widest * forward > radius * slant:
                continue
        number = _draw_shape(row, forms, looks, view, size, widest, ceiling, hidden, number, surface_row, surface_part, scratch)
    number = _draw_level(
        pieces, counts, shapes, view, size, 0.0, widest, hidden, number, surface_row, surface_part, scratch
    )
    return _draw_level(
        pieces, counts, shapes + len(counts), view, size, ceiling, widest, hidden, number, surface_row, surface_part, scratch
    )
