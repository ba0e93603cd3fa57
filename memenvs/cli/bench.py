"""`memenvs bench`."""

from __future__ import annotations

import argparse
import time

import numpy as np

from memenvs.cli.common import begin, draw_possible, environment_spec, parse_settings, print_json, refused_by
from memenvs.core import TrialVectorEnv


def run(arguments: argparse.Namespace) -> None:
    """Steps the vector form under random actions and prints its speed.

    A step is one that the task made; a frame is one observation. An automatic reset gives a frame and no step.
    """
    row = environment_spec(arguments.id)
    n = arguments.num_envs
    given = parse_settings(arguments.kwargs)
    start = time.perf_counter()
    with refused_by(row, given):
        env = TrialVectorEnv(row.task, n, copy=False, **{**row.defaults, **given})
    begin(env, arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    actions = rng.integers(env.task.action_space.n, size=(1000, n))
    env.step(_possible(env, actions[0], rng))
    first = time.perf_counter() - start
    num_steps = num_frames = turn = 0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < arguments.seconds:
        _, _, _, _, info = env.step(_possible(env, actions[turn % len(actions)], rng))
        num_steps += int(np.count_nonzero(info["num_steps"]))  # 0 right after a reset
        num_frames += n
        turn += 1
    env.close()
    document = {
        "id": row.id,
        "num_envs": n,
        "steps_per_second": num_steps / elapsed,
        "frames_per_second": num_frames / elapsed,
        "first_step_seconds": first,
    }
    if arguments.json:
        print_json(document)
        return
    print(f"{row.id}, {n} environments, {elapsed:.1f} s under random actions")
    print(
        f"{document['steps_per_second']:,.0f} steps/s, {document['frames_per_second']:,.0f} frames/s (resets included)"
    )
    print(f"{first:.2f} s until the first step was done: set-up, reset, compiling or loading compiled code")


def _possible(env: TrialVectorEnv, actions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """These actions, or others drawn where the task says which are possible now."""
    possible = env.task.possible_actions()
    return actions if possible is None else draw_possible(possible, rng)
