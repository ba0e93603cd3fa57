"""The study `visual_match`: short runs, their evaluations, tables and figure."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from memenvs.agents.study import Rows, Study
from memenvs.retention import eviction_times


@pytest.mark.slow
def test_a_run_its_evaluations_and_its_figure(study: Study, module: ModuleType, tmp_path: Path) -> None:
    row = study.measure(("visual-match", "ama", 0), tmp_path, smoke=True)
    contents = row["evaluations"]["memory"]
    for strategy in ("fifo", "mvfo"):  # the run's own memory does what the rules of retention say
        place, first, last = np.array(contents[strategy]).T
        assert (first == np.arange(len(first))).all()
        evicted_at = eviction_times(place[None], strategy, 40, n_places=2)[0]
        assert (last == np.minimum(evicted_at, len(first)) - 1).all()
        image = module.memory_image(contents[strategy])
        assert ((image < 1).any(2).sum(0) == np.minimum(np.arange(len(first)) + 1, 40)).all()
    cue = {name: sum(last >= 90 for _, first, last in spans if first < 4) for name, spans in contents.items()}
    assert cue == {"fifo": 0, "mvfo": 4}
    curve = row["evaluations"]["curve"]
    assert curve["steps"] == [800] and [len(curve[name]) for name in ("share_mvfo", "q_fifo", "hours")] == [1, 1, 1]
    assert study.figures["visual_match"](Rows([row])) is None
    figure = study.figures["visual_match"](Rows([row, {**row, "method": "mvfo"}]))
    assert figure is not None and [axes.get_title() for axes in figure.axes] == ["", "", "FIFO holds", "MVFO holds"]


@pytest.mark.slow
def test_the_memory_of_an_agent_with_images(study: Study, tmp_path: Path) -> None:
    contents = study.measure(("two-rooms", "mvfo", 0), tmp_path, smoke=True)["evaluations"]["memory"]
    cue = {name: sum(last >= 29 for _, first, last in spans if first < 4) for name, spans in contents.items()}
    assert cue == {"fifo": 0, "mvfo": 4}


def test_methods_of_a_task_have_the_same_steps_and_a_memory_below_the_stay(study: Study) -> None:
    steps = {"visual-match": 1_536_000, "two-rooms": 675_840, "short-visual-match": 512_000}
    capacities = {"visual-match": 40, "two-rooms": 12}
    for task, configs in study.configs.items():
        for method, config in configs.items():
            longer = 3 if method == "ama-long" else 2
            assert config.total_steps == steps[task] * longer // 2
            assert (config.learner.allocator is not None) == method.startswith("ama")
            capacity = capacities.get(task) if method in ("ama", "ama-long", "mvfo", "fifo", "sat-pm") else None
            assert config.policy["memory_kwargs"].get("capacity") == capacity
            assert config.learner.n_steps == sum(config.env_kwargs.get("phases", (4, 80, 16)))
