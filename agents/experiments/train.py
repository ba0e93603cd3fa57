"""Runs: a folder with everything about one training, which a killed run goes on in bit by bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import Progress
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat
from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents.algorithms import checkpoint
from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.dqn import EpisodeDQN
from memenvs.agents.algorithms.supervised import SupervisedLearner
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import (
    BEST,
    CHECKPOINT,
    CONFIG,
    METRICS,
    VALIDATION,
    MetricsWriter,
    RunDirectory,
    best_checkpoint,
    read_config,
)
from memenvs.agents.experiments.evaluate import (
    EVALUATION_SEED,
    algorithm,
    evaluate_and_compare,
    evaluate_demonstrated,
    evaluate_run,
    evaluation_env,
    make_evaluator,
    policy_from_checkpoint,
    trained_policy,
)
from memenvs.agents.experiments.progress import progress_bar
from memenvs.agents.experiments.supervised_runs import check_supervised, train_supervised
from memenvs.agents.vec_env import TrialVecEnv, make_vec_env

__all__ = [
    "BEST",
    "CHECKPOINT",
    "CONFIG",
    "METRICS",
    "VALIDATION",
    "MetricsWriter",
    "RunCallback",
    "RunDirectory",
    "algorithm",
    "check_config",
    "evaluate_and_compare",
    "evaluate_demonstrated",
    "evaluate_run",
    "evaluation_env",
    "make_evaluator",
    "policy_from_checkpoint",
    "read_config",
    "train_run",
    "trained_policy",
]  # fmt: skip

VALIDATION_SEED = 500_000
"""What keeps environments of validation apart from those of training and of evaluation."""


class RunCallback(BaseCallback):
    """Between rollouts validates and writes checkpoints, keeps the best and those at milestones; shows progress.

    Args:
        run: The folder.
        progress: What to advance; None for silence.
    """

    model: MemoryAlgorithm

    def __init__(self, run: RunDirectory, progress: Progress | None) -> None:
        super().__init__()
        self._run, self._progress = run, progress
        self._rollouts = 0
        self._shown = 0
        self._env: VecEnv | None = None  # kept, as making its homes takes longer than walking through them
        self._best = max((score for _, score in run.metrics().get(VALIDATION, [])), default=float("-inf"))

    def _on_training_start(self) -> None:
        self._shown = self.model.num_timesteps
        self._passed = self._milestones_passed()
        self._rollouts = -1 if self._shown > 0 else 0  # a run that goes on begins where its checkpoint was written
        if self._progress is not None:
            total = self._run.config.total_steps
            self._task = self._progress.add_task("training", total=total, completed=self._shown, score=float("nan"))

    def _on_rollout_start(self) -> None:
        model = self.model
        self._advance()
        if model.num_timesteps > 0 and model.at_rollout_boundary:
            self._rollouts += 1
            if self._rollouts > 0 and self._rollouts % self._run.config.checkpoint_rollouts == 0:
                self.write(model)
            if self._milestones_passed() > self._passed:
                self._passed = self._milestones_passed()
                model.save(self._run.path / f"checkpoint_{model.num_timesteps}.zip")

    def write(self, model: MemoryAlgorithm, *, is_last: bool = False) -> None:
        """Validates and writes the checkpoint.

        Args:
            model: The learner, between two rollouts.
            is_last: Whether nothing is learned after it, so that its replay is not needed.
        """
        if self._run.config.validation_trials > 0 and model._n_updates > 0:
            with model.processes.fail_together():
                if model.processes.is_first:
                    score = self._validate(model)
            better = model.processes.gather(score > self._best if model.processes.is_first else False)[0]
            if better:
                model.save(self._run.path / BEST)
            if model.processes.is_first:
                self._best = max(self._best, score)
                for output in model.logger.output_formats:
                    output.write({VALIDATION: score}, {VALIDATION: ()}, model.num_timesteps)
        replay = None
        if isinstance(model, EpisodeDQN) and not is_last:
            replay = self._run.replay(model.num_timesteps)
            model.save_replay_buffer(replay)
        model.save(self._run.path / CHECKPOINT)  # names the replay by its step: both are there, or those before
        if model.processes.is_first:
            self._run.drop_replays(but=replay)

    def _validate(self, model: MemoryAlgorithm) -> float:
        """Mean return of the validation trials' episodes; draws from a generator of its own."""
        own = self._run.config
        config = replace(own, eval_kwargs=own.validation_kwargs, eval_trials=own.validation_trials)
        if self._env is None:
            self._env = evaluation_env(config, min(own.n_envs, own.validation_trials), VALIDATION_SEED)
        self._env.seed(EVALUATION_SEED + VALIDATION_SEED)  # each validation in the same trials
        generator = model.policy.generator
        model.policy.generator = torch.Generator(model.device).manual_seed(VALIDATION_SEED)
        try:
            results = make_evaluator(config, self._env).run(model.policy)
        finally:
            model.policy.generator = generator
        return float(np.nanmean(results.metrics["return"]))

    def close(self) -> None:
        """Closes the environment of validation."""
        if self._env is not None:
            self._env.close()

    def _milestones_passed(self) -> int:
        config = self._run.config
        return (config.milestones + 1) * self.model.num_timesteps // config.total_steps

    def _on_step(self) -> bool:
        if self._progress is not None and self.model.num_timesteps - self._shown >= 64 * self.model.n_envs:
            self._advance()
        return True

    def _on_training_end(self) -> None:
        self._advance()

    def _advance(self) -> None:
        if self._progress is not None:
            recent = [info["r"] for info in self.model.ep_info_buffer or []]
            score = sum(recent) / len(recent) if recent else float("nan")
            self._shown = self.model.num_timesteps
            self._progress.update(self._task, completed=self._shown, score=score)


def check_config(config: RunConfig, processes: Processes | None = None) -> None:
    """Makes one environment for training, one for evaluation and the learner, so that a wrong setting is known before a run begins.

    Args:
        config: The settings.
        processes: Those that are to train together; None: this one alone.

    Raises:
        ValueError: A setting of the environment, the policy or the learner is not allowed, or cannot be split over the processes.
        TypeError: It does not exist.
    """
    if config.device.startswith("cuda") and not torch.cuda.is_available():  # Stable-Baselines3 would take the CPU
        raise ValueError(f"device must be 'auto' or 'cpu' where PyTorch finds no GPU, got {config.device!r}")
    if config.supervised is not None:
        check_supervised(config, processes)
        return
    processes = processes or Processes()
    processes.split_evenly("n_envs", config.n_envs)
    if config.ppo is not None:
        processes.split_evenly("ppo.batch_size", config.ppo.batch_size)
    _check_total(config)
    env = _one_env(config, "env_kwargs")
    learner: Any = algorithm(config)
    settings = config.settings
    if config.ppo is not None:
        settings = replace(config.ppo, n_steps=2 * config.ppo.n_updates)  # no buffer worth mentioning
    alone = {} if config.ppo is not None else {"processes": processes}
    try:
        _check_played(config)
        if config.validation_trials > 0:
            _one_env(config, "validation_kwargs").close()
        _start_encoder(
            config,
            learner(learner.default_policy, env, settings, policy_kwargs=config.policy, device=config.device, **alone),
        )
    finally:
        env.close()


def _one_env(config: RunConfig, part: str) -> VecEnv:
    """The environment of a part of the settings; what it refuses is said to be of that part."""
    try:
        return make_vec_env(config.env, 1, **{**config.env_kwargs, **getattr(config, part)})
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{config.env} with these {part}: {error}") from error


def _check_played(config: RunConfig) -> None:
    """Raises a ValueError if the environment of the evaluation cannot be made, or no trial of it may see the end of an episode."""
    env = _one_env(config, "eval_kwargs")
    steps = env.env.task.max_episode_steps if isinstance(env, TrialVecEnv) else None
    env.close()
    if steps is not None and config.eval_steps < steps:
        raise ValueError(
            f"eval_steps must be at least the {steps} steps that an episode may take, got {config.eval_steps}"
        )


def _check_total(config: RunConfig) -> None:
    """Raises a ValueError if a run is over before anything can be learned."""
    if config.ppo is not None:
        rollout = config.n_envs * config.ppo.n_steps
        if config.total_steps < rollout:  # whole rollouts are played
            raise ValueError(
                f"total_steps must be at least {rollout}, one rollout (n_envs {config.n_envs} x ppo.n_steps {config.ppo.n_steps}), "
                f"got {config.total_steps}"
            )
    if config.dqn is not None:
        if config.n_envs > config.dqn.capacity:
            raise ValueError(f"dqn.capacity must be at least n_envs, {config.n_envs}, got {config.dqn.capacity}")
        episodes = -(-config.dqn.capacity // config.n_envs) * config.n_envs
        filling = episodes * config.dqn.episode_steps
        if config.total_steps <= filling:
            raise ValueError(
                f"total_steps must be above {filling}, which filling the replay can take ({episodes} episodes of dqn.episode_steps "
                f"{config.dqn.episode_steps}), got {config.total_steps}"
            )


def _start_encoder(config: RunConfig, model: MemoryAlgorithm) -> None:
    """Lets a new learner start with the encoder that its run names.

    Raises:
        FileNotFoundError: There is no run or checkpoint of that name.
        ValueError: It is of another encoder or did not learn its own, or none is named though it is not to be trained.
    """
    if config.encoder_from is None:
        policy = model.policy
        if policy.freeze_features and any(True for _ in policy.features_extractor.parameters()):
            raise ValueError(
                "encoder_from must be the run or checkpoint whose encoder is taken over where policy.freeze_features is on: "
                "it is not trained here; got None"
            )
        return
    source = Path(config.encoder_from.replace("{seed}", str(config.seed)))
    if source.is_dir():
        source = best_checkpoint(source)
    if not source.is_file():
        what = "run or checkpoint of a first stage" + ", or file of PREVALENT's weights" * (
            config.imitation is not None
        )
        raise FileNotFoundError(
            f"encoder_from must be the {what}, there is none at {source}; train it first, or name another with --encoder_from"
        )
    model.load_features(source)


def train_run(run: RunDirectory, *, quiet: bool = False) -> MemoryAlgorithm | SupervisedLearner:
    """Trains a run to its end, from its checkpoint if it has one.

    A killed run that is called again ends with the same bits as one that was not killed (CPU, same number of threads). Of several processes
    all must call this; each has its share of the environments.

    Args:
        run: The folder.
        quiet: No progress bar.

    Returns:
        The learner.

    Raises:
        FileNotFoundError: The encoder to start with, or the replay beside the checkpoint, is not there.
        ValueError: The run's checkpoint or replay is not whole, of other settings or of another number of processes, the encoder to start
            with is another one, or the environments cannot be split over the processes.
        RuntimeError: Another process has failed.
    """
    config, processes = run.config, run.processes
    if config.supervised is not None:
        return train_supervised(run, quiet=quiet)
    n_envs, device = processes.split_evenly("n_envs", config.n_envs), processes.device or config.device
    learner: Any = algorithm(config)
    if run.has_checkpoint:
        checkpoint.check_run(run.path / CHECKPOINT, learner, config.settings, config.policy, config.n_envs)
    config.use_threads()
    with processes.fail_together():
        env = make_vec_env(config.env, n_envs, **config.env_kwargs)
    file = run.path / CHECKPOINT
    if run.has_checkpoint:
        model = learner.load(file, env, device, processes=processes)
        if isinstance(model, EpisodeDQN) and model.num_timesteps < config.total_steps:
            model.load_replay_buffer(run.replay(model.num_timesteps))
    else:
        model = learner(
            learner.default_policy,
            env,
            config.settings,
            policy_kwargs=config.policy,
            seed=config.seed,
            device=device,
            processes=processes,
        )
        _start_encoder(config, model)
    writers: list[KVWriter] = []
    if processes.is_first:
        run.drop_metrics_after(model.num_timesteps)
        writers = [MetricsWriter(run.path / METRICS), TensorBoardOutputFormat(str(run.path / "tensorboard"))]
    model.set_logger(Logger(str(run.path), writers))
    remaining = config.total_steps - model.num_timesteps
    progress = (
        progress_bar("steps" if config.imitation is None else "updates") if processes.is_first and not quiet else None
    )
    try:
        if remaining > 0:
            if progress is not None:
                progress.start()
            callback = RunCallback(run, progress)
            try:
                model.learn(remaining, callback, reset_num_timesteps=model.num_timesteps == 0)
                callback.write(model, is_last=True)
            finally:
                callback.close()
    finally:
        if progress is not None:
            progress.stop()
        model.logger.close()
        env.close()
    return model
