"""Tables and figure of memories by capacity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.report import BASELINES, COLOURS
from memenvs.agents.experiments.statistics import format_runs, seed_interval
from memenvs.agents.study import Rows, Table

#: Steps of an episode, in training and evaluation.
STEPS = 500
#: Steps that `smt` keeps, in training and evaluation; the last of them are all.
CAPACITIES = (4, 20, 100, STEPS)


class Score(NamedTuple):
    """Metric that agents are compared by, its column, its decimals and the label of its axis."""

    metric: str
    column: str
    decimals: int
    label: str


COVERAGE, IMAGES = "coverage", "coverage-images"
TASKS = {
    COVERAGE: Score("cells", "Coverage, cells", 1, "cells entered"),
    "search": Score("classes", "Search, classes", 2, "classes found"),
    IMAGES: Score("cells", "Coverage from images, cells", 1, "cells entered"),
}
#: Rule -> name in tables and figure.
RULES = {
    "random": "random actions",
    "window4": "heuristic, four scans",
    "ideal": "explorer, own map",
    "oracle": "oracle",
}
#: Method -> name in the table.
AGENTS = {
    **{rule: f"{name} (`{rule}`)" for rule, name in RULES.items()},
    "reactive": "no memory (`reactive`)",
    **{f"smt-{kept}": f"SMT, {kept} steps (`smt-{kept}`)" for kept in CAPACITIES},
    "smt-causal": "our causal SMT, 500 steps (`smt-causal`)",
    "smt-factorized": "SMT through 50 centres, 500 steps (`smt-factorized`)",
}
#: Capacity of the runs without an input, and of one from images.
PART = 100
#: Inputs that are left out in both stages, in Coverage.
WITHOUT = ("no-pose", "no-previous-action")
#: Methods that also train with twice as many updates, in Coverage.
LONGER = ("smt-4", "smt-100", "smt-500")
#: Methods beside the curve of the figure -> label and marker.
BESIDE = {"reactive": ("no memory", "s"), "smt-causal": ("causal SMT", "D"), "smt-factorized": ("SMT, centres", "^")}


def means_by_seed(rows: Rows, task: str, method: str) -> dict[int | None, float]:
    """Seed -> mean over homes; the seed of a rule is None."""
    metric = TASKS[task].metric
    return {row["seed"]: float(np.mean(row["evaluations"]["homes"][metric])) for row in rows.of(task, method)}


def means_of(rows: Rows, task: str, method: str) -> np.ndarray:
    """Mean over homes of each seed; float64, (seeds,)."""
    return np.array(list(means_by_seed(rows, task, method).values()), np.float64)


def leads_of(rows: Rows, task: str, method: str, base: str) -> np.ndarray:
    """Lead of a method over another one with the same seed; float64, (seeds of both,)."""
    means, others = (means_by_seed(rows, task, name) for name in (method, base))
    return np.array([mean - others[seed] for seed, mean in means.items() if seed in others], np.float64)


def make_tables(rows: Rows) -> list[Table]:
    """Scores by agent, leads over four steps, ablations and longer runs in Coverage."""
    tasks = [task for task in TASKS if rows.methods(task)]
    columns = [TASKS[task].column for task in tasks]
    scores = [[name, *(cell(task, means_of(rows, task, agent)) for task in tasks)] for agent, name in AGENTS.items()]
    leads = [
        [name, *(cell(task, leads_of(rows, task, method, "smt-4")) for task in tasks)]
        for method, name in AGENTS.items()
        if method not in RULES and method != "smt-4"
    ]
    parts = {"all inputs": f"smt-{PART}", **{part.replace("-", " "): f"smt-{part}" for part in WITHOUT}}
    ablations = [[name, cell(COVERAGE, means_of(rows, COVERAGE, method))] for name, method in parts.items()]
    without = ablations if any(f"smt-{part}" in rows.methods(COVERAGE) for part in WITHOUT) else []
    updates = [
        [AGENTS[method], *(cell(COVERAGE, means_of(rows, COVERAGE, run)) for run in (method, f"{method}-longer"))]
        for method in LONGER
        if len(means_of(rows, COVERAGE, f"{method}-longer"))
    ]
    tables = [
        Table("Scores in 46 test homes", ["agent", *columns], scores),
        Table("Lead over `smt-4` of the same seed", ["agent", *columns], leads),
        Table(f"Coverage, SMT with {PART} steps", ["", TASKS[COVERAGE].column], without),
        Table("Coverage, cells, after twice the updates", ["agent", "once", "twice"], updates),
    ]
    tables = [table._replace(lines=[line for line in table.lines if {*line[1:]} - {"-"}]) for table in tables]
    return [table for table in tables if table.lines]


def cell(task: str, sample: np.ndarray) -> str:
    """Mean over seeds with its 95 % interval; "-" without runs."""
    digits = f".{TASKS[task].decimals}f"
    return format_runs(sample, digits, digits) if len(sample) else "-"


def draw(rows: Rows) -> Figure | None:
    """Draw the score by capacity with bands over seeds, rules dashed; None where runs miss."""
    figure = Figure(figsize=(8, 4.5), dpi=100, layout="constrained")
    panels: Sequence = figure.subplots(1, 2)
    for axes, task in zip(panels, (COVERAGE, "search"), strict=True):
        curve = [means_of(rows, task, f"smt-{kept}") for kept in CAPACITIES]
        if len({len(sample) for sample in curve}) != 1 or not len(curve[0]):
            return None
        mean, low, high = seed_interval(np.stack(curve, 1))
        axes.plot(CAPACITIES, mean, "o-", color=COLOURS[0], linewidth=2.4, label="SMT")
        axes.fill_between(CAPACITIES, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
        for at, (method, (label, marker)) in enumerate(BESIDE.items(), 1):
            sample = means_of(rows, task, method)
            if len(sample):
                mean, low, high = seed_interval(sample)
                x = 1 if method == "reactive" else STEPS * 1.15**at  # right of the last point, which hides it else
                axes.errorbar(
                    x, mean, [[mean - low], [high - mean]], fmt=marker, color=COLOURS[at], capsize=3, label=label
                )
        for rule, name in RULES.items():
            for score in means_of(rows, task, rule):
                colour, dashes = BASELINES.get(rule, ("#777777", "-"))
                axes.axhline(score, color=colour, linestyle=dashes, linewidth=1.5, label=name)
        axes.set_xscale("log")
        axes.set_xticks([1, *CAPACITIES], ["1", *map(str, CAPACITIES)])
        axes.minorticks_off()
        axes.set_title(task.capitalize(), fontsize=16)
        axes.set_xlabel("steps in memory", fontsize=14)
        axes.set_ylabel(TASKS[task].label, fontsize=14)
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.tick_params(labelsize=13)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure
