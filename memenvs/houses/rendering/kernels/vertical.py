"""Shading of vertical faces: texels and light factors of several blocks of pixels at once.

See `memenvs.houses.rendering.kernels.texels`. Walls and the sides of furniture are most of what a robot sees, so these
kernels shade as many pixels together as the registers hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils

from memenvs.houses.rendering.kernels.simd import (
    F32,
    F64,
    I32,
    I64,
    VECTOR_WIDTH,
    SimdVector,
    arange,
    entry_pointer,
    intrinsic,
)
from memenvs.houses.rendering.kernels.texels import (
    ATLAS_START,
    CEILING_0,
    CEILING_V,
    FLOOR_0,
    FLOOR_V,
    FOOTPRINT,
    RUN_FIELD,
    RUN_FIELD_BITS,
    SHADING_FIELDS,
    TEXEL_BLOCK,
    U_0,
    U_EYE,
    U_I,
    U_J,
    V_EYE,
    light_factors,
    spread,
    store_pixels,
    texel_index,
)
from memenvs.houses.rendering.primitives import FLOAT_FIELDS, PLANE_0, PLANE_I, PLANE_J

#: Blocks of vertical faces that are shaded together. Two are faster also where a register holds one: while one waits
#: for a result, the other goes on. Registers of half a block are too few for two.
VERTICAL_BLOCKS = 2 if VECTOR_WIDTH >= TEXEL_BLOCK else 1


def _unpack_run(builder: Any, run: Any) -> tuple[Any, Any, Any]:
    """First column, row within the band and primitive of a run or block; int64."""
    places = ((1, RUN_FIELD), (2, RUN_FIELD), (3, -1))
    column, row, primitive_id = (
        builder.and_(builder.lshr(run, ir.Constant(I64, place * RUN_FIELD_BITS)), ir.Constant(I64, mask))
        for place, mask in places
    )
    return column, row, primitive_id


def _plane_in_row(builder: Any, plane: Any, row: Any) -> tuple[Any, Any]:
    """One over the depth at column 0 of an image row, and its change from column to column; float64.

    `plane` is a pointer to the primitive's `float_fields`, `row` an int64.
    """
    plane_0, plane_i, plane_j = (
        builder.load(builder.gep(plane, [ir.Constant(I64, field)])) for field in (PLANE_0, PLANE_I, PLANE_J)
    )
    return builder.fadd(plane_0, builder.fmul(plane_j, builder.sitofp(row, F64))), plane_i


def _start_of_block(builder: Any, plane_in_row: tuple[Any, Any], column: Any) -> Any:
    """One over the depth at a block's first column, an int64; float32."""
    base, per_column = plane_in_row
    return builder.fptrunc(builder.fadd(base, builder.fmul(per_column, builder.sitofp(column, F64))), F32)


class _Face(NamedTuple):
    """Values that pixels of a vertical face in an image row share.

    Attributes:
        plane_in_row: See `_plane_in_row`.
        step: float32; change of one over the depth from column to column.
        row: float32; row of the image.
        tint: int64; see `light_factors`.
        coefficients: Pointer to the primitive's shading coefficients.
    """

    plane_in_row: tuple[Any, Any]
    step: Any
    row: Any
    tint: Any
    coefficients: Any

    def field(self, builder: Any, number: int) -> Any:
        """Load a field of the shading coefficients."""
        return builder.load(builder.gep(self.coefficients, [ir.Constant(I64, number)]))


def _load_face(builder: Any, entry: Callable[[int, Any], Any], image_row: Any, primitive_id: Any) -> _Face:
    """Load what the pixels of a primitive in a row of the image, both int64, have in common.

    `entry` returns a pointer to an entry of an argument of `vertical_blocks` or `vertical_run`.
    """
    plane = entry(5, builder.mul(primitive_id, ir.Constant(I64, FLOAT_FIELDS)))
    plane_in_row = _plane_in_row(builder, plane, image_row)
    return _Face(
        plane_in_row,
        builder.fptrunc(plane_in_row[1], F32),
        builder.sitofp(image_row, F32),
        builder.load(entry(6, primitive_id)),
        entry(4, builder.mul(primitive_id, ir.Constant(I64, SHADING_FIELDS))),
    )


def _ray_in_row(builder: Any, face: _Face, first: int) -> Any:
    """Row's share of the ray of the texture coordinate that begins at field `first`; float32."""
    return builder.fadd(builder.fmul(face.field(builder, first + U_J), face.row), face.field(builder, first + U_0))


def _entries(context: Any, builder: Any, signature: Any, arguments: Any) -> Callable[[int, Any], Any]:
    """A function that returns a pointer to an entry of one of the arguments."""
    return lambda argument, index: entry_pointer(context, builder, signature.args[argument], arguments[argument], index)


def _vertical_texels(
    field: Callable[[int], SimdVector], in_row: Sequence[SimdVector], z: SimdVector, columns: SimdVector, tint: Any
) -> tuple[SimdVector, SimdVector]:
    """Texels and light factors of P pixels of vertical faces.

    Args:
        field: Returns a field of the pixels' shading coefficients, float32, (P,).
        in_row: What the row adds to the ray of each texture coordinate, two float32 of (P,).
        z: float32, (P,); depths, m.
        columns: float32, (P,).
        tint: int64, (P,); see `light_factors`.

    Returns:
        int32, (P,); indices in the atlas.
        int64, (P,); tint times light.
    """
    u, v = (
        z * (columns * field(first + U_I) + constant) + field(first + U_EYE)
        for first, constant in zip((U_EYE, V_EYE), in_row, strict=True)
    )
    light = (v * field(FLOOR_V) + field(FLOOR_0)).minimum(v * field(CEILING_V) + field(CEILING_0))
    factors = light_factors(light.minimum(1.0).maximum(0.3), tint)
    texels = texel_index(u, v, z * z * (z * field(FOOTPRINT))) + field(ATLAS_START).cast(I32)
    return texels, factors.bitcast(I64, len(z))


@intrinsic
def vertical_blocks(
    typingctx: Any,
    blocks: Any,
    k: Any,
    first_row: Any,
    pitch: Any,
    coefficients: Any,
    planes: Any,
    tints: Any,
    texels: Any,
    factors: Any,
) -> Any:
    """Find texels and light factors of `VERTICAL_BLOCKS` blocks of vertical faces.

    A block is `TEXEL_BLOCK` consecutive pixels of a row.

    Args:
        typingctx: Given by numba.
        blocks: int64, one axis; see `RUN_FIELD_BITS`.
        k: uint64; index of the first block.
        first_row: int64; row of the image that the blocks' rows are counted from.
        pitch: int64; pixels from row to row in `texels` and `factors`.
        coefficients: float32, (F, SHADING_FIELDS).
        planes: float64, (F, FLOAT_FIELDS); `float_fields` of `memenvs.houses.rendering.primitives.Primitives`.
        tints: int64, (F,); three fixed-point factors of 16 bits, `TINT_ONE` is 1.
        texels: int32, one axis; filled with indices in the atlas.
        factors: int64, one axis; filled with tint times light.
    """
    integers = (types.uint64, types.int64, types.int64)
    signature = types.void(blocks, *integers, coefficients, planes, tints, texels, factors)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the vector code."""
        _, k, first_row, pitch, _, _, _, texels, factors = arguments
        entry = _entries(context, builder, signature, arguments)
        faces, starts, columns, at = ([] for _ in range(4))
        for number in range(VERTICAL_BLOCKS):
            block = builder.load(entry(0, builder.add(k, ir.Constant(I64, number))))
            column, row, primitive_id = _unpack_run(builder, block)
            faces.append(_load_face(builder, entry, builder.add(first_row, row), primitive_id))
            starts.append(_start_of_block(builder, faces[-1].plane_in_row, column))
            columns.append(builder.sitofp(column, F32))
            at.append(builder.add(builder.mul(row, pitch), column))
        pixels = SimdVector.constant(builder, F32, [*range(TEXEL_BLOCK)] * VERTICAL_BLOCKS)
        index, light = _vertical_texels(
            lambda field: spread(builder, [face.field(builder, field) for face in faces]),
            [spread(builder, [_ray_in_row(builder, face, first) for face in faces]) for first in (U_EYE, V_EYE)],
            1.0 / (pixels * spread(builder, [face.step for face in faces]) + spread(builder, starts)),
            pixels + spread(builder, columns),
            spread(builder, [face.tint for face in faces]),
        )
        for number in range(VERTICAL_BLOCKS):  # in this order: a block may write over the end of its run
            own = range(number * TEXEL_BLOCK, (number + 1) * TEXEL_BLOCK)
            line = (texels, factors, at[number])
            store_pixels(context, builder, signature.args[7:], line, index.shuffle(own), light.shuffle(own))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def vertical_run(
    typingctx: Any,
    run: Any,
    count: Any,
    first_row: Any,
    pitch: Any,
    coefficients: Any,
    planes: Any,
    tints: Any,
    texels: Any,
    factors: Any,
) -> Any:
    """As `vertical_blocks`, for `count` times `VERTICAL_BLOCKS` blocks at a run's start.

    What the blocks have in common is loaded once. `run` and `count` are int64; for `run` see `RUN_FIELD_BITS`.
    """
    signature = types.void(run, count, types.int64, types.int64, coefficients, planes, tints, texels, factors)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the vector code."""
        run, count, first_row, pitch, *_ = arguments
        entry = _entries(context, builder, signature, arguments)

        def wide(value: Any) -> SimdVector:
            """Repeat a value for the pixels of all blocks."""
            return SimdVector.broadcast(builder, value, VERTICAL_BLOCKS * TEXEL_BLOCK)

        first, row, primitive_id = _unpack_run(builder, run)
        face = _load_face(builder, entry, builder.add(first_row, row), primitive_id)
        loaded = [wide(face.field(builder, field)) for field in range(CEILING_V + 1)]  # before the loop, which writes
        in_row = [wide(_ray_in_row(builder, face, coordinate)) for coordinate in (U_EYE, V_EYE)]
        tint = wide(face.tint)
        in_block = SimdVector.constant(builder, F32, [*range(TEXEL_BLOCK)] * VERTICAL_BLOCKS) * wide(face.step)
        pixels = arange(builder, F32, VERTICAL_BLOCKS * TEXEL_BLOCK)
        row_start = builder.mul(row, pitch)
        with cgutils.for_range(builder, count) as loop:
            done = builder.mul(loop.index, ir.Constant(I64, VERTICAL_BLOCKS * TEXEL_BLOCK))
            column = builder.add(first, done)
            columns = [builder.add(column, ir.Constant(I64, k * TEXEL_BLOCK)) for k in range(VERTICAL_BLOCKS)]
            starts = spread(builder, [_start_of_block(builder, face.plane_in_row, column) for column in columns])
            index, light = _vertical_texels(
                lambda field: loaded[field],
                in_row,
                1.0 / (in_block + starts),
                pixels + builder.sitofp(column, F32),
                tint,
            )
            at = builder.add(row_start, column)
            index.store(entry(7, at))
            light.store(entry(8, at))
        return context.get_dummy_value()

    return signature, generate
