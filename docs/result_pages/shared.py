"""Folders of runs, tables as Markdown and panels of figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memenvs.agents.experiments.statistics import format_runs

RESULTS = Path(__file__).parents[2] / "results"
SEEDS = (0, 1, 2)
#: Font size, in a figure of 8 inches that is read at 400 pixels.
FONT = 16
MARKERS = "osD^vPX*"
#: Runs without seeds: policies that are not trained.
UNTRAINED = ("random", "oracle", "window4", "memoryless")
Rows = Sequence[Sequence[str]]


def folders(study: str, run: str) -> list[Path]:
    """Folders of a run's seeds, those that its study has."""
    found = [RESULTS / study / f"{run}-{seed}" for seed in SEEDS]
    return found if run not in UNTRAINED else []


def print_table(title: str, header: Sequence[str], rows: Rows) -> None:
    """Print a table as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    print(f"\n{title}")
    for line in lines:
        print(("| " + " | ".join(line) + " |").replace("+-", "±"))


def format_fixed(sample: np.ndarray, decimals: int) -> str:
    """Mean and margin of the 95 % interval with this number of decimals; see `format_runs`."""
    return format_runs(sample, f".{decimals}f", f".{decimals}f")


def new_figure(height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure of 8 inches and its panels, side by side."""
    figure = Figure(figsize=(8, height), dpi=100, layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(1, panels, sharey=True)))
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.grid(alpha=0.25)
        each.tick_params(labelsize=FONT - 2)
    return figure, axes


def label_axes(axes: Axes, x: str, y: str = "") -> None:
    """Name the axes of a panel."""
    axes.set_xlabel(x, fontsize=FONT)
    axes.set_ylabel(y, fontsize=FONT)
