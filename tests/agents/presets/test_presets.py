"""Presets of all families: names, refusals, and settings that can be made."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.train import check_config
from memenvs.agents.papers.mtvm.config import ImitationConfig
from memenvs.agents.presets import PRESETS, find_preset
from memenvs.core import TrialVectorEnv
from memenvs.identity import changed_settings
from memenvs.registry import find_environment


def test_evaluations_have_the_trials_of_the_published_figures() -> None:
    """They come from as many copies as presets train in; more or fewer are other trials, and so other figures."""
    for name, preset in PRESETS.items():
        config = preset.config
        assert config.eval_envs == config.n_envs, name


def test_unknown_names_are_refused_with_the_nearest() -> None:
    for name, nearest in (("darkrom", "darkroom"), ("coverage", "coverage-laptop")):
        with pytest.raises(
            ValueError, match=rf"unknown preset '{name}'; did you mean '{nearest}'\? .*\(`memenvs presets`"
        ):
            find_preset(name)
    with pytest.raises(ValueError, match=r"unknown preset '\?{4}'; choose from \['demo', .* \(`memenvs presets` lists"):
        find_preset("????")


@pytest.mark.slow
def test_every_run_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment, policy and learner of each; those on real graphs where their data is."""
    monkeypatch.chdir(tmp_path)
    for name, preset in PRESETS.items():
        config = preset.config
        assert RunConfig.from_json(json.loads(json.dumps(config.to_json()))) == config, name
        if config.encoder_from is not None:  # a second stage, whose first is not there; each seed has its own
            for seed in (0, 3):
                missing = f"there is none at {config.encoder_from.format(seed=seed)};"
                with pytest.raises(FileNotFoundError, match=re.escape(missing)):
                    check_config(replace(config, seed=seed))
            config = with_overrides(config, [("encoder_from", None), ("policy.freeze_features", False)])
        if config.env_kwargs.get("features", "").endswith(".tsv"):  # of images, which are not there
            config = with_overrides(config, [("env_kwargs.features", "none")])
        try:
            check_config(config)
        except FileNotFoundError:
            if config.env_kwargs.get("world") != "mp3d":  # of the real graphs not every file is everywhere
                raise
    assert not os.listdir(tmp_path)


def test_mtvm_as_published() -> None:
    paper = find_preset("vln-r2r-paper")
    assert paper.learner == ImitationConfig()
    assert (paper.env_kwargs["feature_size"], paper.eval_trials) == (2048, 2349)


@pytest.mark.parametrize(
    ("preset", "name"),
    [
        ("extobjnav-small", "ExtObjNav-Small-v0"),
        ("coverage-laptop", "Coverage-Small-v0"),
        ("coverage-laptop", "Search-Small-v0"),
    ],
)
def test_small_ids_are_what_presets_train_on(preset: str, name: str) -> None:
    """`coverage-laptop` is for Roaming and Search too."""
    config, spec = find_preset(preset), find_environment(name)
    full = find_environment(name.replace("-Small", ""))
    assert preset == "coverage-laptop" or full.id == config.env
    env = TrialVectorEnv(spec.task, 1, **{**full.defaults, **config.env_kwargs})
    assert not changed_settings(env, spec.defaults, free=("split", "trial_steps"))
