"""A task of two places: a cue in the first, a long stay in the second, the answer."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents.vec_env import TrialVecEnv
from memenvs.core import TrialVectorEnv
from memenvs.task import BatchTask, Observation, Options

CUE_STEPS, ANSWER_STEPS = 2, 1


class Corridor(BatchTask):
    """Two cues; the last action of an episode should name that of its first steps.

    Args:
        num_envs: N.
        delay: Steps in the second place.
        early: Action 2 in the second place ends the episode, so that episodes differ in length.
    """

    action_names = ("left", "right", "end")

    def __init__(self, num_envs: int, delay: int = 6, early: bool = False) -> None:
        self.num_envs, self.early = num_envs, early
        self.max_episode_steps = CUE_STEPS + delay + ANSWER_STEPS
        self.observation_space = spaces.Dict({"cue": spaces.Box(0.0, 1.0, (2,), np.float32)})
        self.action_space = spaces.Discrete(3)
        self.num_layouts = 1
        self.cue = np.zeros(num_envs, np.int64)
        self.steps = np.zeros(num_envs, np.int64)

    @property
    def num_places(self) -> int:
        return 2

    @property
    def place(self) -> np.ndarray:
        in_second = (self.steps >= CUE_STEPS) & (self.steps < self.max_episode_steps - ANSWER_STEPS)
        return in_second.astype(np.int64)

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        pass

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        self.cue[i] = rng.integers(2)
        self.steps[i] = 0

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        is_last = active & (self.steps == self.max_episode_steps - 1)
        ended = active & self.early & (self.place == 1) & (actions == 2)
        reward = np.where(is_last & (actions == self.cue), 1.0, 0.0)
        self.success = reward > 0
        self.steps = self.steps + active
        return reward, is_last | ended

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        cue = np.eye(2, dtype=np.float32)[self.cue] * (self.steps < CUE_STEPS)[:, None]
        out["cue"][env_mask] = cue[env_mask]

    def info(self) -> Mapping[str, Any]:  # type: ignore[override]
        return {"place": self.place, "success": getattr(self, "success", np.zeros(self.num_envs, bool))}


def corridor(n: int, *, trial_episodes: int | None = 1, **settings: Any) -> VecEnv:
    """N corridors with places."""
    env = TrialVectorEnv(Corridor, n, trial_episodes=trial_episodes, autoreset_mode="SameStep", **settings)
    return TrialVecEnv(env, place=True)
