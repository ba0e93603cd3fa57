"""Named test sets in the evaluation of agents."""

import json
from pathlib import Path

import numpy as np
import pytest

from memenvs.agents import make_vec_env
from memenvs.agents.experiments.play import OraclePolicy, RandomPolicy
from memenvs.agents.experiments.trial_evaluator import TrialEvaluator, TrialResults
from memenvs.certificates.playing import OraclePlayer, play_scores
from memenvs.certificates.test_sets import find_test_set
from memenvs.cli import main
from memenvs.core import TrialVectorEnv
from memenvs.registry import find_environment

GAP = "memenvs/Darkroom-Gap-v0"


def play(num_envs: int, seed: int) -> TrialResults:
    env = make_vec_env(GAP, num_envs, seed=seed, split="test")
    return TrialEvaluator(env, test_set="v0").run(OraclePolicy(env))  # type: ignore[arg-type]


def test_the_same_trials_for_everyone() -> None:
    first, second = play(25, 0), play(64, 9)  # 64 do not divide 200
    assert first.metrics["return"].shape == (200, 10)
    for name, values in first.metrics.items():
        np.testing.assert_array_equal(values, second.metrics[name])
    assert first.layouts.tolist() == second.layouts.tolist() and len(set(first.layouts)) == 5
    spec = find_environment(GAP)
    trials = find_test_set(GAP)
    env = TrialVectorEnv(spec.task, 20, autoreset_mode="Disabled", **trials.settings)  # type: ignore[arg-type]
    certified = play_scores(env, OraclePlayer(env), trials.seeds, "return").scores
    np.testing.assert_allclose(first.metrics["return"][:, 1:].mean(1), certified)
    assert first.to_json()["test_set"] == json.loads(json.dumps(trials.to_json()))


def test_what_is_refused() -> None:
    env = make_vec_env(GAP, 2, split="test")
    for arguments, message in (
        ({"test_set": "v1"}, r"unknown test_set 'v1' of memenvs/Darkroom-(Gap-)?v0; choose from \['v0'\]"),
        ({"test_set": "v0", "n_steps": 9}, "n_steps must be None with a test_set"),
        ({"test_set": "v0", "layouts": [1]}, "layouts must be None with a test_set"),
        ({"test_set": find_test_set("FourBoxes-v0")}, "test_set 'v0' is of memenvs/FourBoxes-v0, got an environment"),
        ({"test_set": find_test_set("Darkroom-v0")}, "of memenvs/Darkroom-v0 has gap=0, got an environment with 20"),
        ({}, "n_steps must be an integer of at least 1, got None"),
    ):
        with pytest.raises(ValueError, match=message):
            TrialEvaluator(env, **arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="test_set needs an environment of memenvs, got DummyVecEnv"):
        TrialEvaluator(make_vec_env("CartPole-v1", 1), test_set="v0")
    train = make_vec_env(GAP, 2)
    with pytest.raises(ValueError, match="has split='test', got an environment with 'train'"):
        TrialEvaluator(train, test_set="v0").run(RandomPolicy(train.action_space))


@pytest.mark.slow
def test_a_run_is_evaluated_on_a_test_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It keeps what it observes, and nothing else of its own settings."""
    folder, observed = tmp_path / "run", {"obs": "one_hot", "place": True}
    small = ["--total_steps", "1024", "--eval_steps", "200", "--no-evaluate", "--json", "--out", str(folder)]
    given = json.dumps(observed | {"fruit_reward": 0.5, "phases": [2, 10, 9]})
    settings = ["--env", "memenvs/VisualMatch-Led-v0", "--env_kwargs", given, "--eval_kwargs", "{}"]
    assert main(["train", "ci-smoke", *small, *settings]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(folder), "--test_set", "v0"]) == 0
    printed, trials = capsys.readouterr(), find_test_set("VisualMatch-Led-v0")
    replaced = "phases=(2, 10, 9) by (4, 80, 16), fruit_reward=0.5 by 0.01"
    assert f"test set v0 replaces settings of the run: {replaced}\n" in printed.err
    assert f"test set v0: {trials.hash}" in printed.out and f"written: {folder / 'test_set_v0'}.json" in printed.out
    data = json.loads((folder / "test_set_v0.json").read_text())
    assert {"agent", "random", "oracle"} <= set(data)
    assert {scores["trials"] for scores in data.values()} == {200}
    assert data["agent"]["test_set"]["hash"] == trials.hash and data["agent"]["observed"] == observed
    assert main(["report", str(folder)]) == 0
    report = (folder / "report.html").read_text()
    assert trials.hash in report and "v0, observed with obs=&#x27;one_hot&#x27;, place=True" in report
    capsys.readouterr()
    for extra, message in (
        (["--test_set", "v2"], "unknown test_set 'v2' of memenvs/VisualMatch-Led-v0"),
        (["--test_set", "v0", "--trials", "3"], "--test_set has its own trials"),
        (["--test_set", "v0", "--name", "evaluation"], "evaluation.json is for the run's own trials"),
        (["--test_set", "v0", "--name", "x", "--eval_kwargs.gap", "3"], "--eval_kwargs.gap: test set v0 of memenvs/"),
    ):
        assert main(["evaluate", str(folder), *extra]) == 2
        assert message in capsys.readouterr().err


def test_a_model_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gru.zip"
    file.touch()
    assert main(["evaluate", str(file)]) == 2
    assert "is a file, not the folder of a run; memenvs.agents.evaluate(ID, model) scores" in capsys.readouterr().err
