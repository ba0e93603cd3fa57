"""Tables of the Spatially-Aware Transformer from results written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from memenvs.agents.experiments.report import Report
from memenvs.agents.papers.sat import tables
from memenvs.agents.studies.study_results import write_result

Show = Callable[..., list[str]]


class Pictures(list[Figure]):
    """The figures of a page, which are not drawn."""

    def png(self, figure: Figure) -> bytes:
        self.append(figure)
        return b""


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Pictures:
    found = Pictures()
    monkeypatch.setattr(tables, "figure_png", found.png)
    return found


@pytest.fixture
def show(figures: Pictures, capsys: pytest.CaptureFixture[str]) -> Show:
    """Make a page, and return the tables that it prints, line by line."""

    def printed(add: Callable[..., None], *args: Any) -> list[str]:
        add(Report("page"), *args)
        return [line for line in capsys.readouterr().out.splitlines() if line and not line.startswith("|---")]

    return printed


def metrics(means: dict[str, float]) -> dict[str, Any]:
    return {"metrics": {name: {"mean": mean} for name, mean in means.items()}}


def run(folder: Path, accuracy: float, ideal: float, **more: float) -> Path:
    content = {"agent": metrics({"accuracy": accuracy, **more}), "ideal": metrics({"accuracy": ideal})}
    write_result(folder, "evaluation", content)
    return folder


def curve(folder: Path, *points: tuple[int, float, float]) -> None:
    batches, hours, accuracy = map(list, zip(*points, strict=True))
    write_result(folder, "curve", {"batches": batches, "hours": hours, "accuracy": accuracy})


def test_strategies(tmp_path: Path, show: Show, figures: Pictures) -> None:
    runs = {
        "ballet-fifo": [run(tmp_path / "f-0", 0.5, 0.9), run(tmp_path / "f-1", 0.7, 0.7)],
        "ballet-fifo:lifo": [run(tmp_path / "fl-0", 0.125, 0.25)],
        "ballet-mvfo": [run(tmp_path / "m-0", 1.0, 1.0)],
    }
    curve(tmp_path / "f-0", (1000, 0.5, 0.98), (2000, 1.0, 0.99), (3000, 1.5, 1.0))
    curve(tmp_path / "f-1", (1000, 0.25, 0.4))
    curve(tmp_path / "m-0", (1500, 0.1, 1.0))
    by_task = {
        f"accuracy_{task}": value
        for task, value in zip(("fifo", "lifo", "lvfo", "mvfo"), (0.8, 0.2, 0.3, 0.6), strict=True)
    }
    shares = {
        f"q_{task}_{strategy}": 0.1 * i + 0.01 * j
        for i, task in enumerate(("fifo", "lifo", "lvfo", "mvfo"))
        for j, strategy in enumerate(("fifo", "lifo", "lvfo", "mvfo"))
    }
    runs["ballet-ama:all"] = [run(tmp_path / "a-0", 0.0, 0.0, **by_task, **shares)]
    curve(tmp_path / "a-0", (12345, 2.0, 0.995))
    assert show(tables.add_strategies, runs) == [
        "Accuracy in % over seeds (1 to 2), the ideal observer's in brackets",
        "| task | FIFO | LIFO | LVFO | MVFO | AMA, all |",
        "| FIFO | 50.0, 70.0 (80) | 12.5 (25) | - | - | 80.0 |",
        "| MVFO | - | - | - | 100.0 (100) | 60.0 |",
        "softmax(Q) of AMA, all",
        "| task | FIFO | LIFO | LVFO | MVFO |",
        "| FIFO | 0.000 | 0.010 | 0.020 | 0.030 |",
        "| LIFO | 0.100 | 0.110 | 0.120 | 0.130 |",
        "| LVFO | 0.200 | 0.210 | 0.220 | 0.230 |",
        "| MVFO | 0.300 | 0.310 | 0.320 | 0.330 |",
        "First time that 99 % were right in validation, each seed",
        "| preset | seeds | batches | minutes |",
        "| ballet-fifo | 2 | 2,000 / never | 60.0 / never |",
        "| ballet-mvfo | 1 | 1,500 | 6.0 |",
        "| ballet-ama:all | 1 | 12,345 | 120.0 |",
    ]
    drawn = figures[0].axes[0].images[0].get_array()
    expected = [[0.6, 0.125, np.nan, np.nan, 0.8], [np.nan, np.nan, np.nan, 1.0, 0.6]]
    np.testing.assert_allclose(np.ma.filled(drawn, np.nan), expected)
    alone = {"ballet-mvfo": runs["ballet-mvfo"]}
    assert show(tables.add_strategies, alone)[0] == "Accuracy in % over seeds (1), the ideal observer's in brackets"


def test_language_has_the_mean_over_common_seeds(tmp_path: Path, show: Show) -> None:
    runs = {
        "split 0": [run(tmp_path / "s0-0", 0.5, 1.0), run(tmp_path / "s0-1", 0.7, 1.0)],
        "split 1": [run(tmp_path / "s1-1", 0.9, 0.8)],
    }
    rows = [
        "AMA with tasks described in words, tested on other words",
        "| preset | seeds | accuracy % | ideal % |",
        "| split 0 | 2 | 50.0, 70.0 | 100.0, 100.0 |",
        "| split 1 | 1 | 90.0 | 80.0 |",
    ]
    assert show(tables.add_language, runs) == [*rows, "| mean of 2 | 1 | 80.0 | 90.0 |"]
    assert show(tables.add_language, {"split 0": runs["split 0"]}) == rows[:3]
    apart = {"split 0": runs["split 0"][:1], "split 1": runs["split 1"]}
    assert len(show(tables.add_language, apart)) == 4


def test_rooms(tmp_path: Path, show: Show) -> None:
    for rooms in (4, 6, 8, 10, 12):
        write_result(tmp_path / "r-0", f"rooms_{rooms}", {"agent": metrics({"accuracy": rooms / 20})})
    assert show(tables.add_rooms, {"x": [tmp_path / "r-0"]}) == [
        "Ballet-MVFO learned in 8 rooms, accuracy in %",
        "| 4 rooms | 6 rooms | 8 rooms | 10 rooms | 12 rooms |",
        "| 20.0 | 30.0 | 40.0 | 50.0 | 60.0 |",
    ]


def test_accuracy_along_the_training(tmp_path: Path, show: Show, figures: Pictures) -> None:
    long, short = run(tmp_path / "long-0", 0.5, 1.0), run(tmp_path / "short-0", 0.25, 0.5)
    curve(long, *((100 * (k + 1), 0.1 * k, 0.01 * k) for k in range(19)))
    curve(short, (100, 0.0, 0.5), (200, 0.0, 0.625), (300, 0.0, 0.75))
    shown = show(tables.add_accuracy_curves, "name", "Title", {"a": [long], "b": [short]})
    assert shown == [
        "Title",
        "| preset | seeds | accuracy % | ideal % |",
        "| a | 1 | 50.0 | 100.0 |",
        "| b | 1 | 25.0 | 50.0 |",
        "The same in validation, %",
        "| batches | 100 | 200 | 400 | 800 | 1,600 | end |",
        "| long-0 | 0.0 | 1.0 | 3.0 | 7.0 | 15.0 | 18.0 |",
        "| short-0 | 50.0 | 62.5 | - | - | - | 75.0 |",
    ]
    assert show(tables.add_parity, {"a": [long], "b": [short]}) == [
        "The release's recipe, accuracy in % along the training",
        "| batches | 100 | 300 | 500 | 700 | 900 | 1,100 | 1,300 | 1,500 | 1,700 | end |",
        "| long-0 | 0.0 | 2.0 | 4.0 | 6.0 | 8.0 | 10.0 | 12.0 | 14.0 | 16.0 | 18.0 |",
        "| short-0 | 50.0 | 75.0 | - | - | - | - | - | - | - | 75.0 |",
    ]
    write_result(short, "curve", {"batches": [100, 200], "hours": [0.0, 0.0], "accuracy": [0.5]})
    for add in (tables.add_parity, tables.add_strategies):  # a curve that has lost a number is not shown
        with pytest.raises(ValueError, match="shorter than argument"):
            add(Report("page"), {"ballet-fifo": [short]})
    lines = [figure.axes[0].get_lines() for figure in figures[:2]]
    assert [[line.get_label() for line in each] for each in lines] == [["a", "b"]] * 2
    assert lines[0][1].get_xydata().tolist() == [[100, 0.5], [200, 0.625], [300, 0.75]]


def test_attention_to_the_queried_and_the_opposite_room(tmp_path: Path, show: Show, figures: Pictures) -> None:
    generator = np.random.default_rng(0)
    weights = generator.dirichlet(np.ones(8), size=(2, 2, 8))  # (runs, layers, queried, attended)
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, content in zip(folders, weights.tolist(), strict=True):
        write_result(folder, "attention", content)
    mean = weights.mean(0)
    rows = []
    for layer in range(2):
        own = np.mean([mean[layer, room, room] for room in range(8)])
        opposite = np.mean([mean[layer, room, 7 - room] for room in range(8)])
        rows.append(f"| {layer + 1} | {own:.3f} | {opposite:.3f} | {1 - own - opposite:.3f} |")
    header = "| layer | queried room | opposite room | 6 others |"
    assert show(tables.add_attention, folders) == ["Opposite Ballet: attention by layer", header, *rows]
    assert len(figures[0].axes) == 2
    for layer, axes in enumerate(figures[0].axes):
        grid = np.ma.filled(axes.images[0].get_array(), np.nan)
        np.testing.assert_allclose(grid.flatten(), [*mean[layer, 1, :4], np.nan, *mean[layer, 1, 4:]])
        assert axes.get_title() == f"layer {layer + 1}"
        assert axes.images[0].get_clim() == (0, 1)
