"""`memenvs rollout`."""

from __future__ import annotations

import argparse
from collections import defaultdict
from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.cli.common import (
    environment_spec,
    make_env,
    number_or_none,
    reset_env,
    share_of_episode,
)
from memenvs.cli.policies import POLICIES, make_policy, policy_help
from memenvs.core import TrialEnv
from memenvs.episodes import EnvPolicy, play_episode
from memenvs.progress import Progress, no_progress, progress_bar
from memenvs.registry import environments
from memenvs.task import metric_values

ARGUMENTS = """
--env_kwargs JSON: settings of the environment
--seed K=0: seed of environment and policy
--episodes N=10: episodes
"""


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


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Play episodes, trial by trial, and print the mean and standard error of their metrics."""
    spec = environment_spec(arguments.id)
    env = make_env(spec, arguments)
    episodes, seed = arguments.episodes, arguments.seed
    policy = make_policy(arguments.policy, env, spec, np.random.default_rng(seed))
    with progress_bar("playing", quiet=arguments.json) as progress:
        values = play_episodes(env, policy, seed, episodes, progress)
    metrics = {name: summarize_metric(np.array(of_episodes)) for name, of_episodes in values.items()}
    env.close()
    if not arguments.json:
        print(f"{spec.id}, {arguments.policy} policy, {episodes} episodes from seed {seed}")
        width = max(map(len, metrics))
        for name, metric in metrics.items():
            mean, stderr = ("-" if value is None else f"{value:.4g}" for value in (metric["mean"], metric["stderr"]))
            print(f"{name:{width}}  {mean:>8} +- {stderr}")
    document = {"id": spec.id, "policy": arguments.policy, "episodes": episodes}
    return {**document, "metrics": metrics}


def play_episodes(
    env: gym.Env,
    policy: EnvPolicy,
    seed: int,
    episodes: int,
    progress: Progress = no_progress,
) -> dict[str, list[float]]:
    """Play episodes one after another.

    Args:
        env: The environment.
        policy: Chooses the actions.
        seed: Seed of the environment.
        episodes: Number of episodes.
        progress: Called after each step.

    Returns:
        Metrics of each episode, by name; `return` is the sum of rewards.
    """
    option_names = env.task.option_names if isinstance(env, TrialEnv) else ()
    values: defaultdict[str, list[float]] = defaultdict(list)
    for k in range(episodes):
        info = reset_env(env, seed if k == 0 else None)
        total = 0.0
        for num_steps, step in enumerate(play_episode(env, policy), 1):
            total += step.reward
            info = step.info
            progress((k + share_of_episode(env, num_steps)) / episodes)
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
