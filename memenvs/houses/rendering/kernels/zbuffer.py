"""The innermost steps of the z-buffer, some pixels of a row at a time: what a key is, raising keys, reading them."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils

from memenvs.houses.rendering.kernels.simd import DOUBLE, LONG, REAL, WHOLE, Lanes, compiled, intrinsic, pointer, steps

#: Pixels that are done at a time; rows of keys are padded to whole blocks, and one more follows the last.
BLOCK = 16
#: Pixels of a surface that are done at a time when keys are raised.
SPAN = 8
#: Rows whose pixels are found at a time.
ROWS = 8
#: Entries of such a group of rows, int32, (SPANS_SIZE,): for each row its first pixel, the one to stop before, the bits of float32 one
#: over the depth at the first pixel of all; then first pixel of all, the one to stop before, surface, first row, how many rows.
SPAN_START, SPAN_STOP, SPAN_NUMBER, SPAN_ROW, SPAN_COUNT = range(3 * ROWS, 3 * ROWS + 5)
SPANS_SIZE = 4 * ROWS
#: Edges of a polygon that are looked at together, and the numbers that describe them; see `narrow_rows`.
EDGES = 4
GROUP = 3 * EDGES

#: Keys hold float32 bits from those of 1e-5 (100 km away, the horizon) on, 28 bits of them, shifted to the top of 32.
LEAST, MOST_BITS, KEY_SHIFT = 1e-5, (1 << 28) - 1, 4
LEAST_BITS = int(np.float32(LEAST).view(np.int32))


@compiled
def read_depth(key: np.uint32, mask: np.uint32) -> np.float32:
    """Depth from a key that is not 0, m; the middle of what has the same key.

    A key is one over the depth of a pixel, above the number of its surface in the bits of `mask`: the nearer surface has the larger
    key, 0 stands for nothing. One over the depth is a float32, less the bits of 1e-5, cut off above 1000, without the lowest bits, in
    whose place the number stands: good to 2 parts in 100,000 where there are fewer than 4096 surfaces.
    """
    bits = np.uint32(((key | mask) ^ (mask >> np.uint32(1))) >> np.uint32(KEY_SHIFT))
    return np.float32(1) / np.int32(bits + np.uint32(LEAST_BITS)).view(np.float32)


def depths(keys: Lanes, mask: Any) -> Lanes:
    """As `read_depth`, of many keys."""
    half = keys.builder.lshr(mask, ir.Constant(WHOLE, 1))
    return 1.0 / ((((keys | mask) ^ half) >> KEY_SHIFT) + LEAST_BITS).bits(REAL)


def _raise(keys: Any, near: Lanes, number: Any, mask: Any, is_inside: Lanes) -> None:
    """Keeps the larger of the keys at a pointer and those that follow from one over the depth and the number of the surface."""
    is_inside = is_inside & (near > LEAST)
    bits = (near.bits(WHOLE) - LEAST_BITS).least(MOST_BITS) << KEY_SHIFT
    new = is_inside.choose((bits & near.builder.not_(mask)) | number, 0)
    old = Lanes.load(near.builder, keys, len(near))
    larger = near.builder.icmp_unsigned(">", new.value, old.value)
    Lanes(near.builder, larger).choose(new, old).store(keys)


@intrinsic
def raise_span(
    typingctx: Any, keys: Any, at: Any, spans: Any, k: Any, column: Any, ahead: Any, step: Any, number: Any, mask: Any
) -> Any:
    """Keeps the larger of old and new key in `SPAN` keys of a row that belong to a flat surface.

    Args:
        typingctx: Given by numba.
        keys: uint32, one axis; see `read_depth`.
        at: uint64; first key.
        spans: See `span_rows`.
        k: uint64; row, counted from the first of `spans`.
        column: int32; of the first key.
        ahead: float32; how many columns this is after the one for which `spans` hold one over the depth.
        step: float32; change of one over the depth from pixel to pixel.
        number: uint32; the surface.
        mask: uint32; the bits of a key that hold the number.
    """
    real, small = types.float32, types.uint32
    signature = types.void(keys, types.uint64, spans, types.uint64, types.int32, real, real, small, small)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code."""
        keys, at, spans, k, column, ahead, step, number, mask = arguments
        spans = pointer(context, builder, signature.args[2], spans, k)
        start, stop, base = (builder.load(builder.gep(spans, [ir.Constant(LONG, n * ROWS)])) for n in range(3))
        columns = steps(builder, WHOLE, SPAN) + column
        near = (steps(builder, REAL, SPAN) + ahead) * step + builder.bitcast(base, REAL)
        is_inside = (columns >= start) & (columns < stop)
        _raise(pointer(context, builder, signature.args[0], keys, at), near, number, mask, is_inside)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def raise_ball(
    typingctx: Any, keys: Any, at: Any, ray: Any, eye: Any, slab: Any, count: Any, number: Any, mask: Any
) -> Any:
    """Keeps the larger of old and new key in `BLOCK` keys of a row that belong to a round solid.

    In axes in which the solid is the unit cylinder or ball, a ray is at the eye plus t times its direction, t is depth.

    Args:
        typingctx: Given by numba.
        keys: uint32, one axis; see `read_depth`.
        at: uint64; first key.
        ray: Four float32: first entry of the direction and its change from pixel to pixel, then the same of the second.
        eye: Five float32: first and second entry of the eye; what the third entries add to direction . direction, to eye . direction and
            to eye . eye - 1 (of the first two). The third entries count for a ball alone.
        slab: Two float32: t at which a ray comes between the ends of a cylinder, and leaves.
        count: int32; how many of the keys to touch.
        number: uint32; the surface; the ends of a cylinder have the next number.
        mask: uint32; the bits of a key that hold the number.
    """
    ray, eye, slab = (types.UniTuple(types.float32, count) for count in (4, 5, 2))
    signature = types.void(keys, types.uint64, ray, eye, slab, types.int32, types.uint32, types.uint32)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code."""
        ray, eye, slab = (cgutils.unpack_tuple(builder, arguments[k]) for k in (2, 3, 4))
        along = steps(builder, REAL, BLOCK)
        x, y = along * ray[1] + ray[0], along * ray[3] + ray[2]
        a, b = (x * x + y * y + eye[2]).most(1e-12), x * eye[0] + y * eye[1] + eye[3]
        root = b * b - a * eye[4]
        wide = root.most(0.0).call("sqrt")
        enter, leave = (b * -1.0 - wide) / a, ((wide - b) / a).least(slab[1])
        is_side = enter > slab[0]
        t = is_side.choose(enter, slab[0])
        is_met = (root > 0.0) & (t < leave) & (t > 1e-12) & (steps(builder, WHOLE, BLOCK) < arguments[5])
        next_ = builder.add(arguments[6], ir.Constant(WHOLE, 1))
        numbers = is_side.choose(Lanes.of(builder, arguments[6], BLOCK), next_)
        place = pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        _raise(place, 1.0 / t, numbers, arguments[7], is_met)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def span_rows(
    typingctx: Any, reals: Any, at: Any, groups: Any, row: Any, count: Any, width: Any, near: Any, spans: Any
) -> Any:
    """Finds the pixels between the edges of a polygon in up to `ROWS` rows.

    Args:
        typingctx: Given by numba.
        reals: float64, two axes; for each group of edges `EDGES` slopes, as many starts of left edges and of right ones; an edge is at
            column slope * row + start.
        at: uint64; the entry (counted through all rows of `reals`) at which they stand.
        groups: uint64; how many groups of edges.
        row: float64; the first row.
        count: int32; how many rows count.
        width: int32; W.
        near: Three float64: one over the depth at pixel (0, 0), its change along columns and along rows.
        spans: int32, (SPANS_SIZE,); filled up to SPAN_STOP.
    """
    whole, real = types.int32, types.float64
    signature = types.void(reals, types.uint64, types.uint64, real, whole, whole, types.UniTuple(real, 3), spans)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code."""
        reals, at, groups, row, count, width, near, spans = arguments
        near = cgutils.unpack_tuple(builder, near)
        rows = steps(builder, DOUBLE, ROWS) + row
        ends = Lanes.constant(builder, DOUBLE, [0] * ROWS), Lanes.of(builder, builder.sitofp(width, DOUBLE), ROWS)
        left, right = (cgutils.alloca_once_value(builder, end.value) for end in ends)
        with cgutils.for_range(builder, groups) as loop:
            first = builder.add(at, builder.mul(loop.index, ir.Constant(LONG, GROUP)))
            edges = pointer(context, builder, signature.args[0], reals, first)
            low, high = Lanes(builder, builder.load(left)), Lanes(builder, builder.load(right))
            for edge in range(EDGES):
                slope, start, stop = (
                    builder.load(builder.gep(edges, [ir.Constant(LONG, edge + k * EDGES)])) for k in range(3)
                )
                across = rows * slope
                low, high = (across + start).most(low), (across + stop).least(high)
            builder.store(low.value, left)
            builder.store(high.value, right)
        low, high = Lanes(builder, builder.load(left)), Lanes(builder, builder.load(right))
        start = low.least(ends[1]).call("ceil").cast(WHOLE)
        stop = high.most(0.0).call("ceil").cast(WHOLE)
        is_some = (start < stop) & (steps(builder, WHOLE, ROWS) < count)
        leftmost = is_some.choose(start, width).fold("least")
        rightmost = is_some.choose(stop, 0).fold("most")
        base = rows * near[2] + (builder.fadd(near[0], builder.fmul(near[1], builder.sitofp(leftmost, DOUBLE))))
        for number, values in enumerate((start, stop, base.cast(REAL).bits(WHOLE))):
            values.store(pointer(context, builder, signature.args[7], spans, number * ROWS))
        for number, value in ((SPAN_START, leftmost), (SPAN_STOP, rightmost)):
            builder.store(value, pointer(context, builder, signature.args[7], spans, number))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def run_length(typingctx: Any, keys: Any, at: Any, number: Any, mask: Any) -> Any:
    """How many of the `BLOCK` keys from `at` on, counted from the first, belong to the surface `number` (0 to `BLOCK`).

    Args:
        typingctx: Given by numba.
        keys: uint32, one axis; see `read_depth`.
        at: uint64; first key of the block.
        number: uint32; the surface.
        mask: uint32; the bits of a key that hold the number.
    """
    signature = types.int64(keys, types.uint64, types.uint32, types.uint32)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code."""
        place = pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        is_other = (Lanes.load(builder, place, BLOCK) & arguments[3]).differs(arguments[2])
        bits = builder.or_(builder.zext(is_other.mask(), LONG), ir.Constant(LONG, 1 << BLOCK))
        return builder.cttz(bits, ir.Constant(ir.IntType(1), 1))

    return signature, generate


@intrinsic
def depth_block(typingctx: Any, keys: Any, at: Any, mask: Any, out: Any, to: Any) -> Any:
    """Writes the depth of `BLOCK` pixels, 0 where there is nothing.

    Args:
        typingctx: Given by numba.
        keys: uint32, one axis; see `read_depth`.
        at: uint64; first key.
        mask: uint32; the bits of a key that hold the number.
        out: float32, one axis; m.
        to: uint64; first entry to write.
    """
    signature = types.void(keys, types.uint64, types.uint32, out, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code."""
        keys = Lanes.load(builder, pointer(context, builder, signature.args[0], *arguments[:2]), BLOCK)
        depth = keys.differs(0).choose(depths(keys, arguments[2]), 0.0)
        depth.store(pointer(context, builder, signature.args[3], *arguments[3:]))
        return context.get_dummy_value()

    return signature, generate
