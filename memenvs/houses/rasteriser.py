"""Which surface is seen in each pixel, and how far away: culling, and a z-buffer of boxes, cylinders, ellipsoids and floors.

Everything here is compiled. Surfaces that meet a view get a number from 1 up, in the order in which they are drawn. The z-buffer
holds one whole number for each pixel, its key: the bits of the float32 of one over the depth along the optical axis above those
of the surface's number; 0 where nothing is hit. The nearer surface has the larger key. Rows are done in whole blocks of pixels, so
that the compiler can do the pixels of a block at the same time.

A frame of three axes is used throughout, turned with the camera's heading but not with its pitch: forward, right, up. In a
picture, the pixel of index (column i, row j) shows the ray `forward + (i - centre_i) / focal * right - (j - centre_j) / focal * up`
of the pitched camera.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from memenvs.houses.blocks import BLOCK, raise_block
from memenvs.houses.house import BOX, CYLINDER
from memenvs.houses.scene import COS, HALF_X, HALF_Y, KIND, RADIUS, SIN, Z0, Z1, X, Y

#: Entries of a view: eye, cosine and sine of heading and pitch, focal length and principal point in pixels.
EYE_X, EYE_Y, EYE_Z, COS_HEADING, SIN_HEADING, COS_PITCH, SIN_PITCH, FOCAL, CENTRE_I, CENTRE_J = range(10)
VIEW_SIZE = 10

#: Parts of a shape that are surfaces of their own; a floor is a TOP and a ceiling a BOTTOM.
FRONT_X, BACK_X, FRONT_Y, BACK_Y, TOP, BOTTOM, ROUND = range(7)

#: The field of view is cut into this many upright wedges to find out what walls hide.
WEDGES = 128
LEVELS = 8

_NEAR = 1e-3  # nearer corners are not projected; what they bound is drawn all the same
_SLACK = 1e-3  # px; surfaces reach this far over their edges, so that no gap opens between neighbours

# The corners (on the plan; counter-clockwise from the one at -x, -y) at which an upright face of a box starts and ends,
# for FRONT_X, BACK_X, FRONT_Y, BACK_Y; as seen from outside it goes from left to right.
_STARTS = (1, 3, 2, 0)
_ENDS = (2, 0, 3, 1)

_LOG2 = np.array([max(count.bit_length() - 1, 0) for count in range(WEDGES + 1)])

_FAST = {"contract", "reassoc", "nsz", "arcp"}


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def set_view(pose, focal, centre_i, centre_j, view):
    """Fills `view` (10,) from a pose (x, y, z, heading, pitch)."""
    view[EYE_X], view[EYE_Y], view[EYE_Z] = pose[0], pose[1], pose[2]
    view[COS_HEADING], view[SIN_HEADING] = math.cos(pose[3]), math.sin(pose[3])
    view[COS_PITCH], view[SIN_PITCH] = math.cos(pose[4]), math.sin(pose[4])
    view[FOCAL], view[CENTRE_I], view[CENTRE_J] = focal, centre_i, centre_j


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _widest(view, width, height):
    """Largest right / forward over all rays of a picture; 0 if some ray does not go forward enough to say."""
    across = max(view[CENTRE_I], width - 1 - view[CENTRE_I]) / view[FOCAL]
    tall = max(view[CENTRE_J], height - 1 - view[CENTRE_J]) / view[FOCAL]
    ahead = view[COS_PITCH] - tall * abs(view[SIN_PITCH])
    return across / ahead * 1.0001 + 1e-4 if ahead > 0.15 else 0.0


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _find_hidden(view, widest, blockers, hidden):
    """Fills `hidden` (LEVELS, WEDGES): one over the forward distance from which on nothing is seen in a wedge; 0 if all is seen.

    Row l holds the least of the 2**l wedges from each one on, so that the least of any range is the lesser of two entries.
    """
    hidden[0] = 0.0
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
        along, across = bf - af, br - ar
        square, area = along * along + across * across, af * br - ar * bf
        thick = blockers[row, 4] + 1e-5
        if area * area <= thick * thick * square and af * along + ar * across < 0 < bf * along + br * across:
            continue  # the eye is inside: a box is not seen from within
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
            if least > hidden[0, wedge]:
                hidden[0, wedge] = least
    for level in range(1, LEVELS):
        half = 1 << (level - 1)
        for wedge in range(WEDGES - 2 * half + 1):
            first_half, second_half = hidden[level - 1, wedge], hidden[level - 1, wedge + half]
            hidden[level, wedge] = first_half if first_half < second_half else second_half


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _is_hidden(low, high, nearest, widest, hidden):
    """Whether all of right / forward in low..high, from the forward distance `nearest` on, is hidden or out of the picture."""
    if low > widest or high < -widest:
        return True
    scale = WEDGES / (2 * widest)
    first = max(0, int((low + widest) * scale))
    last = min(WEDGES - 1, int((high + widest) * scale))
    level = _LOG2[last - first + 1]
    least = min(hidden[level, first], hidden[level, last + 1 - (1 << level)])
    return least * nearest > 1.0


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _fill_polygon(corners, order, count, first_row, last_row, plane, number, width, stride, keys, edges):
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
        stride: Keys of one row, W rounded up.
        keys: int64, (H * stride,); what was drawn so far.
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
    low_half = np.int64(number)
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
        block = start - start % BLOCK
        base = np.float32(plane[0] + plane[2] * row + plane[1] * block)
        at = np.uint64(row * stride + block)
        while block < stop:
            since, until = np.int32(start - block), np.int32(stop - block)
            raise_block(keys, at, base, step, since, until, low_half)
            block += BLOCK
            at += np.uint64(BLOCK)
            base += step * np.float32(BLOCK)
    return drawn


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def set_plane(nf, nr, nu, distance, view, plane):
    """Fills `plane` (3,) for a surface with normal (forward, right, up) whose points p relative to the eye have n . p = distance."""
    cp, sp, scale = view[COS_PITCH], view[SIN_PITCH], 1.0 / distance
    along, upward = nf * cp + nu * sp, nu * cp - nf * sp
    plane[1] = nr / view[FOCAL] * scale
    plane[2] = -upward / view[FOCAL] * scale
    plane[0] = along * scale - plane[1] * view[CENTRE_I] - plane[2] * view[CENTRE_J]


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _project(corner, forward, right, up, view, corners):
    """Fills one row of `corners`: (column * depth, row * depth, depth, row)."""
    depth = forward * view[COS_PITCH] + up * view[SIN_PITCH]
    rise = up * view[COS_PITCH] - forward * view[SIN_PITCH]
    corners[corner, 0] = right * view[FOCAL] + view[CENTRE_I] * depth
    corners[corner, 1] = view[CENTRE_J] * depth - rise * view[FOCAL]
    corners[corner, 2] = depth


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _fill_round(kind, cf, cr, axes, half, middle, view, box, number, stride, keys):
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
        stride: As in `_fill_polygon`.
        keys: As in `_fill_polygon`.
    """
    xf, xr = axes
    ex = np.float32(-(cf * xf + cr * xr) / half[0])
    ey = np.float32(-(cf * xr - cr * xf) / half[1])
    ez = np.float32(-middle / half[2])
    step = 1.0 / view[FOCAL]
    px, py = np.float32(xr / half[0] * step), np.float32(-xf / half[1] * step)
    rest = ex * ex + ey * ey - np.float32(1)
    zero, one, tiny = np.float32(0), np.float32(1), np.float32(1e-12)
    curved, flat = np.int64(number), np.int64(number + 1)
    first_row, last_row, first_column, last_column = box
    first_column -= first_column % BLOCK
    for row in range(first_row, last_row):
        down = (row - view[CENTRE_J]) * step
        forward = view[COS_PITCH] + down * view[SIN_PITCH]
        left = (first_column - view[CENTRE_I]) * step
        dx0 = np.float32((forward * xf + left * xr) / half[0])
        dy0 = np.float32((forward * xr - left * xf) / half[1])
        dz = np.float32((view[SIN_PITCH] - down * view[COS_PITCH]) / half[2])
        dz = dz if abs(dz) > tiny else tiny
        cap = (-ez - one) / dz if dz > zero else (one - ez) / dz  # where the ray enters the slab between the caps
        cup = (one - ez) / dz if dz > zero else (-ez - one) / dz  # where it leaves it
        at = np.uint64(row * stride + first_column)
        for _ in range(first_column, last_column, BLOCK):
            for k in range(BLOCK):
                dx, dy = dx0 + px * np.float32(k), dy0 + py * np.float32(k)
                if kind == CYLINDER:
                    a, b = dx * dx + dy * dy, ex * dx + ey * dy
                    root = b * b - a * rest
                    a = a if a > tiny else tiny
                    wide = math.sqrt(root if root > zero else zero)
                    enter, leave = (-b - wide) / a, (wide - b) / a
                    side = enter > cap
                    t = enter if side else cap
                    met = (root > zero) & (t < (leave if leave < cup else cup)) & (t > tiny)
                else:
                    a, b = dx * dx + dy * dy + dz * dz, ex * dx + ey * dy + ez * dz
                    root = b * b - a * (rest + ez * ez)
                    t = (-b - math.sqrt(root if root > zero else zero)) / a
                    side, met = True, (root > zero) & (t > tiny)
                key = np.int64(np.float32(one / t).view(np.int32)) << 32 | (curved if side else flat)
                key = key if met else np.int64(0)
                old = keys[at + np.uint64(k)]
                keys[at + np.uint64(k)] = key if key > old else old
            dx0 += px * np.float32(BLOCK)
            dy0 += py * np.float32(BLOCK)
            at += np.uint64(BLOCK)


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _list_shapes(forms, shapes, view, widest, ceiling, hidden, listed):
    """Lists the shapes that may be seen in `listed`; returns how many. Each corner test is on the plan, so pitch does not matter."""
    ch, sh = view[COS_HEADING], view[SIN_HEADING]
    slant = math.sqrt(1.0 + widest * widest)
    highest = ceiling + 1e-3
    count = 0
    for row in range(shapes):
        form = forms[row]
        dx, dy = form[X] - view[EYE_X], form[Y] - view[EYE_Y]
        cf, cr = dx * ch + dy * sh, dx * sh - dy * ch
        radius = form[RADIUS]
        if cf < -radius or abs(cr) - widest * cf > radius * slant:
            continue
        listed[count] = row
        count += 1
        if form[Z0] < -1e-3 or form[Z1] > highest:  # walls hide only what lies between floor and ceiling
            continue
        ax, ay = form[HALF_X] * form[COS], form[HALF_X] * form[SIN]
        bx, by = -form[HALF_Y] * form[SIN], form[HALF_Y] * form[COS]
        af, ar, bf, br = ax * ch + ay * sh, ax * sh - ay * ch, bx * ch + by * sh, bx * sh - by * ch
        nearest = cf - abs(af) - abs(bf)
        if nearest > _NEAR:
            p, q = (cr + ar + br) / (cf + af + bf), (cr + ar - br) / (cf + af - bf)
            r, s = (cr - ar + br) / (cf - af + bf), (cr - ar - br) / (cf - af - bf)
            if _is_hidden(min(p, q, r, s), max(p, q, r, s), nearest, widest, hidden):
                count -= 1
    return count


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _list_around(forms, shapes, view, width, height, listed):
    """As `_list_shapes`, for a camera so steep that it sees what is behind it: a ball around each shape against the picture's edges."""
    across = max(view[CENTRE_I], width - 1 - view[CENTRE_I]) / view[FOCAL] * 1.0001 + 1e-4
    tall = max(view[CENTRE_J], height - 1 - view[CENTRE_J]) / view[FOCAL] * 1.0001 + 1e-4
    slant_across, slant_tall = math.sqrt(1.0 + across * across), math.sqrt(1.0 + tall * tall)
    ch, sh, cp, sp = view[COS_HEADING], view[SIN_HEADING], view[COS_PITCH], view[SIN_PITCH]
    count = 0
    for row in range(shapes):
        form = forms[row]
        dx, dy, dz = form[X] - view[EYE_X], form[Y] - view[EYE_Y], 0.5 * (form[Z0] + form[Z1]) - view[EYE_Z]
        half = 0.5 * (form[Z1] - form[Z0])
        radius = math.sqrt(form[RADIUS] * form[RADIUS] + half * half) + 1e-4
        forward, right = dx * ch + dy * sh, dx * sh - dy * ch
        depth, up = forward * cp + dz * sp, dz * cp - forward * sp
        is_beside = abs(right) - across * depth > radius * slant_across or abs(up) - tall * depth > radius * slant_tall
        if depth > -radius and not is_beside:
            listed[count] = row
            count += 1
    return count


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _draw_shape(row, forms, looks, view, size, number, surface_row, surface_part, scratch):
    """Draws one shape. Returns the last number given out."""
    keys, corners, edges, plane, order = scratch
    height, width, stride = size
    form = forms[row]
    ch, sh = view[COS_HEADING], view[SIN_HEADING]
    dx, dy = form[X] - view[EYE_X], form[Y] - view[EYE_Y]
    cf, cr = dx * ch + dy * sh, dx * sh - dy * ch
    xf, xr = form[COS] * ch + form[SIN] * sh, form[COS] * sh - form[SIN] * ch
    yf, yr = xr, -xf  # the y axis of the shape
    hx, hy = float(form[HALF_X]), float(form[HALF_Y])
    low, high = form[Z0] - view[EYE_Z], form[Z1] - view[EYE_Z]
    for k in range(4):
        sx, sy = (hx if k == 1 or k == 2 else -hx), (hy if k >= 2 else -hy)
        corners[k, 3], corners[k, 4] = cf + sx * xf + sy * yf, cr + sx * xr + sy * yr
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
            kind, cf, cr, (xf, xr), half, (high + low) / 2, view, box, number, stride, keys
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
            corners, order, 4, first, last, plane, number + 1, width, stride, keys, edges
        ):
            number += 1
            surface_row[number], surface_part[number] = row, part
    return number


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _draw_level(pieces, counts, first, view, size, z, widest, hidden, number, surface_row, surface_part, scratch):
    """Draws the floors (z is below the eye) or ceilings (above); `first` is the row of the first one. Returns the last number."""
    keys, corners, edges, plane, order = scratch
    height, width, stride = size
    up = z - view[EYE_Z]
    if abs(up) < 1e-6:  # seen edge-on
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
            corners, order, count, first_row, last_row, plane, number + 1, width, stride, keys, edges
        ):
            number += 1
            surface_row[number], surface_part[number] = first + piece, BOTTOM if up > 0 else TOP
    return number


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def draw(view, size, cull, forms, looks, shapes, pieces, counts, blockers, ceiling, surface_row, surface_part, listed, hidden, scratch):
    """Draws one view into `scratch` and lists its surfaces.

    Args:
        view: float64, (10,); see `set_view`.
        size: H, W and W rounded up to whole blocks (the stride of the keys).
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
        listed: int32, (>= S,); room for a list of shapes.
        hidden: float64, (LEVELS, WEDGES); room for what walls hide.
        scratch: Keys (H * stride,), corners (8, 5), edges (4, 8), plane (3,), order (8,).

    Returns:
        The number of the last surface.
    """
    scratch[0][:] = 0
    widest = 0.0
    inside = 0.0 <= view[EYE_Z] <= ceiling
    if cull:
        widest = _widest(view, size[1], size[0])
    if widest > 0:
        _find_hidden(view, widest, blockers if inside else blockers[:0], hidden)
        count = _list_shapes(forms, shapes, view, widest, ceiling, hidden, listed)
    elif cull:
        count = _list_around(forms, shapes, view, size[1], size[0], listed)
    else:
        count = shapes
        for row in range(shapes):
            listed[row] = row
    number = 0
    for place in range(count):
        number = _draw_shape(listed[place], forms, looks, view, size, number, surface_row, surface_part, scratch)
    number = _draw_level(
        pieces, counts, shapes, view, size, 0.0, widest, hidden, number, surface_row, surface_part, scratch
    )
    return _draw_level(
        pieces, counts, shapes + len(counts), view, size, ceiling, widest, hidden, number, surface_row, surface_part, scratch
    )
