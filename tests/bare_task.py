"""A task with the compulsory methods alone."""

from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.core import BatchTask


class Bare(BatchTask):
    """A task without oracle, pictures and map."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.observation_space = gym.spaces.Dict({"x": gym.spaces.Box(0, 1, (1,), np.float32)})
        self.action_space = gym.spaces.Discrete(2)
        self.max_episode_steps, self.num_layouts = 3, 1

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        pass

    def begin_episode(self, i: int, rng: np.random.Generator, options: dict[str, Any]) -> None:
        pass

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return active * 1.0, active & False

    def observe(self, out: dict[str, np.ndarray], env_mask: np.ndarray) -> None:
        out["x"][env_mask] = 1

    def info(self) -> dict[str, np.ndarray]:
        return {}
