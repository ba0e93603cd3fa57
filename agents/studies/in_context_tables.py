"""Tables of in-context learning: success and SPL by episode of a trial, over several runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.agents.experiments.report import Report, add_table, figure_png, in_context_figure
from memenvs.agents.experiments.statistics import format_digits, mean_and_margin
from memenvs.agents.studies.study_results import has_results, metric_means, result_names

LAST_EPISODE = 15
"""Number of the last episode, from 1, that every evaluation trial of ExtObjNav of 1,024 steps has."""
LATE_EPISODES = slice(9, LAST_EPISODE)
"""Episodes 10 to 15 of a trial."""


def gain_row(title: str, runs: Sequence[Path], name: str, last: int | None = None) -> list[Any]:
    """A row of `add_gain_table`: success and SPL in the first and the last episode of a trial.

    Args:
        title: Name of the agent, the first cell.
        runs: Folders of its runs, one per seed.
        name: Name of the evaluation.
        last: Number of the last episode; None for the last that all runs have.
    """
    success, spl = (metric_means(runs, metric, name=name)[:, :last] for metric in ("success", "spl"))
    first = 100 * success[:, 0]
    end = 100 * success[:, -1]
    with np.errstate(invalid="ignore", divide="ignore"):  # an agent that never finds anything has no ratio
        ratio = spl[:, -1] / spl[:, 0]
    cells = (first, end, end - first, spl[:, 0], spl[:, -1], ratio)
    return [title, len(runs), success.shape[1], *map(format_digits, cells)]


def milestone_rows(agent: str, runs: Sequence[Path], last: int) -> list[list[Any]]:
    """A `gain_row` for each milestone of training that all runs have."""
    return [
        gain_row(f"{agent} after {step:,} steps", runs, name, last)
        for name, step in milestones(runs[0]).items()
        if all_have_results(runs, name)
    ]


def milestones(folder: Path) -> dict[str, int]:
    """Evaluations "checkpoint_STEPS" of a run, earlier in training -> steps, ascending."""
    names = {name: int(name.split("_")[1]) for name in result_names(folder) if name.startswith("checkpoint_")}
    return dict(sorted(names.items(), key=lambda each: each[1]))


def all_have_results(runs: Sequence[Path], name: str) -> bool:
    """True if all runs have an evaluation of this name."""
    return all(has_results(folder, name) for folder in runs)


def add_gain_table(report: Report, title: str, rows: Sequence[Sequence[Any]]) -> None:
    """Add a table of `gain_row`s."""
    header = ["agent", "seeds", "episode", "success 1st %", "last %", "gain", "SPL 1st", "last", "ratio"]
    add_table(report, title, header, rows)


def add_episode_range_table(report: Report, title: str, runs: Sequence[Path], name: str) -> None:
    """Add a table of success and SPL in episodes 1, 2, 3 to 4, 5 to 8 and so on.

    Args:
        report: The page.
        title: Title of the table.
        runs: Folders of the runs, one per seed.
        name: Name of the evaluation.
    """
    success, spl = (metric_means(runs, metric, name=name) for metric in ("success", "spl"))
    ends = [0, *(2**k for k in range(success.shape[1].bit_length()))]
    rows = []
    for begin, end in pairwise(ends):
        episodes = str(end) if end == begin + 1 else f"{begin + 1} to {end}"
        rows.append([episodes, *(format_digits(part[:, begin:end].mean(1)) for part in (100 * success, spl))])
    add_table(report, title, ["episodes", "success %", "SPL"], rows)


def add_demonstration_table(
    report: Report, runs: Sequence[Path], counts: Iterable[int], longer: str, note: str
) -> None:
    """Add a table of success in the episode after N demonstrations, and after N own episodes.

    Args:
        report: The page.
        runs: Folders of the runs, one per seed, with evaluations "demonstrations_N".
        counts: Numbers of demonstrations, N.
        longer: Name of an evaluation with more episodes, used where "evaluation" has too few.
        note: Words after a value of that evaluation.
    """
    own, long = (metric_means(runs, "success", name=name) for name in ("evaluation", longer))
    rows: list[list[Any]] = [[0, format_digits(100 * own[:, 0]), format_digits(100 * own[:, 0])]]
    for count in counts:
        after = metric_means(runs, "success", name=f"demonstrations_{count}")[:, 0]
        played = "-"
        if count < own.shape[1]:
            played = format_digits(100 * own[:, count])
        elif count < long.shape[1]:
            played = f"{format_digits(100 * long[:, count])} ({note})"
        rows.append([count, format_digits(100 * after), played])
    header = ["N", "success % after N demonstrations", "after N episodes of its own"]
    add_table(report, "The next episode after demonstrations of the oracle", header, rows)


def add_curves(
    report: Report, picture: str, runs: Mapping[str, Sequence[Path]], metric: str, name: str = "evaluation"
) -> None:
    """Draw a metric by episode of the trial: mean and 95 % interval over runs.

    Args:
        report: The page.
        picture: Name of the picture.
        runs: Agent -> folders of its runs, one per seed.
        metric: Name of the metric.
        name: Name of the evaluation.
    """
    curves = {agent: mean_curve(metric_means(folders, metric, name=name)) for agent, folders in runs.items()}
    report.picture(picture, figure_png(in_context_figure(curves, metric)), metric)


def mean_curve(sample: np.ndarray) -> dict[str, list[float]]:
    """Mean and margin of the 95 % interval by episode, as `in_context_figure` draws them.

    Args:
        sample: float64, (R, E) of R runs.
    """
    mean, margin = mean_and_margin(sample)
    return {"mean": mean.tolist(), "margin": margin.tolist()}
