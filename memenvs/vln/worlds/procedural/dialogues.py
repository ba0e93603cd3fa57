"""CVDN in procedural houses: a simulated navigator seeks an item and is given directions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from memenvs.vln.graph import COLUMNS, VIEW_STEP
from memenvs.vln.worlds.base import NAVIGATOR, ORACLE, Dialogue, VLNEpisode
from memenvs.vln.worlds.procedural.houses import ProceduralHouse
from memenvs.vln.worlds.procedural.texts import arrival_column, compile_clauses, write_answer, write_question
from memenvs.vln.worlds.procedural.world import ProceduralGraphWorld

#: Instances in each house, about as many as in CVDN. val_seen has other instances in the houses of train.
INSTANCES = {"train": range(78), "val_seen": range(78, 84), "val_unseen": range(82)}
#: Largest number of edges of the path that an answer describes.
ANSWER_EDGES = 5
# The navigator moves along a path, puts a question and gets an answer (an exchange), moves along the next path, and so
# on. An instance is one of these paths, with the exchanges before it.
#: Relative probability that the instance is the path after 0, 1, ... exchanges.
_EXCHANGE_WEIGHTS = (0.1, 0.2, 0.25, 0.25, 0.24)
#: Probability that a step follows the shortest path, after an answer and before the first one.
_P_FOLLOW = 0.8
_P_GUESS = 0.6
#: Probability that the navigator moves on beyond the end of the described path.
_P_OVERSHOOT = 0.4
_MAX_EDGES = 7  # after as many the navigator stops, even before the end of the described path
_MAX_OVERSHOOT = 4  # edges, beyond that end
_PREFERRED_DISTANCE = 40.0  # m; of the item from the start
_NUM_STARTS = 120  # draws of a start and an item, of which the best is taken
_TRIES = 20  # draws of a whole instance before giving up
_MAX_TOKENS = 300


class Dialogues(ProceduralGraphWorld):
    """Instances of navigation from dialogue history (NDH).

    An id is `HOUSE-INSTANCE`, such as "1003-12". The target is the nearest item with a name; the viewpoints of its room
    are the goal region. The navigator moves before each exchange. An answer describes at most the next 5 edges of the
    shortest path; 80 % of the steps after it follow that path.

    Args:
        split: As `ProceduralGraphWorld`.
        supervision: See `Dialogue.supervised_path`.
        history: See `Dialogue.text`.
    """

    def __init__(self, split: str, supervision: str, history: str) -> None:
        super().__init__(split, INSTANCES, 1)
        self.max_tokens = _MAX_TOKENS
        self.split = split
        self.supervision = supervision
        self.history = history

    def __reduce__(self) -> tuple[Any, ...]:
        return load_dialogues, (self.split, self.supervision, self.history)

    def dialogue(self, number: int) -> Dialogue:
        """Instance with this number, before a supervision is chosen."""
        index, slot = divmod(number, len(self._slots))
        return draw_dialogue(index, self.houses[index], self._seeds[index], self._slots[slot])

    def _make(self, house: int, slot: int, text: int) -> VLNEpisode:
        return draw_dialogue(house, self.houses[house], self._seeds[house], slot).episode(
            self.supervision, self.history
        )


def draw_dialogue(house_index: int, house: ProceduralHouse, seed: int, slot: int) -> Dialogue:
    """Draw an instance.

    Args:
        house_index: Index of the house in its world.
        house: The house.
        seed: Seed of the house.
        slot: Number of the instance in the house.
    """
    rng = np.random.default_rng([seed, 1000, slot])
    for _ in range(_TRIES):
        node, target, region = _draw_start_and_target(house, rng)
        column = int(rng.integers(COLUMNS))
        turns: list[tuple[str, str]] = []
        paths: list[tuple[int, tuple[int, ...]]] = []  # column at the start of each path, and its nodes
        while node not in region and len(paths) < len(_EXCHANGE_WEIGHTS):
            paths.append((column, _draw_player_path(house, node, region, _P_FOLLOW if turns else _P_GUESS, rng)))
            column, node = arrival_column(house, paths[-1][1], column), paths[-1][1][-1]
            exchange = _write_exchange(house, node, column, region, target, rng)
            if exchange is None:
                break
            turns += exchange
        if not paths:
            continue
        weights = np.array(_EXCHANGE_WEIGHTS[: len(paths)])
        chosen = int(rng.choice(len(paths), p=weights / weights.sum()))
        column, player_path = paths[chosen]
        if player_path[-1] != player_path[0]:
            return Dialogue(
                id=f"{seed}-{slot}",
                house=house_index,
                target=target,
                turns=tuple(turns[: 2 * chosen]),
                heading=column * VIEW_STEP,
                region=region,
                planner_path=house.path(player_path[0], _nearest(house, player_path[0], region), ANSWER_EDGES),
                player_path=player_path,
            )
    raise RuntimeError(f"house {seed} has no dialogue {slot}")


def _draw_start_and_target(house: ProceduralHouse, rng: np.random.Generator) -> tuple[int, str, tuple[int, ...]]:
    """Draw start, item and the nodes of its room.

    Of 120 draws, take the one whose distance is nearest to 40 m, so that most searches need several exchanges.
    """
    inside = np.where(house.room[:, 0] == house.room[:, 1], house.room[:, 0], -1)  # room of each node; -1 in a door
    starts: list[tuple[float, int, str, tuple[int, ...]]] = []  # (error of the distance, start, item, region)
    for _ in range(_NUM_STARTS):
        node, item = int(rng.integers(len(house.graph))), house.items[int(rng.integers(len(house.items)))]
        regions = [np.flatnonzero(inside == other.room) for other in house.items if other.name == item.name]
        region = min(regions, key=lambda nodes: house.graph.distance[node, nodes].min())
        distance = float(house.graph.distance[node, region].min())
        starts.append((abs(distance - _PREFERRED_DISTANCE), node, item.name, tuple(region.tolist())))
    return min(starts)[1:]


def _nearest(house: ProceduralHouse, node: int, region: tuple[int, ...]) -> int:
    """Node of the region with the shortest path from a node."""
    return region[int(house.graph.distance[node, region].argmin())]


def _draw_player_path(
    house: ProceduralHouse, node: int, region: tuple[int, ...], probability: float, rng: np.random.Generator
) -> tuple[int, ...]:
    """Draw the next path of the navigator; each step is right with the given probability."""
    goal = house.path(node, _nearest(house, node, region), ANSWER_EDGES)[-1]
    path = [node]
    while path[-1] != goal and len(path) <= _MAX_EDGES:
        onward = int(house.next_node[path[-1], goal])
        if rng.random() >= probability:
            neighbours = house.graph.candidates.node[path[-1]]
            others = neighbours[(neighbours >= 0) & (neighbours != onward)]
            onward = int(rng.choice(others)) if len(others) else onward
        path.append(onward)
    if path[-1] == goal and rng.random() < _P_OVERSHOOT:
        path += house.path(goal, _nearest(house, goal, region), int(rng.integers(1, _MAX_OVERSHOOT + 1)))[1:]
    return tuple(path)


def _write_exchange(
    house: ProceduralHouse, node: int, column: int, region: tuple[int, ...], target: str, rng: np.random.Generator
) -> list[tuple[str, str]] | None:
    """Write question and answer at a node; None if the path has no clauses."""
    path = house.path(node, _nearest(house, node, region), ANSWER_EDGES)
    clauses = compile_clauses(house, path, column)
    if clauses is None:
        return None
    return [
        (NAVIGATOR, write_question(house.landmarks[node], rng)),
        (ORACLE, write_answer(clauses, target, rng, arrives=path[-1] in region)),
    ]


@lru_cache(maxsize=16)
def load_dialogues(split: str, supervision: str, history: str) -> Dialogues:
    """Dialogues of a split; see the class."""
    return Dialogues(split, supervision, history)
