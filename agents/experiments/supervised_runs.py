"""Runs that learn to predict: the same folder as other runs have, and a killed one goes on in it bit by bit."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat
from stable_baselines3.common.utils import get_device

from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.supervised import PredictionModel, SupervisedLearner, evaluate_model, load_model
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import CHECKPOINT, METRICS, MetricsWriter, RunDirectory
from memenvs.agents.experiments.progress import progress_bar
from memenvs.agents.sat.prediction import make_prediction_model
from memenvs.files import write_file

VALIDATION_SEED = 500_000
"""Keeps episodes of validation apart from those of evaluation, whose seeds are small."""


def make_model(config: RunConfig, changes: Mapping[str, Any] | None = None) -> PredictionModel:
    """The model of a run, with weights drawn from its seed; the global generator stays as it was.

    Args:
        config: The settings.
        changes: To `env_kwargs`.

    Raises:
        ValueError: The environment is no prediction task, or a setting is not allowed.
        TypeError: A setting does not exist.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return make_prediction_model(config.env, {**config.env_kwargs, **(changes or {})}, config.policy)


def make_learner(config: RunConfig, processes: Processes | None = None) -> SupervisedLearner:
    """The learner of a run that learns to predict.

    Raises:
        ValueError: As `make_model`, or the batch cannot be split over the processes.
        TypeError: As `make_model`.
    """
    assert config.supervised is not None
    processes = processes or Processes()
    device = processes.device or get_device(config.device)
    model = make_model(config)
    return SupervisedLearner(
        model, config.supervised, config.total_steps, seed=config.seed, device=device, processes=processes
    )


def check_supervised(config: RunConfig, processes: Processes | None = None) -> None:
    """Makes model and learner, for training and evaluation, so that a wrong setting is known before a run begins.

    Raises:
        ValueError: As `make_learner`.
        TypeError: As `make_learner`.
    """
    processes = processes or Processes()
    assert config.supervised is not None
    processes.split_evenly("supervised.batch_size", config.supervised.batch_size)
    make_learner(config)
    make_model(config, config.eval_kwargs)


def checkpoint_settings(config: RunConfig) -> dict[str, Any]:
    """What a checkpoint must have in common with the run that goes on from it, besides the settings of the learner."""
    return {name: getattr(config, name) for name in ("env", "env_kwargs", "policy", "seed", "total_steps")}


def train_supervised(run: RunDirectory, *, quiet: bool = False) -> SupervisedLearner:
    """Trains a run to its end, from its checkpoint if it has one; see `train_run`.

    With every checkpoint it logs means over the batches since the one before, their seconds, and the scores of validation.
    """
    config, processes = run.config, run.processes
    assert config.supervised is not None
    config.use_threads()
    learner = make_learner(config, processes)
    if run.has_checkpoint:
        learner.load(run.path / CHECKPOINT, checkpoint_settings(config))
    writers: list[KVWriter] = []
    if processes.is_first:
        run.drop_metrics_after(learner.num_timesteps)
        writers = [MetricsWriter(run.path / METRICS), TensorBoardOutputFormat(str(run.path / "tensorboard"))]
    logger = Logger(str(run.path), writers)
    bar = progress_bar("batches", "accuracy") if processes.is_first and not quiet else None
    try:
        with bar or nullcontext():
            done = learner.num_timesteps
            task = (
                None if bar is None else bar.add_task("training", total=config.total_steps, completed=done, score=0.0)
            )
            while learner.num_timesteps < config.total_steps:
                accuracy = _to_next_checkpoint(run, learner, logger)
                if bar is not None and task is not None:
                    bar.update(task, completed=learner.num_timesteps, score=accuracy)
    finally:
        logger.close()
    return learner


def _to_next_checkpoint(run: RunDirectory, learner: SupervisedLearner, logger: Logger) -> float:
    """Learns, logs, validates and writes the checkpoint; returns the accuracy in validation."""
    settings = learner.config
    steps = min(settings.checkpoint_steps, learner.total_steps - learner.num_timesteps)
    began = time.perf_counter()

    def log(numbers: dict[str, float]) -> None:
        for name, value in numbers.items():
            logger.record_mean(f"train/{name}", value)

    learner.learn(steps, log)
    seconds = time.perf_counter() - began
    with learner.processes.fail_together():
        scores = means(evaluate_model(learner.model, settings.validation_episodes, VALIDATION_SEED))
    for name, (mean, _) in scores.items():
        logger.record(f"validation/{name}", mean)
    logger.record("time/seconds", seconds)
    logger.record("time/steps_per_second", steps / seconds)
    logger.dump(
        learner.num_timesteps
    )  # before the checkpoint: a run that is killed in between forgets it and logs it again
    learner.save(run.path / CHECKPOINT, checkpoint_settings(run.config))
    return scores["accuracy"][0]


def means(scores: Mapping[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    """Metric -> mean over episodes and its standard error; metrics that no episode is about are left out."""
    return {
        name: (float(values.mean()), float(values.std() / np.sqrt(len(values))))
        for name, values in scores.items()
        if len(values)
    }


def trained_model(run: RunDirectory, changes: Mapping[str, Any] | None = None, **policy: Any) -> PredictionModel:
    """The model of a run's checkpoint.

    Args:
        run: The folder.
        changes: To `env_kwargs`, for another task of the same kind; None: those of the evaluation.
        **policy: Settings of the model to change, such as the strategy.

    Raises:
        FileNotFoundError: The run has no checkpoint yet.
        ValueError: Its checkpoint is not whole or of another model.
    """
    config = replace(run.config, policy={**run.config.policy, **policy})
    model = make_model(config, config.eval_kwargs if changes is None else changes)
    load_model(model, run.path / CHECKPOINT)
    return model.to(get_device(config.device))


def evaluate_supervised(
    run: RunDirectory,
    model: PredictionModel | None = None,
    *,
    name: str | None = "evaluation",
    seed: int = 1,
    episodes: int | None = None,
) -> dict[str, Any]:
    """Scores of a run in the episodes of its evaluation; writes `NAME.json`.

    Args:
        run: The folder.
        model: What is evaluated; None: that of the run's checkpoint.
        name: Of the file, None for none; the report shows `evaluation.json`.
        seed: Of the episodes.
        episodes: How many; None: the run's `eval_trials`.

    Returns:
        {"agent": {"episodes", "metrics": metric -> {"mean", "stderr"}}}, and the same of the best answers from the same memory, "ideal".

    Raises:
        FileNotFoundError: As `trained_model`.
        ValueError: As `trained_model`.
    """
    run.config.use_threads()
    model = trained_model(run) if model is None else model
    count = run.config.eval_trials if episodes is None else episodes
    result = {}
    for who in ("agent", "ideal"):
        found = means(evaluate_model(model, count, seed, ideal=who == "ideal"))
        metrics = {metric: {"mean": mean, "stderr": stderr} for metric, (mean, stderr) in found.items()}
        if metrics:
            result[who] = {"episodes": count, "metrics": metrics}
    if name is not None:
        write_file(run.path / f"{name}.json", json.dumps(result).encode())
    return result
