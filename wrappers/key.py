"""Base class of the wrappers that add one key to a dictionary observation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


def observation_key(space: gym.Space) -> str:
    """Key for an observation that is not a dictionary: "rgb" for an image, else "observation"."""
    is_image = isinstance(space, gym.spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3
    return "rgb" if is_image else "observation"


class KeyWrapper(gym.Wrapper):
    """Add one key to the observation.

    An observation that is not a dictionary becomes one.

    Args:
        env: Any Gymnasium environment.
        key: The new key.
        space: Its space.

    Raises:
        ValueError: The observations have this key already.
    """

    def __init__(self, env: gym.Env, key: str, space: gym.Space) -> None:
        super().__init__(env)
        inner = env.observation_space
        self._key = key
        self._inner_key = None if isinstance(inner, gym.spaces.Dict) else observation_key(inner)
        spaces = dict(inner.spaces) if isinstance(inner, gym.spaces.Dict) else {observation_key(inner): inner}
        if key in spaces:
            raise ValueError(
                f"the observations have a key {key!r} already; keys are {list(spaces)}; make the environment without it"
            )
        self.observation_space = gym.spaces.Dict({**spaces, key: space})

    def _with_key(self, observation: Any, value: Any) -> dict[str, Any]:
        """The observation as a dictionary with `value` under the new key."""
        inner = observation if self._inner_key is None else {self._inner_key: observation}
        return {**inner, self._key: value}
