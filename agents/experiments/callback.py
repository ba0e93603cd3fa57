"""Training callback: checkpoints, validation, milestones and progress."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from rich.progress import Progress
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.algorithms.off_policy import OffPolicyMemoryAlgorithm
from memenvs.agents.experiments.directory import BEST, CHECKPOINT, VALIDATION, RunDirectory
from memenvs.agents.experiments.evaluate import EVALUATION_SEED, evaluation_env, make_evaluator

VALIDATION_SEED = 500_000
"""Offset that keeps environments of validation apart from those of training and evaluation."""


class RunCallback(BaseCallback):
    """Validate and write checkpoints between rollouts; show progress.

    It keeps the best checkpoint and those at milestones.

    Args:
        run: The folder.
        progress: Progress bar to advance; None for none.
    """

    model: MemoryAlgorithm

    def __init__(self, run: RunDirectory, progress: Progress | None) -> None:
        super().__init__()
        self._run = run
        self._progress = progress
        self._rollouts = 0
        self._shown = 0  # steps that the progress bar shows
        self._env: VecEnv | None = None  # the same in all validations, since it takes long to make its homes
        scores = [score for _, score in run.metrics().get(VALIDATION, [])]
        self._best = max((score for score in scores if np.isfinite(score)), default=float("-inf"))

    def _on_training_start(self) -> None:
        self._shown = self.model.num_timesteps
        self._passed = self._milestones_passed()
        self._rollouts = -1 if self._shown > 0 else 0  # a resumed run has just written its checkpoint
        if self._progress is not None:
            total = self._run.config.total_steps
            self._task = self._progress.add_task("training", total=total, completed=self._shown, score=float("nan"))

    def _on_rollout_start(self) -> None:
        model = self.model
        self._advance()
        if model.num_timesteps > 0 and model.is_between_rollouts and self._can_save():
            self._rollouts += 1
            # the milestone first: a run that is killed in between writes it again
            if self._milestones_passed() > self._passed:
                self._passed = self._milestones_passed()
                model.save(self._run.path / f"checkpoint_{model.num_timesteps}.zip")
            if self._rollouts > 0 and self._rollouts % self._run.config.checkpoint_rollouts == 0:
                self.write(model)

    def _can_save(self) -> bool:
        """Return True in all processes if each of them can be saved now; False if one must wait."""
        model = self.model
        # A process waits for a point from which the run resumes exactly. Where a checkpoint cannot name the trials
        # there is no such point, so any point between rollouts will do.
        return all(model.processes.gather(model.at_rollout_boundary or not model.has_resumable_trials))

    def write(self, model: MemoryAlgorithm, *, is_last: bool = False) -> None:
        """Validate and write the checkpoint.

        Args:
            model: The learner, between two rollouts.
            is_last: True if nothing is learned afterwards, so that no replay is written.
        """
        if model.processes.is_first:
            self._run.drop_results()  # first: a run that is killed below has no results of another checkpoint
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
        if isinstance(model, OffPolicyMemoryAlgorithm) and not is_last:
            replay = self._run.replay_path(model.num_timesteps)
            model.save_replay_buffer(replay)
        # after the replay that belongs to it, so that a run killed in between still has the previous pair of files
        model.save(self._run.path / CHECKPOINT)
        self._run.write_extension()
        if model.processes.is_first:
            self._run.drop_replays(but=replay)

    def _validate(self, model: MemoryAlgorithm) -> float:
        """Mean return of the validation trials; actions are drawn from a generator of their own."""
        own = self._run.config
        config = replace(own, eval_kwargs=own.validation_kwargs, eval_trials=own.validation_trials)
        if self._env is None:
            self._env = evaluation_env(config, min(own.n_envs, own.validation_trials), VALIDATION_SEED)
        self._env.seed(EVALUATION_SEED + VALIDATION_SEED)  # all validations play the same trials
        generator = model.policy.generator
        model.policy.generator = torch.Generator(model.device).manual_seed(VALIDATION_SEED)
        try:
            results = make_evaluator(config, self._env, seed=VALIDATION_SEED).run(model.policy)
        finally:
            model.policy.generator = generator
        means = results.trial_means("return") if "return" in results.metrics else np.zeros(0)  # no episode has ended
        return float(means.mean()) if len(means) else float("nan")

    def close(self) -> None:
        """Close the environment of validation."""
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
