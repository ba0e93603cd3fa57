"""The images of textures: 128 x 128 texels from formulas and seeded noise.

They are the same on every machine. Each public function returns float (128, 128), a factor of the base colour, or float
(128, 128, 3), a factor per channel. Rows run down. All tile without a seam, except those that show one whole object
(label, screen, window, paintings).
"""

from __future__ import annotations

import numpy as np

#: Side of a texture, texels.
TEXTURE_SIZE = 128


def _grid() -> tuple[np.ndarray, np.ndarray]:
    """Coordinates u (across) and v (down) of the texels' centres, each float (128, 128), in 0..1."""
    line = (np.arange(TEXTURE_SIZE) + 0.5) / TEXTURE_SIZE
    return np.meshgrid(line, line)


def _blur(image: np.ndarray, across: int, down: int) -> np.ndarray:
    """A tiling image averaged over a window of (2 across + 1) x (2 down + 1) texels."""
    rows = np.stack([np.roll(image, step, 1) for step in range(-across, across + 1)]).mean(0)
    return np.stack([np.roll(rows, step, 0) for step in range(-down, down + 1)]).mean(0)


def _noise(seed: int, across: int, down: int) -> np.ndarray:
    """Tiling noise, (128, 128), mean 0 and standard deviation 1; grains of about `across` x `down` texels."""
    image = np.random.default_rng(seed).standard_normal((TEXTURE_SIZE, TEXTURE_SIZE))
    image = _blur(_blur(image, across, down), across, down)
    return (image - image.mean()) / image.std()


def _clouds(seed: int) -> np.ndarray:
    """Tiling noise with coarse and fine grains, (128, 128), mean 0."""
    return _noise(seed, 16, 16) * 0.6 + _noise(seed + 1, 6, 6) * 0.3 + _noise(seed + 2, 2, 2) * 0.15


def _cells(count: int, seed: int) -> np.ndarray:
    """A random number in 0..1 for each of count x count squares, (128, 128)."""
    numbers = np.random.default_rng(seed).random((count, count))
    return np.kron(numbers, np.ones((TEXTURE_SIZE // count, TEXTURE_SIZE // count)))


def _rgb(*channels: np.ndarray | float) -> np.ndarray:
    """Three channels as one image (128, 128, 3)."""
    return np.stack([np.broadcast_to(channel, (TEXTURE_SIZE, TEXTURE_SIZE)) for channel in channels], 2).astype(float)


def plain() -> np.ndarray:
    """A nearly uniform surface."""
    return 1 + 0.012 * _noise(1, 2, 2)


def plaster() -> np.ndarray:
    """A slightly uneven surface."""
    return 1 + 0.006 * _clouds(2) + 0.014 * _noise(3, 1, 1)


def wallpaper() -> np.ndarray:
    """Stripes with flowers."""
    u, v = _grid()
    stripe = np.where((u * 8) % 2 < 1, 1.03, 0.95)
    flower = np.zeros((TEXTURE_SIZE, TEXTURE_SIZE))
    for row in range(4):
        for column in range(4):
            du = (u - (column + 0.5 * (row % 2)) / 4 + 0.625) % 1 - 0.5
            dv = (v - row / 4 + 0.625) % 1 - 0.5
            radius, angle = np.hypot(du, dv), np.arctan2(dv, du)
            flower += (radius < 0.045 * (1 + 0.35 * np.cos(5 * angle))) & (radius > 0.014)
    return stripe - 0.13 * flower + 0.01 * _noise(4, 1, 1)


def _boards(count: int, seed: int, *, groove: float) -> np.ndarray:
    """Long boards running across, each with a tone of its own and two staggered joints."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:TEXTURE_SIZE, 0:TEXTURE_SIZE]
    width = TEXTURE_SIZE // count
    board = rows // width
    joints = (np.arange(count) * 5 % count) * TEXTURE_SIZE // count
    piece = ((columns - joints[board]) % TEXTURE_SIZE) // (TEXTURE_SIZE // 2)
    tone = (1 + 0.2 * (rng.random((count, 2)) - 0.5))[board, piece]
    grain = 0.05 * _noise(seed + 1, 12, 0) + 0.03 * _noise(seed + 2, 4, 0)
    image = tone + grain
    image[(rows % width == 0) | ((columns - joints[board]) % (TEXTURE_SIZE // 2) == 0)] *= groove
    return image


def planks() -> np.ndarray:
    """Long boards."""
    return _boards(8, 10, groove=0.62)


def parquet() -> np.ndarray:
    """Squares of short staves, alternately running across and down."""
    rows, columns = np.mgrid[0:TEXTURE_SIZE, 0:TEXTURE_SIZE]
    turned = ((rows // 32) + (columns // 32)) % 2 == 0
    along = np.where(turned, rows, columns)
    image = 1 + 0.16 * (_cells(16, 20) - 0.5) + np.where(turned, 0.05, -0.05)
    image += 0.04 * np.where(turned, _noise(21, 8, 0), _noise(22, 0, 8))
    image[along % 8 == 0] *= 0.75
    image[(rows % 32 == 0) | (columns % 32 == 0)] *= 0.7
    return image


def tiles() -> np.ndarray:
    """Four by four tiles with grout."""
    rows, columns = np.mgrid[0:TEXTURE_SIZE, 0:TEXTURE_SIZE]
    image = 1.02 + 0.06 * (_cells(4, 30) - 0.5) + 0.015 * _clouds(31)
    image[(rows % 32 < 1) | (columns % 32 < 1)] = 0.72
    image[(rows % 32 == 1) | (columns % 32 == 1)] *= 1.06
    return image


def checker() -> np.ndarray:
    """Light and dark squares."""
    rows, columns = np.mgrid[0:TEXTURE_SIZE, 0:TEXTURE_SIZE]
    light = ((rows // 32) + (columns // 32)) % 2 == 0
    return np.where(light, 1.2, 0.55) * (1 + 0.02 * _clouds(40))


def marble() -> np.ndarray:
    """Light stone with dark veins."""
    bends = _noise(50, 14, 14) + 0.4 * _noise(51, 5, 5)
    veins = np.exp(-np.abs(bends) * 9) + 0.5 * np.exp(-np.abs(_noise(52, 10, 10)) * 14)
    return 1.05 - 0.3 * np.minimum(veins, 1) + 0.02 * _clouds(53)


def carpet() -> np.ndarray:
    """The short pile of a carpet."""
    return 1 + 0.09 * _noise(60, 0, 0) + 0.06 * _noise(61, 2, 2) + 0.02 * _clouds(62)


def brick() -> np.ndarray:
    """Courses of bricks with mortar."""
    rows, columns = np.mgrid[0:TEXTURE_SIZE, 0:TEXTURE_SIZE]
    course = rows // 16
    shifted = (columns + 16 * (course % 2)) % TEXTURE_SIZE
    tone = np.random.default_rng(70).random((8, 4))[course, shifted // 32]
    image = 0.86 + 0.34 * tone + 0.05 * _noise(71, 1, 1)
    image[(rows % 16 < 2) | (shifted % 32 < 2)] = 1.25
    return image


def wood() -> np.ndarray:
    """Wood whose grain runs across."""
    rings = _noise(80, 24, 5) * 2.2 + _grid()[1] * 12 * np.pi * 2 / 4
    return 1 + 0.07 * np.sin(rings) + 0.05 * _noise(81, 14, 0) + 0.03 * _noise(82, 5, 0)


def wood_upright() -> np.ndarray:
    """Wood whose grain runs down."""
    return wood().T


def fabric() -> np.ndarray:
    """Woven threads."""
    rows, columns = np.mgrid[0:TEXTURE_SIZE, 0:TEXTURE_SIZE]
    weave = np.where((rows // 2 + columns // 2) % 2 == 0, 1.05, 0.95)
    return weave + 0.04 * _noise(90, 3, 0) + 0.04 * _noise(91, 0, 3) + 0.03 * _clouds(92)


def leather() -> np.ndarray:
    """Leather with fine cracks."""
    cracks = np.abs(_noise(100, 2, 2))
    return 1.02 + 0.05 * np.minimum(cracks, 1.2) + 0.07 * _clouds(101) - 0.12 * (cracks < 0.12)


def metal() -> np.ndarray:
    """Brushed metal."""
    v = _grid()[1]
    return 1 + 0.06 * np.cos(2 * np.pi * v) + 0.05 * _noise(110, 30, 0)


def glass() -> np.ndarray:
    """Two slanting reflections."""
    u, v = _grid()
    streak = np.exp(-((((u + 0.6 * v) % 1 - 0.45) / 0.12) ** 2)) + 0.6 * np.exp(
        -((((u + 0.6 * v) % 1 - 0.75) / 0.03) ** 2)
    )
    return 0.98 + 0.22 * streak


def paper() -> np.ndarray:
    """Lines of text."""
    rows, columns = np.mgrid[0:TEXTURE_SIZE, 0:TEXTURE_SIZE]
    words = np.random.default_rng(120).random((16, 16))[rows // 8, columns // 8] > 0.25
    text = words & (rows % 8 >= 3) & (rows % 8 < 5) & (columns > 12) & (columns < 116) & (rows > 12) & (rows < 116)
    return 1.02 - 0.4 * text + 0.01 * _noise(121, 1, 1)


def stripes() -> np.ndarray:
    """Vertical stripes."""
    columns = np.mgrid[0:TEXTURE_SIZE, 0:TEXTURE_SIZE][1]
    return np.where(columns // 16 % 2 == 0, 1.15, 0.72) + 0.03 * _noise(130, 1, 1)


def label() -> np.ndarray:
    """A label of a tin or a box."""
    rows, columns = np.mgrid[0:TEXTURE_SIZE, 0:TEXTURE_SIZE]
    image = _rgb(1.0, 1.0, 1.0)
    image[(rows < 9) | (rows >= 119)] = 0.72
    band = (rows >= 34) & (rows < 84)
    image[band] = (1.62, 1.6, 1.5)
    bold = (columns % 64 > 8) & (columns % 64 < 56) & (columns % 12 < 8)
    image[band & bold & (rows >= 42) & (rows < 58)] = (0.35, 0.35, 0.4)
    image[band & (rows >= 64) & (rows < 68) & (columns % 64 > 14) & (columns % 64 < 50)] = (0.55, 0.5, 0.5)
    disc = np.hypot(columns % 64 - 32, rows - 101) < 11
    image[disc] = (1.7, 1.5, 0.7)
    return image


def books() -> np.ndarray:
    """Spines of books on a shelf."""
    rng = np.random.default_rng(140)
    image = _rgb(0.16, 0.12, 0.1)
    rows = np.arange(TEXTURE_SIZE)
    left = 0
    while left < TEXTURE_SIZE - 5:
        width = min(int(rng.integers(7, 17)), TEXTURE_SIZE - left)
        top = int(rng.integers(8, 40))
        colour = np.array([(0.75, 0.2, 0.17), (0.17, 0.3, 0.6), (0.2, 0.48, 0.28), (0.85, 0.72, 0.4), (0.5, 0.3, 0.45),
                           (0.9, 0.87, 0.8), (0.2, 0.22, 0.28), (0.85, 0.45, 0.16)][rng.integers(8)])  # fmt: skip
        round_spine = 1 - 0.35 * np.abs(np.linspace(-1, 1, width)) ** 2
        image[top:120, left : left + width] = colour * round_spine[:, None]
        bands = (np.abs(rows - top - 14) < 3) | (np.abs(rows - 104) < 2)
        image[np.flatnonzero(bands & (rows > top))[:, None], np.arange(left + 1, left + width - 1)] *= 1.5
        left += width + int(rng.integers(0, 2))
    image[120:] = (0.62, 0.46, 0.3)
    return np.minimum(image, 1.0)


def leaves() -> np.ndarray:
    """Dense leaves."""
    deep = _noise(150, 3, 3)
    blades = 0.5 + 0.5 * np.sin(_noise(151, 6, 6) * 5 + _grid()[0] * 2 * np.pi * 4)
    light = np.where(deep > -0.55, 0.75 + 0.5 * blades, 0.3) + 0.08 * deep
    return _rgb(light * 0.98, light * 1.04, light * 0.92)


def grass() -> np.ndarray:
    """Blades of grass."""
    light = 1 + 0.16 * _noise(160, 0, 3) + 0.08 * _clouds(161)
    return _rgb(light, light * 1.02, light * 0.95)


def screen() -> np.ndarray:
    """A screen with a night landscape."""
    u, v = _grid()
    glow = 0.55 + 0.45 * (1 - v)
    image = _rgb(0.1 * glow, 0.32 * glow, 0.62 * glow)
    hill = v > 0.66 + 0.1 * np.sin(u * 9) + 0.04 * np.sin(u * 23)
    image[hill] = (0.16, 0.42, 0.26)
    image[np.hypot(u - 0.72, (v - 0.32) * 0.7) < 0.09] = (0.98, 0.9, 0.6)
    image[(u < 0.035) | (u > 0.965) | (v < 0.05) | (v > 0.94)] = 0.07
    return image


def ceramic() -> np.ndarray:
    """A glazed, nearly uniform surface."""
    return 1.02 + 0.012 * _clouds(170)


def window() -> np.ndarray:
    """Sky and hills behind a window's bars."""
    u, v = _grid()
    image = _rgb(0.52 + 0.34 * v, 0.72 + 0.2 * v, 0.98)
    cloud = _noise(180, 12, 4) + 0.5 * _noise(181, 5, 2) > 0.75
    image[cloud & (v < 0.6)] = (0.97, 0.98, 1.0)
    hill = v > 0.7 + 0.05 * np.sin(2 * np.pi * u) + 0.02 * np.sin(6 * np.pi * u)
    image[hill] = np.stack([0.38 + 0.1 * v, 0.58 + 0.1 * v, 0.32 + 0.05 * v], 2)[hill]
    frame = (np.abs(u - 0.5) < 0.02) | (np.abs(v - 0.42) < 0.016)
    image[frame] = (0.93, 0.92, 0.9)
    return image


def _framed(image: np.ndarray) -> np.ndarray:
    """Add a pale mount and a dark frame to an image (128, 128, 3), in place."""
    u, v = _grid()
    edge = np.minimum(np.minimum(u, 1 - u), np.minimum(v, 1 - v))
    image[edge < 0.14] = (0.95, 0.93, 0.88)
    image[edge < 0.07] = (0.32, 0.22, 0.14)
    return image


def painted_hills() -> np.ndarray:
    """A painting: the sun over hills."""
    u, v = _grid()
    image = _rgb(0.9 - 0.25 * v, 0.75 - 0.15 * v, 0.55 + 0.2 * v)
    image[np.hypot(u - 0.66, v - 0.36) < 0.12] = (0.93, 0.38, 0.22)
    for level, colour in ((0.52, (0.35, 0.42, 0.58)), (0.64, (0.24, 0.4, 0.42)), (0.76, (0.16, 0.28, 0.24))):
        image[v > level + 0.07 * np.sin(u * 14 * level + 9 * level)] = colour
    return _framed(image)


def painted_flowers() -> np.ndarray:
    """A painting: three flowers in a vase."""
    u, v = _grid()
    image = _rgb(0.82 - 0.2 * v, 0.78 - 0.16 * v, 0.66)
    image[v > 0.74] = (0.5, 0.34, 0.24)
    for x, y, colour in (
        (0.38, 0.36, (0.86, 0.3, 0.34)),
        (0.52, 0.26, (0.95, 0.78, 0.3)),
        (0.65, 0.38, (0.62, 0.42, 0.74)),
    ):
        along = np.clip((v - y) / (0.6 - y), 0, 1)
        image[(np.abs(u - x - (0.5 - x) * along) < 0.012) & (v > y) & (v < 0.6)] = (0.24, 0.44, 0.24)
        radius, angle = np.hypot(u - x, v - y), np.arctan2(v - y, u - x)
        image[radius < 0.09 * (1 + 0.3 * np.cos(6 * angle))] = colour
        image[radius < 0.028] = (0.3, 0.2, 0.12)
    image[(np.abs(u - 0.5) < 0.1 - 0.05 * np.sin((v - 0.56) * 14)) & (v > 0.56) & (v < 0.82)] = (0.26, 0.42, 0.6)
    return _framed(image)


def painted_squares() -> np.ndarray:
    """A painting: coloured fields between black lines."""
    u, v = _grid()
    image = _rgb(0.93, 0.92, 0.87)
    for (u0, u1, v0, v1), colour in (
        ((0.46, 1.0, 0.0, 0.54), (0.84, 0.24, 0.2)),
        ((0.0, 0.32, 0.7, 1.0), (0.2, 0.32, 0.66)),
        ((0.74, 1.0, 0.78, 1.0), (0.94, 0.8, 0.28)),
    ):
        image[(u >= u0) & (u < u1) & (v >= v0) & (v < v1)] = colour
    image[(np.abs(u - 0.46) < 0.016) | (np.abs(v - 0.54) < 0.016)] = 0.14
    image[(np.abs(u - 0.32) < 0.016) & (v > 0.54) | (np.abs(v - 0.7) < 0.016) & (u < 0.46)] = 0.14
    image[(np.abs(u - 0.74) < 0.016) & (v > 0.54) | (np.abs(v - 0.78) < 0.016) & (u > 0.74)] = 0.14
    return _framed(image)


def painted_boats() -> np.ndarray:
    """A painting: two sailing boats."""
    u, v = _grid()
    image = _rgb(0.62 + 0.3 * v, 0.76 + 0.16 * v, 0.9)
    waves = 0.06 * np.sin(2 * np.pi * (u * 5 + 3 * v)) * np.sin(2 * np.pi * v * 9)
    sea = v > 0.58
    image[sea] = np.stack([0.16 + waves, 0.38 + waves, 0.54 + waves], 2)[sea]
    for x, y, size, colour in ((0.4, 0.68, 0.3, (0.95, 0.93, 0.88)), (0.7, 0.6, 0.16, (0.86, 0.42, 0.26))):
        up = (y - v) / size  # 0 at the hull, 1 at the masthead
        image[(up > 0) & (up < 1) & (u > x) & (u - x < 0.55 * size * (1 - up))] = colour
        image[(up > 0) & (up < 0.8) & (u < x - 0.012) & (x - 0.012 - u < 0.35 * size * (0.8 - up))] = colour
        image[(up <= 0) & (up > -0.18) & (np.abs(u - x) < size * (0.5 + up))] = (0.3, 0.18, 0.12)
    return _framed(image)


def painted_rings() -> np.ndarray:
    """A painting: four fields of rings."""
    u, v = _grid()
    colours = np.array(
        [(0.9, 0.42, 0.26), (0.2, 0.34, 0.56), (0.93, 0.8, 0.42), (0.34, 0.56, 0.44), (0.86, 0.84, 0.78)]
    )
    across, down = (u - 0.14) * 2 / 0.72, (v - 0.14) * 2 / 0.72  # two by two fields within the rim
    ring = np.minimum(np.hypot(across % 1 - 0.5, down % 1 - 0.5) / 0.115, 4).astype(int)
    field = across.astype(int) + 2 * down.astype(int)
    return _framed(colours[(ring + 2 * field) % len(colours)])


#: One for each of `memenvs.houses.classes.PAINTING_MATERIALS`.
PAINTINGS = (painted_hills, painted_flowers, painted_squares, painted_boats, painted_rings)
