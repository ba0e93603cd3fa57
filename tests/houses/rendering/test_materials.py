"""Textures and their atlas."""

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, MATERIAL_INDEX
from memenvs.houses.rendering.materials import ATLAS_WIDTH, MIP_LEVELS, TEXTURE_SIZE, TEXTURES, atlas, texture_rows


def channels(texture: str) -> np.ndarray:
    """One texture with its mipmaps, out of the atlas; int, (128, 256, 3)."""
    i, j = np.mgrid[0:TEXTURE_SIZE, 0:ATLAS_WIDTH]
    indices = 256 * (i - i % 4) + 4 * (j - j % 4) + 4 * (i % 4) + j % 4
    rows = atlas().reshape(len(TEXTURES), -1)[list(TEXTURES).index(texture)][indices]
    return np.stack([rows & 255, rows >> 8 & 255, rows >> 16], 2)


def test_panes_and_paintings_have_their_own() -> None:
    expected = {
        ("glass", "window"): "class window", ("glass", "shower"): "glass", ("label", "painting"): "painting label",
        ("leaves", "painting"): "painting leaves", ("paper", "painting"): "plain", ("wood", "painting"): "wood",
        ("label", "food"): "label",
    }  # fmt: skip
    for (material, name), texture in expected.items():
        rows = texture_rows(np.array([MATERIAL_INDEX[material]]), np.array([CLASS_INDEX[name]]))
        assert list(TEXTURES)[rows[0]] == texture, (material, name)


def test_a_coarser_texel_is_the_mean_of_finer_ones() -> None:
    for name in TEXTURES:
        image = channels(name)
        for level in range(1, MIP_LEVELS):
            size = TEXTURE_SIZE >> level
            coarse = image[:size, ATLAS_WIDTH - 2 * size :][:, :size]
            fine = image[: 2 * size, ATLAS_WIDTH - 4 * size :][:, : 2 * size] if level > 1 else image[:, :TEXTURE_SIZE]
            mean = fine.reshape(size, 2, size, 2, 3).mean((1, 3))
            assert abs(coarse - mean).max() <= 4, (name, level)  # values are rounded, the brightest cut off


def test_textures_keep_the_base_colour_on_average_and_differ() -> None:
    for name, texture in TEXTURES.items():
        image = channels(name)[:, :TEXTURE_SIZE]
        if texture.base_colour_share == 1.0:
            np.testing.assert_allclose(image.mean((0, 1)), 128, atol=3)
    seen = {channels(name)[:, :TEXTURE_SIZE].tobytes() for name in TEXTURES}
    assert len(seen) == len(TEXTURES)
