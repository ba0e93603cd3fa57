"""The study of SAT in reinforcement learning: a short run, its evaluations, its page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.report import Report
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.sat_rl import METHODS, TASKS, smoke_config, variant_name
from memenvs.agents.sat.rl_study import EVALUATIONS, add_task, train_and_evaluate
from memenvs.agents.studies.study_results import has_results, read_result
from memenvs.retention import eviction_times


def test_a_run_and_its_page(tmp_path: Path) -> None:
    config = replace(smoke_config(find_preset("sat-visual-match")), device="cpu")
    folder = tmp_path / "ama-0"
    with RunDirectory.open_or_create(folder, config) as run:
        train_and_evaluate(run, quiet=True)
    assert has_results(folder, *EVALUATIONS)
    contents = read_result(folder, "memory")
    for strategy in ("fifo", "mvfo"):  # the run's own memory does what the rules of retention say
        places = np.array([contents["places"][strategy]])
        evicted_at = eviction_times(places, strategy, 40, n_places=2)[0]
        for now, steps in enumerate(contents[strategy]):
            own = eviction_times(places[:, : now + 1], strategy, 40, n_places=2)[0]
            assert steps == np.flatnonzero(own > now).tolist() and all(evicted_at[steps] > now)
    cue = {strategy: sum(step < 4 for step in contents[strategy][90]) for strategy in ("fifo", "mvfo")}
    assert cue == {"fifo": 0, "mvfo": 4}
    curve = read_result(folder, "curve")
    assert len(curve["share_mvfo"]) == len(curve["q_fifo"]) == len(curve["steps"]) == 2
    report = Report("", tmp_path)
    add_task(report, "visual-match", {"ama": [folder], "mvfo": [folder]})
    assert report.write(tmp_path / "report.html").read_text(encoding="utf-8").count("<img") == 3


def test_every_method_has_a_preset() -> None:
    methods = {(task, method): find_preset(variant_name(task, method)) for task in TASKS for method in METHODS}
    assert [config.learner.allocator is not None for config in methods.values()] == [m == "ama" for _, m in methods]
    assert {config.total_steps for config in methods.values()} == {1_536_000}
