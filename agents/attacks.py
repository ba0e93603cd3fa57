"""Trained attacks of a certificate: policies that see only a window of the last steps.

One recipe for every id, so that nobody tunes an attack until it fails: PPO with a small transformer over the last
`window` steps, over the ends of episodes within a trial. With a window of 1 it is a network without memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import trained_policy
from memenvs.agents.experiments.train import check_config, train_run
from memenvs.agents.experiments.trial_evaluator import TrialEvaluator
from memenvs.agents.vec_env import make_vec_env
from memenvs.certificate import PolicyRow, Training
from memenvs.certificates.test_sets import find_test_set
from memenvs.checks import check_int
from memenvs.core import TrialVectorEnv
from memenvs.registry import find_environment

RECIPE = "ppo-window"
#: Environment steps of an attack, and environments that play them side by side.
STEPS, NUM_ENVS = 1_000_000, 64
#: Windows that are trained: the present alone, and the longest that counts as short.
WINDOWS = (1, 16)
#: Steps of a rollout, at least and at most; in between, those of an episode.
_ROLLOUT = (256, 1024)


def attack_config(id: str, window: int, *, steps: int = STEPS, seed: int = 0) -> RunConfig:
    """Make the settings of a trained attack.

    Args:
        id: The id; its default settings and split are learned from.
        window: Steps that the policy sees, the present one included; 1 for a policy without memory.
        steps: Environment steps.
        seed: Seed of the run.

    Raises:
        ValueError: A number is too small, or there is no such id.
        TypeError: Actions are not `Discrete`: the answer is a picture, which PPO does not learn to draw.
    """
    check_int("window", window)
    spec = find_environment(id)
    if spec.task is None:
        raise ValueError(f"attacks need a task of memenvs (BatchTask), got {spec.id}")
    env = TrialVectorEnv(spec.task, 1, **spec.defaults)
    space, episode_steps = env.single_action_space, env.max_episode_steps
    env.close()
    if not isinstance(space, gym.spaces.Discrete):
        raise TypeError(f"attacks are trained for Discrete actions, got {space} in {spec.id}")
    least, most = _ROLLOUT
    reader = {"dim": 64, "layers": 1, "heads": 2, "mlp_dim": 128, "capacity": window, "time_index": "age"}
    scale = max(1.0, spec.oracle_at_least or 1.0)  # of the returns, whose squared error the value learns
    learner = PPOConfig(
        n_steps=min(max(episode_steps, least), most),
        n_updates=1,
        batch_size=16,
        learning_rate=1e-3,
        final_learning_rate=1e-4,
        normalize_advantage=True,
        clip_range_vf=None,
        vf_coef=0.25 / scale,
    )
    policy: dict[str, Any] = {"memory": "none"}
    if window > 1:
        policy = {"memory": "t-fifo", "memory_kwargs": reader}
    return RunConfig(
        env=spec.id, n_envs=NUM_ENVS, total_steps=steps, seed=seed, threads=1, learner=learner, policy=policy
    )


def trained_row(
    id: str,
    window: int,
    folder: Path,
    *,
    test_set: str = "v0",
    seeds: Sequence[int] = (0,),
    steps: int = STEPS,
    quiet: bool = False,
) -> PolicyRow:
    """Train an attack, or resume it, and play the trials of a test set with it.

    Args:
        id: The id.
        window: Steps that the policy sees, the present one included.
        folder: Folder of the runs, one for each seed.
        test_set: Name of the test set.
        seeds: Seeds of the runs.
        steps: Environment steps of each.
        quiet: Show no progress bar.

    Returns:
        The row: the mean over seeds and trials, with the larger of the standard errors over trials and over seeds.
    """
    check_int("steps", steps)
    trials = find_test_set(id, test_set)
    score_key = find_environment(id).score_key
    means, errors = [], []
    for seed in seeds:
        config = attack_config(id, window, steps=steps, seed=seed)
        check_config(config)
        with RunDirectory.open_or_create(folder / f"window-{window}-{seed}", config) as run:
            train_run(run, quiet=quiet)
            policy = trained_policy(run, seed)
        env = make_vec_env(trials.id, min(NUM_ENVS, trials.trials), **trials.settings)
        try:
            scores = TrialEvaluator(env, test_set=test_set).run(policy).metrics[score_key]
        finally:
            env.close()
        of_trials = np.nanmean(scores[:, 1:] if scores.shape[1] > 1 else scores, axis=1)
        means.append(float(of_trials.mean()))
        errors.append(float(of_trials.std(ddof=1) / np.sqrt(len(of_trials))))
    stderr = max(max(errors), float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else 0.0)
    config = attack_config(id, window, steps=steps)
    return PolicyRow(
        name=f"trained, window {window}",
        way="present" if window == 1 else "window",
        window=window,
        mean=float(np.mean(means)),
        stderr=stderr,
        how="trained",
        training=Training(recipe=RECIPE, budget=steps, seeds=tuple(seeds), settings=dict(config.policy)),
    )
