"""R2R and CVDN: success by what the agent remembers."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.experiments.statistics import format_mean, format_percent, mean_and_margin
from memenvs.agents.studies.study_results import metric_means
from result_pages.shared import FONT, MARKERS, RESULTS, folders, label_axes, new_figure, print_table

#: Run of one to three legs -> agent.
VLN = {
    "all": "all actions (MTVM)",
    "last3": "last 3 actions",
    "observations": "all views",
    "last3-observations": "last 3 views",
    "recurrent": "one recurrent state",
    "none": "no memory",
    "no-language": "all actions, does not read",
}
LEGS = (1, 2, 3)
#: Policy played beside the trained agents -> its name.
BASELINES = {"random": "random actions", "oracle": "shortest path"}


def vln_scores(run: str, legs: int) -> np.ndarray:
    """Success in unseen houses, in %, float64, (seeds,)."""
    return 100 * metric_means(folders("vln_memory", f"{run}-{legs}"), "sr")[:, 0]


def print_vln() -> None:
    """Success by what the agent remembers, in one to three legs; R2R's graphs; CVDN."""
    rows = []
    for run, name in VLN.items():
        cells = [format_mean(vln_scores(run, legs)) if run != "recurrent" or legs == 1 else "-" for legs in LEGS]
        more = ["-", "-"]
        if run == "all":
            more = [format_percent(task_scores("r2r", "sr")), format_mean(task_scores("cvdn", "gp"))]
        rows.append([name, *cells, *more])
    reader = [format_percent(reader_scores("vln_memory", f"memoryless-{legs}", "sr")) for legs in LEGS]
    rows.append(
        [
            "nothing: a scripted reader (`memoryless`)",
            *reader,
            "-",
            format_mean(reader_scores("vln_tasks", "cvdn-memoryless", "gp")),
        ]
    )
    rows.append(["GRU, learns from rewards (`vln-ppo`)", format_percent(task_scores("ppo", "sr")), "-", "-", "-", "-"])
    for policy, name in BASELINES.items():
        one, real = (format_percent(task_scores(run, "sr", policy)[:1]) for run in ("ppo", "r2r"))
        rows.append([name, one, "-", "-", real, format_mean(task_scores("cvdn", "gp", policy)[:1])])
    header = ["remembers", "success, 1 leg, %", "2 legs, %", "3 legs, %", "R2R graphs, %", "CVDN progress, m"]
    print_table("Houses never seen", header, rows)


def reader_scores(study: str, run: str, metric: str) -> np.ndarray:
    """Metric of the scripted reader in unseen houses, float64, (1,)."""
    return metric_means([RESULTS / study / run], metric)[:, 0]


def task_scores(run: str, metric: str, policy: str = "agent") -> np.ndarray:
    """Metric of a run in unseen houses, float64, (seeds,)."""
    return metric_means(folders("vln_tasks", run), metric, policy)[:, 0]


def draw_vln() -> Figure:
    """Success by legs of the path, for each memory."""
    figure, (axes,) = new_figure(5.4)
    for k, (run, name) in enumerate(VLN.items()):
        if run == "recurrent":
            continue
        mean, margin = zip(*(mean_and_margin(vln_scores(run, legs)) for legs in LEGS), strict=True)
        style: dict[str, Any] = {"linestyle": ":" if run in ("none", "no-language") else "-", "capsize": 4}
        axes.errorbar(
            LEGS, mean, margin, label=name, color=COLOURS[k], marker=MARKERS[k], linewidth=2.5, markersize=9, **style
        )
    reader = [100 * reader_scores("vln_memory", f"memoryless-{legs}", "sr")[0] for legs in LEGS]
    axes.plot(LEGS, reader, color="#555555", linestyle="-.", linewidth=2.5, label="scripted reader, no memory")
    axes.set_xticks(LEGS)
    axes.set_ylim(0, 100)
    label_axes(axes, "legs of the path", "success, %")
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=FONT - 2)
    return figure
