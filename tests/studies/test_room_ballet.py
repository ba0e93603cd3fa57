"""The study of Room Ballet: short runs of each kind, tables from results written by hand."""

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from memenvs.agents.study import Rows, Study, read_rows

STRATEGIES = ("fifo", "lifo", "lvfo", "mvfo")


def row(task: str, method: str, accuracy: float, ideal: float = 1.0, seed: int = 0, **more: float) -> dict[str, Any]:
    """A row with an evaluation and a curve of half an hour; `more` are metrics of the agent."""

    def metrics(means: dict[str, float]) -> dict[str, Any]:
        return {"metrics": {name: {"mean": mean} for name, mean in means.items()}}

    evaluation = {"agent": metrics({"accuracy": accuracy, **more}), "ideal": metrics({"accuracy": ideal})}
    curve = {"batches": [500], "hours": [0.5], "accuracy": [accuracy]}
    return {"task": task, "method": method, "seed": seed, "evaluations": {"evaluation": evaluation, "curve": curve}}


@pytest.mark.parametrize(
    ("task", "method", "more"),
    [
        ("four-tasks", "ama", set()),
        ("opposite", "sat-fifo", {"attention"}),
        ("mvfo", "rooms", {f"rooms_{rooms}" for rooms in (4, 6, 8, 10, 12)}),
        pytest.param("four-tasks", "ama-language", set(), marks=pytest.mark.nightly),
        pytest.param("four-tasks", "dnc-every-small", set(), marks=pytest.mark.nightly),
    ],
)
def test_a_short_run_has_the_evaluations_of_its_rows(
    study: Study, file: Path, tmp_path: Path, task: str, method: str, more: set[str]
) -> None:
    measured = study.measure((task, method, 0), tmp_path, smoke=True)
    evaluations = {"evaluation", "curve", *more}
    assert set(measured["evaluations"]) == evaluations
    kept = read_rows(file.with_name("rows.jsonl")).of(task, method)[0]
    assert set(kept["evaluations"]) == evaluations
    for name in evaluations - {"curve", "attention"}:
        for policy, result in kept["evaluations"][name].items():
            assert set(result["metrics"]) == set(measured["evaluations"][name][policy]["metrics"])
    if "attention" in evaluations:
        shares = np.array(measured["evaluations"]["attention"])
        assert shares.shape == (2, 8, 8)
        np.testing.assert_allclose(shares.sum(2), 1, rtol=1e-5)


def test_small_memories_read_the_same_steps_of_a_visit(study: Study) -> None:
    cells = [("mvfo", "mvfo-small"), ("mvfo", "dnc-every-small"), ("four-tasks", "ama-small")]
    for task, method in cells:
        policy = study.configs[task][method].policy
        assert [*range(policy["first"], 32, policy["every"])] == [20, 25, 30], (task, method)
    assert study.configs["mvfo"]["mvfo-small"].policy["strategy"] == "mvfo"
    dnc = study.configs["mvfo"]["dnc-every-small"].policy["dnc"]
    assert dnc["cells"] == 18 * 3  # all that it reads


def test_runs_are_listed_with_the_ideal_observer(study: Study) -> None:
    rows = [row("aba", "sat-pm", accuracy, 0.9, seed) for seed, accuracy in enumerate((0.5, 0.7))]
    rows.append(row("mvfo", "rooms", 1.0))
    rows[-1]["evaluations"]["rooms_12"] = row("mvfo", "rooms", 0.6)["evaluations"]["evaluation"]
    questions, runs = study.tables(Rows(rows))
    assert questions.lines == [
        ["", "ABA", "the newest frames of each place", "`aba sat-pm`", "50.0, 70.0", "90.0, 90.0"],
        ["", "MVFO", "12 rooms", "`mvfo rooms`", "60.0", "100.0"],
    ]
    assert runs.lines == [
        ["aba sat-pm", 2, "50.0, 70.0", "90.0, 90.0", "30"],
        ["mvfo rooms", 1, "100.0", "100.0", "30"],
        ["mvfo rooms, 12 rooms", 1, "60.0", "100.0", "30"],
    ]


def test_attention_to_the_queried_and_the_opposite_room(module: ModuleType) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(8), size=(2, 8))  # (layers, queried, attended)
    lines = []
    for layer in range(2):
        own = np.mean([weights[layer, room, room] for room in range(8)])
        opposite = np.mean([weights[layer, room, 7 - room] for room in range(8)])
        lines.append([layer + 1, f"{own:.3f}", f"{opposite:.3f}", f"{1 - own - opposite:.3f}"])
    assert module.attention_table(weights).lines == lines


def test_the_figure_has_a_cell_for_each_task_and_strategy(study: Study) -> None:
    pairs = [(i, j) for i in range(4) for j in range(4)]
    rows = [row(STRATEGIES[i], STRATEGIES[j], 0.1 * i + 0.2 * j) for i, j in pairs]
    draw = study.figures["room_ballet"]
    assert draw(Rows(rows)) is None  # without the allocator
    rows.append(row("four-tasks", "ama", 0.9, **{f"accuracy_{task}": 0.1 * i for i, task in enumerate(STRATEGIES)}))
    drawn = draw(Rows(rows)).axes[0].images[0].get_array()
    np.testing.assert_allclose(drawn, [[10 * i, 10 * i + 20, 10 * i + 40, 10 * i + 60, 10 * i] for i in range(4)])
