"""Runs that learn to predict from batches; their folders are those of other runs."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.logger import Logger

from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.supervised import PredictionModel, SupervisedLearner, evaluate_model, load_model
from memenvs.agents.devices import torch_device
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import CHECKPOINT, RunDirectory
from memenvs.agents.experiments.progress import training_bar
from memenvs.agents.experiments.registry import Experiment
from memenvs.agents.experiments.report import Report
from memenvs.agents.experiments.run_report import add_predictions
from memenvs.board.replay import played_actions
from memenvs.certificates.test_sets import find_test_set
from memenvs.core import TrialVectorEnv
from memenvs.files import write_file
from memenvs.identity import changed_settings
from memenvs.json_records import format_json
from memenvs.progress import progress_bar
from memenvs.query_task import QueryTask, make_query_task
from memenvs.registry import find_environment
from memenvs.task import PHASE, Observation

VALIDATION_SEED = 500_000
"""Seed that keeps episodes of validation apart from those of evaluation, whose seeds are small."""


class PredictionExperiment(Experiment):
    """Runs of a `SupervisedLearner`; a subclass makes the model of its task."""

    @abstractmethod
    def make_model(self, config: RunConfig, env_kwargs: Mapping[str, Any]) -> PredictionModel:
        """Make the model of a run; it draws its weights from PyTorch's global generator.

        Args:
            config: Settings of the run.
            env_kwargs: Settings of the environment.

        Raises:
            ValueError: The environment is no prediction task, or a setting is not allowed.
            TypeError: A setting does not exist.
        """

    def load_first_stage(self, config: RunConfig, model: PredictionModel) -> None:
        """Load the weights that `encoder_from` names; a hook, which by default refuses any.

        Args:
            config: Settings of the run.
            model: Model of the run.

        Raises:
            FileNotFoundError: There is no run or checkpoint of that name.
            ValueError: It is of another kind or size, or nothing can be taken over.
        """
        if config.encoder_from is not None:
            raise ValueError(
                f"encoder_from must be left out of a run that learns with {config.kind.name!r}, which begins with new "
                f"weights, got {config.encoder_from!r}"
            )

    def check(self, config: RunConfig, processes: Processes) -> None:
        """Make model and learner, for training and evaluation; see `Experiment.check`."""
        processes.split_evenly("supervised.batch_size", config.learner.batch_size)
        self.load_first_stage(config, make_run_learner(config).model)
        self.check_eval_kwargs(config)

    def check_eval_kwargs(self, config: RunConfig) -> None:
        """Make the model; see `Experiment.check_eval_kwargs`."""
        try:
            make_run_model(config, config.eval_kwargs)
        except (ValueError, TypeError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{config.env} with these eval_kwargs: {error}") from error

    def train(self, run: RunDirectory, *, quiet: bool = False) -> SupervisedLearner:
        """Train a run to its end; see `Experiment.train`.

        With every checkpoint it logs means over the batches since the one before, their seconds, and the scores of
        validation.
        """
        config = run.config
        processes = run.processes
        config.use_threads()
        learner = make_run_learner(config, processes)
        if run.has_checkpoint:
            settings = _checkpoint_settings(config)
            del settings["total_steps"]  # the run may be extended
            learner.load(run.path / CHECKPOINT, settings)
        else:
            with processes.fail_together():
                self.load_first_stage(config, learner.model)
            processes.broadcast(list(learner.model.state_dict().values()))
        run.check_space(learner.model)
        logger = run.open_log(learner.num_timesteps)
        bar = None
        if processes.is_first and not quiet:
            bar = training_bar(learner.model, "batches", learner.model.score)
        try:
            with bar or nullcontext():
                task = None
                if bar is not None:
                    done = learner.num_timesteps
                    task = bar.add_task("training", total=config.total_steps, completed=done, score=0.0)
                while learner.num_timesteps < config.total_steps:
                    score = _train_to_checkpoint(run, learner, logger)
                    if bar is not None and task is not None:
                        bar.update(task, completed=learner.num_timesteps, score=score)
        finally:
            logger.close()
        return learner

    def evaluate(
        self, run: RunDirectory, name: str = "evaluation", *, seed: int = 1, quiet: bool = False, **changes: Any
    ) -> dict[str, Any]:
        """Answer the evaluation episodes of a run; see `evaluate_predictions`.

        Args:
            run: The folder.
            name: Stem of the file.
            seed: Seed of the episodes.
            quiet: Show no progress bar.
            **changes: Fields of the config to change: `eval_trials` or `eval_kwargs`.
        """
        config = replace(run.config, **changes)
        model = trained_model(run, config.eval_kwargs)
        return evaluate_predictions(run, model, name=name, seed=seed, episodes=config.eval_trials, quiet=quiet)

    def add_to_report(self, report: Report, runs: Sequence[RunDirectory]) -> None:
        """Add learning curves and scores; see `Experiment.add_to_report`."""
        add_predictions(report, runs)


def make_run_model(config: RunConfig, changes: Mapping[str, Any] | None = None) -> PredictionModel:
    """Make the model of a run, with weights drawn from its seed.

    PyTorch's global generator stays unchanged.

    Args:
        config: Settings of the run.
        changes: Changes to `env_kwargs`.

    Raises:
        ValueError: The environment is no prediction task, or a setting is not allowed.
        TypeError: A setting does not exist, or the run does not learn to predict.
    """
    experiment = config.make_experiment()
    if not isinstance(experiment, PredictionExperiment):
        raise TypeError(f"run must learn to predict, got one that learns with {config.kind.name!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return experiment.make_model(config, {**config.env_kwargs, **(changes or {})})


def make_run_learner(config: RunConfig, processes: Processes | None = None) -> SupervisedLearner:
    """Make the learner of a run that learns to predict.

    Raises:
        ValueError: As `make_run_model`, or the batch cannot be split over the processes.
        TypeError: As `make_run_model`.
    """
    processes = processes or Processes()
    device = processes.device or torch_device(config.device)
    model = make_run_model(config)
    return SupervisedLearner(
        model, config.learner, config.total_steps, seed=config.seed, device=device, processes=processes
    )


def trained_model(run: RunDirectory, changes: Mapping[str, Any] | None = None, **policy: Any) -> PredictionModel:
    """Load the model of a run's checkpoint.

    Args:
        run: The folder.
        changes: Changes to `env_kwargs`, for another task of the same kind; None: those of the evaluation.
        **policy: Settings of the model to change, such as the strategy.

    Raises:
        FileNotFoundError: The run has no checkpoint yet.
        ValueError: Its checkpoint is incomplete or of another model.
    """
    config = replace(run.config, policy={**run.config.policy, **policy})
    model = make_run_model(config, config.eval_kwargs if changes is None else changes)
    load_model(model, run.path / CHECKPOINT)
    return model.to(torch_device(config.device))


def evaluate_predictions(
    run: RunDirectory,
    model: PredictionModel | None = None,
    *,
    name: str | None = "evaluation",
    seed: int = 1,
    episodes: int | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """Score a run in the episodes of its evaluation and write `NAME.json`.

    Args:
        run: The folder.
        model: Model to evaluate; None: that of the run's checkpoint.
        name: Stem of the file, None for none; the report shows `evaluation.json`.
        seed: Seed of the episodes.
        episodes: Number of episodes; None: the run's `eval_trials`.
        quiet: Show no progress bar.

    Returns:
        {"agent": {"episodes", "metrics": metric -> {"mean", "stderr"}}}, and as "ideal" the same of the best answers
        from the same memory.

    Raises:
        FileNotFoundError: As `trained_model`.
        ValueError: As `trained_model`.
    """
    run.config.use_threads()
    model = trained_model(run) if model is None else model
    count = run.config.eval_trials if episodes is None else episodes
    result = {}
    for predictor in ("agent", "ideal"):
        with progress_bar(f"predicting, {predictor}", quiet=quiet) as progress:
            scores = _means(evaluate_model(model, count, seed, ideal=predictor == "ideal", progress=progress))
        metrics = {metric: {"mean": mean, "stderr": stderr} for metric, (mean, stderr) in scores.items()}
        if metrics:
            result[predictor] = {"episodes": count, "metrics": metrics}
    if name is not None:
        write_file(run.path / f"{name}.json", format_json(result).encode())
    return result


class QueryPlayer:
    """Answers the queries of environments; before them its actions are 0.

    Args:
        env: The environments that it plays.
        model: The model.
        task: Makes their episodes for the model.
        rng: Generator of what is drawn to answer.
    """

    def __init__(self, env: TrialVectorEnv, model: PredictionModel, task: QueryTask, rng: np.random.Generator) -> None:
        self._env, self._model, self._task, self._rng = env, model, task, rng
        self._answers: list[list[int]] = [[] for _ in range(env.num_envs)]

    @torch.no_grad()
    def start(self, trial_start: np.ndarray, episode_start: np.ndarray) -> None:
        """Answer the queries of the episodes that start, each alone."""
        starting = np.flatnonzero(episode_start).tolist()
        episodes = self._task.episodes_of(self._env.task) if starting else None
        for i in starting:
            assert episodes is not None
            (answer,) = self._model.query_actions(episodes.select(slice(i, i + 1)), self._rng)
            self._answers[i] = answer.tolist()

    def actions(self, observation: Observation) -> np.ndarray:
        """Return the next action of each answer, where the query is put."""
        actions = np.zeros(self._env.num_envs, np.int64)
        for i in np.flatnonzero(observation[PHASE]).tolist():
            actions[i] = self._answers[i].pop(0)
        return actions

    def steps_back(self) -> None:
        """Return None: nothing is known of its facts."""


def answer_test_set(
    run: RunDirectory, id: str, test_set: str = "v0", *, seed: int = 1, quiet: bool = False
) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Answer the queries of a test set as an agent that acts.

    Args:
        run: The folder of the run, whose settings of what is observed are kept.
        id: Id of the test set.
        test_set: Name of the test set.
        seed: Seed of what is drawn to answer.
        quiet: Show no progress bar.

    Returns:
        Actions of each trial, (T,); and the settings of what is observed that differ from those of the test set, with
        "place" where the model reads places.

    Raises:
        FileNotFoundError: The run has no checkpoint yet.
        ValueError: Its checkpoint is incomplete or of a model for other episodes. Or answers are pictures, which do not
            fit into an entry of the board.
    """
    config, row, trials = run.config, find_environment(id), find_test_set(id, test_set)
    if row.answers_picture:
        raise ValueError(
            f"id must be one whose answers are no pictures, which are too large for an entry, got {row.id}"
        )
    config.use_threads()
    own = {**config.env_kwargs, **config.eval_kwargs}
    env = trials.make_env({name: value for name, value in own.items() if name in trials.free_settings})
    try:
        settings = env.task_settings
        model = make_run_model(replace(config, env=row.id, env_kwargs=settings, eval_kwargs={}))
        load_model(model, run.path / CHECKPOINT)
        model.to(torch_device(config.device)).eval()
        player = QueryPlayer(env, model, make_query_task(row.id, settings), np.random.default_rng(seed))
        with progress_bar("answering", quiet=quiet) as progress:
            actions = played_actions(env, player, trials.seeds, progress)
        observed = {name: value for name, (value, _) in changed_settings(env, trials.settings, ("threads",)).items()}
    finally:
        env.close()
    return actions, observed | ({"place": True} if model.uses_place else {})


def _train_to_checkpoint(run: RunDirectory, learner: SupervisedLearner, logger: Logger) -> float:
    """Learn, log, validate and write the next checkpoint; return the score in validation.

    A run that is to stop writes its checkpoint after the running batch and raises a KeyboardInterrupt. The means that
    it logs next are over the batches since.
    """
    config = learner.config
    start = learner.num_timesteps
    steps = min(config.checkpoint_steps - start % config.checkpoint_steps, learner.total_steps - start)
    started_at = time.perf_counter()

    def log(numbers: dict[str, float]) -> bool:
        run.can_stop = False  # there is a batch to save
        for name, value in numbers.items():
            logger.record_mean(f"train/{name}", value)
        return not any(learner.processes.gather(run.stop_signal is not None))

    run.can_stop = learner.processes.count == 1
    learner.learn(steps, log)
    run.can_stop = True
    if learner.num_timesteps < start + steps:
        _save(run, learner)
        raise KeyboardInterrupt
    seconds = time.perf_counter() - started_at
    with learner.processes.fail_together():
        scores = _means(evaluate_model(learner.model, config.validation_episodes, VALIDATION_SEED, split="validation"))
    for name, (mean, _) in scores.items():
        logger.record(f"validation/{name}", mean)
    logger.record("time/seconds", seconds)
    logger.record("time/steps_per_second", steps / seconds)
    # before the checkpoint: a run that is killed in between drops these lines and logs them again
    logger.dump(learner.num_timesteps)
    _save(run, learner)
    return scores[learner.model.score][0]


def _save(run: RunDirectory, learner: SupervisedLearner) -> None:
    """Write the checkpoint."""
    if learner.processes.is_first:
        run.drop_results()
    learner.save(run.path / CHECKPOINT, _checkpoint_settings(run.config))
    run.write_extension()


def _checkpoint_settings(config: RunConfig) -> dict[str, Any]:
    """Settings besides the learner's that a checkpoint shares with the run that resumes from it."""
    return {name: getattr(config, name) for name in ("env", "env_kwargs", "policy", "seed", "total_steps")}


def _means(scores: Mapping[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    """Metric -> mean and its standard error, without metrics that no episode has.

    Several values of an episode are one row. They do not count as independent, only rows do. In rows, NaN is no value.
    """
    means = {}
    for name, values in scores.items():
        rows = values[:, None] if values.ndim == 1 else values
        is_value = np.ones(rows.shape, bool) if values.ndim == 1 else ~np.isnan(rows)
        count = is_value.sum()
        if count:
            mean = float(rows[is_value].mean())
            deviations = np.where(is_value, rows - mean, 0.0).sum(1)  # of a row's values together
            means[name] = mean, float(np.sqrt(np.square(deviations).sum()) / count)
    return means
