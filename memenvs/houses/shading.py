"""Colours of what the rasteriser found: procedural pictures anchored to surfaces, shade by direction, darker corners.

Only visible surfaces get here. A row of pixels is cut into runs of one surface. Runs are done in whole blocks of pixels from left to
right, so what one run writes beyond its end is overwritten by the next.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from memenvs.houses.blocks import BLOCK, PAINT_ONE, any_block, flat_block, mix_block, run_length
from memenvs.houses.house import SPHERE
from memenvs.houses.materials import ATLAS_WIDTH, TILE
from memenvs.houses.rasteriser import (
    BACK_X,
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
    set_plane,
)
from memenvs.houses.scene import (
    BLUE,
    CEILING,
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
U_EYE, U_I, U_J, U_0, V_EYE, V_I, V_J, V_0, DETAIL, BASE, LOW_0, LOW_V, HIGH_0, HIGH_V, NEAR_I, NEAR_J, NEAR_0, READY = range(18)
LOOK_SIZE = 32
# Curved surfaces use some columns otherwise and some more.
W_EYE, LIT_X, LIT_Y, LIT_Z, LONG_X, LONG_Y, LONG_Z, TIMES_U, TIMES_V = 18, 22, 23, 24, 25, 26, 27, 28, 29


#: Length of one row of working memory: the widest picture and some blocks more.
LINE = 4096 + 16 * BLOCK

_LIGHT = (0.36, 0.21, 0.91)  # from where most light comes
_AMBIENT, _DIRECT = 0.80, 0.21
_CEILING_LIGHT = 0.95  # it is lit from below
_FAR_TILE = 256.0 * TILE  # texels; added to coordinates on flat surfaces, so that none is negative
_SKY, _HORIZON = (120.0, 170.0, 235.0), (214.0, 230.0, 245.0)
_GRASS = (104.0, 142.0, 72.0)

_FAST = {"contract", "reassoc", "nsz", "arcp"}


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _shade(nx, ny, nz):
    """Brightness of a surface with a unit normal in world axes."""
    return _AMBIENT + _DIRECT * (nx * _LIGHT[0] + ny * _LIGHT[1] + nz * _LIGHT[2])


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _paint(red, green, blue):
    """Three factors of texels as one whole number; see `memenvs.houses.blocks.flat_block`."""
    return np.int64(red * PAINT_ONE) | np.int64(green * PAINT_ONE) << 16 | np.int64(blue * PAINT_ONE) << 32


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _set_axis(look, at, ax, ay, az, offset, scale, view):
    """Writes one texel coordinate, (a . point - offset) * scale, as a function of pixel and depth into look[at : at + 4]."""
    ch, sh, cp, sp = view[COS_HEADING], view[SIN_HEADING], view[COS_PITCH], view[SIN_PITCH]
    forward, right = ax * ch + ay * sh, ax * sh - ay * ch
    along, upward = forward * cp + az * sp, az * cp - forward * sp
    di, dj = right / view[FOCAL] * scale, -upward / view[FOCAL] * scale
    look[at] = (ax * view[EYE_X] + ay * view[EYE_Y] + az * view[EYE_Z] - offset) * scale
    look[at + 1], look[at + 2] = di, dj
    look[at + 3] = along * scale - di * view[CENTRE_I] - dj * view[CENTRE_J]


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _set_look(look, form, kinds, part, ceiling, view, textures, plane):
    """Fills the look of a flat surface of a box, a cylinder, a floor or a ceiling for one view; returns its paint."""
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
    if tall > wide:
        texture = int(textures[texture, 4])
    size_u, size_v = float(textures[texture, 0]), float(textures[texture, 1])
    if textures[texture, 2] > 0:
        size_u = wide / max(1.0, math.floor(wide / size_u + 0.5))
        size_v = tall / max(1.0, math.floor(tall / size_v + 0.5))
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
    look[U_EYE] += _FAR_TILE
    look[V_EYE] += _FAR_TILE
    look[LOW_0] -= _FAR_TILE * look[LOW_V]
    look[HIGH_0] -= _FAR_TILE * look[HIGH_V]
    texels = math.sqrt(scale_u * scale_v) / view[FOCAL]
    look[DETAIL] = texels * texels / max(abs(distance), 1e-6)
    look[BASE] = texture * TILE * ATLAS_WIDTH
    light = _CEILING_LIGHT if kinds[KIND] == CEILING else _shade(nx, ny, nz)
    forward, right = nx * view[COS_HEADING] + ny * view[SIN_HEADING], nx * view[SIN_HEADING] - ny * view[COS_HEADING]
    set_plane(forward, right, nz, distance, view, plane)
    look[NEAR_0], look[NEAR_I], look[NEAR_J] = plane[0], plane[1], plane[2]
    look[READY] = 1.0
    return _paint(form[RED] * light, form[GREEN] * light, form[BLUE] * light)


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _flat_run(look, paint, row, first, last, places, factors, line):
    """Fills `places` and `factors`, from `line` on, for a run of pixels of one flat surface, and up to a block more behind it."""
    down, start, wide = np.float32(row), np.float32(first), np.float32(BLOCK)
    iz = look[NEAR_I] * start + look[NEAR_J] * down + look[NEAR_0]
    u = look[U_I] * start + look[U_J] * down + look[U_0]
    v = look[V_I] * start + look[V_J] * down + look[V_0]
    iz_i, u_i, v_i = look[NEAR_I], look[U_I], look[V_I]
    eye, light = (look[U_EYE], look[V_EYE]), (look[LOW_0], look[LOW_V], look[HIGH_0], look[HIGH_V])
    detail, base = look[DETAIL], np.int32(look[BASE])
    at = np.uint64(line + first)
    for _ in range(first, last, BLOCK):
        flat_block((iz, iz_i, u, u_i, v, v_i), eye, light, detail, base, paint, places, factors, at)
        iz, u, v = iz + iz_i * wide, u + u_i * wide, v + v_i * wide
        at += np.uint64(BLOCK)


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _turn_of(y, x):
    """Angle of the float32 (x, y) as a part of a full turn, -0.5 to 0.5; good to 1e-3."""
    steep = abs(y) > abs(x)
    q = abs(x) / abs(y) if steep else abs(y) / max(abs(x), np.float32(1e-12))
    angle = q * (np.float32(0.15915) - q * q * (np.float32(0.0517) - q * q * np.float32(0.0185)))
    angle = np.float32(0.25) - angle if steep else angle
    angle = np.float32(0.5) - angle if x < 0 else angle
    return -angle if y < 0 else angle


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _set_round_look(look, form, kinds, view, textures):
    """Fills the look of the curved part of a cylinder or of an ellipsoid for one view; returns its paint.

    The three coordinates are those in which it is the unit cylinder or ball, so a normal is (x / hx, y / hy, z / hz), normalised.
    """
    c, s, cx, cy = float(form[COS]), float(form[SIN]), float(form[X]), float(form[Y])
    hx, hy, hz = float(form[HALF_X]), float(form[HALF_Y]), float(form[Z1] - form[Z0]) / 2
    middle = float(form[Z0]) + hz
    _set_axis(look, U_EYE, c, s, 0.0, c * cx + s * cy, 1 / hx, view)
    _set_axis(look, V_EYE, -s, c, 0.0, c * cy - s * cx, 1 / hy, view)
    _set_axis(look, W_EYE, 0.0, 0.0, 1.0, middle, 1 / hz, view)
    ball = 1.0 if kinds[KIND] == SPHERE else 0.0
    look[LIT_X] = _DIRECT * (c * _LIGHT[0] + s * _LIGHT[1]) / hx
    look[LIT_Y] = _DIRECT * (c * _LIGHT[1] - s * _LIGHT[0]) / hy
    look[LIT_Z] = _DIRECT * _LIGHT[2] / hz * ball
    look[LONG_X], look[LONG_Y], look[LONG_Z] = 1 / (hx * hx), 1 / (hy * hy), ball / (hz * hz)
    look[LOW_0], look[LOW_V] = 0.74 + 0.65 * middle, 0.65 * hz
    texture = kinds[TEXTURE]
    wide, tall = math.pi * (hx + hy), 2 * hz
    times_u = max(1.0, math.floor(wide / textures[texture, 0] + 0.5))
    times_v = tall / textures[texture, 1]
    if textures[texture, 2] > 0:
        times_v = max(1.0, math.floor(times_v + 0.5))
    spread = max(times_u / wide, times_v / tall) * TILE / view[FOCAL]
    look[TIMES_U], look[TIMES_V], look[DETAIL] = times_u * TILE, times_v * TILE, 2 * spread * spread
    look[BASE] = texture * TILE * ATLAS_WIDTH
    look[READY] = 1.0
    return _paint(form[RED], form[GREEN], form[BLUE])


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _round_run(look, paint, row, first, last, keys, block, places, factors, line):
    """As `_flat_run`, for the curved part of a cylinder and for an ellipsoid; `keys` int64, (>= W + BLOCK,), of the row."""
    down = np.float32(row)
    x_row, y_row = look[U_J] * down + look[U_0], look[V_J] * down + look[V_0]
    z_row = look[W_EYE + 2] * down + look[W_EYE + 3]
    one, half = np.float32(1), np.float32(0.5)
    base = np.int32(look[BASE])
    for start in range(first, last, BLOCK):
        for k in range(BLOCK):
            far, column = one / np.int32(keys[start + k] >> 32).view(np.float32), np.float32(start + k)
            x = look[U_EYE] + far * (x_row + look[U_I] * column)
            y = look[V_EYE] + far * (y_row + look[V_I] * column)
            z = look[W_EYE] + far * z_row
            length = math.sqrt(x * x * look[LONG_X] + y * y * look[LONG_Y] + z * z * look[LONG_Z])
            light = np.float32(_AMBIENT) + (x * look[LIT_X] + y * look[LIT_Y] + z * look[LIT_Z]) / length
            low = look[LOW_0] + look[LOW_V] * z
            low = low if low < one else one
            block[k] = (_turn_of(y, x) + half) * look[TIMES_U]
            block[k + BLOCK] = (one - z) * half * look[TIMES_V]
            block[k + 2 * BLOCK] = look[DETAIL] * far * far
            light *= low if low > half else half
            block[k + 3 * BLOCK] = light if light < one else one
        any_block(block, base, paint, places, factors, np.uint64(line + start))


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _outside_run(row, first, last, view, places, factors, line):
    """As `_flat_run`, for what is not part of the home: lawn below the horizon, sky above."""
    rise = view[SIN_PITCH] - (row - view[CENTRE_J]) / view[FOCAL] * view[COS_PITCH]
    part = min(1.0, abs(rise) * 2.5)
    far, near = _HORIZON, _SKY if rise > 0 else _GRASS
    r, g, b = far[0] + (near[0] - far[0]) * part, far[1] + (near[1] - far[1]) * part, far[2] + (near[2] - far[2]) * part
    factors[line + first : line + last] = _paint(r / 128, g / 128, b / 128)
    places[line + first : line + last] = ATLAS_WIDTH - 2  # the coarsest version of the plain picture


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def _mix(places, factors, line, atlas, rest, out):
    """Writes the colours of a row as bytes; `out` uint8, (3 * W,), `rest` uint8, (3 * BLOCK,), is room for the last block."""
    width = out.shape[0] // 3
    whole = width - width % BLOCK
    for first in range(0, whole, BLOCK):
        mix_block(places, factors, np.uint64(line + first), atlas, out, np.uint64(3 * first))
    if whole < width:
        mix_block(places, factors, np.uint64(line + whole), atlas, rest, np.uint64(0))
        for k in range(3 * (width - whole)):
            out[3 * whole + k] = rest[k]


@numba.njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
def colour(view, size, forms, looks, ceiling, surface_row, surface_part, drawn, keys, textures, atlas, scratch, out):
    """Colours one view.

    Args:
        view: float64, (10,); see `memenvs.houses.rasteriser.set_view`.
        size: H, W and the stride of the keys.
        forms: See `memenvs.houses.scene.Scene`.
        looks: See there.
        ceiling: Height of the ceiling, m.
        surface_row: int32; row of each surface.
        surface_part: int32; part of the shape that it is.
        drawn: Number of the last surface.
        keys: int64, (H * stride,); what is seen, see `memenvs.houses.rasteriser`.
        textures: See `memenvs.houses.materials.texture_table`.
        atlas: See `memenvs.houses.materials.atlas`.
        scratch: Looks of surfaces, float32, (>= drawn + 1, LOOK_SIZE); their paints, int64; places in the atlas, int32, and factors,
            int64, of two rows, (2 * LINE,); numbers of one block, float32, (4 * BLOCK,); bytes, uint8, (3 * BLOCK,); a plane, float64, (3,).
        out: uint8, (H, W, 3).
    """
    height, width, stride = size
    seen, paints, places, factors, block, rest, plane = scratch
    seen[: drawn + 1, READY] = 0.0
    for row in range(height):
        held = keys[row * stride : row * stride + width + BLOCK]
        line = row % 2 * LINE
        first = 0
        while first < width:
            number = np.int32(held[first])
            last = first
            same = BLOCK
            while same == BLOCK and last < width:
                same = run_length(held, np.uint64(last), number)
                last += same
            last = min(last, width)
            if number == 0:
                _outside_run(row, first, last, view, places, factors, line)
            else:
                shape, part, look = surface_row[number], surface_part[number], seen[number]
                if part == ROUND:
                    if look[READY] == 0.0:
                        paints[number] = _set_round_look(look, forms[shape], looks[shape], view, textures)
                    _round_run(look, paints[number], row, first, last, held, block, places, factors, line)
                else:
                    if look[READY] == 0.0:
                        paints[number] = _set_look(
                            look, forms[shape], looks[shape], part, ceiling, view, textures, plane
                        )
                    _flat_run(look, paints[number], row, first, last, places, factors, line)
            first = last
        if row > 0:  # a row later: what was just written cannot be read back as quickly
            _mix(places, factors, LINE - line, atlas, rest, out[row - 1].reshape(3 * width))
    _mix(places, factors, (height - 1) % 2 * LINE, atlas, rest, out[height - 1].reshape(3 * width))
