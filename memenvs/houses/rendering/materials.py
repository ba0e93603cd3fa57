"""How materials look: one small tiling picture each (painted in `memenvs.houses.rendering.textures`), with its coarser versions.

A picture is 128 x 128 texels; 128 is neutral: a texel multiplies the base colour by texel / 128. Coloured pictures (books, a
screen, a painting) multiply white instead; `tint` says how much of the base colour stays. `size` is what a picture covers
in metres; a picture that is `whole` is fitted to a face a whole number of times, at least once (labels, screens, books).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, CLASSES, MATERIALS, PAINTING_MATERIALS
from memenvs.houses.rendering import textures
from memenvs.houses.rendering.textures import TILE

#: Side of the atlas row of a picture and its coarser versions side by side, texels.
ATLAS_WIDTH = 2 * TILE
LEVELS = 8

_ONCE = (1e6, 1e6)


@dataclass(frozen=True)
class Texture:
    """One picture.

    Attributes:
        paint: Gives float (128, 128) or (128, 128, 3); 1 is neutral, up to 1.99.
        size: Metres that the picture covers, (across, down).
        whole: Whether it is fitted to a face a whole number of times.
        tint: How much of the base colour stays, 0 to 1.
        sides: Whether only upright faces show it (others show the plain base colour).
        upright: Name of the picture that takes its place on faces that are taller than wide; "" for none.
    """

    paint: Callable[[], np.ndarray]
    size: tuple[float, float] = (1.0, 1.0)
    whole: bool = False
    tint: float = 1.0
    sides: bool = False
    upright: str = ""


#: One picture for every name of `memenvs.houses.classes.MATERIALS`, then those that stand in for them.
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
    "wood": Texture(textures.wood, (0.9, 0.6), upright="wood upright"),
    "fabric": Texture(textures.fabric, (0.5, 0.5)),
    "leather": Texture(textures.leather, (0.8, 0.8)),
    "metal": Texture(textures.metal, (1.0, 1.0)),
    "glass": Texture(textures.glass, (1.0, 1.0), whole=True),
    "paper": Texture(textures.paper, (0.3, 0.4), whole=True),
    "stripes": Texture(textures.stripes, (0.8, 0.8)),
    "label": Texture(textures.label, _ONCE, whole=True, sides=True),
    "books": Texture(textures.books, (0.5, 0.34), whole=True, tint=0.0, sides=True),
    "leaves": Texture(textures.leaves, (0.5, 0.5)),
    "grass": Texture(textures.grass, (1.0, 1.0)),
    "screen": Texture(textures.screen, _ONCE, whole=True, tint=0.0, sides=True),
    "ceramic": Texture(textures.ceramic),
    "wood upright": Texture(textures.wood_upright, (0.6, 0.9)),
    "class window": Texture(textures.window, _ONCE, whole=True, tint=0.0, sides=True),
    **{
        f"painting {material}": Texture(paint, _ONCE, whole=True, tint=0.45, sides=True)
        for material, paint in zip(PAINTING_MATERIALS, textures.PAINTINGS, strict=True)
    },
}


def texture_numbers(material: np.ndarray, semantic: np.ndarray) -> np.ndarray:
    """Rows of the texture table.

    Args:
        material: Integers, (S,); indices into `memenvs.houses.classes.MATERIALS`.
        semantic: Integers, (S,); indices into `memenvs.houses.classes.CLASSES`.

    Returns:
        int64, (S,); panes of windows and paintings have a picture of their own, all else that of its material.
    """
    return _number_of()[np.asarray(semantic, np.int64), np.asarray(material, np.int64)]


@lru_cache(maxsize=1)
def _number_of() -> np.ndarray:
    """int64, (classes, materials); rows of the texture table."""
    names = list(TEXTURES)
    table = np.tile([names.index(material) for material in MATERIALS], (len(CLASSES), 1))
    glass = MATERIALS.index("glass")
    table[CLASS_INDEX["window"], glass] = names.index("class window")
    painting = CLASS_INDEX["painting"]
    for material in PAINTING_MATERIALS:
        table[painting, MATERIALS.index(material)] = names.index(f"painting {material}")
    table[painting, MATERIALS.index("paper")] = names.index("plain")  # one of the shapes that a picture is made of
    table[CLASS_INDEX["lamp"], MATERIALS.index("paper")] = names.index("plain")  # nothing is written on its shade
    return table


@lru_cache(maxsize=1)
def texture_tints() -> np.ndarray:
    """float64, (textures,); how much of the base colour stays."""
    return np.array([texture.tint for texture in TEXTURES.values()])


@lru_cache(maxsize=1)
def texture_table() -> np.ndarray:
    """float32, (textures, 5); metres across and down, 1 if whole, 1 if upright faces only, row to use on tall faces."""
    names = list(TEXTURES)
    rows = [
        (*texture.size, texture.whole, texture.sides, names.index(texture.upright or name))
        for name, texture in TEXTURES.items()
    ]
    return np.array(rows, np.float32)


@lru_cache(maxsize=1)
def atlas() -> np.ndarray:
    """int32, (textures * 128 * 256,); texels as red + 256 green + 65536 blue, in squares of 4 x 4 (one line of a cache each).

    In the rows of each picture, its coarser versions follow to the right: level l is 128 >> l texels wide and starts at column
    256 - (256 >> l); a texel is the mean of 4 texels of the level before. The last level is one texel. The texel in row i and
    column j of a picture is at 256 (i - i % 4) + 4 (j - j % 4) + 4 (i % 4) + j % 4.
    """
    table = np.zeros((len(TEXTURES), TILE, ATLAS_WIDTH), np.int32)
    for row, texture in enumerate(TEXTURES.values()):
        image = np.asarray(texture.paint(), np.float64)
        image = np.repeat(image[:, :, None], 3, 2) if image.ndim == 2 else image
        if texture.tint == 1.0:
            image = image / image.mean((0, 1))  # from afar a thing has its base colour
        for level in range(LEVELS):
            size = TILE >> level
            values = np.clip(np.rint(image * 128.0), 0, 255).astype(np.int32)
            at = ATLAS_WIDTH - (ATLAS_WIDTH >> level)
            table[row, :size, at : at + size] = values[..., 0] | values[..., 1] << 8 | values[..., 2] << 16
            image = image.reshape(size // 2, 2, size // 2, 2, 3).mean((1, 3)) if size > 1 else image
    squares = table.reshape(len(TEXTURES), TILE // 4, 4, ATLAS_WIDTH // 4, 4).transpose(0, 1, 3, 2, 4)
    return np.ascontiguousarray(squares).reshape(-1)
