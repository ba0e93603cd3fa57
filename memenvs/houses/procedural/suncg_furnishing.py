"""Furnishes the rooms of a SUNCG-style home by tables of chances: what is drawn stands where it fits, or is left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memenvs.houses.procedural import fixtures
from memenvs.houses.procedural.furniture_model import Model, Style
from memenvs.houses.procedural.placement import WALL_YAW, Group, Placement, RoomSpace
from memenvs.houses.procedural.suncg_tables import INSTEAD, ITEMS, PRESENCE, TARGET_CLASSES, WISHES, Item, Wish

DOOR_DEPTH = 0.8  # m; free on both sides of an opening
_GAP = 0.03  # m; between two pieces
_NEXT_TO = 1.01 * _GAP  # m; a little more, so that rounding leaves the gap
_TRIES = 25
_SCALE = 0.85, 1.15  # of a piece's outline
_TO_TABLE = 0.3, 0.45  # m; from a sofa to its low table
_SHIFT = 0.2  # by so much of the anchor's width, to either side, a piece may stand off the middle
_SOFA_AT_WALL = 0.6
_MIDDLE = 0.25, 0.75  # of the room's sides
_MOST_PAINTINGS = 3


def furnish(rng: np.random.Generator, spaces: Sequence[RoomSpace], style: Style) -> None:
    """Furnishes all rooms of a home.

    Args:
        rng: Source of chance.
        spaces: The rooms, empty; filled.
        style: Colours of the furniture.
    """
    present = frozenset(name for name, chance in PRESENCE.items() if rng.random() < chance)
    for space in spaces:
        for wish in WISHES[space.room.type]:
            _fulfil(rng, space, style, present, wish, None)
        for _ in range(int(rng.integers(_MOST_PAINTINGS + 1))):
            space.try_hang(rng, fixtures.painting(rng), float(rng.uniform(1.5, 1.6)))


def has_target(spaces: Sequence[RoomSpace]) -> bool:
    """Whether there is anything to search for."""
    return any(not TARGET_CLASSES.isdisjoint(p.model.things) for space in spaces for p in space.placements)


def _fulfil(
    rng: np.random.Generator,
    space: RoomSpace,
    style: Style,
    present: frozenset[str],
    wish: Wish,
    anchor: Placement | None,
) -> None:
    """Draws the pieces of a wish and places those that fit, with what goes with them."""
    item = ITEMS[wish.item]
    if item.switch and item.switch not in present:
        if wish.item not in INSTEAD:
            return
        item = ITEMS[INSTEAD[wish.item]]
    for _ in range(int(rng.integers(wish.count[0], wish.count[1] + 1))):
        if rng.random() >= wish.chance:
            continue
        model = _draw(rng, style, item)
        where = wish.where
        if where == "sofa":
            where = "wall" if rng.random() < _SOFA_AT_WALL else "centre"
        if _place(rng, space, model, where, anchor):
            placed = space.placements[-1]
            for follower in wish.followers:
                _fulfil(rng, space, style, present, follower, placed)


def _draw(rng: np.random.Generator, style: Style, item: Item) -> Model:
    """One piece of its usual size, a little larger or smaller."""
    scale = rng.uniform(*_SCALE)
    width, depth = item.size[0] * scale, item.size[1] * scale
    model = item.make(rng, style)
    if model.width == model.depth:  # a round table stays round
        width = depth = float(np.sqrt(width * depth))
    return model.stretched(width, depth)


def _place(rng: np.random.Generator, space: RoomSpace, model: Model, where: str, anchor: Placement | None) -> bool:
    """Tries to place a piece; whether it stands."""
    if where == "wall":
        group = Group(model.width + 2 * _GAP, model.depth + _GAP)
        group.add_at_back(model, 0.0)
        return space.try_on_wall(rng, group)
    group = Group(model.width + 2 * _GAP, model.depth + 2 * _GAP, [Placement(model, 0.0, 0.0, 0.0)])
    inside = space.inside
    for _ in range(_TRIES):
        if anchor is None:
            x, y = (low + rng.uniform(*_MIDDLE) * (high - low) for low, high in (inside.span(0), inside.span(1)))
            spot = x, y, WALL_YAW[int(rng.integers(4))]
        else:
            dx, dy, turn = _spot_near(rng, anchor.model, model, where)
            cos, sin = float(np.cos(anchor.yaw)), float(np.sin(anchor.yaw))
            spot = anchor.x + cos * dx - sin * dy, anchor.y + sin * dx + cos * dy, anchor.yaw + turn
        if space.try_at(group, *spot):
            return True
    return False


def _spot_near(rng: np.random.Generator, anchor: Model, model: Model, where: str) -> tuple[float, float, float]:
    """Place and turn of a piece in the frame of the piece that it goes with."""
    across, along = (anchor.width + model.width) / 2 + _NEXT_TO, (anchor.depth + model.depth) / 2 + _NEXT_TO
    if where == "beside":
        return float(rng.choice([-across, across])), (model.depth - anchor.depth) / 2 + _GAP, 0.0
    if where == "before":
        return rng.uniform(-_SHIFT, _SHIFT) * anchor.width, along + rng.uniform(*_TO_TABLE), 0.0
    if where == "facing":
        return rng.uniform(-_SHIFT, _SHIFT) * anchor.width, along, np.pi
    side = int(rng.integers(4))  # of the anchor: back, left, front, right
    shift = rng.uniform(-0.5, 0.5)
    if side % 2 == 0:
        slack = max(anchor.width - model.width, 0.0)
        return shift * slack, along if side == 2 else -along, np.pi if side == 2 else 0.0
    across = anchor.width / 2 + model.depth / 2 + _NEXT_TO
    slack = max(anchor.depth - model.width, 0.0)
    return (across if side == 3 else -across), shift * slack, np.pi / 2 if side == 3 else -np.pi / 2
