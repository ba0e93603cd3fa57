"""Shading of 8 or 16 pixels of a row at once: their texels, light and bytes.

In: the coefficients of one visible primitive (`SHADING_FIELDS` float32) and the position of a few pixels in the image.
Out, in two steps:

1. `horizontal_block`, `curved_block` and those of `memenvs.houses.rendering.kernels.vertical` write a texel's index in
   the texture atlas and a light factor for each pixel, each for another kind of surface.
2. `modulate_block` fetches those texels, multiplies them with the factors and writes red, green and blue.

Texture coordinates are affine functions of the pixel times its depth (perspective-correct texture mapping), and the
mipmap level comes from the number of texels that a pixel covers. Colours are multiplied as 16-bit fixed point numbers,
four channels of four pixels in one register.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils

from memenvs.houses.rendering.kernels.simd import (
    F32,
    I8,
    I16,
    I32,
    I64,
    SimdVector,
    arange,
    entry_pointer,
    gather,
    intrinsic,
    prefetch,
)
from memenvs.houses.rendering.kernels.zbuffer import BLOCK, decode_depths
from memenvs.houses.rendering.materials import ATLAS_WIDTH, MIP_LEVELS, TEXTURE_SIZE

#: Pixels of a block of step 1. Most runs of pixels of one primitive are short, so it is less than `BLOCK`.
TEXEL_BLOCK = 8
#: How many pixels ahead texels are prefetched: larger images use more of the atlas than the processor's caches hold.
PREFETCH_PIXELS = 128
#: Of how many pixels one is prefetched: neighbours mostly share a square of texels, which is one line of the caches.
_PREFETCH_STEP = 4
#: A run of pixels of one primitive in a row is one integer of four fields: its primitive's id; its row within the band
#: of rows that are shaded together; its first column; the column to stop before. So is a block of a run, whose last
#: field does not matter. The last three fields have this many bits each.
RUN_FIELD_BITS = 13
RUN_FIELD = (1 << RUN_FIELD_BITS) - 1

_TINT_BITS = 13
#: Fixed-point value of a tint that leaves a texel's channel as it is. A tint must be less than eight times this.
TINT_ONE = 1 << _TINT_BITS

# Fields of a primitive's shading coefficients. Texture coordinates in texels at pixel (column i, row j) and depth z:
# u = U_EYE + z * (U_I * i + U_J * j + U_0), v likewise.
U_EYE, U_I, U_J, U_0, V_EYE, V_I, V_J, V_0 = range(8)
# FOOTPRINT: a pixel at depth z covers FOOTPRINT * z**3 texels of a flat face and FOOTPRINT * z**2 texels of a curved
# one, counted in the finest mipmap level. ATLAS_START: index of the texture in the atlas. The light falls off towards
# floor and ceiling: it is the smaller of FLOOR_0 + FLOOR_V * v and CEILING_0 + CEILING_V * v, on curved surfaces
# FLOOR_0 + FLOOR_V * w. IS_READY: 1 once the fields are filled.
FOOTPRINT, ATLAS_START, FLOOR_0, FLOOR_V, CEILING_0, CEILING_V, IS_READY = range(8, 15)
# Curved surfaces: u, v, w are coordinates in which the solid is the unit cylinder or ball. LIGHT_*: light as an affine
# function of them (through the normal). NORMAL_*: weights of their squares in the squared length of the normal.
# REPEAT_*: texels once around and from top to bottom.
W_EYE, W_J, W_0 = range(15, 18)
LIGHT_0, LIGHT_X, LIGHT_Y, LIGHT_Z, NORMAL_X, NORMAL_Y, NORMAL_Z, REPEAT_U, REPEAT_V = range(18, 27)
SHADING_FIELDS = 27


def texel_index(u: SimdVector, v: SimdVector, footprint: SimdVector) -> SimdVector:
    """Find a texel's index within its texture of the atlas, int32; it is inside in any case.

    Args:
        u: float32; texels to the right, of any repetition of the texture, >= 0.
        v: float32; texels down, >= 0.
        footprint: float32; number of texels that a pixel covers, of the finest mipmap level; decides on the level.
    """
    builder = u.builder
    # The mipmap level is log2(sqrt(footprint)) rounded: half the exponent of the float, plus one half.
    level = ((footprint.maximum(1.0).bitcast(I32) - (126 << 23)) >> 24).minimum(MIP_LEVELS - 1)
    size = SimdVector.constant(builder, I32, [TEXTURE_SIZE] * len(u)) >> level  # texels of a side at that level
    exponent_of_one = SimdVector.constant(builder, I32, [127 << 23] * len(u))
    scale = (exponent_of_one - (level << 23)).bitcast(F32)  # 1 / 2**level
    column, row = ((coordinate * scale).cast(I32) & (size - 1) for coordinate in (u, v))
    return _tiled_index(row, column - (size + size) + ATLAS_WIDTH)


def _tiled_index(row: SimdVector, column: SimdVector) -> SimdVector:
    """Index of a texel; textures are stored in squares of 4 x 4, see `memenvs.houses.rendering.materials.atlas`."""
    i, j = row & 3, column & 3
    return (row - i) * ATLAS_WIDTH + (column - j + i) * 4 + j


def _high_product(a: SimdVector, b: SimdVector) -> SimdVector:
    """The upper 16 bits of the 32-bit products of unsigned 16-bit numbers."""
    return a.call("umul.fix", b, ir.Constant(I32, 16))


def light_factors(light: SimdVector, tint: SimdVector) -> SimdVector:
    """Multiply light with a tint.

    Args:
        light: float32, one for each of P pixels; 0 to 1.
        tint: int64, (P,); four fixed-point numbers of 16 bits, `TINT_ONE` is 1.

    Returns:
        Four numbers of 16 bits for each pixel: (4 P,).
    """
    # Each pixel's light is repeated for its four channels.
    amount = (light * 65535.0).cast(I32).cast(I16).shuffle([k // 4 for k in range(4 * len(light))])
    return _high_product(amount, tint.bitcast(I16, 4 * len(light)))


def store_pixels(
    context: Any, builder: Any, array_types: Any, line: Any, texels: SimdVector, factors: SimdVector, count: Any = None
) -> Any:
    """Write `texels` and `factors` to `line`: two arrays, and the first pixel in both.

    With `count`, an int32, pixels from that one on keep what they have.
    """
    *arrays, at = line
    factors = factors.bitcast(I64, TEXEL_BLOCK)
    for array_type, array, values in zip(array_types[:2], arrays, (texels, factors), strict=True):
        pointer = entry_pointer(context, builder, array_type, array, at)
        if count is not None:
            is_kept = arange(builder, I32, TEXEL_BLOCK) >= count
            values = is_kept.select(SimdVector.load(builder, pointer, TEXEL_BLOCK), values)
        values.store(pointer, volatile=count is not None)
    return context.get_dummy_value()


def _field_reader(context: Any, builder: Any, array_type: Any, coefficients: Any) -> Callable[[int], Any]:
    """A function that loads a field of shading coefficients."""
    first = entry_pointer(context, builder, array_type, coefficients)
    return lambda field: builder.load(builder.gep(first, [ir.Constant(I64, field)]))


def spread(builder: Any, values: Sequence[Any]) -> SimdVector:
    """Repeat each value for the pixels of its block; the number of values is a power of two."""
    vectors = [SimdVector.broadcast(builder, value, TEXEL_BLOCK) for value in values]
    while len(vectors) > 1:
        vectors = [first.join(second) for first, second in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors[0]


@intrinsic
def horizontal_block(
    typingctx: Any,
    u: Any,
    v: Any,
    size: Any,
    atlas_start: Any,
    tint: Any,
    count: Any,
    texels: Any,
    factors: Any,
    at: Any,
) -> Any:
    """Find texels and light factors of up to `TEXEL_BLOCK` pixels of a horizontal face.

    All pixels of a row are equally deep here, so texture coordinates are affine along the row and the mipmap level is
    one for the run. The light is 1.

    Args:
        typingctx: Given by numba.
        u: Two float32; column of the texel at the first pixel, in texels of the right mipmap level, >= 0; its change
            from pixel to pixel.
        v: Two float32; the same for the row of the texel.
        size: int32; texels of a side at that mipmap level.
        atlas_start: int32; index of the texture in the atlas.
        tint: int64; three fixed-point factors of 16 bits, `TINT_ONE` is 1.
        count: int32; how many pixels to write.
        texels: int32, one axis; filled with indices in the atlas.
        factors: int64, one axis; filled with tint times light.
        at: uint64; index of the first pixel in both.
    """
    pair = types.UniTuple(types.float32, 2)
    signature = types.void(pair, pair, *[types.int32] * 2, types.int64, types.int32, texels, factors, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the vector code."""
        u, v, size, atlas_start, tint, count, *line = arguments
        pixels = arange(builder, F32, TEXEL_BLOCK)
        wrap = builder.sub(size, ir.Constant(I32, 1))  # sizes are powers of two
        (u_start, u_step), (v_start, v_step) = (cgutils.unpack_tuple(builder, pair) for pair in (u, v))
        column, row = (
            (pixels * step + first).cast(I32) & wrap for first, step in ((u_start, u_step), (v_start, v_step))
        )
        level_column = builder.sub(ir.Constant(I32, ATLAS_WIDTH), builder.add(size, size))
        index = _tiled_index(row, column + level_column) + atlas_start
        factor = SimdVector.broadcast(builder, tint, TEXEL_BLOCK)
        return store_pixels(context, builder, signature.args[6:], line, index, factor, count)

    return signature, generate


def _angle_in_turns(y: SimdVector, x: SimdVector) -> SimdVector:
    """Angle of (x, y) as a fraction of a full turn, -0.5 to 0.5; a polynomial with an error below 1e-3."""
    abs_y, abs_x = y.call("fabs"), x.call("fabs")
    q = abs_y.minimum(abs_x) / (abs_y.maximum(abs_x) + 1e-12)
    angle = q * (q * q * (q * q * 0.0185 - 0.0517) + 0.15915)
    angle = (abs_y > abs_x).select(angle * -1.0 + 0.25, angle)
    angle = (x < 0.0).select(angle * -1.0 + 0.5, angle)
    return (y < 0.0).select(angle * -1.0, angle)


@intrinsic
def curved_block(
    typingctx: Any,
    coefficients: Any,
    keys: Any,
    first: Any,
    id_mask: Any,
    row: Any,
    column: Any,
    tint: Any,
    count: Any,
    texels: Any,
    factors: Any,
    at: Any,
) -> Any:
    """As `horizontal_block`, for the curved part of a cylinder and for an ellipsoid.

    The depth of a curved surface is not an affine function of the pixel, so it is read back from the z-buffer.

    Args:
        typingctx: Given by numba.
        coefficients: float32, (SHADING_FIELDS,).
        keys: uint32, one axis; see `memenvs.houses.rendering.kernels.zbuffer.decode_depth`.
        first: uint64; index of the first pixel in `keys`.
        id_mask: uint32; the bits of a key that hold the primitive's id.
        row: float32; row of the pixels.
        column: float32; column of the first pixel.
        tint: int64; three fixed-point factors of 16 bits, `TINT_ONE` is 1.
        count: int32; how many pixels to write.
        texels: As in `horizontal_block`.
        factors: As in `horizontal_block`.
        at: uint64; index of the first pixel in both.
    """
    real = types.float32
    integer, index = types.int32, types.uint64
    pixel = (types.uint32, real, real, types.int64, integer)
    signature = types.void(coefficients, keys, index, *pixel, texels, factors, index)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the vector code."""
        coefficients, keys, first, id_mask, row, column, tint, count, *line = arguments
        field = _field_reader(context, builder, signature.args[0], coefficients)
        first_key = entry_pointer(context, builder, signature.args[1], keys, first)
        z = decode_depths(SimdVector.load(builder, first_key, TEXEL_BLOCK), id_mask)
        columns = arange(builder, F32, TEXEL_BLOCK) + column
        x, y = (
            z * (columns * field(k + U_I) + builder.fadd(builder.fmul(field(k + U_J), row), field(k + U_0)))
            + field(k + U_EYE)
            for k in (U_EYE, V_EYE)
        )
        w = z * builder.fadd(builder.fmul(field(W_J), row), field(W_0)) + field(W_EYE)
        # Lambert's law with the normal (x / half_x, y / half_y, w / half_z), normalised; then darker towards the floor.
        norm = (x * x * field(NORMAL_X) + y * y * field(NORMAL_Y) + w * w * field(NORMAL_Z)).call("sqrt")
        light = (x * field(LIGHT_X) + y * field(LIGHT_Y) + w * field(LIGHT_Z)) / norm + field(LIGHT_0)
        light = (light * (w * field(FLOOR_V) + field(FLOOR_0)).minimum(1.0).maximum(0.5)).minimum(1.0)
        # The texture goes around the solid and from its top to its bottom.
        u, v = (_angle_in_turns(y, x) + 0.5) * field(REPEAT_U), (w * -0.5 + 0.5) * field(REPEAT_V)
        index = texel_index(u, v, z * z * field(FOOTPRINT)) + builder.fptosi(field(ATLAS_START), I32)
        return store_pixels(
            context, builder, signature.args[8:], line, index, light_factors(light, spread(builder, [tint])), count
        )

    return signature, generate


@intrinsic
def modulate_block(typingctx: Any, texels: Any, factors: Any, at: Any, atlas: Any, out: Any, to: Any) -> Any:
    """Fetch `BLOCK` texels, multiply them with their factors and write them as bytes.

    Args:
        typingctx: Given by numba.
        texels: int32, one axis; indices in the atlas. `PREFETCH_PIXELS` more are read.
        factors: int64, one axis; see `horizontal_block`.
        at: uint64; index of the first pixel in both.
        atlas: int32, one axis; see `memenvs.houses.rendering.materials.atlas`.
        out: uint8, one axis; filled with red, green, blue of one pixel after the other.
        to: uint64; index of the first byte to write.
    """
    signature = types.void(texels, factors, types.uint64, atlas, out, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the vector code."""
        texels, factors, at, atlas, out, to = arguments
        factors = SimdVector.load(builder, entry_pointer(context, builder, signature.args[1], factors, at), BLOCK)
        indices = entry_pointer(context, builder, signature.args[0], texels, at)
        table = entry_pointer(context, builder, signature.args[3], atlas)
        for pixel in range(PREFETCH_PIXELS, PREFETCH_PIXELS + BLOCK, _PREFETCH_STEP):
            index = builder.load(builder.gep(indices, [ir.Constant(I64, pixel)]))
            prefetch(builder, builder.gep(table, [builder.zext(index, I64)]))
        colours = gather(builder, table, indices, BLOCK)
        colours = colours.bitcast(I8, 4 * BLOCK).cast(I16)  # four channels a pixel, the last one unused
        product = _high_product(colours << (16 - _TINT_BITS), factors.bitcast(I16, 4 * BLOCK))
        rgb = [4 * pixel + channel for pixel in range(BLOCK) for channel in range(3)]
        product.minimum(255).cast(I8).shuffle(rgb).store(entry_pointer(context, builder, signature.args[4], out, to))
        return context.get_dummy_value()

    return signature, generate
