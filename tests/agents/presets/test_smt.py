"""Preset of the Scene Memory Transformer: its two stages and its homes."""

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
from memenvs.agents.presets.smt import first_stage
from memenvs.exploration.env import Exploration
from memenvs.exploration.task_home import TaskHome
from memenvs.houses.worlds import make_house_world
from tests.exploration.toy_world import ToyWorld


@pytest.mark.slow
def test_the_papers_size_learns_in_both_stages(tmp_path: Path) -> None:
    """Its networks, memory and precision, in smaller images and with few updates."""
    changes = [
        ("env", "memenvs/Search-v0"),
        ("env_kwargs.obs_mode", "frames"),
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
        ("dqn.precision", "bfloat16"),
        ("policy.features_extractor_kwargs.network", "resnet"),
        ("policy.memory_kwargs", {"dim": 128, "heads": 8, "capacity": 500}),
        ("validation_trials", 0),
        ("device", "cpu"),
    ]
    second = with_overrides(find_preset("coverage-laptop"), [*changes, ("encoder_from", str(tmp_path / "first"))])
    with RunDirectory(tmp_path / "first", first_stage(second)) as run:
        train_run(run, quiet=True)
    with RunDirectory(tmp_path / "second", second) as run:
        model = train_run(run, quiet=True)
    assert isinstance(model, EpisodeDQN) and model._n_updates == 2
    begun = EpisodeDQN.load(tmp_path / "first" / CHECKPOINT, device="cpu").policy.state_dict()
    own = model.policy.state_dict()
    resnet = [name for name in own if name.startswith("features_extractor.")]
    assert resnet and all(torch.equal(own[name], begun[name]) for name in resnet)  # frozen


def test_the_first_stage_differs_in_what_it_learns_alone() -> None:
    second = find_preset("coverage-laptop")
    first = first_stage(second)
    own = {"single_steps": True, "freeze_features": True, "freeze_previous_action": True}
    assert {**first.policy, **own} == {**second.policy, **own} and first.encoder_from is None
    assert first.policy.keys() ^ second.policy.keys() == own.keys()
    updates = {"learner": replace(first.learner, updates_per_collect=second.learner.updates_per_collect)}
    assert replace(first, policy=second.policy, encoder_from=second.encoder_from, **updates) == second


def test_training_validation_and_evaluation_are_in_different_homes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evaluation is played in episodes of one step, with an empty room for each home."""
    short = [("env_kwargs.max_episode_steps", 1), ("eval_steps", 1)]
    config = with_overrides(find_preset("coverage-laptop"), short)
    parts = [config.env_kwargs | changes for changes in ({}, config.validation_kwargs, config.eval_kwargs)]
    assert [part["split"] for part in parts] == ["train", "validation", "test"]
    worlds = [make_house_world(part["world"], split=part["split"]) for part in parts]
    homes = [world._seeds for world in worlds]  # type: ignore[attr-defined]
    assert len(set().union(*homes)) == sum(map(len, homes)) == 156 + 39 + 46
    room = TaskHome.of(0, ToyWorld().home(0))
    monkeypatch.setattr(Exploration, "_load_home", lambda self, number: room)
    env = evaluation_env(config, config.n_envs, 1)
    results = make_evaluator(config, env).run(RandomPolicy(env.action_space))
    env.close()
    assert np.bincount(results.layouts).tolist() == [10] * 46
