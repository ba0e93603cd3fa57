"""The study of memories of pictures: a short run, and tables from results written by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memenvs.agents.study import Rows, Study
from memenvs.retention import STRATEGIES


@pytest.mark.parametrize(
    "cell",
    [
        ("longstay", "ama", 0),
        pytest.param(("faces", "pm8", 0), marks=pytest.mark.nightly),
        pytest.param(("ballet3d", "mvfo", 0), marks=pytest.mark.nightly),
        pytest.param(("colour", "ama", 0), marks=pytest.mark.nightly),
        pytest.param(("colour-default", "ama", 0), marks=pytest.mark.nightly),
    ],
)
def test_a_short_run_is_evaluated_and_drawn(study: Study, tmp_path: Path, cell: tuple[str, str, int]) -> None:
    row = study.measure(cell, tmp_path, smoke=True)
    assert row["evaluations"]["evaluation"]["agent"]["episodes"] == 4
    assert (tmp_path / study.name(cell) / "answers.png").is_file() == (not cell[0].startswith("colour"))
    (table, *_) = study.tables(Rows([row]))
    assert len(table.lines) == 1 or cell[0] == "ballet3d"


def ballets(factors: dict[int, float]) -> list[dict[str, Any]]:
    """Rows of Ballet3D: errors of 1, 2, ... thousandths, by seed times a factor."""
    rows = []
    for number, method in enumerate((*STRATEGIES, "ama")):
        for seed, factor in factors.items():
            errors = {f"mse_{task}": factor * (1 + number + 4 * k) / 1000 for k, task in enumerate(STRATEGIES)}
            metrics = {metric: {"mean": value} for metric, value in errors.items()}
            evaluations = {"evaluation": {"agent": {"episodes": 4, "metrics": metrics}}}
            rows.append({"task": "ballet3d", "method": method, "seed": seed, "evaluations": evaluations})
    return rows


def test_errors_of_ballets_by_task_and_seed(study: Study) -> None:
    """Own strategies have (1 + 6 + 11 + 16) / 4 thousandths with seed 0, and half of that with seed 2."""
    rows = ballets({0: 1.0, 2: 0.5})
    errors, by_seed = study.tables(Rows(rows))
    first = ["FIFO", "0.001, 0.0005", "0.002, 0.001", "0.003, 0.0015", "0.004, 0.002", "0.005, 0.0025"]
    assert errors.lines[0] == first
    assert by_seed.lines == [
        [0, "0.0085", "0.007", "0.008", "0.009", "0.01", "0.011"],
        [2, "0.00425", "0.0035", "0.004", "0.0045", "0.005", "0.0055"],
    ]
    (alone,) = study.tables(Rows([row for row in rows if row["method"] in STRATEGIES[:2]]))
    assert alone.header == ["task", "FIFO", "LIFO"]
    draw = study.figures["pictures"]
    assert draw(Rows(rows[:-2])) is None
    drawn = draw(Rows(rows)).axes[0].images[0].get_array()
    np.testing.assert_allclose(drawn[0], 0.75 * np.arange(1, 6) / 1000)
