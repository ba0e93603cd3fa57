"""Names that all houses share: semantic classes, materials, room types, YCB objects."""

from __future__ import annotations

#: Objects of ExtObjNav in the order of its one-hot goal (ReLIC release; names of the YCB object set).
YCB_CLASSES = (
    "002_master_chef_can", "003_cracker_box", "004_sugar_box", "005_tomato_soup_can", "007_tuna_fish_can",
    "008_pudding_box", "009_gelatin_box", "010_potted_meat_can", "011_banana", "012_strawberry",
    "013_apple", "014_lemon", "015_peach", "016_pear", "017_orange",
    "018_plum", "021_bleach_cleanser", "024_bowl", "025_mug", "026_sponge",
)  # fmt: skip

STRUCTURE_CLASSES = ("outside", "floor", "ceiling", "wall", "door", "window")

FURNITURE_CLASSES = (
    "bed", "nightstand", "wardrobe", "dresser", "desk", "chair", "office_chair", "armchair", "sofa", "coffee_table",
    "side_table", "dining_table", "tv_stand", "television", "bookshelf", "shelf", "cabinet", "counter", "stove",
    "refrigerator", "sink", "microwave", "toilet", "bathtub", "shower", "washing_machine", "mirror", "rug", "lamp",
    "plant", "painting", "curtain", "stool", "bench", "ottoman", "box", "bin", "computer", "book", "pillow",
    "clothing", "kitchenware", "food", "electronics", "sports", "toy", "clock", "vase", "other",
)  # fmt: skip

#: Value of a pixel in `semantic` observations -> name. "outside" (0) is seen through windows and open doors.
CLASSES = STRUCTURE_CLASSES + FURNITURE_CLASSES + YCB_CLASSES
CLASS_INDEX = {name: index for index, name in enumerate(CLASSES)}
FIRST_YCB_CLASS = CLASS_INDEX[YCB_CLASSES[0]]

#: Index -> name. The texture of a material is drawn by the function of its name in `memenvs.houses.rendering.textures`.
MATERIALS = (
    "plain", "plaster", "wallpaper", "planks", "parquet", "tiles", "checker", "marble", "carpet", "brick",
    "wood", "fabric", "leather", "metal", "glass", "paper", "stripes", "label", "books", "leaves",
    "grass", "screen", "ceramic",
)  # fmt: skip
#: A shape of class "painting" made of one of these shows a picture in its place; each stands for another picture.
PAINTING_MATERIALS = ("label", "leaves", "checker", "marble", "stripes")
MATERIAL_INDEX = {name: index for index, name in enumerate(MATERIALS)}

ROOM_TYPES = ("living_room", "kitchen", "bedroom", "bathroom", "dining_room", "study", "hallway", "laundry", "other")
