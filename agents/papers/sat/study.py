"""Runs of the Spatially-Aware Transformer's tables, with their evaluations."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.prediction_experiment import evaluate_predictions, trained_model
from memenvs.agents.experiments.train import train_run
from memenvs.agents.memory.reader import MemoryReader
from memenvs.agents.papers.sat.learner import SATPrediction
from memenvs.agents.papers.sat.model import BalletModel
from memenvs.agents.studies.study_results import has_results, write_result

ROOMS = (4, 6, 8, 10, 12)
"""Numbers of rooms that the table "rooms" evaluates."""
#: Table -> evaluations of its runs besides "evaluation".
EVALUATIONS: dict[str, tuple[str, ...]] = {
    "strategies": ("curve",),
    "rooms": tuple(f"rooms_{rooms}" for rooms in ROOMS),
    "opposite": ("attention",),
    "unlimited": ("curve",),
    "dnc": ("curve",),
    "parity": ("curve",),
}


def train_and_evaluate(run: RunDirectory, quiet: bool, table: str) -> None:
    """Train a run to its end and write the evaluations of a table that are not there.

    Args:
        run: The folder.
        quiet: Show no progress bar.
        table: Name of the table.
    """
    train_run(run, quiet=quiet)
    if not has_results(run.path, "curve"):
        write_result(run.path, "curve", learning_curve(run))
    if not has_results(run.path, "evaluation"):
        evaluate_predictions(run, quiet=quiet)
    for rooms in ROOMS if table == "rooms" else ():
        if not has_results(run.path, f"rooms_{rooms}"):
            evaluate_predictions(run, trained_model(run, {"rooms": rooms}), name=f"rooms_{rooms}", quiet=quiet)
    if table == "opposite" and not has_results(run.path, "attention"):
        write_result(run.path, "attention", attention_by_room(run).tolist())


def learning_curve(run: RunDirectory) -> dict[str, list[Any]]:
    """Accuracy in validation along a training, after batches and hours of training."""
    metrics = run.metrics()
    batches, accuracy = zip(*metrics["validation/accuracy"], strict=True)
    hours = np.cumsum([seconds for _, seconds in metrics["time/seconds"]]) / 3600
    return {"batches": list(batches), "hours": hours.tolist(), "accuracy": list(accuracy)}


@torch.no_grad()
def attention_by_room(run: RunDirectory, episodes: int = 500) -> np.ndarray:
    """Attention of each layer to each room, for questions about each room.

    Args:
        run: Run of one task.
        episodes: Number of episodes.

    Returns:
        float64, (layers, queried rooms, attended rooms); rows sum to 1.
    """
    prediction = trained_model(run)
    assert isinstance(prediction, SATPrediction)
    model = prediction.model
    assert isinstance(model, BalletModel) and isinstance(model.reader, MemoryReader)
    batch = model.task.sample_batch(episodes, np.random.default_rng(1))
    query, tokens, _ = model.reader_inputs(batch)
    weights = model.reader.attention(query, tokens)[:, :, 0].cpu()  # (layers, B, T)
    steps, _ = model.steps_read(batch)
    places = torch.from_numpy(np.take_along_axis(batch.places, steps, 1))  # (B, T)
    by_room = torch.zeros(*weights.shape[:2], model.task.n_places)
    by_room.scatter_add_(2, places.expand(len(weights), -1, -1), weights)  # (layers, B, rooms)
    queried = torch.from_numpy(batch.episodes.query_place.astype(np.int64))  # (B,)
    means = [[layer[queried == room].mean(0).tolist() for room in range(model.task.n_places)] for layer in by_room]
    return np.array(means)
