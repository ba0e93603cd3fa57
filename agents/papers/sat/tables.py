"""Tables and figures of the Spatially-Aware Transformer in Room Ballet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.report import Report, add_table, figure_png
from memenvs.agents.experiments.statistics import format_percent
from memenvs.agents.papers.sat.study import ROOMS
from memenvs.agents.studies.study_figures import accuracy_figure, share_figure
from memenvs.agents.studies.study_results import metric_means, read_result
from memenvs.retention import STRATEGIES

LEARNED = 0.99
"""Accuracy in validation from which a task counts as learned."""
#: Run -> name of an allocator in the table of strategies.
ALLOCATORS = {"ballet-ama": "AMA", "ballet-ama:all": "AMA, all"}
Runs = Mapping[str, Sequence[Path]]
"""Name of a run -> folders, one per seed."""


def add_strategies(report: Report, runs: Runs) -> None:
    """Add accuracy by task, strategy and allocator, learned preferences, and speed of learning."""
    allocators = {name: runs[preset] for preset, name in ALLOCATORS.items() if preset in runs}
    tasks = [task for task in STRATEGIES if f"ballet-{task}" in runs]
    cells = [[runs.get(f"ballet-{task}" + f":{s}" * (task != s), []) for s in STRATEGIES] for task in tasks]
    rows = []
    accuracies = np.full((len(tasks), len(STRATEGIES) + len(allocators)), np.nan)
    for i, task in enumerate(tasks):
        row = [task.upper()]
        for j, folders in enumerate(cells[i]):
            if not folders:
                row.append("-")
                continue
            accuracy, ideal = _agent_and_ideal(folders)
            accuracies[i, j] = accuracy.mean()
            row.append(f"{format_percent(accuracy)} ({100 * ideal.mean():.0f})")
        for j, folders in enumerate(allocators.values(), len(STRATEGIES)):
            accuracy = metric_means(folders, f"accuracy_{task}")
            accuracies[i, j] = accuracy.mean()
            row.append(format_percent(accuracy))
        rows.append(row)
    columns = [*(strategy.upper() for strategy in STRATEGIES), *allocators]
    counts = sorted({len(folders) for row in [*cells, allocators.values()] for folders in row if folders})
    seeds = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    title = f"Accuracy in % over seeds ({seeds}), the ideal observer's in brackets"
    add_table(report, title, ["task", *columns], rows)
    figure = share_figure(accuracies, [task.upper() for task in tasks], columns)
    report.picture("strategies", figure_png(figure), "right answers in % by task (rows) and strategy")
    for name, folders in allocators.items():
        shares = [
            [task.upper(), *(f"{metric_means(folders, f'q_{task}_{s}').mean():.3f}" for s in STRATEGIES)]
            for task in STRATEGIES
        ]
        add_table(report, f"softmax(Q) of {name}", ["task", *(s.upper() for s in STRATEGIES)], shares)
    rows = []
    for preset in (*(f"ballet-{task}" for task in tasks), *ALLOCATORS):
        learned = [_learned_at(folder) for folder in runs.get(preset, [])]
        if learned:
            batches, minutes = map(" / ".join, zip(*learned, strict=True))
            rows.append([preset, str(len(learned)), batches, minutes])
    title = f"First time that {100 * LEARNED:.0f} % were right in validation, each seed"
    add_table(report, title, ["preset", "seeds", "batches", "minutes"], rows)


def add_accuracies(report: Report, title: str, runs: Runs, more: Sequence[Sequence[Any]] = ()) -> None:
    """Add accuracy of each run beside the ideal observer's, and further rows."""
    rows = [[name, len(folders), *map(format_percent, _agent_and_ideal(folders))] for name, folders in runs.items()]
    add_table(report, title, ["preset", "seeds", "accuracy %", "ideal %"], [*rows, *more])


def add_language(report: Report, runs: Runs) -> None:
    """Add accuracy of each split of the descriptions, and their mean over common seeds."""
    seeds = [{folder.name.rpartition("-")[2]: folder for folder in folders} for folders in runs.values()]
    common = sorted(set.intersection(*(set(each) for each in seeds)))
    more = []
    if len(runs) > 1 and common:
        means = np.mean([_agent_and_ideal([each[seed] for seed in common]) for each in seeds], axis=0)
        more = [[f"mean of {len(runs)}", len(common), *map(format_percent, means)]]
    add_accuracies(report, "AMA with tasks described in words, tested on other words", runs, more)


def add_rooms(report: Report, runs: Runs) -> None:
    """Add accuracy by number of rooms."""
    for folders in runs.values():
        row = [format_percent(metric_means(folders, "accuracy", name=f"rooms_{rooms}")) for rooms in ROOMS]
        header = [f"{rooms} rooms" for rooms in ROOMS]
        add_table(report, "Ballet-MVFO learned in 8 rooms, accuracy in %", header, [row])


def add_accuracy_curves(report: Report, picture: str, title: str, runs: Runs) -> None:
    """Add accuracy in evaluation and along training, and draw it by batches and by hours."""
    add_accuracies(report, title, runs)
    folders = [folder for each in runs.values() for folder in each]
    batches = max((read_result(folder, "curve")["batches"] for folder in folders), key=len)
    doubled = [2**k - 1 for k in range(len(batches).bit_length())]
    _add_along(report, "The same in validation, %", folders, [batches[k] for k in doubled])
    _draw_curves(report, picture, runs)


def add_parity(report: Report, runs: Runs) -> None:
    """Add accuracy in validation along each training at ten points, and draw it."""
    folders = [folder for each in runs.values() for folder in each]
    batches = read_result(folders[0], "curve")["batches"]
    chosen = sorted({round(k * (len(batches) - 1) / 9) for k in range(9)})
    title = "The release's recipe, accuracy in % along the training"
    _add_along(report, title, folders, [batches[k] for k in chosen])
    _draw_curves(report, "parity", runs)


def add_attention(report: Report, folders: Sequence[Path]) -> None:
    """Add attention to the queried and the opposite room by layer, and maps for one room."""
    found = np.mean([read_result(folder, "attention") for folder in folders], axis=0)  # (layers, queried, attended)
    rooms = np.arange(found.shape[1])
    own = found[:, rooms, rooms].mean(1)
    opposite = found[:, rooms, rooms[::-1]].mean(1)
    rows = [
        [layer + 1, *(f"{share:.3f}" for share in (own[layer], opposite[layer], 1 - own[layer] - opposite[layer]))]
        for layer in range(len(found))
    ]
    header = ["layer", "queried room", "opposite room", "6 others"]
    add_table(report, "Opposite Ballet: attention by layer", header, rows)
    figure = Figure(figsize=(10, 3), dpi=120, layout="constrained")
    queried = 1  # the room at the top in the middle, of which the figure shows attention to all others
    for layer, axes in enumerate(np.atleast_1d(figure.subplots(1, len(found)))):
        grid = np.insert(found[layer, queried], 4, np.nan).reshape(3, 3)  # 8 rooms around an empty middle
        axes.imshow(grid, vmin=0, vmax=1, cmap="magma")
        axes.set_facecolor("0.6")  # grey for the middle, which has no room
        axes.set_title(f"layer {layer + 1}")
        axes.set_xticks([])
        axes.set_yticks([])
    caption = "share of attention by room, for questions about the room at the top in the middle"
    report.picture("attention", figure_png(figure), caption)


def _agent_and_ideal(folders: Sequence[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy of each run, and of the ideal observer from the same memory."""
    return metric_means(folders, "accuracy"), metric_means(folders, "accuracy", "ideal")


def _learned_at(folder: Path) -> tuple[str, str]:
    """Batches and minutes after which a run first had the accuracy `LEARNED` in validation, or "never"."""
    curve = read_result(folder, "curve")
    for batches, hours, accuracy in zip(curve["batches"], curve["hours"], curve["accuracy"], strict=True):
        if accuracy >= LEARNED:
            return f"{batches:,.0f}", f"{60 * hours:.1f}"
    return "never", "never"


def _add_along(report: Report, title: str, folders: Sequence[Path], batches: Sequence[float]) -> None:
    """Add accuracy in validation of each run after these batches, "-" after its end, and at its end."""
    rows = []
    for folder in folders:
        curve = read_result(folder, "curve")
        found = dict(zip(curve["batches"], curve["accuracy"], strict=True))
        along = (f"{100 * found[at]:.1f}" if at in found else "-" for at in batches)
        rows.append([folder.name, *along, f"{100 * curve['accuracy'][-1]:.1f}"])
    add_table(report, title, ["batches", *(f"{at:,.0f}" for at in batches), "end"], rows)


def _draw_curves(report: Report, picture: str, runs: Runs) -> None:
    """Draw accuracy in validation by batches and by hours."""
    curves = {name: [read_result(folder, "curve") for folder in folders] for name, folders in runs.items()}
    report.picture(picture, figure_png(accuracy_figure(curves)))
