"""Q-learning from episodes where the first observation decides what is right at the end: with a memory and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from memenvs.agents import EpisodeDQN
from tests.agents.algorithms.q_worlds import Cue, copies

pytestmark = pytest.mark.learning


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def returns(memory: str, **memory_kwargs: Any) -> float:
    """Mean return of 200 episodes of the best actions after 600 updates; 1 is perfect, -1 always wrong, 0 guessed."""
    model = EpisodeDQN(
        "MemoryPolicy", copies(Cue, 16), capacity=256, episode_steps=7, updates_per_collect=50, batch_size=32, decisions=8,
        learning_rate=5e-3, gamma=0.9, target_rate=0.05, policy_kwargs={"memory": memory, "memory_kwargs": memory_kwargs},
        seed=0, device="cpu",
    )  # fmt: skip
    model.learn(16 * 7 * (16 + 12))
    env = copies(Cue, 200)
    env.seed(1)
    observation, state, starts = env.reset(), None, np.ones(200, bool)
    paid, running = np.zeros(200), np.ones(200, bool)
    for _ in range(7):
        action, state = model.predict(observation, state, starts, deterministic=True)
        observation, rewards, starts, _ = env.step(action)
        paid += rewards * running
        running &= ~starts
    assert not running.any()
    return float(paid.mean())


@pytest.mark.parametrize(
    ("memory", "settings"),
    [
        ("lstm", {"hidden_dim": 32}),
        ("frmqn", {"dim": 16}),
        ("smt", {"dim": 16, "heads": 2, "capacity": 8, "poses": False}),
        ("smt-factorized", {"dim": 16, "heads": 2, "capacity": 8, "n_centres": 4, "poses": False}),
        ("sm-pooling", {"dim": 16, "capacity": 8, "poses": False}),
        ("relic", {"layers": 1, "heads": 2, "dim": 16, "mlp_dim": 32, "depth_dropout": 0.0, "max_episode_steps": 9}),
    ],
)
def test_a_memory_brings_the_cue_to_the_end(memory: str, settings: dict[str, Any]) -> None:
    assert returns(memory, **settings) > 0.9


def test_without_memory_it_is_guessed() -> None:
    assert abs(returns("none")) < 0.3
