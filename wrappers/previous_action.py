"""`PreviousActionWrapper`: the previous action as an observation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from memenvs.task import PHASE
from memenvs.wrappers.key import KeyWrapper


class PreviousActionWrapper(KeyWrapper, RecordConstructorArgs):
    """Add the observation `previous_action`; the first one of an episode means "none".

    It also means "none" after an action that the environment ignored: where the observation before had the key `phase`,
    a `Discrete`, with 0. Otherwise an agent could keep a note in actions that do nothing.

    | action space | `previous_action` | none |
    |---|---|---|
    | `Discrete(n)` | int64 (), `Discrete(n + 1)`: 1 + the action, counted from 0 | 0 |
    | `Box` | the action itself, same dtype and shape | zeros |

    Args:
        env: Any Gymnasium environment with one of these action spaces.

    Raises:
        TypeError: The action space is of another kind.
    """

    def __init__(self, env: gym.Env) -> None:
        RecordConstructorArgs.__init__(self)
        actions = env.action_space
        space: gym.Space
        if isinstance(actions, gym.spaces.Discrete):
            space = gym.spaces.Discrete(int(actions.n) + 1)
        elif isinstance(actions, gym.spaces.Box):
            space = gym.spaces.Box(np.minimum(actions.low, 0), np.maximum(actions.high, 0), dtype=actions.dtype.type)
        else:
            raise TypeError(f"the action space must be Discrete or Box, got {actions}")
        super().__init__(env, "previous_action", space)
        inner = env.observation_space
        self._has_phase = isinstance(inner, gym.spaces.Dict) and isinstance(inner.get(PHASE), gym.spaces.Discrete)
        self._is_ignored = False  # whether the environment ignores the next action

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Reset the environment; see the class."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._is_ignored = self._ignores_action(observation)
        return self._with_key(observation, self._encode(None)), info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Step the environment; see the class."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        starts = info.get("episode_start", False)  # a `TrialWrapper` inside has begun the next episode
        encoded = self._encode(None if starts or self._is_ignored else action)
        self._is_ignored = self._ignores_action(observation)
        return self._with_key(observation, encoded), reward, terminated, truncated, info

    def _ignores_action(self, observation: Any) -> bool:
        """True if the action after this observation does nothing."""
        return self._has_phase and int(observation[PHASE]) == 0

    def _encode(self, action: Any) -> Any:
        """The observation for an action; None for no action."""
        space = self.env.action_space
        if isinstance(space, gym.spaces.Box):
            return np.zeros(space.shape, space.dtype) if action is None else np.array(action, space.dtype)
        if not isinstance(space, gym.spaces.Discrete):
            raise TypeError(f"the action space must be Discrete or Box, got {space}")
        return np.int64(0 if action is None else 1 + int(action) - int(space.start))
