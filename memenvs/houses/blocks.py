"""The innermost steps of the renderer: sixteen pixels of a row at a time, written as vector instructions.

The compiler makes scalar code of these loops when they are written out in Python (it unrolls them before it looks for vectors),
which is five times slower; hence the one place in the project that builds LLVM code by hand.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as numba_intrinsic

from memenvs.houses.materials import ATLAS_WIDTH, LEVELS, TILE

#: Compiles a function of the renderer. No `fastmath` and no `contract` below: what the compiler then fuses depends on what it inlines, so a
#: process that compiles and one that loads its cache (or two machines) would draw some pixels differently. Division by zero gives infinity.
#: References to arrays are not counted (nothing is allocated in here) and all is one piece of code for each entry: a third faster together.
compiled: Any = numba.njit(  # type: ignore[call-overload]
    nogil=True, cache=True, _nrt=False, forceinline=True, error_model="numpy"
)
_intrinsic: Any = numba_intrinsic

#: Pixels that are done at a time; rows of keys are padded to whole blocks.
BLOCK = 16
#: Rows whose pixels are found at a time.
ROWS = 8
#: Left edges, and right edges, that are looked at together.
EDGES = 3

_PAINT_BITS = 13
#: Factor of a channel that leaves a texel as it is, as in `paint` of `flat_block`; less than eight times this is allowed.
PAINT_ONE = 1 << _PAINT_BITS

#: Keys hold float32 bits from those of 1e-5 (100 km away, the horizon) on, 28 bits of them, shifted to the top of 32.
LEAST_BITS, MOST_BITS, KEY_SHIFT = int(np.float32(1e-5).view(np.int32)), (1 << 28) - 1, 4


def _splat(builder: Any, value: Any) -> Any:
    """A vector of `BLOCK` times the same value."""
    kind = ir.VectorType(value.type, BLOCK)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(
        one, ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), None)
    )


class _Lanes:
    """Vector arithmetic on `BLOCK` float32 or int32 lanes, written shortly; operands may be Python numbers."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self.reals, self.wholes = ir.VectorType(ir.FloatType(), BLOCK), ir.VectorType(ir.IntType(32), BLOCK)

    def real(self, value: Any) -> Any:
        """Float lanes of a number, a float32 value, or lanes as they are."""
        if isinstance(value, (int, float)):
            return ir.Constant(self.reals, [float(value)] * BLOCK)
        return value if isinstance(value.type, ir.VectorType) else _splat(self.builder, value)

    def whole(self, value: int) -> Any:
        """Whole lanes of one number."""
        return ir.Constant(self.wholes, [value] * BLOCK)

    def mul(self, a: Any, b: Any) -> Any:
        """The product."""
        return self.builder.fmul(self.real(a), self.real(b))

    def add(self, a: Any, b: Any) -> Any:
        """The sum."""
        return self.builder.fadd(self.real(a), self.real(b))

    def least(self, a: Any, b: Any) -> Any:
        """The lesser of the two; b where a is not a number."""
        a, b = self.real(a), self.real(b)
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)

    def most(self, a: Any, b: Any) -> Any:
        """The greater of the two; b where a is not a number."""
        a, b = self.real(a), self.real(b)
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def bits(self, a: Any) -> Any:
        """Whole lanes as float lanes with the same bits, and the other way round."""
        return self.builder.bitcast(a, self.wholes if a.type == self.reals else self.reals)

    def place(self, u: Any, v: Any, detail: Any) -> Any:
        """Where in its picture of the atlas a texel lies: whole lanes, always inside.

        Args:
            u: Float lanes; texels to the right, of any tile, >= 0.
            v: The same downwards.
            detail: Float lanes; the square of the finest texels that one pixel covers; decides on the level of detail.
        """
        builder = self.builder
        exponent = builder.sub(builder.ashr(self.bits(detail), self.whole(23)), self.whole(126))
        level = builder.ashr(exponent, self.whole(1))
        level = builder.select(builder.icmp_signed(">", level, self.whole(0)), level, self.whole(0))
        highest = self.whole(LEVELS - 1)
        level = builder.select(builder.icmp_signed("<", level, highest), level, highest)
        scale = self.bits(builder.shl(builder.sub(self.whole(127), level), self.whole(23)))  # 1 / 2**level
        size = builder.lshr(self.whole(TILE), level)
        column, row = (
            builder.and_(builder.fptosi(self.mul(t, scale), self.wholes), builder.sub(size, self.whole(1)))
            for t in (u, v)
        )
        start = builder.sub(self.whole(ATLAS_WIDTH), builder.add(size, size))
        return self.square(row, builder.add(start, column))

    def square(self, row: Any, column: Any) -> Any:
        """Where the texel of a row and a column lies: pictures are stored in squares of 4 x 4, see `atlas`."""
        builder, three = self.builder, self.whole(3)
        i, j = builder.and_(row, three), builder.and_(column, three)
        above = builder.mul(builder.sub(row, i), self.whole(ATLAS_WIDTH))
        beside = builder.mul(builder.add(builder.sub(column, j), i), self.whole(4))
        return builder.add(builder.add(above, beside), j)

    def high_product(self, a: Any, b: Any) -> Any:
        """The upper 16 bits of the products of lanes of 16 bits."""
        small = ir.IntType(32)
        kind = ir.FunctionType(a.type, [a.type, a.type, small])
        call = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.umul.fix.v{4 * BLOCK}i16")
        return self.builder.call(call, [a, b, ir.Constant(small, 16)])

    def factors(self, light: Any, paint: Any) -> Any:
        """Light (float lanes, 0 to 1) times a colour (int64: four numbers of 16 bits), 4 * BLOCK lanes of 16 bits."""
        builder, shorts = self.builder, ir.VectorType(ir.IntType(16), BLOCK)
        amount = builder.trunc(builder.fptosi(self.mul(light, 65535), self.wholes), shorts)
        order = ir.Constant(ir.VectorType(ir.IntType(32), 4 * BLOCK), [k // 4 for k in range(4 * BLOCK)])
        spread = builder.shuffle_vector(amount, ir.Constant(shorts, ir.Undefined), order)
        return self.high_product(spread, builder.bitcast(_splat(builder, paint), spread.type))

    def gather(self, table: Any, places: Any) -> Any:
        """The entries of a table of int32 at the places."""
        found = ir.Constant(self.wholes, ir.Undefined)
        for lane in range(BLOCK):
            number = ir.Constant(ir.IntType(32), lane)
            place = self.builder.zext(self.builder.extract_element(places, number), ir.IntType(64))
            found = self.builder.insert_element(found, self.builder.load(self.builder.gep(table, [place])), number)
        return found


@_intrinsic
def raise_block(
    typingctx: Any, keys: Any, at: Any, base: Any, step: Any, since: Any, until: Any, number: Any, mask: Any
) -> Any:
    """Keeps the larger of old and new key in the `BLOCK` keys from `at` on.

    Args:
        typingctx: Given by numba.
        keys: uint32, one axis; see `make_key`.
        at: uint64; first key of the block.
        base: float32; one over the depth at the first pixel.
        step: float32; its change from pixel to pixel.
        since: int32; first pixel of the block that is touched.
        until: int32; the one to stop before.
        number: uint32; the surface.
        mask: uint32; the bits of a key that hold the number.
    """
    whole = types.int32
    signature = types.void(keys, types.uint64, types.float32, types.float32, whole, whole, types.uint32, types.uint32)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code of one block."""
        lanes = _Lanes(builder)
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), lanes.wholes.as_pointer())
        _, _, base, step, since, until, number, mask = arguments
        steps = ir.Constant(lanes.reals, [float(lane) for lane in range(BLOCK)])
        order = ir.Constant(lanes.wholes, list(range(BLOCK)))
        near = builder.sub(lanes.bits(lanes.add(lanes.mul(steps, step), base)), lanes.whole(LEAST_BITS))
        is_inside = builder.and_(
            builder.icmp_signed(">=", order, _splat(builder, since)),
            builder.icmp_signed("<", order, _splat(builder, until)),
        )
        is_inside = builder.and_(is_inside, builder.icmp_signed(">", near, lanes.whole(0)))
        most = lanes.whole(MOST_BITS)
        near = builder.shl(builder.select(builder.icmp_signed("<", near, most), near, most), lanes.whole(KEY_SHIFT))
        new = builder.or_(builder.and_(near, _splat(builder, builder.not_(mask))), _splat(builder, number))
        new = builder.select(is_inside, new, lanes.whole(0))
        old = builder.load(place, align=4)
        builder.store(builder.select(builder.icmp_unsigned(">", new, old), new, old), place, align=4)
        return context.get_dummy_value()

    return signature, generate


@compiled
def make_key(near: np.float32, number: int, mask: int) -> int:
    """The key of a pixel: one over its depth above the number of its surface; the nearer surface has the larger key.

    One over the depth is a float32, less the bits of 1e-5, cut off above 1000, without the lowest bits, in whose place the number
    stands: good to 2 parts in 100,000 where there are fewer than 4096 surfaces. 0 stands for nothing.
    """
    bits = min(max(int(np.float32(near).view(np.int32)) - LEAST_BITS, 0), MOST_BITS)
    return ((bits << KEY_SHIFT) & ~int(mask)) | int(number) if bits > 0 else 0


@compiled
def read_depth(key: np.uint32, mask: np.uint32) -> np.float32:
    """Depth from a key that is not 0, m; the middle of what has the same key."""
    bits = np.uint32(((key | mask) ^ (mask >> np.uint32(1))) >> np.uint32(KEY_SHIFT))
    return np.float32(1) / np.int32(bits + np.uint32(LEAST_BITS)).view(np.float32)


@_intrinsic
def span_rows(typingctx: Any, reals: Any, at: Any, row: Any, width: Any, spans: Any) -> Any:
    """Finds the pixels between `EDGES` left and as many right edges in `ROWS` rows.

    Args:
        typingctx: Given by numba.
        reals: float64, two axes; slope and start of each left edge, then of each right edge: columns as a function of the row.
        at: uint64; the entry (counted through all rows of `reals`) at which they stand.
        row: float64; the first row.
        width: float64; W.
        spans: int32, (2 * ROWS,); filled with the first pixel of each row, then with the ones to stop before.
    """
    signature = types.void(reals, types.uint64, types.float64, types.float64, spans)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code of `ROWS` rows."""
        real, wholes = ir.VectorType(ir.DoubleType(), ROWS), ir.VectorType(ir.IntType(32), ROWS)
        data, spans = (context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 4))

        def splat(value: Any) -> Any:
            """All lanes the same."""
            one = builder.insert_element(ir.Constant(real, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(one, ir.Constant(real, ir.Undefined), ir.Constant(wholes, None))

        def entry(number: int) -> Any:
            """All lanes one of the numbers."""
            place = builder.add(arguments[1], ir.Constant(ir.IntType(64), number))
            return splat(builder.load(builder.gep(data, [place])))

        rows = builder.fadd(splat(arguments[2]), ir.Constant(real, [float(k) for k in range(ROWS)]))
        ends = ir.Constant(real, None), splat(arguments[3])
        for side, sign in enumerate("><"):
            bound = ends[side]
            for edge in range(EDGES):
                slope, first = (entry(2 * (EDGES * side + edge) + k) for k in range(2))
                new = builder.fadd(builder.fmul(slope, rows), first)
                bound = builder.select(builder.fcmp_ordered(sign, new, bound), new, bound)
            bound = builder.select(builder.fcmp_ordered(sign, bound, ends[1 - side]), ends[1 - side], bound)
            kind = ir.FunctionType(real, [real])
            call = cgutils.get_or_insert_function(builder.module, kind, f"llvm.ceil.v{ROWS}f64")
            place = builder.gep(spans, [ir.Constant(ir.IntType(64), ROWS * side)])
            builder.store(
                builder.fptosi(builder.call(call, [bound]), wholes),
                builder.bitcast(place, wholes.as_pointer()),
                align=4,
            )
        return context.get_dummy_value()

    return signature, generate


@_intrinsic
def run_length(typingctx: Any, keys: Any, at: Any, number: Any, mask: Any) -> Any:
    """How many of the `BLOCK` keys from `at` on, counted from the first, belong to the surface `number` (0 to `BLOCK`).

    Args:
        typingctx: Given by numba.
        keys: uint32, one axis; see `make_key`.
        at: uint64; first key of the block.
        number: uint32; the surface.
        mask: uint32; the bits of a key that hold the number.
    """
    signature = types.int64(keys, types.uint64, types.uint32, types.uint32)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code of one block."""
        lanes = _Lanes(builder)
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), lanes.wholes.as_pointer())
        numbers = builder.and_(builder.load(place, align=4), _splat(builder, arguments[3]))
        is_other = builder.icmp_signed("!=", numbers, _splat(builder, arguments[2]))
        small = ir.IntType(32)
        bits = builder.zext(builder.bitcast(is_other, ir.IntType(BLOCK)), small)
        bits = builder.or_(bits, ir.Constant(small, 1 << BLOCK))
        return builder.zext(builder.cttz(bits, ir.Constant(ir.IntType(1), 1)), ir.IntType(64))

    return signature, generate


@_intrinsic
def flat_block(
    typingctx: Any,
    ray: Any,
    eye: Any,
    light: Any,
    detail: Any,
    base: Any,
    paint: Any,
    places: Any,
    factors: Any,
    at: Any,
) -> Any:
    """Finds texels and factors of `BLOCK` pixels of a flat surface.

    Args:
        typingctx: Given by numba.
        ray: Six float32: one over the depth at the first pixel and its change from pixel to pixel, then the same two numbers of
            what the texel coordinates u and v change by along the ray.
        eye: Two float32; u and v at the eye.
        light: Four float32 (a, b, c, d): light is the lesser of a + b v and c + d v, but within 0.3 to 1.
        detail: float32; times depth cubed, the square of the finest texels that one pixel covers.
        base: int32; place of the picture in the atlas.
        paint: int64; three factors of 16 bits, `PAINT_ONE` is 1.
        places: int32, one axis; filled with places in the atlas.
        factors: int64, one axis; filled with paint times light.
        at: uint64; the first pixel of the block.
    """
    signature = types.void(ray, eye, light, types.float32, types.int32, types.int64, places, factors, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code of one block."""
        lanes = _Lanes(builder)
        ray, eye, light = (cgutils.unpack_tuple(builder, arguments[k]) for k in range(3))
        steps = ir.Constant(lanes.reals, [float(lane) for lane in range(BLOCK)])
        near, u, v = (lanes.add(ray[k], lanes.mul(steps, ray[k + 1])) for k in (0, 2, 4))
        z = builder.fdiv(lanes.real(1), near)
        u, v = lanes.add(eye[0], lanes.mul(z, u)), lanes.add(eye[1], lanes.mul(z, v))
        bright = lanes.least(lanes.add(light[0], lanes.mul(light[1], v)), lanes.add(light[2], lanes.mul(light[3], v)))
        bright = lanes.most(lanes.least(bright, 1), 0.3)
        place = lanes.place(u, v, lanes.mul(lanes.mul(z, z), lanes.mul(z, arguments[3])))
        place = builder.add(place, _splat(builder, arguments[4]))
        for value, number in ((place, 6), (lanes.factors(bright, arguments[5]), 7)):
            data = context.make_array(signature.args[number])(context, builder, arguments[number]).data
            to = builder.bitcast(builder.gep(data, [arguments[8]]), value.type.as_pointer())
            builder.store(value, to, align=4)
        return context.get_dummy_value()

    return signature, generate


@_intrinsic
def level_block(
    typingctx: Any,
    u: Any,
    u_i: Any,
    v: Any,
    v_i: Any,
    mask: Any,
    start: Any,
    base: Any,
    paint: Any,
    places: Any,
    factors: Any,
    at: Any,
) -> Any:
    """As `flat_block`, for a surface whose depth is the same in all of a row: floors, tops of tables. Light is 1.

    Args:
        typingctx: Given by numba.
        u: float32; texel column at the first pixel, in texels of the right level of detail, >= 0.
        u_i: float32; its change from pixel to pixel.
        v: float32; texel row.
        v_i: float32; its change from pixel to pixel.
        mask: int32; texels of a row of the picture at that level, less 1.
        start: int32; first column of that level.
        base: As in `flat_block`.
        paint: As in `flat_block`.
        places: As in `flat_block`.
        factors: As in `flat_block`.
        at: As in `flat_block`.
    """
    real, whole = types.float32, types.int32
    signature = types.void(real, real, real, real, whole, whole, whole, types.int64, places, factors, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code of one block."""
        lanes = _Lanes(builder)
        steps = ir.Constant(lanes.reals, [float(lane) for lane in range(BLOCK)])
        mask = _splat(builder, arguments[4])
        column, row = (
            builder.and_(
                builder.fptosi(lanes.add(arguments[k], lanes.mul(steps, arguments[k + 1])), lanes.wholes), mask
            )
            for k in (0, 2)
        )
        place = lanes.square(row, builder.add(column, _splat(builder, arguments[5])))
        place = builder.add(place, _splat(builder, arguments[6]))
        for value, number in ((place, 8), (_splat(builder, arguments[7]), 9)):
            data = context.make_array(signature.args[number])(context, builder, arguments[number]).data
            to = builder.bitcast(builder.gep(data, [arguments[10]]), value.type.as_pointer())
            builder.store(value, to, align=4)
        return context.get_dummy_value()

    return signature, generate


@_intrinsic
def any_block(typingctx: Any, numbers: Any, base: Any, paint: Any, places: Any, factors: Any, at: Any) -> Any:
    """Finds texels and factors of `BLOCK` pixels of any surface.

    Args:
        typingctx: Given by numba.
        numbers: float32, (4 * BLOCK,); u, v, detail (see `_Lanes.place`) and light (0 to 1) of each pixel.
        base: As in `flat_block`.
        paint: As in `flat_block`.
        places: As in `flat_block`.
        factors: As in `flat_block`.
        at: As in `flat_block`.
    """
    signature = types.void(numbers, types.int32, types.int64, places, factors, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code of one block."""
        lanes = _Lanes(builder)
        vectors = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        vectors = builder.bitcast(vectors, lanes.reals.as_pointer())
        u, v, detail, light = (
            builder.load(builder.gep(vectors, [ir.Constant(ir.IntType(32), k)]), align=4) for k in range(4)
        )
        place = builder.add(lanes.place(u, v, detail), _splat(builder, arguments[1]))
        for value, number in ((place, 3), (lanes.factors(light, arguments[2]), 4)):
            data = context.make_array(signature.args[number])(context, builder, arguments[number]).data
            to = builder.bitcast(builder.gep(data, [arguments[5]]), value.type.as_pointer())
            builder.store(value, to, align=4)
        return context.get_dummy_value()

    return signature, generate


@_intrinsic
def mix_block(typingctx: Any, places: Any, factors: Any, at: Any, atlas: Any, out: Any, to: Any) -> Any:
    """Fetches `BLOCK` texels, multiplies them with their factors and writes them as bytes.

    Args:
        typingctx: Given by numba.
        places: int32, one axis; places in the atlas.
        factors: int64, one axis; see `flat_block`.
        at: uint64; first pixel of the block.
        atlas: int32, one axis; see `memenvs.houses.materials.atlas`.
        out: uint8, one axis; red, green, blue of one pixel after the other.
        to: uint64; first byte to write.
    """
    signature = types.void(places, factors, types.uint64, atlas, out, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code of one block."""
        lanes = _Lanes(builder)
        data = [context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 1, 3, 4)]
        bytes_, shorts = (ir.VectorType(ir.IntType(bits), 4 * BLOCK) for bits in (8, 16))
        places = builder.load(builder.bitcast(builder.gep(data[0], [arguments[2]]), lanes.wholes.as_pointer()), align=4)
        factor = builder.load(builder.bitcast(builder.gep(data[1], [arguments[2]]), shorts.as_pointer()), align=8)
        texels = builder.zext(builder.bitcast(lanes.gather(data[2], places), bytes_), shorts)
        value = lanes.high_product(builder.shl(texels, ir.Constant(shorts, [8] * (4 * BLOCK))), factor)
        value = builder.lshr(value, ir.Constant(shorts, [_PAINT_BITS - 8] * (4 * BLOCK)))
        most = ir.Constant(shorts, [255] * (4 * BLOCK))
        four = builder.trunc(builder.select(builder.icmp_unsigned("<", value, most), value, most), bytes_)
        chosen = [4 * pixel + channel for pixel in range(BLOCK) for channel in range(3)]
        order = ir.Constant(ir.VectorType(ir.IntType(32), 3 * BLOCK), chosen)
        three = builder.shuffle_vector(four, ir.Constant(bytes_, ir.Undefined), order)
        place = builder.bitcast(builder.gep(data[3], [arguments[5]]), three.type.as_pointer())
        builder.store(three, place, align=1)
        return context.get_dummy_value()

    return signature, generate
