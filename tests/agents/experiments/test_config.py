"""Settings of runs: changes by name, and errors that name the setting."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from memenvs.agents.algorithms.allocator_config import AllocatorConfig
from memenvs.agents.experiments.config import RunConfig, difference, with_overrides
from memenvs.agents.experiments.train import check_config
from memenvs.agents.presets import find_preset

SMALL = find_preset("ci-smoke")


def test_an_evaluation_sees_the_end_of_an_episode():
    """Longer instructions need longer evaluation trials."""
    changes = [("env_kwargs.legs", 2), ("env_kwargs.max_tokens", 240)]
    with pytest.raises(ValueError, match="eval_steps must be at least the 30 steps that an episode may take, got 15"):
        check_config(with_overrides(find_preset("vln-laptop"), changes))
    check_config(with_overrides(find_preset("vln-laptop"), [*changes, ("eval_steps", 30)]))
    check_config(with_overrides(SMALL, [("env_kwargs.itinerary", "AB"), ("eval_steps", 1)]))  # played whole


def test_overrides_change_only_what_they_name():
    config = with_overrides(SMALL, [("ppo.n-epochs", 2), ("env_kwargs.size", 6), ("policy.memory_kwargs.layers", 3)])
    assert config.learner == replace(SMALL.learner, n_epochs=2)
    assert config.env_kwargs == {**SMALL.env_kwargs, "size": 6}
    assert config.policy["memory_kwargs"] == {**SMALL.policy["memory_kwargs"], "layers": 3}
    assert config.seed == SMALL.seed
    parts = [("ppo.allocator.strategies", ["fifo", "mvfo"]), ("ppo.allocator.epsilon_steps", 7)]
    config = with_overrides(SMALL, parts)
    assert config.learner.allocator == AllocatorConfig(strategies=("fifo", "mvfo"), epsilon_steps=7)
    again = RunConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert again == config and difference(again, config) is None
    assert with_overrides(config, [("ppo.allocator.epsilon_steps", 8)]).learner.allocator.strategies == ("fifo", "mvfo")
    assert with_overrides(config, [("ppo.allocator", None)]) == SMALL


def test_overrides_are_checked_together():
    """The range of one may depend on another, in any order."""
    config = find_preset("coverage-laptop")
    pairs = [("dqn.capacity", 16), ("dqn.batch_size", 4), ("n_envs", 4)]
    for order in (pairs, pairs[::-1]):
        changed = with_overrides(config, order).learner
        assert (changed.capacity, changed.batch_size) == (16, 4)
    with pytest.raises(ValueError, match=r"batch_size must be at most capacity \(8\), got 16"):
        with_overrides(config, [("dqn.capacity", 8)])
    both = with_overrides(SMALL, [("env_kwargs", {"size": 3}), ("env_kwargs.max_episode_steps", 5)])
    assert both.env_kwargs == {"size": 3, "max_episode_steps": 5}


def test_wrong_overrides_are_named():
    for name, value, message in (
        ("ppo.n_epoch", 2, r"unknown setting 'ppo.n_epoch'; did you mean 'ppo.n_epochs'"),
        ("seeds", 2, "unknown setting 'seeds'"),
        ("n_envs", 0, "n_envs must be at least 1, got 0"),
        ("score.mean", 1, "unknown setting 'score.mean'; only env_kwargs, .*, ppo, .* have parts"),
        ("n-epochs", 2, r"unknown setting 'n-epochs'; did you mean 'ppo.n_epochs'\?"),
        ("memory", "lstm", r"unknown setting 'memory'; did you mean 'policy.memory'\?"),
        ("memory.layers", 2, r"unknown setting 'memory.layers'; did you mean 'policy.memory_kwargs.layers'\?"),
        ("size", 2, r"unknown setting 'size'; did you mean 'env_kwargs.size'\?"),
        ("ppo", 1, "unknown setting 'ppo'"),
        ("learner", 1, "unknown setting 'learner'"),
        ("ppo.allocator.epsilon", 0.5, "unknown setting 'epsilon' of allocator; did you mean 'epsilon_start'"),
        ("ppo.gamma.x", 0.5, "unknown setting 'ppo.gamma.x'; ppo.gamma has no parts, it is 0.99"),
        ("dqn.gamma", 0.5, "'dqn.gamma' cannot be set: this run learns with ppo"),
    ):
        with pytest.raises(ValueError, match=message):
            with_overrides(SMALL, [(name, value)])
    for name, value, message in (
        ("n_envs", "many", "n_envs must be a whole number, got 'many'"),
        ("total_steps", 1e6, "total_steps must be a whole number, got 1000000.0"),
        ("env_kwargs", "x", "env_kwargs must be a dict, got 'x'"),
        ("eval_all_layouts", 1, "eval_all_layouts must be true or false, got 1"),
    ):
        with pytest.raises(TypeError, match=message):
            with_overrides(SMALL, [(name, value)])
