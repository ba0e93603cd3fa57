"""An independent, slow shader for tests: the colour of one pixel at a time, in float64."""

import math

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, MATERIAL_INDEX
from memenvs.houses.house import BOX, ELLIPSOID, House
from memenvs.houses.rendering.materials import (
    ATLAS_WIDTH,
    MIP_LEVELS,
    TEXTURE_SIZE,
    TEXTURES,
    Texture,
    atlas,
    texture_rows,
)
from tests.houses.rendering.ray_caster import own_axes

TO_LIGHT = np.array([0.36, 0.21, 0.91])
CEILING_COLOUR = (242, 240, 234)


def texel(name: str, u: float, v: float, footprint: float) -> np.ndarray:
    """A texel of a texture, 0 to 255, (3,).

    Args:
        name: Key of `TEXTURES`.
        u: Texels to the right.
        v: Texels down.
        footprint: Texels that the pixel covers.
    """
    level = min(math.floor(math.log2(math.sqrt(max(footprint, 1.0))) + 0.5), MIP_LEVELS - 1)
    size = TEXTURE_SIZE >> level
    column = math.floor(u / 2**level) % size + ATLAS_WIDTH - 2 * size
    row = math.floor(v / 2**level) % size
    index = 256 * (row - row % 4) + 4 * (column - column % 4) + 4 * (row % 4) + column % 4
    value = int(atlas().reshape(len(TEXTURES), -1)[list(TEXTURES).index(name), index])
    return np.array([value & 255, value >> 8 & 255, value >> 16])


def texture_of(material: int, semantic: int, *, is_tall: bool, is_vertical: bool) -> tuple[str, Texture]:
    """The texture of a face and its name."""
    name = list(TEXTURES)[int(texture_rows(np.array([material]), np.array([semantic]))[0])]
    if is_tall and TEXTURES[name].tall_variant:
        name = TEXTURES[name].tall_variant
    if TEXTURES[name].vertical_only and not is_vertical:
        name = "plain"
    return name, TEXTURES[name]


def times(metres: float, size: float, is_fitted: bool) -> float:
    """Repetitions of a texture over a length."""
    return max(1.0, math.floor(metres / size + 0.5)) if is_fitted else metres / size


def apply(texture: Texture, colour: np.ndarray, texel_: np.ndarray, light: float) -> np.ndarray:
    """sRGB, 0 to 255: texel times base colour (or white) times light."""
    base = 255 + texture.base_colour_share * (np.asarray(colour, float) - 255)
    return np.minimum(texel_ / 128 * base * light, 255)


def directional(normal: np.ndarray) -> float:
    return 0.80 + 0.21 * float(normal @ TO_LIGHT)


def shade(house: House, focal: float, eye: np.ndarray, point: np.ndarray, depth: float, solid: int) -> np.ndarray:
    """Colour of a point that is seen, sRGB, (3,).

    Args:
        house: The house; all rooms have the floor of the first.
        focal: Focal length, pixels.
        eye: (3,); m.
        point: (3,); m.
        depth: m.
        solid: As `tests.houses.rendering.ray_caster.cast` numbers them.
    """
    if solid < 0:
        return _shade_floor(house, focal, eye, point, depth, is_floor=solid == -1)
    k = solid - 1
    rotation = own_axes(float(house.shapes.yaw[k]))
    own = rotation @ (point - house.shapes.centre[k]) / house.shapes.half[k]  # -1 to 1
    axis = int(abs(own).argmax()) if house.shapes.kind[k] == BOX else 2
    if axis < 2:
        return _shade_vertical(house, focal, eye, point, depth, k, np.sign(own[axis]) * rotation[axis])
    if house.shapes.kind[k] == BOX or (house.shapes.kind[k] != ELLIPSOID and abs(abs(own[2]) - 1) < 1e-9):
        return _shade_horizontal(house, focal, eye, point, depth, k, np.sign(own[2]))
    return _shade_curved(house, focal, depth, k, own, rotation)


# The arguments of these are those of `shade`.
def _shade_floor(house, focal, eye, point, depth, *, is_floor: bool) -> np.ndarray:
    room = house.rooms[0]
    material = room.floor_material if is_floor else MATERIAL_INDEX["plaster"]
    semantic = CLASS_INDEX["floor" if is_floor else "ceiling"]
    name, texture = texture_of(material, semantic, is_tall=False, is_vertical=False)
    scale = TEXTURE_SIZE / np.array(texture.size)  # texels per metre
    footprint = scale.prod() * depth**3 / focal**2 / abs(point[2] - eye[2])
    texels = texel(name, point[0] * scale[0], -point[1] * scale[1], footprint)
    light = directional(np.array([0.0, 0.0, 1.0])) if is_floor else 0.95
    return apply(texture, np.array(room.floor_colour if is_floor else CEILING_COLOUR), texels, light)


def _shade_vertical(house, focal, eye, point, depth, k: int, normal: np.ndarray) -> np.ndarray:
    shapes = house.shapes
    right = np.array([-normal[1], normal[0], 0.0])  # along the face
    half = abs(own_axes(float(shapes.yaw[k])) @ right) @ shapes.half[k]
    wide, tall = 2 * half, 2 * float(shapes.half[k, 2])
    name, texture = texture_of(int(shapes.material[k]), int(shapes.semantic[k]), is_tall=tall > wide, is_vertical=True)
    scale_u = TEXTURE_SIZE * times(wide, texture.size[0], texture.is_fitted) / wide
    scale_v = TEXTURE_SIZE * times(tall, texture.size[1], texture.is_fitted) / tall
    is_wall = shapes.semantic[k] == CLASS_INDEX["wall"]  # its texture starts at the world's origin
    left = 0.0 if is_wall else right @ shapes.centre[k] - half
    top = house.height if is_wall else shapes.centre[k, 2] + shapes.half[k, 2]
    footprint = scale_u * scale_v * depth**3 / focal**2 / abs(normal @ (point - eye))
    texels = texel(name, (right @ point - left) * scale_u, (top - point[2]) * scale_v, footprint)
    edge = min(0.74 + 0.65 * point[2], 0.86 + 0.5 * (house.height - point[2]), 1.0)  # darker at floor and ceiling
    return apply(texture, shapes.colour[k], texels, max(edge, 0.3) * directional(normal))


def _shade_horizontal(house, focal, eye, point, depth, k: int, up: float) -> np.ndarray:
    shapes = house.shapes
    wide, deep = 2 * float(shapes.half[k, 0]), 2 * float(shapes.half[k, 1])
    name, texture = texture_of(int(shapes.material[k]), int(shapes.semantic[k]), is_tall=deep > wide, is_vertical=False)
    scale_u = TEXTURE_SIZE * times(wide, texture.size[0], texture.is_fitted) / wide
    scale_v = TEXTURE_SIZE * times(deep, texture.size[1], texture.is_fitted) / deep
    start = 0.0 if shapes.semantic[k] == CLASS_INDEX["wall"] else shapes.centre[k]
    x, y, _ = own_axes(float(shapes.yaw[k])) @ (point - start)
    corner = (0.0, 0.0) if shapes.semantic[k] == CLASS_INDEX["wall"] else (wide / 2, deep / 2)
    footprint = scale_u * scale_v * depth**3 / focal**2 / abs(point[2] - eye[2])
    texels = texel(name, (x + corner[0]) * scale_u, (corner[1] - y) * scale_v, footprint)
    return apply(texture, shapes.colour[k], texels, directional(np.array([0.0, 0.0, up])))


def _shade_curved(house, focal, depth, k: int, own: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    shapes = house.shapes
    half = shapes.half[k].astype(float)
    normal = own / half
    if shapes.kind[k] != ELLIPSOID:
        normal[2] = 0.0
    light = directional(rotation.T @ normal / np.linalg.norm(normal))
    height = shapes.centre[k, 2] + own[2] * half[2]
    light = min(light * min(max(0.74 + 0.65 * height, 0.5), 1.0), 1.0)
    name, texture = texture_of(int(shapes.material[k]), int(shapes.semantic[k]), is_tall=False, is_vertical=True)
    around, tall = math.pi * (half[0] + half[1]), 2 * half[2]
    repeat_u = times(around, texture.size[0], is_fitted=True)
    repeat_v = times(tall, texture.size[1], texture.is_fitted)
    footprint = 2 * (max(repeat_u / around, repeat_v / tall) * TEXTURE_SIZE * depth / focal) ** 2
    turns = math.atan2(own[1], own[0]) / (2 * math.pi) + 0.5
    texels = texel(name, turns * repeat_u * TEXTURE_SIZE, (0.5 - own[2] / 2) * repeat_v * TEXTURE_SIZE, footprint)
    return apply(texture, shapes.colour[k], texels, light)
