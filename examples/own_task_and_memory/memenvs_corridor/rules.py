"""Two rules for the certificate: one with a perfect memory, one with none."""

from __future__ import annotations

import numpy as np

from memenvs.core import BatchTask, Observation
from memenvs.rules import Rule
from memenvs_corridor.task import FORWARD, LEFT, RIGHT


class Ideal(Rule):
    """Remembers the signal, and turns to its side at the junction."""

    way, window, bits = "ideal", None, 1.0

    def __init__(self, task: BatchTask) -> None:
        self._signal = np.zeros(task.num_envs, np.float32)
        self._age = np.zeros(task.num_envs, np.int64)

    def forget(self, env_mask: np.ndarray) -> None:
        """A trial begins: forget the signal."""
        self._signal[env_mask] = 0

    def see(self, observation: Observation) -> None:
        """Keep the signal, and count the steps since then."""
        signal = observation["signal"][:, 0]
        self._signal = np.where(signal != 0, signal, self._signal)
        self._age = np.where(signal != 0, 0, self._age + 1)

    def choose(self, observation: Observation) -> np.ndarray:
        """Go forward, and turn at the junction."""
        turn = np.where(self._signal > 0, RIGHT, LEFT)
        return np.where(observation["junction"][:, 0] > 0, turn, FORWARD)

    def steps_back(self) -> np.ndarray:
        """Return how long ago the signal was seen."""
        return self._age


class Blind(Rule):
    """Turns left at the junction, whatever the signal was."""

    def choose(self, observation: Observation) -> np.ndarray:
        """Go forward, and turn left at the junction."""
        return np.where(observation["junction"][:, 0] > 0, LEFT, FORWARD)
