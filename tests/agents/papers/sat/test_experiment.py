"""Runs of picture tasks: figures beside the evaluation, and the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.report import Report
from memenvs.agents.experiments.run_report import write_report
from memenvs.agents.papers.sat.picture_study import add_picture_table, train_and_evaluate
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.sat_pictures import smoke_config
from memenvs.agents.studies.study_results import write_result
from memenvs.retention import STRATEGIES

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


def test_errors_of_ballets_by_task_and_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Own strategies have (1 + 6 + 11 + 16) / 4 thousandths with seed 0, and half of that with seed 2."""
    runs: dict[str, list[Path]] = {}
    for number, name in enumerate((*STRATEGIES, "ama")):
        for seed, factor in ((0, 1.0), (2, 0.5)):
            errors = {f"mse_{task}": factor * (1 + number + 4 * k) / 1000 for k, task in enumerate(STRATEGIES)}
            shares = {f"q_{task}_{strategy}": 0.25 for task in STRATEGIES for strategy in STRATEGIES}
            metrics = {metric: {"mean": value} for metric, value in (errors | shares).items()}
            folder = tmp_path / f"sat-pictures-ballet3d-{name}-{seed}"
            write_result(folder, "evaluation", {"agent": {"episodes": 4, "metrics": metrics}})
            runs.setdefault(f"sat-pictures:ballet3d-{name}", []).append(folder)
    add_picture_table(Report("title", tmp_path), "ballet3d", runs)
    printed = capsys.readouterr().out
    assert "| 0 | 0.0085 | 0.007 | 0.008 | 0.009 | 0.01 | 0.011 |" in printed
    assert "| 2 | 0.00425 | 0.0035 | 0.004 | 0.0045 | 0.005 | 0.0055 |" in printed
    add_picture_table(Report("title", tmp_path), "ballet3d", {name: runs[name][:1] for name in list(runs)[:2]})
    assert "Mean over tasks" not in capsys.readouterr().out
