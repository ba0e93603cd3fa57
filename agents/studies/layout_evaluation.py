"""Evaluation by layout: the mean of each metric in each home.

A trained agent can be changed first, such as the capacity of its memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import (
    algorithm_of,
    evaluate_run,
    evaluation_env,
    make_evaluator,
    trained_policy,
    untrained_policy,
)
from memenvs.agents.experiments.train import train_run
from memenvs.agents.experiments.trial_evaluator import TrialResults
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.studies.study_results import has_results, read_result, write_result
from memenvs.agents.studies.sweep import SweepRun
from memenvs.registry import find_environment

RULES = ("window4",)
"""Scripted rules that these studies play; certificates have all of them."""
SEED = 1
"""Seed of every evaluation: all agents play the same episodes."""


@dataclass(frozen=True)
class LayoutEvaluation:
    """Settings of an evaluation in the layouts of a run's evaluation.

    Attributes:
        name: Name of the evaluation, `NAME.json` in the folder of the run.
        memory: Settings of the memory that are changed in the trained agent; they need no other weights.
        env: Settings of the environment that are changed.
        trials: Largest number of trials, equally many in each layout; None for those of the run.
        steps: Steps of an episode; None for those of training.
    """

    name: str = "homes"
    memory: dict[str, Any] = field(default_factory=dict)
    env: dict[str, Any] = field(default_factory=dict)
    trials: int | None = None
    steps: int | None = None

    def apply(self, config: RunConfig) -> RunConfig:
        """Settings of a run with those of this evaluation."""
        trials = config.eval_trials if self.trials is None else min(self.trials, config.eval_trials)
        steps = config.eval_steps if self.steps is None else self.steps
        horizon = {} if self.steps is None else {"max_episode_steps": steps}
        eval_kwargs = {**config.eval_kwargs, **self.env, **horizon}
        return replace(config, eval_kwargs=eval_kwargs, eval_trials=trials, eval_steps=steps)


def layout_run(
    config: RunConfig, rewards: Mapping[str, float], evaluations: tuple[LayoutEvaluation, ...] = ()
) -> SweepRun:
    """Run of a sweep that is trained, and then evaluated by layout.

    Args:
        config: Settings.
        rewards: Reward of each metric, see `mean_by_layout`.
        evaluations: How the trained agent is played; empty for a run that only gives others their initial weights.
    """
    work = partial(_train_and_evaluate, evaluations=evaluations, rewards=rewards)
    return SweepRun(config, work, tuple(each.name for each in evaluations))


def evaluate_untrained(
    prefix: Path, config: RunConfig, rewards: Mapping[str, float], evaluation: LayoutEvaluation
) -> dict[str, Path]:
    """Play random, oracle and scripted rules in the episodes of agents, where not done.

    Args:
        prefix: Folders of the results without their end, such as "-random" and "-oracle".
        config: Settings of the agents.
        rewards: Reward of each metric, see `mean_by_layout`.
        evaluation: How the agents are played.

    Returns:
        "random", name of each rule, "oracle" -> folder.
    """
    names = ("random", *(name for name in find_environment(config.env).policies if name in RULES), "oracle")
    folders = {name: prefix.with_name(f"{prefix.name}-{name}") for name in names}
    config = evaluation.apply(config)
    for name, folder in folders.items():
        if has_results(folder, evaluation.name):
            continue
        env = evaluation_env(config, min(config.eval_envs, config.eval_trials), SEED)
        try:
            results = make_evaluator(config, env).run(untrained_policy(name, config.env, env, SEED))
        finally:
            env.close()
        write_result(folder, evaluation.name, mean_by_layout(results, rewards))
    return folders


def mean_by_layout(results: TrialResults, rewards: Mapping[str, float]) -> dict[str, list[float]]:
    """Mean of the first episodes of trials in each layout.

    Args:
        results: Trials of an evaluation. Metrics that some episode does not have are left out.
        rewards: Metric -> reward of one unit. The return of every episode must be the sum of these.

    Returns:
        Metric -> means in the order of layouts.

    Raises:
        ValueError: The return of an episode is not explained by its metrics.
    """
    first = {name: values[:, 0] for name, values in results.metrics.items() if np.isfinite(values[:, 0]).all()}
    explained = np.sum([reward * first[name] for name, reward in rewards.items()], axis=0)
    if not np.array_equal(first["return"], explained):
        trial = int(np.flatnonzero(first["return"] != explained)[0])
        raise ValueError(
            f"return of trial {trial} must be {explained[trial]}, by {dict(rewards)}, got {first['return'][trial]}"
        )
    layouts = np.unique(results.layouts)
    return {
        name: [float(values[results.layouts == layout].mean()) for layout in layouts] for name, values in first.items()
    }


def layout_scores(folders: Sequence[Path], metric: str, name: str = LayoutEvaluation.name) -> np.ndarray:
    """Means by layout of several runs.

    Args:
        folders: Folders of the runs, one per seed.
        metric: Name of the metric.
        name: Name of the evaluation.

    Returns:
        float64, (seeds, layouts).
    """
    return np.array([read_result(folder, name)[metric] for folder in folders])


def _train_and_evaluate(
    run: RunDirectory, quiet: bool, evaluations: Sequence[LayoutEvaluation], rewards: Mapping[str, float]
) -> None:
    """Train a run to its end and write the evaluations that are not there."""
    train_run(run, quiet=quiet)
    for evaluation in evaluations:
        if has_results(run.path, evaluation.name):
            continue
        changed = evaluation.apply(run.config)
        results = evaluate_run(
            run,
            _changed_policy(run, evaluation.memory),
            seed=SEED,
            quiet=quiet,
            eval_kwargs=changed.eval_kwargs,
            eval_trials=changed.eval_trials,
            eval_steps=changed.eval_steps,
        )
        write_result(run.path, evaluation.name, mean_by_layout(results, rewards))


def _changed_policy(run: RunDirectory, memory: Mapping[str, Any]) -> ActingPolicy:
    """The trained policy of a run with some settings of its memory changed."""
    if not memory:
        return trained_policy(run, SEED)
    changed = {"memory_kwargs": {**run.config.policy["memory_kwargs"], **memory}}
    policy = (
        algorithm_of(run.config).load(run.checkpoint_path(), device=run.config.device, policy_kwargs=changed).policy
    )
    policy.generator.manual_seed(SEED)
    return policy
