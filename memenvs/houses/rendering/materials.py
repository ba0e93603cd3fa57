"""Materials as textures: the texture of each shape, and the atlas that holds all of them.

A texture is a tiling image of 128 x 128 texels, drawn by a function of `memenvs.houses.rendering.textures`. The value
128 is neutral: a texel multiplies the base colour of a shape by texel / 128. Textures with colours of their own (books,
a screen, a painting) multiply white instead.

`atlas` puts all textures and their mipmaps (coarser versions, which keep distant surfaces from flickering) into one
array. `texture_table` holds what the renderer needs to know of each one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, CLASSES, MATERIALS, PAINTING_MATERIALS
from memenvs.houses.rendering import textures
from memenvs.houses.rendering.textures import TEXTURE_SIZE

#: Width in the atlas of a texture with its mipmaps beside it, texels.
ATLAS_WIDTH = 2 * TEXTURE_SIZE
#: Mipmap levels: 128, 64, ..., 1 texels wide.
MIP_LEVELS = 8
_CACHE_LINE = 64  # bytes; of x86-64 and most 64-bit Arm processors

#: Columns of `texture_table`.
SIZE_U, SIZE_V, IS_FITTED, VERTICAL_ONLY, TALL_VARIANT = range(5)

_ONCE = (1e6, 1e6)  # m; larger than any face, so that a fitted texture appears exactly once


@dataclass(frozen=True)
class Texture:
    """One texture.

    Attributes:
        draw: Returns float (128, 128) or (128, 128, 3); 1 is neutral, at most 1.99.
        size: Metres that the image covers, (across, down).
        is_fitted: Stretch it so that it fits a face a whole number of times, at least once (labels, screens, books).
        base_colour_share: 0 to 1; how much of the shape's base colour stays. 0 multiplies white instead.
        vertical_only: Show it on vertical faces only; others show the plain base colour.
        tall_variant: Name of the texture that replaces it on faces that are taller than wide; "" for none.
    """

    draw: Callable[[], np.ndarray]
    size: tuple[float, float] = (1.0, 1.0)
    is_fitted: bool = False
    base_colour_share: float = 1.0
    vertical_only: bool = False
    tall_variant: str = ""


#: One texture for every name of `memenvs.houses.classes.MATERIALS`, in that order, then those that replace some of
#: them.
TEXTURES: dict[str, Texture] = {
    "plain": Texture(textures.plain),
    "plaster": Texture(textures.plaster, (1.5, 1.5)),
    "wallpaper": Texture(textures.wallpaper, (1.2, 1.2)),
    "planks": Texture(textures.planks, (1.6, 1.2)),
    "parquet": Texture(textures.parquet, (1.6, 1.6)),
    "tiles": Texture(textures.tiles, (1.2, 1.2)),
    "checker": Texture(textures.checker, (1.6, 1.6)),
    "marble": Texture(textures.marble, (1.2, 1.2)),
    "carpet": Texture(textures.carpet, (1.0, 1.0)),
    "brick": Texture(textures.brick, (1.0, 0.64)),
    "wood": Texture(textures.wood, (0.9, 0.6), tall_variant="wood upright"),
    "fabric": Texture(textures.fabric, (0.5, 0.5)),
    "leather": Texture(textures.leather, (0.8, 0.8)),
    "metal": Texture(textures.metal, (1.0, 1.0)),
    "glass": Texture(textures.glass, (1.0, 1.0), is_fitted=True),
    "paper": Texture(textures.paper, (0.3, 0.4), is_fitted=True),
    "stripes": Texture(textures.stripes, (0.8, 0.8)),
    "label": Texture(textures.label, _ONCE, is_fitted=True, vertical_only=True),
    "books": Texture(textures.books, (0.5, 0.34), is_fitted=True, base_colour_share=0.0, vertical_only=True),
    "leaves": Texture(textures.leaves, (0.5, 0.5)),
    "grass": Texture(textures.grass, (1.0, 1.0)),
    "screen": Texture(textures.screen, _ONCE, is_fitted=True, base_colour_share=0.0, vertical_only=True),
    "ceramic": Texture(textures.ceramic),
    "wood upright": Texture(textures.wood_upright, (0.6, 0.9)),
    "class window": Texture(textures.window, _ONCE, is_fitted=True, base_colour_share=0.0, vertical_only=True),
    **{
        f"painting {material}": Texture(draw, _ONCE, is_fitted=True, base_colour_share=0.45, vertical_only=True)
        for material, draw in zip(PAINTING_MATERIALS, textures.PAINTINGS, strict=True)
    },
}


def texture_rows(material: np.ndarray, semantic: np.ndarray) -> np.ndarray:
    """Row in the texture table of each shape.

    Args:
        material: Integers, (S,); indices into `memenvs.houses.classes.MATERIALS`.
        semantic: Integers, (S,); indices into `memenvs.houses.classes.CLASSES`.

    Returns:
        int64, (S,). Window panes and paintings have textures of their own; all else has that of its material.
    """
    return _row_of_class_and_material()[np.asarray(semantic, np.int64), np.asarray(material, np.int64)]


@lru_cache(maxsize=1)
def _row_of_class_and_material() -> np.ndarray:
    """int64, (classes, materials); rows of the texture table."""
    names = list(TEXTURES)
    table = np.tile([names.index(material) for material in MATERIALS], (len(CLASSES), 1))
    glass = MATERIALS.index("glass")
    table[CLASS_INDEX["window"], glass] = names.index("class window")
    painting = CLASS_INDEX["painting"]
    for material in PAINTING_MATERIALS:
        table[painting, MATERIALS.index(material)] = names.index(f"painting {material}")
    table[painting, MATERIALS.index("paper")] = names.index("plain")  # a painting's mount has no lines of text on it
    table[CLASS_INDEX["lamp"], MATERIALS.index("paper")] = names.index("plain")  # nor has a lampshade
    return table


@lru_cache(maxsize=1)
def base_colour_shares() -> np.ndarray:
    """float64, (textures,); how much of a shape's base colour stays, 0 to 1."""
    return np.array([texture.base_colour_share for texture in TEXTURES.values()])


@lru_cache(maxsize=1)
def texture_table() -> np.ndarray:
    """Properties of the textures that the renderer needs.

    Returns:
        float32, (textures, 5); columns SIZE_U, SIZE_V (m), IS_FITTED, VERTICAL_ONLY (0 or 1) and TALL_VARIANT (the row
        of the texture to use on faces that are taller than wide).
    """
    names = list(TEXTURES)
    rows = [
        (*texture.size, texture.is_fitted, texture.vertical_only, names.index(texture.tall_variant or name))
        for name, texture in TEXTURES.items()
    ]
    return np.array(rows, np.float32)


@lru_cache(maxsize=1)
def atlas() -> np.ndarray:
    """All textures with their mipmaps.

    Each texture has 128 rows and 256 columns. Level 0 takes the left half; level l is 128 >> l texels wide and starts
    at column 256 - (256 >> l). Each of its texels is the mean of four texels of the level before.

    Texels are stored in squares of 4 x 4, because such a square is one cache line; the first square begins at one. The
    texel in row i and column j of a texture has the index 256 (i - i % 4) + 4 (j - j % 4) + 4 (i % 4) + j % 4.

    Returns:
        int32, (textures * 128 * 256,); a texel is red + 256 green + 65536 blue.
    """
    table = np.zeros((len(TEXTURES), TEXTURE_SIZE, ATLAS_WIDTH), np.int32)
    for row, texture in enumerate(TEXTURES.values()):
        image = np.asarray(texture.draw(), np.float64)
        image = np.repeat(image[:, :, None], 3, 2) if image.ndim == 2 else image
        if texture.base_colour_share == 1.0:
            image = image / image.mean((0, 1))  # from afar an object has its base colour
        for level in range(MIP_LEVELS):
            size = TEXTURE_SIZE >> level
            values = np.clip(np.rint(image * 128.0), 0, 255).astype(np.int32)
            start = ATLAS_WIDTH - (ATLAS_WIDTH >> level)
            table[row, :size, start : start + size] = values[..., 0] | values[..., 1] << 8 | values[..., 2] << 16
            image = image.reshape(size // 2, 2, size // 2, 2, 3).mean((1, 3)) if size > 1 else image
    squares = table.reshape(len(TEXTURES), TEXTURE_SIZE // 4, 4, ATLAS_WIDTH // 4, 4).transpose(0, 1, 3, 2, 4)
    padded = np.empty(squares.size + _CACHE_LINE // squares.itemsize, np.int32)
    start = -padded.ctypes.data % _CACHE_LINE // squares.itemsize
    aligned = padded[start : start + squares.size]
    aligned[:] = squares.reshape(-1)
    return aligned
