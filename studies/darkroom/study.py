"""ReLIC learns in context in the Darkroom and in FourBoxes: return by episode of a trial."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.experiments.statistics import format_mean, mean_and_margin
from memenvs.agents.presets import find_preset
from memenvs.agents.study import Rows, Study, Table, changed, grid, play_trials

#: Task -> its name in the table, and that of its panel.
TITLES = {
    "5x5": "Darkroom 5 x 5",
    "10x10": "Darkroom 10 x 10",
    "four-boxes": "FourBoxes, new arrangements",
}
SCRIPTED = {"memoryless": "--", "oracle": ":", "random": "-."}


def make_tables(rows: Rows) -> list[Table]:
    """Return in the first, third and last episode of a trial."""
    lines = []
    for task, title in TITLES.items():
        methods = rows.methods(task)
        for method in sorted(methods, key=lambda name: (name in SCRIPTED, methods.index(name))):
            returns = rows.means(task, method, "return")  # (seeds, episodes)
            seeds = "scripted" if method in SCRIPTED else len(returns)
            cells = (format_mean(returns[:, episode]) for episode in (0, 2, -1))
            lines.append([title, method, seeds, returns.shape[1], *cells])
    header = ["room", "agent", "seeds", "episodes", "return in the first", "third", "last"]
    return [Table("Return by episode of a trial in places that were not trained", header, lines)]


def draw(rows: Rows) -> Figure | None:
    """Return by episode: ReLIC, its 95 % interval and seeds, and scripted policies."""
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for axes, task in zip(figure.subplots(1, len(TITLES)), TITLES, strict=True):
        returns = {method: rows.means(task, method, "return") for method in ("relic", *SCRIPTED)}
        if not all(map(len, returns.values())):
            return None
        episodes = np.arange(1, returns["relic"].shape[1] + 1)
        mean, margin = mean_and_margin(returns["relic"])
        axes.plot(episodes, returns["relic"].T, color=COLOURS[0], linewidth=0.8, alpha=0.5)
        axes.plot(episodes, mean, color=COLOURS[0], linewidth=2.4, label="ReLIC")
        axes.fill_between(episodes, mean - margin, mean + margin, color=COLOURS[0], alpha=0.2, linewidth=0)
        for method, dashes in SCRIPTED.items():
            axes.plot(episodes, returns[method][0], color="0.3", linestyle=dashes, label=method)
        axes.set(title=TITLES[task], xlabel="episode of the trial", ylim=(0, None))
    axes = figure.axes[0]
    axes.set_ylabel("return")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure


_UNSEEN = changed(find_preset("fourboxes"), {"env_kwargs.split": "train", "eval_kwargs.split": "test"})
STUDY = Study(
    title="In-context learning in one room",
    configs=grid(
        {"5x5": find_preset("demo"), "10x10": find_preset("darkroom"), "four-boxes": _UNSEEN},
        {"relic": {}, "k1": {"ppo.n_updates": 1}},
    ),
    scripted=("random", "memoryless", "oracle"),
    evaluations={"evaluation": lambda played: play_trials(played, "return")},
    tables=make_tables,
    figures={"darkroom": draw},
)
