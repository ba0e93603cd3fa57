"""Runs of picture tasks: figures beside the evaluation, and the report."""

from __future__ import annotations

from pathlib import Path

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.run_report import write_report
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.sat_pictures import smoke_config
from memenvs.agents.sat.picture_study import train_and_evaluate

FIGURES = ("answers.png", "memory.png")


def test_a_run_draws_answers_and_memory_until_it_learns_on(tmp_path: Path) -> None:
    config = smoke_config(find_preset("sat-pictures:longstay-ama"))
    with RunDirectory.open_or_create(tmp_path / "run", config) as run:
        train_and_evaluate(run, quiet=True)
        times = [(run.path / name).stat().st_mtime_ns for name in FIGURES]
        train_and_evaluate(run, quiet=True)  # nothing to do
        assert times == [(run.path / name).stat().st_mtime_ns for name in FIGURES]
        page = write_report([run], tmp_path / "page").read_text()
        assert "mean squared error in validation during training" in page.lower()
        for name in FIGURES:
            assert (tmp_path / "page" / name).read_bytes() == (run.path / name).read_bytes()
        run.drop_results()  # as the next checkpoint does
        assert not any((run.path / name).exists() for name in (*FIGURES, "evaluation.json"))
