"""Room Ballet: a run begins to learn it within a twentieth of the batches of the preset."""

from __future__ import annotations

from pathlib import Path

import pytest

from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.prediction_experiment import evaluate_predictions
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset

pytestmark = pytest.mark.learning


def test_ballet_is_learned(tmp_path: Path) -> None:
    config = with_overrides(find_preset("room-ballet"), [("total_steps", 250), ("supervised.warmup_steps", 50)])
    with RunDirectory(tmp_path / "run", config) as run:
        train_run(run, quiet=True)
        result = evaluate_predictions(run, episodes=200)
    accuracy, best = (result[who]["metrics"]["accuracy"]["mean"] for who in ("agent", "ideal"))
    assert accuracy > 0.3  # a guess is right in 1 of 8
    assert accuracy < best + 0.02
