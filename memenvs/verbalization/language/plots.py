"""Figures of the tables of a model's answers; matplotlib draws them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memenvs.files import write_file
from memenvs.verbalization.language.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "os^DvPX*<>p"


def check_plots(folder: Path) -> None:
    """Make the folder of the figures, before any work is done for them.

    Args:
        folder: The folder; it may be there.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: The folder cannot be made.
    """
    if find_spec("matplotlib") is None:
        raise ImportError("plots need matplotlib; install it with: pip install 'memenvs[agents]'")
    folder.mkdir(parents=True, exist_ok=True)


def draw_tables(tables: Mapping[str, Table], folder: Path) -> list[Path]:
    """Draw each table into a file of its own, `NAME.png`.

    Where columns are lengths of histories or distances, they are the horizontal axis, and each row is a line. Other
    tables have a group of bars for each row.

    Args:
        tables: Tables by name; see `memenvs.verbalization.language.tables.make_tables`.
        folder: Folder of the files; see `check_plots`.

    Returns:
        The files.

    Raises:
        OSError: A file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    files = []
    for name, table in tables.items():
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        draw = _draw_lines if _positions(table) else _draw_bars
        draw(axes, table)
        axes.set_title(table.title, loc="left", fontsize=11)
        axes.set_ylim(bottom=0)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=120)
        files.append(folder / f"{name}.png")
        write_file(files[-1], buffer.getvalue())
    return files


def _positions(table: Table) -> dict[int, int]:
    """Columns that are lengths of histories or distances: column -> number."""
    words = {column: name.split()[-1] for column, name in enumerate(table.columns) if column and name != "all"}
    return {column: int(word) for column, word in words.items()} if all(map(str.isdecimal, words.values())) else {}


def _draw_lines(axes: Axes, table: Table) -> None:
    positions = _positions(table)
    for row, marker in zip(table.rows, _MARKERS * len(table.rows), strict=False):
        points = [(x, 100 * row[column]) for column, x in positions.items() if row[column] is not None]
        if points:
            axes.plot(*np.array(points).T, marker=marker, label=row[0])
    axes.set_xticks(sorted(positions.values()))
    axes.set_xlabel("episodes" if table.columns[1].startswith("length") else "episodes back from the newest")


def _draw_bars(axes: Axes, table: Table) -> None:
    numbers = [
        column for column in range(1, len(table.columns)) if not any(isinstance(row[column], str) for row in table.rows)
    ]
    width = 0.8 / max(1, len(numbers))
    for place, column in enumerate(numbers):
        heights = [
            100 * value if isinstance(value, float) else value or 0 for value in (row[column] for row in table.rows)
        ]
        left = np.arange(len(heights)) + (place - (len(numbers) - 1) / 2) * width
        axes.bar(left, heights, width, label=table.columns[column])
    axes.set_xticks(range(len(table.rows)), [str(row[0]) for row in table.rows], rotation=20, ha="right")
