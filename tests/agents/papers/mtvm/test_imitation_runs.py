"""Runs of `ImitationA2C` in the house of `tests/vln/toys.py`: resumed, evaluated, refused."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from memenvs.agents import make_vec_env
from memenvs.agents.algorithms import checkpoint
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_run, trained_policy
from memenvs.agents.experiments.train import train_run
from memenvs.agents.papers.mtvm import config as config_module
from memenvs.agents.papers.mtvm.config import ImitationConfig
from memenvs.agents.papers.mtvm.learner import ImitationA2C
from tests.agents.learners import weights
from tests.agents.papers.mtvm.learners import DRY, ENV, SIZES, config, kwargs
from tests.damage import members_of, zipped


def test_another_environment_than_was_learned_in_is_refused(make_learner, toy_data: Path, tmp_path: Path) -> None:
    model = make_learner(2)
    model.policy.check_env(make_vec_env(ENV, 1, **kwargs(toy_data, split="val_seen")))
    others = {
        r"observation 'instruction' must be of shape \(8,\), as it was learned with, got \(9,\)": {"max_tokens": 9},
        r"observation 'candidates' must be of shape \(17, 132\), .* got \(17, 133\)": {"feature_size": 5},
        r"vocabulary must be the one that was learned with, [0-9a-f]{16}, got [0-9a-f]{16}": {
            "world": "procedural",
            "data_dir": None,
        },
    }
    model.save(tmp_path / "model")
    loaded = ImitationA2C.load(tmp_path / "model", device="cpu")
    for message, changes in others.items():
        other = make_vec_env(ENV, 2, **kwargs(toy_data, **changes))
        for policy in (model.policy, loaded.policy):
            with pytest.raises(ValueError, match=message):
                policy.check_env(other)
    other = make_vec_env(ENV, 2, **kwargs(toy_data))
    tokenizer = other.unwrapped.env.task.tokenizer  # as many words, in another order
    tokenizer.tokens = tokenizer.tokens[:-2] + tokenizer.tokens[:-3:-1]
    with pytest.raises(ValueError, match="model: vocabulary must be the one"):
        ImitationA2C.load(tmp_path / "model", other, device="cpu")
    fresh = ImitationA2C("MTVMPolicy", other, policy_kwargs={"size": "tiny", "network": SIZES | DRY}, device="cpu")
    with pytest.raises(ValueError, match=r"model: vocabulary must be [0-9a-f]{16}, got [0-9a-f]{16}"):
        checkpoint.load_policy(fresh.policy, tmp_path / "model")


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_bits(tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With dropout, dropped words, drawn sizes of the bank, actions and episodes."""
    settings = config(toy_data, learner=ImitationConfig(learning_rate=1e-3, imitation_updates=2, random_bank=2))
    with RunDirectory(tmp_path / "whole", settings) as run:
        whole = train_run(run, quiet=True)
    train, calls = ImitationA2C.train, []

    def killed(self: ImitationA2C) -> None:
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        train(self)

    with RunDirectory(tmp_path / "killed", settings) as run:
        monkeypatch.setattr(ImitationA2C, "train", killed)
        with pytest.raises(KeyboardInterrupt):
            train_run(run, quiet=True)
        monkeypatch.setattr(ImitationA2C, "train", train)
        resumed = train_run(run, quiet=True)
        metrics = run.metrics()
    with RunDirectory(tmp_path / "whole") as run:  # one log at the end, of means over all updates
        expected = run.metrics()
    assert len(expected["train/imitation_error"]) == 1
    for name in expected:
        assert metrics[name] == expected[name] or name.startswith("time/"), name
    assert resumed.num_timesteps == whole.num_timesteps == 6 and resumed.decisions == whole.decisions
    files = [(tmp_path / name / "checkpoint.zip").read_bytes() for name in ("whole", "killed")]
    assert files[0] == files[1]


def test_a_size_whose_meaning_has_changed(tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of two heads and of four have the same shapes."""
    policy = {"size": "tiny", "network": {"dim": 16}}
    with RunDirectory(tmp_path / "run", config(toy_data, total_steps=1, policy=policy)) as run:
        before = train_run(run, quiet=True).policy
        monkeypatch.setitem(config_module.SIZES, "tiny", config_module.SIZES["tiny"] | {"heads": 4})
        assert (
            ImitationA2C.load(run.path / "checkpoint.zip", device="cpu").policy.network.config == before.network.config
        )
        with pytest.raises(ValueError, match=r"checkpoint\.zip: is of another run: network\.heads must be 4, got 2"):
            train_run(run, quiet=True)
        with pytest.raises(
            ValueError,
            match=r"size must be None where network has every .* got 'tiny'; policy_kwargs changes the saved size",
        ):
            ImitationA2C.load(run.path / "checkpoint.zip", device="cpu", policy_kwargs={"size": "tiny"})
        with pytest.raises(
            ValueError, match="size must be None where network has every setting, and only there, got None"
        ):
            config_module.mtvm_config(None, heads=2)


def test_evaluation_is_greedy_and_by_the_environments_metrics(tmp_path: Path, toy_data: Path) -> None:
    with RunDirectory(tmp_path / "run", config(toy_data, total_steps=1)) as run:
        train_run(run, quiet=True)
        first, second = (evaluate_run(run, seed=seed) for seed in (1, 2))
        policy = trained_policy(run, 1)
    names = {"ne", "sr", "osr", "spl", "tl", "ndtw", "sdtw", "cls"}
    assert names <= set(first.metrics) and first.layouts.tolist() == [0, 1, 2]
    for name in names:
        assert np.array_equal(first.metrics[name], second.metrics[name])
    with pytest.raises(ValueError, match="cannot take over actions that others chose"):
        policy.update_previous_action({}, np.zeros(1, np.int64))


def test_it_starts_with_the_weights_of_another_learner(make_learner, tmp_path: Path) -> None:
    first, second = make_learner(2, learning_rate=1e-2), make_learner(2, network={"bank": 0})
    first.learn(2)
    first.save(tmp_path / "first.zip")
    assert not torch.equal(weights(first), weights(second))
    second.load_features(tmp_path / "first.zip")
    assert torch.equal(weights(first), weights(second))
    assert second.num_timesteps == 0 and second.policy.network.config.bank == 0
    with pytest.raises(ValueError, match=r"first.zip: weights of another policy: .*network\.critic"):
        make_learner(2, network={"critic_dim": 5}).load_features(tmp_path / "first.zip")
    with pytest.raises(FileNotFoundError, match=r"none.zip"):
        second.load_features(tmp_path / "none.zip")


def test_means_of_a_log_that_are_none_are_refused(make_learner, tmp_path: Path) -> None:
    model = make_learner(1)
    model.learn(1)
    model.save(tmp_path / "model.zip")
    members = members_of((tmp_path / "model.zip").read_bytes())
    good = json.dumps(model._process_state()["log_means"])
    assert good.encode() in members["state.json"]
    for bad in ("[]", '{"loss": 1}', '{"loss": ["x", 1]}'):
        state = members["state.json"].replace(good.encode(), bad.encode())
        (tmp_path / "bad.zip").write_bytes(zipped(members | {"state.json": state}))
        with pytest.raises(ValueError, match=r"log_means must be name -> \[mean, count\]"):
            ImitationA2C.load(tmp_path / "bad.zip", env=model.env, device="cpu")
