"""Shading: the colour of each pixel, from the primitive that is visible there and its depth.

In: the z-buffer of `memenvs.houses.rendering.rasteriser`. Out: red, green and blue bytes. The colour of a pixel is
texel x base colour x light. Light depends on the direction of the surface only (no shadows), and vertical faces become
darker towards floor and ceiling.

Shading is deferred: it starts when visibility is known, so hidden pixels cost nothing. The image is shaded in bands of
rows that fit into the processor's fastest memory. The rows of a band are cut into runs of one primitive. When a
primitive is met for the first time, its shading coefficients for this view are computed and stored. Then runs are
shaded kind by kind, in blocks of pixels: a loop over one kind has no branch that the processor would guess wrongly.
Blocks of vertical faces come first and write over the ends of their runs, then long vertical runs; these and the other
kinds write their own pixels alone.

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
    RUN_FIELD,
    RUN_FIELD_BITS,
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
)
from memenvs.houses.rendering.kernels.vertical import VERTICAL_BLOCKS, vertical_blocks, vertical_run
from memenvs.houses.rendering.kernels.zbuffer import BLOCK, WORD, lowest_bit, run_ends
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

#: Pixels of a band of rows, about: their texels and factors fit into half of a first-level cache of 32 KiB.
_BAND = 1024
#: Pixels that the working memory has for a band: one row of the widest image, and some blocks more.
BAND_BUFFER = 4096 + 16 * BLOCK
#: Kinds of runs: vertical, horizontal and curved faces, and pixels that show no primitive.
_VERTICAL, _HORIZONTAL, _CURVED, _OUTSIDE = range(4)
RUN_KINDS = 4

# Pixels of a vertical run from which on its blocks are shaded together, all but the last ones; how many at a time.
_LONG_RUN = 32
_RUN_STEP = VERTICAL_BLOCKS * TEXEL_BLOCK
# Index in the atlas of the coarsest texel of texture 0 ("plain"): row 0, column ATLAS_WIDTH - 2, in 4 x 4 squares.
_PLAIN_TEXEL = 4 * (ATLAS_WIDTH - 4) + 2
# The face of id 0 while an image is shaded: no primitive.
_OUTSIDE_FACE = CURVED + 1
# sRGB, 0 to 255.
_SKY, _HORIZON = (120.0, 170.0, 235.0), (214.0, 230.0, 245.0)
_GRASS = (104.0, 142.0, 72.0)


class ShadingScratch(NamedTuple):
    """Working memory of `shade`.

    Attributes:
        coefficients: float32, (>= F, SHADING_FIELDS) for F primitives; see `memenvs.houses.rendering.kernels.texels`.
            IS_READY must be 0 before each image, because coefficients depend on the view.
        tints: int64, (>= F,); base colour times light, packed by `pack_tint`.
        texels: int32, (BAND_BUFFER,); atlas indices of the pixels of a band.
        factors: int64, (BAND_BUFFER,); tint times light of the same pixels.
        runs: int64, (RUN_KINDS, BAND_BUFFER); the runs of a band, by kind.
        counts: int64, (RUN_KINDS,); how many runs of each kind there are.
        blocks: int64, (BAND_BUFFER,); the blocks of the vertical runs.
        last_block: uint8, (3 * BLOCK,); bytes of the last block of a row, which may reach beyond the image.
    """

    coefficients: np.ndarray
    tints: np.ndarray
    texels: np.ndarray
    factors: np.ndarray
    runs: np.ndarray
    counts: np.ndarray
    blocks: np.ndarray
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
        keys: uint32, (>= height * stride + WORD + BLOCK,); the z-buffer, filled by
            `memenvs.houses.rendering.rasteriser.rasterise`. The bits in `id_mask` hold the id of the visible primitive,
            0 for none; the others hold its depth.
        id_mask: As in `rasterise`.
        textures: float32, (textures, 5); see `memenvs.houses.rendering.materials.texture_table`.
        atlas: int32, one axis; see `memenvs.houses.rendering.materials.atlas`.
        scratch: Working memory.
        out: uint8, (H, W, 3); filled with sRGB.
    """
    texels, factors = scratch.texels, scratch.factors
    colours = out.reshape(size.height, 3 * size.width)
    primitives.int_fields[0, FACE] = _OUTSIDE_FACE
    scratch.coefficients[0, IS_READY] = 1.0
    pitch = size.stride + TEXEL_BLOCK  # from row to row of a band; a block may reach over the end of its row
    band = max(1, _BAND // pitch)
    for first_row in range(0, size.height, band):
        rows = min(band, size.height - first_row)
        _list_runs(first_row, rows, view, size, scene, primitives, keys, id_mask, textures, scratch)
        _shade_vertical_runs(first_row, pitch, primitives, scratch)
        _shade_horizontal_runs(first_row, pitch, primitives, scratch)
        _shade_curved_runs(first_row, pitch, size.stride, keys, id_mask, scratch)
        _shade_outside_runs(first_row, pitch, view, scratch)
        for row in range(rows):
            _modulate_row(texels, factors, row * pitch, atlas, scratch.last_block, colours[first_row + row])


@compiled
def _list_runs(
    first_row: int,
    rows: int,
    view: View,
    size: ImageSize,
    scene: SceneArrays,
    primitives: Primitives,
    keys: np.ndarray,
    id_mask: np.uint32,
    textures: np.ndarray,
    scratch: ShadingScratch,
) -> None:
    """Cut the rows of a band into runs, and compute the coefficients of primitives that are met for the first time.

    Args:
        first_row: First row of the band in the image.
        rows: Rows of the band.
        view: As in `shade`.
        size: As in `shade`.
        scene: As in `shade`.
        primitives: As in `shade`.
        keys: As in `shade`.
        id_mask: As in `shade`.
        textures: As in `shade`.
        scratch: Working memory; `runs` and `counts` are filled.
    """
    coefficients, runs, counts = scratch.coefficients, scratch.runs, scratch.counts
    counts[:] = 0
    last = size.width - 1
    for row in range(rows):
        row_start = (first_row + row) * size.stride
        first = 0
        for word in range(0, size.width, WORD):
            ends = run_ends(keys, np.uint64(row_start + word), id_mask)
            if last - word < WORD:  # the image ends here: what follows is padding
                ends = (ends | 1 << (last - word)) & (2 << (last - word)) - 1
            while ends != 0:
                end = word + lowest_bit(ends) + 1
                ends &= ends - 1
                primitive_id = np.int64(keys[np.uint64(row_start + first)] & id_mask)
                fields = coefficients[primitive_id]
                if fields[IS_READY] == 0.0:
                    scratch.tints[primitive_id] = set_coefficients(
                        primitive_id, view, scene, primitives, textures, fields
                    )
                face = primitives.int_fields[primitive_id, FACE]
                kind = np.int64(face >= TOP) + np.int64(face >= CURVED) + np.int64(face == _OUTSIDE_FACE)
                runs[kind, counts[kind]] = (
                    (primitive_id << RUN_FIELD_BITS | row) << RUN_FIELD_BITS | first
                ) << RUN_FIELD_BITS | end
                counts[kind] += 1
                first = end


@compiled
def _modulate_row(
    texels: np.ndarray, factors: np.ndarray, row_start: int, atlas: np.ndarray, last_block: np.ndarray, out: np.ndarray
) -> None:
    """Write the colours of a row as bytes.

    Args:
        texels: int32, (BAND_BUFFER,).
        factors: int64, (BAND_BUFFER,).
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


@compiled
def _shade_vertical_runs(first_row: int, pitch: int, primitives: Primitives, scratch: ShadingScratch) -> None:
    """Fill `texels` and `factors` of the runs on vertical faces; others may be overwritten.

    Args:
        first_row: First row of the band in the image.
        pitch: Pixels from row to row in `texels` and `factors`.
        primitives: As in `shade`.
        scratch: Working memory.
    """
    runs, blocks = scratch.runs[_VERTICAL], scratch.blocks
    count, num_long = 0, 0
    for k in range(scratch.counts[_VERTICAL]):
        run = runs[k]
        length = _length(run)
        if length >= _LONG_RUN:
            runs[num_long] = run  # over a run that is done
            num_long += 1
            run += length // _RUN_STEP * _RUN_STEP << RUN_FIELD_BITS
            length %= _RUN_STEP
        for block in range(_LONG_RUN // TEXEL_BLOCK):  # all in any case, and the processor need not guess how many
            blocks[count + block] = run + (block * TEXEL_BLOCK << RUN_FIELD_BITS)
        count += (length + TEXEL_BLOCK - 1) // TEXEL_BLOCK
    for block in range(-count % VERTICAL_BLOCKS):  # the last one again, until all are shaded together
        blocks[count + block] = blocks[count - 1]
    fields = scratch.coefficients, primitives.float_fields, scratch.tints, scratch.texels, scratch.factors
    for k in range(0, count, VERTICAL_BLOCKS):
        vertical_blocks(blocks, np.uint64(k), first_row, pitch, *fields)
    for k in range(num_long):
        vertical_run(runs[k], _length(runs[k]) // _RUN_STEP, first_row, pitch, *fields)


@compiled
def _length(run: int) -> int:
    """Pixels of a run."""
    return (run & RUN_FIELD) - (run >> RUN_FIELD_BITS & RUN_FIELD)


@compiled
def _column_row_id(run: int) -> tuple[int, int, int]:
    """First column, row within the band and primitive of a run or block."""
    return run >> RUN_FIELD_BITS & RUN_FIELD, run >> 2 * RUN_FIELD_BITS & RUN_FIELD, run >> 3 * RUN_FIELD_BITS


@compiled
def _plane(primitives: Primitives, primitive_id: int) -> tuple[float, float, float]:
    """One over the depth at pixel (0, 0), its change along columns and its change along rows."""
    fields = primitives.float_fields[primitive_id]
    return fields[PLANE_0], fields[PLANE_I], fields[PLANE_J]


@compiled
def _shade_horizontal_runs(first_row: int, pitch: int, primitives: Primitives, scratch: ShadingScratch) -> None:
    """As `_shade_vertical_runs`, for horizontal faces. The pixels of a run have the same depth."""
    texel_block_f32 = np.float32(TEXEL_BLOCK)
    for k in range(scratch.counts[_HORIZONTAL]):
        run = scratch.runs[_HORIZONTAL, k]
        first, row, primitive_id = _column_row_id(run)
        end = run & RUN_FIELD
        plane = _plane(primitives, primitive_id)
        fields = scratch.coefficients[primitive_id]
        row_f32 = np.float32(first_row + row)
        first_f32 = np.float32(first)
        z = np.float32(1.0 / (plane[0] + plane[2] * (first_row + row)))
        # The mipmap level is log2(n) / 2, rounded, for a pixel that covers n texels: half the exponent of the float n.
        bits = int(np.float32(fields[FOOTPRINT] * z * z * z).view(np.int32))
        level = min(max(((bits >> 23) - 126) >> 1, 0), MIP_LEVELS - 1)
        scale = np.float32(1.0 / (1 << level))
        side = np.int32(TEXTURE_SIZE >> level)
        # Texture coordinates of the first pixel, in texels of that level, and their change from pixel to pixel.
        u = (fields[U_EYE] + z * (fields[U_I] * first_f32 + fields[U_J] * row_f32 + fields[U_0])) * scale
        v = (fields[V_EYE] + z * (fields[V_I] * first_f32 + fields[V_J] * row_f32 + fields[V_0])) * scale
        u_step = z * fields[U_I] * scale
        v_step = z * fields[V_I] * scale
        atlas_start = np.int32(fields[ATLAS_START])
        tint = scratch.tints[primitive_id]
        for column in range(first, end, TEXEL_BLOCK):
            horizontal_block(
                (u, u_step),
                (v, v_step),
                side,
                atlas_start,
                tint,
                np.int32(end - column),
                scratch.texels,
                scratch.factors,
                np.uint64(row * pitch + column),
            )
            u += u_step * texel_block_f32
            v += v_step * texel_block_f32


@compiled
def _shade_curved_runs(
    first_row: int, pitch: int, stride: int, keys: np.ndarray, id_mask: np.uint32, scratch: ShadingScratch
) -> None:
    """As `_shade_vertical_runs`, for cylinders and ellipsoids; `keys`, `stride` from row to row, hold the depths."""
    for k in range(scratch.counts[_CURVED]):
        run = scratch.runs[_CURVED, k]
        first, row, primitive_id = _column_row_id(run)
        end = run & RUN_FIELD
        for column in range(first, end, TEXEL_BLOCK):
            curved_block(
                scratch.coefficients[primitive_id],
                keys,
                np.uint64((first_row + row) * stride + column),
                id_mask,
                np.float32(first_row + row),
                np.float32(column),
                scratch.tints[primitive_id],
                np.int32(end - column),
                scratch.texels,
                scratch.factors,
                np.uint64(row * pitch + column),
            )


@compiled
def _shade_outside_runs(first_row: int, pitch: int, view: View, scratch: ShadingScratch) -> None:
    """As `_shade_vertical_runs`, for runs that show no part of the home: grass below the horizon, sky above."""
    for k in range(scratch.counts[_OUTSIDE]):
        run = scratch.runs[_OUTSIDE, k]
        first, row, _ = _column_row_id(run)
        # Upward component of the ray through the row. The colour goes from that of the horizon at 0 to pure sky or
        # grass.
        rise = view.sin_pitch - (first_row + row - view.centre_j) / view.focal * view.cos_pitch
        blend = min(1.0, abs(rise) * 2.5)
        pure = _SKY if rise > 0 else _GRASS
        red = _HORIZON[0] + (pure[0] - _HORIZON[0]) * blend
        green = _HORIZON[1] + (pure[1] - _HORIZON[1]) * blend
        blue = _HORIZON[2] + (pure[2] - _HORIZON[2]) * blend
        tint = pack_tint(red / 128, green / 128, blue / 128)
        for at in range(row * pitch + first, row * pitch + (run & RUN_FIELD)):
            scratch.factors[at] = tint
            scratch.texels[at] = _PLAIN_TEXEL
