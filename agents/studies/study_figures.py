"""Figures of studies: scores with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.statistics import bootstrap_interval, mean_and_margin


def bootstrap_figure(points: Sequence[tuple[str, float | None, np.ndarray]], label: str, score: str) -> Figure:
    """Draw means with 95 % bootstrap intervals: lines over an axis, or bars.

    Args:
        points: Name of the line, position on the axis (None for all of them: one bar each), and values,
            float64 (seeds, layouts).
        label: Label of the axis of positions.
        score: Name of the metric.
    """
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    names = [name for name, _, _ in points]
    intervals = np.array([bootstrap_interval(values) for _, _, values in points])  # (points, 3)
    errors = np.abs(intervals[:, 1:].T - intervals[:, 0])
    if points[0][1] is None:
        axes.barh(names[::-1], intervals[::-1, 0], xerr=errors[:, ::-1], color="#8fa8c8", capsize=3)
        axes.set_xlabel(score)
        return figure
    for line in dict.fromkeys(names):
        own = [index for index, name in enumerate(names) if name == line]
        at = np.array([points[index][1] for index in own], np.float64)
        axes.errorbar(at, intervals[own, 0], yerr=errors[:, own], label=line, marker="o", markersize=4, capsize=3)
    axes.set_xlabel(label)
    axes.set_ylabel(score)
    axes.legend(frameon=False)
    return figure


def error_bar_figure(panels: Mapping[str, Mapping[str, Mapping[int, np.ndarray]]], axis: str, label: str) -> Figure:
    """Draw means and 95 % intervals over seeds: a panel per metric, a line per agent.

    Args:
        panels: Metric -> agent -> position on the axis -> values, float64 (seeds,), in %.
        axis: Label of the axis of positions.
        label: End of the label of the other axis, after the metric.
    """
    figure = Figure(figsize=(10, 5), dpi=120, layout="constrained")
    for axes, (metric, agents) in zip(figure.subplots(1, len(panels), sharey=True), panels.items(), strict=True):
        for agent, values in agents.items():
            means, errors = zip(*(mean_and_margin(each) for each in values.values()), strict=True)
            axes.errorbar(list(values), means, errors, marker="o", capsize=3, label=agent)
        axes.set_xticks(sorted({at for values in agents.values() for at in values}))
        axes.set_xlabel(axis)
        axes.set_ylabel(f"{metric.upper()} {label}")
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure
