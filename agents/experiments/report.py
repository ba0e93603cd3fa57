"""An HTML page with its pictures beside it, its tables (also printed) and its figures."""

from __future__ import annotations

import base64
import html
import io
import itertools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator
from PIL import Image

from memenvs.agents.experiments.statistics import seed_interval
from memenvs.files import write_file

MARKERS = "os^DvPX*"
"""Marks of lines in turn, to distinguish them without colours."""
NUM_MARKERS = 12
"""Most points of a line that are marked."""
LABEL_WIDTH = 26
"""Characters of a line of the label of the vertical axis."""
LEGEND_WIDTH = 46
"""Characters of a line of the legend, the marks among them."""
MAX_STEPS = 300
"""Most points of a mean over runs."""

_STYLE = (
    ":root{color-scheme:light dark;--text:#222;--soft:#555;--line:#ddd;--strong:#888;--box:#f3f5f9;--page:#fff}"
    "@media(prefers-color-scheme:dark){"
    ":root{--text:#e4e6ea;--soft:#a8adb6;--line:#3a3f47;--strong:#7a808a;--box:#23272e;--page:#15181c}}"
    "body{font:18px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1.5rem;"
    "color:var(--text);background:var(--page);overflow-wrap:anywhere}"
    "h1{font-size:2rem;line-height:1.2}h2{font-size:1.4rem;margin-top:2.5rem;border-bottom:1px solid var(--line)}"
    "img{max-width:100%;border-radius:6px}table{border-collapse:collapse;margin:1rem 0}"
    "td,th{border-bottom:1px solid var(--line);padding:.35rem .9rem;text-align:right;"
    "font-variant-numeric:tabular-nums;overflow-wrap:normal}"
    "td{white-space:nowrap}th{border-bottom:2px solid var(--strong);vertical-align:bottom}"
    "th:first-child,td:first-child{text-align:left}"
    "pre{background:var(--box);padding:1rem;overflow:auto;font-size:.8rem;overflow-wrap:normal}"
    "figure{display:inline-block;margin:.5rem 0;vertical-align:top}figcaption{font-size:.9rem;color:var(--soft)}"
    "summary{cursor:pointer;margin:.5rem 0}.wide{display:block;margin:1rem 0;overflow-x:auto}"
    ".cards{display:flex;flex-wrap:wrap;gap:1rem}"
    ".card{flex:1 1 10rem;background:var(--box);border-radius:8px;padding:1rem}"
    ".card b{display:block;font-size:2.2rem;line-height:1.1}.card small{display:block;color:var(--soft)}"
    "@media(max-width:40rem){body{font-size:16px;margin:1rem auto;padding:0 1rem}h1{font-size:1.5rem}"
    "td,th{padding:.3rem .5rem}.cards{gap:.6rem}.card{flex-basis:8rem;padding:.7rem}.card b{font-size:1.7rem}}"
)
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7f3c8d")
"""Colours of lines in turn, safe for colour blindness (after Okabe and Ito)."""
BASELINES: dict[str, tuple[str, Any]] = {
    "random": ("#777777", ":"),
    "oracle": ("#222222", "--"),
    "memoryless": ("#555555", "-."),
    "window4": ("#999999", (0, (5, 1, 1, 1, 1, 1))),
}
"""Policies that are not trained -> colour and dashes; all but random and oracle are scripted rules of some ids."""


@dataclass(frozen=True, eq=False)
class IntervalCurve:
    """A line with an interval around it, each float64, (P,).

    Attributes:
        x: Positions on the horizontal axis.
        mean: The line.
        low: Lower end of the interval.
        high: Upper end.
        parts: Lines that the mean is of, one per seed, drawn thinly; none for a single seed.
    """

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    parts: tuple[np.ndarray, ...] = ()


def interval_figure(curves: Mapping[str, IntervalCurve], x_label: str, y_label: str) -> Figure:
    """Draw lines with their intervals, one per name; names of `BASELINES` are dashed.

    Args:
        curves: Name -> line.
        x_label: Label of the horizontal axis.
        y_label: Label of the vertical axis.
    """
    figure, axes = _figure()
    styles = itertools.cycle(zip(COLOURS, MARKERS, strict=True))
    for name, curve in curves.items():
        if name in BASELINES:
            colour, dashes = BASELINES[name]
            style: dict[str, Any] = {"linestyle": dashes, "linewidth": 2.0}
        else:
            colour, marker = next(styles)
            every = max(1, -(-len(curve.x) // NUM_MARKERS))
            style = {"linewidth": 2.4, "marker": marker, "markersize": 6, "markevery": every}
        for part in curve.parts:
            axes.plot(curve.x, part, color=colour, linewidth=0.8, alpha=0.4)
        axes.plot(curve.x, curve.mean, color=colour, label=name, **style)
        if name not in BASELINES:
            axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)
    axes.set_xlabel(x_label)
    axes.set_ylabel(textwrap.fill(y_label, LABEL_WIDTH))
    positions = {float(x) for curve in curves.values() for x in curve.x}
    locator = MaxNLocator(nbins=6, integer=True, steps=[1, 2, 5, 10])
    axes.xaxis.set_major_locator(FixedLocator(sorted(positions)) if len(positions) == 1 else locator)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if not any((curve.low < 0).any() for curve in curves.values()):
        axes.set_ylim(bottom=0)
    if len(curves) > 1:  # above the lines, which it would hide
        columns = min(4, max(1, LEGEND_WIDTH // (6 + max(map(len, curves)))))
        axes.legend(frameon=False, fontsize=13, ncols=columns, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    return figure


def learning_figure(
    groups: Mapping[str, Sequence[Mapping[str, Sequence[tuple[int, float]]]]],
    metric: str = "rollout/ep_rew_mean",
    unit: str = "environment steps",
    label: str | None = None,
) -> Figure:
    """Draw a logged metric over the steps of training, one line per group of runs.

    Args:
        groups: Name -> metrics of each run, as `RunDirectory.metrics` gives them; their mean is drawn.
        metric: Key of the metric.
        unit: Unit of the steps, on the horizontal axis.
        label: Label of the vertical axis; None: the metric.
    """
    curves = {}
    for name, runs in groups.items():
        logged = [np.array(metrics[metric], float) for metrics in runs if metrics.get(metric)]
        if logged:
            curves[name] = _mean_curve(logged)
    return interval_figure(curves, unit, metric if label is None else label)


def _mean_curve(logged: Sequence[np.ndarray]) -> IntervalCurve:
    """Mean over runs, of points (step, value), at the steps that lie within the log of every run."""
    first, last = (limit(points[end, 0] for points in logged) for limit, end in ((max, 0), (min, -1)))
    steps = np.unique(np.concatenate([points[:, 0] for points in logged]))
    steps = steps[(first <= steps) & (steps <= last)] if first <= last else steps
    if len(steps) > MAX_STEPS:
        steps = steps[np.linspace(0, len(steps) - 1, MAX_STEPS).astype(int)]
    values = np.array([np.interp(steps, points[:, 0], points[:, 1]) for points in logged])
    return IntervalCurve(steps, *seed_interval(values), tuple(values) if len(values) > 1 else ())


def in_context_figure(curves: Mapping[str, Mapping[str, Sequence[float]]], metric: str) -> Figure:
    """Draw a metric by episode of the trial with its error, one line per policy.

    Args:
        curves: Name -> {"mean", "stderr"}, as in `TrialResults.to_json`, or {"mean", "margin"} of several runs.
        metric: Name of the metric.
    """
    return interval_figure(_interval_curves(curves, 1), "episode of the trial", metric)


def step_figure(curves: Mapping[str, Mapping[str, Sequence[float]]], metric: str) -> Figure:
    """Draw a metric by step of the episode with its standard error, one line per policy.

    Args:
        curves: Name -> {"mean", "stderr"}, from the start on, as in `memenvs.agents.experiments.paths.curve_by_step`.
        metric: Name of the metric.
    """
    return interval_figure(_interval_curves(curves, 0), "step of the episode", metric)


def figure_png(figure: Figure) -> bytes:
    """Encode a figure as PNG."""
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    return buffer.getvalue()


def small_png(figure: Figure) -> bytes:
    """Encode a figure as PNG with 256 colours, in a third of the bytes.

    Only the smoothed edges of lines and letters change, by little.
    """
    image = Image.open(io.BytesIO(figure_png(figure))).convert("RGB")
    buffer = io.BytesIO()
    image.quantize(256, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def image_png(image: np.ndarray) -> bytes:
    """Encode an image, uint8, (H, W, 3), as PNG."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "png")
    return buffer.getvalue()


class Report:
    """A page that is filled from top to bottom and written at once.

    Args:
        title: Heading.
        folder: Folder for the pictures, beside the page; None keeps them in the page only.
    """

    def __init__(self, title: str, folder: Path | None = None) -> None:
        self._title = title
        self._folder = folder
        self._parts: list[str] = []

    def heading(self, text: str) -> None:
        """Begin a section."""
        self._parts.append(f"<h2>{html.escape(text)}</h2>")

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(f"<p>{html.escape(text)}</p>")

    def markup(self, text: str) -> None:
        """Add HTML as it is; what comes from outside must have been escaped."""
        self._parts.append(text)

    def code(self, title: str, text: str) -> None:
        """Add preformatted text that opens by a click on its title."""
        self._parts.append(f"<details><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>")

    def cards(self, cards: Sequence[tuple[str, str, str]]) -> None:
        """Add large numbers side by side, each as (label, number, note)."""
        texts = (tuple(map(html.escape, card)) for card in cards)
        divisions = (
            f'<div class="card">{label}<b>{number}</b><small>{note}</small></div>' for label, number, note in texts
        )
        self._parts.append(f'<div class="cards">{"".join(divisions)}</div>')

    def picture(self, name: str, data: bytes, caption: str = "", columns: int = 1, *, wide: bool = False) -> None:
        """Add a picture, in the page and as a file.

        Args:
            name: Stem of the file.
            data: The picture, PNG or WebP.
            caption: Text below it.
            columns: Pictures that fit side by side.
            wide: Let a picture with small text take the width of the page.
        """
        kind = "webp" if data[8:12] == b"WEBP" else "png"
        if self._folder is not None:
            write_file(self._folder / f"{name}.{kind}", data)
        encoded = base64.b64encode(data).decode()
        caption = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
        style = (
            f"max-width:{'100%' if wide else '46rem'}"
            if columns == 1
            else f"max-width:calc({100 // columns}% - 1.2rem);margin-right:1rem"
        )
        width = f' style="{style}"'
        self._parts.append(
            f'<figure{width}><img alt="{html.escape(name)}" src="data:image/{kind};base64,{encoded}">{caption}</figure>'
        )

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add a table; floats get three digits."""

        def cells(kind: str, values: Sequence[Any]) -> str:
            texts = (f"{value:.3g}" if isinstance(value, float) else str(value) for value in values)
            return "<tr>" + "".join(f"<{kind}>{html.escape(value)}</{kind}>" for value in texts) + "</tr>"

        table = cells("th", header) + "".join(cells("td", row) for row in rows)
        self._parts.append(f'<div class="wide"><table>{table}</table></div>')

    def write(self, path: Path) -> Path:
        """Write the page and return its path."""
        title = html.escape(self._title)
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>{title}</title><style>{_STYLE}</style>"
            f"<h1>{title}</h1>{''.join(self._parts)}</html>"
        )
        write_file(path, page.encode())
        return path


def _figure() -> tuple[Figure, Any]:
    """An empty figure and its axes."""
    figure = Figure(figsize=(6.4, 4.2), dpi=200, layout="constrained")  # readable on a slide and on a phone
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.tick_params(labelsize=13)
    axes.xaxis.label.set_fontsize(15)
    axes.yaxis.label.set_fontsize(15)
    return figure, axes


def _interval_curves(curves: Mapping[str, Mapping[str, Sequence[float]]], first: int) -> dict[str, IntervalCurve]:
    """Lines with an interval around them, over indices from `first` on."""
    lines = {}
    for name, curve in curves.items():
        mean, half = np.array(curve["mean"]), np.array(curve["margin" if "margin" in curve else "stderr"], float)
        lines[name] = IntervalCurve(np.arange(first, first + len(mean)), mean, mean - half, mean + half)
    return lines
