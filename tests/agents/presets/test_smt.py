"""Preset of the Scene Memory Transformer: its two stages and its homes."""

from dataclasses import replace

import numpy as np
import pytest

from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.evaluate import evaluation_env, make_evaluator
from memenvs.agents.experiments.play import RandomPolicy
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.smt import first_stage
from memenvs.exploration.env import Exploration
from memenvs.exploration.task_home import TaskHome
from memenvs.houses.worlds import make_house_world
from tests.exploration.toy_world import ToyWorld


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
