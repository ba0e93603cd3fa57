"""Materials and colours of procedural houses: floors, walls, doors, rugs and furniture.

Every `Finish` names a material, such as "carpet". The texture of a material is drawn by the function of the same name
in `memenvs.houses.rendering.textures` and multiplied with the base colour given here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memenvs.houses.house import Colour, Finish

WOODS: tuple[Colour, ...] = (
    (186, 140, 92), (140, 94, 58), (92, 60, 42), (214, 180, 134), (236, 232, 224), (70, 58, 52),
)  # fmt: skip
FABRICS: tuple[Colour, ...] = (
    (72, 92, 118), (120, 124, 128), (176, 160, 136), (96, 112, 84), (150, 72, 60), (196, 150, 70), (64, 104, 108),
    (128, 86, 110), (58, 60, 68), (206, 198, 184),
)  # fmt: skip
ACCENTS: tuple[Colour, ...] = (
    (214, 82, 62), (236, 178, 54), (58, 134, 158), (86, 148, 96), (226, 130, 150), (122, 92, 168), (240, 236, 226),
    (40, 70, 120),
)  # fmt: skip
WHITE: Colour = (240, 240, 238)
BLACK: Colour = (34, 34, 38)
STEEL: Colour = (176, 180, 184)
CABINET_FRONTS: tuple[Colour, ...] = (
    WHITE, (206, 212, 204), (96, 122, 136), (126, 150, 122), (188, 148, 104), (72, 76, 84),
)  # fmt: skip
WORKTOPS: tuple[Colour, ...] = ((66, 66, 70), (222, 216, 206), (160, 120, 80), (140, 140, 142))
DOOR_WOODS: tuple[Colour, ...] = ((236, 234, 228), (160, 116, 76), (112, 76, 50), (206, 196, 178))
ENTRANCE_WOOD: Colour = (104, 60, 44)
#: A rug has one of these colours.
RUG_COLOURS: tuple[Colour, ...] = (*FABRICS, *ACCENTS)

METAL = Finish("metal", (150, 150, 150))
DARK_METAL = Finish("metal", (52, 52, 56))
BRASS = Finish("metal", (190, 150, 80))
CHROME = Finish("metal", (206, 210, 214))
CERAMIC = Finish("ceramic", (244, 244, 242))
LEATHER = Finish("leather", (112, 70, 44))

#: Floors of living areas, of some bedrooms, and of kitchens, bathrooms and laundries.
WOOD_FLOORS: tuple[Finish, ...] = (
    Finish("parquet", (176, 128, 82)), Finish("planks", (150, 108, 72)), Finish("planks", (196, 158, 112)),
    Finish("parquet", (120, 84, 58)), Finish("planks", (168, 150, 132)),
)  # fmt: skip
CARPET_FLOORS: tuple[Finish, ...] = (
    Finish("carpet", (170, 160, 148)), Finish("carpet", (122, 132, 146)), Finish("carpet", (184, 168, 136)),
)  # fmt: skip
TILE_FLOORS: tuple[Finish, ...] = (
    Finish("tiles", (206, 206, 200)), Finish("checker", (190, 190, 186)), Finish("tiles", (150, 164, 170)),
    Finish("tiles", (188, 160, 132)), Finish("marble", (214, 210, 202)),
)  # fmt: skip
#: Walls of bathrooms are tiled.
DRY_WALLS: tuple[Finish, ...] = (
    Finish("plaster", (236, 230, 218)), Finish("plaster", (214, 222, 224)), Finish("plaster", (226, 210, 186)),
    Finish("wallpaper", (196, 206, 190)), Finish("wallpaper", (206, 190, 196)), Finish("plaster", (176, 192, 204)),
    Finish("wallpaper", (222, 206, 160)), Finish("plaster", (238, 238, 234)), Finish("plaster", (204, 178, 158)),
)  # fmt: skip
WET_WALLS: tuple[Finish, ...] = (
    Finish("tiles", (226, 232, 232)), Finish("tiles", (176, 206, 212)), Finish("tiles", (204, 220, 198)),
)  # fmt: skip


@dataclass(frozen=True)
class FurnitureStyle:
    """Finishes that the furniture of one room shares.

    Attributes:
        wood: Main wood.
        second_wood: Another wood.
        fabric: Sofas, chairs and blankets.
        accent: Pillows, vases and the like.
        cabinet_front: Fronts of kitchen and bathroom cabinets.
        worktop: Worktops.
    """

    wood: Finish
    second_wood: Finish
    fabric: Finish
    accent: Finish
    cabinet_front: Finish
    worktop: Finish


def draw_style(rng: np.random.Generator) -> FurnitureStyle:
    """Draw the finishes of one room's furniture, each from its palette."""

    def pick(colours: tuple[Colour, ...]) -> Colour:
        return colours[int(rng.integers(len(colours)))]

    has_leather = rng.random() < 0.2
    return FurnitureStyle(
        wood=Finish("wood", pick(WOODS)),
        second_wood=Finish("wood", pick(WOODS)),
        fabric=LEATHER if has_leather else Finish("fabric", pick(FABRICS)),
        accent=Finish("fabric", pick(ACCENTS)),
        cabinet_front=Finish("plain", pick(CABINET_FRONTS)),
        worktop=Finish("marble", pick(WORKTOPS)),
    )


def pick_finish(rng: np.random.Generator, finishes: tuple[Finish, ...]) -> Finish:
    """Draw one of several finishes uniformly."""
    return finishes[int(rng.integers(len(finishes)))]


def shade(finish: Finish, factor: float = 0.75) -> Finish:
    """The same material with its colour times a factor: darker below 1, lighter above."""
    red, green, blue = (int(min(255.0, channel * factor)) for channel in finish.colour)
    return Finish(finish.material, (red, green, blue))
