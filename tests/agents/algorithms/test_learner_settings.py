"""Bounds of the settings of the learners, with values just beyond."""

from __future__ import annotations

import math
from typing import Any

import pytest

from memenvs.agents import DQNConfig, PPOConfig
from memenvs.agents.algorithms.supervised_config import SupervisedConfig

Config = type[PPOConfig] | type[DQNConfig] | type[SupervisedConfig]
COUNTS: dict[Config, tuple[str, ...]] = {
    PPOConfig: ("n_updates", "n_epochs", "batch_size", "micro_batch_tokens", "prefix_window", "cloning_steps"),
    DQNConfig: ("capacity", "episode_steps", "updates_per_collect", "batch_size", "decisions", "n_step"),
    SupervisedConfig: ("batch_size", "validation_episodes", "checkpoint_steps"),
}
POSITIVE: dict[Config, tuple[str, ...]] = {
    PPOConfig: ("clip_range", "clip_range_vf", "max_grad_norm", "learning_rate", "final_learning_rate"),
    DQNConfig: ("learning_rate", "reward_scale", "temperature", "max_grad_norm"),
    SupervisedConfig: ("learning_rate", "max_grad_norm"),
}
#: Settings with an interval: the lowest and the highest value, and one beyond each.
INTERVALS: list[tuple[Config, str, tuple[float, ...], tuple[float, ...]]] = [
    *((config, name, (1,), (0, -1)) for config, names in COUNTS.items() for name in names),
    *((config, name, (1e-9, 7.5), (0.0, -0.5)) for config, names in POSITIVE.items() for name in names),
    *((PPOConfig, name, (0.0, 1.0), (-0.1, 1.1)) for name in ("gamma", "gae_lambda")),
    *((DQNConfig, name, (0.0, 1.0), (-0.1, 1.1)) for name in ("gamma", "final_epsilon")),
    *((DQNConfig, name, (1e-9, 1.0), (0.0, 1.1)) for name in ("target_rate", "exploration")),
    (PPOConfig, "n_steps", (2,), (1, 0)),
    (PPOConfig, "warmup_steps", (0, 1), (-1,)),
    (SupervisedConfig, "warmup_steps", (0, 1), (-1,)),
    (SupervisedConfig, "final_learning_rate", (0.0, 1.0), (-0.1,)),
]


def test_bounds() -> None:
    fitting: dict[Config, dict[str, Any]] = {PPOConfig: {"n_updates": 1}, DQNConfig: {"batch_size": 1}}
    for config, name, allowed, refused in INTERVALS:
        for value in allowed:
            assert getattr(config(**fitting.get(config, {}) | {name: value}), name) == value
        for value in refused:
            with pytest.raises(ValueError, match=f"^{name} must be .*, got {value}$"):
                config(**fitting.get(config, {}) | {name: value})


def test_settings_that_depend_on_each_other() -> None:
    for choice in ("prefix_grad", "precision"):
        with pytest.raises(ValueError, match=f"unknown {choice} 'some'; choose from"):
            PPOConfig(**{choice: "some"})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="min_reward must be finite, got -inf"):
        DQNConfig(min_reward=-math.inf)
    assert DQNConfig().lowest_reward == -math.inf and DQNConfig(min_reward=-2.5).lowest_reward == -2.5
    assert DQNConfig(capacity=5, batch_size=5).batch_size == 5
    assert PPOConfig(n_steps=12, n_updates=12).segment == 1
    for change in ({"bootstrap_truncated": True, "shuffle_episodes": False}, {"n_updates": 2}):
        with pytest.raises(ValueError, match="credit_across_episodes must be False"):
            PPOConfig(**{"n_updates": 1, "credit_across_episodes": True, **change})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"n_updates must divide n_steps \(10\), got 3"):
        PPOConfig(n_steps=10, n_updates=3)
    with pytest.raises(ValueError, match=r"batch_size must be at most capacity \(1000\), got 1001"):
        DQNConfig(batch_size=1001)
    for fits in ({"n_updates": 1}, {"shuffle_episodes": False}):  # nothing is shuffled
        assert PPOConfig(credit_across_episodes=True, **fits).credit_across_episodes  # type: ignore[arg-type]
