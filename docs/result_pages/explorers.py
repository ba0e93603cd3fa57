"""Roaming, Coverage, Search: score of each memory."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.studies.layout_evaluation import layout_scores
from result_pages.shared import FONT, RESULTS, UNTRAINED, folders, format_fixed, label_axes, new_figure, print_table

#: Run -> agent, in the order of the table.
EXPLORERS = {
    "random": "random actions",
    "window4": "fixed rule, last four scans (`window4`)",
    "reactive": "no memory (`reactive`)",
    "lstm": "LSTM (`lstm`)",
    "frmqn": "FRMQN (`frmqn`)",
    "sm-pooling": "pooled scenes (`sm-pooling`)",
    "smt-factorized": "SMT through centres (`smt-factorized`)",
    "smt": "Scene Memory Transformer (`smt`)",
    "smt-4": "the same with four scans (`smt-4`)",
    "smt-causal": "our causal SMT (`smt-causal`)",
    "oracle": "oracle, knows the map",
}
#: Task -> metric, its unit.
EXPLORED = {"roaming": ("distance", "m"), "coverage": ("cells", "cells"), "search": ("classes", "classes")}
DECIMALS = {"roaming": 1, "coverage": 1, "search": 2}
AXES = {"roaming": "distance, m", "coverage": "cells entered", "search": "classes found"}


def explored(task: str, run: str) -> np.ndarray:
    """Mean score over the test homes, float64, (seeds,)."""
    found = folders("scene_memory", f"{task}-{run}")
    if run in UNTRAINED:
        found = [RESULTS / "scene_memory" / f"{task}-{run}"]
    return layout_scores(found, EXPLORED[task][0]).mean(1)


def format_explored(task: str, run: str) -> str:
    """Score of an agent in a task."""
    return format_fixed(explored(task, run), DECIMALS[task])


def print_explorers() -> None:
    """Score of each memory in each task, in the test homes."""
    rows = [[name, *(format_explored(task, run) for task in EXPLORED)] for run, name in EXPLORERS.items()]
    print_table("46 test homes", ["agent", "Roaming, m", "Coverage, cells", "Search, classes"], rows)


def draw_explorers() -> Figure:
    """Score of each agent in each task: the mean, and each seed."""
    figure, panels = new_figure(5.0, len(EXPLORED))
    agents = list(EXPLORERS)[1:-1][::-1]
    shown = {
        "window4": "rule, four scans",
        "reactive": "no memory",
        "lstm": "LSTM",
        "frmqn": "FRMQN",
        "sm-pooling": "pooled scenes",
    }
    shown |= {"smt-factorized": "SMT, centres", "smt": "SMT", "smt-4": "SMT, four scans", "smt-causal": "causal SMT"}
    for axes, (task, label) in zip(panels, AXES.items(), strict=True):
        for row, run in enumerate(agents):
            scores = explored(task, run)
            colour = "#888888" if run in ("reactive", "window4") else COLOURS[0 if run.startswith("smt") else 1]
            axes.plot(scores, [row] * len(scores), "o", color=colour, alpha=0.4, markersize=8, markeredgewidth=0)
            axes.plot(scores.mean(), row, "|", color=colour, markersize=24, markeredgewidth=4)
        axes.axvline(explored(task, "window4").mean(), color="#888888", linestyle="--", linewidth=1.5)
        axes.set_title(task.capitalize(), fontsize=FONT)
        label_axes(axes, label)
    panels[0].set_yticks(range(len(agents)), [shown[run] for run in agents], fontsize=FONT)
    return figure
