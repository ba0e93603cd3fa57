"""Collect the positions of an environment, to cluster them into places."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.checks import check_int
from memenvs.clustering import fit_places
from memenvs.wrappers.truth import truth_of

__all__ = ["collect_positions", "fit_places"]


def collect_positions(env: gym.Env, num_steps: int, *, seed: int) -> np.ndarray:
    """Collect positions with random actions.

    The environment is reset and left in mid-episode.

    Args:
        env: An environment that `PoseWrapper` supports.
        num_steps: Number of positions; >= 1.
        seed: Seeds environment and actions.

    Returns:
        float64, (num_steps, 2); x and y in the world frame, m.

    Raises:
        ValueError: `num_steps` is no integer or below 1, or the pose of the environment is unknown.
    """
    check_int("num_steps", num_steps)
    truth = truth_of(env)
    env.action_space.seed(seed)
    info: dict[str, Any]
    _, info = env.reset(seed=seed)
    positions = [truth.pose(info)[:2]]
    while len(positions) < num_steps:
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        positions.append(truth.pose(info)[:2])
        if terminated or truncated:
            _, info = env.reset()
    return np.array(positions)
