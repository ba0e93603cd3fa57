"""A fixed sweep of the Darkroom, which uses no step before the present one."""

from __future__ import annotations

import numpy as np

from memenvs.darkroom.env import DOWN, RIGHT, STAY, UP, Darkroom
from memenvs.rules import Rule
from memenvs.task import BatchTask, Observation


class Sweep(Rule):
    """Go up and down the columns one after another, and stay where there is reward.

    The action follows from the observed cell and the previous reward alone. In every episode it scores the same: 50.49
    over all 100 goals of the default room, 47.9 over the 20 test goals.
    """

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, Darkroom)
        self._last = task.config.size - 1

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        column, row = observation["position"].astype(np.int64).T
        goes_up = column % 2 == 0
        at_end = np.where(goes_up, row == self._last, row == 0)
        along = np.where(goes_up, UP, DOWN)
        return np.where(observation["previous_reward"][:, 0] > 0, STAY, np.where(at_end, RIGHT, along))
