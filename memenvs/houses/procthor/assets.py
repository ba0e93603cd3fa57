"""Tables of ProcTHOR's names: class, shape, material and colours of each object type."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from memenvs.houses.house import Colour, Finish
from memenvs.houses.procthor import furniture_shapes, item_shapes
from memenvs.houses.procthor.asset_model import BLACK, DARK, STEEL, WHITE, AssetModel

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
    """Class and appearance of one object type.

    Attributes:
        semantic: One of `memenvs.houses.classes.CLASSES`.
        fill: Function that fills the asset's bounding box.
        material: One of `memenvs.houses.classes.MATERIALS`.
        colours: The asset's id chooses one of them.
        is_receptacle: Whether small objects may be put on it.
    """

    semantic: str
    fill: Callable[[AssetModel], None]
    material: str
    colours: tuple[Colour, ...]
    is_receptacle: bool = False

    def finish(self, asset: str) -> Finish:
        """The finish of the asset with this id."""
        return Finish(self.material, self.colours[zlib.crc32(asset.encode()) % len(self.colours)])


#: Object type of ProcTHOR -> row. Class "other" is for decoration, stationery and toiletries, which no class names.
ASSET_TYPES: dict[str, AssetType] = {
    "AlarmClock": AssetType("clock", item_shapes.alarm_clock, "plain", _BRIGHT),
    "AluminumFoil": AssetType("kitchenware", item_shapes.block, "metal", _METALS),
    "Apple": AssetType("food", item_shapes.ellipsoid, "plain", ((186, 40, 44), (126, 160, 60))),
    "ArmChair": AssetType("armchair", furniture_shapes.sofa, "fabric", _FABRICS),
    "BaseballBat": AssetType("sports", item_shapes.block, "wood", _WOODS[:2]),
    "BasketBall": AssetType("sports", item_shapes.ellipsoid, "leather", ((204, 104, 46),)),
    "Bed": AssetType("bed", furniture_shapes.bed, "fabric", _FABRICS),
    "Blinds": AssetType("curtain", item_shapes.block, "stripes", _PALE),
    "Book": AssetType("book", item_shapes.book, "label", _BRIGHT),
    "Boots": AssetType("clothing", item_shapes.boots, "leather", ((92, 62, 44),)),
    "Bottle": AssetType("kitchenware", item_shapes.bottle, "glass", ((70, 120, 84),)),
    "Bowl": AssetType("kitchenware", item_shapes.bowl, "ceramic", _CERAMIC),
    "Box": AssetType("box", item_shapes.hollow, "paper", ((178, 142, 98), (196, 164, 122), (150, 116, 80))),
    "Bread": AssetType("food", item_shapes.ellipsoid, "plain", ((190, 136, 74), (160, 106, 58))),
    "ButterKnife": AssetType("kitchenware", item_shapes.block, "metal", (STEEL,)),
    "CD": AssetType("electronics", item_shapes.cylinder, "metal", ((200, 206, 220),)),
    "Candle": AssetType("other", item_shapes.candle, "plain", _PALE),
    "Cart": AssetType("shelf", furniture_shapes.cart, "metal", _METALS, is_receptacle=True),
    "CellPhone": AssetType("electronics", item_shapes.block, "screen", (BLACK, (60, 66, 80))),
    "Chair": AssetType("chair", furniture_shapes.chair, "wood", _WOODS),
    "Cloth": AssetType("clothing", item_shapes.block, "fabric", _FABRICS),
    "ClothesDryer": AssetType("washing_machine", furniture_shapes.washer, "metal", _WHITES),
    "CoffeeMachine": AssetType("kitchenware", item_shapes.coffee_machine, "plain", _METALS),
    "CoffeeTable": AssetType("coffee_table", furniture_shapes.table, "wood", _WOODS, is_receptacle=True),
    "CounterTop": AssetType("counter", furniture_shapes.counter, "wood", _WOODS, is_receptacle=True),
    "CreditCard": AssetType("other", item_shapes.block, "label", _BRIGHT),
    "Cup": AssetType("kitchenware", item_shapes.cylinder, "ceramic", _CERAMIC),
    "Desk": AssetType("desk", furniture_shapes.desk, "wood", _WOODS, is_receptacle=True),
    "DeskLamp": AssetType("lamp", item_shapes.desk_lamp, "paper", _PALE),
    "Desktop": AssetType("computer", furniture_shapes.television, "plain", (BLACK,)),
    "DiningTable": AssetType("dining_table", furniture_shapes.table, "wood", _WOODS, is_receptacle=True),
    "DishSponge": AssetType("kitchenware", item_shapes.block, "fabric", ((226, 196, 70), (110, 170, 110))),
    "DogBed": AssetType("pillow", item_shapes.dog_bed, "fabric", _FABRICS),
    "Doorframe": AssetType("door", item_shapes.block, "wood", _WOODS),
    "Doorway": AssetType("door", item_shapes.block, "wood", _WOODS),
    "Dresser": AssetType("dresser", furniture_shapes.drawers, "wood", _WOODS, is_receptacle=True),
    "Dumbbell": AssetType("sports", item_shapes.dumbbell, "plain", (DARK,)),
    "Egg": AssetType("food", item_shapes.ellipsoid, "plain", ((228, 206, 178), WHITE)),
    "Faucet": AssetType("sink", item_shapes.faucet, "metal", _METALS),
    "FloorLamp": AssetType("lamp", furniture_shapes.floor_lamp, "paper", _PALE),
    "Footstool": AssetType("stool", furniture_shapes.stool, "fabric", _FABRICS),
    "Fork": AssetType("kitchenware", item_shapes.block, "metal", (STEEL,)),
    "Fridge": AssetType("refrigerator", furniture_shapes.fridge, "metal", _WHITES + _METALS[:1]),
    "GarbageBag": AssetType("bin", item_shapes.ellipsoid, "plain", ((44, 46, 50), (210, 212, 214))),
    "GarbageCan": AssetType("bin", item_shapes.hollow, "metal", _METALS),
    "HandTowel": AssetType("clothing", item_shapes.block, "fabric", _FABRICS),
    "HandTowelHolder": AssetType("other", item_shapes.block, "metal", _METALS),
    "HousePlant": AssetType("plant", item_shapes.plant, "leaves", ((72, 116, 58),)),
    "Kettle": AssetType("kitchenware", item_shapes.kettle, "metal", _METALS),
    "KeyChain": AssetType("other", item_shapes.block, "metal", _METALS),
    "Knife": AssetType("kitchenware", item_shapes.block, "metal", (STEEL,)),
    "Ladle": AssetType("kitchenware", item_shapes.block, "metal", _METALS),
    "Laptop": AssetType("computer", item_shapes.laptop, "metal", _METALS),
    "LaundryHamper": AssetType("bin", item_shapes.hollow, "fabric", _PALE),
    "Lettuce": AssetType("food", item_shapes.ellipsoid, "leaves", ((132, 178, 84),)),
    "LightSwitch": AssetType("electronics", item_shapes.block, "plain", _WHITES),
    "Microwave": AssetType("microwave", item_shapes.microwave, "metal", _METALS),
    "Mug": AssetType("kitchenware", item_shapes.cylinder, "ceramic", _CERAMIC),
    "Newspaper": AssetType("book", item_shapes.block, "label", ((206, 204, 196),)),
    "Ottoman": AssetType("ottoman", item_shapes.block, "fabric", _FABRICS),
    "Painting": AssetType("painting", item_shapes.picture, "label", (*_BRIGHT, *_FABRICS)),
    "Pan": AssetType("kitchenware", item_shapes.pan, "metal", ((70, 70, 74), STEEL)),
    "PaperTowelRoll": AssetType("kitchenware", item_shapes.cylinder, "paper", (WHITE,)),
    "Pen": AssetType("other", item_shapes.block, "plain", ((40, 60, 120), BLACK)),
    "Pencil": AssetType("other", item_shapes.block, "wood", ((222, 172, 66),)),
    "PepperShaker": AssetType("kitchenware", item_shapes.bottle, "plain", (DARK,)),
    "Pillow": AssetType("pillow", item_shapes.ellipsoid, "fabric", (*_FABRICS, WHITE)),
    "Plate": AssetType("kitchenware", item_shapes.cylinder, "ceramic", _CERAMIC),
    "Plunger": AssetType("other", item_shapes.plunger, "plain", ((150, 60, 50),)),
    "Pot": AssetType("kitchenware", item_shapes.pot, "metal", _METALS),
    "Potato": AssetType("food", item_shapes.ellipsoid, "plain", ((176, 140, 92),)),
    "RemoteControl": AssetType("electronics", item_shapes.block, "plain", (BLACK, DARK)),
    "RoomDecor": AssetType("other", item_shapes.statue, "ceramic", _CERAMIC),
    "Safe": AssetType("box", item_shapes.safe, "metal", ((72, 78, 84),)),
    "SaltShaker": AssetType("kitchenware", item_shapes.bottle, "plain", (WHITE,)),
    "ScrubBrush": AssetType("other", item_shapes.plunger, "plain", (WHITE,)),
    "ShelvingUnit": AssetType("shelf", furniture_shapes.shelf, "wood", _WOODS, is_receptacle=True),
    "ShowerCurtain": AssetType("curtain", item_shapes.block, "fabric", _PALE),
    "ShowerHead": AssetType("shower", item_shapes.faucet, "metal", _METALS),
    "SideTable": AssetType("side_table", furniture_shapes.side_table, "wood", _WOODS, is_receptacle=True),
    "Sink": AssetType("sink", furniture_shapes.sink, "ceramic", _WHITES),
    "SoapBar": AssetType("other", item_shapes.block, "plain", _PALE),
    "SoapBottle": AssetType("other", item_shapes.bottle, "plain", _BRIGHT),
    "Sofa": AssetType("sofa", furniture_shapes.sofa, "fabric", _FABRICS),
    "Spatula": AssetType("kitchenware", item_shapes.block, "plain", (DARK,)),
    "Spoon": AssetType("kitchenware", item_shapes.block, "metal", (STEEL,)),
    "SprayBottle": AssetType("other", item_shapes.bottle, "plain", ((90, 150, 190), (196, 206, 210))),
    "Statue": AssetType("other", item_shapes.statue, "ceramic", (*_CERAMIC, (184, 150, 90))),
    "Stool": AssetType("stool", furniture_shapes.stool, "wood", _WOODS),
    "TVStand": AssetType("tv_stand", furniture_shapes.shelf, "wood", _WOODS, is_receptacle=True),
    "TableTopDecor": AssetType("other", item_shapes.bowl, "ceramic", _CERAMIC),
    "TeddyBear": AssetType("toy", item_shapes.teddy, "fabric", ((150, 106, 66),)),
    "Television": AssetType("television", furniture_shapes.television, "plain", (BLACK,)),
    "TennisRacket": AssetType("sports", item_shapes.racket, "fabric", _BRIGHT),
    "TissueBox": AssetType("box", item_shapes.block, "label", _CERAMIC),
    "Toaster": AssetType("kitchenware", item_shapes.toaster, "metal", _METALS),
    "Toilet": AssetType("toilet", furniture_shapes.toilet, "ceramic", (WHITE,)),
    "ToiletPaper": AssetType("other", item_shapes.cylinder, "paper", (WHITE,)),
    "ToiletPaperHanger": AssetType("other", item_shapes.block, "metal", _METALS),
    "Tomato": AssetType("food", item_shapes.ellipsoid, "plain", ((204, 58, 44),)),
    "Towel": AssetType("clothing", item_shapes.block, "fabric", _FABRICS),
    "TowelHolder": AssetType("other", item_shapes.block, "metal", _METALS),
    "VacuumCleaner": AssetType("electronics", item_shapes.vacuum, "plain", ((160, 60, 54),)),
    "Vase": AssetType("vase", item_shapes.vase, "ceramic", _CERAMIC),
    "WashingMachine": AssetType("washing_machine", furniture_shapes.washer, "metal", _WHITES),
    "Watch": AssetType("clock", item_shapes.block, "metal", _METALS),
    "WateringCan": AssetType("other", item_shapes.kettle, "metal", ((96, 140, 110),)),
    "Window": AssetType("window", item_shapes.block, "glass", ((206, 224, 232),)),
    "WineBottle": AssetType("kitchenware", item_shapes.bottle, "glass", ((44, 66, 48),)),
}

#: Row of a type that the table does not have.
UNKNOWN_TYPE = AssetType("other", item_shapes.block, "plain", ((160, 156, 150),))

#: Letters of a room type of ProcTHOR ("LivingRoom") or Holodeck ("living room-1") in lower case -> room type.
ROOM_TYPES = {"livingroom": "living_room", "kitchen": "kitchen", "bedroom": "bedroom", "bathroom": "bathroom"}

#: Pattern of a surface's name in the files -> material. The first match counts; case does not.
_MATERIAL_PATTERNS = (
    (r"checker", "checker"),
    (r"marble|granite|countertop", "marble"),
    (r"brick", "brick"),
    (r"tiles|porcelain|ceramic|kitchenfloor|kitchenwalls", "tiles"),
    (r"planks|beams|boards|wood|grain", "planks"),
    (r"bedroomfloor|wicker|cabinet|counters|smooth", "parquet"),
    (r"concrete|greyfloor|robinegg", "plain"),
    (r"fabric", "fabric"),
)
#: Pattern of a surface's name -> colour.
_COLOUR_PATTERNS = (
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
_UNKNOWN_COLOUR: Colour = (216, 212, 204)


def surface_finish(name: str, colour: Colour | None, default_material: str) -> Finish:
    """Material and colour of a floor or wall.

    Args:
        name: Material name in the house file, such as "RedBricks".
        colour: The file's own colour, if it has one.
        default_material: Material of names that no pattern matches.
    """
    # The first match counts.
    materials = [material for pattern, material in _MATERIAL_PATTERNS if re.search(pattern, name, re.IGNORECASE)]
    colours = [named for pattern, named in _COLOUR_PATTERNS if re.search(pattern, name, re.IGNORECASE)]
    return Finish([*materials, default_material][0], colour or [*colours, _UNKNOWN_COLOUR][0])
