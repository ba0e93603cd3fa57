"""`TrialEvalCallback`: evaluation in whole trials while a Stable-Baselines3 model learns."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, EventCallback
from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.experiments.trial_evaluator import (
    ENDLESS,
    TrialEvaluator,
    TrialResults,
    itinerary_of,
    seeded_actions,
    with_records,
)
from memenvs.checks import check_int
from memenvs.files import atomic_replace
from memenvs.resets import stream_seed
from memenvs.wrappers import TrialWrapper

SUCCESS = ("is_success", "success")
"""Metrics that are logged as `eval/success_rate`, the first that an environment has."""


class TrialEvalCallback(EventCallback):
    """Evaluate an agent in whole trials while it learns, and keep the best model.

    Use it in place of Stable-Baselines3's `EvalCallback`, which does not pass the starts of trials to a policy: the
    memory of one trial would be carried into the next. Here each trial begins with an empty memory. The score of a
    trial is the mean return of its finished episodes, and the score of an evaluation is the mean over its trials.

    All evaluations play the same trials in environments of `memenvs`. Their actions are drawn from the policy's
    generators, which are restored afterwards. So learning has the same bits with and without evaluations.

    Logs `eval/mean_reward`, `eval/mean_ep_length` and, if the environment has one, `eval/success_rate`.

    Args:
        eval_env: Environment with trials, one or N copies: of `memenvs.agents.make_vec_env`, or wrapped in
            `TrialWrapper`, whose episodes are whole trials. It is not closed.
        callback_on_new_best: Called when the score is the best so far.
        callback_after_eval: Called after each evaluation.
        n_eval_trials: Trials of an evaluation, played N at a time; >= 1.
        eval_freq: Steps of each environment, or updates of `ImitationA2C`, between two evaluations; >= 1.
        trial_steps: Steps after which a trial is truncated, >= 1; None: trials end by themselves, as with an itinerary.
        log_path: Folder for `evaluations.npz`, as `EvalCallback` writes it with a score of each trial; None for none.
        best_model_save_path: Folder for the best model, `best_model.zip`; None for none.
        deterministic: Take the most likely actions instead of drawn ones.
        seed: Seed of the evaluation's environments and actions; >= 0.
        verbose: 1 prints each evaluation.

    Attributes:
        best_mean_reward: Highest score so far; minus infinity before the first evaluation.
        last_mean_reward: Score of the latest evaluation.
        last_results: Every metric by episode of the latest evaluation.

    Raises:
        ValueError: A number is too small, or the trials of `eval_env` would never end.
    """

    model: MemoryAlgorithm

    def __init__(
        self,
        eval_env: gym.Env | VecEnv,
        callback_on_new_best: BaseCallback | None = None,
        callback_after_eval: BaseCallback | None = None,
        n_eval_trials: int = 5,
        eval_freq: int = 10_000,
        trial_steps: int | None = None,
        log_path: str | None = None,
        best_model_save_path: str | None = None,
        deterministic: bool = True,
        seed: int = 0,
        verbose: int = 1,
    ) -> None:
        super().__init__(callback_after_eval, verbose=verbose)
        check_int("n_eval_trials", n_eval_trials)
        check_int("eval_freq", eval_freq)
        check_int("trial_steps", trial_steps, or_none=True)
        check_int("seed", seed, 0)
        env = with_records(eval_env)
        if trial_steps is None and not _trials_end(env):
            raise ValueError(
                f"trial_steps must be given where trials do not end by themselves, got None for {eval_env}"
            )
        if trial_steps is not None and itinerary_of(env) is not None:
            raise ValueError(
                f"trial_steps must be None with an itinerary, whose trials are played whole, got {trial_steps}"
            )
        self.eval_env = env
        self.callback_on_new_best = callback_on_new_best
        if callback_on_new_best is not None:
            callback_on_new_best.parent = self
        self.n_eval_trials = n_eval_trials
        self.eval_freq = eval_freq
        self.trial_steps = trial_steps
        self.log_path = None if log_path is None else Path(log_path)
        self.best_model_save_path = None if best_model_save_path is None else Path(best_model_save_path)
        self.deterministic = deterministic
        self.seed = seed
        self.best_mean_reward = -np.inf
        self.last_mean_reward = -np.inf
        self.last_results: TrialResults | None = None
        self._timesteps: list[int] = []
        self._scores: list[np.ndarray] = []
        self._lengths: list[np.ndarray] = []

    def _init_callback(self) -> None:
        if not isinstance(self.model, MemoryAlgorithm):
            raise TypeError(
                f"TrialEvalCallback needs a learner of memenvs.agents, got {type(self.model).__name__}, which has no "
                "memory of trials; use EvalCallback"
            )
        self.model.policy.check_env(self.eval_env)
        for folder in (self.log_path, self.best_model_save_path):
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        if self.callback_on_new_best is not None:
            self.callback_on_new_best.init_callback(self.model)

    def _on_step(self) -> bool:
        if self.n_calls % self.eval_freq != 0:
            return True
        results = self._play()
        scores, lengths = (results.trial_means(name) for name in ("return", "length"))
        # The first of several processes decides, as all of them write a checkpoint together.
        score = self.model.processes.gather(float(np.mean(scores)))[0]
        self.last_results = results
        self.last_mean_reward = score
        self._timesteps.append(self.num_timesteps)
        self._scores.append(scores)
        self._lengths.append(lengths)
        if self.log_path is not None and self.model.processes.is_first:
            with atomic_replace(self.log_path / "evaluations.npz") as file:
                np.savez(file, timesteps=self._timesteps, results=self._scores, ep_lengths=self._lengths)
        if self.verbose >= 1:
            print(f"Eval num_timesteps={self.num_timesteps}, reward={score:.2f} +/- {np.std(scores):.2f} over trials")
        self.logger.record("eval/mean_reward", score)
        self.logger.record("eval/mean_ep_length", float(np.mean(lengths)))
        success = next((name for name in SUCCESS if name in results.metrics), None)
        if success is not None:
            self.logger.record("eval/success_rate", float(np.mean(results.trial_means(success))))
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(self.num_timesteps)
        continue_training = True
        if score > self.best_mean_reward:
            self.best_mean_reward = score
            if self.best_model_save_path is not None:
                self.model.save(self.best_model_save_path / "best_model.zip")
            if self.callback_on_new_best is not None:
                continue_training = self.callback_on_new_best.on_step()
        return continue_training and self._on_event()

    def _play(self) -> TrialResults:
        """Play the trials with the policy's generators, which are seeded before and restored afterwards.

        Raises:
            ValueError: A trial has no finished episode.
        """
        self.eval_env.seed(stream_seed(self.seed))
        evaluator = TrialEvaluator(
            self.eval_env,
            self.trial_steps or ENDLESS,
            self.n_eval_trials,
            deterministic=self.deterministic,
            seed=self.seed,
        )
        with seeded_actions(self.model.policy, self.seed):
            results = evaluator.run(self.model.policy)
        returns = results.metrics.get("return", np.zeros((self.n_eval_trials, 0)))
        if not np.isfinite(returns).any(1).all():
            raise ValueError(f"trial_steps must be enough for an episode of each trial, got {self.trial_steps}")
        return results

    def update_child_locals(self, locals_: dict[str, object]) -> None:
        """Pass the local variables of the learner on to `callback_after_eval`."""
        if self.callback is not None:
            self.callback.update_locals(locals_)


def _trials_end(env: VecEnv) -> bool:
    """Return True if every trial of an environment ends by itself, as far as its attributes show."""
    if all(env.env_is_wrapped(TrialWrapper)):
        return True
    limits = [name for name in ("trial_episodes", "trial_steps") if env.has_attr(name)]
    return not limits or any(limit is not None for name in limits for limit in env.get_attr(name)[:1])
