"""Furnishing of SUNCG-style houses by the rules and probabilities of `suncg_tables`.

A piece that is drawn is placed where it fits, or left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memenvs.houses.object_model import ObjectModel
from memenvs.houses.procedural import fixtures
from memenvs.houses.procedural.finishes import FurnitureStyle
from memenvs.houses.procedural.furniture_groups import FurnitureGroup, Placement
from memenvs.houses.procedural.placement import WALL_YAW, RoomPlacer
from memenvs.houses.procedural.suncg_tables import (
    FURNITURE_KINDS,
    PRESENCE_PROBABILITIES,
    ROOM_RULES,
    SUBSTITUTES,
    TARGET_CLASSES,
    FurnitureKind,
    FurnitureRule,
)

DOOR_DEPTH = 0.8  # m; free on both sides of an opening
_GAP = 0.03  # m; between two pieces
_NEXT_TO = 1.01 * _GAP  # m; a little more, so that rounding leaves the gap
_TRIES = 25  # draws of a place for a piece that does not stand at a wall
_SCALE = 0.85, 1.15  # of a piece's outline
_TO_TABLE = 0.3, 0.45  # m; from a sofa to its coffee table
_MAX_SHIFT = 0.2  # of the anchor's width; a companion may stand this far off its centre, to either side
_SOFA_AT_WALL = 0.6  # probability
_CENTRAL_RANGE = 0.25, 0.75  # of the room's sides; pieces in the centre of a room have their centres in this range
_MAX_PAINTINGS = 3  # of a room


def furnish(rng: np.random.Generator, placers: Sequence[RoomPlacer], style: FurnitureStyle) -> None:
    """Furnish all rooms of a house.

    Args:
        rng: Random generator.
        placers: The rooms, without furniture; filled.
        style: Finishes of the furniture.
    """
    present = frozenset(name for name, probability in PRESENCE_PROBABILITIES.items() if rng.random() < probability)
    for placer in placers:
        for rule in ROOM_RULES[placer.room.type]:
            _apply_rule(rng, placer, style, present, rule, None)
        for _ in range(int(rng.integers(_MAX_PAINTINGS + 1))):
            placer.try_hang(rng, fixtures.painting(rng), float(rng.uniform(1.5, 1.6)))


def has_target(placers: Sequence[RoomPlacer]) -> bool:
    """True if the house has an object of one of `TARGET_CLASSES`."""
    placed = [item.model for placer in placers for item in placer.placements]
    return any(not TARGET_CLASSES.isdisjoint(model.classes) for model in placed)


def _apply_rule(
    rng: np.random.Generator,
    placer: RoomPlacer,
    style: FurnitureStyle,
    present: frozenset[str],
    rule: FurnitureRule,
    anchor: Placement | None,
) -> None:
    """Draw the pieces of a rule and place those that fit, each with its companions.

    Args:
        rng: Random generator.
        placer: The room.
        style: Finishes of the furniture.
        present: Entries of `PRESENCE_PROBABILITIES` that this house has.
        rule: The rule.
        anchor: The piece that the rule's pieces accompany; None if they stand alone.
    """
    kind = FURNITURE_KINDS[rule.kind]
    if kind.presence_key and kind.presence_key not in present:
        if rule.kind not in SUBSTITUTES:
            return
        kind = FURNITURE_KINDS[SUBSTITUTES[rule.kind]]
    for _ in range(int(rng.integers(rule.count[0], rule.count[1] + 1))):
        if rng.random() >= rule.probability:
            continue
        model = _draw_model(rng, style, kind)
        where = rule.where
        if where == "sofa":
            where = "wall" if rng.random() < _SOFA_AT_WALL else "centre"
        if _place(rng, placer, model, where, anchor):
            placed = placer.placements[-1]
            for companion in rule.companions:
                _apply_rule(rng, placer, style, present, companion, placed)


def _draw_model(rng: np.random.Generator, style: FurnitureStyle, kind: FurnitureKind) -> ObjectModel:
    """Draw one piece of its usual size, a little larger or smaller."""
    scale = rng.uniform(*_SCALE)
    width = kind.size[0] * scale
    depth = kind.size[1] * scale
    model = kind.make(rng, style)
    if model.width == model.depth:  # a round table stays round
        width = depth = float(np.sqrt(width * depth))
    return model.stretched(width, depth)


def _place(
    rng: np.random.Generator, placer: RoomPlacer, model: ObjectModel, where: str, anchor: Placement | None
) -> bool:
    """Try places for a piece; True if it was placed."""
    if where == "wall":
        group = FurnitureGroup(model.width + 2 * _GAP, model.depth + _GAP)
        group.add_at_back(model, 0.0)
        return placer.try_on_wall(rng, group)
    group = FurnitureGroup(model.width + 2 * _GAP, model.depth + 2 * _GAP, [Placement(model, 0.0, 0.0, 0.0)])
    inside = placer.inside
    for _ in range(_TRIES):
        if anchor is None:
            x, y = (low + rng.uniform(*_CENTRAL_RANGE) * (high - low) for low, high in (inside.span(0), inside.span(1)))
            yaw = WALL_YAW[int(rng.integers(4))]
        else:
            dx, dy, turn = _draw_spot_near(rng, anchor.model, model, where)
            cos = float(np.cos(anchor.yaw))
            sin = float(np.sin(anchor.yaw))
            x = anchor.x + cos * dx - sin * dy
            y = anchor.y + sin * dx + cos * dy
            yaw = anchor.yaw + turn
        if placer.try_at(group, x, y, yaw):
            return True
    return False


def _draw_spot_near(
    rng: np.random.Generator, anchor: ObjectModel, model: ObjectModel, where: str
) -> tuple[float, float, float]:
    """Draw place (x, y) and yaw of a companion in the frame of its anchor; see `FurnitureRule.where`."""
    across = (anchor.width + model.width) / 2 + _NEXT_TO
    along = (anchor.depth + model.depth) / 2 + _NEXT_TO
    if where == "beside":
        return float(rng.choice([-across, across])), (model.depth - anchor.depth) / 2 + _GAP, 0.0
    if where == "in_front":
        return rng.uniform(-_MAX_SHIFT, _MAX_SHIFT) * anchor.width, along + rng.uniform(*_TO_TABLE), 0.0
    if where == "facing":
        return rng.uniform(-_MAX_SHIFT, _MAX_SHIFT) * anchor.width, along, np.pi
    side = int(rng.integers(4))  # "around": back, left, front or right of the anchor
    shift = rng.uniform(-0.5, 0.5)
    if side % 2 == 0:
        slack = max(anchor.width - model.width, 0.0)
        return shift * slack, along if side == 2 else -along, np.pi if side == 2 else 0.0
    across = anchor.width / 2 + model.depth / 2 + _NEXT_TO  # the companion is turned by 90 degrees
    slack = max(anchor.depth - model.width, 0.0)
    return (across if side == 3 else -across), shift * slack, np.pi / 2 if side == 3 else -np.pi / 2
