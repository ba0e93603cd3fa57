"""Paths of R2R one after another, as in Room-for-Room (R4R)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from memenvs.files import cached_until_changed
from memenvs.vln.graph import Graphs
from memenvs.vln.metrics import RADIUS
from memenvs.vln.worlds.base import VLNEpisode
from memenvs.vln.worlds.mp3d import R2R_MAX_TOKENS, Mp3dGraphWorld, load_r2r, r2r_training_texts
from memenvs.vln.worlds.mp3d_graphs import FOLDER, Scan


class JoinedGraphWorld(Mp3dGraphWorld):
    """Real houses where R2R's paths follow one another, with all combinations of their texts.

    A path follows another if it starts less than 3 m from its end; the shortest way there joins them. Episodes are made
    when they are needed, since there are many. Their ids join those of R2R, such as "12_0+345_2".

    Args:
        world: R2R's episodes of a split.
        legs: Number of paths that are joined, >= 2.

    Raises:
        ValueError: No path starts near the end of another.

    Source:
        Jain et al., "Stay on the Path: Instruction Fidelity in Vision-and-Language Navigation", ACL 2019 (two legs).
    """

    def __init__(self, world: Mp3dGraphWorld, legs: int) -> None:
        self._world = world
        self._texts: list[range] = []  # of each path, numbers of its episodes in `world`
        scans: list[Scan] = []  # of houses with such paths
        chains = [np.empty((0, legs), np.int64)]  # numbers of the paths that are joined
        self._house: dict[int, int] = {}  # number of a house in `world` -> here
        self._first_chain = [0]  # of each house
        for house, graph in enumerate(world.graphs):
            texts = [range(numbers[0], numbers[-1] + 1) for numbers in world.paths(house)]
            paths = [world.episode(numbers[0]).path for numbers in texts]
            starts, ends = (np.array([path[at] for path in paths]) for at in (0, -1))
            follows = graph.distance[np.ix_(ends, starts)] < RADIUS
            chain = np.arange(len(paths))[:, None]
            for _ in range(legs - 1):
                before, after = np.nonzero(follows[chain[:, -1]])
                chain = np.column_stack([chain[before], after])
            if len(chain):
                self._house[house] = len(scans)
                scans.append(world.scans[house])
                chains.append(chain + len(self._texts))
                self._first_chain.append(self._first_chain[-1] + len(chain))
            self._texts += texts
        if not scans:
            raise ValueError(
                f"no {legs} paths of the split follow one another in {str(world.folder)!r}; legs=1 has some"
            )
        super().__init__(world.folder, scans, (), legs * R2R_MAX_TOKENS, r2r_training_texts)
        self._table = Graphs(self.graphs)
        self._chains = np.concatenate(chains)
        counts = np.array([len(numbers) for numbers in self._texts])[self._chains].prod(1)
        self._first = np.append(0, np.cumsum(counts))  # number of each chain's first episode, and of all episodes

    @property
    def num_episodes(self) -> int:
        """Episodes of the split: all texts of all joined paths."""
        return int(self._first[-1])

    def episode(self, number: int) -> VLNEpisode:
        """Episodes of a joined path one after another; the text of its last leg changes first."""
        k = int(self._first.searchsorted(number, "right")) - 1
        texts = [self._texts[path] for path in self._chains[k]]
        chosen = np.unravel_index(number - self._first[k], [len(numbers) for numbers in texts])
        legs = [self._world.episode(numbers[at]) for numbers, at in zip(texts, chosen, strict=True)]
        house = self._house[legs[0].house]
        offset = int(self._table.offset[house])
        path, leg_ends = list(legs[0].path), [legs[0].path[-1]]
        for leg in legs[1:]:
            way = self._table.shortest_path(offset + path[-1], offset + leg.path[0])
            path += [node - offset for node in way[1:]] + list(leg.path[1:])
            # the start too, so that the teacher goes there: a shorter way to the next end would not be that of the text
            leg_ends += [*leg.path[:1] * (len(way) > 1), leg.path[-1]]
        return VLNEpisode(
            id="+".join(leg.id for leg in legs),
            house=house,
            text=" ".join(leg.text.strip() for leg in legs),
            path=tuple(path),
            heading=legs[0].heading,
            leg_ends=tuple(leg_ends),
        )

    def episode_number(self, id: str) -> int:
        """Number of the episode with this id."""
        try:
            numbers = [self._world.episode_number(part) for part in id.split("+")]
            k = self._number_of_chain[tuple(self._path_of_text[number] for number in numbers)]
        except (ValueError, KeyError):
            raise ValueError(f"no episode {id!r} in this split; ids have the form {self.episode(0).id!r}") from None
        texts = [self._texts[path] for path in self._chains[k]]
        chosen = [number - numbers[0] for number, numbers in zip(numbers, texts, strict=True)]
        return int(self._first[k] + np.ravel_multi_index(chosen, [len(numbers) for numbers in texts]))

    def paths(self, house: int) -> list[Sequence[int]]:
        """Joined paths of a house; their texts follow one another."""
        first = self._first[self._first_chain[house] : self._first_chain[house + 1] + 1].tolist()
        return [range(*pair) for pair in pairwise(first)]

    @cached_property
    def _number_of_chain(self) -> dict[tuple[int, ...], int]:
        return {tuple(chain): k for k, chain in enumerate(self._chains.tolist())}

    @cached_property
    def _path_of_text(self) -> dict[int, int]:
        return {number: path for path, numbers in enumerate(self._texts) for number in numbers}


@cached_until_changed(4, FOLDER)
def load_joined_r2r(folder: Path, split: str, legs: int) -> JoinedGraphWorld:
    """Load R2R's paths one after another.

    Args:
        folder: Result of `memenvs.data.find_vln_folder`.
        split: As in `load_r2r`.
        legs: Number of paths that are joined, >= 2.

    Raises:
        FileNotFoundError: A file is missing; the message lists what is needed.
        ValueError: As in `load_r2r`, or no path starts near the end of another.
    """
    return JoinedGraphWorld(load_r2r(folder, split), legs)
