"""`memenvs bench`."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from memenvs.actions import draw_actions
from memenvs.cli.common import (
    environment_spec,
    parse_settings,
    reset_env,
    settings_as_user_error,
)
from memenvs.cli.policies import draw_possible_actions
from memenvs.core import TrialVectorEnv
from memenvs.progress import progress_bar

ARGUMENTS = """
id ID: the environment, as of `memenvs rollout`
--env_kwargs JSON: settings of the environment
--num-envs N=16: environments
--seconds SECONDS=5.0: time to measure
--seed K=0: seed
"""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Step the vector environment with random actions and print its speed.

    A step is a step of the task, a frame an observation. An autoreset gives a frame but no step.
    """
    spec = environment_spec(arguments.id)
    num_envs = arguments.num_envs
    settings = parse_settings(arguments.settings)
    start = time.perf_counter()
    with settings_as_user_error(spec, settings):
        if spec.task is None:
            raise ValueError("must be a task of memenvs, whose environments are stepped together")
        env = TrialVectorEnv(spec.task, num_envs, copy=False, **{**spec.defaults, **settings})
    reset_env(env, arguments.seed)
    rng = np.random.default_rng(arguments.seed)
    # Drawn ahead, so that drawing is not measured; fewer where each is a vector.
    different = 1000 if not env.task.action_space.shape else 10
    actions = draw_actions(env.task.action_space, (different, num_envs), rng)
    env.step(_valid_actions(env, actions[0], rng))
    first_step_seconds = time.perf_counter() - start
    num_steps = num_frames = num_calls = second = 0
    # The bar is drawn once a second, which takes a thousandth of the time.
    with progress_bar("measuring", quiet=arguments.json, refreshes=1.0) as progress:
        start = time.perf_counter()
        while (elapsed := time.perf_counter() - start) < arguments.seconds:
            _, _, _, _, info = env.step(_valid_actions(env, actions[num_calls % len(actions)], rng))
            num_steps += int(np.count_nonzero(info["num_steps"]))  # 0 right after a reset
            num_frames += num_envs
            num_calls += 1
            if elapsed >= second + 1:
                second = int(elapsed)
                progress(elapsed / arguments.seconds)
    env.close()
    if not arguments.json:
        print(f"{spec.id}, {num_envs} environments, {elapsed:.1f} s under random actions")
        print(f"{num_steps / elapsed:,.0f} steps/s, {num_frames / elapsed:,.0f} frames/s (resets included)")
        print(
            f"{first_step_seconds:.2f} s until the first step was done: set-up, reset, compiling or loading compiled "
            "code"
        )
    return {
        "id": spec.id,
        "num_envs": num_envs,
        "steps_per_second": num_steps / elapsed,
        "frames_per_second": num_frames / elapsed,
        "first_step_seconds": first_step_seconds,
    }


def _valid_actions(env: TrialVectorEnv, actions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return these actions, or others where the task has only some that are possible now."""
    possible = env.task.action_masks()
    return actions if possible is None else draw_possible_actions(possible, rng)
