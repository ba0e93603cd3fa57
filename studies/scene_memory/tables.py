"""Tables and figure of the explorers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.experiments.statistics import format_interval, format_runs
from memenvs.agents.study import Rows, Table


class Score(NamedTuple):
    """Metric that agents are compared by, its unit, its decimals and the label of its axis."""

    metric: str
    unit: str
    decimals: int
    label: str


TASKS = {
    "roaming": Score("distance", "m", 1, "distance, m"),
    "coverage": Score("cells", "cells", 1, "cells entered"),
    "search": Score("classes", "classes", 2, "classes found"),
}
COVERAGE = "coverage"
#: Method -> agent, in the order of the table.
AGENTS = {
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
#: Label in the figure.
LABELS = {
    "window4": "rule, four scans",
    "reactive": "no memory",
    "lstm": "LSTM",
    "frmqn": "FRMQN",
    "sm-pooling": "pooled scenes",
    "smt-factorized": "SMT, centres",
    "smt": "SMT",
    "smt-4": "SMT, four scans",
    "smt-causal": "causal SMT",
}
WORLDS = {"homes": "46 test homes", "procthor": "14 ProcTHOR houses, none of which was trained in"}
#: Steps that the memory of a trained `smt` keeps, and that of `smt-causal`; with 200 it is as in training.
CAPACITIES = (1, 5, 10, 20, 40, 80, 120, 160)
CAUSAL_CAPACITIES = (5, 10, 20, 40, 80, 200)
#: Numbers of centres of a trained agent; 50 is that of training.
CENTRES = (12, 25, 100)
#: Standard deviations of the wheels' rates, rad/s; agents learn with 0.5.
SLIPS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
#: Encodings of the age of an element.
TIMES = ("none", "sinusoidal", "exponential")
#: Column -> method and evaluation.
Line = Mapping[str, tuple[str, str]]
#: Title -> line -> cells.
PARTS: dict[str, dict[str, Line]] = {
    "Coverage, cells by steps that the memory keeps": {
        "smt": {
            **{str(kept): ("smt", f"homes_capacity_{kept}") for kept in CAPACITIES},
            "200": ("smt", "homes"),
        },
        **{
            f"smt-causal, episodes of {steps} steps": {
                str(kept): ("smt-causal", f"homes_steps_{steps}_capacity_{kept}") for kept in CAUSAL_CAPACITIES
            }
            for steps in (200, 500)
        },
    },
    "Coverage, cells without a part": {
        "smt": {
            "all": ("smt", "homes"),
            **{
                f"no {part}": (f"smt-no-{part.replace(' ', '-')}", "homes")
                for part in ("scan", "scan_class", "pose", "previous action", "encoder")
            },
        },
    },
    "Coverage, cells by number of centres": {
        kind: {
            str(count): (method, f"homes_centres_{count}" if count in CENTRES else "homes")
            for count in (sorted({*CENTRES, 50}) if kind != "learned" else (50,))
        }
        for kind, method in (
            ("farthest points", "smt-factorized"),
            ("newest elements", "smt-factorized-window"),
            ("learned", "smt-factorized-static"),
        )
    },
    "Coverage, cells by slip of the wheels (rad/s) under dead reckoning": {
        f"ages: {time}": {f"{slip:g}": (f"smt-reckoned-{time}", f"homes_slip_{slip}") for slip in SLIPS}
        for time in TIMES
    },
}


def scores_of(rows: Rows, task: str, method: str, evaluation: str) -> np.ndarray:
    """Scores by home; float64, (seeds, homes), or (0,) without any."""
    metric = TASKS[task].metric
    return np.array([result[metric] for result in rows.results(task, method, evaluation)], np.float64)


def make_tables(rows: Rows) -> list[Table]:
    """Scores by agent in both worlds, then by part of `smt` in Coverage."""
    tables = []
    header = ["agent", *(f"{task.capitalize()}, {score.unit}" for task, score in TASKS.items())]
    for evaluation, title in WORLDS.items():
        cells = {name: [mean_of(rows, task, method, evaluation) for task in TASKS] for method, name in AGENTS.items()}
        tables.append(Table(title, header, filled(cells)))
    for title, lines in PARTS.items():
        columns = list(max(lines.values(), key=len))
        cells = {name: [interval_of(rows, line.get(column)) for column in columns] for name, line in lines.items()}
        tables.append(Table(title, ["", *columns], filled(cells)))
    return [table for table in tables if table.lines]


def filled(cells: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Lines of a table, name first, without those that have no cell."""
    return [[name, *line] for name, line in cells.items() if set(line) != {"-"}]


def mean_of(rows: Rows, task: str, method: str, evaluation: str) -> str:
    """Mean over homes with its 95 % interval over seeds; "-" without runs."""
    scores = scores_of(rows, task, method, evaluation)
    digits = f".{TASKS[task].decimals}f"
    return format_runs(scores.mean(1), digits, digits) if len(scores) else "-"


def interval_of(rows: Rows, cell: tuple[str, str] | None) -> str:
    """Mean over seeds and homes of Coverage with its 95 % interval over homes; "-" without runs."""
    scores = np.zeros(0) if cell is None else scores_of(rows, COVERAGE, *cell)
    return format_interval(scores) if len(scores) else "-"


def draw(rows: Rows) -> Figure | None:
    """Score of each agent in each task: the mean, and each seed; None where an agent has no run."""
    figure = Figure(figsize=(8, 5), dpi=100, layout="constrained")
    panels: Sequence = figure.subplots(1, len(TASKS), sharey=True)
    for axes, (task, score) in zip(panels, TASKS.items(), strict=True):
        for at, method in enumerate(reversed(LABELS)):
            scores = scores_of(rows, task, method, "homes")
            if len(scores) == 0:
                return None
            means = scores.mean(1)
            colour = "0.55" if method in ("reactive", "window4") else COLOURS[0 if method.startswith("smt") else 1]
            axes.plot(means, [at] * len(means), "o", color=colour, alpha=0.4, markersize=8, markeredgewidth=0)
            axes.plot(means.mean(), at, "|", color=colour, markersize=24, markeredgewidth=4)
        axes.axvline(scores_of(rows, task, "window4", "homes").mean(), color="0.55", linestyle="--", linewidth=1.5)
        axes.set_title(task.capitalize(), fontsize=16)
        axes.set_xlabel(score.label, fontsize=16)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.tick_params(labelsize=14)
    panels[0].set_yticks(range(len(LABELS)), list(reversed(LABELS.values())), fontsize=16)
    return figure
