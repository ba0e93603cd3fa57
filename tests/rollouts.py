"""Rollouts with fixed actions, and comparisons of them bit by bit."""

import hashlib
import json
import sys
from typing import Any

import gymnasium as gym
import numpy as np

import memenvs
from memenvs.actions import draw_actions
from memenvs.registry import EnvironmentSpec, find_environment
from memenvs.task import setting_names
from memenvs.testing.comparison import same
from memenvs.testing.task_under_test import info_of

__all__ = ["any_action", "digest", "info_of", "observation_of", "random_actions", "rollout", "rollout_digest", "same"]


def random_actions(env: gym.Env | gym.vector.VectorEnv, steps: int, num_envs: int, seed: int = 0) -> np.ndarray:
    """Random actions, (steps, num_envs) and the axis of a `Box`."""
    space = getattr(env, "single_action_space", env.action_space)
    return draw_actions(space, (steps, num_envs), np.random.default_rng(seed))


def observation_of(batch: dict[str, np.ndarray], i: int) -> dict[str, np.ndarray]:
    """Observation of one environment of a batch."""
    return {key: value[i] for key, value in batch.items()}


def rollout(env: gym.Env, actions: np.ndarray, *, seed: int) -> list[tuple[Any, ...]]:
    """Play a single environment with fixed actions.

    Returns:
        (observation, reward, terminated, truncated, info) of each step and of each reset, which takes an action too.
    """
    observation, info = env.reset(seed=seed)
    rows: list[tuple[Any, ...]] = [(observation, 0.0, False, False, info)]
    for action in actions:
        if rows[-1][2] or rows[-1][3]:
            observation, info = env.reset()
            rows.append((observation, 0.0, False, False, info))
        else:
            rows.append(env.step(action))
    return rows


def digest(rows: list[tuple[Any, ...]]) -> str:
    """Compute a hash of a rollout."""
    sha = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, dict):
            for key in sorted(value):
                sha.update(key.encode())
                add(value[key])
        else:
            sha.update(np.asarray(value).tobytes())

    for each in rows:
        for part in each:
            add(part)
    return sha.hexdigest()


def any_action(spec: EnvironmentSpec) -> dict[str, Any]:
    """Settings that always allow all actions, make few data, and permit short episodes."""
    if spec.family == "recall":
        return {"rooms": (4, 5), "image_size": (12, 12), "steps": (12, 12)}
    if spec.family == "verbalization":
        return {"scale": "smoke"}
    if spec.defaults.get("gap"):
        return {"gap": 1}
    return {"invalid": "stop"} if "invalid" in setting_names(spec.task) else {}


def rollout_digest(id: str, seed: int = 11, steps: int = 60) -> str:
    """Compute the hash of a rollout with short episodes and trials."""
    env = gym.make(id, max_episode_steps=13, trial_episodes=2, **any_action(find_environment(id)))
    rows = rollout(env, random_actions(env, steps, 1)[:, 0], seed=seed)
    env.close()
    return digest(rows)


if __name__ == "__main__":
    assert memenvs.ENVIRONMENTS
    print(json.dumps({id: rollout_digest(id) for id in sys.argv[1:]}))
