"""Presets of the Scene Memory Transformer: stages, methods, homes and rates as stated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from memenvs.agents import EpisodeDQN
from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.directory import CHECKPOINT, RunDirectory
from memenvs.agents.experiments.evaluate import evaluation_env, make_evaluator
from memenvs.agents.experiments.play import RandomPolicy
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.smt import METHODS, SMT_PRESETS, TASKS
from memenvs.exploration.env import Exploration
from memenvs.exploration.task_home import TaskHome
from memenvs.houses.worlds import make_house_world
from tests.exploration.toy_world import ToyWorld


@pytest.mark.slow
def test_the_papers_size_learns_in_both_stages(tmp_path: Path) -> None:
    """Its networks, memory and precision, in smaller images and with hardly any updates."""
    short = [
        ("env_kwargs.image_size", [12, 16]),
        ("env_kwargs.max_episode_steps", 6),
        ("eval_steps", 6),
        ("total_steps", 36),
        ("n_envs", 2),
        ("dqn.episode_steps", 6),
        ("dqn.capacity", 4),
        ("dqn.batch_size", 2),
        ("dqn.decisions", 4),
        ("dqn.updates_per_collect", 1),
        ("validation_trials", 0),
        ("device", "cpu"),
        ("threads", 1),
    ]
    first = with_overrides(find_preset("search-paper-like:encoder"), short)
    with RunDirectory(tmp_path / "first", first) as run:
        train_run(run, quiet=True)
    second = with_overrides(find_preset("search-paper-like:smt"), [*short, ("encoder_from", str(tmp_path / "first"))])
    with RunDirectory(tmp_path / "second", second) as run:
        model = train_run(run, quiet=True)
    assert isinstance(model, EpisodeDQN) and model._n_updates == 2
    assert model.config.precision == "bfloat16" and model.policy.memory.config.dim == 128
    begun = EpisodeDQN.load(tmp_path / "first" / CHECKPOINT, device="cpu").policy.state_dict()
    own = model.policy.state_dict()
    resnet = [name for name in own if name.startswith("features_extractor.")]
    assert resnet and all(torch.equal(own[name], begun[name]) for name in resnet)  # frozen


def test_methods_differ_in_their_memory_only() -> None:
    """And pooling with its learning rate; each has the first stage of its task and size."""
    for task in TASKS:
        for size, step_size in (("laptop", 1e-3), ("paper-like", 5e-4)):
            base = find_preset(f"{task}-{size}")
            assert find_preset(f"{task}-{size}:encoder").policy["single_steps"]
            assert base.encoder_from == f"runs/{task}-{size}-encoder-{{seed}}"
            for method in METHODS:
                config = find_preset(f"{task}-{size}:{method}")
                own = ("memory", "memory_kwargs", "net_arch")
                policy = {key: value for key, value in config.policy.items() if key not in own}
                assert policy == {key: value for key, value in base.policy.items() if key not in own}
                assert policy["freeze_features"] and policy["freeze_previous_action"]
                pooling = method == "sm-pooling" and size == "laptop"
                expected = with_overrides(base, [("dqn.learning_rate", 3e-3 if pooling else step_size)])
                assert replace(config, policy={}) == replace(expected, policy={})


def test_training_validation_and_evaluation_are_in_different_homes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one preset the evaluation is played, in episodes of one step, with an empty room for each home."""
    for name, preset in SMT_PRESETS.items():
        config = preset.config
        parts = [config.env_kwargs | changes for changes in ({}, config.validation_kwargs, config.eval_kwargs)]
        assert [part["split"] for part in parts] == ["train", "validation", "test"], name
        worlds = [make_house_world(part["world"], split=part["split"]) for part in parts]
        homes = [world._seeds for world in worlds]  # type: ignore[attr-defined]
        assert len(set().union(*homes)) == sum(map(len, homes)) == 156 + 39 + 46, name
        if "smoke" not in name:  # which only shows that everything runs
            assert (config.eval_all_layouts, config.eval_trials) == (True, 10 * 46), name
    room = TaskHome.of(0, ToyWorld().home(0))
    monkeypatch.setattr(Exploration, "_load_home", lambda self, number: room)
    short = [("env_kwargs.max_episode_steps", 1), ("eval_steps", 1)]
    config = with_overrides(find_preset("coverage-laptop"), short)
    env = evaluation_env(config, config.n_envs, 1)
    results = make_evaluator(config, env).run(RandomPolicy(env.action_space))
    env.close()
    assert np.bincount(results.layouts).tolist() == [10] * 46


def test_collection_rates_of_the_specification() -> None:
    """New episodes every few updates: 32 / 500, 1 / 500 as the paper can be read, 64 / 200.

    If one is played at a time and ends early there are more updates.
    """
    rates = {
        "coverage-paper-like": (32, 500),
        "coverage-paper-like:literal": (1, 500),
        "coverage-paper-like:fast": (64, 200),
    }
    for name, rate in rates.items():
        config = find_preset(name)
        dqn = config.learner
        assert (config.n_envs, dqn.updates_per_collect) == rate
        assert (dqn.capacity, dqn.batch_size, dqn.learning_rate, dqn.episode_steps) == (1000, 64, 5e-4, 500)
        unstated = (dqn.gamma, dqn.n_step, dqn.target_rate, dqn.decisions, dqn.max_grad_norm)
        assert unstated == (0.99, 3, 1e-3, 32, 10.0)
        collections_to_fill = -(-dqn.capacity // config.n_envs)
        updates = (config.total_steps // (config.n_envs * 500) - collections_to_fill) * dqn.updates_per_collect
        assert updates == 200_000
    rewards = {"roaming": (0.25, 1.0, None), "coverage": (0.1, 0.2, None), "search": (0.1, 1.0, -0.2)}
    for task, stated in rewards.items():
        for size, rate in (("laptop", 0.01), ("paper-like", 0.001)):
            dqn = find_preset(f"{task}-{size}").learner
            assert (dqn.temperature, dqn.reward_scale, dqn.min_reward) == stated
            assert dqn.target_rate == rate
