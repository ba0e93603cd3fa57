"""The procedural world: houses and ways in them from seeds, nothing to download. Houses are made with the world, episodes when they are asked for."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, product
from typing import Any

import numpy as np

from memenvs.checks import choices_for
from memenvs.vln.graph import COLUMNS, STEP
from memenvs.vln.worlds.base import Episode, GraphWorld, ViewpointContent
from memenvs.vln.worlds.procedural.houses import ProceduralHouse, make_house
from memenvs.vln.worlds.procedural.texts import Clause, all_words, compile_clauses, tell

#: Houses of each split: as many as the scans of R2R.
HOUSES = {"train": range(61), "val_seen": range(61), "val_unseen": range(1000, 1011)}
#: Ways in each house; val_seen has other ways in the houses of train. As many as in R2R, three texts for each.
WAYS = {"train": range(75), "val_seen": range(75, 81), "val_unseen": range(71)}
TEXTS = 3
#: A tour is told in so many parts at most.
MOST_LEGS = 3
# R2R's rule for the ends of a path, edges and m.
_EDGES, _SHORTEST = (4, 6), 5.0
_TOKENS = 112  # for each leg
#: Moves that a third leg makes again before it does something else, in every second way: many, or few.
_AGAIN = (range(4, _EDGES[1] + 1), range(1, 4))
#: Continuations of a first leg that are tried.
_TRIES = 8

Path = tuple[int, ...]


class ProceduralGraphWorld(GraphWorld):
    """Houses of a split, each with the same number of episodes; subclasses make these.

    Args:
        split: "train", "val_seen" or "val_unseen".
        slots: Numbers of the ways of each house, by split.
        texts: Episodes for each way.

    Attributes:
        houses: All that is known of them.

    Raises:
        ValueError: Unknown split.
    """

    def __init__(self, split: str, slots: dict[str, range], texts: int) -> None:
        if split not in HOUSES:
            raise ValueError(f"unknown split {split!r}; {choices_for(split, HOUSES)}")
        self._seeds, self._slots, self._texts = HOUSES[split], slots[split], texts
        self._num_slots = max(each.stop for name, each in slots.items() if HOUSES[name] == HOUSES[split])
        self.houses: tuple[ProceduralHouse, ...] = tuple(make_house(seed) for seed in self._seeds)
        self.graphs = tuple(house.graph for house in self.houses)

    @property
    def words(self) -> tuple[str, ...]:
        """All words of the grammar."""
        return all_words()

    @property
    def num_episodes(self) -> int:
        """Episodes of the split."""
        return len(self._seeds) * len(self._slots) * self._texts

    def episode(self, number: int) -> Episode:
        """Episodes house by house, the texts of one way one after another."""
        way, text = divmod(number, self._texts)
        house, slot = divmod(way, len(self._slots))
        return self._make(house, self._slots[slot], text)

    def number(self, id: str) -> int:
        """Number of the episode with this id."""
        found = re.fullmatch(r"(\d+)-(\d+)(?:_(\d+))?", id)
        if found is not None:
            seed, slot, text = (int(each or 0) for each in found.groups())
            if (
                seed in self._seeds
                and slot in self._slots
                and text < self._texts
                and (found[3] is None) == (self._texts == 1)
            ):
                return (self._seeds.index(seed) * len(self._slots) + self._slots.index(slot)) * self._texts + text
        raise ValueError(f"no episode {id!r} in this split; ids look like {self.episode(0).id!r}")

    def viewpoint_content(self, house: int) -> ViewpointContent:
        """Rooms and things, seen within a room and from its doors."""
        found = self.houses[house]
        names = tuple((*spot.rooms, *(spot.thing or ("door",))) for spot in found.spots)
        return ViewpointContent(names, found.seen)

    @abstractmethod
    def _make(self, house: int, slot: int, text: int) -> Episode:
        """The episode of a house, a way and a text."""


class Tours(ProceduralGraphWorld):
    """R2R in procedural houses: one, two or three shortest paths end to end, told by clauses. The id of one is `HOUSE-WAY_TEXT`, such as "1003-12_2".

    Args:
        split: As `ProceduralGraphWorld`.
        legs: Shortest paths in a way, 1 to 3, each of 4 to 6 edges and at least 5 m. The last of two crosses the first, so that what to do at a place
            depends on when one is there, or on whence one has come. The last of three makes moves again that were made before, one after the other,
            and then does something else, so that what is seen does not tell what to do there: one to three of them in half of the ways, where the
            last three moves tell, and four or more in the others, where they do not.
    """

    def __init__(self, split: str, legs: int = 1) -> None:
        super().__init__(split, WAYS, TEXTS)
        self.split, self.legs = split, legs
        self.max_tokens = _TOKENS * legs
        self._way = lru_cache(maxsize=4096)(self._draw_way)

    def __reduce__(self) -> tuple[Any, ...]:
        return load_tours, (self.split, self.legs)  # a copy is made anew: what it holds follows from these

    def clauses(self, number: int) -> tuple[Clause, ...]:
        """What the text of an episode says."""
        house, slot = divmod(number // TEXTS, len(self._slots))
        return self._way(house, self._slots[slot])[2]

    def moves_again(self, number: int) -> tuple[int, int]:
        """How many moves the last leg of an episode makes again, one after the other, before it does something else, and which decision that is.

        Decisions are counted from 0 along the way. The longest such row of moves counts, of equal ones the first; (0, 0) of one leg.
        """
        house, slot = divmod(number // TEXTS, len(self._slots))
        *legs, last = self._way(house, self._slots[slot])[0]
        before = _joined(legs) if legs else ()
        moves, index = moves_again(before, last)
        return moves, len(before) - 1 + index if moves else 0

    def _make(self, house: int, slot: int, text: int) -> Episode:
        legs, column, clauses = self._way(house, slot)
        seed = self._seeds[house]
        return Episode(
            id=f"{seed}-{slot}_{text}",
            house=house,
            text=tell(clauses, np.random.default_rng([seed, self.legs, slot, 1 + text])),
            path=_joined(legs),
            heading=column * STEP,
            leg_ends=tuple(leg[-1] for leg in legs),
        )

    def _draw_way(self, number: int, slot: int) -> tuple[tuple[Path, ...], int, tuple[Clause, ...]]:
        """Legs, column at the start, and clauses. No two ways of a house have the same first leg."""
        house, seed = self.houses[number], self._seeds[number]
        ends = house_routes(seed)
        rng = np.random.default_rng([seed, self.legs, slot, 0])
        for start, goal in ends[slot :: self._num_slots].tolist():
            column = int(rng.integers(COLUMNS))
            for legs in islice(self._tours(house, ends, house.path(start, goal), slot, rng), _TRIES):
                clauses = compile_clauses(house, _joined(legs), column)
                if clauses is not None:
                    return legs, column, clauses
        raise RuntimeError(f"house {seed} has no way {slot} of {self.legs} legs")

    def _tours(
        self, house: ProceduralHouse, ends: np.ndarray, first: Path, slot: int, rng: np.random.Generator
    ) -> Iterator[tuple[Path, ...]]:
        """Tours that begin with a leg; their legs."""
        if self.legs == 1:
            yield (first,)
        elif self.legs == 2:
            yield from ((first, leg) for leg in _legs(house, ends, first[-1], rng) if set(first[:-1]) & set(leg[1:]))
        else:
            for second in _legs(house, ends, first[-1], rng):
                before = _joined((first, second))
                wanted = _AGAIN[slot % 2]
                third = next(
                    (leg for leg in _legs(house, ends, second[-1], rng) if moves_again(before, leg)[0] in wanted), None
                )
                if third is not None:
                    yield first, second, third


def _legs(house: ProceduralHouse, ends: np.ndarray, start: int, rng: np.random.Generator) -> Iterator[Path]:
    """All legs from a node, in a random order."""
    return (house.path(start, goal) for goal in rng.permutation(ends[ends[:, 0] == start, 1]).tolist())


def _joined(legs: Sequence[Path]) -> Path:
    """Legs end to end."""
    return (*legs[0], *(node for leg in legs[1:] for node in leg[1:]))


def moves_again(before: Path, leg: Path) -> tuple[int, int]:
    """How many moves of a leg, one after the other, were made on the way before it with something else after them, and its node where that is.

    The longest such row of moves counts, of equal ones the first; (0, 0) if there is none.
    """
    most = 0, 0
    for j, i in product(range(1, len(leg)), range(1, len(before) - 1)):
        if before[i] == leg[j] and before[i + 1 : i + 2] != leg[j + 1 : j + 2]:
            same = 0
            while same < min(i, j) and before[i - same - 1 : i - same + 1] == leg[j - same - 1 : j - same + 1]:
                same += 1
            if same > most[0]:
                most = same, j
    return most


@lru_cache(maxsize=256)
def house_routes(seed: int) -> np.ndarray:
    """Starts and goals of all legs that a house has, int64, (R, 2), in a random order that belongs to the house."""
    house = make_house(seed)
    is_long = (house.num_edges >= _EDGES[0]) & (house.num_edges <= _EDGES[1]) & (house.graph.distance >= _SHORTEST)
    return np.random.default_rng([seed, 0]).permutation(np.argwhere(is_long))


@lru_cache(maxsize=8)
def load_tours(split: str, legs: int) -> Tours:
    """Tours of a split; see the class."""
    return Tours(split, legs)
