"""ExtObjNav: success by episode of the trial."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.experiments.statistics import format_percent, mean_and_margin
from memenvs.agents.studies.in_context_tables import LAST_EPISODE, LATE_EPISODES
from memenvs.agents.studies.study_results import has_results, metric_means
from result_pages.shared import FONT, MARKERS, folders, format_fixed, label_axes, new_figure, print_table

#: Run -> agent.
IN_CONTEXT = {
    "relic": "ReLIC (`relic`)",
    "k1": "ReLIC, one update a rollout (`k1`)",
    "no-iea": "no attention to earlier episodes (`no-iea`)",
    "transformer-se": "memory emptied after each episode (`transformer-se`)",
}


def in_context_scores(run: str, metric: str, name: str = "evaluation") -> np.ndarray:
    """Metric by episode of the trial, float64, (seeds, 15)."""
    return metric_means(folders("ext_objnav", run), metric, name=name)[:, :LAST_EPISODE]


def print_in_context() -> None:
    """Success in the first and in the 15th episode in an unseen home."""
    agents = {name: (run, "evaluation") for run, name in IN_CONTEXT.items()}
    agents["ReLIC in ProcTHOR houses"] = ("relic", "procthor")
    rows = []
    for name, (run, evaluation) in agents.items():
        success, spl = (in_context_scores(run, metric, evaluation) for metric in ("success", "spl"))
        cells = [format_percent(each) for each in (success[:, 0], success[:, -1], success[:, -1] - success[:, 0])]
        rows.append([name, *cells, format_fixed(spl[:, 0], 3), format_fixed(spl[:, -1], 3)])
    header = [
        "agent",
        "success in episode 1, %",
        "in episode 15, %",
        "gain, points",
        "SPL in episode 1",
        "in episode 15",
    ]
    print_table("ExtObjNav, homes never seen", header, rows)


def print_pictures() -> None:
    """Success of agents that have learned from pictures, seed by seed and their mean."""
    rows = []
    for run, name in (
        ("pictures", "pictures (`pictures`)"),
        ("pictures-no-iea", "no attention to earlier episodes (`pictures-no-iea`)"),
    ):
        runs = [each for each in folders("ext_objnav_pictures", run) if has_results(each, "evaluation")]
        success, spl = (metric_means(runs, metric) for metric in ("success", "spl"))  # (seeds, episodes)
        ends = [(each[:, 0], each[:, LATE_EPISODES].mean(1)) for each in (success, spl)]
        seeds = [[number] for number in range(len(runs))] + ([list(range(len(runs)))] if len(runs) > 1 else [])
        for chosen in seeds:
            (first, late), (first_spl, late_spl) = (tuple(each[chosen] for each in pair) for pair in ends)
            title = runs[chosen[0]].name.rpartition("-")[2] if len(chosen) == 1 else "all"
            cells = [format_percent(each) for each in (first, late, late - first)]
            rows.append([name, title, *cells, format_fixed(first_spl, 3), format_fixed(late_spl, 3)])
    header = ["agent", "seed", "success in episode 1, %", "in 10 to 15, %", "gain, points", "SPL in 1", "in 10 to 15"]
    print_table("ExtObjNav from pictures, homes never seen", header, rows)


def draw_in_context() -> Figure:
    """Success by episode of the trial."""
    figure, (axes,) = new_figure(4.6)
    names = ["ReLIC", "ReLIC, one update a rollout", "no attention to earlier episodes", "memory emptied each episode"]
    episodes = np.arange(1, LAST_EPISODE + 1)
    for k, (run, name) in enumerate(zip(IN_CONTEXT, names, strict=True)):
        mean, margin = mean_and_margin(100 * in_context_scores(run, "success"))
        axes.plot(episodes, mean, color=COLOURS[k], marker=MARKERS[k], linewidth=2.5, markersize=8, label=name)
        axes.fill_between(episodes, mean - margin, mean + margin, color=COLOURS[k], alpha=0.2, linewidth=0)
    label_axes(axes, "episode in the same home", "success, %")
    axes.set_xticks([1, 5, 10, 15])
    axes.set_ylim(50, 88)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=FONT - 2)
    return figure
