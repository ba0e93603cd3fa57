"""Settings of the learners: defaults of the papers, and bounds, with values just beyond."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, asdict
from typing import Any

import pytest

from memenvs.agents import DQNConfig, PPOConfig
from memenvs.agents.algorithms.supervised_config import SupervisedConfig

Config = type[PPOConfig] | type[DQNConfig] | type[SupervisedConfig]
DEFAULTS: dict[Config, dict[str, Any]] = {
    PPOConfig: {
        "learning_rate": 2e-4,
        "warmup_steps": 0,
        "final_learning_rate": None,
        "n_steps": 512,
        "n_updates": 4,
        "n_epochs": 4,
        "batch_size": 32,
        "micro_batch_tokens": 32768,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "clip_range": 0.2,
        "clip_range_vf": 0.2,
        "normalize_advantage": False,
        "ent_coef": 0.01,
        "vf_coef": 0.25,
        "max_grad_norm": 0.2,
        "prefix_grad": "full",
        "prefix_window": 256,
        "full_update": True,
        "shuffle_episodes": True,
        "refresh_log_probs": False,
        "bootstrap_truncated": False,
        "credit_across_episodes": False,
        "precision": "float32",
        "reset_each_rollout": None,
        "allocator": None,
        "cloning_steps": None,
    },
    DQNConfig: {
        "learning_rate": 5e-4,
        "capacity": 1000,
        "episode_steps": 500,
        "updates_per_collect": 500,
        "batch_size": 64,
        "decisions": 32,
        "gamma": 0.99,
        "n_step": 3,
        "min_reward": None,
        "reward_scale": 1.0,
        "temperature": 1.0,
        "target_rate": 1e-3,
        "max_grad_norm": 10.0,
        "final_epsilon": 0.05,
        "exploration": 0.2,
        "precision": "float32",
    },
    SupervisedConfig: {
        "batch_size": 32,
        "learning_rate": 2e-4,
        "final_learning_rate": None,
        "warmup_steps": 0,
        "max_grad_norm": 5.0,
        "precision": "float32",
        "validation_episodes": 1000,
        "checkpoint_steps": 500,
    },
}
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


def test_defaults() -> None:
    for config, expected in DEFAULTS.items():
        made = config()
        assert asdict(made) == expected
        with pytest.raises(FrozenInstanceError):
            made.learning_rate = 1.0  # type: ignore[misc]
        with pytest.raises(TypeError, match="positional"):
            config(1.0)  # type: ignore[misc]
    assert PPOConfig().segment == 128
    assert DQNConfig().lowest_reward == -math.inf
    assert DQNConfig(min_reward=-2.5).lowest_reward == -2.5


def test_bounds() -> None:
    fitting: dict[Config, dict[str, Any]] = {PPOConfig: {"n_updates": 1}, DQNConfig: {"batch_size": 1}}
    for config, name, allowed, refused in INTERVALS:
        for value in allowed:
            assert getattr(config(**fitting.get(config, {}) | {name: value}), name) == value
        for value in refused:
            with pytest.raises(ValueError, match=f"^{name} must be .*, got {value}$"):
                config(**fitting.get(config, {}) | {name: value})


def test_settings_that_depend_on_each_other() -> None:
    assert DQNConfig(capacity=5, batch_size=5).batch_size == 5
    assert PPOConfig(n_steps=12, n_updates=12).segment == 1
    for change in ({"bootstrap_truncated": True, "shuffle_episodes": False}, {"n_updates": 2}):
        with pytest.raises(ValueError, match="credit_across_episodes must be False"):
            PPOConfig(**{"n_updates": 1, "credit_across_episodes": True, **change})  # type: ignore[arg-type]
    for fits in ({"n_updates": 1}, {"shuffle_episodes": False}):  # nothing is shuffled
        assert PPOConfig(credit_across_episodes=True, **fits).credit_across_episodes  # type: ignore[arg-type]
