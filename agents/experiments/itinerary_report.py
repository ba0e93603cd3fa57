"""The part of a report about itineraries: a figure and what is lost by the changes of home."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.config import ITINERARY_FILES
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.itinerary import MEANINGS
from memenvs.agents.experiments.metric_labels import metric_label
from memenvs.agents.experiments.report import BASELINES, IntervalCurve, Report, figure_png, interval_figure
from memenvs.agents.experiments.run_report import (
    NORMAL_95,
    Evaluation,
    evaluations_of,
    score_curve,
    with_interval,
)
from memenvs.agents.experiments.statistics import seed_interval
from memenvs.files import list_files
from memenvs.itineraries import visits


def add_itineraries(report: Report, runs: Sequence[RunDirectory]) -> None:
    """Add a figure and a table of each itinerary in which runs were evaluated.

    Raises:
        ValueError: An evaluation file cannot be read.
    """
    score = runs[0].config.score
    files = {file.name for run in runs for file in list_files(run.path, f"{ITINERARY_FILES}*.json")}
    for file in ("evaluation.json", *sorted(files)):
        evaluations: dict[str, dict[str, list[Evaluation]]] = {}  # of each itinerary: with --name, runs may have others
        for name, seeds in evaluations_of(runs, file).items():
            for data in seeds:
                if "itinerary" in data and score in data["metrics"]:
                    of_name = evaluations.setdefault(data["itinerary"]["letters"], {})
                    of_name.setdefault(name, []).append(data)
        for itinerary in sorted(evaluations):
            _add_itinerary(report, evaluations[itinerary], score, itinerary)


def _add_itinerary(report: Report, evaluations: Mapping[str, Sequence[Evaluation]], score: str, itinerary: str) -> None:
    """Add the figure and the table of one itinerary; see `score_curve` for the evaluations."""
    label = metric_label(score)
    report.heading(f"In other homes and back: {itinerary}")
    report.text(
        "Each letter is an episode in the home of that letter. The memory is carried from home to home; the second "
        "line of an agent, emptied, is that of the same trials with a memory that is emptied at each change."
    )
    report.picture(
        f"itinerary_{itinerary}",
        figure_png(itinerary_figure(evaluations, score, itinerary)),
        f"{label[:1].upper()}{label[1:]} by episode of the trial.",
    )
    rows = []
    for name, seeds in evaluations.items():
        parts = [data["itinerary"]["metrics"][score] for data in seeds]
        rows.append([name, len(seeds), *(_interval([part[key] for part in parts if key in part]) for key in MEANINGS)])
    report.table(["policy", "seeds", *MEANINGS], rows)
    report.text("; ".join(f"{name}: {meaning}" for name, meaning in MEANINGS.items()) + ".")


def itinerary_figure(evaluations: Mapping[str, Sequence[Evaluation]], score: str, itinerary: str) -> Figure:
    """Draw a metric by episode, of a carried memory and of one that is emptied at each change.

    Args:
        evaluations: Policy name -> `TrialResults.to_json` of each seed.
        score: Name of the metric.
        itinerary: Letters of the episodes, which name the visits.
    """
    curves: dict[str, IntervalCurve] = {}
    for name, seeds in evaluations.items():
        curves[name] = score_curve(seeds, score, 1)
        parts = [data["itinerary"]["metrics"][score] for data in seeds]
        fresh: list[Any] = [{"metrics": {score: part["fresh"]}} for part in parts if "fresh" in part]
        if fresh and name not in BASELINES:
            curves[f"{name}, emptied"] = score_curve(fresh, score, 1)
    figure = interval_figure(curves, "episode of the trial", metric_label(score))
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    axes.set_ylim(top=high + 0.12 * (high - low))  # the letters stand above the lines
    for letter, episodes in visits(itinerary):
        if episodes[0]:
            axes.axvline(episodes[0] + 0.5, color="#999999", linewidth=1.0)
        centre = (episodes[0] + episodes[-1]) / 2 + 1
        axes.text(centre, 0.98, letter, transform=axes.get_xaxis_transform(), fontsize=15, ha="center", va="top")
    return figure


def _interval(scores: Sequence[Mapping[str, float]]) -> str:
    """Mean of a score with its interval: over trials for one seed, else over seeds; "-" without any."""
    if not scores:
        return "-"
    means = np.array([[value["mean"]] for value in scores])
    if len(scores) > 1:
        return with_interval(IntervalCurve(np.zeros(1), *seed_interval(means), tuple(means)), 0)
    margin = NORMAL_95 * scores[0]["stderr"]
    return with_interval(IntervalCurve(np.zeros(1), means[0], means[0] - margin, means[0] + margin), 0)
