"""FFHQ-world: pictures, and paths over them in batches of episodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memenvs.checks import MAX_STEPS, check_int, is_int
from memenvs.episode_keys import KeyedEpisodes, check_keys
from memenvs.faces.episodes import GRID, NO_ACTION, NUM_CELLS, PATCH_PIXELS, PATCH_STRIDE, FaceEpisodes
from memenvs.faces.pictures import Pictures
from memenvs.faces.places import Places, check_places, num_places, place_table
from memenvs.faces.walkers import Walkers
from memenvs.random import random_words

#: Number of clusters of cells, one of which is the region of the long stay.
STAY_PLACES = 16
#: Observed steps before, during and after the stay: without one, and with one.
OBSERVED_STEPS = (256, 0, 0)
STAY_STEPS = (224, 256, 32)


@dataclass(frozen=True, kw_only=True, eq=False)
class FaceWorld(KeyedEpisodes[FaceEpisodes]):
    """Pictures and episodes of FFHQ-world.

    Attributes:
        pictures: Where the pictures come from, and which of them are drawn.
        steps: Observed steps before, during and after the long stay; without a stay (T, 0, 0).
        query_moves: Moves of the query, Q.
        places: "cells", or the number of clusters that are the places of the memory.

    Source:
        Spatially-Aware Transformer for Embodied Agents, 2024, sections 4.3 and D.8, and its release.
    """

    pictures: Pictures
    steps: tuple[int, int, int] = OBSERVED_STEPS
    query_moves: int = 32
    places: Places = "cells"

    def __post_init__(self) -> None:
        check_places(self.places)
        check_int("query_moves", self.query_moves)
        check_steps(self.steps)

    @property
    def num_steps(self) -> int:
        """Observed steps of an episode, T."""
        return sum(self.steps)

    @property
    def num_places(self) -> int:
        """Number of places."""
        return num_places(self.places)

    def make_episodes(self, keys: np.ndarray) -> FaceEpisodes:
        """Make the episodes of these keys.

        Args:
            keys: int64, (B,), >= 0.

        Raises:
            ValueError: Keys have another type, shape or range.
        """
        keys = check_keys(keys)
        before, during, after = self.steps
        words = random_words(keys.astype(np.uint64), 3 + self.num_steps + self.query_moves)
        # The first step has a word too, which nothing uses, so that step t has word 3 + t.
        at = np.cumsum([3, before, during, after, self.query_moves])

        cell = np.zeros((len(keys), self.num_steps), np.int16)
        action = np.full(cell.shape, NO_ACTION, np.int8)
        cell[:, 0] = _below(words[:, 1], NUM_CELLS)
        walkers = Walkers(cell[:, 0])
        action[:, 1:before], cell[:, 1:before] = walkers.move(words[:, at[0] + 1 : at[1]])
        if during:
            region = slice(before, before + during)
            entry = walkers.move(words[:, at[1] : at[1] + 1])
            action[:, before : before + 1], cell[:, before : before + 1] = entry
            regions = place_table(STAY_PLACES)
            allowed = regions == regions[entry[1]]
            stay = walkers.stay(words[:, at[1] + 1 : at[2]], allowed)
            action[:, region][:, 1:], cell[:, region][:, 1:] = stay
        action[:, before + during :], cell[:, before + during :] = walkers.move(words[:, at[2] : at[3]])

        start = _below(words[:, 2], NUM_CELLS)
        query_action, query_cell = Walkers(start).move(words[:, at[3] : at[4]])
        return FaceEpisodes(
            picture=self.pictures.numbers[_below(words[:, 0], len(self.pictures.numbers))],
            cell=cell,
            place=place_table(self.places)[cell],
            action=action,
            query_cell=np.column_stack([start.astype(np.int16), query_cell]),
            query_action=query_action,
            key=keys,
        )

    def patches(self, picture: np.ndarray, cell: np.ndarray) -> np.ndarray:
        """Look up patches.

        Args:
            picture: int, (B,); numbers of pictures.
            cell: int, (B, T); cells in these pictures.

        Returns:
            uint8, (B, T, 16, 16, 3).

        Raises:
            ValueError: There is no such picture, or it cannot be read.
        """
        different, index = np.unique(picture, return_inverse=True)
        patches = cut_patches(np.stack([self.pictures.read(int(number)) for number in different]))
        return patches[index[:, None], cell]


def check_steps(steps: object) -> None:
    """Raise a ValueError unless `steps` is a number of steps before, during and after a stay."""
    valid = isinstance(steps, tuple) and len(steps) == 3 and all(is_int(count) and count >= 0 for count in steps)
    if not valid or steps[0] < 1 or sum(steps) > MAX_STEPS:  # type: ignore[index, call-overload]
        raise ValueError(
            "steps must be three integers, before (at least 1), during and after the stay (at least 0), of at most "
            f"{MAX_STEPS} together, got {steps!r}"
        )


def cut_patches(pictures: np.ndarray) -> np.ndarray:
    """Cut pictures, (P, 88, 88, 3), into the patches of their cells, (P, 100, 16, 16, 3)."""
    windows = np.lib.stride_tricks.sliding_window_view(pictures, (PATCH_PIXELS, PATCH_PIXELS), (1, 2))
    chosen = windows[:, ::PATCH_STRIDE, ::PATCH_STRIDE]  # (P, 10, 10, 3, 16, 16)
    return np.moveaxis(chosen, 3, 5).reshape(len(pictures), GRID**2, PATCH_PIXELS, PATCH_PIXELS, -1)


def _below(words: np.ndarray, n: int) -> np.ndarray:
    """Turn random words into integers in 0 ... n - 1, as `memenvs.random.draw_below` does; int64."""
    return ((words >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)).astype(np.int64)
