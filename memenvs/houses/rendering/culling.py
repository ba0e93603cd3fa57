"""Culling: from which view an image is taken, and which shapes can appear in it.

A home has some hundred shapes, and most of them lie beside the image or behind a wall. `list_visible_shapes` finds
those that may appear. It may list too many (they are drawn and lose the depth test) but never too few.

Frame: forward and right on the floor plan, turned with the camera's heading, and up. It is not turned with the pitch,
so walls stay vertical and occlusion can be found on the floor plan alone. The pixel (column i, row j) of an image shows
the ray `forward + (i - centre_i) / focal * right - (j - centre_j) / focal * up` of the pitched camera.

Occlusion (`find_occlusion`, `is_occluded`): the field of view is cut into upright wedges by slope = right / forward.
For each wedge, the walls that span all of it give a forward distance from which on nothing is seen. A shape is hidden
if its nearest point is beyond that distance in all wedges that it touches.

Everything here is compiled.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from memenvs.houses.rendering.kernels.simd import compiled
from memenvs.houses.rendering.scene import COS, HALF_X, HALF_Y, RADIUS, SIN, Z0, Z1, X, Y

#: Number of wedges of the field of view.
WEDGES = 128
#: Rows of the table with minima over 1, 2, 4, ... neighbouring wedges.
WEDGE_LEVELS = 8

#: m; corners at a smaller depth are not projected. What they bound is drawn all the same.
NEAR = 1e-3

_OCCLUDER_NEAR = 0.02  # m; walls are cut off at this forward distance before their slopes are computed
_FLOOR_LOG2 = np.array([max(count.bit_length() - 1, 0) for count in range(WEDGES + 1)])


class View(NamedTuple):
    """Camera of one image: position (m), direction, focal length, principal point (pixels)."""

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
    """Prepare a pose for rendering.

    Args:
        pose: float64, (5,); x, y, z of the eye in m, heading and pitch in rad.
        focal: Focal length, pixels.
        centre_i: Column of the principal point, pixels.
        centre_j: Row of the principal point, pixels.
    """
    cos_heading, sin_heading = math.cos(pose[3]), math.sin(pose[3])
    cos_pitch, sin_pitch = math.cos(pose[4]), math.sin(pose[4])
    return View(pose[0], pose[1], pose[2], cos_heading, sin_heading, cos_pitch, sin_pitch, focal, centre_i, centre_j)


@compiled
def max_ray_slope(view: View, height: int, width: int) -> float:
    """Largest |right / forward| of an image's rays; 0 if the pitch is too steep for a bound."""
    right_slope = max(view.centre_i, width - 1 - view.centre_i) / view.focal
    up_slope = max(view.centre_j, height - 1 - view.centre_j) / view.focal
    forward = view.cos_pitch - up_slope * abs(view.sin_pitch)
    # A little larger than exact, so that rounding errors never cull a visible shape.
    return right_slope / forward * 1.0001 + 1e-4 if forward > 0.15 else 0.0


@compiled
def find_occlusion(view: View, max_slope: float, occluders: np.ndarray, occlusion: np.ndarray) -> None:
    """Find, for each wedge, the distance from which on nothing is seen.

    Args:
        view: The view.
        max_slope: See `max_ray_slope`; the wedges divide -max_slope to max_slope evenly.
        occluders: float64, (B, 5); see `memenvs.houses.rendering.scene.Scene`.
        occlusion: float64, (WEDGE_LEVELS, WEDGES); filled. Row 0 holds one over that forward distance, 0 if all is
            seen. Row l holds the minimum over the 2**l wedges from each one on, so that the minimum over any range of
            wedges is the smaller of two entries.
    """
    occlusion[0] = 0.0
    for row in range(occluders.shape[0]):
        _hide_behind(view, max_slope, occluders[row], occlusion[0])
    for level in range(1, WEDGE_LEVELS):
        half = 1 << (level - 1)
        for wedge in range(WEDGES - 2 * half + 1):
            first, second = occlusion[level - 1, wedge], occlusion[level - 1, wedge + half]
            occlusion[level, wedge] = first if first < second else second


@compiled
def _hide_behind(view: View, max_slope: float, occluder: np.ndarray, occlusion: np.ndarray) -> None:
    """Raise `occlusion` (WEDGES,) in the wedges that one occluder (5,) spans completely.

    Names: a and b are the ends of the centre line; f is forward of the eye and r to its right; ch and sh are cosine and
    sine of the heading.
    """
    ch, sh = view.cos_heading, view.sin_heading
    ax, ay = occluder[0] - view.eye_x, occluder[1] - view.eye_y
    bx, by = occluder[2] - view.eye_x, occluder[3] - view.eye_y
    af, ar = ax * ch + ay * sh, ax * sh - ay * ch
    bf, br = bx * ch + by * sh, bx * sh - by * ch
    if af < _OCCLUDER_NEAR and bf < _OCCLUDER_NEAR:
        return
    along, across = bf - af, br - ar
    squared_length = along * along + across * across
    area = af * br - ar * bf
    thickness = occluder[4] + 1e-5
    is_between = af * along + ar * across < 0 < bf * along + br * across  # the eye projects between both ends
    if area * area <= thickness * thickness * squared_length and is_between:
        return  # the eye is inside the wall: a box is not seen from within
    if af < _OCCLUDER_NEAR:
        share = (_OCCLUDER_NEAR - af) / (bf - af)
        af, ar = _OCCLUDER_NEAR, ar + share * (br - ar)
    elif bf < _OCCLUDER_NEAR:
        share = (_OCCLUDER_NEAR - bf) / (af - bf)
        bf, br = _OCCLUDER_NEAR, br + share * (ar - br)
    # Over the slope, one over the forward distance of a straight wall is a linear function.
    scale = WEDGES / (2 * max_slope)
    a_inverse, b_inverse = 1.0 / af, 1.0 / bf
    a_wedge, b_wedge = (ar * a_inverse + max_slope) * scale, (br * b_inverse + max_slope) * scale
    if a_wedge > b_wedge:
        a_wedge, b_wedge, a_inverse, b_inverse = b_wedge, a_wedge, b_inverse, a_inverse
    first, end = math.ceil(max(a_wedge, 0.0)), math.floor(min(b_wedge, float(WEDGES)))
    if first >= end:
        return
    slope = (b_inverse - a_inverse) / (b_wedge - a_wedge)
    start = a_inverse + slope * (first - a_wedge)
    lower = min(0.0, slope)
    for wedge in range(first, end):
        farthest = start + slope * (wedge - first) + lower  # at the wedge's side where the wall is farther away
        if farthest > occlusion[wedge]:
            occlusion[wedge] = farthest


@compiled
def is_occluded(low: float, high: float, nearest: float, max_slope: float, occlusion: np.ndarray) -> bool:
    """True if walls hide everything that spans some slopes from some distance on.

    Args:
        low: Smallest right / forward.
        high: Largest right / forward.
        nearest: Smallest forward distance, m; > 0.
        max_slope: See `max_ray_slope`.
        occlusion: See `find_occlusion`.
    """
    if low > max_slope or high < -max_slope:
        return True  # beside the image
    scale = WEDGES / (2 * max_slope)
    first = max(0, int((low + max_slope) * scale))
    last = min(WEDGES - 1, int((high + max_slope) * scale))
    level = _FLOOR_LOG2[last - first + 1]
    minimum = min(occlusion[level, first], occlusion[level, last + 1 - (1 << level)])
    return minimum * nearest > 1.0


@compiled
def list_visible_shapes(
    geometry: np.ndarray,
    num_shapes: int,
    view: View,
    max_slope: float,
    ceiling: float,
    occlusion: np.ndarray,
    listed: np.ndarray,
) -> int:
    """List the shapes that may be seen.

    Each test is on the floor plan, so the pitch does not matter.

    Args:
        geometry: float32, (>= S, 12); see `memenvs.houses.rendering.scene.Scene`.
        num_shapes: S.
        view: The view.
        max_slope: See `max_ray_slope`; > 0.
        ceiling: Height of the ceiling, m.
        occlusion: See `find_occlusion`.
        listed: int32, (>= S,); filled with rows of `geometry`.

    Returns:
        How many rows are listed.
    """
    ch, sh = view.cos_heading, view.sin_heading
    slant = math.sqrt(1.0 + max_slope * max_slope)
    highest = ceiling + 1e-3
    count = 0
    for row in range(num_shapes):
        shape = geometry[row]
        dx, dy = shape[X] - view.eye_x, shape[Y] - view.eye_y
        cf, cr = dx * ch + dy * sh, dx * sh - dy * ch  # the centre: forward, right
        radius = shape[RADIUS]
        if cf < -radius or abs(cr) - max_slope * cf > radius * slant:
            continue  # its circle is behind the eye or beside the image
        listed[count] = row
        count += 1
        if shape[Z0] < -1e-3 or shape[Z1] > highest:  # walls hide only what lies between floor and ceiling
            continue
        # Half axes a and b of its rectangle, then the slopes of the four corners.
        ax, ay = shape[HALF_X] * shape[COS], shape[HALF_X] * shape[SIN]
        bx, by = -shape[HALF_Y] * shape[SIN], shape[HALF_Y] * shape[COS]
        af, ar, bf, br = ax * ch + ay * sh, ax * sh - ay * ch, bx * ch + by * sh, bx * sh - by * ch
        nearest = cf - abs(af) - abs(bf)
        if nearest > NEAR:
            p, q = (cr + ar + br) / (cf + af + bf), (cr + ar - br) / (cf + af - bf)
            r, s = (cr - ar + br) / (cf - af + bf), (cr - ar - br) / (cf - af - bf)
            if is_occluded(min(p, q, r, s), max(p, q, r, s), nearest, max_slope, occlusion):
                count -= 1
    return count


@compiled
def list_shapes_in_frustum(
    geometry: np.ndarray, num_shapes: int, view: View, height: int, width: int, listed: np.ndarray
) -> int:
    """List shapes as `list_visible_shapes`, for a camera so steep that it sees behind the eye.

    It tests a ball around each shape against the four sides of the image. Walls hide nothing here.
    """
    right_slope = max(view.centre_i, width - 1 - view.centre_i) / view.focal * 1.0001 + 1e-4
    up_slope = max(view.centre_j, height - 1 - view.centre_j) / view.focal * 1.0001 + 1e-4
    right_slant, up_slant = math.sqrt(1.0 + right_slope * right_slope), math.sqrt(1.0 + up_slope * up_slope)
    ch, sh, cp, sp = view.cos_heading, view.sin_heading, view.cos_pitch, view.sin_pitch
    count = 0
    for row in range(num_shapes):
        shape = geometry[row]
        dx, dy, dz = shape[X] - view.eye_x, shape[Y] - view.eye_y, 0.5 * (shape[Z0] + shape[Z1]) - view.eye_z
        half = 0.5 * (shape[Z1] - shape[Z0])
        radius = math.sqrt(shape[RADIUS] * shape[RADIUS] + half * half) + 1e-4
        forward, right = dx * ch + dy * sh, dx * sh - dy * ch
        depth, up = forward * cp + dz * sp, dz * cp - forward * sp
        is_beside = (
            abs(right) - right_slope * depth > radius * right_slant or abs(up) - up_slope * depth > radius * up_slant
        )
        if depth > -radius and not is_beside:
            listed[count] = row
            count += 1
    return count
