"""Furnishing of one room: pieces and groups of furniture, each placed where it fits.

Which pieces a room gets is in `room_programs.py`.
"""

from __future__ import annotations

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


class RoomFurnisher:
    """Draws pieces of furniture and decoration for one room, and places each where it fits.

    Each method places one piece or one group, or nothing if it fits nowhere.

    Args:
        rng: Random generator.
        placer: The room and what is in it.
        style: Finishes of the furniture.
        is_crowded: Whether the house has many rooms; beds then get fewer nightstands.
    """

    def __init__(
        self, rng: np.random.Generator, placer: RoomPlacer, style: FurnitureStyle, *, is_crowded: bool
    ) -> None:
        self.rng = rng
        self.placer = placer
        self.style = style
        self.is_crowded = is_crowded

    def bernoulli(self, probability: float) -> bool:
        """Return True with this probability."""
        return bool(self.rng.random() < probability)

    def place_at_wall(self, model: ObjectModel, *, front: float = 0.0, where: str = "any") -> bool:
        """Place one piece with its back to a wall.

        Args:
            model: The piece.
            front: Free depth wanted in front of it, m.
            where: "any", "corner" or "centre", see `RoomPlacer.try_on_wall`.

        Returns:
            True if it was placed.
        """
        return self.placer.try_on_wall(self.rng, FurnitureGroup.of(model, front), where=where)

    def place_bed(self) -> None:
        """Place a bed with nightstands on both sides, on one side, or without; the first that fits."""
        rng, style = self.rng, self.style
        is_double = self.placer.room.area > 11.0 or self.bernoulli(0.3)
        bed = furniture.bed(rng, style, is_double=is_double)
        choices = [[-1, 1], [-1], [1]] if is_double else [[-1], [1]]  # nightstands left (-1), right (1)
        if is_double and (self.is_crowded or self.bernoulli(0.4)):
            choices = choices[1:]  # one nightstand at most
        for sides in [*choices, []]:
            stands = [furniture.nightstand(rng, style, has_lamp=self.bernoulli(0.7)) for _ in sides]
            group = bed_group(bed, sides, stands)
            for where in ("centre", "any", "corner"):
                if self.placer.try_on_wall(rng, group, where=where):
                    return

    def lay_bed_rug(self) -> None:
        """Lay a rug partly under the bed, usually."""
        for item in self.placer.placements:
            if item.model.name == "bed" and self.bernoulli(0.7):
                x, y = _ahead_of(item, 0.25)
                self.placer.lay_rug(fixtures.rug(self.rng, width=item.model.width + 1.0, depth=1.7), x, y, item.yaw)
                return

    def place_desk(self) -> bool:
        """Place a desk with its chair at a wall."""
        desk = furniture.desk(self.rng, self.style, has_computer=self.bernoulli(0.75))
        chair = furniture.office_chair(self.style)
        return self.placer.try_on_wall(self.rng, desk_group(desk, chair))

    def place_seating(self) -> None:
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
        if not placer.try_on_wall(rng, group, where="centre") and not self.place_at_wall(sofa, front=0.5):
            self.place_at_wall(furniture.sofa(rng, style, seats=2), front=0.4)

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
        # Distances between the centres of television and group to try in turn: some gaps between them, and the wall.
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

    def place_armchair(self) -> bool:
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
        return self.place_at_wall(chair, front=0.5, where="corner")

    def lay_coffee_table_rug(self) -> None:
        """Lay a rug under the coffee table."""
        for item in self.placer.placements:
            if item.model.name == "coffee_table":
                rug = fixtures.rug(self.rng, width=self.rng.uniform(2.0, 2.8), depth=self.rng.uniform(1.5, 2.0))
                self.placer.lay_rug(rug, item.x, item.y, item.yaw)
                return

    def place_dining_table(self, num_chairs: int) -> bool:
        """Place a dining table near the centre of the room, or else at a wall.

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

    def place_extra_counter(self) -> bool:
        """Place a counter without a sink in a corner."""
        width = self.rng.uniform(0.9, 1.5)
        model = fixtures.counter(self.rng, self.style, width=width, has_sink=False, has_microwave=False)
        return self.place_at_wall(model, front=0.7, where="corner")

    def place_island(self) -> bool:
        """Place a counter in the centre of the room."""
        model = fixtures.counter(self.rng, self.style, width=1.4, has_sink=False, has_microwave=False)
        inside = self.placer.inside
        yaw = float(self.rng.choice([0.0, np.pi / 2]))
        x = (inside.x0 + inside.x1) / 2
        y = (inside.y0 + inside.y1) / 2
        return self.placer.try_at(FurnitureGroup.of(model), x, y, yaw)

    def place_kitchen(self) -> None:
        """Place refrigerator, counters and stove in one row, or apart if no row fits."""
        rng, style = self.rng, self.style
        for counter_width in (2.6, 2.1, 1.7, 1.2, 0.8):
            for has_cabinets in (True, False):
                row = self._draw_kitchen_row(counter_width)
                group = kitchen_group(row, style, has_cabinets=has_cabinets)
                if self.placer.try_on_wall(rng, group):
                    if counter_width < 1.7:  # a short row: add a counter elsewhere
                        self.place_extra_counter()
                    return
        sink = fixtures.counter(rng, style, width=0.9, has_sink=True, has_microwave=False)
        for model in (sink, fixtures.refrigerator(rng), fixtures.stove(style)):
            self.place_at_wall(model, front=0.6, where="corner")

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
        if self.bernoulli(0.5):
            row = [row[0], *reversed(row[1:])]
        return row

    def lay_bath_mat(self) -> None:
        """Lay a mat in front of a bathtub, shower or sink, usually."""
        for item in self.placer.placements:
            if item.model.name in ("bathtub", "shower", "sink") and self.bernoulli(0.6):
                x, y = _ahead_of(item, item.model.depth / 2 + 0.4)
                self.placer.lay_rug(fixtures.rug(self.rng, width=0.8, depth=0.55), x, y, item.yaw)
                return

    def lay_middle_rug(self) -> bool:
        """Lay a rug in the centre of the room."""
        inside = self.placer.inside
        width = min(0.55 * (inside.x1 - inside.x0), 2.6)
        depth = min(0.55 * (inside.y1 - inside.y0), 2.6)
        rug = fixtures.rug(self.rng, width=width, depth=depth)
        return self.placer.lay_rug(rug, (inside.x0 + inside.x1) / 2, (inside.y0 + inside.y1) / 2, 0.0)

    def hang_pictures(self) -> None:
        """Hang one to three pictures."""
        for _ in range(int(self.rng.integers(1, 4))):
            self.placer.try_hang(self.rng, fixtures.painting(self.rng), float(self.rng.uniform(1.5, 1.6)))

    def hang_clock(self) -> None:
        """Hang a clock, with probability 1/2."""
        if self.bernoulli(0.5):
            self.placer.try_hang(self.rng, fixtures.wall_clock(), 1.8)

    def hang_curtains(self) -> None:
        """Hang curtains on both sides of windows, in 70 % of the rooms that can have them.

        Call this before any furniture is placed.
        """
        has_curtains = self.placer.room.type in ("living_room", "bedroom", "dining_room", "study")
        if not has_curtains or self.bernoulli(0.3):
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
    """Point (x, y) in front of a piece, at a distance from its centre, m."""
    return item.x - np.sin(item.yaw) * distance, item.y + np.cos(item.yaw) * distance
