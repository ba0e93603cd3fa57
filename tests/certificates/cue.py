"""A task of one bit and its rules: a cue, a delay with ignored actions, and an answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

import memenvs
from memenvs import registry
from memenvs.registry import EnvironmentSpec
from memenvs.rules import Rule
from memenvs.task import BatchTask, Observation, Options


@dataclass(frozen=True, kw_only=True)
class CueConfig:
    """Steps between cue and answer; if delay actions are seen; reward of a right answer."""

    delay: int = 20
    leaks: bool = False
    reward: float = 1.0
    threads: int = 1


class Cue(BatchTask):
    """Answer with the cue: 1 or 2 at the first step, 0 later."""

    config_type = CueConfig

    def __init__(self, num_envs: int, **kwargs: Any) -> None:
        self.config = CueConfig(**kwargs)
        self.num_envs = num_envs
        self.observation_space = gym.spaces.Dict({"cue": gym.spaces.Discrete(6), "phase": gym.spaces.Discrete(2)})
        self.action_space = gym.spaces.Discrete(2)
        self.max_episode_steps, self.num_layouts = self.config.delay + 1, 1
        self.bit, self.time, self.last = (np.zeros(num_envs, np.int64) for _ in range(3))
        self.success = np.zeros(num_envs, bool)

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        pass

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        self.bit[i], self.time[i], self.last[i], self.success[i] = rng.integers(2), 0, 0, False

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        answers = active & (self.time == self.config.delay)
        self.success = np.where(active, answers & (actions == self.bit), self.success)
        self.time += active
        self.last = np.where(active, actions, self.last)
        return self.success * answers * self.config.reward, answers

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        cue = np.where(self.time == 0, 1 + self.bit, 3 * self.last if self.config.leaks else 0)
        out["cue"][env_mask] = cue[env_mask]
        out["phase"][env_mask] = (self.time == self.config.delay)[env_mask]

    def info(self) -> dict[str, np.ndarray]:
        return {"success": self.success}

    def oracle_actions(self) -> np.ndarray:
        return self.bit.copy()


class CueIdeal(Rule):
    way, window, bits = "ideal", None, 1.0

    def __init__(self, task: BatchTask) -> None:
        self._bit, self._age = np.zeros(task.num_envs, np.int64), np.zeros(task.num_envs, np.int64)

    def forget(self, env_mask: np.ndarray) -> None:
        self._bit[env_mask] = 0

    def see(self, observation: Observation) -> None:
        is_cue = np.isin(observation["cue"], (1, 2))
        self._bit = np.where(is_cue, observation["cue"] - 1, self._bit)
        self._age = np.where(is_cue, 0, self._age + 1)

    def choose(self, observation: Observation) -> np.ndarray:
        return self._bit.copy()

    def steps_back(self) -> np.ndarray:
        return self._age


class CueBlind(Rule):
    def __init__(self, task: BatchTask) -> None:
        self._count = task.num_envs

    def choose(self, observation: Observation) -> np.ndarray:
        return np.zeros(self._count, np.int64)


@contextmanager
def registered(**arguments: Any) -> Iterator[EnvironmentSpec]:
    """Register "toy/Cue-v0" with these arguments of `register` for as long as the context lasts."""
    rows, ids = dict(registry._ROWS), dict(gym.registry)
    path = "tests.certificates.cue"
    given = {
        "task": Cue,
        "score_key": "success",
        "policies": {"memoryless": f"{path}:CueBlind", "ideal": f"{path}:CueIdeal"},
        "defaults": {"trial_episodes": 1},
    }
    try:
        yield memenvs.register("toy/Cue-v0", **{**given, **arguments})
    finally:
        registry._ROWS.clear()
        registry._ROWS.update(rows)
        gym.registry.clear()
        gym.registry.update(ids)
