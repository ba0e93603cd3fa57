"""Figures of studies: scores with intervals, tables as heat maps, learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

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


def share_figure(shares: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> Figure:
    """Draw a table of shares as a heat map with percentages.

    Args:
        shares: float64, (rows, columns), in [0, 1]; NaN stays empty.
        rows: Names of the rows.
        columns: Names of the columns.
    """
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(shares, vmin=0, vmax=1, cmap="viridis")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    for (i, j), share in np.ndenumerate(shares):
        if np.isfinite(share):
            axes.text(j, i, f"{100 * share:.0f}", ha="center", va="center", color="white" if share < 0.7 else "black")
    return figure


def accuracy_figure(curves: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Draw validation accuracy by batches and by hours: a line per run, a colour per preset.

    Args:
        curves: Name of a preset -> "batches", "hours" and "accuracy" of each of its runs.
    """
    figure = Figure(figsize=(10, 4), dpi=120, layout="constrained")
    by_batch, by_time = figure.subplots(1, 2, sharey=True)
    for colour, (name, runs) in enumerate(curves.items()):
        for number, points in enumerate(runs):
            label = name if number == 0 else None
            by_batch.plot(points["batches"], points["accuracy"], f"C{colour}", label=label)
            by_time.plot(points["hours"], points["accuracy"], f"C{colour}")
    by_batch.xaxis.set_major_formatter(EngFormatter())
    by_batch.set_xlabel("batches")
    by_time.set_xlabel("hours")
    by_batch.set_ylabel("right answers, validation")
    by_batch.legend(frameon=False)
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
