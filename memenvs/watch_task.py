"""Environments in which one watches, then answers.

They are Room Ballet, FFHQ-world, Ballet3D and the recall tasks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memenvs.task import BatchTask


class WatchTask(BatchTask):
    """Watch for T steps that the environment decides, then answer a query.

    A subclass draws episodes, and says what they show and what an answer is worth.
    """

    def __init__(self, num_envs: int, steps: int, answers: int = 1, episodes: Any = None) -> None:
        """Make the part of the state that such tasks share.

        Args:
            num_envs: N.
            steps: T.
            answers: Steps of the query phase, an answer each.
            episodes: Dataclass of arrays with a row for each environment, for `_begin`; None where there is none.
        """
        self.num_envs = num_envs
        self.num_layouts = 1
        self.max_episode_steps = steps + answers + 1  # never reached: episodes terminate one step earlier
        self._num_steps = steps
        self._episodes = episodes
        self._rows = np.arange(num_envs)
        self._step = np.zeros(num_envs, np.int64)
        self._success = np.zeros(num_envs, bool)  # where the answer is a class

    @property
    def episodes(self) -> Any:
        """The present episodes, a copy; None for a task that does not keep them as arrays."""
        return None if self._episodes is None else self._episodes.select(self._rows)

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Do nothing; episodes of a trial have nothing in common."""

    def _begin(self, i: int, episode: Any) -> None:
        """Begin an episode, a batch of one, in environment `i`."""
        for name, values in vars(episode).items():
            getattr(self._episodes, name)[i] = values[0]
        self._step[i] = 0
        self._success[i] = False

    def _compare(self, actions: np.ndarray, labels: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Go to the next step, or compare answers with the true classes, both int (N,); see `BatchTask.step`."""
        terminated = active & self._in_query()
        self._success = np.where(terminated, actions == labels, self._success)
        self._step += active & ~terminated
        return np.where(terminated & self._success, 1.0, 0.0), terminated

    def _in_query(self) -> np.ndarray:
        """True in the query phase, bool, (N,)."""
        return self._step >= self._num_steps

    def _path_step(self) -> np.ndarray:
        """Step of those that are watched, int64, (N,); the last one in the query phase."""
        return np.minimum(self._step, self._num_steps - 1)
