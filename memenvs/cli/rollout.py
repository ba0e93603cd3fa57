"""`memenvs rollout`."""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np

from memenvs.cli.common import choose_action, find_row, make_env, metrics_of, number_or_none, print_json
from memenvs.core import TrialEnv


def run(arguments: argparse.Namespace) -> None:
    """Plays episodes one after another, trial by trial, and prints their metrics."""
    row = find_row(arguments.id)
    env = make_env(arguments)
    values = play(env, arguments.policy, arguments.episodes, arguments.seed)
    env.close()
    metrics = {name: summarise(np.array(each)) for name, each in values.items()}
    if arguments.json:
        print_json({"id": row.id, "policy": arguments.policy, "episodes": arguments.episodes, "metrics": metrics})
        return
    print(f"{row.id}, {arguments.policy} policy, {arguments.episodes} episodes from seed {arguments.seed}")
    width = max(map(len, metrics))
    for name, each in metrics.items():
        mean, stderr = ("-" if value is None else f"{value:.4g}" for value in (each["mean"], each["stderr"]))
        print(f"{name:{width}}  {mean:>8} +- {stderr}")


def play(env: TrialEnv, policy: str, episodes: int, seed: int) -> dict[str, list[float]]:
    """Metrics of each episode, by name; `return` is the sum of rewards."""
    rng = np.random.default_rng(seed)
    values: defaultdict[str, list[float]] = defaultdict(list)
    for k in range(episodes):
        _, info = env.reset(seed=seed if k == 0 else None)
        total, is_over = 0.0, False
        while not is_over:
            _, reward, terminated, truncated, info = env.step(choose_action(env, policy, rng))
            total += reward
            is_over = terminated or truncated
        for name, value in (metrics_of(env, info) | {"return": total}).items():
            values[name].append(value)
    return dict(values)


def summarise(values: np.ndarray) -> dict[str, float | None]:
    """Mean and its standard error; None where there is none, as for one episode."""
    if not np.isfinite(values).all():
        return {"mean": None, "stderr": None}
    stderr = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan
    return {"mean": float(values.mean()), "stderr": number_or_none(stderr)}
