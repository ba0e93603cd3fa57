"""Report of one or more runs: an HTML page with its pictures beside it."""

from __future__ import annotations

import base64
import html
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import Image

from memenvs.agents.experiments.directory import VALIDATION, VERSIONS, RunDirectory
from memenvs.checks import choices_for
from memenvs.files import write_file
from memenvs.json_records import Field, parse_json

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2rem}img{max-width:100%;border-radius:4px}"
    "table{border-collapse:collapse;margin:1rem 0}td,th{border:1px solid #ccc;padding:.2rem .6rem;text-align:right}"
    "th:first-child,td:first-child{text-align:left}pre{background:#f5f5f5;padding:1rem;overflow:auto;font-size:.8rem}"
    "figure{display:inline-block;margin:.5rem;vertical-align:top}figcaption{font-size:.85rem;color:#555}"
)


def learning_figure(
    runs: Mapping[str, Mapping[str, Sequence[tuple[int, float]]]],
    metric: str = "rollout/ep_rew_mean",
    unit: str = "environment steps",
    label: str | None = None,
) -> Figure:
    """Draw a logged metric over the steps of training, one line per run.

    Args:
        runs: Name -> metrics, as `RunDirectory.metrics` gives them.
        metric: Key of the metric.
        unit: Unit of the steps, on the horizontal axis.
        label: Label of the vertical axis; None: the metric.
    """
    figure, axes = _figure()
    for name, metrics in runs.items():
        points = metrics.get(metric, [])
        marker = "o" if len(points) == 1 else None
        axes.plot([step for step, _ in points], [value for _, value in points], marker=marker, label=name)
    axes.set_xlabel(unit)
    axes.set_ylabel(metric if label is None else label)
    if len(runs) > 1:
        axes.legend(frameon=False)
    return figure


def in_context_figure(curves: Mapping[str, Mapping[str, Sequence[float]]], metric: str) -> Figure:
    """Draw a metric by episode of the trial with its standard error, one line per policy.

    Args:
        curves: Name -> {"mean", "stderr"}, as in `TrialResults.to_json`.
        metric: Name of the metric.
    """
    figure, axes = _bands(curves, 1, marker="o", markersize=3)
    axes.set_xlabel("episode of the trial")
    axes.set_ylabel(metric)
    return figure


def step_figure(curves: Mapping[str, Mapping[str, Sequence[float]]], metric: str) -> Figure:
    """Draw a metric by step of the episode with its standard error, one line per policy.

    Args:
        curves: Name -> {"mean", "stderr"}, from the start on, as in `memenvs.agents.experiments.paths.curve_by_step`.
        metric: Name of the metric.
    """
    figure, axes = _bands(curves, 0)
    axes.set_xlabel("step of the episode")
    axes.set_ylabel(metric)
    return figure


def figure_png(figure: Figure) -> bytes:
    """Encode a figure as PNG."""
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
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

    def code(self, text: str) -> None:
        """Add preformatted text."""
        self._parts.append(f"<pre>{html.escape(text)}</pre>")

    def picture(self, name: str, png: bytes, caption: str = "", columns: int = 1) -> None:
        """Add a picture, in the page and as a file.

        Args:
            name: Stem of the file.
            png: The picture.
            caption: Text below it.
            columns: Pictures that fit side by side.
        """
        if self._folder is not None:
            write_file(self._folder / f"{name}.png", png)
        data = base64.b64encode(png).decode()
        caption = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
        width = f' style="max-width:calc({100 // columns}% - 1.2rem)"' if columns > 1 else ""
        self._parts.append(
            f'<figure{width}><img alt="{html.escape(name)}" src="data:image/png;base64,{data}">{caption}</figure>'
        )

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add a table; floats get three digits."""

        def cells(kind: str, values: Sequence[Any]) -> str:
            shown = (f"{value:.3g}" if isinstance(value, float) else str(value) for value in values)
            return "<tr>" + "".join(f"<{kind}>{html.escape(value)}</{kind}>" for value in shown) + "</tr>"

        self._parts.append("<table>" + cells("th", header) + "".join(cells("td", row) for row in rows) + "</table>")

    def write(self, path: Path) -> Path:
        """Write the page and return its path."""
        title = html.escape(self._title)
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
            f"<h1>{title}</h1>{''.join(self._parts)}</html>"
        )
        write_file(path, page.encode())
        return path


def add_table(report: Report, title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Add a table with a title to the page, and print it as Markdown."""
    report.heading(title)
    report.table(header, rows)
    print(f"\n{title}\n| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


def add_runs(report: Report, runs: Sequence[RunDirectory]) -> None:
    """Add learning curves of runs that act, and in-context curves where there is an evaluation.

    Raises:
        ValueError: An evaluation file cannot be read, or has no metric of the name that `score` has.
    """
    _add_learning(report, runs)
    curves: dict[str, dict[str, Any]] = {}
    for run in runs:
        for name, data in read_evaluation(run).items():
            curves[name if len(runs) == 1 else f"{run.path.name}: {name}"] = data
    if curves:
        _add_in_context(report, curves, runs[0].config.score)


def _add_learning(report: Report, runs: Sequence[RunDirectory]) -> None:
    """Add figures of the log, and of validation where there is one."""
    report.heading("Learning")
    metrics = {run.path.name: run.metrics() for run in runs}
    units = {run.config.kind.unit for run in runs}
    unit = units.pop() if len(units) == 1 else "environment steps"
    learning_curves = _learning_curves(runs)
    logged = [metric for metric in learning_curves if any(metric in each for each in metrics.values())]
    for metric in logged or list(learning_curves)[-1:]:
        name, label = learning_curves[metric]
        report.picture(name, figure_png(learning_figure(metrics, metric, unit, label)))
    validated = {run.path.name: run.metrics() for run in runs if run.config.validation_trials > 0}
    if validated:
        report.picture(
            "validation",
            figure_png(learning_figure(validated, VALIDATION, unit, "return of an episode, validation")),
            "mean return in validation; the checkpoint with the best one is evaluated",
        )


def _add_in_context(report: Report, evaluations: Mapping[str, Mapping[str, Any]], score: str) -> None:
    """Add the score by episode of the trial, or all metrics if each trial is one episode.

    Args:
        report: The page.
        evaluations: Policy name -> `TrialResults.to_json`.
        score: Metric to show.
    """
    report.heading("Within a trial")
    report.text(
        "Each trial is one layout, with an empty memory at its start; mean over trials and standard error. "
        "Below, eval_kwargs are the differences between its environments and those of training."
    )
    curves = {name: data["metrics"][score] for name, data in evaluations.items() if score in data["metrics"]}
    if not curves:
        known = sorted({metric for data in evaluations.values() for metric in data["metrics"]})
        raise ValueError(f"score must be a metric of the evaluation, got {score!r}; {choices_for(score, known)}")
    if all(len(curve["mean"]) <= 1 for curve in curves.values()):  # each trial is one episode
        names = [score, *sorted({metric for policy in curves for metric in evaluations[policy]["metrics"]} - {score})]
        rows = []
        for policy in curves:
            means = [evaluations[policy]["metrics"].get(name, {"mean": []})["mean"] for name in names]
            rows.append([policy, evaluations[policy]["trials"], *(mean[0] if mean else "-" for mean in means)])
        report.table(["policy", "episodes", *names], rows)
        return
    report.picture("in_context", figure_png(in_context_figure(curves, score)))
    rows = [
        [policy, evaluations[policy]["trials"], curve["mean"][0], curve["mean"][-1], len(curve["mean"])]
        for policy, curve in curves.items()
        if curve["mean"]
    ]
    report.table(["policy", "trials", f"{score}, first episode", f"{score}, last episode", "episodes"], rows)


def _learning_curves(runs: Sequence[RunDirectory]) -> dict[str, tuple[str, str]]:
    """Metric -> name of its picture and label of its axis, of each learner."""
    curves: dict[str, tuple[str, str]] = {}
    for run in runs:
        experiment: Any = run.config.kind.make_experiment()
        curves |= experiment.learning_curves
    return curves


def add_predictions(report: Report, runs: Sequence[RunDirectory]) -> None:
    """Add learning curves of runs that learn to predict, and their scores if evaluated.

    Raises:
        ValueError: An evaluation file cannot be read.
    """
    report.heading("Learning")
    metrics = {run.path.name: run.metrics() for run in runs}
    figure = learning_figure(metrics, "validation/accuracy", "batches", "right answers, validation")
    report.picture("predictions", figure_png(figure))
    rows = [
        [run.path.name, who, metric, value["mean"], value["stderr"], data["episodes"]]
        for run in runs
        for who, data in read_evaluation(run).items()
        for metric, value in data["metrics"].items()
    ]
    if rows:
        report.heading("Answers")
        report.text('"ideal" is the chance that the best answer from the same memory is right.')
        report.table(["run", "who", "metric", "mean", "standard error", "episodes"], rows)


def add_demonstrations(report: Report, runs: Sequence[RunDirectory]) -> None:
    """Add scores of the first episode after N demonstrations, and after N own episodes.

    Raises:
        ValueError: An evaluation file cannot be read.
    """
    rows = []
    for run in runs:
        score = run.config.score
        own = read_evaluation(run).get("agent", {"metrics": {}})["metrics"].get(score, {"mean": []})["mean"]
        files = {int(file.stem.split("_")[1]): file for file in run.path.glob("demonstrations_*.json")}
        for count, file in sorted(files.items()):
            root = Field(parse_json(file.read_bytes(), str(file)), str(file))
            agent = root["agent"]
            curve = agent["metrics"].get(score)
            if curve is None:
                continue
            _check_curve(curve, by_episode=True)
            demonstrated = agent["demonstrations"][score].items(1)
            for value in demonstrated:
                _check_number(value)
            if curve.value["mean"]:
                self_played = own[count] if count < len(own) else "-"
                shown = float(np.mean([value.value for value in demonstrated]))
                first = (curve.value["mean"][0], curve.value["stderr"][0])
                rows.append([run.path.name, count, shown, *first, self_played])
    if rows:
        report.heading("After demonstrations")
        report.text(
            "The oracle plays the first N episodes of a trial, which enter the agent's memory; then the agent acts."
        )
        header = [
            "run",
            "N",
            "demonstrations",
            "first episode of the agent",
            "standard error",
            "after N episodes of its own",
        ]
        report.table(header, rows)


def add_maps(report: Report, run: RunDirectory) -> None:
    """Add the maps that the evaluation of a run drew, early episodes first."""
    maps = sorted(run.path.glob("episode_*.png"), key=lambda file: int(file.stem.split("_")[1]))
    if maps:
        report.heading("Paths, early and late in the same trial")
        report.text(
            "On the task's own map, which marks the goal, from blue to red in the order of steps; on navigation graphs "
            "the agent's path is orange and the annotated path blue."
        )
    for file in maps:
        report.picture(file.stem, file.read_bytes(), file.stem.replace("_", " "))


def add_settings(report: Report, runs: Sequence[RunDirectory]) -> None:
    """Add the config of each run, and the versions of packages that it began with."""
    report.heading("Settings")
    for run in runs:
        file = run.path / VERSIONS
        versions = parse_json(file.read_bytes(), str(file)) if file.is_file() else {}
        report.text(", ".join([run.path.name, *(f"{name} {version}" for name, version in versions.items())]))
        report.code(json.dumps(run.config.to_json(), indent=1))


def write_report(runs: Sequence[RunDirectory], folder: Path) -> Path:
    """Write `report.html` with its pictures and return its path."""
    report = Report(", ".join(run.path.name for run in runs), folder)
    groups: dict[Any, list[RunDirectory]] = {}  # runs that are reported by the same function, predictions first
    for run in sorted(runs, key=lambda run: run.config.kind.acts):
        groups.setdefault(type(run.config.kind.make_experiment()).add_to_report, []).append(run)
    for group in groups.values():
        group[0].config.kind.make_experiment().add_to_report(report, group)
    add_settings(report, runs)
    return report.write(folder / "report.html")


def read_evaluation(run: RunDirectory) -> dict[str, dict[str, Any]]:
    """Policy name -> `TrialResults.to_json`; empty if the run was not evaluated.

    Raises:
        ValueError: The file cannot be read or is no evaluation.
    """
    file = run.path / "evaluation.json"
    if not file.is_file():
        return {}
    root = Field(parse_json(file.read_bytes(), str(file)), str(file))
    for policy in _values(root):
        _check_number(policy["trials" if run.config.kind.acts else "episodes"])
        for metric in _values(policy["metrics"]):
            _check_curve(metric, run.config.kind.acts)
    return root.value


def _check_curve(metric: Field, by_episode: bool) -> None:
    """Raise a ValueError unless a metric has mean and standard error, by episode of the trial or one each."""
    means, errors = (metric[key].items() if by_episode else [metric[key]] for key in ("mean", "stderr"))
    if len(means) != len(errors):
        raise metric["stderr"].error(f"a list of {len(means)}, as many as there are means")
    for value in (*means, *errors):
        _check_number(value)


def _check_number(value: Field) -> None:
    """Raise a ValueError unless a value is a number or NaN."""
    if isinstance(value.value, bool) or not isinstance(value.value, int | float) or abs(value.value) == math.inf:
        raise value.error("a number")


def _values(parent: Field) -> list[Field]:
    """Values of a JSON object."""
    if not isinstance(parent.value, dict):
        raise parent.error("a JSON object")
    return [Field(value, parent.source, f"{parent.path}.{key}".lstrip(".")) for key, value in parent.value.items()]


def _figure() -> tuple[Figure, Any]:
    """An empty figure and its axes."""
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    return figure, axes


def _bands(curves: Mapping[str, Mapping[str, Sequence[float]]], first: int, **style: Any) -> tuple[Figure, Any]:
    """Draw lines with bands of a standard error, over indices from `first` on."""
    figure, axes = _figure()
    for name, curve in curves.items():
        mean = np.array(curve["mean"])
        stderr = np.array(curve["stderr"], float)
        x = np.arange(first, first + len(mean))
        (line,) = axes.plot(x, mean, label=name, **style)
        axes.fill_between(x, mean - stderr, mean + stderr, alpha=0.2, color=line.get_color(), linewidth=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    if not any(value < 0 for curve in curves.values() for value in curve["mean"]):
        axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure, axes
