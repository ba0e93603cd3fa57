"""Shading: the colour of each pixel, from the primitive that is visible there and its depth.

In: the z-buffer of `memenvs.houses.rendering.rasteriser`. Out: red, green and blue bytes. The colour of a pixel is
texel x base colour x light. Light depends on the direction of the surface only (no shadows), and vertical faces become
darker towards floor and ceiling.

Shading is deferred: it starts when visibility is known, so hidden pixels cost nothing. A row of pixels is cut into runs
of one primitive. When a primitive is met for the first time, its shading coefficients for this view are computed and
stored. Runs are shaded from left to right in whole blocks of pixels; what one run writes beyond its end is overwritten
by the next.

All functions are compiled by numba and called from compiled code.
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
    TEXEL_BLOCK,
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
from memenvs.houses.rendering.materials import ATLAS_WIDTH, MIP_LEVELS, TEXTURE_SIZE
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

#: Pixels that the working memory has for one row of the image: the widest image and some blocks more.
ROW_BUFFER = 4096 + 16 * BLOCK

# Index in the atlas of the coarsest texel of texture 0 ("plain"): row 0, column ATLAS_WIDTH - 2, in 4 x 4 squares.
_PLAIN_TEXEL = 4 * (ATLAS_WIDTH - 4) + 2
# sRGB, 0 to 255.
_SKY, _HORIZON = (120.0, 170.0, 235.0), (214.0, 230.0, 245.0)
_GRASS = (104.0, 142.0, 72.0)


class ShadingScratch(NamedTuple):
    """Working memory of `shade`.

    Attributes:
        coefficients: float32, (>= F, SHADING_FIELDS) for F primitives; see `memenvs.houses.rendering.kernels.texels`.
            IS_READY must be 0 before each image, because coefficients depend on the view.
        tints: int64, (>= F,); base colour times light, packed by `pack_tint`.
        texels: int32, (2 * ROW_BUFFER,); atlas indices of the pixels of two rows, used in turn.
        factors: int64, (2 * ROW_BUFFER,); tint times light of the same pixels.
        last_block: uint8, (3 * BLOCK,); bytes of the last block of a row, which may reach beyond the image.
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
        view: Pose and intrinsics of the camera.
        size: Size of the image.
        scene: Arrays of the house's shapes, with their colours and textures.
        primitives: Flat faces and round solids in the view; filled by
            `memenvs.houses.rendering.primitive_setup.set_up_primitives`.
        keys: uint32, (>= height * stride + BLOCK,); the z-buffer, filled by
            `memenvs.houses.rendering.rasteriser.rasterise`. The bits in `id_mask` hold the id of the visible primitive,
            0 for none; the others hold its depth.
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
        row_start = row % 2 * ROW_BUFFER
        first = 0
        while first < width:  # one run of pixels with the same primitive: `first` to `end` (exclusive)
            primitive_id = row_keys[first] & id_mask
            end = first
            length = BLOCK
            while length == BLOCK and end < width:
                length = run_length(row_keys, np.uint64(end), primitive_id, id_mask)
                end += length
            end = min(end, width)
            if primitive_id == 0:  # no primitive: the view leaves the house
                _shade_outside_run(row, first, end, view, texels, factors, row_start)
            else:
                fields = coefficients[primitive_id]
                if fields[IS_READY] == 0.0:
                    tints[primitive_id] = set_coefficients(primitive_id, view, scene, primitives, textures, fields)
                tint = tints[primitive_id]
                face = int_fields[primitive_id, FACE]
                if face == CURVED:
                    _shade_curved_run(fields, tint, row, first, end, row_keys, id_mask, texels, factors, row_start)
                else:
                    plane = (
                        float_fields[primitive_id, PLANE_0],
                        float_fields[primitive_id, PLANE_I],
                        float_fields[primitive_id, PLANE_J],
                    )
                    if face < TOP:
                        _shade_vertical_run(fields, plane, tint, row, first, end, texels, factors, row_start)
                    else:
                        _shade_horizontal_run(fields, plane, tint, row, first, end, texels, factors, row_start)
            first = end
        if row > 0:  # one row later: reading what was just written would wait for the stores
            _modulate_row(
                texels, factors, (row - 1) % 2 * ROW_BUFFER, atlas, last_block, out[row - 1].reshape(3 * width)
            )
    last_row = size.height - 1
    _modulate_row(texels, factors, last_row % 2 * ROW_BUFFER, atlas, last_block, out[last_row].reshape(3 * width))


@compiled
def _modulate_row(
    texels: np.ndarray, factors: np.ndarray, row_start: int, atlas: np.ndarray, last_block: np.ndarray, out: np.ndarray
) -> None:
    """Write the colours of a row as bytes.

    Args:
        texels: int32, (2 * ROW_BUFFER,).
        factors: int64, (2 * ROW_BUFFER,).
        row_start: Index of the row's first pixel in both.
        atlas: int32, one axis; texels.
        last_block: uint8, (3 * BLOCK,); room for the last block, which may reach over the end of the row.
        out: uint8, (3 * W,); filled.
    """
    width = out.shape[0] // 3
    whole_blocks = width - width % BLOCK
    for first in range(0, whole_blocks, BLOCK):
        modulate_block(texels, factors, np.uint64(row_start + first), atlas, out, np.uint64(3 * first))
    if whole_blocks < width:
        modulate_block(texels, factors, np.uint64(row_start + whole_blocks), atlas, last_block, np.uint64(0))
        for k in range(3 * (width - whole_blocks)):
            out[3 * whole_blocks + k] = last_block[k]


# Shading of runs. All `_shade_..._run` fill `texels` and `factors` for the pixels `first` to `end` (exclusive) of a row
# of the image, at indices `row_start + first` to `row_start + end`. They write up to a block more behind these.


@compiled
def _shade_vertical_run(
    fields: np.ndarray,
    plane: tuple[float, float, float],
    tint: int,
    row: int,
    first: int,
    end: int,
    texels: np.ndarray,
    factors: np.ndarray,
    row_start: int,
) -> None:
    """Shade a run on a vertical face; one over the depth is plane[0] + plane[1] * column + plane[2] * row."""
    base = plane[0] + plane[2] * row
    step = np.float32(plane[1])
    for column in range(first, end, TEXEL_BLOCK):
        inverse_depth = (np.float32(base + plane[1] * column), step)
        at = np.uint64(row_start + column)
        vertical_block(fields, inverse_depth, np.float32(row), np.float32(column), tint, texels, factors, at)


@compiled
def _shade_horizontal_run(
    fields: np.ndarray,
    plane: tuple[float, float, float],
    tint: int,
    row: int,
    first: int,
    end: int,
    texels: np.ndarray,
    factors: np.ndarray,
    row_start: int,
) -> None:
    """Shade a run on a horizontal face. Its pixels in one row have the same depth; `plane` is as in vertical runs."""
    row_f32 = np.float32(row)
    first_f32 = np.float32(first)
    texel_block_f32 = np.float32(TEXEL_BLOCK)
    z = np.float32(1.0 / (plane[0] + plane[2] * row))
    # The mipmap level is log2(n) / 2, rounded, for a pixel that covers n texels: half the exponent of the float n.
    bits = int(np.float32(fields[FOOTPRINT] * z * z * z).view(np.int32))
    level = min(max(((bits >> 23) - 126) >> 1, 0), MIP_LEVELS - 1)
    scale = np.float32(1.0 / (1 << level))
    size = np.int32(TEXTURE_SIZE >> level)
    # Texture coordinates of the first pixel, in texels of that level, and their change from pixel to pixel.
    u = (fields[U_EYE] + z * (fields[U_I] * first_f32 + fields[U_J] * row_f32 + fields[U_0])) * scale
    v = (fields[V_EYE] + z * (fields[V_I] * first_f32 + fields[V_J] * row_f32 + fields[V_0])) * scale
    u_step = z * fields[U_I] * scale
    v_step = z * fields[V_I] * scale
    atlas_start = np.int32(fields[ATLAS_START])
    for column in range(first, end, TEXEL_BLOCK):
        at = np.uint64(row_start + column)
        horizontal_block((u, u_step), (v, v_step), size, atlas_start, tint, texels, factors, at)
        u += u_step * texel_block_f32
        v += v_step * texel_block_f32


@compiled
def _shade_curved_run(
    fields: np.ndarray,
    tint: int,
    row: int,
    first: int,
    end: int,
    row_keys: np.ndarray,
    id_mask: np.uint32,
    texels: np.ndarray,
    factors: np.ndarray,
    row_start: int,
) -> None:
    """Shade a run on the curved surface of a cylinder or ellipsoid; `row_keys` (uint32) hold the depths."""
    for column in range(first, end, TEXEL_BLOCK):
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
            np.uint64(row_start + column),
        )


@compiled
def _shade_outside_run(
    row: int, first: int, end: int, view: View, texels: np.ndarray, factors: np.ndarray, row_start: int
) -> None:
    """Shade a run that shows no part of the home: grass below the horizon, sky above."""
    # Upward component of the ray through the row. The colour goes from that of the horizon at 0 to pure sky or grass.
    rise = view.sin_pitch - (row - view.centre_j) / view.focal * view.cos_pitch
    blend = min(1.0, abs(rise) * 2.5)
    pure = _SKY if rise > 0 else _GRASS
    red = _HORIZON[0] + (pure[0] - _HORIZON[0]) * blend
    green = _HORIZON[1] + (pure[1] - _HORIZON[1]) * blend
    blue = _HORIZON[2] + (pure[2] - _HORIZON[2]) * blend
    factors[row_start + first : row_start + end] = pack_tint(red / 128, green / 128, blue / 128)
    texels[row_start + first : row_start + end] = _PLAIN_TEXEL
