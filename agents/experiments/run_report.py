"""Report of one or more runs of a task: learning, scores over seeds, paths and settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.agents.experiments.directory import VALIDATION, VERSIONS, RunDirectory
from memenvs.agents.experiments.evaluation_files import read_demonstrated, read_evaluation
from memenvs.agents.experiments.metric_labels import metric_label
from memenvs.agents.experiments.report import (
    BASELINES,
    IntervalCurve,
    Report,
    figure_png,
    interval_figure,
    learning_figure,
)
from memenvs.agents.experiments.seed_groups import check_same_task, group_by_settings
from memenvs.agents.experiments.statistics import MIN_RUNS, interquartile_mean, seed_interval
from memenvs.checks import choices_for
from memenvs.files import numbered_files
from memenvs.json_records import parse_json
from memenvs.registry import ENVIRONMENTS, full_id

MAX_EPISODES = 40
"""Most episodes that are shown one by one; longer trials are shown by means of neighbouring episodes."""
BINS = 20
"""Most of these means."""
ANSWER_SCORES = ("accuracy", "mse")
"""Metrics that say how good predicted answers are."""
NORMAL_95 = 1.96
"""Standard errors on each side of a 95 % interval."""
INTERVALS = (
    "Lines and numbers are means. The 95 % interval beside a number, or around a line, is over trials for a single run "
    "(1.96 standard errors) and over seeds for three or more (Student's t). Of two seeds both values are printed. Thin "
    "lines are single seeds."
)

Runs = Sequence[RunDirectory]
Evaluation = Mapping[str, Any]


def write_report(runs: Runs, folder: Path) -> Path:
    """Write `report.html` with its pictures and return its path.

    Runs that differ in their seed alone are shown by their mean.

    Args:
        runs: Folders, one or more of the same task.
        folder: Folder of the page and its pictures.

    Raises:
        ValueError: The runs are of different tasks, or an evaluation file cannot be read.
    """
    check_same_task({run.path: run.config for run in runs})
    title = " / ".join(_grouped(runs)) if len(runs) > 1 else runs[0].path.resolve().name
    report = Report(f"{title}: {runs[0].config.env}", folder)
    for line in _descriptions(runs):
        report.text(line)
    groups: dict[Any, list[RunDirectory]] = {}  # runs that are reported by the same function
    for run in runs:
        groups.setdefault(type(run.config.make_experiment()).add_to_report, []).append(run)
    for group in groups.values():
        group[0].config.make_experiment().add_to_report(report, group)
    add_settings(report, runs)
    return report.write(folder / "report.html")


def add_runs(report: Report, runs: Runs) -> None:
    """Add scores of runs that act, where there is an evaluation, and their learning curves.

    Raises:
        ValueError: An evaluation file cannot be read, or lacks the metric that the config's `score` names.
    """
    evaluations = evaluations_of(runs)
    if evaluations and not any("itinerary" in data for seeds in evaluations.values() for data in seeds):
        _add_scores(report, evaluations, runs[0].config.score)  # those of itineraries have a figure of their own
    _add_learning(report, runs)


def _grouped(runs: Runs) -> dict[str, list[RunDirectory]]:
    """Name -> runs that differ in their seed alone; "agent" is the name of a single run."""
    if len(runs) == 1:
        return {"agent": list(runs)}
    by_path = {run.path: run for run in runs}
    groups = group_by_settings({path: run.config for path, run in by_path.items()})
    return {name: [by_path[folder] for folder in folders] for name, folders in groups.items()}


def evaluations_of(runs: Runs, file: str = "evaluation.json") -> dict[str, list[Evaluation]]:
    """Read the evaluations of the seeds of each group, and of each baseline.

    Those of a baseline are read once, from the first run that has them.

    Args:
        runs: Folders.
        file: Name of the file in them.
    """
    agents: dict[str, list[Evaluation]] = {}
    baselines: dict[str, list[Evaluation]] = {}
    for name, group in _grouped(runs).items():
        for run in group:
            for policy, data in read_evaluation(run, file).items():
                if policy in BASELINES:
                    baselines.setdefault(policy, [data])
                else:
                    agents.setdefault(name, []).append(data)
    return {**agents, **baselines}


def _add_scores(report: Report, evaluations: Mapping[str, Sequence[Evaluation]], score: str) -> None:
    """Add the score by episode of the trial, or all metrics if each trial is one episode.

    Args:
        report: The page.
        evaluations: Policy name -> `TrialResults.to_json` of each seed.
        score: Metric to show.
    """
    metrics = {metric for seeds in evaluations.values() for data in seeds for metric in data["metrics"]}
    if metrics and score not in metrics:
        raise ValueError(f"score must be a metric of the evaluation, got {score!r}; {choices_for(score, metrics)}")
    lengths = [_num_episodes(seeds, score) for seeds in evaluations.values()]
    lengths = [length for length in lengths if length > 0]
    if not lengths:
        report.heading("Scores")
        report.text("No episode has ended in every trial within the steps of the evaluation.")
        return
    width = 1 if max(lengths) <= MAX_EPISODES else -(-max(lengths) // BINS)
    curves = {name: score_curve(seeds, score, width) for name, seeds in evaluations.items()}
    drawn = {name: curve for name, curve in curves.items() if len(curve.x)}
    single = max(lengths) == 1
    label = metric_label(score)
    report.heading("Scores" if single else "Within a trial")
    report.cards(
        [
            (name, f"{curve.mean[-1]:.3g}", f"{label}{'' if single else ', end of the trial'}{_interval_text(curve)}")
            for name, curve in drawn.items()
        ]
    )
    report.text(
        "Each trial is one layout, with an empty memory at its start. " + INTERVALS + " The settings at the end of the "
        "page name, as eval_kwargs, the differences between the environments of evaluation and those of training."
    )
    if single:
        _add_metrics_table(report, evaluations, score)
        return
    x_label = "episode of the trial" + (f" (means of {width})" if width > 1 else "")
    report.picture(
        "in_context",
        figure_png(interval_figure(drawn, x_label, label)),
        f"{_capital(label)} by episode of the trial. A line that rises shows what the memory is worth.",
    )
    ends = ("first episode", "last episode") if width == 1 else (f"first {width} episodes", f"last {width} episodes")
    several = any(len(seeds) > 1 for seeds in evaluations.values())
    header = ["policy", *(["seeds"] if several else []), "trials", *(f"{label}, {end}" for end in ends)]
    header += [f"interquartile mean, {ends[1]}"] if several else []
    rows = []
    for name, curve in drawn.items():
        seeds = evaluations[name]
        last = [part[-1] for part in curve.parts] or [curve.mean[-1]]
        row = [name, *([len(seeds)] if several else []), sum(data["trials"] for data in seeds)]
        row += [with_interval(curve, 0), with_interval(curve, -1)]
        row += [interquartile_mean(np.array(last))] if several else []
        rows.append([*row, _num_episodes(seeds, score)])
    report.table([*header, "episodes"], rows)


def _num_episodes(seeds: Sequence[Evaluation], score: str) -> int:
    """Episodes that every trial of every seed has reached."""
    return min((len(data["metrics"].get(score, {"mean": []})["mean"]) for data in seeds), default=0)


def score_curve(seeds: Sequence[Evaluation], score: str, width: int) -> IntervalCurve:
    """Compute a metric by episode, with its interval over seeds or, of one seed, over trials.

    Args:
        seeds: `TrialResults.to_json` of each seed.
        score: Name of the metric.
        width: Episodes of which each point is the mean.
    """
    count = _num_episodes(seeds, score)
    starts = np.arange(0, count, width)
    if not count:
        empty = np.zeros(0)
        return IntervalCurve(empty, empty, empty, empty)
    sizes = np.diff([*starts, count])

    def binned(name: str) -> np.ndarray:
        """Means of neighbours, (seeds, bins)."""
        table = np.array([data["metrics"][score][name][:count] for data in seeds], float)
        return np.add.reduceat(table, starts, axis=1) / sizes

    values = binned("mean")
    x = starts + (sizes + 1) / 2  # centre of each bin; episodes count from 1
    if len(seeds) > 1:
        return IntervalCurve(x, *seed_interval(values), tuple(values))
    margin = NORMAL_95 * np.nan_to_num(binned("stderr")[0])
    return IntervalCurve(x, values[0], values[0] - margin, values[0] + margin)


def with_interval(curve: IntervalCurve, i: int) -> str:
    """Format point `i` of a line with its interval; of two seeds, both values."""
    if 1 < len(curve.parts) < MIN_RUNS:
        return ", ".join(f"{part[i]:.3g}" for part in curve.parts)
    return f"{curve.mean[i]:.3g}" + (
        f" ({curve.low[i]:.3g} to {curve.high[i]:.3g})" if curve.low[i] < curve.high[i] else ""
    )


def _interval_text(curve: IntervalCurve) -> str:
    if 1 < len(curve.parts) < MIN_RUNS:
        return f", seeds: {with_interval(curve, -1)}"
    return f", 95\u00a0%: {curve.low[-1]:.3g} to {curve.high[-1]:.3g}" if curve.low[-1] < curve.high[-1] else ""


def _add_metrics_table(report: Report, evaluations: Mapping[str, Sequence[Evaluation]], score: str) -> None:
    """Add a table of all metrics, of trials of one episode: a row each, a column per policy."""
    metrics = {metric for seeds in evaluations.values() for data in seeds for metric in data["metrics"]}
    several = any(len(seeds) > 1 for seeds in evaluations.values())
    rows: list[list[Any]] = [["episodes", *(sum(data["trials"] for data in seeds) for seeds in evaluations.values())]]
    if several:
        rows.insert(0, ["seeds", *map(len, evaluations.values())])
    for name in (score, *sorted(metrics - {score})):
        curves = [score_curve(seeds, name, 1) for seeds in evaluations.values()]
        rows.append([metric_label(name), *(with_interval(curve, 0) if len(curve.x) else "-" for curve in curves)])
        if several and name == score:
            parts = [np.array([part[0] for part in curve.parts] or curve.mean) for curve in curves]
            means = (interquartile_mean(values) if len(values) else "-" for values in parts)
            rows.append([f"{metric_label(name)}, interquartile mean", *means])
    report.table(["metric", *evaluations], rows)


def _add_learning(report: Report, runs: Runs) -> None:
    """Add figures of the log, and of validation where there is one."""
    report.heading("Learning")
    metrics = {name: [run.metrics() for run in group] for name, group in _grouped(runs).items()}
    units = {run.config.kind.unit for run in runs}
    unit = units.pop() if len(units) == 1 else "environment steps"
    learning_curves = _learning_curves(runs)
    logged = [metric for metric in learning_curves if any(metric in run for group in metrics.values() for run in group)]
    for metric in logged or list(learning_curves)[-1:]:  # without a log, an empty figure
        name, label = learning_curves[metric]
        caption = f"{_capital(label)} during training."
        report.picture(name, figure_png(learning_figure(metrics, metric, unit, label)), caption)
    if any(VALIDATION in run for group in metrics.values() for run in group):
        report.picture(
            "validation",
            figure_png(learning_figure(metrics, VALIDATION, unit, "return of an episode, validation")),
            "Mean return in validation; the checkpoint with the best one is evaluated.",
        )


def _learning_curves(runs: Runs) -> dict[str, tuple[str, str]]:
    """Metric -> name of its picture and label of its axis, of each learner."""
    curves: dict[str, tuple[str, str]] = {}
    for run in runs:
        experiment: Any = run.config.make_experiment()
        curves |= experiment.learning_curves
    return curves


def add_demonstrations(report: Report, runs: Runs) -> None:
    """Add scores of the first episode after N demonstrations, and after N own episodes.

    Raises:
        ValueError: An evaluation file cannot be read.
    """
    rows = []
    for name, group in _grouped(runs).items():
        scores_by_count: dict[int, list[tuple[float, float, float]]] = {}  # N -> scores of each seed
        for run in group:
            score = run.config.score
            own = read_evaluation(run).get("agent", {"metrics": {}})["metrics"].get(score, {"mean": []})["mean"]
            for count, (demonstrated, curve) in read_demonstrated(run, score).items():
                if curve:
                    after_own = own[count] if count < len(own) else np.nan
                    scores_by_count.setdefault(count, []).append((float(np.mean(demonstrated)), curve[0], after_own))
        for count, scores in sorted(scores_by_count.items()):
            rows.append([name, len(scores), count, *_seed_means(np.array(scores))])
    if rows:
        report.heading("After demonstrations")
        report.text(
            "The oracle plays the first N episodes of a trial, which enter the agent's memory; then the agent acts."
        )
        own_header = "after N episodes of its own"
        report.table(["agent", "seeds", "N", "demonstrations", "first episode of the agent", own_header], rows)


def _seed_means(values: np.ndarray) -> list[str]:
    """Mean over seeds and interval of each column of (seeds, columns); "-" where one has none."""
    means = IntervalCurve(np.zeros(0), *seed_interval(values), tuple(values))
    return [with_interval(means, i) if np.isfinite(means.mean[i]) else "-" for i in range(values.shape[1])]


def add_maps(report: Report, runs: Runs) -> None:
    """Add the maps of the first seed of each group, early and late episode side by side."""
    groups = _grouped(runs)
    maps = {name: list(numbered_files(group[0].path, "episode_*.png").values()) for name, group in groups.items()}
    if any(maps.values()):
        late = any(len(files) > 1 for files in maps.values())
        report.heading("Paths, early and late in the same trial" if late else "Paths")
        family = next((row.family for row in ENVIRONMENTS if row.id == full_id(runs[0].config.env)), None)
        report.text(
            "On the navigation graph: the agent's path is orange, the annotated path blue."
            if family == "vln"
            else "On the task's own map, which marks the goal; from blue to red in the order of steps."
        )
    for name, files in maps.items():
        prefix = "" if len(groups) == 1 else f"{name}_"
        for file in files:
            caption = f"{'' if len(groups) == 1 else f'{name}, '}{file.stem.replace('_', ' ')}"
            report.picture(f"{prefix}{file.stem}", file.read_bytes(), caption, columns=2)


def add_predictions(report: Report, runs: Runs) -> None:
    """Add learning curves of runs that learn to predict, and their scores if evaluated.

    Raises:
        ValueError: An evaluation file cannot be read.
    """
    groups = _grouped(runs)
    rows = []
    cards = []
    for name, group in groups.items():
        scores: dict[tuple[str, str], list[tuple[float, float, int]]] = {}  # mean, error, episodes of each seed
        for run in group:
            for who, data in read_evaluation(run).items():
                for metric, value in data["metrics"].items():
                    scores.setdefault((who, metric), []).append((value["mean"], value["stderr"], data["episodes"]))
        for (who, metric), seeds in scores.items():
            means, errors, episodes = np.array(seeds, float).T
            if len(seeds) == 1:
                margin = NORMAL_95 * errors
                interval = IntervalCurve(np.zeros(1), means, means - margin, means + margin)
            else:
                interval = IntervalCurve(np.zeros(1), *seed_interval(means[:, None]), tuple(means[:, None]))
            label, mean = metric_label(metric), interquartile_mean(means)
            rows.append([name, who, label, len(seeds), with_interval(interval, 0), mean, int(episodes.sum())])
            if metric in ANSWER_SCORES:
                title = name if who == "agent" else f"{name}, {who}" if len(groups) > 1 else who
                cards.append((title, f"{interval.mean[0]:.3g}", f"{label}{_interval_text(interval)}"))
    if rows:
        report.heading("Answers")
        report.cards(cards)
        ideal = '"ideal" is the chance that the best answer from the same memory is right. '
        report.text(ideal * any(row[1] == "ideal" for row in rows) + INTERVALS)
        report.table(["run", "who", "metric", "seeds", "mean", "interquartile mean", "episodes"], rows)
    report.heading("Learning")
    metrics = {name: [run.metrics() for run in group] for name, group in groups.items()}
    logged = {name for group in metrics.values() for run in group for name in run}
    score = next((name for name in ANSWER_SCORES if f"validation/{name}" in logged), ANSWER_SCORES[0])
    label = metric_label(score)
    figure = learning_figure(metrics, f"validation/{score}", "batches", f"{label}, validation")
    caption = f"{_capital(label)} in validation during training." + f" {INTERVALS}" * (len(runs) > 1 and not rows)
    report.picture("predictions", figure_png(figure), caption)


def _descriptions(runs: Runs) -> list[str]:
    """Learner, memory, length and seeds of each group of runs, and why runs of different length are apart."""
    groups = _grouped(runs)
    lines = []
    for name, group in groups.items():
        config = group[0].config
        memory = config.policy.get("memory")
        seeds = ", ".join(str(run.config.seed) for run in group)
        parts = [
            config.kind.name,
            *([f"memory {memory}"] if memory else []),
            f"{config.total_steps:,} {config.kind.unit}",
        ]
        parts.append(f"seed{'s' * (len(group) > 1)} {seeds}")
        lines.append(("" if len(groups) == 1 else f"{name}: ") + ", ".join(parts) + ".")
    by_settings: dict[str, dict[str, int]] = {}  # settings without the length -> name of each group, and its length
    for name, group in groups.items():
        settings = json.dumps({**replace(group[0].config, seed=0, device="cpu", threads=0, total_steps=1).to_json()})
        by_settings.setdefault(settings, {})[name] = group[0].config.total_steps
    for lengths in by_settings.values():
        if len(lengths) > 1:
            names = " and ".join(f"{name} ({steps:,})" for name, steps in lengths.items())
            lines.append(
                f"{names} differ in total_steps alone, and are not averaged: an agent that was trained for longer is "
                "no further sample of the shorter training."
            )
    return lines


def _capital(text: str) -> str:
    """Begin a sentence with a text."""
    return text[:1].upper() + text[1:]


def add_settings(report: Report, runs: Runs) -> None:
    """Add the config of each run, and the versions of packages that it began with."""
    report.heading("Settings")
    for run in runs:
        file = run.path / VERSIONS
        versions = parse_json(file.read_bytes(), str(file)) if file.is_file() else {}
        if not isinstance(versions, dict):
            raise ValueError(f"{file}: must be a JSON object, got {versions!r}")
        title = ", ".join([run.path.resolve().name, *(f"{name} {version}" for name, version in versions.items())])
        report.code(title, json.dumps(run.config.to_json(), indent=1))
