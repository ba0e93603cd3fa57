"""Settings of memories and learners: any value works, or an error names the setting."""

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import pytest
import torch

from memenvs.agents import DQNConfig, EpisodeDQN, PartialUpdatePPO, PPOConfig
from memenvs.agents.algorithms.allocator_config import AllocatorConfig
from memenvs.agents.algorithms.supervised_config import SupervisedConfig
from memenvs.agents.memory import MEMORIES, StepInputs, make_memory, memory_spec
from memenvs.agents.papers.emv.config import AnswererConfig, QuestionConfig, T5Sizes, TextConfig
from memenvs.agents.papers.mtvm.config import ImitationConfig, MTVMConfig
from memenvs.agents.papers.sat.config import BalletModelConfig, PictureModelConfig
from memenvs.agents.sizes import check_sizes
from tests.agents.learners import darkroom
from tests.fuzzing import attempt, pairs, single, some, undeclared

SMALL: dict[str, Any] = {
    "dim": 8,
    "hidden_dim": 8,
    "heads": 2,
    "layers": 1,
    "mlp_dim": 8,
    "cells": 4,
    "cell_dim": 4,
    "read_heads": 2,
    "capacity": 12,
    "n_centres": 2,
    "memory_length": 3,
    "max_episode_steps": 8,
}
"""Sizes that keep a case short."""


def inputs(steps: int) -> StepInputs:
    """Inputs of two sequences, with everything that a memory may need."""
    start = torch.zeros(2, steps, dtype=torch.bool)
    start[:, 0] = True
    zeros = torch.zeros(2, steps, dtype=torch.int64)
    return StepInputs(torch.ones(2, steps, 6), start, start, torch.zeros(2, steps, 3), zeros, zeros)


def use_memory(name: str, settings: dict[str, Any]) -> None:
    """Make a memory, act and learn with it."""
    spec = {field.name for field in fields(memory_spec(name).config)}
    memory = make_memory(name, 6, **{key: value for key, value in SMALL.items() if key in spec} | settings)
    with torch.no_grad():
        state = memory.initial_state(2, max_steps=4)
        for _ in range(2):
            _, state = memory.step(inputs(1), state)
    memory(inputs(3))[0].sum().backward() if any(True for _ in memory.parameters()) else memory(inputs(3))


def use_learner(learner: type, base: dict[str, Any], settings: dict[str, Any]) -> None:
    """Make a learner with its buffer."""
    policy = {"memory": "none"}
    model = learner("MemoryPolicy", darkroom(2), policy_kwargs=policy, device="cpu", seed=0, **base | settings)
    if isinstance(model, EpisodeDQN):
        assert model.replay.nbytes > 0  # allocated on first use


NETWORKS = (MTVMConfig, BalletModelConfig, PictureModelConfig, AnswererConfig)
CONFIGS: dict[str, tuple[type, Callable[[dict[str, Any]], None]]] = {
    **{name: (memory_spec(name).config, functools.partial(use_memory, name)) for name in MEMORIES},
    "PPO": (PPOConfig, functools.partial(use_learner, PartialUpdatePPO, {"n_steps": 8, "n_updates": 2})),
    "DQN": (
        DQNConfig,
        functools.partial(use_learner, EpisodeDQN, {"capacity": 4, "batch_size": 2, "episode_steps": 8}),
    ),
    **{
        config.__name__: (config, lambda settings, config=config: config(**settings))
        for config in (SupervisedConfig, ImitationConfig, QuestionConfig, AllocatorConfig, *NETWORKS)
    },
}


def failures(name: str, cases: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Try settings; yield what neither worked nor was refused by name."""
    _, use = CONFIGS[name]
    for settings in cases:
        yield from attempt(f"{name} with {settings}", settings, functools.partial(use, settings))


@pytest.mark.parametrize(
    "is_whole", [pytest.param(False, marks=pytest.mark.slow), pytest.param(True, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("name", CONFIGS)
def test_settings(name: str, is_whole: bool) -> None:
    config = CONFIGS[name][0]
    wrong = list(failures(name, [*single(config), *pairs(config, 500)] if is_whole else some(config, 40)))
    assert not wrong, "\n".join(wrong)


def test_types_and_ranges_are_those_of_the_descriptions() -> None:
    configs = {config for config, _ in CONFIGS.values()} | {T5Sizes, TextConfig}
    assert [line for config in configs for line in undeclared(config)] == []


def test_settings_of_learners_that_depend_on_each_other() -> None:
    with pytest.raises(ValueError, match="min_reward must be finite, got -inf"):
        DQNConfig(min_reward=-math.inf)
    assert DQNConfig().lowest_reward == -math.inf and DQNConfig(min_reward=-2.5).lowest_reward == -2.5
    assert DQNConfig(capacity=5, batch_size=5).batch_size == 5
    assert PPOConfig(n_steps=12, n_updates=12).segment == 1
    assert PPOConfig(gamma=1, clip_range_vf=None) == PPOConfig(gamma=1.0, clip_range_vf=None)
    for change in ({"bootstrap_truncated": True, "shuffle_episodes": False}, {"n_updates": 2}):
        with pytest.raises(ValueError, match="credit_across_episodes must be False"):
            PPOConfig(**{"n_updates": 1, "credit_across_episodes": True, **change})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="normalize_advantage must be true, false or 'rollout', got 'batch'"):
        PPOConfig(normalize_advantage="batch")
    with pytest.raises(ValueError, match=r"n_updates must divide n_steps \(10\), got 3"):
        PPOConfig(n_steps=10, n_updates=3)
    with pytest.raises(ValueError, match=r"batch_size must be at most capacity \(1000\), got 1001"):
        DQNConfig(batch_size=1001)
    for config, name in ((PPOConfig, "n_updates"), (DQNConfig, "batch_size")):
        with pytest.raises(ValueError, match=f"{name} must be .*at least 1, got 0"):
            config(**{name: 0})  # type: ignore[arg-type]
    for fits in ({"n_updates": 1}, {"shuffle_episodes": False}):  # nothing is shuffled
        assert PPOConfig(credit_across_episodes=True, **fits).credit_across_episodes  # type: ignore[arg-type]


@dataclass(frozen=True)
class Sizes:
    layers: int = 1
    capacity: int | None = None
    name: str = "x"


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        (Sizes(0), ValueError, r"^layers must be an integer of at least 1, got 0$"),
        (Sizes(1001), ValueError, r"^layers must be at most 1000, got 1001$"),
        (Sizes(1, 0), ValueError, r"^capacity must be an integer of at least 1 or None, got 0$"),
        (Sizes(None), TypeError, "layers"),
        (Sizes(name=3), TypeError, "name"),
    ],
)
def test_types_and_ranges_of_declared_sizes(sizes: Sizes, error: type[Exception], message: str) -> None:
    check_sizes(Sizes(1000, 2**31 - 1))
    with pytest.raises(error, match=message):
        check_sizes(sizes)


def test_sizes_beyond_the_largest_are_named() -> None:
    """Before, a million layers were made one after the other, and a million units filled the memory."""
    for config in (*NETWORKS, T5Sizes):
        integers = [field.name for field in fields(config) if type(field.default) is int]
        sizes = [name for name in integers if not name.endswith("steps")]
        assert len(sizes) >= 5
        for name in sizes:
            with pytest.raises(ValueError, match=f"^{name} must be "):
                config(**{name: 2**20})
    with pytest.raises(ValueError, match=r"rope_base must fit .* 64-bit integer, got an integer of 100 bits"):
        make_memory("relic", 6, rope_base=10**30)
    with pytest.raises(ValueError, match=r"n_steps must fit .* 64-bit integer, got an integer of 64 bits"):
        PPOConfig(n_steps=2**63)
