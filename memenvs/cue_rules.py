"""Rules of tasks with a cue: a guess, a note in the own motion, and a memory."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from memenvs.cue_task import GOALS
from memenvs.rules import PREVIOUS_ACTION, Rule
from memenvs.task import BatchTask, Observation

GREEN, BLUE = range(len(GOALS))
NONE = -1  # no colour
LEFT, RIGHT = range(2)


class CueView(ABC):
    """Reads the views of N agents, and chooses their next actions towards what is in view."""

    @abstractmethod
    def read(self, observation: Observation) -> tuple[np.ndarray, np.ndarray]:
        """Read which colours are in view.

        Returns:
            Colour of the cue, which is alone in view, int64, (N,), -1 for none; and the number of coloured balls or
            boxes in view, int64, (N,).
        """

    @abstractmethod
    def go_to(self, observation: Observation, colour: np.ndarray) -> np.ndarray:
        """Choose actions, int64 (N,), towards a colour, int64 (N,).

        They turn to the left where it is not in view.
        """

    @abstractmethod
    def go_on(self, observation: Observation) -> np.ndarray:
        """Choose actions, int64 (N,), towards what the agent is going to, by the view alone."""

    @abstractmethod
    def begins_choice(self, observation: Observation) -> np.ndarray:
        """Mark the views where the choice begins, bool, (N,)."""


class CueGuess(Rule):
    """Choose green, and turn where it is not in view."""

    def __init__(self, view: CueView) -> None:
        self._view = view

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        return self._view.go_to(observation, np.full(len(observation[PREVIOUS_ACTION]), GREEN))


class CueNotebook(Rule):
    """Write the colour into the own motion.

    It turns left all along the stay for green, right for blue. It sees the present and the last view, and its own
    previous action. After the cue it turns, and goes on as it turned. Where the choice begins the direction of the last
    turn is the colour; from then on the view says where it is going.
    """

    way = "world"
    window = 2

    def __init__(self, task: BatchTask, view: CueView) -> None:
        self._view = view
        self._cues = np.full((task.num_envs, 2), NONE, np.int64)  # in the last view and in the present one

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget the last view; see `Rule`."""
        self._cues[env_mask] = NONE

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Forget the last view of the episode before; see `Rule`."""
        self.forget(env_mask)

    def see(self, observation: Observation) -> None:
        """Read the cue of the present view; see `Rule`."""
        self._cues[:, 0] = self._cues[:, 1]
        self._cues[:, 1], _ = self._view.read(observation)

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        turned_right = observation[PREVIOUS_ACTION] - 1 == RIGHT
        last = self._cues[:, 0]
        spin = np.where(np.where(last == NONE, turned_right, last == BLUE), RIGHT, LEFT)
        noted = self._view.go_to(observation, np.where(turned_right, BLUE, GREEN))
        steps = np.where(self._view.begins_choice(observation), noted, self._view.go_on(observation))
        _, count = self._view.read(observation)
        return np.where(count > 0, steps, spin).astype(np.int64)


class CueMemory(Rule):
    """Remember the colour of the cue, and choose it; green if no cue was seen.

    It faces the cue as long as it is there, and turns during the stay. What it remembers is one bit.
    """

    way = "ideal"
    window = None
    bits = 1.0

    def __init__(self, task: BatchTask, view: CueView) -> None:
        self._view = view
        self._cue = np.full(task.num_envs, NONE, np.int64)
        self._age = np.zeros(task.num_envs, np.int64)  # steps since the cue was in view
        self._is_gone = np.zeros(task.num_envs, bool)  # True once none or several were in view
        self._needed: np.ndarray | None = None

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget the colour; see `Rule`."""
        self._cue[env_mask] = NONE
        self._is_gone[env_mask] = False

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Forget the colour: every episode has a cue of its own."""
        self.forget(env_mask)

    def see(self, observation: Observation) -> None:
        """Remember the colour that is alone in view, until it is gone; see `Rule`."""
        colour, count = self._view.read(observation)
        is_cue = (colour != NONE) & ~self._is_gone
        self._cue = np.where(is_cue, colour, self._cue)
        self._age = np.where(is_cue, 0, self._age + 1)
        self._is_gone |= count != 1

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        _, count = self._view.read(observation)
        self._needed = np.where((count > 0) & (self._cue != NONE), self._age, 0)
        return self._view.go_to(observation, np.where(self._cue == NONE, GREEN, self._cue))

    def steps_back(self) -> np.ndarray | None:
        """Steps since the cue was in view, where there is something to choose; see `Rule`."""
        return self._needed
