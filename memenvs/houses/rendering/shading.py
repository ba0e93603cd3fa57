"""Shading: the colour of each pixel, from the primitive that is seen there and its depth.

In: the z-buffer of `memenvs.houses.rendering.rasteriser`. Out: red, green and blue bytes. The colour of a pixel is
texel x base colour x light. Light depends on the direction of the surface only (no shadows), and vertical faces become
darker towards floor and ceiling.

Shading is deferred: it starts when visibility is known, so hidden pixels cost nothing. A row of pixels is cut into runs
of one primitive. When a primitive is met for the first time, its shading coefficients for this view are computed and
stored. Runs are shaded from left to right in whole blocks of pixels; what one run writes beyond its end is overwritten
by the next.

Everything here is compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from memenvs.houses.rendering.culling import View
from memenvs.houses.rendering.kernels.simd import compiled
from memenvs.houses.rendering.kernels.texels import (
    ATLAS_START,
    FOOTPRINT,
    IS_READY,
    RUN,
    U_0,
    U_EYE,
    U_I,
    U_J,
    V_0,
    V_EYE,
    V_I,
    V_J,
    curved_block,
    horizontal_block,
    modulate_block,
    vertical_block,
)
from memenvs.houses.rendering.kernels.zbuffer import BLOCK, run_length
from memenvs.houses.rendering.materials import ATLAS_WIDTH, MIP_LEVELS, TILE
from memenvs.houses.rendering.primitives import (
    CURVED,
    FACE,
    PLANE_0,
    PLANE_I,
    PLANE_J,
    TOP,
    ImageSize,
    Primitives,
)
from memenvs.houses.rendering.scene import SceneArrays
from memenvs.houses.rendering.shading_coefficients import pack_tint, set_coefficients

#: Pixels of one line of working memory: the widest image and some blocks more.
LINE = 4096 + 16 * BLOCK

_PLAIN_TEXEL = 4 * (ATLAS_WIDTH - 4) + 2  # index of the coarsest texel of texture 0 ("plain")
_SKY, _HORIZON = (120.0, 170.0, 235.0), (214.0, 230.0, 245.0)
_GRASS = (104.0, 142.0, 72.0)


class ShadingScratch(NamedTuple):
    """Working memory of `shade`.

    Attributes:
        coefficients: float32, (>= F, SHADING_FIELDS); see `memenvs.houses.rendering.kernels.texels`. IS_READY must be
            0.
        tints: int64, (>= F,); base colour times light, packed by `pack_tint`.
        texels: int32, (2 * LINE,); atlas indices of two rows of pixels.
        factors: int64, (2 * LINE,); tint times light of two rows of pixels.
        last_block: uint8, (3 * BLOCK,); bytes of the last block of a row.
    """

    coefficients: np.ndarray
    tints: np.ndarray
    texels: np.ndarray
    factors: np.ndarray
    last_block: np.ndarray


@compiled
def shade(
    view: View,
    size: ImageSize,
    scene: SceneArrays,
    primitives: Primitives,
    keys: np.ndarray,
    id_mask: np.uint32,
    textures: np.ndarray,
    atlas: np.ndarray,
    scratch: ShadingScratch,
    out: np.ndarray,
) -> None:
    """Colour one image.

    Args:
        view: The view.
        size: Of the image.
        scene: The scene.
        primitives: Filled by `memenvs.houses.rendering.primitive_setup.set_up_primitives`.
        keys: uint32, (>= height * stride + BLOCK,); filled by `memenvs.houses.rendering.rasteriser.rasterise`.
        id_mask: As in `rasterise`.
        textures: float32, (textures, 5); see `memenvs.houses.rendering.materials.texture_table`.
        atlas: int32, one axis; see `memenvs.houses.rendering.materials.atlas`.
        scratch: Working memory.
        out: uint8, (H, W, 3); filled with sRGB.
    """
    coefficients, tints, texels, factors, last_block = scratch
    int_fields, float_fields = primitives
    width = size.width
    for row in range(size.height):
        row_keys = keys[row * size.stride : row * size.stride + width + BLOCK]
        line = row % 2 * LINE
        first = 0
        while first < width:
            primitive_id = row_keys[first] & id_mask
            last, same = first, BLOCK
            while same == BLOCK and last < width:
                same = run_length(row_keys, np.uint64(last), primitive_id, id_mask)
                last += same
            last = min(last, width)
            if primitive_id == 0:
                _shade_outside_run(row, first, last, view, texels, factors, line)
            else:
                fields = coefficients[primitive_id]
                if fields[IS_READY] == 0.0:
                    tints[primitive_id] = set_coefficients(primitive_id, view, scene, primitives, textures, fields)
                tint = tints[primitive_id]
                face = int_fields[primitive_id, FACE]
                if face == CURVED:
                    _shade_curved_run(fields, tint, row, first, last, row_keys, id_mask, texels, factors, line)
                else:
                    plane = (
                        float_fields[primitive_id, PLANE_0],
                        float_fields[primitive_id, PLANE_I],
                        float_fields[primitive_id, PLANE_J],
                    )
                    if face < TOP:
                        _shade_vertical_run(fields, plane, tint, row, first, last, texels, factors, line)
                    else:
                        _shade_horizontal_run(fields, plane, tint, row, first, last, texels, factors, line)
            first = last
        if row > 0:  # one row later, because what was just written cannot be read back as quickly
            _modulate_row(texels, factors, (row - 1) % 2 * LINE, atlas, last_block, out[row - 1].reshape(3 * width))
    last_row = size.height - 1
    _modulate_row(texels, factors, last_row % 2 * LINE, atlas, last_block, out[last_row].reshape(3 * width))


@compiled
def _modulate_row(
    texels: np.ndarray, factors: np.ndarray, line: int, atlas: np.ndarray, last_block: np.ndarray, out: np.ndarray
) -> None:
    """Write the colours of a row as bytes.

    Args:
        texels: int32, (2 * LINE,).
        factors: int64, (2 * LINE,).
        line: Index of the row's first pixel in both.
        atlas: int32, one axis.
        last_block: uint8, (3 * BLOCK,); room for the last block, which may reach over the end of the row.
        out: uint8, (3 * W,); filled.
    """
    width = out.shape[0] // 3
    whole_blocks = width - width % BLOCK
    for first in range(0, whole_blocks, BLOCK):
        modulate_block(texels, factors, np.uint64(line + first), atlas, out, np.uint64(3 * first))
    if whole_blocks < width:
        modulate_block(texels, factors, np.uint64(line + whole_blocks), atlas, last_block, np.uint64(0))
        for k in range(3 * (width - whole_blocks)):
            out[3 * whole_blocks + k] = last_block[k]


# Shading of runs. All `_shade_..._run` fill `texels` and `factors`, at indices `line + first` to `line + last`, for the
# pixels `first` to `last` (exclusive) of a row of the image, and up to a block more behind them.


@compiled
def _shade_vertical_run(
    fields: np.ndarray,
    plane: tuple[float, float, float],
    tint: int,
    row: int,
    first: int,
    last: int,
    texels: np.ndarray,
    factors: np.ndarray,
    line: int,
) -> None:
    """Shade pixels of a vertical face of a box; `plane` is PLANE_0, PLANE_I and PLANE_J."""
    base = plane[0] + plane[2] * row
    step = np.float32(plane[1])
    for column in range(first, last, RUN):
        inverse_depth = (np.float32(base + plane[1] * column), step)
        at = np.uint64(line + column)
        vertical_block(fields, inverse_depth, np.float32(row), np.float32(column), tint, texels, factors, at)


@compiled
def _shade_horizontal_run(
    fields: np.ndarray,
    plane: tuple[float, float, float],
    tint: int,
    row: int,
    first: int,
    last: int,
    texels: np.ndarray,
    factors: np.ndarray,
    line: int,
) -> None:
    """Shade pixels of a floor, a ceiling or another horizontal face; all of it in one row is equally deep."""
    down, start, block = np.float32(row), np.float32(first), np.float32(RUN)
    z = np.float32(1.0 / (plane[0] + plane[2] * row))
    # The mipmap level: half the exponent of the number of texels that a pixel covers, rounded.
    bits = int(np.float32(fields[FOOTPRINT] * z * z * z).view(np.int32))
    level = min(max(((bits >> 23) - 126) >> 1, 0), MIP_LEVELS - 1)
    scale = np.float32(1.0 / (1 << level))
    size = np.int32(TILE >> level)
    u = (fields[U_EYE] + z * (fields[U_I] * start + fields[U_J] * down + fields[U_0])) * scale
    v = (fields[V_EYE] + z * (fields[V_I] * start + fields[V_J] * down + fields[V_0])) * scale
    u_step, v_step = z * fields[U_I] * scale, z * fields[V_I] * scale
    atlas_start = np.int32(fields[ATLAS_START])
    for column in range(first, last, RUN):
        at = np.uint64(line + column)
        horizontal_block((u, u_step), (v, v_step), size, atlas_start, tint, texels, factors, at)
        u, v = u + u_step * block, v + v_step * block


@compiled
def _shade_curved_run(
    fields: np.ndarray,
    tint: int,
    row: int,
    first: int,
    last: int,
    row_keys: np.ndarray,
    id_mask: np.uint32,
    texels: np.ndarray,
    factors: np.ndarray,
    line: int,
) -> None:
    """Shade pixels of the curved part of a cylinder or of an ellipsoid; `row_keys` is uint32, (>= W + BLOCK,)."""
    for column in range(first, last, RUN):
        curved_block(
            fields,
            row_keys,
            np.uint64(column),
            id_mask,
            np.float32(row),
            np.float32(column),
            tint,
            texels,
            factors,
            np.uint64(line + column),
        )


@compiled
def _shade_outside_run(
    row: int, first: int, last: int, view: View, texels: np.ndarray, factors: np.ndarray, line: int
) -> None:
    """Shade pixels that show no part of the home: lawn below the horizon, sky above."""
    rise = view.sin_pitch - (row - view.centre_j) / view.focal * view.cos_pitch
    share = min(1.0, abs(rise) * 2.5)
    far = _HORIZON
    near = _SKY if rise > 0 else _GRASS
    red = far[0] + (near[0] - far[0]) * share
    green = far[1] + (near[1] - far[1]) * share
    blue = far[2] + (near[2] - far[2]) * share
    factors[line + first : line + last] = pack_tint(red / 128, green / 128, blue / 128)
    texels[line + first : line + last] = _PLAIN_TEXEL
