"""The innermost steps of the renderer: eight pixels of a row at a time, written as vector instructions.

The compiler makes scalar code of these loops when they are written out in Python (it unrolls them before it looks for vectors),
which is five times slower; hence the one place in the project that builds LLVM code by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

#: Pixels that are done at a time; rows of keys are padded to whole blocks.
BLOCK = 8

_LEAST_BITS = int(np.float32(1e-5).view(np.int32))  # of one over the depth; nothing is drawn 100 km away, at the horizon


def _splat(builder: Any, value: Any) -> Any:
    """A vector of `BLOCK` times the same value."""
    kind = ir.VectorType(value.type, BLOCK)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), None))


@intrinsic  # type: ignore[untyped-decorator]
def raise_block(typingctx, keys, at, base, step, since, until, number):
    """Keeps the larger of old and new key in the `BLOCK` keys from `at` on.

    Args:
        typingctx: Given by numba.
        keys: int64, one axis; see `memenvs.houses.rasteriser`.
        at: uint64; first key of the block.
        base: float32; one over the depth at the first pixel.
        step: float32; its change from pixel to pixel.
        since: int32; first pixel of the block that is touched.
        until: int32; the one to stop before.
        number: int64; the surface.
    """
    signature = types.void(keys, types.uint64, types.float32, types.float32, types.int32, types.int32, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code of one block."""
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        whole, small = ir.IntType(64), ir.IntType(32)
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.VectorType(whole, BLOCK).as_pointer())
        _, _, base, step, since, until, number = arguments
        lanes = ir.Constant(ir.VectorType(small, BLOCK), list(range(BLOCK)))
        steps = ir.Constant(ir.VectorType(ir.FloatType(), BLOCK), [float(lane) for lane in range(BLOCK)])
        rise = builder.fmul(steps, _splat(builder, step), flags=("contract",))
        near = builder.fadd(rise, _splat(builder, base), flags=("contract",))
        bits = builder.bitcast(near, ir.VectorType(small, BLOCK))
        high = builder.shl(builder.zext(bits, ir.VectorType(whole, BLOCK)), ir.Constant(ir.VectorType(whole, BLOCK), [32] * BLOCK))
        new = builder.or_(high, _splat(builder, number))
        inside = builder.and_(
            builder.icmp_signed(">=", lanes, _splat(builder, since)),
            builder.icmp_signed("<", lanes, _splat(builder, until)),
        )
        least = ir.Constant(bits.type, [_LEAST_BITS] * BLOCK)
        inside = builder.and_(inside, builder.icmp_signed(">", bits, least))
        new = builder.select(inside, new, ir.Constant(ir.VectorType(whole, BLOCK), None))
        old = builder.load(place, align=8)
        builder.store(builder.select(builder.icmp_signed(">", new, old), new, old), place, align=8)
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def run_length(typingctx, keys, at, number):
    """How many of the `BLOCK` keys from `at` on, counted from the first, belong to the surface `number` (0 to `BLOCK`).

    Args:
        typingctx: Given by numba.
        keys: int64, one axis; see `memenvs.houses.rasteriser`.
        at: uint64; first key of the block.
        number: int32; the surface.
    """
    signature = types.int64(keys, types.uint64, types.int32)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code of one block."""
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        whole, small = ir.IntType(64), ir.IntType(32)
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.VectorType(whole, BLOCK).as_pointer())
        numbers = builder.trunc(builder.load(place, align=8), ir.VectorType(small, BLOCK))
        other = builder.icmp_signed("!=", numbers, _splat(builder, arguments[2]))
        mask = builder.zext(builder.bitcast(other, ir.IntType(BLOCK)), small)
        mask = builder.or_(mask, ir.Constant(small, 1 << BLOCK))
        return builder.zext(builder.cttz(mask, ir.Constant(ir.IntType(1), 1)), whole)

    return signature, generate


def _gather(builder: Any, table: Any, indices: Any) -> Any:
    """The entries of a table of 32-bit numbers at `BLOCK` places."""
    small = ir.IntType(32)
    found = ir.Constant(ir.VectorType(small, BLOCK), ir.Undefined)
    for lane in range(BLOCK):
        index = builder.zext(builder.extract_element(indices, ir.Constant(small, lane)), ir.IntType(64))
        found = builder.insert_element(found, builder.load(builder.gep(table, [index])), ir.Constant(small, lane))
    return found


@intrinsic  # type: ignore[untyped-decorator]
def mix_block(typingctx, lines, at, stride, atlas, out, to):
    """Multiplies texels with factors and writes `BLOCK` pixels as bytes.

    Args:
        typingctx: Given by numba.
        lines: float32, one axis; four lines: places in the atlas, then the factors of red, green and blue, >= 0.
        at: uint64; first entry of the block in the first line.
        stride: uint64; from line to line.
        atlas: int32, one axis; see `memenvs.houses.materials.atlas`.
        out: uint8, one axis; red, green, blue of one pixel after the other.
        to: uint64; first byte to write.
    """
    signature = types.void(lines, types.uint64, types.uint64, atlas, out, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code of one block."""
        line, table, bytes_ = (
            context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 3, 4)
        )
        _, at, stride, _, _, to = arguments
        small, real = ir.VectorType(ir.IntType(32), BLOCK), ir.VectorType(ir.FloatType(), BLOCK)

        def read(number: int) -> Any:
            """The block of one of the four lines."""
            place = builder.add(at, builder.mul(stride, ir.Constant(ir.IntType(64), number)))
            return builder.load(builder.bitcast(builder.gep(line, [place]), real.as_pointer()), align=4)

        texels = _gather(builder, table, builder.fptosi(read(0), small))
        most, packed = ir.Constant(real, [255.0] * BLOCK), ir.Constant(small, None)
        for channel in range(3):
            shift = ir.Constant(small, [8 * channel] * BLOCK)
            texel = builder.and_(builder.lshr(texels, shift), ir.Constant(small, [255] * BLOCK))
            value = builder.fmul(builder.sitofp(texel, real), read(1 + channel))
            value = builder.select(builder.fcmp_ordered("<", value, most), value, most)
            packed = builder.or_(packed, builder.shl(builder.fptosi(value, small), shift))
        four = builder.bitcast(packed, ir.VectorType(ir.IntType(8), 4 * BLOCK))
        chosen = [4 * pixel + channel for pixel in range(BLOCK) for channel in range(3)]
        order = ir.Constant(ir.VectorType(ir.IntType(32), 3 * BLOCK), chosen)
        three = builder.shuffle_vector(four, ir.Constant(four.type, ir.Undefined), order)
        builder.store(three, builder.bitcast(builder.gep(bytes_, [to]), three.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return signature, generate
