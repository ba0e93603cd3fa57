"""What each ProcTHOR object type is here: semantic class, shape, material and colours; and what its surface names mean."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from memenvs.houses.classes import MATERIAL_INDEX
from memenvs.houses.procthor import furniture, things
from memenvs.houses.procthor.parts import BLACK, DARK, STEEL, WHITE, Colour, Parts

_WOODS = ((150, 106, 66), (178, 138, 94), (104, 70, 46), (206, 180, 142), (226, 220, 208), (70, 54, 46))
_FABRICS = (
    (92, 108, 132), (152, 92, 78), (178, 168, 150), (96, 116, 96), (70, 76, 92), (188, 150, 96), (142, 120, 140),
)  # fmt: skip
_BRIGHT = ((196, 66, 58), (54, 104, 168), (226, 176, 60), (84, 146, 92), (146, 90, 150), (232, 232, 226), (64, 68, 76))
_CERAMIC = ((232, 230, 222), (112, 148, 176), (196, 120, 88), (120, 150, 116), (72, 80, 96))
_PALE = ((236, 226, 198), (240, 214, 160), (226, 232, 238), (222, 196, 180))
_METALS = (STEEL, (96, 100, 106), (206, 206, 204), (44, 46, 50))
_WHITES = (WHITE, (226, 228, 230), (214, 206, 192))


@dataclass(frozen=True)
class AssetType:
    """How one object type is understood and drawn.

    Attributes:
        semantic: A name of CLASSES.
        form: Fills the asset's bounding box.
        material: A name of MATERIALS.
        colours: One of them is taken, by the asset's id.
        is_receptacle: Whether things may be put on it.
    """

    semantic: str
    form: Callable[[Parts], None]
    material: str
    colours: tuple[Colour, ...]
    is_receptacle: bool = False

    def colour(self, asset: str) -> Colour:
        """The colour of the asset with this id."""
        return self.colours[zlib.crc32(asset.encode()) % len(self.colours)]


#: Object type of ProcTHOR -> what it is here. "other" are things that no class names: decoration, stationery, toiletries.
ASSET_TYPES: dict[str, AssetType] = {
    "AlarmClock": AssetType("clock", things.alarm_clock, "plain", _BRIGHT),
    "AluminumFoil": AssetType("kitchenware", things.block, "metal", _METALS),
    "Apple": AssetType("food", things.ball, "plain", ((186, 40, 44), (126, 160, 60))),
    "ArmChair": AssetType("armchair", furniture.sofa, "fabric", _FABRICS),
    "BaseballBat": AssetType("sports", things.block, "wood", _WOODS[:2]),
    "BasketBall": AssetType("sports", things.ball, "leather", ((204, 104, 46),)),
    "Bed": AssetType("bed", furniture.bed, "fabric", _FABRICS),
    "Blinds": AssetType("curtain", things.block, "stripes", _PALE),
    "Book": AssetType("book", things.book, "label", _BRIGHT),
    "Boots": AssetType("clothing", things.boots, "leather", ((92, 62, 44),)),
    "Bottle": AssetType("kitchenware", things.bottle, "glass", ((70, 120, 84),)),
    "Bowl": AssetType("kitchenware", things.bowl, "ceramic", _CERAMIC),
    "Box": AssetType("box", things.hollow, "paper", ((178, 142, 98), (196, 164, 122), (150, 116, 80))),
    "Bread": AssetType("food", things.ball, "plain", ((190, 136, 74), (160, 106, 58))),
    "ButterKnife": AssetType("kitchenware", things.block, "metal", (STEEL,)),
    "CD": AssetType("electronics", things.cylinder, "metal", ((200, 206, 220),)),
    "Candle": AssetType("other", things.candle, "plain", _PALE),
    "Cart": AssetType("shelf", furniture.cart, "metal", _METALS, is_receptacle=True),
    "CellPhone": AssetType("electronics", things.block, "screen", (BLACK, (60, 66, 80))),
    "Chair": AssetType("chair", furniture.chair, "wood", _WOODS),
    "Cloth": AssetType("clothing", things.block, "fabric", _FABRICS),
    "ClothesDryer": AssetType("washing_machine", furniture.washer, "metal", _WHITES),
    "CoffeeMachine": AssetType("kitchenware", things.coffee_machine, "plain", _METALS),
    "CoffeeTable": AssetType("coffee_table", furniture.table, "wood", _WOODS, is_receptacle=True),
    "CounterTop": AssetType("counter", furniture.counter, "wood", _WOODS, is_receptacle=True),
    "CreditCard": AssetType("other", things.block, "label", _BRIGHT),
    "Cup": AssetType("kitchenware", things.cylinder, "ceramic", _CERAMIC),
    "Desk": AssetType("desk", furniture.desk, "wood", _WOODS, is_receptacle=True),
    "DeskLamp": AssetType("lamp", things.desk_lamp, "paper", _PALE),
    "Desktop": AssetType("computer", furniture.television, "plain", (BLACK,)),
    "DiningTable": AssetType("dining_table", furniture.table, "wood", _WOODS, is_receptacle=True),
    "DishSponge": AssetType("kitchenware", things.block, "fabric", ((226, 196, 70), (110, 170, 110))),
    "DogBed": AssetType("pillow", things.dog_bed, "fabric", _FABRICS),
    "Doorframe": AssetType("door", things.block, "wood", _WOODS),
    "Doorway": AssetType("door", things.block, "wood", _WOODS),
    "Dresser": AssetType("dresser", furniture.drawers, "wood", _WOODS, is_receptacle=True),
    "Dumbbell": AssetType("sports", things.dumbbell, "plain", (DARK,)),
    "Egg": AssetType("food", things.ball, "plain", ((228, 206, 178), WHITE)),
    "Faucet": AssetType("sink", things.faucet, "metal", _METALS),
    "FloorLamp": AssetType("lamp", furniture.floor_lamp, "paper", _PALE),
    "Footstool": AssetType("stool", furniture.stool, "fabric", _FABRICS),
    "Fork": AssetType("kitchenware", things.block, "metal", (STEEL,)),
    "Fridge": AssetType("refrigerator", furniture.fridge, "metal", _WHITES + _METALS[:1]),
    "GarbageBag": AssetType("bin", things.ball, "plain", ((44, 46, 50), (210, 212, 214))),
    "GarbageCan": AssetType("bin", things.hollow, "metal", _METALS),
    "HandTowel": AssetType("clothing", things.block, "fabric", _FABRICS),
    "HandTowelHolder": AssetType("other", things.block, "metal", _METALS),
    "HousePlant": AssetType("plant", things.plant, "leaves", ((72, 116, 58),)),
    "Kettle": AssetType("kitchenware", things.kettle, "metal", _METALS),
    "KeyChain": AssetType("other", things.block, "metal", _METALS),
    "Knife": AssetType("kitchenware", things.block, "metal", (STEEL,)),
    "Ladle": AssetType("kitchenware", things.block, "metal", _METALS),
    "Laptop": AssetType("computer", things.laptop, "metal", _METALS),
    "LaundryHamper": AssetType("bin", things.hollow, "fabric", _PALE),
    "Lettuce": AssetType("food", things.ball, "leaves", ((132, 178, 84),)),
    "LightSwitch": AssetType("electronics", things.block, "plain", _WHITES),
    "Microwave": AssetType("microwave", things.microwave, "metal", _METALS),
    "Mug": AssetType("kitchenware", things.cylinder, "ceramic", _CERAMIC),
    "Newspaper": AssetType("book", things.block, "label", ((206, 204, 196),)),
    "Ottoman": AssetType("ottoman", things.block, "fabric", _FABRICS),
    "Painting": AssetType("painting", things.picture, "label", (*_BRIGHT, *_FABRICS)),
    "Pan": AssetType("kitchenware", things.pan, "metal", ((70, 70, 74), STEEL)),
    "PaperTowelRoll": AssetType("kitchenware", things.cylinder, "paper", (WHITE,)),
    "Pen": AssetType("other", things.block, "plain", ((40, 60, 120), BLACK)),
    "Pencil": AssetType("other", things.block, "wood", ((222, 172, 66),)),
    "PepperShaker": AssetType("kitchenware", things.bottle, "plain", (DARK,)),
    "Pillow": AssetType("pillow", things.ball, "fabric", (*_FABRICS, WHITE)),
    "Plate": AssetType("kitchenware", things.cylinder, "ceramic", _CERAMIC),
    "Plunger": AssetType("other", things.plunger, "plain", ((150, 60, 50),)),
    "Pot": AssetType("kitchenware", things.pot, "metal", _METALS),
    "Potato": AssetType("food", things.ball, "plain", ((176, 140, 92),)),
    "RemoteControl": AssetType("electronics", things.block, "plain", (BLACK, DARK)),
    "RoomDecor": AssetType("other", things.statue, "ceramic", _CERAMIC),
    "Safe": AssetType("box", things.safe, "metal", ((72, 78, 84),)),
    "SaltShaker": AssetType("kitchenware", things.bottle, "plain", (WHITE,)),
    "ScrubBrush": AssetType("other", things.plunger, "plain", (WHITE,)),
    "ShelvingUnit": AssetType("shelf", furniture.shelf, "wood", _WOODS, is_receptacle=True),
    "ShowerCurtain": AssetType("curtain", things.block, "fabric", _PALE),
    "ShowerHead": AssetType("shower", things.faucet, "metal", _METALS),
    "SideTable": AssetType("side_table", furniture.side_table, "wood", _WOODS, is_receptacle=True),
    "Sink": AssetType("sink", furniture.sink, "ceramic", _WHITES),
    "SoapBar": AssetType("other", things.block, "plain", _PALE),
    "SoapBottle": AssetType("other", things.bottle, "plain", _BRIGHT),
    "Sofa": AssetType("sofa", furniture.sofa, "fabric", _FABRICS),
    "Spatula": AssetType("kitchenware", things.block, "plain", (DARK,)),
    "Spoon": AssetType("kitchenware", things.block, "metal", (STEEL,)),
    "SprayBottle": AssetType("other", things.bottle, "plain", ((90, 150, 190), (196, 206, 210))),
    "Statue": AssetType("other", things.statue, "ceramic", (*_CERAMIC, (184, 150, 90))),
    "Stool": AssetType("stool", furniture.stool, "wood", _WOODS),
    "TVStand": AssetType("tv_stand", furniture.shelf, "wood", _WOODS, is_receptacle=True),
    "TableTopDecor": AssetType("other", things.bowl, "ceramic", _CERAMIC),
    "TeddyBear": AssetType("toy", things.teddy, "fabric", ((150, 106, 66),)),
    "Television": AssetType("television", furniture.television, "plain", (BLACK,)),
    "TennisRacket": AssetType("sports", things.racket, "fabric", _BRIGHT),
    "TissueBox": AssetType("box", things.block, "label", _CERAMIC),
    "Toaster": AssetType("kitchenware", things.toaster, "metal", _METALS),
    "Toilet": AssetType("toilet", furniture.toilet, "ceramic", (WHITE,)),
    "ToiletPaper": AssetType("other", things.cylinder, "paper", (WHITE,)),
    "ToiletPaperHanger": AssetType("other", things.block, "metal", _METALS),
    "Tomato": AssetType("food", things.ball, "plain", ((204, 58, 44),)),
    "Towel": AssetType("clothing", things.block, "fabric", _FABRICS),
    "TowelHolder": AssetType("other", things.block, "metal", _METALS),
    "VacuumCleaner": AssetType("electronics", things.vacuum, "plain", ((160, 60, 54),)),
    "Vase": AssetType("vase", things.vase, "ceramic", _CERAMIC),
    "WashingMachine": AssetType("washing_machine", furniture.washer, "metal", _WHITES),
    "Watch": AssetType("clock", things.block, "metal", _METALS),
    "WateringCan": AssetType("other", things.kettle, "metal", ((96, 140, 110),)),
    "Window": AssetType("window", things.block, "glass", ((206, 224, 232),)),
    "WineBottle": AssetType("kitchenware", things.bottle, "glass", ((44, 66, 48),)),
}

#: What a type is that the table above does not know.
UNKNOWN_TYPE = AssetType("other", things.block, "plain", ((160, 156, 150),))

ROOM_TYPES = {"LivingRoom": "living_room", "Kitchen": "kitchen", "Bedroom": "bedroom", "Bathroom": "bathroom"}

_FINISHES = (  # first match wins; names as in the files, matched without case
    (r"checker", "checker"),
    (r"marble|granite|countertop", "marble"),
    (r"brick", "brick"),
    (r"tiles|porcelain|ceramic|kitchenfloor|kitchenwalls", "tiles"),
    (r"planks|beams|boards|wood|grain", "planks"),
    (r"bedroomfloor|wicker|cabinet|counters|smooth", "parquet"),
    (r"concrete|greyfloor|robinegg", "plain"),
    (r"fabric", "fabric"),
)
_COLOURS = (
    (r"fineDarkFloorsRed|crossred", (122, 66, 44)),
    (r"pureblack|blackwood|black", (52, 50, 50)),
    (r"white|pvclit|0067", (228, 226, 220)),
    (r"eggshell|cream|off_white|pale", (226, 216, 194)),
    (r"dark", (96, 72, 56)),
    (r"light", (206, 178, 138)),
    (r"grey|concrete|floor tiles", (150, 152, 152)),
    (r"orange", (196, 124, 68)),
    (r"pink|rose", (206, 160, 152)),
    (r"turquoise|robinegg", (126, 182, 176)),
    (r"blue", (112, 144, 184)),
    (r"green", (124, 152, 118)),
    (r"yellow", (224, 196, 118)),
    (r"redbrick|red", (164, 78, 62)),
    (r"brick|terracotta", (170, 112, 90)),
    (r"brown|beams|pot|rich", (128, 92, 66)),
    (r"tan|beige|sand|wicker", (198, 172, 134)),
    (r"wood|grain|bedroomfloor", (160, 116, 76)),
    (r"tiles|ceramic|marble", (208, 206, 200)),
)


def finish(name: str, colour: Colour | None, plain: str) -> tuple[int, Colour]:
    """Material and colour of a floor or wall.

    Args:
        name: Material name in the house file, such as "RedBricks".
        colour: The file's own colour, if it has one.
        plain: Name of the material of anything whose name tells nothing.

    Returns:
        Index into MATERIALS, and the colour.
    """
    material = next((found for pattern, found in _FINISHES if re.search(pattern, name, re.IGNORECASE)), plain)
    named = next((found for pattern, found in _COLOURS if re.search(pattern, name, re.IGNORECASE)), (216, 212, 204))
    return MATERIAL_INDEX[material], colour or named
