"""A trained policy that remembers the last steps alone of earlier episodes."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from memenvs.agents.memory.base import State
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.checks import check_int


class Step(NamedTuple):
    """Observation and action of a policy in one environment, with a batch dimension of 1."""

    observation: Any
    episode_start: np.ndarray
    action: np.ndarray


class LastSteps:
    """Make a policy's memory anew at each episode, from the last steps of the trial.

    Within an episode it remembers all steps, those of a gap too. If the policy scores as much as with its whole memory,
    then its score does not show that it remembers more of earlier episodes. If it scores less, that may also come from
    a memory that it has never learned with.

    Args:
        policy: The policy.
        size: Steps that it sees again, >= 0: the end of the episode before, and of earlier ones where that is shorter.

    Raises:
        ValueError: `size` is negative.
    """

    def __init__(self, policy: ActingPolicy, size: int) -> None:
        check_int("last_steps", size, 0)
        self._policy = policy
        self._size = size

    def predict(
        self,
        observation: Any,
        state: tuple[State, list[deque[Step]]] | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        trial_start: np.ndarray | None = None,
    ) -> tuple[np.ndarray, tuple[State, list[deque[Step]]]]:
        """Return the actions of the policy, and its state with the last steps of each environment.

        See `Policy.predict`.

        Raises:
            ValueError: The environment does not report where a trial starts.
        """
        if episode_start is None or trial_start is None:
            raise ValueError("the last steps of a trial need an environment with trials, this one reports none")
        if state is None:
            state = self._policy.initial_state(len(episode_start)), [deque(maxlen=self._size) for _ in episode_start]
        memory, last = state
        for i in np.flatnonzero(episode_start).tolist():
            if trial_start[i]:
                last[i].clear()  # the policy empties the memory
            else:
                own = self._memory_of(last[i])
                memory = {name: _with_row(value, i, own[name][0]) for name, value in memory.items()}
        actions, memory = self._policy.predict(observation, memory, episode_start, deterministic, trial_start)
        for i, steps in enumerate(last):
            steps.append(Step(_row(observation, i), episode_start[i : i + 1], actions[i : i + 1]))
        return actions, (memory, last)

    def _memory_of(self, steps: deque[Step]) -> State:
        """State of the policy after these steps alone, (1, ...)."""
        state = self._policy.initial_state(1)
        for number, step in enumerate(steps):
            is_first = np.array([number == 0])
            # The most likely action is not drawn, so the generator stays as it is; the action taken replaces it.
            _, state = self._policy.predict(step.observation, state, step.episode_start | is_first, True, is_first)
            state = self._policy.update_previous_action(state, step.action)
        return state


def _row(observation: Any, i: int) -> Any:
    """Observation of one environment, (1, ...)."""
    if isinstance(observation, dict):
        return {key: value[i : i + 1].copy() for key, value in observation.items()}
    return observation[i : i + 1].copy()


def _with_row(value: Tensor, i: int, row: Tensor) -> Tensor:
    """Put a row into a state, (N, ...); of two sizes that grow with the steps the smaller is filled up with zeros."""
    whole = value.new_zeros([len(value), *map(max, value.shape[1:], row.shape)])
    whole[tuple(slice(size) for size in value.shape)] = value
    whole[i] = 0
    whole[i][tuple(slice(size) for size in row.shape)] = row
    return whole
