"""Procedural world of R2R: houses and paths from seeds, nothing to download.

All houses are made when the world is, each episode when it is needed.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, product
from typing import Any

import numpy as np

from memenvs.checks import choices_for
from memenvs.vln.graph import COLUMNS, VIEW_STEP
from memenvs.vln.worlds.base import GraphWorld, ViewpointContent, VLNEpisode
from memenvs.vln.worlds.procedural.houses import ProceduralHouse, make_house
from memenvs.vln.worlds.procedural.texts import SubInstruction, all_words, compile_clauses, write_instruction

#: Seeds of the houses of each split; train and val_unseen have as many houses as in R2R.
HOUSES = {"train": range(61), "val_seen": range(61), "val_unseen": range(1000, 1011)}
#: Slots of the paths in each house, about as many as in R2R. val_seen has other paths in the houses of train.
PATHS = {"train": range(75), "val_seen": range(75, 81), "val_unseen": range(71)}
#: Texts of each path.
TEXTS = 3
#: Largest number of legs of a route.
MAX_LEGS = 3
# R2R's rule for a path: fewest and most edges, and smallest length.
MIN_LEG_EDGES, MAX_LEG_EDGES = 4, 6
_SHORTEST = 5.0  # m
MAX_LEG_TOKENS = 112  # the longest texts of a leg have about 100
#: Numbers of moves that a third leg repeats before it differs: many in even slots, few in odd slots.
_REPEATED = (range(4, MAX_LEG_EDGES + 1), range(1, 4))
#: Number of routes to try that begin with the same first leg.
_TRIES = 8

Path = tuple[int, ...]


class ProceduralGraphWorld(GraphWorld):
    """Houses of a split with equally many episodes each; subclasses make the episodes.

    A slot is the number of a path (R2R) or dialogue (CVDN) within its house. Splits with the same houses have different
    slots.

    Args:
        split: "train", "val_seen" or "val_unseen".
        slots: Slots of each house, by split.
        texts: Episodes of each slot, which differ in their text only.

    Attributes:
        houses: The houses of the split, in the order of `graphs`.

    Raises:
        ValueError: Unknown split.
    """

    def __init__(self, split: str, slots: dict[str, range], texts: int) -> None:
        if split not in HOUSES:
            raise ValueError(f"unknown split {split!r}; {choices_for(split, HOUSES)}")
        self._seeds, self._slots, self._texts = HOUSES[split], slots[split], texts
        # Slots of a house over all splits that have it.
        self._num_slots = max(numbers.stop for name, numbers in slots.items() if HOUSES[name] == HOUSES[split])
        self.houses: tuple[ProceduralHouse, ...] = tuple(make_house(seed) for seed in self._seeds)
        self.graphs = tuple(house.graph for house in self.houses)

    @property
    def words(self) -> tuple[str, ...]:
        """All words of the grammar."""
        return all_words()

    @property
    def num_episodes(self) -> int:
        """Number of episodes of the split."""
        return len(self._seeds) * len(self._slots) * self._texts

    def episode(self, number: int) -> VLNEpisode:
        """Episode with this number, counted by house, then path, then text."""
        path, text = divmod(number, self._texts)
        house, slot = divmod(path, len(self._slots))
        return self._make(house, self._slots[slot], text)

    def episode_number(self, id: str) -> int:
        """Number of the episode with this id."""
        match = re.fullmatch(r"(\d+)-(\d+)(?:_(\d+))?", id)
        if match is not None:
            seed, slot, text = (int(group or 0) for group in match.groups())
            if (
                seed in self._seeds
                and slot in self._slots
                and text < self._texts
                and (match[3] is None) == (self._texts == 1)  # ids end in _TEXT where a slot has several texts
            ):
                return (self._seeds.index(seed) * len(self._slots) + self._slots.index(slot)) * self._texts + text
        raise ValueError(f"no episode {id!r} in this split; ids have the form {self.episode(0).id!r}")

    def paths(self, house: int) -> list[Sequence[int]]:
        """Paths in the order of their slots."""
        first = house * len(self._slots) * self._texts
        return [range(first + slot * self._texts, first + (slot + 1) * self._texts) for slot in range(len(self._slots))]

    def viewpoint_content(self, house: int) -> ViewpointContent:
        """Rooms and items; they are visible within a room and from its doors."""
        content = self.houses[house]
        names = tuple((*landmark.rooms, *(landmark.item or ("door",))) for landmark in content.landmarks)
        return ViewpointContent(names, content.is_visible)

    @abstractmethod
    def _make(self, house: int, slot: int, text: int) -> VLNEpisode:
        """Make the episode of a house, a slot and a text."""


class Routes(ProceduralGraphWorld):
    """R2R in procedural houses: one, two or three shortest paths end to end.

    An id is `HOUSE-PATH_TEXT`, such as "1003-12_2".

    Args:
        split: As `ProceduralGraphWorld`.
        legs: Number of shortest paths in a route, 1 to 3; each has 4 to 6 edges and at least 5 m. With two legs the
            second crosses the first, so that the right action at a node depends on the time, or on the previous node.
            With three legs the third repeats earlier moves and then differs, so that the current view does not
            determine the right action. It repeats one to three moves in half of the paths, where the last three moves
            determine the action, and four or more in the others, where they do not.
    """

    texts = TEXTS

    def __init__(self, split: str, legs: int = 1) -> None:
        super().__init__(split, PATHS, self.texts)
        self.split = split
        self.legs = legs
        self.max_tokens = MAX_LEG_TOKENS * legs
        self._cached_path = lru_cache(maxsize=4096)(self._draw_path)

    def __reduce__(self) -> tuple[Any, ...]:
        return load_routes, (self.split, self.legs)  # a copy is made anew from the same arguments

    def clauses(self, number: int) -> tuple[SubInstruction, ...]:
        """Clauses of the text of an episode."""
        house, slot = divmod(number // self.texts, len(self._slots))
        return self._cached_path(house, self._slots[slot])[2]

    def repeated_moves(self, number: int) -> tuple[int, int]:
        """Count the moves that the last leg repeats; see the function `repeated_moves`.

        Returns:
            Number of moves, and index in the episode's path of the node where the leg differs. (0, 0) for one leg, or
            if no move is repeated.
        """
        house, slot = divmod(number // self.texts, len(self._slots))
        *legs, last = self._cached_path(house, self._slots[slot])[0]
        before = join_legs(legs) if legs else ()
        moves, index = repeated_moves(before, last)
        return moves, len(before) - 1 + index if moves else 0

    def _make(self, house: int, slot: int, text: int) -> VLNEpisode:
        legs, column, clauses = self._cached_path(house, slot)
        seed = self._seeds[house]
        return VLNEpisode(
            id=f"{seed}-{slot}_{text}",
            house=house,
            text=write_instruction(clauses, np.random.default_rng([seed, self.legs, slot, 1 + text])),
            path=join_legs(legs),
            heading=column * VIEW_STEP,
            leg_ends=tuple(leg[-1] for leg in legs),
        )

    def _draw_path(self, index: int, slot: int) -> tuple[tuple[Path, ...], int, tuple[SubInstruction, ...]]:
        """Draw the path of a slot in the house with this index.

        Returns:
            The legs, the camera's heading at the start in steps of 30 degrees, and the clauses.
        """
        house, seed = self.houses[index], self._seeds[index]
        ends = possible_legs(seed)
        rng = np.random.default_rng([seed, self.legs, slot, 0])
        # Each slot has its own share of the possible first legs, so no two paths of a house have the same one.
        for start, goal in ends[slot :: self._num_slots].tolist():
            column = int(rng.integers(COLUMNS))
            for legs in islice(self._routes(house, ends, house.path(start, goal), slot, rng), _TRIES):
                clauses = self._compile(house, legs, column)
                if clauses is not None:
                    return legs, column, clauses
        raise RuntimeError(f"house {seed} has no path {slot} of {self.legs} legs")

    def _compile(self, house: ProceduralHouse, legs: Sequence[Path], column: int) -> tuple[SubInstruction, ...] | None:
        """Divide the legs into clauses; see `compile_clauses`."""
        return compile_clauses(house, join_legs(legs), column)

    def _routes(
        self, house: ProceduralHouse, ends: np.ndarray, first: Path, slot: int, rng: np.random.Generator
    ) -> Iterator[tuple[Path, ...]]:
        """Generate routes whose first leg is `first`, as tuples of legs; see `Routes` for the rules.

        Args:
            house: The house.
            ends: See `possible_legs`.
            first: The first leg.
            slot: Even for many repeated moves, odd for few.
            rng: Gives the order.
        """
        if self.legs == 1:
            yield (first,)
        elif self.legs == 2:
            yield from ((first, leg) for leg in _legs(house, ends, first[-1], rng) if set(first[:-1]) & set(leg[1:]))
        else:
            for second in _legs(house, ends, first[-1], rng):
                before = join_legs((first, second))
                lengths = _REPEATED[slot % 2]
                third = next(
                    (leg for leg in _legs(house, ends, second[-1], rng) if repeated_moves(before, leg)[0] in lengths),
                    None,
                )
                if third is not None:
                    yield first, second, third


def _legs(house: ProceduralHouse, ends: np.ndarray, start: int, rng: np.random.Generator) -> Iterator[Path]:
    """Generate all legs from a node in random order."""
    return (house.path(start, goal) for goal in rng.permutation(ends[ends[:, 0] == start, 1]).tolist())


def join_legs(legs: Sequence[Path]) -> Path:
    """Concatenate legs."""
    return (*legs[0], *(node for leg in legs[1:] for node in leg[1:]))


def repeated_moves(before: Path, leg: Path) -> tuple[int, int]:
    """Find the longest run of moves that a leg repeats from the path before it, then leaves.

    Returns:
        Number of moves in the run, and the index of the leg's node where it ends. Of equally long runs the first;
        (0, 0) if there is none.
    """
    longest = 0, 0
    # A run ends at the same node before[i] and leg[j], where the next nodes differ. The leg may stop there (an empty
    # slice); the path before has a next node. Moves are then compared backwards from that node.
    for j, i in product(range(1, len(leg)), range(1, len(before) - 1)):
        if before[i] == leg[j] and before[i + 1 : i + 2] != leg[j + 1 : j + 2]:
            same = 0
            while same < min(i, j) and before[i - same - 1 : i - same + 1] == leg[j - same - 1 : j - same + 1]:
                same += 1
            if same > longest[0]:
                longest = same, j
    return longest


@lru_cache(maxsize=256)
def possible_legs(seed: int) -> np.ndarray:
    """Start and goal of each possible leg of a house, in a fixed random order; int64, (K, 2)."""
    house = make_house(seed)
    is_long = (
        (house.num_edges >= MIN_LEG_EDGES) & (house.num_edges <= MAX_LEG_EDGES) & (house.graph.distance >= _SHORTEST)
    )
    return np.random.default_rng([seed, 0]).permutation(np.argwhere(is_long))


@lru_cache(maxsize=8)
def load_routes(split: str, legs: int) -> Routes:
    """Make the routes of a split, or return those of an earlier call; see `Routes`."""
    return Routes(split, legs)
