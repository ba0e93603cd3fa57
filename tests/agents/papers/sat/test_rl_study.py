"""The study of SAT in reinforcement learning: a short run, its evaluations, its page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.report import Report
from memenvs.agents.experiments.train import train_run
from memenvs.agents.papers.sat.rl_study import EVALUATIONS, add_task, memory_contents, memory_image, train_and_evaluate
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.sat_rl import METHODS, TASKS, smoke_config, variant_name
from memenvs.agents.studies.study_results import has_results, read_result
from memenvs.retention import eviction_times


@pytest.mark.slow
def test_a_run_and_its_page(tmp_path: Path) -> None:
    config = replace(smoke_config(find_preset("sat-visual-match")), device="cpu")
    folder = tmp_path / "ama-0"
    with RunDirectory.open_or_create(folder, config) as run:
        train_and_evaluate(run, quiet=True)
    assert has_results(folder, *EVALUATIONS)
    contents = read_result(folder, "memory")
    for strategy in ("fifo", "mvfo"):  # the run's own memory does what the rules of retention say
        place, first, last = np.array(contents[strategy]).T
        assert (first == np.arange(len(first))).all()
        evicted_at = eviction_times(place[None], strategy, 40, n_places=2)[0]
        assert (last == np.minimum(evicted_at, len(first)) - 1).all()
        image = memory_image(contents[strategy])
        assert ((image < 1).any(2).sum(0) == np.minimum(np.arange(len(first)) + 1, 40)).all()
    cue = {name: sum(last >= 90 for _, first, last in spans if first < 4) for name, spans in contents.items()}
    assert cue == {"fifo": 0, "mvfo": 4}
    curve = read_result(folder, "curve")
    assert curve["steps"] == [800] and [len(curve[name]) for name in ("share_mvfo", "q_fifo", "hours")] == [1, 1, 1]
    report = Report("", tmp_path)
    add_task(report, "visual-match", {"ama": [folder], "mvfo": [folder]})
    assert report.write(tmp_path / "report.html").read_text(encoding="utf-8").count("<img") == 4


def test_the_memory_of_an_agent_with_images(tmp_path: Path) -> None:
    config = replace(smoke_config(find_preset("sat-visual-match:two-rooms-mvfo")), device="cpu", total_steps=176)
    with RunDirectory.open_or_create(tmp_path / "mvfo-0", config) as run:
        train_run(run, quiet=True)
        contents = memory_contents(run)
    cue = {name: sum(last >= 29 for _, first, last in spans if first < 4) for name, spans in contents.items()}
    assert cue == {"fifo": 0, "mvfo": 4}


def test_every_method_has_a_preset() -> None:
    methods = {(task, method): find_preset(variant_name(task, method)) for task in TASKS for method in METHODS}
    allocated = {method for (_, method), config in methods.items() if config.learner.allocator is not None}
    assert allocated == {"ama", "ama-long"}
    steps = {task: {methods[task, each].total_steps for each in METHODS if each != "ama-long"} for task in TASKS}
    assert steps == {  # the same for all methods of a task
        "visual-match": {1_536_000},
        "two-rooms": {675_840},
        "short-visual-match": {512_000},
    }
    assert [methods[task, "ama-long"].total_steps for task in TASKS] == [2_304_000, 1_013_760, 768_000]
    capacities = {"visual-match": 40, "two-rooms": 12, "short-visual-match": 15}
    for (task, method), config in methods.items():  # memory is smaller than the stay and the cue together
        capacity = config.policy["memory_kwargs"].get("capacity")
        has_none = method in ("relic", "gru", "lstm", "none", "ct-lt", "ct-log")
        assert capacity == (None if has_none else capacities[task])
        assert config.learner.n_steps == sum(config.env_kwargs.get("phases", (4, 80, 16)))
