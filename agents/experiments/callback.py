"""Training callback: checkpoints, validation, milestones, progress and an early end."""

from __future__ import annotations

import io
import time
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
from memenvs.files import write_file

VALIDATION_SEED = 500_000
"""Offset that keeps environments of validation apart from those of training and evaluation."""
ROLLOUTS = "time/rollouts_since_checkpoint"
"""Metric of a run that stopped early: by it the next checkpoint comes when it would have come anyway."""
LONG_ROLLOUT = 1.0
"""Seconds of a rollout from which on a run that is to stop does not wait for its end."""


class RunCallback(BaseCallback):
    """Validate and write checkpoints between rollouts; show progress.

    It keeps the best checkpoint and those at milestones.

    A run that is to stop (`RunDirectory.stop_signal`) ends with a checkpoint of the latest state from which it resumes
    exactly. Where a rollout takes long, a copy of it is kept in memory, so that nothing has to be waited for; but not
    with a replay, which is too large, nor with several processes, which have to agree.

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
        self._copy: tuple[bytes, int, int] | None = None  # checkpoint newer than the file, its steps, its `ROLLOUTS`
        scores = [score for _, score in run.metrics().get(VALIDATION, [])]
        self._best = max((score for score in scores if np.isfinite(score)), default=float("-inf"))

    def _on_training_start(self) -> None:
        self._shown = self._start = self.model.num_timesteps
        self._passed = self._milestones_passed()
        self._rollouts = 0
        if self._start > 0:  # a resumed run has just written its checkpoint
            since = dict(self._run.metrics().get(ROLLOUTS, []))
            self._rollouts = int(since.get(self._start, 0)) - 1
        self._boundary_time = time.perf_counter()
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
            self._reach_boundary(model)

    def _reach_boundary(self, model: MemoryAlgorithm) -> None:
        """Write the checkpoint if it is due or the run is to stop; else copy it if the rollout was long."""
        run, processes = self._run, model.processes
        is_long = time.perf_counter() - self._boundary_time > LONG_ROLLOUT
        must_stop = any(processes.gather(run.stop_signal is not None))
        since = self._rollouts % run.config.checkpoint_rollouts
        is_due = self._rollouts > 0 and since == 0
        is_start = model.num_timesteps == self._start  # of which there is a file
        if is_due or (must_stop and not is_start):
            if not is_due:
                self._log(ROLLOUTS, since, model.num_timesteps)
            self.write(model, validate=is_due)
            self._copy = None
        elif is_long and processes.count == 1 and not isinstance(model, OffPolicyMemoryAlgorithm):
            file = io.BytesIO()
            model.save(file)
            self._copy = file.getvalue(), model.num_timesteps, since
        elif not is_start:
            self._copy = None
        run.can_stop = processes.count == 1 and (is_due or is_start or self._copy is not None)
        if must_stop:
            raise KeyboardInterrupt
        self._boundary_time = time.perf_counter()

    def _can_save(self) -> bool:
        """Return True in all processes if each of them can be saved now; False if one must wait."""
        model = self.model
        # A process waits for a point from which the run resumes exactly. Where a checkpoint cannot name the trials
        # there is no such point, so any point between rollouts will do.
        return all(model.processes.gather(model.at_rollout_boundary or not model.has_resumable_trials))

    def write_copy(self) -> None:
        """Write the copy, if there is one, when learning was interrupted."""
        if self._copy is not None:
            data, step, since = self._copy
            self._log(ROLLOUTS, since, step)
            self._run.drop_results()
            write_file(self._run.path / CHECKPOINT, data)
            self._run.write_extension()

    def write(self, model: MemoryAlgorithm, *, validate: bool = True, is_last: bool = False) -> None:
        """Validate and write the checkpoint.

        Args:
            model: The learner, between two rollouts.
            validate: False leaves out the validation.
            is_last: True if nothing is learned afterwards, so that no replay is written.
        """
        if model.processes.is_first:
            self._run.drop_results()  # first: a run that is killed below has no results of another checkpoint
        if validate and self._run.config.validation_trials > 0 and model._n_updates > 0:
            with model.processes.fail_together():
                if model.processes.is_first:
                    score = self._validate(model)
            better = model.processes.gather(score > self._best if model.processes.is_first else False)[0]
            if better:
                model.save(self._run.path / BEST)
            if model.processes.is_first:
                self._best = max(self._best, score)
                self._log(VALIDATION, score, model.num_timesteps)
        replay = None
        if isinstance(model, OffPolicyMemoryAlgorithm) and not is_last:
            replay = self._run.replay_path(model.num_timesteps)
            model.save_replay_buffer(replay)
        # after the replay that belongs to it, so that a run killed in between still has the previous pair of files
        model.save(self._run.path / CHECKPOINT)
        self._run.write_extension()
        if model.processes.is_first:
            self._run.drop_replays(but=replay)

    def _log(self, name: str, value: float, step: int) -> None:
        for output in self.model.logger.output_formats:
            output.write({name: value}, {name: ()}, step)

    def _validate(self, model: MemoryAlgorithm) -> float:
        """Mean return of the validation trials; actions are drawn from a generator of their own."""
        own = self._run.config
        config = replace(own, eval_kwargs=own.validation_kwargs, eval_trials=own.validation_trials)
        if self._env is None:
            self._env = evaluation_env(config, min(own.eval_envs, own.validation_trials), VALIDATION_SEED)
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
