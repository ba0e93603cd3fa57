"""Rules of TwoRooms: always green, a note in the own motion, and a memory of the cue."""

from __future__ import annotations

import math

import numpy as np

from memenvs.box_rooms.room import FIELD_OF_VIEW_DEG
from memenvs.cue_rules import NONE, CueGuess, CueMemory, CueNotebook, CueView
from memenvs.cue_task import GOALS
from memenvs.task import BatchTask, Observation
from memenvs.two_rooms.env import TwoRooms
from memenvs.two_rooms.rooms import FORWARD, LEFT, RIGHT, TURN_DEG

#: About as many rows and columns of an image are read, of those that it has.
_ROWS, _COLUMNS = 20, 40
#: A pixel belongs to a box if its colour is brighter than the two others by this, of 255.
_CONTRAST = 60
#: Two boxes are seen as where the choice begins if the sum of their directions is less than this, degrees.
_SAME_DEG = 6.0


class BoxView(CueView):
    """Reads in which directions the green and the blue boxes are."""

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, TwoRooms)
        height, width = task.config.image_size
        focal = height / 2 / math.tan(math.radians(FIELD_OF_VIEW_DEG / 2))  # pixels
        row_step, column_step = max(height // _ROWS, 1), max(width // _COLUMNS, 1)
        self._pixels = np.s_[:, row_step // 2 :: row_step, column_step // 2 :: column_step]
        columns = np.arange(width)[self._pixels[2]] + 0.5
        self._direction = np.degrees(np.arctan2(width / 2 - columns, focal))  # of each column, to the left

    def directions(self, observation: Observation) -> np.ndarray:
        """Directions of the green and the blue box in view, float64, (N, 2).

        In degrees to the left; NaN for none.
        """
        red, green, blue = np.moveaxis(observation["rgb"][self._pixels], -1, 0).astype(np.int16)
        directions = np.full((len(red), len(GOALS)), np.nan)
        for colour, (channel, other) in enumerate(((green, blue), (blue, green))):  # a yellow box lights red and green
            count = (channel - np.maximum(red, other) > _CONTRAST).sum(1)  # (N, columns); pixels of the box
            total = count.sum(1)
            directions[:, colour] = np.where(total > 0, count @ self._direction, np.nan) / np.maximum(total, 1)
        return directions

    def read(self, observation: Observation) -> tuple[np.ndarray, np.ndarray]:
        """Read the cue, and the number of green and blue boxes; see `CueView`."""
        has_box = ~np.isnan(self.directions(observation))
        count = has_box.sum(1)
        return np.where(count == 1, has_box.argmax(1), NONE), count

    def go_to(self, observation: Observation, colour: np.ndarray) -> np.ndarray:
        """Go to the box of a colour; see `CueView`."""
        return approach(self.directions(observation)[np.arange(len(colour)), colour])

    def go_on(self, observation: Observation) -> np.ndarray:
        """Go to the box that the robot faces more than the other; see `CueView`."""
        directions = self.directions(observation)
        faced = np.where(np.isnan(directions), np.inf, np.abs(directions)).argmin(1)
        return approach(directions[np.arange(len(faced)), faced])

    def begins_choice(self, observation: Observation) -> np.ndarray:
        """Mark where the two boxes are as far to the left as to the right; see `CueView`."""
        return np.abs(self.directions(observation).sum(1)) < _SAME_DEG  # False with a NaN


class GreenBox(CueGuess):
    """Go to the green box, and turn where it is not in view.

    The action follows from the present view alone. It is right in half of the episodes.
    """

    def __init__(self, task: BatchTask) -> None:
        super().__init__(BoxView(task))


class BoxNotebook(CueNotebook):
    """Write the colour into the own motion.

    It turns left all along the stay for green, right for blue. Where the choice begins the direction of the last turn
    is the colour; from then on it goes to the box that it faces more than the other. Where the robot is led, no action
    of its own is left to read.
    """

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task, BoxView(task))


class BoxMemory(CueMemory):
    """Remember the colour of the cue, and go to the box of this colour.

    If it has seen no cue, it goes to the green one.
    """

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task, BoxView(task))


def approach(direction: np.ndarray) -> np.ndarray:
    """Actions towards a direction, int64, (N,).

    The direction is float (N,), degrees to the left; where it is NaN, they turn to the left.
    """
    is_ahead = np.abs(direction) <= TURN_DEG / 2
    return np.select([is_ahead, direction < 0], [FORWARD, RIGHT], LEFT).astype(np.int64)
