"""The innermost steps of shading, some pixels of a row at a time: where in the atlas a pixel's texel lies, how light it is, its bytes."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils

from memenvs.houses.rendering.kernels.simd import (
    BYTE,
    LONG,
    REAL,
    SHORT,
    WHOLE,
    Lanes,
    gather,
    intrinsic,
    pointer,
    steps,
)
from memenvs.houses.rendering.kernels.zbuffer import BLOCK, depths
from memenvs.houses.rendering.materials import ATLAS_WIDTH, LEVELS, TILE

#: Pixels of a run that are done at a time: most runs are short.
RUN = 8

_PAINT_BITS = 13
#: Factor of a channel that leaves a texel as it is, as in `paint` of `flat_block`; less than eight times this is allowed.
PAINT_ONE = 1 << _PAINT_BITS

# Columns of a surface's look. U_EYE..V_0: texel coordinates at the eye, and what they change by along the ray, as a function of the
# pixel. DETAIL, BASE: level of detail (times depth cubed, the square of the finest texels that one pixel covers) and place of the
# picture. LOW_0..HIGH_V: how light falls off towards floor and ceiling: the lesser of LOW_0 + LOW_V v and HIGH_0 + HIGH_V v.
U_EYE, U_I, U_J, U_0, V_EYE, V_I, V_J, V_0 = range(8)
DETAIL, BASE, LOW_0, LOW_V, HIGH_0, HIGH_V, READY = range(8, 15)
# Curved surfaces have coordinates u, v, w in which they are the unit cylinder or ball; more of them, the light from its normal, and how
# often the picture goes around and down.
W_EYE, W_J, W_0, LIT_0, LIT_X, LIT_Y, LIT_Z, LONG_X, LONG_Y, LONG_Z, TIMES_U, TIMES_V = range(15, 27)
LOOK_SIZE = 27


def _place(u: Lanes, v: Lanes, detail: Lanes) -> Lanes:
    """Where in its picture of the atlas a texel lies: whole numbers, always inside.

    Args:
        u: Real; texels to the right, of any tile, >= 0.
        v: The same downwards.
        detail: Real; the square of the finest texels that one pixel covers; decides on the level of detail.
    """
    level = ((detail.most(1.0).bits(WHOLE) - (126 << 23)) >> 24).least(LEVELS - 1)  # half the exponent
    tile, one = (Lanes.constant(u.builder, WHOLE, [number] * len(u)) for number in (TILE, 127 << 23))
    size, scale = tile >> level, (one - (level << 23)).bits(REAL)  # TILE / 2**level, 1 / 2**level
    column, row = ((t * scale).cast(WHOLE) & (size - 1) for t in (u, v))
    return _square(row, column - (size + size) + ATLAS_WIDTH)


def _square(row: Lanes, column: Lanes) -> Lanes:
    """Where the texel of a row and a column lies: pictures are stored in squares of 4 x 4, see `atlas`."""
    i, j = row & 3, column & 3
    return (row - i) * ATLAS_WIDTH + (column - j + i) * 4 + j


def _high_product(a: Lanes, b: Lanes) -> Lanes:
    """The upper 16 bits of the products of numbers of 16 bits."""
    return a.call("umul.fix", b, ir.Constant(WHOLE, 16))


def _factors(light: Lanes, paint: Any) -> Lanes:
    """Light (0 to 1) times a colour (int64: four numbers of 16 bits): four numbers of 16 bits for each pixel."""
    amount = (light * 65535.0).cast(WHOLE).cast(SHORT).shuffle([k // 4 for k in range(4 * RUN)])
    return _high_product(amount, Lanes.of(light.builder, paint, RUN).bits(SHORT, 4 * RUN))


def _write(context: Any, builder: Any, kinds: Any, line: Any, place: Lanes, factors: Lanes) -> Any:
    """Writes places and factors into the arrays of these names, from a pixel on: the three of `line`."""
    for kind, array, values in zip(kinds, line, (place, factors), strict=False):
        values.store(pointer(context, builder, kind, array, line[2]))
    return context.get_dummy_value()


def _entries(context: Any, builder: Any, kind: Any, look: Any) -> Any:
    """A function that reads the entry of a look."""
    first = pointer(context, builder, kind, look)
    return lambda at: builder.load(builder.gep(first, [ir.Constant(LONG, at)]))


@intrinsic
def flat_block(
    typingctx: Any, look: Any, near: Any, row: Any, column: Any, paint: Any, places: Any, factors: Any, at: Any
) -> Any:
    """Finds texels and factors of `RUN` pixels of a flat surface.

    Args:
        typingctx: Given by numba.
        look: float32, one axis.
        near: Two float32: one over the depth at the first pixel and its change from pixel to pixel.
        row: float32; row of the pixels.
        column: float32; column of the first.
        paint: int64; three factors of 16 bits, `PAINT_ONE` is 1.
        places: int32, one axis; filled with places in the atlas.
        factors: int64, one axis; filled with paint times light.
        at: uint64; the first pixel in both.
    """
    real = types.float32
    signature = types.void(look, types.UniTuple(real, 2), real, real, types.int64, places, factors, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code."""
        look, near, row, column, paint, *line = arguments
        entry = _entries(context, builder, signature.args[0], look)
        near_0, near_i = cgutils.unpack_tuple(builder, near)
        along = steps(builder, REAL, RUN)
        z = 1.0 / (along * near_i + near_0)
        u, v = (
            z * ((along + column) * entry(k + U_I) + builder.fadd(builder.fmul(entry(k + U_J), row), entry(k + U_0)))
            + entry(k + U_EYE)
            for k in (U_EYE, V_EYE)
        )
        light = (v * entry(LOW_V) + entry(LOW_0)).least(v * entry(HIGH_V) + entry(HIGH_0)).least(1.0).most(0.3)
        place = _place(u, v, z * z * (z * entry(DETAIL))) + builder.fptosi(entry(BASE), WHOLE)
        return _write(context, builder, signature.args[5:], line, place, _factors(light, paint))

    return signature, generate


@intrinsic
def level_block(
    typingctx: Any, u: Any, v: Any, size: Any, base: Any, paint: Any, places: Any, factors: Any, at: Any
) -> Any:
    """As `flat_block`, for a surface whose depth is the same in all of a row: floors, tops of tables. Light is 1.

    Args:
        typingctx: Given by numba.
        u: Two float32: texel column at the first pixel, in texels of the right level of detail, >= 0, and its change from pixel to pixel.
        v: The same for the texel row.
        size: int32; texels of a row of the picture at that level.
        base: int32; place of the picture in the atlas.
        paint: As in `flat_block`.
        places: As in `flat_block`.
        factors: As in `flat_block`.
        at: As in `flat_block`.
    """
    two = types.UniTuple(types.float32, 2)
    signature = types.void(two, two, types.int32, types.int32, types.int64, places, factors, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code."""
        _, _, size, base, paint, *line = arguments
        along, inside = steps(builder, REAL, RUN), builder.sub(size, ir.Constant(WHOLE, 1))
        (u, u_i), (v, v_i) = (cgutils.unpack_tuple(builder, arguments[k]) for k in range(2))
        column, row = ((along * change + first).cast(WHOLE) & inside for first, change in ((u, u_i), (v, v_i)))
        start = builder.sub(ir.Constant(WHOLE, ATLAS_WIDTH), builder.add(size, size))
        factor = Lanes.of(builder, paint, RUN)
        return _write(context, builder, signature.args[5:], line, _square(row, column + start) + base, factor)

    return signature, generate


def _turn(y: Lanes, x: Lanes) -> Lanes:
    """Angle of (x, y) as a part of a full turn, -0.5 to 0.5; good to 1e-3."""
    tall, wide = y.call("fabs"), x.call("fabs")
    q = tall.least(wide) / (tall.most(wide) + 1e-12)
    angle = q * (q * q * (q * q * 0.0185 - 0.0517) + 0.15915)
    angle = (tall > wide).choose(angle * -1.0 + 0.25, angle)
    angle = (x < 0.0).choose(angle * -1.0 + 0.5, angle)
    return (y < 0.0).choose(angle * -1.0, angle)


@intrinsic
def round_block(
    typingctx: Any, look: Any, keys: Any, first: Any, mask: Any, row: Any, column: Any, paint: Any, places: Any,
    factors: Any, at: Any,
) -> Any:  # fmt: skip
    """As `flat_block`, for the curved part of a cylinder and for an ellipsoid.

    Args:
        typingctx: Given by numba.
        look: As in `flat_block`.
        keys: uint32, one axis; see `memenvs.houses.rendering.kernels.zbuffer.read_depth`.
        first: uint64; key of the first pixel.
        mask: uint32; the bits of a key that hold the number.
        row: As in `flat_block`.
        column: As in `flat_block`.
        paint: As in `flat_block`.
        places: As in `flat_block`.
        factors: As in `flat_block`.
        at: As in `flat_block`.
    """
    real, long = types.float32, types.uint64
    signature = types.void(look, keys, long, types.uint32, real, real, types.int64, places, factors, long)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code."""
        look, keys, first, mask, row, column, paint, *line = arguments
        entry = _entries(context, builder, signature.args[0], look)
        z = depths(Lanes.load(builder, pointer(context, builder, signature.args[1], keys, first), RUN), mask)
        columns = steps(builder, REAL, RUN) + column
        x, y = (
            z * (columns * entry(k + U_I) + builder.fadd(builder.fmul(entry(k + U_J), row), entry(k + U_0)))
            + entry(k + U_EYE)
            for k in (U_EYE, V_EYE)
        )
        w = z * builder.fadd(builder.fmul(entry(W_J), row), entry(W_0)) + entry(W_EYE)
        length = (x * x * entry(LONG_X) + y * y * entry(LONG_Y) + w * w * entry(LONG_Z)).call("sqrt")
        light = (x * entry(LIT_X) + y * entry(LIT_Y) + w * entry(LIT_Z)) / length + entry(LIT_0)
        light = (light * (w * entry(LOW_V) + entry(LOW_0)).least(1.0).most(0.5)).least(1.0)
        u, v = (_turn(y, x) + 0.5) * entry(TIMES_U), (w * -0.5 + 0.5) * entry(TIMES_V)
        place = _place(u, v, z * z * entry(DETAIL)) + builder.fptosi(entry(BASE), WHOLE)
        return _write(context, builder, signature.args[7:], line, place, _factors(light, paint))

    return signature, generate


@intrinsic
def mix_block(typingctx: Any, places: Any, factors: Any, at: Any, atlas: Any, out: Any, to: Any) -> Any:
    """Fetches `BLOCK` texels, multiplies them with their factors and writes them as bytes.

    Args:
        typingctx: Given by numba.
        places: int32, one axis; places in the atlas.
        factors: int64, one axis; see `flat_block`.
        at: uint64; first pixel of the block.
        atlas: int32, one axis; see `memenvs.houses.rendering.materials.atlas`.
        out: uint8, one axis; red, green, blue of one pixel after the other.
        to: uint64; first byte to write.
    """
    signature = types.void(places, factors, types.uint64, atlas, out, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code."""
        places, factors, at, atlas, out, to = arguments
        factors = Lanes.load(builder, pointer(context, builder, signature.args[1], factors, at), BLOCK)
        places = pointer(context, builder, signature.args[0], places, at)
        texels = gather(builder, pointer(context, builder, signature.args[3], atlas), places, BLOCK)
        texels = texels.bits(BYTE, 4 * BLOCK).cast(SHORT)
        value = _high_product(texels << 8, factors.bits(SHORT, 4 * BLOCK)) >> (_PAINT_BITS - 8)
        chosen = [4 * pixel + channel for pixel in range(BLOCK) for channel in range(3)]
        three = value.least(255).cast(BYTE).shuffle(chosen)
        three.store(pointer(context, builder, signature.args[4], out, to))
        return context.get_dummy_value()

    return signature, generate
