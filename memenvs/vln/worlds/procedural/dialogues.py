"""CVDN in procedural houses: somebody looks for a thing, asks, is told the next part of the way, and walks as people do."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from memenvs.vln.graph import COLUMNS, STEP
from memenvs.vln.worlds.base import NAVIGATOR, ORACLE, Dialogue, Episode
from memenvs.vln.worlds.procedural.houses import ProceduralHouse, Spot
from memenvs.vln.worlds.procedural.texts import answer, arrival_column, ask, compile_clauses
from memenvs.vln.worlds.procedural.world import ProceduralGraphWorld

#: Instances in each house; val_seen has other ones in the houses of train. About as many as CVDN has.
INSTANCES = {"train": range(78), "val_seen": range(78, 84), "val_unseen": range(82)}
#: Edges of the way that an answer tells.
TOLD = 5
# How often the walk after 0, 1, ... exchanges is chosen, of those that a search has; chances of a step along the best way after an answer and before
# the first one, and of going on from its end.
_CHOSEN = (0.1, 0.2, 0.25, 0.25, 0.24)
_OBEYS, _GUESSES, _GOES_ON = 0.8, 0.6, 0.4
_PATIENCE = 7  # edges after which somebody who has not come to the end of that way gives up
_FARTHER = 4  # edges at most from there on
_AWAY = 40.0  # m; about how far off the thing is at first
_STARTS, _TRIES = 120, 20
_TOKENS = 300


class Dialogues(ProceduralGraphWorld):
    """Instances of navigation from dialogue history (NDH). The id of one is `HOUSE-INSTANCE`, such as "1003-12".

    The target is the nearest thing of a name; the viewpoints of its room are the goal region. Before each exchange somebody walks. The answer tells
    the next 5 edges at most of the shortest way; 80 % of the steps after it go that way.

    Args:
        split: As `ProceduralGraphWorld`.
        supervision: See `Dialogue.supervised_path`.
        history: See `Dialogue.text`.
    """

    def __init__(self, split: str, supervision: str, history: str) -> None:
        super().__init__(split, INSTANCES, 1)
        self.max_tokens = _TOKENS
        self.split, self.supervision, self.history = split, supervision, history

    def __reduce__(self) -> tuple[Any, ...]:
        return load_dialogues, (self.split, self.supervision, self.history)

    def dialogue(self, number: int) -> Dialogue:
        """An instance as it is before a supervision is chosen."""
        house, slot = divmod(number, len(self._slots))
        return draw_dialogue(house, self.houses[house], self._seeds[house], self._slots[slot])

    def _make(self, house: int, slot: int, text: int) -> Episode:
        return draw_dialogue(house, self.houses[house], self._seeds[house], slot).episode(
            self.supervision, self.history
        )


def draw_dialogue(number: int, house: ProceduralHouse, seed: int, slot: int) -> Dialogue:
    """An instance.

    Args:
        number: Of the house in its world.
        house: The house.
        seed: Of the house.
        slot: Number of the instance in the house.
    """
    rng = np.random.default_rng([seed, 1000, slot])
    for _ in range(_TRIES):
        node, target, region = _draw_search(house, rng)
        column = int(rng.integers(COLUMNS))
        turns: list[tuple[str, str]] = []
        walks: list[tuple[int, tuple[int, ...]]] = []  # the camera's heading before each, and its nodes
        while node not in region and len(walks) < len(_CHOSEN):
            walks.append((column, _walk(house, node, region, _OBEYS if turns else _GUESSES, rng)))
            column, node = arrival_column(house, walks[-1][1], column), walks[-1][1][-1]
            said = _exchange(house, node, column, region, target, rng)
            if said is None:
                break
            turns += said
        if not walks:
            continue
        chances = np.array(_CHOSEN[: len(walks)])
        chosen = int(rng.choice(len(walks), p=chances / chances.sum()))
        column, player_path = walks[chosen]
        if player_path[-1] != player_path[0]:
            return Dialogue(
                id=f"{seed}-{slot}",
                house=number,
                target=target,
                turns=tuple(turns[: 2 * chosen]),
                heading=column * STEP,
                region=region,
                planner_path=house.path(player_path[0], _nearest(house, player_path[0], region), TOLD),
                player_path=player_path,
            )
    raise RuntimeError(f"house {seed} has no dialogue {slot}")


def _draw_search(house: ProceduralHouse, rng: np.random.Generator) -> tuple[int, str, tuple[int, ...]]:
    """Start, name of the thing and nodes of its room: of some draws the one with the distance nearest to 40 m."""
    inside = np.where(house.room[:, 0] == house.room[:, 1], house.room[:, 0], -1)
    found: list[tuple[float, int, str, tuple[int, ...]]] = []
    for _ in range(_STARTS):
        node, thing = int(rng.integers(len(house.graph))), house.things[int(rng.integers(len(house.things)))]
        regions = [np.flatnonzero(inside == each.room) for each in house.things if each.name == thing.name]
        region = min(regions, key=lambda nodes: house.graph.distance[node, nodes].min())
        distance = float(house.graph.distance[node, region].min())
        found.append((abs(distance - _AWAY), node, thing.name, tuple(region.tolist())))
    return min(found)[1:]


def _nearest(house: ProceduralHouse, node: int, region: tuple[int, ...]) -> int:
    return region[int(house.graph.distance[node, region].argmin())]


def _walk(
    house: ProceduralHouse, node: int, region: tuple[int, ...], sure: float, rng: np.random.Generator
) -> tuple[int, ...]:
    """How somebody walks the next part of the way; `sure` is the chance of a right step."""
    goal = house.path(node, _nearest(house, node, region), TOLD)[-1]
    walk = [node]
    while walk[-1] != goal and len(walk) <= _PATIENCE:
        onward = int(house.next_node[walk[-1], goal])
        if rng.random() >= sure:
            neighbours = house.graph.candidates.node[walk[-1]]
            others = neighbours[(neighbours >= 0) & (neighbours != onward)]
            onward = int(rng.choice(others)) if len(others) else onward
        walk.append(onward)
    if walk[-1] == goal and rng.random() < _GOES_ON:
        walk += house.path(goal, _nearest(house, goal, region), int(rng.integers(1, _FARTHER + 1)))[1:]
    return tuple(walk)


def _exchange(
    house: ProceduralHouse, node: int, column: int, region: tuple[int, ...], target: str, rng: np.random.Generator
) -> list[tuple[str, str]] | None:
    """A question and an answer at a node; None if the way cannot be told."""
    way = house.path(node, _nearest(house, node, region), TOLD)
    clauses = compile_clauses(house, way, column)
    if clauses is None:
        return None
    spot: Spot = house.spots[node]
    return [(NAVIGATOR, ask(spot, rng)), (ORACLE, answer(clauses, target, rng, arrives=way[-1] in region))]


@lru_cache(maxsize=16)
def load_dialogues(split: str, supervision: str, history: str) -> Dialogues:
    """Dialogues of a split; see the class."""
    return Dialogues(split, supervision, history)
