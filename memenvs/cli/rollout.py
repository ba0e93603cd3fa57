"""`memenvs rollout`."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.cli.common import (
    UserError,
    environment_spec,
    make_env,
    number_or_none,
    print_json,
    reset_env,
    share_of_episode,
)
from memenvs.cli.extensions import EnvPolicy, Extension, MetricTable, load_extensions
from memenvs.cli.policies import make_policy
from memenvs.core import TrialEnv
from memenvs.progress import Progress, no_progress, progress_bar
from memenvs.registry import EnvironmentSpec
from memenvs.task import metric_values

#: Episodes and seed of a rollout without --episodes and --seed.
DEFAULT_EPISODES = 10
DEFAULT_SEED = 0


def run(arguments: argparse.Namespace) -> None:
    """Play episodes, trial by trial, and print the mean and standard error of their metrics."""
    spec = environment_spec(arguments.id)
    extension = _exact_extension(arguments, spec) if arguments.exact else None
    env = make_env(arguments)
    metrics: MetricTable
    if extension is not None and extension.evaluate_exactly is not None and isinstance(env, TrialEnv):
        with progress_bar("playing", quiet=arguments.json) as progress:
            metrics, episodes = extension.evaluate_exactly(env, arguments.policy, progress)
        title = f"{episodes} episodes, exact expectation +- standard error of one pass over them"
    else:
        episodes = DEFAULT_EPISODES if arguments.episodes is None else arguments.episodes
        seed = DEFAULT_SEED if arguments.seed is None else arguments.seed
        policy = make_policy(arguments.policy, env, spec, np.random.default_rng(seed))
        with progress_bar("playing", quiet=arguments.json) as progress:
            values = play_episodes(env, policy, seed, [None] * episodes, progress)
        metrics = {name: summarize_metric(np.array(each)) for name, each in values.items()}
        title = f"{episodes} episodes from seed {seed}"
    env.close()
    if arguments.json:
        document = {"id": spec.id, "policy": arguments.policy, "episodes": episodes, "exact": arguments.exact}
        print_json({**document, "metrics": metrics})
        return
    print(f"{spec.id}, {arguments.policy} policy, {title}")
    width = max(map(len, metrics))
    for name, each in metrics.items():
        mean, stderr = ("-" if value is None else f"{value:.4g}" for value in (each["mean"], each["stderr"]))
        print(f"{name:{width}}  {mean:>8} +- {stderr}")


def play_episodes(
    env: gym.Env,
    policy: EnvPolicy,
    seed: int,
    options: Sequence[dict[str, Any] | None],
    progress: Progress = no_progress,
) -> dict[str, list[float]]:
    """Play episodes one after another.

    Args:
        env: The environment.
        policy: Chooses the actions.
        seed: Seed of the environment.
        options: Reset options of each episode; None for the next one of the trial.
        progress: Called after each step.

    Returns:
        Metrics of each episode, by name; `return` is the sum of rewards.
    """
    option_names = env.task.option_names if isinstance(env, TrialEnv) else ()
    values: defaultdict[str, list[float]] = defaultdict(list)
    for k, each in enumerate(options):
        info = reset_env(env, seed if k == 0 else None, each)
        policy.begin()
        total = 0.0
        num_steps = 0
        is_over = False
        while not is_over:
            _, reward, terminated, truncated, info = env.step(policy.action())
            total += float(reward)
            num_steps += 1
            progress((k + share_of_episode(env, num_steps)) / len(options))
            is_over = terminated or truncated
        for name, value in (metric_values(info, option_names) | {"return": total}).items():
            values[name].append(value)
    return dict(values)


def summarize_metric(values: np.ndarray) -> dict[str, float | None]:
    """Compute the mean and its standard error, None for values that do not exist.

    Args:
        values: float, (K,). One value has no standard error; a value that is not finite leaves no mean.
    """
    if not np.isfinite(values).all():
        return {"mean": None, "stderr": None}
    stderr = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan
    return {"mean": float(values.mean()), "stderr": number_or_none(stderr)}


def _exact_extension(arguments: argparse.Namespace, spec: EnvironmentSpec) -> Extension:
    """Find the extension that evaluates this policy exactly.

    Raises:
        UserError: --exact does not go with the policy, the environment, --episodes or --seed.
    """
    exact = [each for each in load_extensions() if each.evaluate_exactly is not None]
    drawn = {"--episodes": arguments.episodes, "--seed": arguments.seed}
    given = [f"{name} {value}" for name, value in drawn.items() if value is not None]
    policies = [name for each in exact for name in each.exact_policies]
    if arguments.policy not in policies or given:
        raise UserError(
            f"argument --exact: goes with --policy {' or '.join(policies)} and without --episodes and --seed, got "
            + " ".join([f"--policy {arguments.policy}", *given])
        )
    for each in exact:
        if each.family == spec.family:
            return each
    families = ", ".join(each.family for each in exact)
    raise UserError(f"argument --exact: is for environments of family {families} only, got {spec.id}")
