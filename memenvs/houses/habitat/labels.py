"""Names of objects and rooms in other data sets, as classes of ours."""

from __future__ import annotations

import re

from memenvs.houses.classes import CLASS_INDEX, FURNITURE_CLASSES, ROOM_TYPES, STRUCTURE_CLASSES

_OTHER = "other"
#: Names of HSSD, ReplicaCAD and Matterport3D -> our class.
_SYNONYMS = {
    "couch": "sofa", "loveseat": "sofa", "recliner": "armchair", "tv": "television", "tvstand": "tv_stand",
    "fridge": "refrigerator", "bedside_table": "nightstand", "night_stand": "nightstand", "bed_table": "nightstand",
    "table": "dining_table", "chest_of_drawers": "dresser", "closet": "wardrobe", "armoire": "wardrobe",
    "bookcase": "bookshelf", "shelves": "shelf", "shelving": "shelf", "rack": "shelf", "cupboard": "cabinet",
    "countertop": "counter", "kitchen_island": "counter", "oven": "stove", "cooktop": "stove", "range": "stove",
    "washer": "washing_machine", "basin": "sink", "tub": "bathtub", "carpet": "rug", "mat": "rug",
    "picture": "painting", "art_frame": "painting", "cushion": "pillow", "trashcan": "bin", "trash_can": "bin",
    "flower": "plant", "flowerpot": "plant", "tree": "plant", "monitor": "computer", "laptop": "computer",
    "blinds": "curtain", "books": "book", "pouf": "ottoman", "bowl": "kitchenware", "plate": "kitchenware",
    "cup": "kitchenware", "mug": "kitchenware", "pan": "kitchenware", "pot": "kitchenware",
    "doorway": "door", "door_frame": "door", "window_frame": "window", "ceiling_lower": "ceiling", "stairs": "floor",
}  # fmt: skip
_NAMES = {**{name: name for name in (*STRUCTURE_CLASSES, *FURNITURE_CLASSES)}, **_SYNONYMS}
_ROOMS = {
    "livingroom": "living_room", "lounge": "living_room", "familyroom": "living_room", "diningroom": "dining_room",
    "office": "study", "corridor": "hallway", "entryway": "hallway", "foyer": "hallway", "laundryroom": "laundry",
    "toilet": "bathroom", **{name.replace("_", ""): name for name in ROOM_TYPES},
}  # fmt: skip


def object_class(name: str) -> int:
    """Find the class of an object by its name, such as "frl_apartment_chair_01".

    The longest known part of the name counts, and the last of equal ones.

    Returns:
        Index into `memenvs.houses.classes.CLASSES`; that of "other" for an unknown name.
    """
    words = re.findall("[a-z]+", name.lower())
    for count in range(len(words), 0, -1):
        for first in range(len(words) - count, -1, -1):
            part = "_".join(words[first : first + count])
            if part in _NAMES:
                return CLASS_INDEX[_NAMES[part]]
    return CLASS_INDEX[_OTHER]


def room_type(name: str) -> str:
    """Find the type of a room by its name, such as "bedroom_2"; "other" for an unknown one."""
    return _ROOMS.get("".join(re.findall("[a-z]+", name.lower())), _OTHER)
