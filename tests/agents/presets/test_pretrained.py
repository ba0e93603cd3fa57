"""Trained agents of the package act well and hold nothing that only training needs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from memenvs.agents.experiments.config import read_config
from memenvs.agents.experiments.evaluate import evaluation_env
from memenvs.agents.experiments.trial_evaluator import TrialEvaluator, TrialResults
from memenvs.agents.presets.pretrained import PRETRAINED, load_pretrained, pretrained_config
from memenvs.cli import main


def test_names_and_sizes() -> None:
    assert list(PRETRAINED) == ["extobjnav-small", "extobjnav-small-pictures"]
    assert all(file.stat().st_size < 1e6 for file in PRETRAINED.values())
    with pytest.raises(ValueError, match=r"unknown pretrained agent 'extobjnav-smal'.*did you mean 'extobjnav-small'"):
        load_pretrained("extobjnav-smal")


def play(name: str, steps: int, count: int) -> TrialResults:
    env = evaluation_env(pretrained_config(name), count, seed=7)
    try:
        return TrialEvaluator(env, steps, count).run(load_pretrained(name, seed=1, device="cpu"))
    finally:
        env.close()


@pytest.mark.parametrize("name", PRETRAINED)
def test_it_becomes_a_run_that_can_be_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    folder = tmp_path / "shipped"
    assert main(["pull", name, "--out", str(folder)]) == 0
    assert read_config(folder) == pretrained_config(name)
    arguments = ["evaluate", str(folder), "--name", "short", "--trials", "2", "--steps", "40", "--json"]
    assert main(arguments) == 0
    assert (folder / "short.json").is_file()
    assert main(["pull", name, "--out", str(folder)]) == 2
    assert "already holds a run" in capsys.readouterr().err


@pytest.mark.parametrize("name", PRETRAINED)
@pytest.mark.slow
def test_it_finds_objects_in_homes_that_it_has_never_seen(name: str) -> None:
    """A random agent succeeds in 5 % of the episodes; those that come with the package in many more."""
    success = play(name, 320, 16).curve("success").mean
    assert len(success) >= 5
    assert success.mean() > 0.45


def test_its_actions_are_drawn_from_the_seed() -> None:
    first, again, other = (load_pretrained("extobjnav-small", seed=seed, device="cpu").generator for seed in (1, 1, 2))
    assert torch.equal(first.get_state(), again.get_state()) and not torch.equal(first.get_state(), other.get_state())
