"""What SUNCG-style homes hold, as tables of chances: which classes a home has at all, what each type of room gets, and how large it is.

Source:
    This project's: no houses of the Scene Memory Transformer's article are to be had. Classes are present as often as in the houses that it
    used; the chances of beds and low tables in bedrooms were raised until a random policy found as many classes as in the article.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from memenvs.houses.procedural import fixtures, furniture
from memenvs.houses.procedural.furniture_model import Model, Style

Maker = Callable[[np.random.Generator, Style], Model]


@dataclass(frozen=True)
class Item:
    """A kind of furniture.

    Attributes:
        size: Usual outline, width and depth, m.
        make: Draws one; it is stretched to the outline.
        switch: Entry of `PRESENCE` that a home without it is without this kind; empty if all homes may have it.
    """

    size: tuple[float, float]
    make: Maker
    switch: str = ""


@dataclass(frozen=True)
class Wish:
    """What a room gets.

    Attributes:
        item: Key of `ITEMS`.
        chance: Of each piece.
        count: Fewest and most pieces that chance decides about.
        where: "wall" (back to any wall), "sofa" (6 of 10 at a wall, the rest in the middle), "centre" (in the middle of the room), and
            relative to the piece that it goes with: "beside" (at its back end), "before" (a little way off its front, turned like
            it), "facing" (at its front, turned to it), "around" (at any side, turned to it).
        followers: What goes with a piece once it stands.
    """

    item: str
    chance: float = 1.0
    count: tuple[int, int] = (1, 1)
    where: str = "wall"
    followers: tuple[Wish, ...] = ()


#: Chance that a home has a class at all, where its rooms want it and have a place for it.
PRESENCE = {"bed": 0.82, "sofa": 0.97, "table": 0.98, "television": 0.80, "refrigerator": 0.80, "bookshelf": 0.74}

#: A home with none of these has nothing to search for.
TARGET_CLASSES = frozenset({"bed", "sofa", "coffee_table", "dining_table", "television", "refrigerator", "bookshelf"})


def _counter(rng: np.random.Generator, style: Style, has_sink: bool) -> Model:
    return fixtures.counter(rng, style, width=2.4, has_sink=has_sink, has_microwave=bool(rng.random() < 0.5))


# Books, pillows and the like are of the class of what they lie on: SUNCG's models are labelled as wholes.
ITEMS: dict[str, Item] = {
    "bed": Item((1.6, 2.0), lambda r, s: furniture.bed(r, s, is_double=True).absorb("pillow"), "bed"),
    "nightstand": Item((0.45, 0.4), lambda r, s: furniture.nightstand(r, s, has_lamp=bool(r.random() < 0.5))),
    "wardrobe": Item((1.6, 0.6), furniture.wardrobe),
    "dresser": Item((1.1, 0.5), furniture.dresser),
    "sofa": Item((2.0, 0.9), lambda r, s: furniture.sofa(r, s, seats=int(r.integers(2, 4))).absorb("pillow"), "sofa"),
    "armchair": Item((0.85, 0.85), lambda r, s: furniture.sofa(r, s, seats=1).absorb("pillow")),
    "low_table": Item((1.1, 0.6), lambda r, s: furniture.coffee_table(r, s).absorb("book"), "table"),
    "hall_table": Item((1.1, 0.6), lambda r, s: furniture.table(r, s, width=1.1, depth=0.6), "table"),
    "table": Item((1.5, 0.9), lambda r, s: furniture.table(r, s, width=1.5, depth=0.9), "table"),
    "tv_stand": Item((1.4, 0.45), lambda r, s: furniture.tv_stand(r, s, width=1.4, has_television=False)),
    "television": Item((1.4, 0.45), lambda r, s: furniture.tv_stand(r, s, width=1.4), "television"),
    "bookshelf": Item((1.0, 0.35), lambda r, s: fixtures.bookshelf(r, s, is_low=False).absorb("book"), "bookshelf"),
    "chair": Item((0.45, 0.5), lambda r, s: furniture.chair(s)),
    "office_chair": Item((0.56, 0.56), lambda r, s: furniture.office_chair(s)),
    "counter": Item((2.4, 0.6), lambda r, s: _counter(r, s, has_sink=True)),
    "worktop": Item((2.4, 0.6), lambda r, s: _counter(r, s, has_sink=False)),
    "refrigerator": Item((0.7, 0.7), lambda r, s: fixtures.refrigerator(r), "refrigerator"),
    "toilet": Item((0.4, 0.7), lambda r, s: fixtures.toilet()),
    "bathtub": Item((1.6, 0.75), lambda r, s: fixtures.bathtub(r)),
    "sink": Item((0.6, 0.5), fixtures.vanity),
    "desk": Item((1.3, 0.65), lambda r, s: furniture.desk(r, s, has_computer=False)),
    "computer_desk": Item(
        (1.3, 0.65), lambda r, s: furniture.desk(r, s, has_computer=bool(r.random() < 0.5)), "television"
    ),
    "lamp": Item((0.35, 0.35), lambda r, s: fixtures.floor_lamp()),
    "plant": Item((0.4, 0.4), lambda r, s: fixtures.plant(r)),
    "shelf": Item((1.0, 0.4), lambda r, s: fixtures.shelf(r)),
    "box": Item((0.5, 0.4), lambda r, s: fixtures.hamper(s)),
    "cabinet": Item((1.2, 0.5), fixtures.cabinet),
}

_DESK = Wish("computer_desk", followers=(Wish("office_chair", where="facing"),))

#: By type of room, in the order in which it is placed.
WISHES: dict[str, tuple[Wish, ...]] = {
    "bedroom": (
        Wish("bed", followers=(Wish("nightstand", 0.21, (2, 2), "beside"),)),
        Wish("wardrobe", 0.27), Wish("dresser", 0.15), replace(_DESK, chance=0.11), Wish("television", 0.55),
        Wish("bookshelf", 0.44), Wish("low_table", 0.60), Wish("lamp", 0.12), Wish("bed", 0.20),
    ),
    "living_room": (
        Wish("sofa", where="sofa", followers=(Wish("low_table", where="before"),)),
        Wish("sofa", 0.65), Wish("low_table", 0.50), Wish("armchair", 0.15, (2, 2)), Wish("television"), Wish("bookshelf", 0.21),
        Wish("plant", 0.18, (2, 2)), Wish("lamp", 0.18),
    ),
    "dining_room": (
        Wish("table", where="centre", followers=(Wish("chair", 1.0, (3, 6), "around"),)),
        Wish("cabinet", 0.18), Wish("plant", 0.12),
    ),
    "kitchen": (
        Wish("counter"), Wish("worktop", 0.18), Wish("refrigerator"), Wish("cabinet", 0.15),
        Wish("table", 0.75, where="centre", followers=(Wish("chair", 1.0, (2, 4), "around"),)),
    ),
    "bathroom": (Wish("toilet"), Wish("sink"), Wish("bathtub", 0.24), Wish("cabinet", 0.12)),
    "study": (_DESK, Wish("bookshelf"), Wish("cabinet", 0.15), Wish("armchair", 0.09), Wish("sofa", 0.40)),
    "other": (Wish("shelf"), Wish("box", 0.18, (3, 3))),
    "hallway": (Wish("hall_table", 0.50), Wish("bookshelf", 0.30), Wish("cabinet", 0.15), Wish("plant", 0.12)),
}  # fmt: skip

#: What takes the place of a kind that a home is without. SUNCG counts computers as televisions.
INSTEAD = {"television": "tv_stand", "computer_desk": "desk"}
