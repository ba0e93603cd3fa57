"""A view of a home, and which of its shapes can be in the picture: not what lies beside it, not what walls hide.

Everything here is compiled. A frame of three axes is used, turned with the camera's heading but not with its pitch: forward, right,
up. In a picture, the pixel of index (column i, row j) shows the ray `forward + (i - centre_i) / focal * right - (j - centre_j) /
focal * up` of the pitched camera.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from memenvs.houses.rendering.kernels.simd import compiled
from memenvs.houses.rendering.scene import COS, HALF_X, HALF_Y, RADIUS, SIN, Z0, Z1, X, Y

#: The field of view is cut into this many upright wedges to find out what walls hide; a table has the least of 1, 2, 4, ... of them.
WEDGES, WEDGE_LEVELS = 128, 8

#: m; nearer corners are not projected; what they bound is drawn all the same.
NEAR = 1e-3

_LOG2 = np.array([max(count.bit_length() - 1, 0) for count in range(WEDGES + 1)])


class View(NamedTuple):
    """From where a picture is taken, and how. Eye in m, cosine and sine of heading and pitch, focal length and centre in pixels."""

    eye_x: float
    eye_y: float
    eye_z: float
    cos_heading: float
    sin_heading: float
    cos_pitch: float
    sin_pitch: float
    focal: float
    centre_i: float
    centre_j: float


@compiled
def view_from(pose: np.ndarray, focal: float, centre_i: float, centre_j: float) -> View:
    """The view from a pose: float64, (5,), x, y, z, heading, pitch."""
    ch, sh, cp, sp = math.cos(pose[3]), math.sin(pose[3]), math.cos(pose[4]), math.sin(pose[4])
    return View(pose[0], pose[1], pose[2], ch, sh, cp, sp, focal, centre_i, centre_j)


@compiled
def widest_slope(view: View, height: int, width: int) -> float:
    """Largest right / forward over all rays of a picture; 0 if some ray does not go forward enough to say."""
    across = max(view.centre_i, width - 1 - view.centre_i) / view.focal
    tall = max(view.centre_j, height - 1 - view.centre_j) / view.focal
    ahead = view.cos_pitch - tall * abs(view.sin_pitch)
    return across / ahead * 1.0001 + 1e-4 if ahead > 0.15 else 0.0


@compiled
def find_hidden(view: View, widest: float, occluders: np.ndarray, hidden: np.ndarray) -> None:
    """Fills `hidden`: one over the forward distance from which on nothing is seen in a wedge; 0 if all is seen.

    Args:
        view: The view.
        widest: See `widest_slope`.
        occluders: See `memenvs.houses.rendering.scene.Scene`.
        hidden: float64, (WEDGE_LEVELS, WEDGES); row l holds the least of the 2**l wedges from each one on, so that the least of any
            range is the lesser of two entries.
    """
    hidden[0] = 0.0
    for row in range(occluders.shape[0]):
        _hide_behind(view, widest, occluders[row], hidden[0])
    for level in range(1, WEDGE_LEVELS):
        half = 1 << (level - 1)
        for wedge in range(WEDGES - 2 * half + 1):
            first, second = hidden[level - 1, wedge], hidden[level - 1, wedge + half]
            hidden[level, wedge] = first if first < second else second


@compiled
def _hide_behind(view: View, widest: float, blocker: np.ndarray, hidden: np.ndarray) -> None:
    """Raises `hidden` (WEDGES,) in the wedges that the centre line of one blocker spans all of."""
    ch, sh = view.cos_heading, view.sin_heading
    ax, ay = blocker[0] - view.eye_x, blocker[1] - view.eye_y
    bx, by = blocker[2] - view.eye_x, blocker[3] - view.eye_y
    af, ar = ax * ch + ay * sh, ax * sh - ay * ch
    bf, br = bx * ch + by * sh, bx * sh - by * ch
    near = 0.02
    if af < near and bf < near:
        return
    along, across = bf - af, br - ar
    square, area, thick = along * along + across * across, af * br - ar * bf, blocker[4] + 1e-5
    if area * area <= thick * thick * square and af * along + ar * across < 0 < bf * along + br * across:
        return  # the eye is inside: a box is not seen from within
    if af < near:
        part = (near - af) / (bf - af)
        af, ar = near, ar + part * (br - ar)
    elif bf < near:
        part = (near - bf) / (af - bf)
        bf, br = near, br + part * (ar - br)
    scale = WEDGES / (2 * widest)
    ai, bi = 1.0 / af, 1.0 / bf
    at, bt = (ar * ai + widest) * scale, (br * bi + widest) * scale  # in wedges
    if at > bt:
        at, bt, ai, bi = bt, at, bi, ai
    first, last = math.ceil(max(at, 0.0)), math.floor(min(bt, float(WEDGES)))
    if first >= last:
        return
    slope = (bi - ai) / (bt - at)
    start, low = ai + slope * (first - at), min(0.0, slope)
    for wedge in range(first, last):
        least = start + slope * (wedge - first) + low
        if least > hidden[wedge]:
            hidden[wedge] = least


@compiled
def is_hidden(low: float, high: float, nearest: float, widest: float, hidden: np.ndarray) -> bool:
    """Whether all of right / forward in low..high, from the forward distance `nearest` on, is hidden or out of the picture."""
    if low > widest or high < -widest:
        return True
    scale = WEDGES / (2 * widest)
    first = max(0, int((low + widest) * scale))
    last = min(WEDGES - 1, int((high + widest) * scale))
    level = _LOG2[last - first + 1]
    least = min(hidden[level, first], hidden[level, last + 1 - (1 << level)])
    return least * nearest > 1.0


@compiled
def list_shapes(
    geometry: np.ndarray,
    shapes: int,
    view: View,
    widest: float,
    ceiling: float,
    hidden: np.ndarray,
    listed: np.ndarray,
) -> int:
    """Lists the shapes that may be seen in `listed`; returns how many. Each corner test is on the plan, so pitch does not matter."""
    ch, sh = view.cos_heading, view.sin_heading
    slant = math.sqrt(1.0 + widest * widest)
    highest = ceiling + 1e-3
    count = 0
    for row in range(shapes):
        form = geometry[row]
        dx, dy = form[X] - view.eye_x, form[Y] - view.eye_y
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
        if nearest > NEAR:
            p, q = (cr + ar + br) / (cf + af + bf), (cr + ar - br) / (cf + af - bf)
            r, s = (cr - ar + br) / (cf - af + bf), (cr - ar - br) / (cf - af - bf)
            if is_hidden(min(p, q, r, s), max(p, q, r, s), nearest, widest, hidden):
                count -= 1
    return count


@compiled
def list_around(geometry: np.ndarray, shapes: int, view: View, height: int, width: int, listed: np.ndarray) -> int:
    """As `list_shapes`, for a camera so steep that it sees what is behind it: a ball around each shape against the picture's edges."""
    across = max(view.centre_i, width - 1 - view.centre_i) / view.focal * 1.0001 + 1e-4
    tall = max(view.centre_j, height - 1 - view.centre_j) / view.focal * 1.0001 + 1e-4
    slant_across, slant_tall = math.sqrt(1.0 + across * across), math.sqrt(1.0 + tall * tall)
    ch, sh, cp, sp = view.cos_heading, view.sin_heading, view.cos_pitch, view.sin_pitch
    count = 0
    for row in range(shapes):
        form = geometry[row]
        dx, dy, dz = form[X] - view.eye_x, form[Y] - view.eye_y, 0.5 * (form[Z0] + form[Z1]) - view.eye_z
        half = 0.5 * (form[Z1] - form[Z0])
        radius = math.sqrt(form[RADIUS] * form[RADIUS] + half * half) + 1e-4
        forward, right = dx * ch + dy * sh, dx * sh - dy * ch
        depth, up = forward * cp + dz * sp, dz * cp - forward * sp
        is_beside = abs(right) - across * depth > radius * slant_across or abs(up) - tall * depth > radius * slant_tall
        if depth > -radius and not is_beside:
            listed[count] = row
            count += 1
    return count
