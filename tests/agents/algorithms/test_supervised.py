"""Supervised learning of predictions: resumed runs, several processes, refused settings."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from memenvs.agents.algorithms.supervised import evaluate_model
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import CHECKPOINT, RunDirectory
from memenvs.agents.experiments.prediction_experiment import (
    evaluate_predictions,
    make_run_learner,
    make_run_model,
    trained_model,
)
from memenvs.agents.experiments.train import check_config, train_run
from memenvs.agents.papers.sat.learner import SATPrediction
from memenvs.cli import main
from memenvs.retention import STRATEGIES, retained
from tests.agents.algorithms.supervised_processes import ALLOCATED, SMALL
from tests.agents.algorithms.test_distributed import run_two
from tests.agents.small_ballet import ARGUMENTS


def run_of(folder: Path, config: RunConfig = ALLOCATED) -> RunDirectory:
    """A run, new or there."""
    return RunDirectory(folder, None if (folder / "config.json").exists() else config)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Folder of a run that was not killed."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # as in each test
    with run_of(tmp_path_factory.mktemp("whole")) as run:
        train_run(run, quiet=True)
    torch.set_num_threads(before)
    return run.path


def test_validation_and_evaluation_have_their_splits(tmp_path, monkeypatch):
    splits = []
    draw = SATPrediction.sample

    def sample(model, count, rng, split="train", step=0):
        splits.append(split)
        return draw(model, count, rng, split, step)

    monkeypatch.setattr(SATPrediction, "sample", sample)
    with run_of(tmp_path, replace(ALLOCATED, total_steps=5)) as run:
        train_run(run, quiet=True)
        assert set(splits) == {"train", "validation"}
        splits.clear()
        evaluate_predictions(run, episodes=8)
    assert set(splits) == {"test"}


def test_answers_of_one_episode_are_not_independent(tmp_path):
    single = np.array([1.0, 0.0, 0.0, 1.0, 0.5])
    scores = {
        "uneven": np.array([[1, 0], [1, np.nan], [0, 0]]),
        "single": single,
        "copied": np.tile(single[:, None], 16),
        "unrelated": np.random.default_rng(0).random((400, 4)),
        "absent": np.full((3, 2), np.nan),
        "empty": np.zeros(0),
        "wrong": np.array([1.0, np.nan]),
    }
    model = SimpleNamespace(eval=lambda: None, sample=lambda *_: None, scores=lambda _: scores, ideal=lambda _: {})
    with run_of(tmp_path) as run:
        metrics = evaluate_predictions(run, model, name=None, episodes=3, quiet=True)["agent"]["metrics"]
    assert not {"absent", "empty"} & metrics.keys() and metrics["copied"] == metrics["single"]
    assert np.isnan(metrics["wrong"]["mean"])  # a loss that is not finite is not hidden
    assert metrics["single"] == {"mean": 0.5, "stderr": pytest.approx(single.std() / np.sqrt(5))}
    # mean 0.4; the rows deviate from it by 0.2, 0.6 and -0.8 together
    assert metrics["uneven"] == {"mean": 0.4, "stderr": pytest.approx(np.sqrt(0.04 + 0.36 + 0.64) / 5)}
    assert metrics["unrelated"]["stderr"] == pytest.approx(scores["unrelated"].std() / np.sqrt(1600), rel=0.1)


def test_metrics_and_evaluation_are_complete(whole):
    with run_of(whole) as run:
        names = set(run.metrics())
        result = evaluate_predictions(run, episodes=40)
        again = evaluate_predictions(run, episodes=40, name=None)
    assert {"train/loss", "train/accuracy", "train/q_loss", "validation/accuracy_mvfo", "time/seconds"} <= names
    assert result == again == json.loads((whole / "evaluation.json").read_text())
    agent = result["agent"]["metrics"]
    shares = [agent[f"q_lifo_{strategy}"]["mean"] for strategy in ("fifo", "lifo", "lvfo", "mvfo")]
    assert sum(shares) == pytest.approx(1)
    assert 0 <= agent["accuracy"]["mean"] <= 1
    assert 0.125 < result["ideal"]["metrics"]["accuracy"]["mean"] <= 1


def test_evaluation_is_apart_from_training_and_the_same_for_all():
    first, second = make_run_model(SMALL), make_run_model(replace(SMALL, seed=5))
    keys = [first.sample(3, np.random.default_rng([part, 0, 0]), "test").episodes.episodes.key for part in (0, 1)]
    assert not set(keys[0]) & set(keys[1])
    assert evaluate_model(first, 20)["kept"].tolist() == evaluate_model(second, 20)["kept"].tolist()
    assert evaluate_model(first, 20)["kept"].all()


def test_mixed_precision_is_near_and_not_the_same():
    losses = []
    for precision in ("float32", "bfloat16"):
        learner = make_run_learner(with_overrides(SMALL, [("supervised.precision", precision)]))
        losses.append(learner.step()["loss"])
        assert all(parameter.dtype == torch.float32 for parameter in learner.model.parameters())
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], rel=0.05)


def test_a_gradient_that_is_not_finite_stops_with_the_step_and_keeps_the_checkpoint(tmp_path, monkeypatch):
    with run_of(tmp_path) as run:
        loss = SATPrediction.loss
        batches = iter(range(100))

        def broken(self, batch):
            value, log = loss(self, batch)
            if next(batches) == 8:
                value.register_hook(lambda gradient: gradient * float("inf"))
            return value, log

        monkeypatch.setattr(SATPrediction, "loss", broken)
        with pytest.raises(ValueError, match=r"loss and gradient must be finite, got grad_norm .* in step 8"):
            train_run(run, quiet=True)
        model = trained_model(run)
        assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())
        monkeypatch.setattr(SATPrediction, "loss", loss)
        assert train_run(run, quiet=True).num_timesteps == 12


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    learner = make_run_learner(SMALL)
    learner.save(tmp_path / "a.zip", {})
    with torch.no_grad():
        learner.model.model.head.bias[0] = float("nan")
    before = (tmp_path / "a.zip").read_bytes()
    with pytest.raises(ValueError, match=r"weights must be finite, got NaN or infinity in 'model\.head\.bias'"):
        learner.save(tmp_path / "a.zip", {})
    assert (tmp_path / "a.zip").read_bytes() == before


def test_checkpoint_of_another_run_is_refused(tmp_path):
    with run_of(tmp_path, replace(SMALL, total_steps=1)) as run:
        train_run(run, quiet=True)
    (tmp_path / "config.json").write_text(json.dumps(replace(SMALL, seed=1).to_json()))
    with run_of(tmp_path) as run, pytest.raises(ValueError, match="is of another run: seed must be 1, got 0"):
        train_run(run, quiet=True)
    assert (tmp_path / CHECKPOINT).exists()


def test_wrong_settings_are_known_before_a_run():
    for pairs, message in (
        ([("n_envs", 8)], "n_envs must be left out of a run that learns to predict, got 8"),
        ([("policy.strategi", "fifo")], "unknown setting 'strategi' of a ballet model"),
        ([("eval_kwargs", {"schedule": "walk"})], "unknown schedule 'walk'"),
    ):
        with pytest.raises(ValueError, match=message):
            check_config(with_overrides(SMALL, pairs))


def test_answers_are_learned_from_what_is_kept_and_strategies_from_all():
    model = make_run_model(with_overrides(ALLOCATED, [("policy.allocation.only_kept", True)]))
    batch = model.sample(16, np.random.default_rng(0))
    episodes = batch.episodes.episodes
    kept = np.array(
        [
            retained(episodes.visit_place[b : b + 1], STRATEGIES[batch.strategies[b]], 9)[0, episodes.query_visit[b]]
            for b in range(16)
        ]
    )
    assert 0 < kept.sum() < 16
    _, losses = model.answer(batch)
    q = model.allocator(batch.task_vectors).detach()[torch.arange(16), torch.from_numpy(batch.strategies)]
    wrong = ((-losses.detach() - q) ** 2).mean()
    total, log = model.loss(batch)
    assert total.item() == pytest.approx((losses[torch.from_numpy(kept)].sum() / 16 + 0.1 * wrong).item(), rel=1e-5)
    assert log["q_loss"] == pytest.approx(wrong.item(), rel=1e-5)


def test_command_line(tmp_path, capsys):
    changes = ["--total_steps", "4", "--eval_trials", "20", "--supervised.validation_episodes", "10"]
    assert main(["train", *ARGUMENTS, "--out", str(tmp_path / "run"), *changes]) == 0
    assert "agent      accuracy: " in capsys.readouterr().out
    for extended in ("6", "6"):  # the second has nothing to do
        command = ["train", *ARGUMENTS, "--out", str(tmp_path / "run"), *changes, "--total_steps", extended]
        assert main([*command, "--resume", "--no-evaluate", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["steps"] == 6
    assert main(["evaluate", str(tmp_path / "run"), "--trials", "10", "--name", "other", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "run" / "other.json").read_text())
    assert not (tmp_path / "run" / "evaluation.json").exists()  # it was of the checkpoint before
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    assert main(["report", str(tmp_path / "run")]) == 0
    assert "right answers" not in (page := (tmp_path / "run" / "report.html").read_text())  # it is in the picture
    assert "accuracy, answer kept" in page and "<img" in page
    capsys.readouterr()
    for command in (["evaluate", "--steps", "3"], ["evaluate", "--demonstrations", "3"], ["paths"]):
        assert main([command[0], str(tmp_path / "run"), *command[1:]]) == 2
        assert "acts" in (error := capsys.readouterr().err) or "act;" in error


@pytest.mark.slow
def test_two_processes_learn_what_one_does(whole, tmp_path):
    """Validation of a run; what a process learns from is in test_supervised_learner.py."""
    done = run_two("tests.agents.algorithms.supervised_processes", tmp_path)
    assert [process.returncode for process in done] == [0, 0]
    with RunDirectory(tmp_path / "run") as run, run_of(whole) as single:
        for name, points in single.metrics().items():
            if name.startswith("validation/"):
                np.testing.assert_allclose(np.array(run.metrics()[name]), points, atol=0.02, err_msg=name)
