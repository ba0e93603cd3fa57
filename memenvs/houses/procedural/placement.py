"""Placement of furniture in one room, which stays passable for a robot.

`RoomPlacer` proposes positions for groups of furniture. A group is placed if it overlaps nothing, blocks no window and
leaves the room passable (`memenvs.houses.procedural.passability`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from memenvs.houses.house import Span
from memenvs.houses.object_model import ObjectModel
from memenvs.houses.procedural.floor_plan import WALL_THICKNESS, Opening, PlanRoom
from memenvs.houses.procedural.furniture_groups import Footprint, FurnitureGroup, Placement, turned_bounds
from memenvs.houses.procedural.passability import PassabilityGrid

DOOR_DEPTH = 0.75  # m; depth of the floor on both sides of a doorway that stays free
_OBJECT_HEIGHT = 0.26  # m; the tallest small object still fits between the top of a piece and a curtain above it
ROBOT_HEIGHT = 1.5  # m; an object that hangs higher is no obstacle
WALL_GAP = 0.006  # m; gap between furniture and the wall behind it

#: Rotation of a piece with its back to wall 0 (at small y), 1 (small x), 2 (large y), 3 (large x).
WALL_YAW = (0.0, -np.pi / 2, np.pi, np.pi / 2)


class _Body(NamedTuple):
    """A box that furniture must not overlap: bounds on the floor plan, lowest and highest z, m."""

    footprint: Footprint
    bottom: float
    top: float


class RoomPlacer:
    """Furnishes one room: keeps track of what is placed, and rejects placements that do not fit.

    Args:
        room: The room.
        openings: Its doors and windows.
        door_depth: Depth of the floor on both sides of a doorway that stays free, from the centre of its wall, m.

    Attributes:
        room: The room.
        openings: As given.
        inside: Floor between the inner faces of the walls.
        placements: What has been placed so far.
        doorsteps: Floor on both sides of each door, kept free; in the order of the doors among `openings`.
    """

    def __init__(self, room: PlanRoom, openings: Sequence[Opening], door_depth: float = DOOR_DEPTH) -> None:
        half_wall = WALL_THICKNESS / 2
        self.room = room
        self.openings = tuple(openings)
        self.inside = Footprint(
            room.low[0] + half_wall, room.low[1] + half_wall, room.high[0] - half_wall, room.high[1] - half_wall
        )
        self.placements: list[Placement] = []
        self._bodies: list[_Body] = []
        self._fronts: list[Footprint] = []  # floor that stays free in front of groups, such as wardrobes
        self.doorsteps = [_doorstep(o, door_depth) for o in openings if o.kind != "window"]
        self._window_margin = 0.0  # m; kept free of tall pieces on both sides of each window
        self._grid = PassabilityGrid(room, self.inside, self.openings)

    def beside_wall(self, wall: int, along: Span, depth: Span) -> Footprint:
        """Return a rectangle of floor beside a wall.

        Args:
            wall: 0 to 3, see `WALL_YAW`.
            along: Lowest and highest coordinate along the wall, m.
            depth: Smallest and largest distance from the wall, m.
        """
        inside = self.inside
        if wall == 0:
            return Footprint(along[0], inside.y0 + depth[0], along[1], inside.y0 + depth[1])
        if wall == 1:
            return Footprint(inside.x0 + depth[0], along[0], inside.x0 + depth[1], along[1])
        if wall == 2:
            return Footprint(along[0], inside.y1 - depth[1], along[1], inside.y1 - depth[0])
        return Footprint(inside.x1 - depth[1], along[0], inside.x1 - depth[0], along[1])

    def openings_of_wall(self, wall: int) -> list[Opening]:
        """Return the doors and windows in a wall (0 to 3, see `WALL_YAW`)."""
        axis = wall % 2
        line = self.room.low[1 - axis] if wall < 2 else self.room.high[1 - axis]
        return [o for o in self.openings if o.axis == axis and abs(o.line - line) < 1e-6]

    def keep_free_beside_windows(self, margin: float) -> None:
        """Place no tall furniture within `margin` (m) of windows from now on; for curtains."""
        self._window_margin = margin

    def try_at(self, group: FurnitureGroup, x: float, y: float, yaw: float) -> bool:
        """Place a group with its centre at (x, y), if it fits and a robot still passes.

        Returns:
            True if it was placed.
        """
        outline = turned_bounds(group.width, group.depth, x, y, yaw)
        if not self._is_inside(outline):
            return False
        occupied = [other.footprint for other in self._bodies if other.bottom < ROBOT_HEIGHT]
        if any(outline.overlaps(other) for other in (*occupied, *self.doorsteps, *self._fronts)):
            return False
        cos = float(np.cos(yaw))
        sin = float(np.sin(yaw))
        distance = (group.depth + group.front) / 2  # from the group's middle to that of the free floor in front of it
        front = turned_bounds(group.width, group.front, x - sin * distance, y + cos * distance, yaw)
        if group.front > 0 and any(front.overlaps(other) for other in occupied):
            return False
        placed = [  # from the frame of the group to that of the house
            Placement(
                item.model, x + cos * item.x - sin * item.y, y + sin * item.x + cos * item.y, yaw + item.yaw, item.z
            )
            for item in group.items
        ]
        if any(self._blocks_window(item) for item in placed):
            return False
        obstacles = [item for item in placed if item.bottom < ROBOT_HEIGHT]
        for item in obstacles:
            self._grid.mark(item, 1)
        if not self._grid.is_passable():
            for item in obstacles:  # undo
                self._grid.mark(item, -1)
            return False
        self.placements += placed
        for item in placed:
            self._bodies.append(_Body(item.footprint, item.bottom, item.z + item.model.height))
        if len(group.items) > 1:  # later pieces must not stand in the gaps of a group; objects may hang above 0.4 m
            self._bodies.append(_Body(outline, 0.0, 0.4))
        if group.front > 0:
            self._fronts.append(front)
        return True

    def try_on_wall(self, rng: np.random.Generator, group: FurnitureGroup, *, where: str = "any") -> bool:
        """Place a group with its back to a wall.

        Args:
            rng: Random generator; draws the order of the walls and the positions along them.
            group: The pieces.
            where: Position in a free stretch of wall: "any", "corner" (as far to one side as possible) or "centre".

        Returns:
            True if it was placed.
        """
        for wall in [int(w) for w in rng.permutation(4)]:
            for low, high in self._free_spans(wall, group):
                slack = high - low - group.width
                drawn = rng.random(3)  # drawn even if not used, so that the house of a seed stays the same
                fractions = {"corner": [0.0, 1.0], "centre": [0.5, 0.3, 0.7]}.get(where, [*drawn, 0.0, 1.0])
                if where == "corner" and rng.random() < 0.5:
                    fractions = fractions[::-1]
                for fraction in fractions:
                    along = low + group.width / 2 + fraction * slack
                    across = WALL_GAP + group.depth / 2
                    middle = self.beside_wall(wall, (along, along), (across, across))
                    if self.try_at(group, middle.x0, middle.y0, WALL_YAW[wall]):
                        return True
        return False

    def _free_spans(self, wall: int, group: FurnitureGroup) -> list[Span]:
        """Return the stretches of wall that are long enough and have nothing in front, the longest first."""
        axis = wall % 2
        low, high = self.inside.span(axis)
        low += WALL_GAP
        high -= WALL_GAP
        # Floor reserved by others must not meet the pieces. Furniture must not meet the free floor in front of them.
        strip = self.beside_wall(wall, (low, high), (0.0, group.depth + WALL_GAP))
        strip_with_front = self.beside_wall(wall, (low, high), (0.0, group.depth + group.front))
        blocked = [floor.span(axis) for floor in (*self.doorsteps, *self._fronts) if floor.overlaps(strip)]
        for body in self._bodies:
            if body.bottom < ROBOT_HEIGHT and body.footprint.overlaps(strip_with_front):
                start, end = body.footprint.span(axis)
                blocked.append((start - 0.02, end + 0.02))
        spans = []
        free_from = low  # everything before it is blocked or already in `spans`
        for start, end in [*sorted(blocked), (high, high)]:  # the last one closes the stretch up to the corner
            if start - free_from > group.width:
                spans.append((free_from, start))
            free_from = max(free_from, end)
        return sorted(spans, key=lambda span: span[0] - span[1])

    def _blocks_window(self, item: Placement) -> bool:
        """True if a tall piece would stand in front of a window or a curtain."""
        footprint = item.footprint
        top = item.z + item.model.height
        for wall in range(4):
            for opening in self.openings_of_wall(wall):
                if opening.kind != "window":
                    continue
                half = opening.width / 2 + 0.05
                # The window, then the window with its curtains: half width, and height of the tallest piece allowed.
                for half_width, max_top in (
                    (half, opening.bottom - 0.02),
                    (half + self._window_margin, opening.bottom - _OBJECT_HEIGHT),
                ):
                    along = opening.centre - half_width, opening.centre + half_width
                    if top > max_top and footprint.overlaps(self.beside_wall(wall, along, (0.0, 0.12))):
                        return True
        return False

    def try_hang(self, rng: np.random.Generator, model: ObjectModel, bottom: float) -> bool:
        """Hang a flat object at a free position of a wall; return True if it was hung."""
        for wall in [int(w) for w in rng.permutation(4)]:
            low, high = self.inside.span(wall % 2)
            for fraction in rng.uniform(0.1, 0.9, 5):
                along = float(low + fraction * (high - low))
                if self.hang_at(model, wall, along, bottom):
                    return True
        return False

    def hang_at(
        self, model: ObjectModel, wall: int, along: float, bottom: float, *, opening_margin: float = 0.15
    ) -> bool:
        """Hang a flat object at a position along a wall; return False if it does not fit there.

        Args:
            model: The object.
            wall: 0 to 3, see `WALL_YAW`.
            along: Coordinate of its centre along the wall, m.
            bottom: Height of its lower edge, m.
            opening_margin: Smallest distance from doors, m. The one from windows is that of `keep_free_beside_windows`,
                or 0 if this is 0 (for curtains).
        """
        axis = wall % 2
        top = bottom + model.height
        low, high = self.inside.span(axis)
        half = model.width / 2
        if along - half < low + 0.02 or along + half > high - 0.02:
            return False
        for opening in self.openings_of_wall(wall):
            margin = self._window_margin if opening.kind == "window" and opening_margin > 0 else opening_margin
            reach = half + opening.width / 2 + margin
            if abs(along - opening.centre) < reach and bottom < opening.top and top > opening.bottom:
                return False
        footprint = self.beside_wall(wall, (along - half, along + half), (0.0, model.depth + WALL_GAP))
        for body in self._bodies:
            if footprint.overlaps(body.footprint) and bottom < body.top + 0.02 and top > body.bottom:
                return False
        across = WALL_GAP / 2 + model.depth / 2
        middle = self.beside_wall(wall, (along, along), (across, across))
        self.placements.append(Placement(model, middle.x0, middle.y0, WALL_YAW[wall], bottom))
        self._bodies.append(_Body(footprint, bottom, top))
        if bottom < ROBOT_HEIGHT:
            self._grid.mark(self.placements[-1], 1)
        return True

    def lay_rug(self, model: ObjectModel, x: float, y: float, yaw: float) -> bool:
        """Lay a rug, shifted to stay between the walls; return False if it does not fit."""
        bounds = turned_bounds(model.width, model.depth, x, y, yaw)
        inside = self.inside
        dx = max(inside.x0 + 0.05 - bounds.x0, 0.0) - max(bounds.x1 - inside.x1 + 0.05, 0.0)
        dy = max(inside.y0 + 0.05 - bounds.y0, 0.0) - max(bounds.y1 - inside.y1 + 0.05, 0.0)
        bounds = turned_bounds(model.width, model.depth, x + dx, y + dy, yaw)
        if not self._is_inside(bounds):  # it is wider than the room
            return False
        self.placements.append(Placement(model, x + dx, y + dy, yaw))  # flat: it blocks nothing
        return True

    def block(self, footprint: Footprint, height: float) -> bool:
        """Mark floor as occupied, such as by an open door leaf, if a robot still passes.

        Returns:
            True if it is occupied now.
        """
        self._grid.mark_footprint(footprint, 1)
        if not self._grid.is_passable():
            self._grid.mark_footprint(footprint, -1)
            return False
        self._bodies.append(_Body(footprint, 0.0, height))
        return True

    def _is_inside(self, bounds: Footprint) -> bool:
        """True if a rectangle lies between the walls."""
        inside = self.inside
        return not (bounds.x0 < inside.x0 or bounds.y0 < inside.y0 or bounds.x1 > inside.x1 or bounds.y1 > inside.y1)


def _doorstep(opening: Opening, depth: float) -> Footprint:
    """Return the floor on both sides of a doorway, up to `depth` from the centre of the wall, m."""
    half = opening.width / 2 + 0.05
    along = opening.centre - half, opening.centre + half
    across = opening.line - depth, opening.line + depth
    x, y = (along, across) if opening.axis == 0 else (across, along)
    return Footprint(x[0], y[0], x[1], y[1])
