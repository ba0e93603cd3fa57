"""Rules of TwoRooms: a guess, a note in the own motion, and a memory of the cue.

The guess is always the green box.
"""

from __future__ import annotations

import math

import numpy as np

from memenvs.box_rooms.room import FIELD_OF_VIEW_DEG
from memenvs.rules import PREVIOUS_ACTION, Rule
from memenvs.task import BatchTask, Observation
from memenvs.two_rooms.env import GOALS, TwoRooms
from memenvs.two_rooms.rooms import FORWARD, LEFT, RIGHT, TURN_DEG

_GREEN, _BLUE = range(len(GOALS))
_NONE = -1
#: About as many rows and columns of an image are read, of those that it has.
_ROWS, _COLUMNS = 20, 40
#: A pixel belongs to a box if its colour is brighter than the two others by this, of 255.
_CONTRAST = 60
#: Two boxes are seen as where the choice begins if the sum of their directions is less than this, degrees.
_SAME_DEG = 6.0


class _BoxRule(Rule):
    """Reads the view: in which directions the green and the blue boxes are."""

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


class GreenBox(_BoxRule):
    """Go to the green box, and turn where it is not in view.

    The action follows from the present view alone. It is right in half of the episodes.
    """

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        return approach(self.directions(observation)[:, _GREEN])


class BoxNotebook(_BoxRule):
    """Write the colour into the own motion.

    It turns left all along the stay for green, right for blue.

    It sees the present and the last view, and its own previous action. After the cue it turns, and goes on as it
    turned. Where the choice begins the direction of the last turn is the colour; from then on it goes to the box that
    it faces more than the other. Where the robot is led, no action of its own is left to read.
    """

    way = "world"
    window = 2

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task)
        self._cues = np.full((task.num_envs, 2), _NONE, np.int64)  # in the last view and in the present one
        self._directions = np.full((task.num_envs, len(GOALS)), np.nan)  # in the present view

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget the last view; see `Rule`."""
        self._cues[env_mask] = _NONE

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Forget the last view of the episode before; see `Rule`."""
        self.forget(env_mask)

    def see(self, observation: Observation) -> None:
        """Read the cue of the present view; see `Rule`."""
        self._cues[:, 0] = self._cues[:, 1]
        self._directions = self.directions(observation)
        self._cues[:, 1] = _only_one(self._directions)

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        directions = self._directions
        turned = observation[PREVIOUS_ACTION] - 1
        last = self._cues[:, 0]
        spin = np.where(last == _NONE, np.where(turned == RIGHT, RIGHT, LEFT), np.where(last == _BLUE, RIGHT, LEFT))
        noted = np.where(turned == RIGHT, directions[:, _BLUE], directions[:, _GREEN])
        is_first = np.abs(directions.sum(1)) < _SAME_DEG  # False with a NaN
        faced = np.where(np.isnan(directions), np.inf, np.abs(directions)).argmin(1)
        direction = np.where(is_first, noted, directions[np.arange(len(faced)), faced])
        return np.where(np.isnan(direction), spin, approach(direction)).astype(np.int64)


class BoxMemory(_BoxRule):
    """Remember the colour of the cue, and go to the box of this colour.

    If it has seen no cue, it goes to the green one.

    It faces the cue as long as it is there, and turns during the stay. What it remembers is one bit.
    """

    way = "ideal"
    window = None
    bits = 1.0

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task)
        self._cue = np.full(task.num_envs, _NONE, np.int64)
        self._directions = np.full((task.num_envs, len(GOALS)), np.nan)  # in the present view
        self._age = np.zeros(task.num_envs, np.int64)  # steps since the cue was in view
        self._is_gone = np.zeros(task.num_envs, bool)  # True once there was no single box in view
        self._needed: np.ndarray | None = None

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget the colour; see `Rule`."""
        self._cue[env_mask] = _NONE
        self._is_gone[env_mask] = False

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Forget the colour: every episode has a cue of its own."""
        self.forget(env_mask)

    def see(self, observation: Observation) -> None:
        """Remember the colour of a box that is alone in view, until it is gone; see `Rule`."""
        self._directions = self.directions(observation)
        only = _only_one(self._directions)
        cue = np.where(self._is_gone, _NONE, only)
        self._cue = np.where(cue == _NONE, self._cue, cue)
        self._age = np.where(cue == _NONE, self._age + 1, 0)
        self._is_gone |= only == _NONE

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        directions = self._directions
        remembered = directions[np.arange(len(directions)), np.maximum(self._cue, _GREEN)]
        is_there = ~np.isnan(directions).all(1)
        self._needed = np.where(is_there & (self._cue != _NONE), self._age, 0)
        return approach(remembered)

    def steps_back(self) -> np.ndarray | None:
        """Steps since the cue was in view, where there is a box to choose; see `Rule`."""
        return self._needed


def approach(direction: np.ndarray) -> np.ndarray:
    """Actions towards a direction, int64, (N,).

    The direction is float (N,), degrees to the left; where it is NaN, they turn to the left.
    """
    is_ahead = np.abs(direction) <= TURN_DEG / 2
    return np.select([is_ahead, direction < 0], [FORWARD, RIGHT], LEFT).astype(np.int64)


def _only_one(directions: np.ndarray) -> np.ndarray:
    """Number of the colour of which alone there is a box in view, int64, (N,); -1 for none or both."""
    has_box = ~np.isnan(directions)
    return np.where(has_box.sum(1) == 1, has_box.argmax(1), _NONE)
