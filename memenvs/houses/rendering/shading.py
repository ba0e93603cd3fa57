"""Colours of what the rasteriser found: procedural pictures anchored to surfaces, shade by direction, darker corners.

Only visible surfaces get here. A row of pixels is cut into runs of one surface. Runs are done in whole blocks of pixels from left to
right, so what one run writes beyond its end is overwritten by the next.
"""

from __future__ import annotations

import math

import numpy as np

from memenvs.houses.house import SPHERE
from memenvs.houses.rendering.culling import View
from memenvs.houses.rendering.kernels.simd import compiled
from memenvs.houses.rendering.kernels.texels import (  # fmt: skip
    BASE,
    DETAIL,
    HIGH_0,
    HIGH_V,
    LIT_0,
    LIT_X,
    LIT_Y,
    LIT_Z,
    LONG_X,
    LONG_Y,
    LONG_Z,
    LOW_0,
    LOW_V,
    PAINT_ONE,
    READY,
    RUN,
    TIMES_U,
    TIMES_V,
    U_0,
    U_EYE,
    U_I,
    U_J,
    V_0,
    V_EYE,
    V_I,
    V_J,
    W_0,
    W_EYE,
    W_J,
    flat_block,
    level_block,
    mix_block,
    round_block,
)
from memenvs.houses.rendering.kernels.zbuffer import BLOCK, run_length
from memenvs.houses.rendering.materials import ATLAS_WIDTH, LEVELS, TILE
from memenvs.houses.rendering.primitives import (
    BACK_X,
    FRONT_X,
    FRONT_Y,
    NEAR_0,
    NEAR_I,
    NEAR_J,
    PART,
    ROUND,
    ROW,
    TOP,
    Primitives,
    Size,
)
from memenvs.houses.rendering.scene import (
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

#: Room for two rows of pixels: each is as long as the widest picture and some blocks more.
LINE = 4096 + 16 * BLOCK

#: Looks of surfaces (float32, (>= F, LOOK_SIZE)); their paints (int64); places in the atlas (int32) and factors (int64) of two rows,
#: (2 * LINE,); bytes of one block (uint8, (3 * BLOCK,)).
Desk = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]

_LIGHT = (0.36, 0.21, 0.91)  # from where most light comes
_AMBIENT, _DIRECT = 0.80, 0.21
_CEILING_LIGHT = 0.95  # it is lit from below
_FAR_TILE = 256.0 * TILE  # texels; added to coordinates on flat surfaces, so that none is negative
_EVEN = 4 * (ATLAS_WIDTH - 4) + 2  # place of the coarsest texel of the plain picture
_SKY, _HORIZON = (120.0, 170.0, 235.0), (214.0, 230.0, 245.0)
_GRASS = (104.0, 142.0, 72.0)


@compiled
def _shade(nx: float, ny: float, nz: float) -> float:
    """Brightness of a surface with a unit normal in world axes."""
    return _AMBIENT + _DIRECT * (nx * _LIGHT[0] + ny * _LIGHT[1] + nz * _LIGHT[2])


@compiled
def _paint(red: float, green: float, blue: float) -> int:
    """Three factors of texels as one whole number; see `memenvs.houses.rendering.kernels.texels.flat_block`."""
    return int(red * PAINT_ONE) | int(green * PAINT_ONE) << 16 | int(blue * PAINT_ONE) << 32


@compiled
def _set_axis(
    look: np.ndarray, at: int, axis: tuple[float, float, float], offset: float, scale: float, view: View
) -> None:
    """Writes one coordinate, (axis . point - offset) * scale, as a function of pixel and depth into look[at : at + 4]."""
    ch, sh, cp, sp = view.cos_heading, view.sin_heading, view.cos_pitch, view.sin_pitch
    ax, ay, az = axis
    forward, right = ax * ch + ay * sh, ax * sh - ay * ch
    along, upward = forward * cp + az * sp, az * cp - forward * sp
    per_pixel = scale / view.focal
    di, dj = right * per_pixel, -upward * per_pixel
    look[at] = (ax * view.eye_x + ay * view.eye_y + az * view.eye_z - offset) * scale
    look[at + 1], look[at + 2] = di, dj
    look[at + 3] = along * scale - di * view.centre_i - dj * view.centre_j


@compiled
def _texels(texture: int, wide: float, tall: float, textures: np.ndarray) -> tuple[float, float]:
    """Texels per metre across and down a face of so many metres."""
    size_u, size_v = float(textures[texture, 0]), float(textures[texture, 1])
    if textures[texture, 2] > 0 and wide > 0:  # a whole number of times; a floor has no width of its own
        times_u, times_v = max(1.0, math.floor(wide / size_u + 0.5)), max(1.0, math.floor(tall / size_v + 0.5))
        return TILE * times_u / wide, TILE * times_v / tall
    return TILE / size_u, TILE / size_v


@compiled
def _finish_look(look: np.ndarray, texture: int, scale: tuple[float, float], distance: float, view: View) -> None:
    """What upright and level surfaces have in common."""
    look[U_EYE] += _FAR_TILE
    look[V_EYE] += _FAR_TILE
    look[DETAIL] = scale[0] * scale[1] / (view.focal * view.focal * max(abs(distance), 1e-6))
    look[BASE] = texture * TILE * ATLAS_WIDTH
    look[READY] = 1.0


@compiled
def _set_upright_look(
    look: np.ndarray,
    form: np.ndarray,
    kinds: np.ndarray,
    part: int,
    ceiling: float,
    view: View,
    textures: np.ndarray,
) -> int:
    """Fills the look of an upright face of a box for one view; returns its paint."""
    sign = 1.0 if part in (FRONT_X, FRONT_Y) else -1.0
    if part in (FRONT_X, BACK_X):
        nx, ny, half, beyond = sign * form[COS], sign * form[SIN], form[HALF_Y], form[HALF_X]
    else:
        nx, ny, half, beyond = -sign * form[SIN], sign * form[COS], form[HALF_X], form[HALF_Y]
    wide, tall = 2.0 * half, float(form[Z1] - form[Z0])
    texture = kinds[TEXTURE] if tall <= wide else int(textures[kinds[TEXTURE], 4])
    scale_u, scale_v = _texels(texture, wide, tall, textures)
    in_world = kinds[IN_WORLD] > 0
    left = 0.0 if in_world else ny * -form[X] + nx * form[Y] - half
    top = float(ceiling if in_world else form[Z1])
    _set_axis(look, U_EYE, (-ny, nx, 0.0), left, scale_u, view)
    _set_axis(look, V_EYE, (0.0, 0.0, -1.0), -top, scale_v, view)
    per_texel = 1.0 / scale_v  # m
    look[LOW_V], look[HIGH_V] = -0.65 * per_texel, 0.5 * per_texel
    look[LOW_0] = 0.74 + 0.65 * top - _FAR_TILE * look[LOW_V]
    look[HIGH_0] = 0.86 + 0.5 * (ceiling - top) - _FAR_TILE * look[HIGH_V]
    distance = nx * (form[X] - view.eye_x) + ny * (form[Y] - view.eye_y) + beyond
    _finish_look(look, texture, (scale_u, scale_v), distance, view)
    light = _shade(nx, ny, 0.0)
    return _paint(form[RED] * light, form[GREEN] * light, form[BLUE] * light)


@compiled
def _set_level_look(
    look: np.ndarray, form: np.ndarray, kinds: np.ndarray, part: int, view: View, textures: np.ndarray
) -> int:
    """Fills the look of a top, a bottom, a floor or a ceiling for one view; returns its paint."""
    c, s, hx, hy = float(form[COS]), float(form[SIN]), float(form[HALF_X]), float(form[HALF_Y])
    texture = kinds[TEXTURE] if hy <= hx else int(textures[kinds[TEXTURE], 4])
    if textures[texture, 3] > 0:
        texture = 0
    scale_u, scale_v = _texels(texture, 2 * hx, 2 * hy, textures)
    in_world = kinds[IN_WORLD] > 0
    left = 0.0 if in_world else c * form[X] + s * form[Y] - hx
    back = 0.0 if in_world else s * form[X] - c * form[Y] - hy
    _set_axis(look, U_EYE, (c, s, 0.0), left, scale_u, view)
    _set_axis(look, V_EYE, (s, -c, 0.0), back, scale_v, view)
    distance = (form[Z1] if part == TOP else form[Z0]) - view.eye_z
    _finish_look(look, texture, (scale_u, scale_v), distance, view)
    light = _CEILING_LIGHT if kinds[KIND] == CEILING else _shade(0.0, 0.0, 1.0 if part == TOP else -1.0)
    return _paint(form[RED] * light, form[GREEN] * light, form[BLUE] * light)


@compiled
def _upright_run(
    look: np.ndarray, near: tuple[float, float, float], paint: int, row: int, first: int, last: int, places: np.ndarray, factors: np.ndarray,
    line: int,
) -> None:  # fmt: skip
    """Fills `places` and `factors`, from `line` on, for a run of pixels of an upright face, and up to a block more behind it."""
    base, step = near[0] + near[2] * row, np.float32(near[1])
    for column in range(first, last, RUN):
        start = (np.float32(base + near[1] * column), step)
        at = np.uint64(line + column)
        flat_block(look, start, np.float32(row), np.float32(column), paint, places, factors, at)


@compiled
def _level_run(
    look: np.ndarray, near: tuple[float, float, float], paint: int, row: int, first: int, last: int, places: np.ndarray, factors: np.ndarray,
    line: int,
) -> None:  # fmt: skip
    """As `_upright_run`, for a floor, a ceiling or another level surface: all of it in one row is equally deep."""
    down, start, wide = np.float32(row), np.float32(first), np.float32(RUN)
    z = np.float32(1.0 / (near[0] + near[2] * row))
    bits = int(np.float32(look[DETAIL] * z * z * z).view(np.int32))
    level = min(max(((bits >> 23) - 126) >> 1, 0), LEVELS - 1)
    scale, size = np.float32(1.0 / (1 << level)), np.int32(TILE >> level)
    u = (look[U_EYE] + z * (look[U_I] * start + look[U_J] * down + look[U_0])) * scale
    v = (look[V_EYE] + z * (look[V_I] * start + look[V_J] * down + look[V_0])) * scale
    u_i, v_i, base = z * look[U_I] * scale, z * look[V_I] * scale, np.int32(look[BASE])
    for column in range(first, last, RUN):
        level_block((u, u_i), (v, v_i), size, base, paint, places, factors, np.uint64(line + column))
        u, v = u + u_i * wide, v + v_i * wide


@compiled
def _set_round_look(look: np.ndarray, form: np.ndarray, kinds: np.ndarray, view: View, textures: np.ndarray) -> int:
    """Fills the look of the curved part of a cylinder or of an ellipsoid for one view; returns its paint.

    The three coordinates are those in which it is the unit cylinder or ball, so a normal is (x / hx, y / hy, z / hz), normalised.
    """
    c, s, cx, cy = float(form[COS]), float(form[SIN]), float(form[X]), float(form[Y])
    hx, hy, hz = float(form[HALF_X]), float(form[HALF_Y]), float(form[Z1] - form[Z0]) / 2
    middle = float(form[Z0]) + hz
    _set_axis(look, U_EYE, (c, s, 0.0), c * cx + s * cy, 1 / hx, view)
    _set_axis(look, V_EYE, (-s, c, 0.0), c * cy - s * cx, 1 / hy, view)
    look[W_EYE] = (view.eye_z - middle) / hz
    look[W_J] = -view.cos_pitch / view.focal / hz
    look[W_0] = view.sin_pitch / hz - look[W_J] * view.centre_j
    ball = 1.0 if kinds[KIND] == SPHERE else 0.0
    look[LIT_0] = _AMBIENT
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
    spread = max(times_u / wide, times_v / tall) * TILE / view.focal
    look[TIMES_U], look[TIMES_V], look[DETAIL] = times_u * TILE, times_v * TILE, 2 * spread * spread
    look[BASE] = texture * TILE * ATLAS_WIDTH
    look[READY] = 1.0
    return _paint(form[RED], form[GREEN], form[BLUE])


@compiled
def _round_run(
    look: np.ndarray, paint: int, row: int, first: int, last: int, keys: np.ndarray, mask: np.uint32, places: np.ndarray, factors: np.ndarray,
    line: int,
) -> None:  # fmt: skip
    """As `_upright_run`, for the curved part of a cylinder and for an ellipsoid; `keys` uint32, (>= W + BLOCK,), of the row."""
    for column in range(first, last, RUN):
        round_block(
            look, keys, np.uint64(column), mask, np.float32(row), np.float32(column), paint, places, factors, np.uint64(line + column)
        )  # fmt: skip


@compiled
def _outside_run(
    row: int, first: int, last: int, view: View, places: np.ndarray, factors: np.ndarray, line: int
) -> None:
    """As `_upright_run`, for what is not part of the home: lawn below the horizon, sky above."""
    rise = view.sin_pitch - (row - view.centre_j) / view.focal * view.cos_pitch
    part = min(1.0, abs(rise) * 2.5)
    far, near = _HORIZON, _SKY if rise > 0 else _GRASS
    r, g, b = far[0] + (near[0] - far[0]) * part, far[1] + (near[1] - far[1]) * part, far[2] + (near[2] - far[2]) * part
    factors[line + first : line + last] = _paint(r / 128, g / 128, b / 128)
    places[line + first : line + last] = _EVEN


@compiled
def _mix(
    places: np.ndarray, factors: np.ndarray, line: int, atlas: np.ndarray, rest: np.ndarray, out: np.ndarray
) -> None:
    """Writes the colours of a row as bytes; `out` uint8, (3 * W,), `rest` uint8, (3 * BLOCK,), is room for the last block."""
    width = out.shape[0] // 3
    whole = width - width % BLOCK
    for first in range(0, whole, BLOCK):
        mix_block(places, factors, np.uint64(line + first), atlas, out, np.uint64(3 * first))
    if whole < width:
        mix_block(places, factors, np.uint64(line + whole), atlas, rest, np.uint64(0))
        for k in range(3 * (width - whole)):
            out[3 * whole + k] = rest[k]


@compiled
def _set_look(
    number: int, view: View, scene: tuple, surfaces: Primitives, textures: np.ndarray, look: np.ndarray
) -> int:
    """Fills the look of a surface for one view; returns its paint."""
    shape, part = surfaces[0][number, ROW], surfaces[0][number, PART]
    form, kinds = scene[0][shape], scene[1][shape]
    if part == ROUND:
        return _set_round_look(look, form, kinds, view, textures)
    if part < TOP:
        return _set_upright_look(look, form, kinds, part, scene[6], view, textures)
    return _set_level_look(look, form, kinds, part, view, textures)


@compiled
def colour(
    view: View, size: Size, scene: tuple, surfaces: Primitives, keys: np.ndarray, mask: np.uint32, textures: np.ndarray, atlas: np.ndarray,
    desk: Desk, out: np.ndarray,
) -> None:  # fmt: skip
    """Colours one view.

    Args:
        view: From where.
        size: Of the picture.
        scene: As in `memenvs.houses.rendering.rasteriser.set_up`.
        surfaces: As `set_up` fills them.
        keys: uint32, (>= H * stride + BLOCK,); what is seen, as `memenvs.houses.rendering.rasteriser.fill` fills them.
        mask: As there.
        textures: See `memenvs.houses.rendering.materials.texture_table`.
        atlas: See `memenvs.houses.rendering.materials.atlas`.
        desk: See `Desk`; READY of the looks must be 0.
        out: uint8, (H, W, 3).
    """
    height, width, stride = size
    looks, paints, places, factors, rest = desk
    wholes, reals = surfaces
    for row in range(height):
        held, line = keys[row * stride : row * stride + width + BLOCK], row % 2 * LINE
        first = 0
        while first < width:
            number = held[first] & mask
            last, same = first, BLOCK
            while same == BLOCK and last < width:
                same = run_length(held, np.uint64(last), number, mask)
                last += same
            last = min(last, width)
            if number == 0:
                _outside_run(row, first, last, view, places, factors, line)
            else:
                look = looks[number]
                if look[READY] == 0.0:
                    paints[number] = _set_look(number, view, scene, surfaces, textures, look)
                part = wholes[number, PART]
                if part == ROUND:
                    _round_run(look, paints[number], row, first, last, held, mask, places, factors, line)
                else:
                    near = (reals[number, NEAR_0], reals[number, NEAR_I], reals[number, NEAR_J])
                    if part < TOP:
                        _upright_run(look, near, paints[number], row, first, last, places, factors, line)
                    else:
                        _level_run(look, near, paints[number], row, first, last, places, factors, line)
            first = last
        if row > 0:  # a row later: what was just written cannot be read back as quickly
            _mix(places, factors, (row - 1) % 2 * LINE, atlas, rest, out[row - 1].reshape(3 * width))
    _mix(places, factors, (height - 1) % 2 * LINE, atlas, rest, out[height - 1].reshape(3 * width))
