"""Room Ballet is learned if the strategy keeps what is needed, and not if it is evicted.

A fifth of the batches of the presets, a minute of a core each.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.prediction_experiment import evaluate_predictions
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset

pytestmark = pytest.mark.learning


@pytest.mark.parametrize(("preset", "least", "most"), [("ballet-fifo", 0.8, 1.0), ("ballet-fifo:lifo", 0.0, 0.2)])
def test_ballet_is_learned_if_it_is_kept(tmp_path: Path, preset: str, least: float, most: float) -> None:
    config = with_overrides(find_preset(preset), [("total_steps", 1000), ("supervised.warmup_steps", 200)])
    with RunDirectory(tmp_path / preset, config) as run:
        train_run(run, quiet=True)
        result = evaluate_predictions(run, episodes=2000)
    accuracy, best = (result[who]["metrics"]["accuracy"]["mean"] for who in ("agent", "ideal"))
    assert least < accuracy <= most
    assert accuracy < best + 0.02
