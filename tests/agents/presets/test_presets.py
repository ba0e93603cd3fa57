"""Presets and variants of all families: names, refusals, and settings that can be made."""

from __future__ import annotations

import itertools
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.train import check_config
from memenvs.agents.papers.mtvm.config import ImitationConfig
from memenvs.agents.presets import PRESETS, find_preset, folder_name, preset_descriptions
from memenvs.agents.presets.preset import Preset, Variant
from memenvs.core import TrialVectorEnv
from memenvs.identity import changed_settings
from memenvs.registry import find_environment


def test_names() -> None:
    assert len(PRESETS) <= 40
    assert len(preset_descriptions()) == sum(1 + len(preset.variants) for preset in PRESETS.values())
    assert find_preset("darkroom") == PRESETS["darkroom"].config
    assert folder_name("demo-gap", 3) == "demo-gap-3"
    folders = [folder_name(name, 0) for name in preset_descriptions()]
    assert len(set(folders)) == len(folders)


def test_evaluations_have_the_trials_of_the_published_figures() -> None:
    """They come from as many copies as presets train in; more or fewer are other trials, and so other figures."""
    for name in preset_descriptions():
        config = find_preset(name)
        assert config.eval_envs == config.n_envs, name


def test_variants_of_a_preset_are_different_runs() -> None:
    for name, preset in PRESETS.items():
        variants = {variant: preset.variant(variant) for variant in preset.variants}
        for one, other in itertools.combinations(variants, 2):
            assert variants[one] != variants[other], f"{name}: {one} and {other}"


def test_a_variant_leaves_its_preset_alone() -> None:
    base = RunConfig(policy={"memory_kwargs": {"sink": "kv0"}})
    before = json.dumps(base.to_json())
    preset = Preset("", base, {"kv": Variant("", {"policy.memory_kwargs.sink": "kv"}), "same": Variant("")})
    assert preset.variant("kv").policy == {"memory_kwargs": {"sink": "kv"}}
    assert preset.variant("same") == base
    assert json.dumps(base.to_json()) == before


def test_unknown_names_are_refused_with_the_nearest() -> None:
    for name, nearest in (
        ("darkrom", "darkroom"),
        ("coverage", "coverage-laptop"),
    ):
        with pytest.raises(
            ValueError, match=rf"unknown preset '{name}'; did you mean '{nearest}'( or .*)?\? \("
        ) as error:
            find_preset(name)
        assert len(str(error.value)) < 400
    with pytest.raises(ValueError, match=r"unknown preset '\?{4}'; none of \d+ is similar \(`memenvs presets` lists"):
        find_preset("????")
    with pytest.raises(ValueError, match="preset 'ci-smoke': unknown variant 'k1'; this preset has none"):
        find_preset("ci-smoke:k1")


#: Tasks whose models are calibrated with thousands of pictures, which are drawn first.
DRAWN = ("memenvs/Ballet3D-v0", "memenvs/ColorRecall-v0", "memenvs/ViewRecall-v0")
VARIANTS = [name for name in preset_descriptions() if name not in PRESETS]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([*PRESETS, *VARIANTS[::8]], id="presets, some variants"),
        pytest.param(VARIANTS, id="all variants", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.slow
def test_every_run_can_be_made(names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment, policy and learner of each; those on real graphs where their data is."""
    monkeypatch.chdir(tmp_path)
    for name in names:
        config = find_preset(name)
        assert RunConfig.from_json(json.loads(json.dumps(config.to_json()))) == config, name
        if config.encoder_from is not None:  # a second stage, whose first is not there; each seed has its own
            for seed in (0, 3):
                missing = f"there is none at {config.encoder_from.format(seed=seed)};"
                with pytest.raises(FileNotFoundError, match=re.escape(missing)):
                    check_config(replace(config, seed=seed))
            config = replace(config, encoder_from=None)
            for name_of_setting in ("freeze_features", "freeze_memory"):
                if config.policy.get(name_of_setting):
                    config = with_overrides(config, [(f"policy.{name_of_setting}", False)])
            if config.policy.get("text"):  # it retrieves through a memory that is frozen
                config = with_overrides(config, [("policy.text.retrieval", False)])
        if config.env_kwargs.get("features", "").endswith(".tsv"):  # of images, which are not there
            config = with_overrides(config, [("env_kwargs.features", "none")])
        if config.env in DRAWN and not config.kind.acts:
            overrides = [("policy.initialisation", "release")]
            if config.policy.get("convolutions") == "components":  # which pictures are needed for
                overrides.append(("policy.convolutions", "fixed"))
            config = with_overrides(config, overrides)
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
        ("coverage-laptop", "Roaming-Small-v0"),
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
