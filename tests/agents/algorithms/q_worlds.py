"""Small environments for Q-learning with known optimal values."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from memenvs.agents import EpisodeDQN


class Ring(gym.Env):
    """A ring of states 0, 1, 2, observed as one-hot vectors.

    Action 1 goes to the next state, action 0 stays. The reward is `REWARDS[state][action]`.

    Args:
        length: Steps of an episode.
        terminates: If True, the last step terminates the episode; otherwise the time limit truncates it.
    """

    REWARDS = ((0.0, 1.0), (0.5, -1.0), (0.25, 2.0))
    observation_space = spaces.Box(0.0, 1.0, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, length: int = 8, terminates: bool = False) -> None:
        self.length, self.terminates = length, terminates

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.state, self.t = 0, 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        reward = self.REWARDS[self.state][action]
        self.state = (self.state + action) % 3
        self.t += 1
        over = self.t == self.length
        return self._observe(), reward, over and self.terminates, over and not self.terminates, {}

    def _observe(self) -> np.ndarray:
        return np.eye(3, dtype=np.float32)[self.state]


class Cue(gym.Env):
    """A memory task: the first observation is the right action of the last step.

    The reward is 1 for the right last action, -1 for the wrong one, 0 before. Episodes have 5 to 7 steps; the last step
    is announced.
    """

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.right, self.left = int(self.np_random.integers(2)), int(self.np_random.integers(5, 8))
        return np.array([2 * self.right - 1, 0], np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        over = self.left == 0
        reward = (1.0 if action == self.right else -1.0) if over else 0.0
        return np.array([0, self.left == 1], np.float32), reward, over, False, {}


def copies(env: Any, n: int = 4, **settings: Any) -> VecEnv:
    return DummyVecEnv([lambda: Monitor(env(**settings))] * n)


def q_learner(env: VecEnv, policy: dict[str, Any] | None = None, **settings: Any) -> EpisodeDQN:
    """A learner without memory and with a linear network: Q of one-hot observations is a table."""
    sizes = {"capacity": 32, "episode_steps": 8, "updates_per_collect": 50, "batch_size": 16, "decisions": 4}
    rates = {"learning_rate": 0.02, "gamma": 0.5, "n_step": 1, "target_rate": 0.1, "final_epsilon": 1.0}
    kwargs = policy or {"memory": "none", "net_arch": []}
    return EpisodeDQN("MemoryPolicy", env, policy_kwargs=kwargs, seed=0, device="cpu", **(sizes | rates | settings))
