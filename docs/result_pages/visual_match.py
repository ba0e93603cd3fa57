"""VisualMatch and TwoRooms: success of each memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.experiments.statistics import format_percent
from memenvs.agents.papers.sat.rl_study import memory_image
from memenvs.agents.studies.study_results import has_results, metric_means, read_result
from result_pages.shared import FONT, folders, label_axes, print_table

#: Method of the study of SAT by reinforcement -> memory.
VISUAL_MATCH = {
    "ama": "an allocator chooses FIFO or MVFO (`ama`)",
    "ama-long": "the same, half as many steps again (`ama-long`)",
    "mvfo": "MVFO (`mvfo`)",
    "fifo": "FIFO (`fifo`)",
    "sat-pm": "a quota for each place (`sat-pm`)",
    "relic": "all steps, ReLIC (`relic`)",
    "lstm": "LSTM (`lstm`)",
    "gru": "GRU (`gru`)",
    "none": "no memory (`none`)",
}


def print_visual_match() -> None:
    """Success of each memory in both tasks."""
    tasks = {"visual-match": "VisualMatch", "two-rooms": "TwoRooms"}
    rows = []
    for method, name in VISUAL_MATCH.items():
        cells = [name]
        for task in tasks:
            found = [each for each in folders("visual_match", f"{task}-{method}") if has_results(each, "evaluation")]
            if not found:
                cells += ["-", "-", "-"]
                continue
            success = metric_means(found, "success")[:, 0]
            steps = read_result(found[0], "curve")["steps"][-1]
            cells += [format_percent(success), " / ".join(f"{100 * each:.1f}" for each in success), f"{steps:,}"]
        rows.append(cells)
    header = [
        "memory",
        *(f"{task}{what}" for task in tasks.values() for what in (", success %", ", by seed", ", steps")),
    ]
    print_table("A cue before a long stay", header, rows)


def visual_match_curves(task: str, method: str) -> list[dict[str, Any]]:
    """Curves of a method's seeds, those that there are."""
    found = folders("visual_match", f"{task}-{method}")
    return [read_result(each, "curve") for each in found if has_results(each, "curve")]


def draw_visual_match() -> Figure:
    """Success along the training, the choices of the allocator, and what FIFO and MVFO hold."""
    figure = Figure(figsize=(8, 9), dpi=100, layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=[1.1, 0.8, 1.1])
    success, share = figure.add_subplot(grid[0, :]), figure.add_subplot(grid[1, :])
    shown = {"mvfo": "MVFO", "ama-long": "AMA", "relic": "ReLIC", "fifo": "FIFO", "none": "no memory"}
    for k, (method, name) in enumerate(shown.items()):
        for number, curve in enumerate(visual_match_curves("visual-match", method)):
            steps = np.array(curve["steps"]) / 1e6
            label = name if number == 0 else None
            success.plot(steps, 100 * np.array(curve["success_rate"]), color=COLOURS[k], linewidth=1.5, label=label)
            if "share_mvfo" in curve:
                share.plot(steps, 100 * np.array(curve["share_mvfo"]), color=COLOURS[k], linewidth=1.5)
    for axes in (success, share):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.tick_params(labelsize=FONT - 2)
        axes.set_ylim(0, 104)
    success.legend(frameon=False, ncols=3, fontsize=FONT - 2, loc="lower right")
    label_axes(success, "", "success, %")
    label_axes(share, "million steps", "AMA: share\nof MVFO, %")
    contents = read_result(folders("visual_match", "visual-match-mvfo")[0], "memory")
    for column, (strategy, spans) in enumerate(contents.items()):
        axes = figure.add_subplot(grid[2, column])
        axes.imshow(memory_image(spans), origin="lower", interpolation="none", aspect="auto")
        axes.set_title(f"{strategy.upper()} holds", fontsize=FONT)
        axes.tick_params(labelsize=FONT - 2)
        label_axes(axes, "step of the episode", "step in memory" if column == 0 else "")
    return figure
