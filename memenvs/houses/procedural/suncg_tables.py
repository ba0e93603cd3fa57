"""Tables of SUNCG-style houses: which classes they have, and what each type of room gets.

Source:
    Chosen for this project, because SUNCG's houses, in which the Scene Memory Transformer was trained, were withdrawn.
    Classes are present as often as in SUNCG. The probabilities of beds and coffee tables in bedrooms were raised until
    a random policy found as many classes as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from memenvs.houses.object_model import ObjectModel
from memenvs.houses.procedural import fixtures, furniture
from memenvs.houses.procedural.finishes import FurnitureStyle

Maker = Callable[[np.random.Generator, FurnitureStyle], ObjectModel]


@dataclass(frozen=True)
class FurnitureKind:
    """A kind of furniture.

    Attributes:
        size: Usual width and depth, m.
        make: Function that draws one; it is stretched to about the usual size.
        presence_key: Entry of `PRESENCE_PROBABILITIES` that decides whether a house has this kind; empty if all houses
            may have it.
    """

    size: tuple[float, float]
    make: Maker
    presence_key: str = ""


@dataclass(frozen=True)
class FurnitureRule:
    """Pieces of one kind that a room gets.

    Attributes:
        kind: Key of `FURNITURE_KINDS`.
        probability: Probability of each piece.
        count: Fewest and most pieces that are drawn, each with this probability.
        where: "wall" (back to any wall), "centre" (centre of the room) or "sofa" (6 of 10 at a wall, the rest in the
            middle). For companions: "beside" (beside their anchor, backs in line), "in_front" (a little in front of it,
            turned like it), "facing" (at its front, turned to it) or "around" (at any side, turned to it).
        companions: Rules for pieces that go with each placed piece, their anchor.
    """

    kind: str
    probability: float = 1.0
    count: tuple[int, int] = (1, 1)
    where: str = "wall"
    companions: tuple[FurnitureRule, ...] = ()


#: Probability that a house has a class at all, if its rooms draw it and have a place for it.
PRESENCE_PROBABILITIES = {
    "bed": 0.82,
    "sofa": 0.97,
    "table": 0.98,
    "television": 0.80,
    "refrigerator": 0.80,
    "bookshelf": 0.74,
}

#: A house with none of these has nothing to search for, and is drawn again.
TARGET_CLASSES = frozenset({"bed", "sofa", "coffee_table", "dining_table", "television", "refrigerator", "bookshelf"})


def _counter(rng: np.random.Generator, style: FurnitureStyle, has_sink: bool) -> ObjectModel:
    return fixtures.counter(rng, style, width=2.4, has_sink=has_sink, has_microwave=bool(rng.random() < 0.5))


# Books and pillows get the class of what they lie on, as SUNCG labels each model as one object.
# In the functions, `r` is the random generator and `s` the style.
FURNITURE_KINDS: dict[str, FurnitureKind] = {
    "bed": FurnitureKind((1.6, 2.0), lambda r, s: furniture.bed(r, s, is_double=True).merge_instances("pillow"), "bed"),
    "nightstand": FurnitureKind((0.45, 0.4), lambda r, s: furniture.nightstand(r, s, has_lamp=bool(r.random() < 0.5))),
    "wardrobe": FurnitureKind((1.6, 0.6), furniture.wardrobe),
    "dresser": FurnitureKind((1.1, 0.5), furniture.dresser),
    "sofa": FurnitureKind(
        (2.0, 0.9), lambda r, s: furniture.sofa(r, s, seats=int(r.integers(2, 4))).merge_instances("pillow"), "sofa"
    ),
    "armchair": FurnitureKind((0.85, 0.85), lambda r, s: furniture.sofa(r, s, seats=1).merge_instances("pillow")),
    "coffee_table": FurnitureKind(
        (1.1, 0.6), lambda r, s: furniture.coffee_table(r, s).merge_instances("book"), "table"
    ),
    "hall_table": FurnitureKind((1.1, 0.6), lambda r, s: furniture.table(r, s, width=1.1, depth=0.6), "table"),
    "table": FurnitureKind((1.5, 0.9), lambda r, s: furniture.table(r, s, width=1.5, depth=0.9), "table"),
    "tv_stand": FurnitureKind((1.4, 0.45), lambda r, s: furniture.tv_stand(r, s, width=1.4, has_television=False)),
    "television": FurnitureKind((1.4, 0.45), lambda r, s: furniture.tv_stand(r, s, width=1.4), "television"),
    "bookshelf": FurnitureKind(
        (1.0, 0.35), lambda r, s: fixtures.bookshelf(r, s, is_low=False).merge_instances("book"), "bookshelf"
    ),
    "chair": FurnitureKind((0.45, 0.5), lambda r, s: furniture.chair(s)),
    "office_chair": FurnitureKind((0.56, 0.56), lambda r, s: furniture.office_chair(s)),
    "counter": FurnitureKind((2.4, 0.6), lambda r, s: _counter(r, s, has_sink=True)),
    "worktop": FurnitureKind((2.4, 0.6), lambda r, s: _counter(r, s, has_sink=False)),
    "refrigerator": FurnitureKind((0.7, 0.7), lambda r, s: fixtures.refrigerator(r), "refrigerator"),
    "toilet": FurnitureKind((0.4, 0.7), lambda r, s: fixtures.toilet()),
    "bathtub": FurnitureKind((1.6, 0.75), lambda r, s: fixtures.bathtub(r)),
    "sink": FurnitureKind((0.6, 0.5), fixtures.vanity),
    "desk": FurnitureKind((1.3, 0.65), lambda r, s: furniture.desk(r, s, has_computer=False)),
    "computer_desk": FurnitureKind(
        (1.3, 0.65), lambda r, s: furniture.desk(r, s, has_computer=bool(r.random() < 0.5)), "television"
    ),
    "lamp": FurnitureKind((0.35, 0.35), lambda r, s: fixtures.floor_lamp()),
    "plant": FurnitureKind((0.4, 0.4), lambda r, s: fixtures.plant(r)),
    "shelf": FurnitureKind((1.0, 0.4), lambda r, s: fixtures.shelf(r)),
    "box": FurnitureKind((0.5, 0.4), lambda r, s: fixtures.hamper(s)),
    "cabinet": FurnitureKind((1.2, 0.5), fixtures.cabinet),
}

_DESK = FurnitureRule("computer_desk", companions=(FurnitureRule("office_chair", where="facing"),))

#: Rules of each type of room, in the order in which pieces are placed.
ROOM_RULES: dict[str, tuple[FurnitureRule, ...]] = {
    "bedroom": (
        FurnitureRule("bed", companions=(FurnitureRule("nightstand", 0.21, (2, 2), "beside"),)),
        FurnitureRule("wardrobe", 0.27),
        FurnitureRule("dresser", 0.15),
        replace(_DESK, probability=0.11),
        FurnitureRule("television", 0.55),
        FurnitureRule("bookshelf", 0.44),
        FurnitureRule("coffee_table", 0.60),
        FurnitureRule("lamp", 0.12),
        FurnitureRule("bed", 0.20),
    ),
    "living_room": (
        FurnitureRule("sofa", where="sofa", companions=(FurnitureRule("coffee_table", where="in_front"),)),
        FurnitureRule("sofa", 0.65),
        FurnitureRule("coffee_table", 0.50),
        FurnitureRule("armchair", 0.15, (2, 2)),
        FurnitureRule("television"),
        FurnitureRule("bookshelf", 0.21),
        FurnitureRule("plant", 0.18, (2, 2)),
        FurnitureRule("lamp", 0.18),
    ),
    "dining_room": (
        FurnitureRule("table", where="centre", companions=(FurnitureRule("chair", 1.0, (3, 6), "around"),)),
        FurnitureRule("cabinet", 0.18),
        FurnitureRule("plant", 0.12),
    ),
    "kitchen": (
        FurnitureRule("counter"),
        FurnitureRule("worktop", 0.18),
        FurnitureRule("refrigerator"),
        FurnitureRule("cabinet", 0.15),
        FurnitureRule("table", 0.75, where="centre", companions=(FurnitureRule("chair", 1.0, (2, 4), "around"),)),
    ),
    "bathroom": (
        FurnitureRule("toilet"),
        FurnitureRule("sink"),
        FurnitureRule("bathtub", 0.24),
        FurnitureRule("cabinet", 0.12),
    ),
    "study": (
        _DESK,
        FurnitureRule("bookshelf"),
        FurnitureRule("cabinet", 0.15),
        FurnitureRule("armchair", 0.09),
        FurnitureRule("sofa", 0.40),
    ),
    "other": (FurnitureRule("shelf"), FurnitureRule("box", 0.18, (3, 3))),
    "hallway": (
        FurnitureRule("hall_table", 0.50),
        FurnitureRule("bookshelf", 0.30),
        FurnitureRule("cabinet", 0.15),
        FurnitureRule("plant", 0.12),
    ),
}

#: Kind that takes the place of one that a house does not have. SUNCG counts computers as televisions.
SUBSTITUTES = {"television": "tv_stand", "computer_desk": "desk"}
