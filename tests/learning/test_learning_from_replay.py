"""Q-learning in a task whose last action depends on the first observation."""

from typing import Any

import numpy as np
import pytest

from memenvs.agents import EpisodeDQN
from tests.agents.algorithms.q_worlds import Cue, copies

pytestmark = pytest.mark.learning


def mean_return(memory: str, **memory_kwargs: Any) -> float:
    """Mean return of 200 greedy episodes after 300 updates: 1 is perfect, 0 is guessing."""
    sizes = {"capacity": 256, "episode_steps": 7, "updates_per_collect": 50, "batch_size": 32, "decisions": 8}
    rates = {"learning_rate": 1e-2, "gamma": 0.9, "target_rate": 0.05}
    policy = {"memory": memory, "memory_kwargs": memory_kwargs}
    model = EpisodeDQN("MemoryPolicy", copies(Cue, 16), **sizes, **rates, policy_kwargs=policy, seed=0, device="cpu")
    model.learn(16 * 7 * (16 + 6))
    env = copies(Cue, 200)
    env.seed(1)
    observation, state, starts = env.reset(), None, np.ones(200, bool)
    returns = np.zeros(200)
    running = np.ones(200, bool)
    for _ in range(7):
        action, state = model.predict(observation, state, starts, deterministic=True)
        observation, rewards, starts, _ = env.step(action)
        returns += rewards * running
        running &= ~starts
    assert not running.any()
    return float(returns.mean())


@pytest.mark.parametrize(
    ("memory", "settings"),
    [  # Q values of other memories are those of acting by tests/agents/algorithms/test_episode_dqn.py
        ("lstm", {"hidden_dim": 32}),
        ("relic", {"layers": 1, "heads": 2, "dim": 16, "mlp_dim": 32, "depth_dropout": 0.0, "max_episode_steps": 9}),
    ],
)
def test_a_memory_brings_the_cue_to_the_end(memory: str, settings: dict[str, Any]) -> None:
    assert mean_return(memory, **settings) > 0.9


def test_without_memory_it_is_guessed() -> None:
    assert abs(mean_return("none")) < 0.3
