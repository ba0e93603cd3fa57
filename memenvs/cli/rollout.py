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
    reset_env,
    share_of_episode,
)
from memenvs.cli.extensions import Extension, MetricTable, load_extensions
from memenvs.cli.policies import POLICIES, make_policy, policy_help
from memenvs.core import TrialEnv
from memenvs.episodes import EnvPolicy, play_episode
from memenvs.progress import Progress, no_progress, progress_bar
from memenvs.registry import EnvironmentSpec, environments
from memenvs.task import metric_values

ARGUMENTS = """
--env_kwargs/--kwargs JSON: settings of the environment
--seed K: seed of environment and policy (default: 0)
--episodes N: episodes (default: 10)
"""

#: Episodes and seed of a rollout without --episodes and --seed.
DEFAULT_EPISODES = 10
DEFAULT_SEED = 0


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments that depend on what is registered."""
    command.add_argument(
        "id",
        metavar="ID",
        help=f"one of {', '.join(spec.id for spec in environments())}; the namespace may be left out; or any other id "
        "of Gymnasium; or MODULE:ID, which imports the module that registers it",
    )
    texts = [f"{name}, {text}" for name, text in policy_help().items()]
    who = "; ".join([f"who plays: {' or '.join(POLICIES)}", *texts])
    command.add_argument("--policy", metavar="NAME", default="random", help=f"{who} (default: random)")
    families = [extension for extension in load_extensions() if extension.exact_policies]
    policies = " or ".join(name for extension in families for name in extension.exact_policies)
    command.add_argument(
        "--exact",
        action="store_true",
        help=f"for {', '.join(extension.family for extension in families)} with the policy {policies}: play each "
        "episode of the split once and print exact expectations over the random choices of the policy; takes no "
        "--episodes and no --seed",
    )


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Play episodes, trial by trial, and print the mean and standard error of their metrics."""
    spec = environment_spec(arguments.id)
    extension = _exact_extension(arguments, spec) if arguments.exact else None
    env = make_env(spec, arguments)
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
        metrics = {name: summarize_metric(np.array(of_episodes)) for name, of_episodes in values.items()}
        title = f"{episodes} episodes from seed {seed}"
    env.close()
    if not arguments.json:
        print(f"{spec.id}, {arguments.policy} policy, {title}")
        width = max(map(len, metrics))
        for name, metric in metrics.items():
            mean, stderr = ("-" if value is None else f"{value:.4g}" for value in (metric["mean"], metric["stderr"]))
            print(f"{name:{width}}  {mean:>8} +- {stderr}")
    document = {"id": spec.id, "policy": arguments.policy, "episodes": episodes, "exact": arguments.exact}
    return {**document, "metrics": metrics}


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
    for k, reset_options in enumerate(options):
        info = reset_env(env, seed if k == 0 else None, reset_options)
        total = 0.0
        for num_steps, step in enumerate(play_episode(env, policy), 1):
            total += step.reward
            info = step.info
            progress((k + share_of_episode(env, num_steps)) / len(options))
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
    families = [extension for extension in load_extensions() if extension.evaluate_exactly is not None]
    drawn = {"--episodes": arguments.episodes, "--seed": arguments.seed}
    refused = [f"{name} {value}" for name, value in drawn.items() if value is not None]
    policies = [name for extension in families for name in extension.exact_policies]
    if arguments.policy not in policies or refused:
        raise UserError(
            f"argument --exact: goes with --policy {' or '.join(policies)} and without --episodes and --seed, got "
            + " ".join([f"--policy {arguments.policy}", *refused])
        )
    for extension in families:
        if extension.family == spec.family:
            return extension
    names = ", ".join(extension.family for extension in families)
    raise UserError(f"argument --exact: is for environments of family {names} only, got {spec.id}")
