"""Agents that learn: small runs on one core, each in less than half a minute."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env as make_sb3_vec_env

from memenvs.agents import PartialUpdatePPO, make_vec_env

pytestmark = pytest.mark.learning

SIZE, HORIZON, EPISODES = 4, 16, 4


def darkroom(n: int, seed: int) -> Any:
    return make_vec_env(
        "memenvs/Darkroom-v0", n, seed=seed, size=SIZE, max_episode_steps=HORIZON, trial_episodes=EPISODES, split="all"
    )


def in_context(memory: str, memory_kwargs: dict[str, Any], total: int, **settings: Any) -> np.ndarray:
    """Mean return in each episode of a trial, after training; 512 trials."""
    policy = {
        "memory": memory,
        "memory_kwargs": memory_kwargs,
        "features_extractor_kwargs": {"scaled": ["position"]},
    }
    model = PartialUpdatePPO(
        "MemoryPolicy",
        darkroom(64, 0),
        n_steps=HORIZON * EPISODES,
        n_updates=1,
        batch_size=16,
        learning_rate=2e-3,
        policy_kwargs=policy,
        seed=0,
        device="cpu",
        **settings,
    )
    model.learn(total)
    env = darkroom(512, 10_000)
    observation, state, starts = env.reset(), None, np.ones(512, bool)
    returns = np.zeros(EPISODES)
    for t in range(HORIZON * EPISODES):
        action, state = model.predict(observation, state, starts, trial_start=np.full(512, t == 0))
        observation, rewards, starts, _ = env.step(action)
        returns[t // HORIZON] += rewards.mean()
    return returns


def test_relic_improves_within_a_trial() -> None:
    sizes = {"layers": 2, "heads": 2, "dim": 32, "mlp_dim": 128, "sink": "k0v0", "depth_dropout": 0.0}
    returns = in_context("relic", sizes | {"max_episode_steps": HORIZON}, 100_000)
    assert returns[-1] - returns[0] > 3.0, returns
    assert returns[-1] > 9.5, returns


def test_without_memory_every_episode_is_like_the_first() -> None:
    returns = in_context("none", {}, 100_000)
    assert abs(returns[-1] - returns[0]) < 1.5, returns
    assert returns.max() < 9.0, returns


class NoVelocities(gym.ObservationWrapper):
    """CartPole without its velocities: they must be remembered from one step to the next."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, gym.spaces.Box)
        self.observation_space = gym.spaces.Box(space.low[[0, 2]], space.high[[0, 2]])

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return observation[[0, 2]]


def cartpole(total: int, wrapper: Any = None, **settings: Any) -> float:
    """Mean return of the last 100 episodes of training."""
    env = make_sb3_vec_env("CartPole-v1", 16, seed=0, wrapper_class=wrapper)
    model = PartialUpdatePPO(
        "MemoryPolicy",
        env,
        n_updates=1,
        learning_rate=1e-3,
        gamma=0.98,
        gae_lambda=0.8,
        ent_coef=0.0,
        vf_coef=0.5,
        max_grad_norm=0.5,
        clip_range_vf=None,
        normalize_advantage=True,
        n_epochs=10,
        seed=0,
        device="cpu",
        **settings,
    )
    model.learn(total)
    assert model.ep_info_buffer is not None
    return float(np.mean([episode["r"] for episode in model.ep_info_buffer]))


@pytest.mark.nightly  # that PPO learns is shown above
def test_none_learns_cartpole() -> None:
    assert cartpole(30_000, n_steps=64, batch_size=4, policy_kwargs={"memory": "none"}) > 150.0


@pytest.mark.nightly  # two minutes; tests/agents/memory/test_baselines.py shows the same of a shorter task
def test_lstm_learns_cartpole_without_velocities() -> None:
    policy = {"memory": "lstm", "memory_kwargs": {"hidden_dim": 64}, "net_arch": [64], "previous_action_dim": 0}
    assert cartpole(300_000, NoVelocities, n_steps=128, batch_size=4, policy_kwargs=policy) > 200.0


@pytest.mark.nightly
def test_none_does_not_learn_cartpole_without_velocities() -> None:
    """Control of the test above: the task needs a memory."""
    assert cartpole(60_000, NoVelocities, n_steps=64, batch_size=4, policy_kwargs={"memory": "none"}) < 120.0
