"""Agents that learn: small runs on one core, each in less than half a minute."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memenvs.agents import PartialUpdatePPO, make_vec_env
from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.prediction_experiment import evaluate_predictions
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset

pytestmark = pytest.mark.learning

SIZE, HORIZON, EPISODES = 4, 16, 4


def darkroom(n: int, seed: int) -> Any:
    return make_vec_env(
        "memenvs/Darkroom-v0", n, seed=seed, size=SIZE, max_episode_steps=HORIZON, trial_episodes=EPISODES, split="all"
    )


def in_context(memory: str, memory_kwargs: dict[str, Any], total: int) -> np.ndarray:
    """Mean return in each episode of a trial, after training; 512 trials."""
    policy = {"memory": memory, "memory_kwargs": memory_kwargs, "features_extractor_kwargs": {"scaled": ["position"]}}
    sizes = {"n_steps": HORIZON * EPISODES, "n_updates": 1, "batch_size": 16, "learning_rate": 2e-3}
    model = PartialUpdatePPO("MemoryPolicy", darkroom(64, 0), **sizes, policy_kwargs=policy, seed=0, device="cpu")
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


def test_ballet_is_learned(tmp_path: Path) -> None:
    """Within a twentieth of the batches of the preset."""
    config = with_overrides(find_preset("room-ballet"), [("total_steps", 250), ("supervised.warmup_steps", 50)])
    with RunDirectory(tmp_path / "run", config) as run:
        train_run(run, quiet=True)
        result = evaluate_predictions(run, episodes=200)
    accuracy, best = (result[who]["metrics"]["accuracy"]["mean"] for who in ("agent", "ideal"))
    assert accuracy > 0.3  # a guess is right in 1 of 8
    assert accuracy < best + 0.02
