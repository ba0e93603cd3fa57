"""Room programs: which furniture each type of room gets, and where in the room it goes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from memenvs.houses.object_model import ObjectModel
from memenvs.houses.procedural import fixtures, furniture
from memenvs.houses.procedural.finishes import FurnitureStyle
from memenvs.houses.procedural.furniture_groups import (
    FurnitureGroup,
    Placement,
    bed_group,
    desk_group,
    dining_group,
    kitchen_group,
    seating_group,
)
from memenvs.houses.procedural.placement import WALL_GAP, RoomPlacer

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


class RoomProgram:
    """Steps that furnish one room; each places something if it fits.

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
        self.rng = rng
        self.placer = placer
        self.style = style
        self.essentials: list[FurnishStep] = []
        self.usual: list[FurnishStep] = []
        self.extras: list[FurnishStep] = []
        self.decoration: list[FurnishStep] = []
        self._has_dining_room = has_dining_room
        self._is_crowded = is_crowded
        plan = getattr(self, f"_plan_{placer.room.type}", None)  # types without a method get pictures only
        if plan is not None:
            plan()
        if placer.room.type not in ("bathroom", "laundry"):
            self.decoration.append(self._hang_pictures)

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

    def _bernoulli(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def _place_at_wall(self, model: ObjectModel, *, front: float = 0.0, where: str = "any") -> bool:
        """Place one piece with its back to a wall.

        Args:
            model: The piece.
            front: Free depth wanted in front of it, m.
            where: "any", "corner" or "centre", see `RoomPlacer.try_on_wall`.

        Returns:
            True if it was placed.
        """
        return self.placer.try_on_wall(self.rng, FurnitureGroup.of(model, front), where=where)

    # Bedrooms and studies

    def _plan_bedroom(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [self._place_bed]
        self.usual += [lambda: self._place_at_wall(furniture.wardrobe(rng, style), front=0.55, where="corner")]
        choices: list[tuple[float, FurnishStep]] = [  # (probability, step)
            (0.6, lambda: self._place_at_wall(furniture.dresser(rng, style), front=0.5)),
            (0.45, self._place_desk),
            (0.25, lambda: self._place_at_wall(fixtures.bookshelf(rng, style, is_low=self._bernoulli(0.6)), front=0.4)),
            (0.2, lambda: self._place_at_wall(furniture.tv_stand(rng, style), front=0.5, where="centre")),
            (0.2, lambda: self._place_at_wall(furniture.sofa(rng, style, seats=1), front=0.4, where="corner")),
        ]
        self.extras += [step for probability, step in choices if self._bernoulli(probability)]
        self.decoration += [
            self._lay_bed_rug,
            lambda: self._bernoulli(0.4) and self._place_at_wall(fixtures.plant(rng), where="corner"),
            lambda: self._bernoulli(0.4) and self._place_at_wall(fixtures.hamper(style), where="corner"),
        ]

    def _place_bed(self) -> None:
        """Place a bed with nightstands on both sides, on one side, or without; the first that fits."""
        rng, style = self.rng, self.style
        is_double = self.placer.room.area > 11.0 or self._bernoulli(0.3)
        bed = furniture.bed(rng, style, is_double=is_double)
        choices = [[-1, 1], [-1], [1]] if is_double else [[-1], [1]]  # nightstands left (-1), right (1)
        if is_double and (self._is_crowded or self._bernoulli(0.4)):
            choices = choices[1:]  # one nightstand at most
        for sides in [*choices, []]:
            stands = [furniture.nightstand(rng, style, has_lamp=self._bernoulli(0.7)) for _ in sides]
            group = bed_group(bed, sides, stands)
            for where in ("centre", "any", "corner"):
                if self.placer.try_on_wall(rng, group, where=where):
                    return

    def _lay_bed_rug(self) -> None:
        """Lay a rug partly under the bed, usually."""
        for item in self.placer.placements:
            if item.model.name == "bed" and self._bernoulli(0.7):
                x, y = _ahead_of(item, 0.25)
                self.placer.lay_rug(fixtures.rug(self.rng, width=item.model.width + 1.0, depth=1.7), x, y, item.yaw)
                return

    def _place_desk(self) -> bool:
        """Place a desk with its chair at a wall."""
        desk = furniture.desk(self.rng, self.style, has_computer=self._bernoulli(0.75))
        chair = furniture.office_chair(self.style)
        return self.placer.try_on_wall(self.rng, desk_group(desk, chair))

    def _plan_study(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [self._place_desk]
        self.usual += [lambda: self._place_at_wall(fixtures.bookshelf(rng, style, is_low=False), front=0.5)]
        self.extras += [
            lambda: self._place_at_wall(fixtures.bookshelf(rng, style, is_low=self._bernoulli(0.5)), front=0.5),
            lambda: (
                self._bernoulli(0.5)
                and self._place_at_wall(furniture.sofa(rng, style, seats=1), front=0.4, where="corner")
            ),
            lambda: self._bernoulli(0.5) and self._place_at_wall(fixtures.cabinet(rng, style), front=0.5),
        ]
        self.decoration += [
            lambda: self._bernoulli(0.6) and self._place_at_wall(fixtures.floor_lamp(), where="corner"),
            lambda: self._bernoulli(0.5) and self._place_at_wall(fixtures.waste_bin(rng)),
            lambda: self._bernoulli(0.6) and self._lay_middle_rug(),
        ]

    # Living and dining rooms

    def _plan_living_room(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [self._place_seating]
        if not self._has_dining_room and self.placer.room.area > 24.0:
            self.extras.append(lambda: self._place_dining_table(4))
        choices: list[tuple[float, FurnishStep]] = [  # (probability, step)
            (0.9, self._place_armchair),
            (0.7, lambda: self._place_at_wall(fixtures.bookshelf(rng, style, is_low=self._bernoulli(0.3)), front=0.5)),
            (
                0.6,
                lambda: self._place_at_wall(
                    furniture.side_table(rng, style, has_lamp=self._bernoulli(0.5)), where="corner"
                ),
            ),
            (0.5, lambda: self._place_at_wall(fixtures.cabinet(rng, style), front=0.5)),
            (0.4, self._place_armchair),
        ]
        self.extras += [step for probability, step in choices if self._bernoulli(probability)]
        self.decoration += [
            self._lay_coffee_table_rug,
            lambda: self._bernoulli(0.7) and self._place_at_wall(fixtures.floor_lamp(), where="corner"),
            lambda: self._place_at_wall(fixtures.plant(rng), where="corner"),
            lambda: self._bernoulli(0.5) and self._place_at_wall(fixtures.plant(rng), where="corner"),
            self._hang_clock,
        ]

    def _place_seating(self) -> None:
        """Place a television at a wall, and a sofa with a coffee table that face it."""
        rng, style, placer = self.rng, self.style, self.placer
        seats = 3 if placer.room.area > 17.0 else 2
        stand = furniture.tv_stand(rng, style)
        has_stand = any(
            placer.try_on_wall(rng, FurnitureGroup.of(stand, 0.9), where=where) for where in ("centre", "any")
        )
        sofa = furniture.sofa(rng, style, seats=seats)
        group = seating_group(sofa, furniture.coffee_table(rng, style))
        if has_stand:
            tv = next(item for item in placer.placements if item.model is stand)
            if self._place_facing(group, tv):
                return
        if not placer.try_on_wall(rng, group, where="centre") and not self._place_at_wall(sofa, front=0.5):
            self._place_at_wall(furniture.sofa(rng, style, seats=2), front=0.4)

    def _place_facing(self, group: FurnitureGroup, tv: Placement) -> bool:
        """Place a seating group that faces a television, at the opposite wall if it is near enough.

        Returns:
            True if it was placed.
        """
        normal = -np.sin(tv.yaw), np.cos(tv.yaw)  # from the television into the room
        inside = self.placer.inside
        # distance to the opposite wall, m
        if normal[0] > 0.5:
            to_wall = inside.x1 - tv.x
        elif normal[0] < -0.5:
            to_wall = tv.x - inside.x0
        elif normal[1] > 0.5:
            to_wall = inside.y1 - tv.y
        else:
            to_wall = tv.y - inside.y0
        # Distances between the middles of television and group to try in turn: some gaps between them, and the wall.
        at_wall = to_wall - group.depth / 2 - WALL_GAP
        free_standing = [tv.model.depth / 2 + gap + group.depth / 2 for gap in (1.1, 0.95, 1.4, 1.8)]
        distances = [*free_standing, at_wall]
        if at_wall - free_standing[0] < 1.1:  # less than 1.1 m would be left behind it
            distances.insert(0, at_wall)
        for distance in distances:
            for shift in (0.0, 0.3, -0.3, 0.6, -0.6):  # sideways, m
                x = tv.x + normal[0] * distance + normal[1] * shift
                y = tv.y + normal[1] * distance - normal[0] * shift
                if self.placer.try_at(group, x, y, tv.yaw + np.pi):
                    return True
        return False

    def _place_armchair(self) -> bool:
        """Place an armchair beside a coffee table, facing it, or else in a corner."""
        chair = furniture.sofa(self.rng, self.style, seats=1)
        tables = [item for item in self.placer.placements if item.model.name == "coffee_table"]
        for table in tables:
            for side in self.rng.permutation([-1, 1]):
                shift = side * (table.model.width / 2 + 0.4 + chair.depth / 2)
                x = table.x + np.cos(table.yaw) * shift
                y = table.y + np.sin(table.yaw) * shift
                if self.placer.try_at(FurnitureGroup.of(chair), x, y, table.yaw + side * np.pi / 2):
                    return True
        return self._place_at_wall(chair, front=0.5, where="corner")

    def _lay_coffee_table_rug(self) -> None:
        """Lay a rug under the coffee table."""
        for item in self.placer.placements:
            if item.model.name == "coffee_table":
                rug = fixtures.rug(self.rng, width=self.rng.uniform(2.0, 2.8), depth=self.rng.uniform(1.5, 2.0))
                self.placer.lay_rug(rug, item.x, item.y, item.yaw)
                return

    def _plan_dining_room(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [
            lambda: self._place_dining_table(6 if self.placer.room.area > 13.0 and not self._is_crowded else 4)
        ]
        self.extras += [lambda: self._place_at_wall(fixtures.cabinet(rng, style), front=0.5)]
        self.decoration += [
            lambda: self._bernoulli(0.6) and self._place_at_wall(fixtures.plant(rng), where="corner"),
            self._hang_clock,
        ]

    def _place_dining_table(self, num_chairs: int) -> bool:
        """Place a dining table near the middle of the room, or else at a wall.

        Args:
            num_chairs: Most chairs, 2, 4 or 6; fewer if the table does not fit with them.

        Returns:
            True if it was placed.
        """
        rng = self.rng
        for count in [c for c in (6, 4, 2) if c <= num_chairs]:
            # All three widths are drawn, so that the stream of random numbers and the houses stay what they were.
            widths = {6: rng.uniform(1.6, 1.85), 4: rng.uniform(1.2, 1.4), 2: rng.uniform(0.75, 0.9)}
            table = furniture.table(rng, self.style, width=widths[count], depth=rng.uniform(0.8, 0.92))
            group = dining_group(table, [furniture.chair(self.style) for _ in range(count)])
            if self._place_near_middle(group):
                return True
            if any(self.placer.try_on_wall(rng, group.turned(turn)) for turn in (0.0, np.pi / 2)):
                return True
        return False

    def _place_near_middle(self, group: FurnitureGroup) -> bool:
        """Place a group at the first that fits of 15 places per direction, from the middle outwards."""
        inside = self.placer.inside
        middle = (inside.x0 + inside.x1) / 2, (inside.y0 + inside.y1) / 2
        size = (inside.x1 - inside.x0, inside.y1 - inside.y0)
        for yaw in self.rng.permutation([0.0, np.pi / 2]):
            offsets = np.concatenate([np.zeros((1, 2)), self.rng.uniform(-0.5, 0.5, (14, 2)) * size])
            for dx, dy in offsets[np.argsort((offsets**2).sum(1))]:
                if self.placer.try_at(group, middle[0] + dx, middle[1] + dy, float(yaw)):
                    return True
        return False

    # Kitchens, bathrooms, laundries, hallways

    def _plan_kitchen(self) -> None:
        rng = self.rng
        self.essentials.append(self._place_kitchen)
        if not self._has_dining_room:
            self.extras.append(lambda: self._place_dining_table(4 if self.placer.room.area > 13.0 else 2))
        self.extras += [
            lambda: self.placer.room.area > 13.0 and self._has_dining_room and self._place_island(),
            lambda: self._bernoulli(0.5) and self._place_extra_counter(),
            lambda: self._bernoulli(0.5) and self._place_at_wall(fixtures.shelf(rng), front=0.4),
        ]
        self.decoration += [lambda: self._place_at_wall(fixtures.waste_bin(rng)), self._hang_clock]

    def _place_extra_counter(self) -> bool:
        """Place a counter without a sink in a corner."""
        width = self.rng.uniform(0.9, 1.5)
        model = fixtures.counter(self.rng, self.style, width=width, has_sink=False, has_microwave=False)
        return self._place_at_wall(model, front=0.7, where="corner")

    def _place_island(self) -> bool:
        """Place a counter in the middle of the room."""
        model = fixtures.counter(self.rng, self.style, width=1.4, has_sink=False, has_microwave=False)
        inside = self.placer.inside
        yaw = float(self.rng.choice([0.0, np.pi / 2]))
        x = (inside.x0 + inside.x1) / 2
        y = (inside.y0 + inside.y1) / 2
        return self.placer.try_at(FurnitureGroup.of(model), x, y, yaw)

    def _place_kitchen(self) -> None:
        """Place refrigerator, counters and stove in one row, or apart if no row fits."""
        rng, style = self.rng, self.style
        for counter_width in (2.6, 2.1, 1.7, 1.2, 0.8):
            for has_cabinets in (True, False):
                row = self._draw_kitchen_row(counter_width)
                group = kitchen_group(row, style, has_cabinets=has_cabinets)
                if self.placer.try_on_wall(rng, group):
                    if counter_width < 1.7:  # a short row: add a counter elsewhere
                        self._place_extra_counter()
                    return
        sink = fixtures.counter(rng, style, width=0.9, has_sink=True, has_microwave=False)
        for model in (sink, fixtures.refrigerator(rng), fixtures.stove(style)):
            self._place_at_wall(model, front=0.6, where="corner")

    def _draw_kitchen_row(self, counter_width: float) -> list[ObjectModel]:
        """Draw a row: refrigerator, counter with sink, stove, perhaps a second counter.

        All but the refrigerator may come in reverse order.

        Args:
            counter_width: Total width of the counters, m.
        """
        rng, style = self.rng, self.style
        first = max(0.8, round(counter_width * 0.6, 2))
        second = counter_width - first
        row = [fixtures.refrigerator(rng)]
        stove = fixtures.stove(style)
        row += [fixtures.counter(rng, style, width=first, has_sink=True, has_microwave=False), stove]
        if second > 0.3:
            row.append(fixtures.counter(rng, style, width=second, has_sink=False, has_microwave=second > 0.8))
        if self._bernoulli(0.5):
            row = [row[0], *reversed(row[1:])]
        return row

    def _plan_bathroom(self) -> None:
        rng, style = self.rng, self.style
        has_tub = self.placer.room.area > 5.0 and self._bernoulli(0.65)
        bath = fixtures.bathtub(rng) if has_tub else fixtures.shower()
        # Each is tried again in a simpler form: a shower for the bathtub, or no free depth in front.
        self.essentials += [
            lambda: any(self._place_at_wall(model, front=0.3, where="corner") for model in [bath, fixtures.shower()]),
            lambda: self._place_at_wall(fixtures.toilet(), front=0.4) or self._place_at_wall(fixtures.toilet()),
            lambda: (
                self._place_at_wall(fixtures.vanity(rng, style), front=0.5)
                or self._place_at_wall(fixtures.vanity(rng, style))
            ),
        ]
        self.extras += [
            lambda: self._bernoulli(0.35) and self._place_at_wall(fixtures.washing_machine(), front=0.5, where="corner")
        ]
        self.decoration += [
            self._lay_bath_mat,
            lambda: self._bernoulli(0.6) and self._place_at_wall(fixtures.hamper(style), where="corner"),
        ]

    def _lay_bath_mat(self) -> None:
        """Lay a mat in front of a bathtub, shower or sink, usually."""
        for item in self.placer.placements:
            if item.model.name in ("bathtub", "shower", "sink") and self._bernoulli(0.6):
                x, y = _ahead_of(item, item.model.depth / 2 + 0.4)
                self.placer.lay_rug(fixtures.rug(self.rng, width=0.8, depth=0.55), x, y, item.yaw)
                return

    def _plan_laundry(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [lambda: self._place_at_wall(fixtures.washing_machine(), front=0.6, where="corner")]
        self.usual += [lambda: self._place_at_wall(fixtures.shelf(rng), front=0.4)]
        self.extras += [lambda: self._place_at_wall(fixtures.cabinet(rng, style), front=0.5)]
        self.decoration += [
            lambda: self._place_at_wall(fixtures.hamper(style)),
            lambda: self._place_at_wall(fixtures.hamper(style)),
        ]

    def _plan_hallway(self) -> None:
        rng, style = self.rng, self.style
        self.extras += [
            lambda: self._bernoulli(0.7) and self._place_at_wall(fixtures.bench(rng, style)),
            lambda: self._bernoulli(0.4) and self._place_at_wall(furniture.side_table(rng, style, has_lamp=False)),
        ]
        self.decoration += [
            lambda: self._bernoulli(0.5) and self._place_at_wall(fixtures.plant(rng), where="corner"),
            self._hang_pictures,
            self._lay_middle_rug,
        ]

    # Decoration

    def _lay_middle_rug(self) -> bool:
        """Lay a rug in the middle of the room."""
        inside = self.placer.inside
        width = min(0.55 * (inside.x1 - inside.x0), 2.6)
        depth = min(0.55 * (inside.y1 - inside.y0), 2.6)
        rug = fixtures.rug(self.rng, width=width, depth=depth)
        return self.placer.lay_rug(rug, (inside.x0 + inside.x1) / 2, (inside.y0 + inside.y1) / 2, 0.0)

    def _hang_pictures(self) -> None:
        """Hang one to three pictures."""
        for _ in range(int(self.rng.integers(1, 4))):
            self.placer.try_hang(self.rng, fixtures.painting(self.rng), float(self.rng.uniform(1.5, 1.6)))

    def _hang_clock(self) -> None:
        """Hang a clock, with probability 1/2."""
        if self._bernoulli(0.5):
            self.placer.try_hang(self.rng, fixtures.wall_clock(), 1.8)

    def hang_curtains(self) -> None:
        """Hang curtains on both sides of windows, in 70 % of the rooms that can have them.

        Call this before any furniture is placed.
        """
        has_curtains = self.placer.room.type in ("living_room", "bedroom", "dining_room", "study")
        if not has_curtains or self._bernoulli(0.3):
            return
        self.placer.keep_free_beside_windows(0.36)
        for wall in range(4):
            for opening in self.placer.openings_of_wall(wall):
                if opening.kind != "window":
                    continue
                for side in (-1, 1):
                    along = opening.centre + side * (opening.width / 2 + 0.17)
                    self.placer.hang_at(fixtures.curtain(self.style), wall, along, 0.92, opening_margin=0.0)


def _ahead_of(item: Placement, distance: float) -> tuple[float, float]:
    """Point (x, y) in front of a piece, at a distance from its middle, m."""
    return item.x - np.sin(item.yaw) * distance, item.y + np.cos(item.yaw) * distance
