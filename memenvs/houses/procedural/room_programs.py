"""What belongs into each type of room, and where in the room it goes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from memenvs.houses.object_model import ObjectModel
from memenvs.houses.procedural import fixtures, furniture
from memenvs.houses.procedural.finishes import FurnitureStyle
from memenvs.houses.procedural.placement import FurnitureGroup, Placement, RoomPlacer

#: Classes that count as pieces of furniture; lamps, plants, rugs, pictures and what stands on furniture do not.
PIECE_CLASSES = frozenset({
    "bed", "nightstand", "wardrobe", "dresser", "desk", "chair", "office_chair", "armchair", "sofa", "coffee_table",
    "side_table", "dining_table", "tv_stand", "bookshelf", "shelf", "cabinet", "counter", "stove", "refrigerator", "sink",
    "toilet", "bathtub", "shower", "washing_machine", "bench",
})  # fmt: skip

#: What each type of room must have, so that one can tell what it is.
REQUIRED_CLASSES = {
    "living_room": {"sofa"}, "kitchen": {"counter", "refrigerator", "stove"}, "bedroom": {"bed"},
    "bathroom": {"toilet", "sink"}, "dining_room": {"dining_table"}, "study": {"desk"}, "laundry": {"washing_machine"},
}  # fmt: skip

Step = Callable[[], object]


class RoomProgram:
    """Furnishes one room: essentials first, then what is usual and extras while the home has few pieces, then decoration.

    Attributes:
        space: The room and what is in it.
        style: Its colours.
        essentials: Steps that make the room what it is.
        usual: Steps that are left out only in crowded homes; one piece each.
        extras: Steps that may be left out; at most five pieces each.
        decoration: Steps for things that do not count as pieces.
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
        self.rng, self.placer, self.style = rng, placer, style
        self.essentials: list[Step] = []
        self.usual: list[Step] = []
        self.extras: list[Step] = []
        self.decoration: list[Step] = []
        self._has_dining_room, self._is_crowded = has_dining_room, is_crowded
        steps = getattr(self, f"_plan_{placer.room.type}", None)
        if steps is not None:
            steps()
        self.decoration += [self._pictures] if placer.room.type not in ("bathroom", "laundry") else []

    @property
    def num_pieces(self) -> int:
        """Pieces of furniture placed so far."""
        return sum(p.model.name in PIECE_CLASSES and p.model.parts[0].centre[2] < 1.4 for p in self.placer.placements)

    @property
    def is_complete(self) -> bool:
        """Whether the room has what its type must have."""
        return REQUIRED_CLASSES.get(self.placer.room.type, set()) <= {p.model.name for p in self.placer.placements}

    def _chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def _wall(self, model: ObjectModel, *, front: float = 0.0, where: str = "any") -> bool:
        return self.placer.try_on_wall(self.rng, FurnitureGroup.of(model, front), where=where)

    # Bedrooms and studies

    def _plan_bedroom(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [self._bed]
        self.usual += [lambda: self._wall(furniture.wardrobe(rng, style), front=0.55, where="corner")]
        choices: list[tuple[float, Step]] = [
            (0.6, lambda: self._wall(furniture.dresser(rng, style), front=0.5)),
            (0.45, self._desk),
            (0.25, lambda: self._wall(fixtures.bookshelf(rng, style, is_low=self._chance(0.6)), front=0.4)),
            (0.2, lambda: self._wall(furniture.tv_stand(rng, style), front=0.5, where="centre")),
            (0.2, lambda: self._wall(furniture.sofa(rng, style, seats=1), front=0.4, where="corner")),
        ]
        self.extras += [step for chance, step in choices if self._chance(chance)]
        self.decoration += [
            self._bed_rug,
            lambda: self._chance(0.4) and self._wall(fixtures.plant(rng), where="corner"),
            lambda: self._chance(0.4) and self._wall(fixtures.hamper(style), where="corner"),
        ]

    def _bed(self) -> None:
        rng, style = self.rng, self.style
        is_double = self.placer.room.area > 11.0 or self._chance(0.3)
        bed = furniture.bed(rng, style, is_double=is_double)
        sides = [[-1, 1], [-1], [1]] if is_double else [[-1], [1]]
        if is_double and (self._is_crowded or self._chance(0.4)):
            sides = sides[1:]
        for side in [*sides, []]:
            tables = [furniture.nightstand(rng, style, has_lamp=self._chance(0.7)) for _ in side]
            group = FurnitureGroup(bed.width, bed.depth, [], 0.4)
            extent = [-bed.width / 2, bed.width / 2]
            for s, stand in zip(side, tables, strict=True):
                extent[(s + 1) // 2] += s * (stand.width + 0.04)
            middle = (extent[0] + extent[1]) / 2
            group.width = extent[1] - extent[0]
            group.add_at_back(bed, -middle)
            for s, stand in zip(side, tables, strict=True):
                group.add_at_back(stand, s * (bed.width + stand.width + 0.08) / 2 - middle)
            for where in ("centre", "any", "corner"):
                if self.placer.try_on_wall(rng, group, where=where):
                    return

    def _bed_rug(self) -> None:
        for p in self.placer.placements:
            if p.model.name == "bed" and self._chance(0.7):
                ahead = 0.25
                x, y = p.x - np.sin(p.yaw) * ahead, p.y + np.cos(p.yaw) * ahead
                rug = fixtures.rug(self.rng, width=p.model.width + 1.0, depth=1.7)
                self.placer.lay(rug, x, y, p.yaw)
                return

    def _desk(self) -> bool:
        desk = furniture.desk(self.rng, self.style, has_computer=self._chance(0.75))
        chair = furniture.office_chair(self.style)
        tuck = 0.12
        group = FurnitureGroup(desk.width, desk.depth + chair.depth - tuck, [], 0.25)
        group.add_at_back(desk, 0.0)
        y = group.depth / 2 - chair.depth / 2
        group.items.append(Placement(chair, -0.15, y, np.pi))
        return self.placer.try_on_wall(self.rng, group)

    def _plan_study(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [self._desk]
        self.usual += [lambda: self._wall(fixtures.bookshelf(rng, style, is_low=False), front=0.5)]
        self.extras += [
            lambda: self._wall(fixtures.bookshelf(rng, style, is_low=self._chance(0.5)), front=0.5),
            lambda: self._chance(0.5) and self._wall(furniture.sofa(rng, style, seats=1), front=0.4, where="corner"),
            lambda: self._chance(0.5) and self._wall(fixtures.cabinet(rng, style), front=0.5),
        ]
        self.decoration += [
            lambda: self._chance(0.6) and self._wall(fixtures.floor_lamp(), where="corner"),
            lambda: self._chance(0.5) and self._wall(fixtures.waste_bin(rng)),
            lambda: self._chance(0.6) and self._middle_rug(),
        ]

    # Living and dining rooms

    def _plan_living_room(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [self._seating]
        if not self._has_dining_room and self.placer.room.area > 24.0:
            self.extras.append(lambda: self._dining(4))
        choices: list[tuple[float, Step]] = [
            (0.9, self._armchair),
            (0.7, lambda: self._wall(fixtures.bookshelf(rng, style, is_low=self._chance(0.3)), front=0.5)),
            (0.6, lambda: self._wall(furniture.side_table(rng, style, has_lamp=self._chance(0.5)), where="corner")),
            (0.5, lambda: self._wall(fixtures.cabinet(rng, style), front=0.5)),
            (0.4, self._armchair),
        ]
        self.extras += [step for chance, step in choices if self._chance(chance)]
        self.decoration += [
            self._coffee_rug,
            lambda: self._chance(0.7) and self._wall(fixtures.floor_lamp(), where="corner"),
            lambda: self._wall(fixtures.plant(rng), where="corner"),
            lambda: self._chance(0.5) and self._wall(fixtures.plant(rng), where="corner"),
            self._clock,
        ]

    def _seating(self) -> None:
        rng, style, placer = self.rng, self.style, self.placer
        seats = 3 if placer.room.area > 17.0 else 2
        stand = furniture.tv_stand(rng, style)
        for where in ("centre", "any"):
            if placer.try_on_wall(rng, FurnitureGroup.of(stand, 0.9), where=where):
                break
        else:
            stand = None  # type: ignore[assignment]
        sofa, low_table = furniture.sofa(rng, style, seats=seats), furniture.coffee_table(rng, style)
        group = FurnitureGroup(sofa.width, sofa.depth + 0.38 + low_table.depth, [])
        group.add_at_back(sofa, 0.0)
        group.items.append(Placement(low_table, 0.0, (group.depth - low_table.depth) / 2, 0.0))
        if stand is not None:
            tv = next(p for p in placer.placements if p.model is stand)
            normal = -np.sin(tv.yaw), np.cos(tv.yaw)
            limits = placer.inside
            to_wall = (limits.x1 - tv.x if normal[0] > 0.5 else tv.x - limits.x0 if normal[0] < -0.5
                       else limits.y1 - tv.y if normal[1] > 0.5 else tv.y - limits.y0)  # fmt: skip
            at_wall = to_wall - group.depth / 2 - 0.006
            floating = [tv.model.depth / 2 + gap + group.depth / 2 for gap in (1.1, 0.95, 1.4, 1.8)]
            distances = [*([at_wall] if at_wall - floating[0] < 1.1 else []), *floating, at_wall]
            for distance in distances:
                for shift in (0.0, 0.3, -0.3, 0.6, -0.6):
                    x, y = (
                        tv.x + normal[0] * distance + normal[1] * shift,
                        tv.y + normal[1] * distance - normal[0] * shift,
                    )
                    if placer.try_at(group, x, y, tv.yaw + np.pi):
                        return
        if not placer.try_on_wall(rng, group, where="centre") and not self._wall(sofa, front=0.5):
            self._wall(furniture.sofa(rng, style, seats=2), front=0.4)

    def _armchair(self) -> bool:
        chair = furniture.sofa(self.rng, self.style, seats=1)
        tables = [p for p in self.placer.placements if p.model.name == "coffee_table"]
        for table in tables:
            for side in self.rng.permutation([-1, 1]):
                shift = side * (table.model.width / 2 + 0.4 + chair.depth / 2)
                x, y = table.x + np.cos(table.yaw) * shift, table.y + np.sin(table.yaw) * shift
                if self.placer.try_at(FurnitureGroup.of(chair), x, y, table.yaw + side * np.pi / 2):
                    return True
        return self._wall(chair, front=0.5, where="corner")

    def _coffee_rug(self) -> None:
        for p in self.placer.placements:
            if p.model.name == "coffee_table":
                rug = fixtures.rug(self.rng, width=self.rng.uniform(2.0, 2.8), depth=self.rng.uniform(1.5, 2.0))
                self.placer.lay(rug, p.x, p.y, p.yaw)
                return

    def _plan_dining_room(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [lambda: self._dining(6 if self.placer.room.area > 13.0 and not self._is_crowded else 4)]
        self.extras += [lambda: self._wall(fixtures.cabinet(rng, style), front=0.5)]
        self.decoration += [
            lambda: self._chance(0.6) and self._wall(fixtures.plant(rng), where="corner"),
            self._clock,
        ]

    def _dining(self, num_chairs: int) -> bool:
        rng, style, placer = self.rng, self.style, self.placer
        for count in [c for c in (6, 4, 2) if c <= num_chairs]:
            width = {6: rng.uniform(1.6, 1.85), 4: rng.uniform(1.2, 1.4), 2: rng.uniform(0.75, 0.9)}[count]
            table = furniture.table(rng, style, width=width, depth=rng.uniform(0.8, 0.92))
            chairs = [furniture.chair(style) for _ in range(count)]
            reach = chairs[0].depth - 0.2
            group = FurnitureGroup(width + 0.02, table.depth + 2 * reach, [Placement(table, 0.0, 0.0, 0.0)])
            places = {6: (-0.31 * width, 0.0, 0.31 * width), 4: (-0.25 * width, 0.25 * width), 2: (0.0,)}[count]
            spots = [(x, side) for x in places for side in (-1, 1)]
            for chair, (x, side) in zip(chairs, spots, strict=True):
                y = side * (group.depth - chair.depth) / 2
                group.items.append(Placement(chair, x, y, 0.0 if side < 0 else np.pi))
            i = placer.inside
            middle = (i.x0 + i.x1) / 2, (i.y0 + i.y1) / 2
            for turn in rng.permutation([0.0, np.pi / 2]):
                spread = np.concatenate(
                    [np.zeros((1, 2)), rng.uniform(-0.5, 0.5, (14, 2)) * (i.x1 - i.x0, i.y1 - i.y0)]
                )
                for dx, dy in spread[np.argsort((spread**2).sum(1))]:
                    if placer.try_at(group, middle[0] + dx, middle[1] + dy, float(turn)):
                        return True
            for turn in (0.0, np.pi / 2):
                on_wall = FurnitureGroup(*((group.width, group.depth) if turn == 0.0 else (group.depth, group.width)))
                cos, sin = round(np.cos(turn)), round(np.sin(turn))
                on_wall.items = [
                    Placement(model, cos * x - sin * y, sin * x + cos * y, yaw + turn)
                    for model, x, y, yaw, _ in group.items
                ]
                if placer.try_on_wall(rng, on_wall):
                    return True
        return False

    # Kitchens, bathrooms, laundries, hallways

    def _plan_kitchen(self) -> None:
        rng = self.rng
        self.essentials.append(self._kitchen_run)
        if not self._has_dining_room:
            self.extras.append(lambda: self._dining(4 if self.placer.room.area > 13.0 else 2))
        self.extras += [
            lambda: self.placer.room.area > 13.0 and self._has_dining_room and self._island(),
            lambda: self._chance(0.5) and self._more_counter(),
            lambda: self._chance(0.5) and self._wall(fixtures.shelf(rng), front=0.4),
        ]
        self.decoration += [lambda: self._wall(fixtures.waste_bin(rng)), self._clock]

    def _more_counter(self) -> bool:
        width = self.rng.uniform(0.9, 1.5)
        model = fixtures.counter(self.rng, self.style, width=width, has_sink=False, has_microwave=False)
        return self._wall(model, front=0.7, where="corner")

    def _island(self) -> bool:
        model = fixtures.counter(self.rng, self.style, width=1.4, has_sink=False, has_microwave=False)
        i = self.placer.inside
        yaw = float(self.rng.choice([0.0, np.pi / 2]))
        return self.placer.try_at(FurnitureGroup.of(model), (i.x0 + i.x1) / 2, (i.y0 + i.y1) / 2, yaw)

    def _kitchen_run(self) -> None:
        rng, style = self.rng, self.style
        for rest in (2.6, 2.1, 1.7, 1.2, 0.8):
            for has_cabinets in (True, False):
                first = max(0.8, round(rest * 0.6, 2))
                second = rest - first
                fridge, stove = fixtures.refrigerator(rng), fixtures.stove(style)
                row = [fridge, fixtures.counter(rng, style, width=first, has_sink=True, has_microwave=False), stove]
                if second > 0.3:
                    row.append(fixtures.counter(rng, style, width=second, has_sink=False, has_microwave=second > 0.8))
                if self._chance(0.5):
                    row = [row[0], *reversed(row[1:])]
                group = FurnitureGroup(
                    sum(model.width for model in row) + 0.006 * (len(row) - 1),
                    max(model.depth for model in row),
                    [],
                    0.8,
                )
                x = -group.width / 2
                for model in row:
                    group.add_at_back(model, x + model.width / 2)
                    if has_cabinets and model.name == "counter":
                        group.add_at_back(fixtures.wall_cabinet(style, width=model.width - 0.01), x + model.width / 2)
                    x += model.width + 0.006
                if self.placer.try_on_wall(rng, group):
                    if rest < 1.7:
                        self._more_counter()
                    return
        sink = fixtures.counter(rng, style, width=0.9, has_sink=True, has_microwave=False)
        for model in (sink, fixtures.refrigerator(rng), fixtures.stove(style)):
            self._wall(model, front=0.6, where="corner")

    def _plan_bathroom(self) -> None:
        rng, style = self.rng, self.style
        tub = [fixtures.bathtub(rng)] if self.placer.room.area > 5.0 and self._chance(0.65) else [fixtures.shower()]
        self.essentials += [
            lambda: any(self._wall(model, front=0.3, where="corner") for model in [*tub, fixtures.shower()]),
            lambda: self._wall(fixtures.toilet(), front=0.4) or self._wall(fixtures.toilet()),
            lambda: self._wall(fixtures.vanity(rng, style), front=0.5) or self._wall(fixtures.vanity(rng, style)),
        ]
        self.extras += [
            lambda: self._chance(0.35) and self._wall(fixtures.washing_machine(), front=0.5, where="corner")
        ]
        self.decoration += [
            self._bath_mat,
            lambda: self._chance(0.6) and self._wall(fixtures.hamper(style), where="corner"),
        ]

    def _bath_mat(self) -> None:
        for p in self.placer.placements:
            if p.model.name in ("bathtub", "shower", "sink") and self._chance(0.6):
                ahead = p.model.depth / 2 + 0.4
                x, y = p.x - np.sin(p.yaw) * ahead, p.y + np.cos(p.yaw) * ahead
                self.placer.lay(fixtures.rug(self.rng, width=0.8, depth=0.55), x, y, p.yaw)
                return

    def _plan_laundry(self) -> None:
        rng, style = self.rng, self.style
        self.essentials += [lambda: self._wall(fixtures.washing_machine(), front=0.6, where="corner")]
        self.usual += [lambda: self._wall(fixtures.shelf(rng), front=0.4)]
        self.extras += [lambda: self._wall(fixtures.cabinet(rng, style), front=0.5)]
        self.decoration += [lambda: self._wall(fixtures.hamper(style)), lambda: self._wall(fixtures.hamper(style))]

    def _plan_hallway(self) -> None:
        rng, style = self.rng, self.style
        self.extras += [
            lambda: self._chance(0.7) and self._wall(fixtures.bench(rng, style)),
            lambda: self._chance(0.4) and self._wall(furniture.side_table(rng, style, has_lamp=False)),
        ]
        self.decoration += [
            lambda: self._chance(0.5) and self._wall(fixtures.plant(rng), where="corner"),
            self._pictures,
            self._middle_rug,
        ]

    # Decoration

    def _middle_rug(self) -> bool:
        i = self.placer.inside
        size = i.x1 - i.x0, i.y1 - i.y0
        width = min(0.55 * size[0], 2.6)
        depth = min(0.55 * size[1], 2.6)
        return self.placer.lay(
            fixtures.rug(self.rng, width=width, depth=depth), (i.x0 + i.x1) / 2, (i.y0 + i.y1) / 2, 0.0
        )

    def _pictures(self) -> None:
        for _ in range(int(self.rng.integers(1, 4))):
            self.placer.try_hang(self.rng, fixtures.painting(self.rng), float(self.rng.uniform(1.5, 1.6)))

    def _clock(self) -> None:
        if self._chance(0.5):
            self.placer.try_hang(self.rng, fixtures.wall_clock(), 1.8)

    def curtains(self) -> None:
        """Hangs curtains beside the windows of living rooms and bedrooms; to be called before any furniture is placed."""
        if self.placer.room.type not in ("living_room", "bedroom", "dining_room", "study") or self._chance(0.3):
            return
        self.placer.widen_windows(0.36)
        for wall in range(4):
            for opening, _ in self.placer.openings_of_wall(wall):
                if opening.kind == "window":
                    for side in (-1, 1):
                        model = fixtures.curtain(self.style)
                        at = opening.centre + side * (opening.width / 2 + 0.17)
                        self.placer.hang_at(model, wall, at, 0.92, 0.92 + model.height, margin=0.0)
