"""Figures of studies: tables as heat maps, learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter


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
