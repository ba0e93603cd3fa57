"""Tasks with a cue, a long stay elsewhere and a choice: VisualMatch and TwoRooms."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium as gym
import numpy as np

from memenvs.checks import option_number
from memenvs.task import BatchTask, Options

#: Phases of an episode.
CUE, COLLECT, CHOOSE = range(3)
#: Colours of the cue.
GOALS = ("green", "blue")


class CueTask(BatchTask):
    """Choose what has the colour that was shown before a long stay elsewhere.

    Layout:
        There is one.

    Options:
        goal: Number or name of the cue's colour: 0 green, 1 blue.

    Info:
        phase_id: 0 with the cue, 1 during the stay, 2 with the choice.
        goal: As in the options.
        success: True if the colour of the cue was chosen.
        return: Sum of rewards in this episode.
    """

    option_names = ("goal",)
    action_names = ("turn left", "turn right", "forward")

    def __init__(self, num_envs: int, phases: tuple[int, int, int], num_colours: int, first_steps: int = 0) -> None:
        """Make the part of the state that such tasks share.

        Args:
            num_envs: N.
            phases: Steps of the three phases.
            num_colours: Colours to choose from.
            first_steps: Steps by which the cue is there longer than its phase.
        """
        self.num_envs = num_envs
        self.num_layouts = 1
        self.max_episode_steps = sum(phases)
        self.action_space = gym.spaces.Discrete(len(self.action_names))
        cue, collect, _ = phases
        #: First steps of the stay and of the choice.
        self._begins = (cue + first_steps, cue + first_steps + collect)
        self._step = np.zeros(num_envs, np.int64)
        self._goal = np.zeros(num_envs, np.int64)
        self._order = np.tile(np.arange(num_colours), (num_envs, 1))
        self._choice = np.full(num_envs, -1)
        self._return = np.zeros(num_envs)

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Do nothing; episodes of a trial have nothing in common."""

    def waits(self) -> np.ndarray:
        """Return where the agent is elsewhere; bool, (N,)."""
        return self._phase() == COLLECT

    @property
    def num_places(self) -> int:
        """Two: the room of cue and choice, and that of the stay."""
        return 2

    def _set_episode(self, i: int, goal: int, order: Sequence[int] | np.ndarray, options: Options) -> None:
        """Begin an episode with the drawn colour of the cue, or that of the options, and the order of the colours."""
        self._goal[i] = goal if options.get("goal") is None else option_number("goal", options["goal"], GOALS)
        self._order[i] = order
        self._choice[i] = -1
        self._step[i] = 0
        self._return[i] = 0.0

    def _phase(self) -> np.ndarray:
        """Phase of each environment, int64, (N,)."""
        stay, choice = self._begins
        return (self._step >= stay) * 1 + (self._step >= choice)

    def _info(self, pose: np.ndarray, **counts: np.ndarray) -> dict[str, np.ndarray]:
        """Return the truth, with the poses (N, 3) and what was taken during the stay."""
        phase = self._phase()
        return {
            "pose": pose,
            "place": (phase == COLLECT).astype(np.int64),
            "phase_id": phase,
            "goal": self._goal,
            "order": self._order,
            "choice_id": self._choice,
            **counts,
            "success": self._choice == self._goal,
            "return": self._return,
        }
