"""Answers of ColorRecall: one colour for all, and the colour that was observed."""

from __future__ import annotations

import math

import numpy as np

from memenvs.recall.color_recall import COLOURS, RGB, ColorRecall
from memenvs.recall.tours import NO_MOVE
from memenvs.rules import AnswerRule
from memenvs.task import BatchTask, Observation


class FixedColour(AnswerRule):
    """Answer red.

    All colours are equally likely and the query shows none, so no present view is worth more.
    """

    def _answer(self, i: int, observation: Observation) -> int:
        return 0


class ColourObserver(FixedColour):
    """Answer with the colour of the square in the first image of the tour.

    The query shows the same view without the square. So the square is where the two differ, and where it hides pixels
    of its own colour, too. The first image is the one before the query to which no move leads.
    """

    way = "ideal"
    window = None
    bits = math.log2(len(COLOURS))

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, ColorRecall)
        super().__init__(task)
        self._size = task.config.square_size
        self._first = np.zeros((task.num_envs, *task.config.image_size, 3), np.uint8)
        self._age = np.full(task.num_envs, -1)  # steps since the first image; -1 where it was not observed

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget the first image; see `Rule`."""
        self._age[env_mask] = -1

    def see(self, observation: Observation) -> None:
        """Keep the first image; see `Rule`."""
        is_first = (observation["move"] == NO_MOVE) & (observation["phase"] == 0)
        self._age += self._age >= 0
        if is_first.any():
            self._first[is_first] = observation["rgb"][is_first]
            self._age[is_first] = 0

    def _answer(self, i: int, observation: Observation) -> int:
        colour = square_colour(self._first[i], observation["rgb"][i], self._size) if self._age[i] >= 0 else None
        self._steps_back[i] = 0 if colour is None else self._age[i]
        return 0 if colour is None else colour


def square_colour(image: np.ndarray, background: np.ndarray, size: int) -> int | None:
    """Find the colour of a square that was painted over a view.

    Args:
        image: uint8, (H, W, 3); the view with the square.
        background: uint8, (H, W, 3); the view without it.
        size: Side of the square, pixels.

    Returns:
        Number of the colour; None if the images differ in another way, or nowhere and no part of the image has a
        square of one of the colours.
    """
    differs = (image != background).any(-1)
    rows, columns = np.flatnonzero(differs.any(1)), np.flatnonzero(differs.any(0))
    if not len(rows):  # it hides nothing but its own colour
        windows = np.lib.stride_tricks.sliding_window_view((image[:, :, None] == RGB).all(-1), (size, size), (0, 1))
        painted = windows.all((3, 4)).reshape(-1, len(COLOURS)).any(0)
        return int(painted.argmax()) if painted.any() else None
    fits = (image[differs][:, None] == RGB).all((0, 2))
    if not fits.any() or max(rows[-1] - rows[0], columns[-1] - columns[0]) >= size:
        return None
    return int(fits.argmax())
