"""The 40 classes of NYU Depth v2, and the NYU class of each class of our homes."""

from __future__ import annotations

import numpy as np

from memenvs.houses.classes import CLASSES, YCB_CLASSES

#: Names by label; 0 is for pixels where nothing is hit.
NYU40 = (
    "none",
    "wall", "floor", "cabinet", "bed", "chair", "sofa", "table", "door", "window", "bookshelf",
    "picture", "counter", "blinds", "desk", "shelves", "curtain", "dresser", "pillow", "mirror", "floor mat",
    "clothes", "ceiling", "books", "refrigerator", "television", "paper", "towel", "shower curtain", "box",
    "whiteboard", "person", "night stand", "toilet", "sink", "lamp", "bathtub", "bag", "other structure",
    "other furniture", "other prop",
)  # fmt: skip
NYU40_INDEX = {name: label for label, name in enumerate(NYU40)}

#: Class of our homes -> class of NYU40. A computer is a television, as in SUNCG's list of models.
NYU40_OF = {
    "outside": "none", "floor": "floor", "ceiling": "ceiling", "wall": "wall", "door": "door", "window": "window",
    "bed": "bed", "nightstand": "night stand", "wardrobe": "cabinet", "dresser": "dresser", "desk": "desk",
    "chair": "chair", "office_chair": "chair", "armchair": "chair", "sofa": "sofa", "coffee_table": "table",
    "side_table": "table", "dining_table": "table", "tv_stand": "cabinet", "television": "television",
    "bookshelf": "bookshelf", "shelf": "shelves", "cabinet": "cabinet", "counter": "counter",
    "stove": "other furniture", "refrigerator": "refrigerator", "sink": "sink", "microwave": "other prop",
    "toilet": "toilet", "bathtub": "bathtub", "shower": "other structure", "washing_machine": "other furniture",
    "mirror": "mirror", "rug": "floor mat", "lamp": "lamp", "plant": "other prop", "painting": "picture",
    "curtain": "curtain", "stool": "chair", "bench": "chair", "ottoman": "other furniture", "box": "box",
    "bin": "other furniture", "computer": "television", "book": "books", "pillow": "pillow", "clothing": "clothes",
    "kitchenware": "other prop", "food": "other prop", "electronics": "other prop", "sports": "other prop",
    "toy": "other prop", "clock": "other prop", "vase": "other prop", "other": "other prop",
    **dict.fromkeys(YCB_CLASSES, "other prop"),
}  # fmt: skip
#: int32, one label for each of `memenvs.houses.classes.CLASSES`.
LABELS = np.array([NYU40_INDEX[NYU40_OF[name]] for name in CLASSES], np.int32)
