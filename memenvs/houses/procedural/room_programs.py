"""Room programs: the furniture that each type of room gets.

Where in the room it goes is in `room_furnisher.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from memenvs.houses.procedural import fixtures, furniture
from memenvs.houses.procedural.finishes import FurnitureStyle
from memenvs.houses.procedural.placement import RoomPlacer
from memenvs.houses.procedural.room_furnisher import RoomFurnisher

#: Classes that count as pieces of furniture; lamps, plants, rugs, pictures and what stands on furniture do not.
PIECE_CLASSES = frozenset({
    "bed", "nightstand", "wardrobe", "dresser", "desk", "chair", "office_chair", "armchair", "sofa", "coffee_table",
    "side_table", "dining_table", "tv_stand", "bookshelf", "shelf", "cabinet", "counter", "stove", "refrigerator",
    "sink", "toilet", "bathtub", "shower", "washing_machine", "bench",
})  # fmt: skip

#: Classes that each type of room must have, so that its type can be recognised.
REQUIRED_CLASSES = {
    "living_room": {"sofa"},
    "kitchen": {"counter", "refrigerator", "stove"},
    "bedroom": {"bed"},
    "bathroom": {"toilet", "sink"},
    "dining_room": {"dining_table"},
    "study": {"desk"},
    "laundry": {"washing_machine"},
}

#: Places furniture or decoration if it fits; the result is ignored.
FurnishStep = Callable[[], object]


class RoomProgram(RoomFurnisher):
    """A `RoomFurnisher` with the steps that its type of room needs.

    Args:
        rng: Random generator.
        placer: The room and what is in it.
        style: Finishes of the furniture.
        has_dining_room: Whether the house has one. If not, kitchens and living rooms may get dining tables.
        is_crowded: Whether the house has many rooms; each then gets fewer pieces.

    Attributes:
        essentials: Steps for `REQUIRED_CLASSES`.
        usual: Steps that are left out only if the house has enough furniture already; one piece each.
        extras: Steps of which the house gets a random selection; at most five pieces each.
        decoration: Steps for objects that do not count as pieces.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        placer: RoomPlacer,
        style: FurnitureStyle,
        *,
        has_dining_room: bool,
        is_crowded: bool,
    ) -> None:
        super().__init__(rng, placer, style, is_crowded=is_crowded)
        self.essentials: list[FurnishStep] = []
        self.usual: list[FurnishStep] = []
        self.extras: list[FurnishStep] = []
        self.decoration: list[FurnishStep] = []
        self._has_dining_room = has_dining_room
        plan = getattr(self, f"_plan_{placer.room.type}", None)  # types without a method get pictures only
        if plan is not None:
            plan()
        if placer.room.type not in ("bathroom", "laundry"):
            self.decoration.append(self.hang_pictures)

    @property
    def num_pieces(self) -> int:
        """Pieces of furniture placed so far; cabinets that hang on a wall do not count."""
        pieces = [item.model for item in self.placer.placements if item.model.name in PIECE_CLASSES]
        return sum(model.parts[0].centre[2] < 1.4 for model in pieces)  # wall cabinets hang higher, m

    @property
    def is_complete(self) -> bool:
        """True if the room has all `REQUIRED_CLASSES` of its type."""
        present = {item.model.name for item in self.placer.placements}
        return REQUIRED_CLASSES.get(self.placer.room.type, set()) <= present

    def _plan_bedroom(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [self.place_bed]
        self.usual += [lambda: self.place_at_wall(furniture.wardrobe(rng, style), front=0.55, where="corner")]
        choices: list[tuple[float, FurnishStep]] = [  # (probability, step)
            (0.6, lambda: self.place_at_wall(furniture.dresser(rng, style), front=0.5)),
            (0.45, self.place_desk),
            (0.25, lambda: self.place_at_wall(fixtures.bookshelf(rng, style, is_low=self.bernoulli(0.6)), front=0.4)),
            (0.2, lambda: self.place_at_wall(furniture.tv_stand(rng, style), front=0.5, where="centre")),
            (0.2, lambda: self.place_at_wall(furniture.sofa(rng, style, seats=1), front=0.4, where="corner")),
        ]
        self.extras += [step for probability, step in choices if self.bernoulli(probability)]
        self.decoration += [
            self.lay_bed_rug,
            lambda: self.bernoulli(0.4) and self.place_at_wall(fixtures.plant(rng), where="corner"),
            lambda: self.bernoulli(0.4) and self.place_at_wall(fixtures.hamper(style), where="corner"),
        ]

    def _plan_study(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [self.place_desk]
        self.usual += [lambda: self.place_at_wall(fixtures.bookshelf(rng, style, is_low=False), front=0.5)]
        self.extras += [
            lambda: self.place_at_wall(fixtures.bookshelf(rng, style, is_low=self.bernoulli(0.5)), front=0.5),
            lambda: (
                self.bernoulli(0.5)
                and self.place_at_wall(furniture.sofa(rng, style, seats=1), front=0.4, where="corner")
            ),
            lambda: self.bernoulli(0.5) and self.place_at_wall(fixtures.cabinet(rng, style), front=0.5),
        ]
        self.decoration += [
            lambda: self.bernoulli(0.6) and self.place_at_wall(fixtures.floor_lamp(), where="corner"),
            lambda: self.bernoulli(0.5) and self.place_at_wall(fixtures.waste_bin(rng)),
            lambda: self.bernoulli(0.6) and self.lay_middle_rug(),
        ]

    def _plan_living_room(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [self.place_seating]
        if not self._has_dining_room and self.placer.room.area > 24.0:
            self.extras.append(lambda: self.place_dining_table(4))
        choices: list[tuple[float, FurnishStep]] = [  # (probability, step)
            (0.9, self.place_armchair),
            (0.7, lambda: self.place_at_wall(fixtures.bookshelf(rng, style, is_low=self.bernoulli(0.3)), front=0.5)),
            (
                0.6,
                lambda: self.place_at_wall(
                    furniture.side_table(rng, style, has_lamp=self.bernoulli(0.5)), where="corner"
                ),
            ),
            (0.5, lambda: self.place_at_wall(fixtures.cabinet(rng, style), front=0.5)),
            (0.4, self.place_armchair),
        ]
        self.extras += [step for probability, step in choices if self.bernoulli(probability)]
        self.decoration += [
            self.lay_coffee_table_rug,
            lambda: self.bernoulli(0.7) and self.place_at_wall(fixtures.floor_lamp(), where="corner"),
            lambda: self.place_at_wall(fixtures.plant(rng), where="corner"),
            lambda: self.bernoulli(0.5) and self.place_at_wall(fixtures.plant(rng), where="corner"),
            self.hang_clock,
        ]

    def _plan_dining_room(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [
            lambda: self.place_dining_table(6 if self.placer.room.area > 13.0 and not self.is_crowded else 4)
        ]
        self.extras += [lambda: self.place_at_wall(fixtures.cabinet(rng, style), front=0.5)]
        self.decoration += [
            lambda: self.bernoulli(0.6) and self.place_at_wall(fixtures.plant(rng), where="corner"),
            self.hang_clock,
        ]

    def _plan_kitchen(self) -> None:
        rng = self.rng
        self.essentials.append(self.place_kitchen)
        if not self._has_dining_room:
            self.extras.append(lambda: self.place_dining_table(4 if self.placer.room.area > 13.0 else 2))
        self.extras += [
            lambda: self.placer.room.area > 13.0 and self._has_dining_room and self.place_island(),
            lambda: self.bernoulli(0.5) and self.place_extra_counter(),
            lambda: self.bernoulli(0.5) and self.place_at_wall(fixtures.shelf(rng), front=0.4),
        ]
        self.decoration += [lambda: self.place_at_wall(fixtures.waste_bin(rng)), self.hang_clock]

    def _plan_bathroom(self) -> None:
        rng, style = self.rng, self.style
        has_tub = self.placer.room.area > 5.0 and self.bernoulli(0.65)
        bath = fixtures.bathtub(rng) if has_tub else fixtures.shower()
        # Each is tried again in a simpler form: a shower for the bathtub, or no free depth in front.
        self.essentials += [
            lambda: any(self.place_at_wall(model, front=0.3, where="corner") for model in [bath, fixtures.shower()]),
            lambda: self.place_at_wall(fixtures.toilet(), front=0.4) or self.place_at_wall(fixtures.toilet()),
            lambda: (
                self.place_at_wall(fixtures.vanity(rng, style), front=0.5)
                or self.place_at_wall(fixtures.vanity(rng, style))
            ),
        ]
        self.extras += [
            lambda: self.bernoulli(0.35) and self.place_at_wall(fixtures.washing_machine(), front=0.5, where="corner")
        ]
        self.decoration += [
            self.lay_bath_mat,
            lambda: self.bernoulli(0.6) and self.place_at_wall(fixtures.hamper(style), where="corner"),
        ]

    def _plan_laundry(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [lambda: self.place_at_wall(fixtures.washing_machine(), front=0.6, where="corner")]
        self.usual += [lambda: self.place_at_wall(fixtures.shelf(rng), front=0.4)]
        self.extras += [lambda: self.place_at_wall(fixtures.cabinet(rng, style), front=0.5)]
        self.decoration += [
            lambda: self.place_at_wall(fixtures.hamper(style)),
            lambda: self.place_at_wall(fixtures.hamper(style)),
        ]

    def _plan_hallway(self) -> None:
        rng, style = self.rng, self.style
        self.extras += [
            lambda: self.bernoulli(0.7) and self.place_at_wall(fixtures.bench(rng, style)),
            lambda: self.bernoulli(0.4) and self.place_at_wall(furniture.side_table(rng, style, has_lamp=False)),
        ]
        self.decoration += [
            lambda: self.bernoulli(0.5) and self.place_at_wall(fixtures.plant(rng), where="corner"),
            self.hang_pictures,
            self.lay_middle_rug,
        ]
