"""Shading coefficients: the few numbers from which the pixels of one primitive are shaded.

In: a primitive, the view, and the shape's row of the scene. Out: the fields that
`memenvs.houses.rendering.kernels.texels` reads (texture coordinates as functions of pixel and depth, mipmap footprint,
light) and a packed tint, the base colour times the light that all of the primitive gets.

Everything here is compiled.
"""

from __future__ import annotations

import math

import numpy as np

from memenvs.houses.house import ELLIPSOID
from memenvs.houses.rendering.culling import View
from memenvs.houses.rendering.kernels.simd import compiled
from memenvs.houses.rendering.kernels.texels import (
    ATLAS_START,
    CEILING_0,
    CEILING_V,
    FLOOR_0,
    FLOOR_V,
    FOOTPRINT,
    IS_READY,
    LIGHT_0,
    LIGHT_X,
    LIGHT_Y,
    LIGHT_Z,
    NORMAL_X,
    NORMAL_Y,
    NORMAL_Z,
    REPEAT_U,
    REPEAT_V,
    TINT_ONE,
    U_EYE,
    V_EYE,
    W_0,
    W_EYE,
    W_J,
)
from memenvs.houses.rendering.materials import (
    ATLAS_WIDTH,
    IS_FITTED,
    SIZE_U,
    SIZE_V,
    TALL_VARIANT,
    TEXTURE_SIZE,
    VERTICAL_ONLY,
)
from memenvs.houses.rendering.primitives import (
    BACK_X,
    CURVED,
    FACE,
    FRONT_X,
    FRONT_Y,
    SCENE_ROW,
    TOP,
    Primitives,
)
from memenvs.houses.rendering.scene import (
    BLUE,
    CEILING,
    COS,
    GREEN,
    HALF_X,
    HALF_Y,
    KIND,
    RED,
    SIN,
    TEXTURE,
    WORLD_ANCHORED,
    Z0,
    Z1,
    SceneArrays,
    X,
    Y,
)

_LIGHT_DIRECTION = (0.36, 0.21, 0.91)  # unit vector to where most light comes from
_AMBIENT, _DIRECT = 0.80, 0.21  # light from all sides, and from `_LIGHT_DIRECTION` on a surface that faces it
_CEILING_LIGHT = 0.95  # a ceiling is lit from below
_POSITIVE_SHIFT = 256.0 * TEXTURE_SIZE  # texels; added to coordinates on flat faces, so that none is negative


@compiled
def set_coefficients(
    primitive_id: int, view: View, scene: SceneArrays, primitives: Primitives, textures: np.ndarray, fields: np.ndarray
) -> int:
    """Fill the coefficients of a primitive.

    Args:
        primitive_id: Its id.
        view: The view.
        scene: The scene.
        primitives: Filled by `memenvs.houses.rendering.primitive_setup.set_up_primitives`.
        textures: float32, (textures, 5); see `memenvs.houses.rendering.materials.texture_table`.
        fields: float32, (SHADING_FIELDS,); filled.

    Returns:
        The tint, see `pack_tint`.
    """
    row, face = primitives.int_fields[primitive_id, SCENE_ROW], primitives.int_fields[primitive_id, FACE]
    shape, attributes = scene.geometry[row], scene.attributes[row]
    if face == CURVED:
        return _set_curved_coefficients(fields, shape, attributes, view, textures)
    if face < TOP:
        return _set_vertical_coefficients(fields, shape, attributes, face, scene.ceiling, view, textures)
    return _set_horizontal_coefficients(fields, shape, attributes, face, view, textures)


@compiled
def _set_vertical_coefficients(
    fields: np.ndarray,
    shape: np.ndarray,
    attributes: np.ndarray,
    face: int,
    ceiling: float,
    view: View,
    textures: np.ndarray,
) -> int:
    """Fill the coefficients of a vertical face of a box; `ceiling` is its height in m."""
    sign = 1.0 if face in (FRONT_X, FRONT_Y) else -1.0
    if face in (FRONT_X, BACK_X):
        nx, ny, half, offset = sign * shape[COS], sign * shape[SIN], shape[HALF_Y], shape[HALF_X]
    else:
        nx, ny, half, offset = -sign * shape[SIN], sign * shape[COS], shape[HALF_X], shape[HALF_Y]
    width, height = 2.0 * half, float(shape[Z1] - shape[Z0])
    texture = attributes[TEXTURE] if height <= width else int(textures[attributes[TEXTURE], TALL_VARIANT])
    scale_u, scale_v = _texels_per_metre(texture, width, height, textures)
    # u runs along the face to the right (-ny, nx), v runs down.
    is_anchored = attributes[WORLD_ANCHORED] > 0
    left = 0.0 if is_anchored else ny * -shape[X] + nx * shape[Y] - half
    top = float(ceiling if is_anchored else shape[Z1])
    _set_axis(
        fields, np.int64(U_EYE), (np.float64(-ny), np.float64(nx), 0.0), np.float64(left), np.float64(scale_u), view
    )
    _set_axis(fields, np.int64(V_EYE), (0.0, 0.0, -1.0), np.float64(-top), np.float64(scale_v), view)
    # The light falls off near the floor (0.74 there) and near the ceiling (0.86 there), linearly in the height.
    per_texel = 1.0 / scale_v  # m
    fields[FLOOR_V], fields[CEILING_V] = -0.65 * per_texel, 0.5 * per_texel
    fields[FLOOR_0] = 0.74 + 0.65 * top - _POSITIVE_SHIFT * fields[FLOOR_V]
    fields[CEILING_0] = 0.86 + 0.5 * (ceiling - top) - _POSITIVE_SHIFT * fields[CEILING_V]
    distance = nx * (shape[X] - view.eye_x) + ny * (shape[Y] - view.eye_y) + offset
    _finish_flat(fields, texture, (scale_u, scale_v), distance, view)
    light = _directional_light(nx, ny, 0.0)
    return pack_tint(shape[RED] * light, shape[GREEN] * light, shape[BLUE] * light)


@compiled
def _set_horizontal_coefficients(
    fields: np.ndarray, shape: np.ndarray, attributes: np.ndarray, face: int, view: View, textures: np.ndarray
) -> int:
    """Fill the coefficients of a top, a bottom, a floor or a ceiling."""
    c, s, half_x, half_y = float(shape[COS]), float(shape[SIN]), float(shape[HALF_X]), float(shape[HALF_Y])
    texture = attributes[TEXTURE] if half_y <= half_x else int(textures[attributes[TEXTURE], TALL_VARIANT])
    if textures[texture, VERTICAL_ONLY] > 0:
        texture = 0  # "plain"
    scale_u, scale_v = _texels_per_metre(texture, 2 * half_x, 2 * half_y, textures)
    is_anchored = attributes[WORLD_ANCHORED] > 0
    left = 0.0 if is_anchored else c * shape[X] + s * shape[Y] - half_x
    back = 0.0 if is_anchored else s * shape[X] - c * shape[Y] - half_y
    _set_axis(fields, np.int64(U_EYE), (np.float64(c), np.float64(s), 0.0), np.float64(left), np.float64(scale_u), view)
    _set_axis(
        fields, np.int64(V_EYE), (np.float64(s), np.float64(-c), 0.0), np.float64(back), np.float64(scale_v), view
    )
    distance = (shape[Z1] if face == TOP else shape[Z0]) - view.eye_z
    _finish_flat(fields, texture, (scale_u, scale_v), distance, view)
    is_ceiling = attributes[KIND] == CEILING
    light = _CEILING_LIGHT if is_ceiling else _directional_light(0.0, 0.0, 1.0 if face == TOP else -1.0)
    return pack_tint(shape[RED] * light, shape[GREEN] * light, shape[BLUE] * light)


@compiled
def _set_curved_coefficients(
    fields: np.ndarray, shape: np.ndarray, attributes: np.ndarray, view: View, textures: np.ndarray
) -> int:
    """Fill the coefficients of the curved part of a cylinder or of an ellipsoid.

    The coordinates u, v, w are those in which the solid is the unit cylinder or ball, so its normal is
    (u / half_x, v / half_y, w / half_z), normalised. Light along the normal is linear in u, v and w.
    """
    c, s, centre_x, centre_y = float(shape[COS]), float(shape[SIN]), float(shape[X]), float(shape[Y])
    hx, hy, hz = float(shape[HALF_X]), float(shape[HALF_Y]), float(shape[Z1] - shape[Z0]) / 2
    centre_z = float(shape[Z0]) + hz
    _set_axis(
        fields,
        np.int64(U_EYE),
        (np.float64(c), np.float64(s), 0.0),
        np.float64(c * centre_x + s * centre_y),
        np.float64(1 / hx),
        view,
    )
    _set_axis(
        fields,
        np.int64(V_EYE),
        (np.float64(-s), np.float64(c), 0.0),
        np.float64(c * centre_y - s * centre_x),
        np.float64(1 / hy),
        view,
    )
    fields[W_EYE] = (view.eye_z - centre_z) / hz
    fields[W_J] = -view.cos_pitch / view.focal / hz
    fields[W_0] = view.sin_pitch / hz - fields[W_J] * view.centre_j
    w_weight = 1.0 if attributes[KIND] == ELLIPSOID else 0.0  # the normal of a cylinder's side has no component along w
    fields[LIGHT_0] = _AMBIENT
    fields[LIGHT_X] = _DIRECT * (c * _LIGHT_DIRECTION[0] + s * _LIGHT_DIRECTION[1]) / hx
    fields[LIGHT_Y] = _DIRECT * (c * _LIGHT_DIRECTION[1] - s * _LIGHT_DIRECTION[0]) / hy
    fields[LIGHT_Z] = _DIRECT * _LIGHT_DIRECTION[2] / hz * w_weight
    fields[NORMAL_X], fields[NORMAL_Y], fields[NORMAL_Z] = 1 / (hx * hx), 1 / (hy * hy), w_weight / (hz * hz)
    fields[FLOOR_0], fields[FLOOR_V] = 0.74 + 0.65 * centre_z, 0.65 * hz
    # The texture goes around a whole number of times.
    texture = attributes[TEXTURE]
    width, height = math.pi * (hx + hy), 2 * hz
    repeat_u = max(1.0, math.floor(width / textures[texture, SIZE_U] + 0.5))
    repeat_v = height / textures[texture, SIZE_V]
    if textures[texture, IS_FITTED] > 0:
        repeat_v = max(1.0, math.floor(repeat_v + 0.5))
    texels_per_pixel = max(repeat_u / width, repeat_v / height) * TEXTURE_SIZE / view.focal  # at a depth of 1 m
    fields[REPEAT_U], fields[REPEAT_V] = repeat_u * TEXTURE_SIZE, repeat_v * TEXTURE_SIZE
    # Twice, as a mean over the slants of the surface: half of a ball has twice the area of its outline.
    fields[FOOTPRINT] = 2 * texels_per_pixel * texels_per_pixel
    fields[ATLAS_START] = texture * TEXTURE_SIZE * ATLAS_WIDTH
    fields[IS_READY] = 1.0
    return pack_tint(shape[RED], shape[GREEN], shape[BLUE])


@compiled
def _set_axis(
    fields: np.ndarray, first: int, axis: tuple[float, float, float], offset: float, scale: float, view: View
) -> None:
    """Write one texture coordinate, (axis . point - offset) * scale, into `fields[first : first + 4]`.

    Callers convert all numbers to 64 bits, so that numba compiles this once.

    A seen point is `eye + z * ray(i, j)` with z its depth, so the coordinate is
    fields[first] + z * (fields[first + 1] * i + fields[first + 2] * j + fields[first + 3]).

    Args:
        fields: float32, (SHADING_FIELDS,).
        first: `U_EYE` or `V_EYE`.
        axis: Unit vector in world axes.
        offset: m.
        scale: Texels per metre.
        view: The view.
    """
    ch, sh, cp, sp = view.cos_heading, view.sin_heading, view.cos_pitch, view.sin_pitch
    ax, ay, az = axis
    forward, right = ax * ch + ay * sh, ax * sh - ay * ch
    along, upward = forward * cp + az * sp, az * cp - forward * sp
    per_pixel = scale / view.focal
    per_column, per_row = right * per_pixel, -upward * per_pixel
    fields[first] = (ax * view.eye_x + ay * view.eye_y + az * view.eye_z - offset) * scale
    fields[first + 1], fields[first + 2] = per_column, per_row
    fields[first + 3] = along * scale - per_column * view.centre_i - per_row * view.centre_j


@compiled
def _texels_per_metre(texture: int, width: float, height: float, textures: np.ndarray) -> tuple[float, float]:
    """Texels per metre across and down a face of this size (m); fitted textures are stretched."""
    size_u, size_v = float(textures[texture, SIZE_U]), float(textures[texture, SIZE_V])
    if textures[texture, IS_FITTED] > 0 and width > 0:  # a floor has no width of its own
        repeat_u, repeat_v = max(1.0, math.floor(width / size_u + 0.5)), max(1.0, math.floor(height / size_v + 0.5))
        return TEXTURE_SIZE * repeat_u / width, TEXTURE_SIZE * repeat_v / height
    return TEXTURE_SIZE / size_u, TEXTURE_SIZE / size_v


@compiled
def _finish_flat(fields: np.ndarray, texture: int, scale: tuple[float, float], distance: float, view: View) -> None:
    """Fill what vertical and horizontal faces have in common; `distance` is from the eye to the plane, m.

    A pixel covers (depth / focal)^2 of a surface at right angles to its ray, and depth / distance times as much of a
    slanted one. Times texels per square metre, this is FOOTPRINT * depth^3.
    """
    fields[U_EYE] += _POSITIVE_SHIFT
    fields[V_EYE] += _POSITIVE_SHIFT
    fields[FOOTPRINT] = scale[0] * scale[1] / (view.focal * view.focal * max(abs(distance), 1e-6))
    fields[ATLAS_START] = texture * TEXTURE_SIZE * ATLAS_WIDTH
    fields[IS_READY] = 1.0


@compiled
def _directional_light(nx: float, ny: float, nz: float) -> float:
    """Brightness of a surface with a unit normal in world axes."""
    return _AMBIENT + _DIRECT * (nx * _LIGHT_DIRECTION[0] + ny * _LIGHT_DIRECTION[1] + nz * _LIGHT_DIRECTION[2])


@compiled
def pack_tint(red: float, green: float, blue: float) -> int:
    """Three factors of texels, 0 to below 8, as fixed-point numbers of 16 bits in one integer."""
    return int(red * TINT_ONE) | int(green * TINT_ONE) << 16 | int(blue * TINT_ONE) << 32
