"""Runs of picture tasks: training, evaluation, and the tables and figures over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from memenvs.agents.experiments.config import has_checkpoint
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.prediction_experiment import trained_model
from memenvs.agents.experiments.report import Report, add_table, figure_png
from memenvs.agents.experiments.statistics import format_digits
from memenvs.agents.experiments.train import train_run
from memenvs.agents.papers.sat.figures import matrix_figure, sample_answers, strip_figure
from memenvs.agents.papers.sat.learner import SATPrediction
from memenvs.agents.studies.study_results import has_results, metric_means
from memenvs.retention import STRATEGIES

Runs = Mapping[str, Sequence[Path]]
"""Name of a run -> folders, one per seed."""
TITLES = {
    "faces": "FFHQ-world: patches from a memory with and without places",
    "codes": "FFHQ-world: codes of places",
    "longstay": "FFHQ-world with a long stay: what to keep",
    "ballet3d": "Ballet3D: what to keep for which task",
    "recall": "ColorRecall and ViewRecall: what to keep",
}
"""Table -> its title."""
STRIP_SEED = 1
"""Seed of the episodes whose answers are drawn."""


def train_and_evaluate(run: RunDirectory, quiet: bool) -> None:
    """Train a run to its end, evaluate it and draw answers and memory, unless that is done.

    Args:
        run: The folder.
        quiet: Show no progress bar.
    """
    train_run(run, quiet=quiet)
    if not has_results(run.path, "evaluation"):
        run.config.make_experiment().evaluate(run, quiet=quiet)


def add_picture_table(report: Report, table: str, runs: Runs) -> None:
    """Add one table with its figures.

    Args:
        report: The page.
        table: One of `TITLES`.
        runs: Its runs.
    """
    if table == "ballet3d":
        _add_matrix(report, runs)
    else:
        _add_errors(report, table, runs)
    if table != "codes":
        _add_strips(report, table, runs)


def short_name(preset: str) -> str:
    """Name of a variant without its preset."""
    return preset.rpartition(":")[2]


def _add_errors(report: Report, table: str, runs: Runs) -> None:
    """Add score, share of answers in memory and preferences of allocators, each run a row."""
    rows = []
    for name, folders in runs.items():
        is_class = short_name(name).startswith("colour")
        score = metric_means(folders, "accuracy" if is_class else "mse")
        cells = [short_name(name), len(folders), f"{'accuracy' if is_class else 'MSE'} {format_digits(score)}"]
        cells.append(f"{100 * metric_means(folders, 'kept').mean():.1f}")
        task = {"colour": "colour", "view": "view"}.get(short_name(name).split("-")[0], "faces")
        is_allocated = short_name(name).endswith("-ama")
        share = metric_means(folders, f"q_{task}_mvfo") if is_allocated else None
        cells.append("-" if share is None else format_digits(share))
        rows.append(cells)
    header = ["variant", "seeds", "score", "answers in memory, %", "softmax(Q) of MVFO"]
    add_table(report, TITLES[table], header, rows)


def _add_matrix(report: Report, runs: Runs) -> None:
    """Add errors of Ballet3D by task and strategy, as tables and as a figure."""
    errors = [[metric_means(folders, f"mse_{task}") for folders in runs.values()] for task in STRATEGIES]
    columns = [short_name(name).partition("-")[2].upper() for name in runs]
    tasks = [task.upper() for task in STRATEGIES]
    rows = [[task, *(format_digits(each) for each in row)] for task, row in zip(tasks, errors, strict=True)]
    add_table(report, f"{TITLES['ballet3d']}, MSE", ["task", *columns], rows)
    if all(task in columns for task in tasks) and len({len(folders) for folders in runs.values()}) == 1:
        # Seed by seed, since an order holds only if it holds with each.
        own = np.mean([row[columns.index(task)] for task, row in zip(tasks, errors, strict=True)], 0)  # (seeds,)
        means = [np.mean([row[column] for row in errors], 0) for column in range(len(columns))]
        seeds = [folder.name.rpartition("-")[2] for folder in next(iter(runs.values()))]
        by_seed = zip(seeds, own, *means, strict=True)
        rows = [[seed, *(f"{each:.3g}" for each in found)] for seed, *found in by_seed]
        add_table(report, "Mean over tasks", ["seed", "own strategy of each task", *columns], rows)
    means_by_task = np.array([[each.mean() for each in row] for row in errors])
    figure = matrix_figure(means_by_task, tasks, columns)
    report.picture("ballet3d", figure_png(figure), "mean squared error by task (rows) and strategy")
    for name, folders in runs.items():
        if name.endswith("-ama"):
            shares = [
                [task.upper(), *(f"{metric_means(folders, f'q_{task}_{s}').mean():.3f}" for s in STRATEGIES)]
                for task in STRATEGIES
            ]
            add_table(report, "softmax(Q) of AMA", ["task", *(s.upper() for s in STRATEGIES)], shares)


def _add_strips(report: Report, table: str, runs: Runs) -> None:
    """Add pictures of the runs of one seed beside the truth, where their checkpoints are there."""
    answers: dict[str, np.ndarray] = {}
    truth = None
    for name, folders in runs.items():
        if short_name(name).startswith("colour") or not has_checkpoint(folders[0]):
            continue
        with RunDirectory(folders[0]) as run:
            model = trained_model(run)
        assert isinstance(model, SATPrediction)
        truth, answers[short_name(name)] = sample_answers(model, STRIP_SEED)
    if truth is not None:
        figure = strip_figure(truth, answers)
        report.picture(f"{table}_strips", figure_png(figure), "the right pictures, and those of each run", wide=True)
