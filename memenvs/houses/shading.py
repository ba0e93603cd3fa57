"""Colours of what the rasteriser found: procedural pictures anchored to surfaces, shade by direction, darker corners.

Only visible surfaces get here. A row of pixels is done in three passes, so that the arithmetic runs on many pixels at once: where
in the atlas each pixel's texel lies and how bright the light is; fetching the texels; multiplying and packing.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from memenvs.houses.house import SPHERE
from memenvs.houses.materials import ATLAS_WIDTH, LEVELS, TILE
from memenvs.houses.rasteriser import (
    BACK_X,
    BOTTOM,
    CENTRE_I,
    CENTRE_J,
    COS_HEADING,
    COS_PITCH,
    EYE_X,
    EYE_Y,
    EYE_Z,
    FOCAL,
    FRONT_X,
    FRONT_Y,
    ROUND,
    SIN_HEADING,
    SIN_PITCH,
    TOP,
)
from memenvs.houses.scene import (
    BLUE,
    COS,
    GREEN,
    HALF_X,
    HALF_Y,
    IN_WORLD,
    KIND,
    RED,
    SIN,
    TEXTURE,
    Z0,
    Z1,
    X,
    Y,
)

#: Columns of a surface's look: texel coordinates at the eye and their change along the ray, level of detail, atlas row,
#: colour, and how light falls off towards floor and ceiling.
U_EYE, U_I, U_J, U_0, V_EYE, V_I, V_J, V_0, DETAIL, BASE, LOOK_R, LOOK_G, LOOK_B, LOW_0, LOW_V, HIGH_0, HIGH_V, READY = range(18)
LOOK_SIZE = 18

_LIGHT = (0.36, 0.21, 0.91)  # from where most light comes
_AMBIENT, _DIRECT = 0.70, 0.30
_SKY, _HORIZON = (120.0, 170.0, 235.0), (214.0, 230.0, 245.0)
_GRASS = (104.0, 142.0, 72.0)

_FAST = {"contract", "reassoc", "nsz", "arcp"}


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _shade(nx, ny, nz):
    """Brightness of a surface with a unit normal in world axes."""
    return _AMBIENT + _DIRECT * (nx * _LIGHT[0] + ny * _LIGHT[1] + nz * _LIGHT[2])


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _set_axis(look, at, ax, ay, az, offset, scale, view):
    """Writes one texel coordinate, (a . point - offset) * scale, as a function of pixel and depth into look[at : at + 4]."""
    ch, sh, cp, sp = view[COS_HEADING], view[SIN_HEADING], view[COS_PITCH], view[SIN_PITCH]
    forward, right = ax * ch + ay * sh, ax * sh - ay * ch
    along, upward = forward * cp + az * sp, az * cp - forward * sp
    di, dj = right / view[FOCAL] * scale, -upward / view[FOCAL] * scale
    look[at] = (ax * view[EYE_X] + ay * view[EYE_Y] + az * view[EYE_Z] - offset) * scale
    look[at + 1], look[at + 2] = di, dj
    look[at + 3] = along * scale - di * view[CENTRE_I] - dj * view[CENTRE_J]


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _set_look(look, form, kinds, part, ceiling, view, textures):
    """Fills the look (18,) of a flat surface of a box, a cylinder, a floor or a ceiling for one view."""
    c, s, cx, cy = float(form[COS]), float(form[SIN]), float(form[X]), float(form[Y])
    hx, hy = float(form[HALF_X]), float(form[HALF_Y])
    texture = kinds[TEXTURE]
    upright = part < TOP
    if upright:
        sign = 1.0 if part == FRONT_X or part == FRONT_Y else -1.0
        if part == FRONT_X or part == BACK_X:
            nx, ny, half, beyond = sign * c, sign * s, hy, hx
        else:
            nx, ny, half, beyond = -sign * s, sign * c, hx, hy
        nz, ux, uy, wide, tall = 0.0, -ny, nx, 2 * half, float(form[Z1] - form[Z0])
        distance = nx * (cx - view[EYE_X]) + ny * (cy - view[EYE_Y]) + beyond
    else:
        nx, ny, nz = 0.0, 0.0, 1.0 if part == TOP else -1.0
        ux, uy, wide, tall = c, s, 2 * hx, 2 * hy
        distance = (form[Z1] if part == TOP else form[Z0]) - view[EYE_Z]
    if textures[texture, 3] > 0 and not upright:
        texture = 0
    size_u, size_v = float(textures[texture, 0]), float(textures[texture, 1])
    if textures[texture, 2] > 0:
        size_u, size_v = wide / max(1.0, np.rint(wide / size_u)), tall / max(1.0, np.rint(tall / size_v))
    scale_u, scale_v = TILE / size_u, TILE / size_v
    in_world = kinds[IN_WORLD] > 0
    left = 0.0 if in_world else ux * cx + uy * cy - wide / 2
    _set_axis(look, U_EYE, ux, uy, 0.0, left, scale_u, view)
    if upright:
        top = float(ceiling if in_world else form[Z1])
        _set_axis(look, V_EYE, 0.0, 0.0, -1.0, -top, scale_v, view)
        look[LOW_0], look[LOW_V] = 0.74 + 0.65 * top, -0.65 / scale_v
        look[HIGH_0], look[HIGH_V] = 0.86 + 0.5 * (ceiling - top), 0.5 / scale_v
    else:
        vx, vy = uy, -ux
        back = 0.0 if in_world else vx * cx + vy * cy - tall / 2
        _set_axis(look, V_EYE, vx, vy, 0.0, back, scale_v, view)
        look[LOW_0], look[LOW_V], look[HIGH_0], look[HIGH_V] = 1.0, 0.0, 1.0, 0.0
    texels = math.sqrt(scale_u * scale_v) / view[FOCAL]
    look[DETAIL] = texels * texels / max(abs(distance), 1e-6)
    look[BASE] = texture * TILE * ATLAS_WIDTH
    light = _shade(nx, ny, nz)
    look[LOOK_R], look[LOOK_G], look[LOOK_B] = form[RED] * light, form[GREEN] * light, form[BLUE] * light
    look[READY] = 1.0


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _level(detail):
    """One over the width of a texel of the right level of detail: a power of two from 1 to 1/128.

    Args:
        detail: float32; the square of the finest texels that one pixel covers.
    """
    exponent = (np.float32(detail).view(np.int32) >> np.int32(23)) - np.int32(126)
    level = exponent >> np.int32(1)
    level = level if level > 0 else np.int32(0)
    level = level if level < LEVELS - 1 else np.int32(LEVELS - 1)
    return np.int32((127 - level) << np.int32(23)).view(np.float32)


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _place(u, v, scale):
    """Where in its picture of the atlas a texel lies. float32 throughout: exact, and many at a time."""
    tile, wide = np.float32(TILE), np.float32(ATLAS_WIDTH)
    u = u - np.floor(u * np.float32(1 / TILE)) * tile
    v = v - np.floor(v * np.float32(1 / TILE)) * tile
    return np.floor(v * scale) * wide + (wide - wide * scale) + np.floor(u * scale)


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _flat_run(look, row, depths, ramp, texels, red, green, blue):
    """Fills a run of one flat surface: atlas indices and factors of the three channels."""
    u_i, v_i, u_eye, v_eye = look[U_I], look[V_I], look[U_EYE], look[V_EYE]
    u_row, v_row = look[U_J] * np.float32(row) + look[U_0], look[V_J] * np.float32(row) + look[V_0]
    detail, base = look[DETAIL], np.int32(look[BASE])
    low_0, low_v, high_0, high_v = look[LOW_0], look[LOW_V], look[HIGH_0], look[HIGH_V]
    r, g, b = look[LOOK_R], look[LOOK_G], look[LOOK_B]
    one = np.float32(1)
    for k in range(depths.shape[0]):
        z = one / depths[k]
        u, v = u_eye + z * (u_row + u_i * ramp[k]), v_eye + z * (v_row + v_i * ramp[k])
        low, high = low_0 + low_v * v, high_0 + high_v * v
        light = low if low < high else high
        light = light if light < one else one
        red[k], green[k], blue[k] = r * light, g * light, b * light
        texels[k] = base + np.int32(_place(u, v, _level(detail * z * z * z)))


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _turn_of(y, x):
    """Angle of (x, y) as a part of a full turn, -0.5 to 0.5; good to 1e-3."""
    small, large = min(abs(x), abs(y)), max(abs(x), abs(y))
    q = small / max(large, 1e-12)
    angle = q * (0.1591549 - q * q * (0.0517 - q * q * 0.0185))
    angle = 0.25 - angle if abs(y) > abs(x) else angle
    angle = 0.5 - angle if x < 0 else angle
    return -angle if y < 0 else angle


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _round_run(form, kinds, row, first, view, textures, depths, texels, red, green, blue):
    """As `_flat_run`, for the curved part of a cylinder and for an ellipsoid; pixel by pixel."""
    c, s = float(form[COS]), float(form[SIN])
    hx, hy, hz = float(form[HALF_X]), float(form[HALF_Y]), float(form[Z1] - form[Z0]) / 2
    ch, sh, cp, sp = view[COS_HEADING], view[SIN_HEADING], view[COS_PITCH], view[SIN_PITCH]
    texture, ball = kinds[TEXTURE], kinds[KIND] == SPHERE
    wide, tall = math.pi * (hx + hy), 2 * hz
    size_u, size_v = float(textures[texture, 0]), float(textures[texture, 1])
    times_u, times_v = max(1.0, np.rint(wide / size_u)), tall / size_v
    if textures[texture, 2] > 0:
        times_v = max(1.0, np.rint(times_v))
    spread = max(times_u / wide, times_v / tall) * TILE / view[FOCAL]
    base = texture * TILE * ATLAS_WIDTH
    down = (row - view[CENTRE_J]) / view[FOCAL]
    rf, rz = cp + down * sp, sp - down * cp
    for k in range(depths.shape[0]):
        z = 1.0 / depths[k]
        rr = (first + k - view[CENTRE_I]) / view[FOCAL]
        px = view[EYE_X] - form[X] + z * (rf * ch + rr * sh)
        py = view[EYE_Y] - form[Y] + z * (rf * sh - rr * ch)
        pz = view[EYE_Z] - form[Z0] - hz + z * rz
        lx, ly, lz = (px * c + py * s) / hx, (py * c - px * s) / hy, pz / hz  # on the unit ball or cylinder
        nx, ny, nz = lx / hx, ly / hy, lz / hz if ball else 0.0
        length = 1.0 / math.sqrt(max(nx * nx + ny * ny + nz * nz, 1e-12))
        nx, ny, nz = nx * length, ny * length, nz * length
        light = _shade(nx * c - ny * s, nx * s + ny * c, nz)
        facing = (nx * (px * c + py * s) + ny * (py * c - px * s)) * 0.0 + 1.0
        light *= min(1.0, 0.74 + 0.65 * (pz + hz + form[Z0])) * facing
        red[k], green[k], blue[k] = form[RED] * light, form[GREEN] * light, form[BLUE] * light
        u = (_turn_of(ly, lx) + 0.5) * times_u * TILE
        v = (1.0 - lz) / 2 * times_v * TILE
        q = spread * z
        texels[k] = base + np.int32(_place(np.float32(u), np.float32(v), _level(q * q * 2)))


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _outside_run(row, first, view, texels, red, green, blue):
    """As `_flat_run`, for what is not part of the home: lawn below the horizon, sky above."""
    rise = view[SIN_PITCH] - (row - view[CENTRE_J]) / view[FOCAL] * view[COS_PITCH]
    part = min(1.0, abs(rise) * 2.5)
    for k in range(texels.shape[0]):
        texels[k] = ATLAS_WIDTH - 2  # the coarsest version of the plain picture
        for channel, out in ((0, red), (1, green), (2, blue)):
            far, near = _HORIZON[channel], _SKY[channel] if rise > 0 else _GRASS[channel]
            out[k] = (far + (near - far) * part) / 128.0


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def _mix(texels, atlas, red, green, blue, fetched, out):
    """Fetches the texels of a row and multiplies them; `out` is uint8, (3 * W,)."""
    for k in range(texels.shape[0]):
        fetched[k] = atlas[np.uint64(texels[k])]
    most = np.float32(255)
    for k in range(texels.shape[0]):
        texel = fetched[k]
        r = np.float32(texel & np.int32(255)) * red[k]
        g = np.float32((texel >> np.int32(8)) & np.int32(255)) * green[k]
        b = np.float32(texel >> np.int32(16)) * blue[k]
        r, g, b = r if r < most else most, g if g < most else most, b if b < most else most
        out[3 * k], out[3 * k + 1], out[3 * k + 2] = np.uint8(np.int32(r)), np.uint8(np.int32(g)), np.uint8(np.int32(b))


@numba.njit(nogil=True, cache=True, fastmath=_FAST)
def colour(view, size, forms, looks, ceiling, surface_row, surface_part, drawn, surfaces, depths, ramp, textures, atlas, scratch, out):
    """Colours one view.

    Args:
        view: float64, (10,); see `memenvs.houses.rasteriser.set_view`.
        size: (H, W).
        forms: See `memenvs.houses.scene.Scene`.
        looks: See there.
        ceiling: Height of the ceiling, m.
        surface_row: int32; row of each surface.
        surface_part: int32; part of the shape that it is.
        drawn: Number of the last surface.
        surfaces: int32, (H * W,); what is seen.
        depths: float32, (H * W,); one over its depth.
        ramp: float32, (W,); 0, 1, 2, ...
        textures: See `memenvs.houses.materials.texture_table`.
        atlas: See `memenvs.houses.materials.atlas`.
        scratch: Looks of surfaces, float32, (>= drawn + 1, 18), then five rows (W,): texels, fetched (int32), factors (float32).
        out: uint8, (H, W, 3).
    """
    height, width = size
    seen, texels, fetched, red, green, blue = scratch
    seen[: drawn + 1, READY] = 0.0
    for row in range(height):
        line, far = surfaces[row * width : (row + 1) * width], depths[row * width : (row + 1) * width]
        first = 0
        while first < width:
            number = line[first]
            last = first + 1
            while last < width and line[last] == number:
                last += 1
            t, r, g, b = texels[first:last], red[first:last], green[first:last], blue[first:last]
            if number == 0:
                _outside_run(row, first, view, t, r, g, b)
            else:
                shape, part = surface_row[number], surface_part[number]
                if part == ROUND:
                    _round_run(
                        forms[shape], looks[shape], row, first, view, textures, far[first:last], t, r, g, b
                    )
                else:
                    look = seen[number]
                    if look[READY] == 0.0:
                        _set_look(look, forms[shape], looks[shape], part, ceiling, view, textures)
                    _flat_run(look, row, far[first:last], ramp[first:last], t, r, g, b)
            first = last
        _mix(texels, atlas, red, green, blue, fetched, out[row].reshape(3 * width))
