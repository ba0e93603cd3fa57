"""Logs of a learner arrive in TensorBoard and in a tracker."""

from pathlib import Path
from typing import Any

import pytest
from stable_baselines3.common.logger import Logger

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


@pytest.mark.filterwarnings("default")  # of packages that it imports
def test_mlflow(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="needs mlflow, which the tests do not install")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    with mlflow.start_run() as run:
        seen = learn(TrackerWriter(mlflow.log_metrics), folder=tmp_path)
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, METRIC)
    assert [(point.step, point.value) for point in history] == [(s, n[METRIC]) for s, n in seen if METRIC in n]
