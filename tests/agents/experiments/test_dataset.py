"""Datasets of trained agents: the bits of what the agent saw and did."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import EVALUATION_SEED, trained_policy
from memenvs.agents.presets import find_preset
from memenvs.cli import main
from tests.agents.experiments.test_video import make_run

minari = pytest.importorskip("minari", reason="needs minari: pip install 'memenvs[minari]'")


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> dict:
    assert main(["dataset", *argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_the_agent_acts_on_what_is_recorded(tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Trials of 40 steps: episodes of 16, 16 and 8 steps. The agent sees its cell, which is not recorded."""
    config = replace(find_preset("ci-smoke"), total_steps=8, eval_steps=40)
    config = replace(config, env_kwargs={**config.env_kwargs, "place": True})
    folder = make_run(tmp_path / "run", config)
    result = call(capsys, str(folder), "--episodes", "4", "--seed", "5", "--out", "dark/once-v0")
    assert (result["episodes"], result["trials"], result["steps"]) == (6, 2, 80)
    dataset = minari.load_dataset("dark/once-v0")
    assert [len(episode) for episode in dataset] == [16, 16, 8] * 2
    assert set(dataset.observation_space) == {"position", "previous_reward"}
    with RunDirectory(folder) as run:
        policy = trained_policy(run, 0)
    for index, episode in enumerate(dataset):
        if index % 3 == 0:
            state = None
            policy.generator.manual_seed(int(np.random.default_rng([5, index // 3]).integers(2**62)))
        assert set(episode.infos["seed"].tolist()) == {EVALUATION_SEED + 5}
        assert episode.infos["trial_start"].tolist() == [index % 3 == 0] + [False] * len(episode)
        for t, action in enumerate(episode.actions):
            observation = {key: value[t][None] for key, value in episode.observations.items()}
            observation["place"] = episode.infos["place"][t][None]
            start = np.array([t == 0])
            actions, state = policy.predict(observation, state, start, trial_start=start & (index % 3 == 0))
            assert actions.tolist() == [action]
    card = root / "dark/once-v0/card.json"
    call(capsys, str(folder), "--rebuild", str(card), "--out", "dark/again-v0")
    call(capsys, str(folder), "--episodes", "3", "--seed", "5", "--out", "dark/twice-v0")
    call(capsys, str(folder), "--episodes", "1", "--seed", "5", "--out", "dark/twice-v0", "--append")
    for name in ("again", "twice"):
        text = (root / f"dark/{name}-v0/card.json").read_text()
        assert json.loads(text.replace(f"dark/{name}-v0", "dark/once-v0")) == json.loads(card.read_text())
    other = make_run(tmp_path / "other", replace(config, seed=1))
    scripted = root / "scripted.json"
    scripted.write_text(card.read_text().replace('"agent"', '"oracle"'))
    for argv, message in (
        ([str(other), "--rebuild", str(card)], "policy.checkpoint was"),
        ([str(folder), "--rebuild", str(card), "--seed", "5"], "argument --seed: must not be given with --rebuild"),
        ([str(folder), "--rebuild", str(scripted)], "use memenvs dataset --rebuild CARD"),
        ([str(folder), "--checkpoint", "none.zip"], "none.zip"),
    ):
        assert main(["dataset", *argv, "--out", "dark/new-v0"]) == 2
        assert message in capsys.readouterr().err
    assert not (root / "dark/new-v0").exists()


def test_runs_in_other_environments_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    preset = find_preset("ci-smoke")
    long = {**preset.policy, "memory_kwargs": {**preset.policy["memory_kwargs"], "max_episode_steps": 500}}
    config = replace(preset, env="CartPole-v1", env_kwargs={}, eval_kwargs={}, policy=long, total_steps=8)
    folder = make_run(tmp_path / "run", replace(config, score="return"))
    assert main(["dataset", str(folder), "--out", "pole/new-v0"]) == 2
    assert "a dataset needs an id whose BatchTask can be imported, got CartPole-v1" in capsys.readouterr().err
