"""`memenvs rollout`."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memenvs.cli.common import (
    UserError,
    begin,
    choose_action,
    environment_spec,
    make_env,
    number_or_none,
    print_json,
)
from memenvs.core import TrialEnv
from memenvs.task import metric_values

if TYPE_CHECKING:
    from memenvs.vln.env import GraphNavigation


def run(arguments: argparse.Namespace) -> None:
    """Plays episodes one after another, trial by trial, and prints their metrics."""
    row = environment_spec(arguments.id)
    drawn = {"--episodes": arguments.episodes, "--seed": arguments.seed}
    given = [f"{name} {value}" for name, value in drawn.items() if value is not None]
    if arguments.exact and (arguments.policy == "random" or given):
        raise UserError(
            "argument --exact: goes with --policy r2r-random or oracle and without --episodes and --seed, got "
            + " ".join([f"--policy {arguments.policy}", *given])
        )
    env = make_env(arguments)
    metrics: Mapping[str, Mapping[str, float | None]]
    if arguments.exact:
        from memenvs.vln.random_agent import exact_expectation

        task = _graph_task(env)
        episodes = task.num_layouts
        if arguments.policy == "oracle":  # nothing is drawn in these environments
            asked = [{"episode": number} for number in range(episodes)]
            values = play(env, "oracle", 0, asked)
            metrics = {name: {"mean": float(np.mean(each)), "stderr": 0.0} for name, each in values.items()}
        else:
            metrics = exact_expectation(task)
        what = f"{episodes} episodes, exact expectation +- scatter of one pass over them"
    else:
        episodes = 10 if arguments.episodes is None else arguments.episodes
        seed = 0 if arguments.seed is None else arguments.seed
        values = play(env, arguments.policy, seed, [None] * episodes)
        metrics = {name: summarise(np.array(each)) for name, each in values.items()}
        what = f"{episodes} episodes from seed {seed}"
    env.close()
    if arguments.json:
        document = {"id": row.id, "policy": arguments.policy, "episodes": episodes, "exact": arguments.exact}
        print_json({**document, "metrics": metrics})
        return
    print(f"{row.id}, {arguments.policy} policy, {what}")
    width = max(map(len, metrics))
    for name, each in metrics.items():
        mean, stderr = ("-" if value is None else f"{value:.4g}" for value in (each["mean"], each["stderr"]))
        print(f"{name:{width}}  {mean:>8} +- {stderr}")


def play(env: TrialEnv, policy: str, seed: int, episodes: Sequence[dict[str, Any] | None]) -> dict[str, list[float]]:
    """Metrics of each episode, by name; `return` is the sum of rewards.

    Args:
        env: Where.
        policy: Who.
        seed: Of the environment and of what the policy draws.
        episodes: Reset options of each; None for the next one of the trial.
    """
    rng = np.random.default_rng(seed)
    start, act = _make_policy(env, policy, rng)
    values: defaultdict[str, list[float]] = defaultdict(list)
    for k, options in enumerate(episodes):
        info = begin(env, seed if k == 0 else None, options)
        start()
        total, is_over = 0.0, False
        while not is_over:
            _, reward, terminated, truncated, info = env.step(act())
            total += reward
            is_over = terminated or truncated
        for name, value in (metric_values(info, env.task.option_names) | {"return": total}).items():
            values[name].append(value)
    return dict(values)


def _make_policy(env: TrialEnv, policy: str, rng: np.random.Generator) -> tuple[Callable[[], None], Callable[[], int]]:
    """What a policy does after each reset, and what gives its actions."""
    if policy != "r2r-random":
        return (lambda: None), (lambda: choose_action(env, policy, rng))
    from memenvs.vln.random_agent import RandomAgent

    agent = RandomAgent(_graph_task(env), rng)
    return agent.begin, agent.action


def _graph_task(env: TrialEnv) -> GraphNavigation:
    """The task of an environment on navigation graphs.

    Raises:
        UserError: It is another kind of environment.
    """
    from memenvs.vln.env import GraphNavigation

    if not isinstance(env.task, GraphNavigation):
        raise UserError(
            f"arguments --policy r2r-random and --exact: are for the graphs of VLN environments only, got {type(env.task).__name__}"
        )
    return env.task


def summarise(values: np.ndarray) -> dict[str, float | None]:
    """Mean and its standard error; None where there is none, as for one episode."""
    if not np.isfinite(values).all():
        return {"mean": None, "stderr": None}
    stderr = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan
    return {"mean": float(values.mean()), "stderr": number_or_none(stderr)}
