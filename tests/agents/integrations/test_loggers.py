"""Logs of a learner arrive in TensorBoard and in the trackers that are installed."""

from __future__ import annotations

import contextlib
import importlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from stable_baselines3.common.logger import Logger
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from memenvs.agents.integrations.loggers import TrackerWriter
from tests.agents.learners import learner

METRIC = "rollout/ep_rew_mean"


def learn(*writers: TrackerWriter, folder: Path) -> list[tuple[int, dict[str, float]]]:
    """Learn with these writers; what a further one was given."""
    seen: list[tuple[int, dict[str, float]]] = []
    model = learner()
    own = TrackerWriter(lambda numbers, step: seen.append((step, numbers)))
    model.set_logger(Logger(str(folder), [own, *writers]))
    model.learn(200)
    return seen


def installed(name: str) -> Any:
    """The library, or a skip that gives the reason; the tests do not install it, as it is large."""
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"needs {name}, which is large and not among the packages of the tests: pip install {name}")


def test_every_number_is_passed_on_with_its_step(tmp_path: Path) -> None:
    seen = learn(folder=tmp_path)
    assert [step for step, _ in seen] == sorted({step for step, _ in seen}) and seen[-1][0] >= 192
    assert {METRIC, "train/value_loss"} <= set(seen[-1][1])
    assert all(type(value) is float for _, numbers in seen for value in numbers.values())
    lines: list[Any] = []
    writer = TrackerWriter(lambda numbers, step: lines.append((numbers, step)), name="mine")
    logger = Logger(None, [writer])
    logger.record("kept", 1)
    logger.record("left_out", 2.0, exclude="mine")
    logger.record("text", "words")
    logger.dump(5)
    logger.record("text", "words")
    logger.dump(6)
    assert lines == [({"kept": 1.0}, 5)]
    logger.close()


@pytest.mark.slow
def test_tensorboard_has_the_same_numbers(tmp_path: Path) -> None:
    model = learner(tensorboard_log=str(tmp_path))
    model.learn(200)
    seen = dict(learn(folder=tmp_path / "other"))
    (folder,) = [path for path in tmp_path.iterdir() if path.name != "other"]
    events = EventAccumulator(str(folder))
    events.Reload()
    found = {event.step: event.value for event in events.Scalars(METRIC)}
    assert found == pytest.approx({step: numbers[METRIC] for step, numbers in seen.items() if METRIC in numbers})


@pytest.mark.filterwarnings("default")  # of packages that the trackers import
def test_mlflow(tmp_path: Path) -> None:
    mlflow = installed("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    with mlflow.start_run() as run:
        seen = learn(TrackerWriter(mlflow.log_metrics), folder=tmp_path)
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, METRIC)
    assert [(each.step, each.value) for each in history] == [(s, n[METRIC]) for s, n in seen if METRIC in n]


@pytest.mark.filterwarnings("default")
def test_wandb(tmp_path: Path) -> None:
    wandb = installed("wandb")
    run = wandb.init(project="memory", mode="offline", dir=tmp_path)
    seen = learn(TrackerWriter(wandb.log), folder=tmp_path)
    wandb.log({"end": 1.0}, step=seen[-1][0] + 1)  # the summary lacks the newest step until another one begins
    assert run.summary[METRIC] == seen[-1][1][METRIC]
    wandb.finish()
    assert list(tmp_path.rglob("*.wandb"))


@pytest.mark.filterwarnings("default")
def test_trackio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))  # read when it is imported
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    trackio = installed("trackio")
    trackio.init(project="memory", name="one")
    seen = learn(TrackerWriter(trackio.log), folder=tmp_path)
    trackio.finish()
    (file,) = (tmp_path / "trackio").glob("memory*.db")
    with contextlib.closing(sqlite3.connect(file)) as database:
        rows = database.execute("SELECT step, metrics FROM metrics ORDER BY step").fetchall()
    stored = {step: json.loads(metrics) for step, metrics in rows}
    assert {step: numbers[METRIC] for step, numbers in stored.items() if METRIC in numbers} == {
        step: numbers[METRIC] for step, numbers in seen if METRIC in numbers
    }
