"""The z-buffer: the sort key of a pixel, and steps that write or read several keys at once.

Each pixel has one uint32 key. Its upper bits hold one over the depth, its lower bits the id of the primitive that is
seen there. A nearer primitive therefore has the larger key, and drawing a pixel is a single `max(old, new)`: depth
test, depth write and id write in one operation. Key 0 means that nothing is seen.

One over the depth (not the depth) is stored because it changes linearly over the pixels of a flat face: one addition
per pixel instead of one division.

Rows and columns are indices of pixels: whole numbers lie at the centres of pixels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
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
    compiled,
    entry_pointer,
    intrinsic,
)

#: Pixels per block when keys are read; rows of keys are padded to whole blocks.
BLOCK = 16
#: Pixels whose runs are found at once; as many keys and one more block follow the last row.
WORD = 64
#: Consecutive pixels of a row that `draw_span` writes at once.
SPAN_BLOCK = VECTOR_WIDTH
#: Rows of a flat primitive whose spans (the pixels between its edges) are found together: one group of spans.
ROWS = 8
#: Fields of a group of spans, int32, (SPAN_FIELDS,). Three fields of ROWS entries, one for each row: the first column;
#: the column to stop before; one over the depth at the leftmost column of the group, as the bits of a float32. Then one
#: entry each: that leftmost column, i.e. the smallest first one (SPAN_LEFT); the largest column to stop before
#: (SPAN_RIGHT); the id of the primitive; the first row of the group; how many rows it has. The rest is padding.
SPAN_LEFT, SPAN_RIGHT, SPAN_ID, SPAN_ROW, SPAN_COUNT = range(3 * ROWS, 3 * ROWS + 5)
SPAN_FIELDS = 4 * ROWS
#: Edges of a polygon that are processed together: a group of edges, see `find_spans`.
EDGES = 4
EDGE_GROUP_FIELDS = 3 * EDGES

#: A key holds the bits of one over the depth, counted from those of MIN_INVERSE_DEPTH (100 km away, the horizon). 28
#: bits of them, shifted to the top of the 32, reach to an inverse depth of 43,000 (0.02 mm away).
MIN_INVERSE_DEPTH = 1e-5
MAX_KEY_BITS = (1 << 28) - 1
KEY_SHIFT = 4
MIN_BITS = int(np.float32(MIN_INVERSE_DEPTH).view(np.int32))


@compiled
def decode_depth(key: np.uint32, id_mask: np.uint32) -> np.float32:
    """Depth of a key that is not 0.

    The id has replaced the lowest bits of one over the depth, so all depths of a small interval share a key. The middle
    of that interval is returned. It is good to 2 parts in 100,000 where there are fewer than 4096 primitives.

    Args:
        key: The key.
        id_mask: The lower bits of a key that hold the primitive's id, all ones.

    Returns:
        Metres along the optical axis.
    """
    middle = (key | id_mask) ^ (id_mask >> np.uint32(1))  # the id's bits become 100...0
    bits = np.uint32(middle >> np.uint32(KEY_SHIFT))
    return np.float32(1) / np.int32(bits + np.uint32(MIN_BITS)).view(np.float32)


def decode_depths(keys: SimdVector, id_mask: Any) -> SimdVector:
    """`decode_depth` of a vector of keys."""
    half_mask = keys.builder.lshr(id_mask, ir.Constant(I32, 1))
    return 1.0 / ((((keys | id_mask) ^ half_mask) >> KEY_SHIFT) + MIN_BITS).bitcast(F32)


def _write_nearer(keys: Any, inverse_depth: SimdVector, primitive_id: Any, id_mask: Any, is_inside: SimdVector) -> None:
    """Encode keys and keep, pixel by pixel, the larger of the old and the new one.

    Args:
        keys: Pointer to the first key, uint32.
        inverse_depth: float32, 1/m.
        primitive_id: uint32, one value or a vector.
        id_mask: uint32; see `decode_depth`.
        is_inside: Bits; the pixels that the primitive covers.
    """
    builder = inverse_depth.builder
    is_inside = is_inside & (inverse_depth > MIN_INVERSE_DEPTH)
    bits = (inverse_depth.bitcast(I32) - MIN_BITS).minimum(MAX_KEY_BITS) << KEY_SHIFT
    new = is_inside.select((bits & builder.not_(id_mask)) | primitive_id, 0)
    old = SimdVector.load(builder, keys, len(inverse_depth))
    is_nearer = builder.icmp_unsigned(">", new.value, old.value)
    SimdVector(builder, is_nearer).select(new, old).store(keys, volatile=True)


@intrinsic
def draw_span(
    typingctx: Any,
    keys: Any,
    at: Any,
    spans: Any,
    k: Any,
    column: Any,
    offset: Any,
    step: Any,
    primitive_id: Any,
    id_mask: Any,
) -> Any:
    """Draw `SPAN_BLOCK` consecutive pixels of one row of a flat primitive.

    Args:
        typingctx: Given by numba.
        keys: uint32, one axis; the z-buffer, changed in place.
        at: uint64; index of the first of these pixels in `keys`.
        spans: int32, (SPAN_FIELDS,); a group of spans, filled by `find_spans`.
        k: uint64; row within the group, 0 to ROWS - 1.
        column: int32; column of the first of these pixels.
        offset: float32; `column` minus the leftmost column of the group.
        step: float32; change of one over the depth from pixel to pixel, 1/m.
        primitive_id: uint32.
        id_mask: uint32; see `decode_depth`.
    """
    real = types.float32
    integer = types.uint32
    signature = types.void(keys, types.uint64, spans, types.uint64, types.int32, real, real, integer, integer)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the vector code."""
        keys, at, spans, k, column, offset, step, primitive_id, id_mask = arguments
        spans = entry_pointer(context, builder, signature.args[2], spans, k)
        start, stop, base = (builder.load(builder.gep(spans, [ir.Constant(I64, n * ROWS)])) for n in range(3))
        columns = arange(builder, I32, SPAN_BLOCK) + column
        inverse_depth = (arange(builder, F32, SPAN_BLOCK) + offset) * step + builder.bitcast(base, F32)
        is_inside = (columns >= start) & (columns < stop)
        first_key = entry_pointer(context, builder, signature.args[0], keys, at)
        _write_nearer(first_key, inverse_depth, primitive_id, id_mask, is_inside)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def draw_round_block(
    typingctx: Any, keys: Any, at: Any, ray: Any, eye: Any, slab: Any, count: Any, primitive_id: Any, id_mask: Any
) -> Any:
    """Draw up to `BLOCK` consecutive pixels of one row of a cylinder or an ellipsoid.

    In axes in which the solid is the unit cylinder or the unit ball, a ray is `eye + t * direction` with t the depth.
    It enters the solid at

        t = (-b - sqrt(b^2 - a c)) / a,   a = direction . direction,   b = eye . direction,   c = eye . eye - 1.

    A cylinder leaves the third entries out of a, b and c; its flat ends bound t in addition. The third entry of the
    direction is the same along a row, so what it adds to a and b is given once.

    Args:
        typingctx: Given by numba.
        keys: uint32, one axis; the z-buffer, changed in place.
        at: uint64; index of the first of these pixels in `keys`.
        ray: Four float32: first entry of the direction and its change from pixel to pixel; the same of the second
            entry.
        eye: Five float32: first and second entry of the eye; what the third entries add to a; what they add to b; c.
        slab: Two float32: t at which a ray comes between the planes of a cylinder's ends, and t at which it leaves
            again; -1e30 and 1e30 for an ellipsoid.
        count: int32; how many of the pixels to draw.
        primitive_id: uint32; of the curved part. The flat end of a cylinder has the next id.
        id_mask: uint32; see `decode_depth`.
    """
    ray, eye, slab = (types.UniTuple(types.float32, length) for length in (4, 5, 2))
    signature = types.void(keys, types.uint64, ray, eye, slab, types.int32, types.uint32, types.uint32)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the vector code."""
        keys, at, ray, eye, slab, count, primitive_id, id_mask = arguments
        ray, eye, slab = (cgutils.unpack_tuple(builder, value) for value in (ray, eye, slab))
        pixels = arange(builder, F32, BLOCK)
        x, y = pixels * ray[1] + ray[0], pixels * ray[3] + ray[2]
        a, b = (x * x + y * y + eye[2]).maximum(1e-12), x * eye[0] + y * eye[1] + eye[3]
        discriminant = b * b - a * eye[4]
        root = discriminant.maximum(0.0).call("sqrt")
        enter, leave = (b * -1.0 - root) / a, ((root - b) / a).minimum(slab[1])
        is_side = enter > slab[0]  # otherwise the ray enters through a flat end
        t = is_side.select(enter, slab[0])
        is_hit = (discriminant > 0.0) & (t < leave) & (t > 1e-12) & (arange(builder, I32, BLOCK) < count)
        next_id = builder.add(primitive_id, ir.Constant(I32, 1))
        ids = is_side.select(SimdVector.broadcast(builder, primitive_id, BLOCK), next_id)
        first_key = entry_pointer(context, builder, signature.args[0], keys, at)
        _write_nearer(first_key, 1.0 / t, ids, id_mask, is_hit)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def find_spans(
    typingctx: Any, edges: Any, at: Any, groups: Any, row: Any, count: Any, width: Any, plane: Any, spans: Any
) -> Any:
    """Find the pixels between the edges of a convex polygon, in up to `ROWS` rows.

    In each row, the span begins at the rightmost of the left edges and ends at the leftmost of the right edges.

    Args:
        typingctx: Given by numba.
        edges: float64, two axes. A group of edges is `EDGES` slopes, `EDGES` starts of left edges and `EDGES` starts of
            right edges; an edge is at column `slope * row + start`. A left edge has the right start +1e30, a right edge
            the left start -1e30, so that they bound one side only.
        at: uint64; index of the polygon's first group, counted through all rows of `edges`.
        groups: uint64; how many groups the polygon has.
        row: float64; the first row of the image.
        count: int32; how many rows to find.
        width: int32; W of the image.
        plane: Three float64: one over the depth at pixel (0, 0), its change along columns and its change along rows.
        spans: int32, (SPAN_FIELDS,); filled up to and including SPAN_RIGHT.
    """
    integer = types.int32
    real = types.float64
    signature = types.void(edges, types.uint64, types.uint64, real, integer, integer, types.UniTuple(real, 3), spans)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the vector code."""
        edges, at, groups, row, count, width, plane, spans = arguments
        plane = cgutils.unpack_tuple(builder, plane)
        rows = arange(builder, F64, ROWS) + row
        zeros = SimdVector.constant(builder, F64, [0] * ROWS)
        widths = SimdVector.broadcast(builder, builder.sitofp(width, F64), ROWS)
        left, right = (cgutils.alloca_once_value(builder, bound.value) for bound in (zeros, widths))
        with cgutils.for_range(builder, groups) as loop:
            first = builder.add(at, builder.mul(loop.index, ir.Constant(I64, EDGE_GROUP_FIELDS)))
            group = entry_pointer(context, builder, signature.args[0], edges, first)
            low, high = SimdVector(builder, builder.load(left)), SimdVector(builder, builder.load(right))
            for edge in range(EDGES):
                slope, left_start, right_start = (
                    builder.load(builder.gep(group, [ir.Constant(I64, edge + k * EDGES)])) for k in range(3)
                )
                shift = rows * slope
                low, high = (shift + left_start).maximum(low), (shift + right_start).minimum(high)
            builder.store(low.value, left)
            builder.store(high.value, right)
        low, high = SimdVector(builder, builder.load(left)), SimdVector(builder, builder.load(right))
        # The columns at or right of the left edges and left of the right ones. Clipped, because int32 has no 1e30.
        start = low.minimum(widths).call("ceil").cast(I32)
        stop = high.maximum(0.0).call("ceil").cast(I32)
        is_covered = (start < stop) & (arange(builder, I32, ROWS) < count)
        leftmost = is_covered.select(start, width).reduce("minimum")
        rightmost = is_covered.select(stop, 0).reduce("maximum")
        base = rows * plane[2] + builder.fadd(plane[0], builder.fmul(plane[1], builder.sitofp(leftmost, F64)))
        for field, values in enumerate((start, stop, base.cast(F32).bitcast(I32))):
            values.store(entry_pointer(context, builder, signature.args[7], spans, field * ROWS))
        for field, value in ((SPAN_LEFT, leftmost), (SPAN_RIGHT, rightmost)):
            builder.store(value, entry_pointer(context, builder, signature.args[7], spans, field))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def run_ends(typingctx: Any, keys: Any, at: Any, id_mask: Any) -> Any:
    """Find where runs of pixels of one primitive end, among `WORD` consecutive pixels.

    Args:
        typingctx: Given by numba.
        keys: uint32, one axis; the z-buffer. One key more than `WORD` is read.
        at: uint64; index of the first pixel in `keys`.
        id_mask: uint32; see `decode_depth`.

    Returns:
        int64; bit k is set if pixel k and the next one show different primitives.
    """
    signature = types.int64(keys, types.uint64, types.uint32)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the vector code."""
        keys, at, id_mask = arguments
        first_key = entry_pointer(context, builder, signature.args[0], keys, at)
        following = builder.gep(first_key, [ir.Constant(I64, 1)])
        pixels, followers = (SimdVector.load(builder, pointer, WORD) for pointer in (first_key, following))
        return ((pixels ^ followers) & id_mask).not_equal(0).bitmask()

    return signature, generate


@intrinsic
def lowest_bit(typingctx: Any, bits: Any) -> Any:
    """Position of the lowest set bit of an int64 that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the instruction."""
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


@intrinsic
def decode_depth_block(typingctx: Any, keys: Any, at: Any, id_mask: Any, out: Any, to: Any) -> Any:
    """Write the depth of `BLOCK` consecutive pixels, 0 where nothing is seen.

    Args:
        typingctx: Given by numba.
        keys: uint32, one axis; the z-buffer.
        at: uint64; index of the first pixel in `keys`.
        id_mask: uint32; see `decode_depth`.
        out: float32, one axis; filled with depths, m.
        to: uint64; index of the first pixel in `out`.
    """
    signature = types.void(keys, types.uint64, types.uint32, out, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the vector code."""
        keys, at, id_mask, out, to = arguments
        vector = SimdVector.load(builder, entry_pointer(context, builder, signature.args[0], keys, at), BLOCK)
        depth = vector.not_equal(0).select(decode_depths(vector, id_mask), 0.0)
        depth.store(entry_pointer(context, builder, signature.args[3], out, to))
        return context.get_dummy_value()

    return signature, generate
