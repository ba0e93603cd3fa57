"""Shared parts of the benchmarks: Miniworld for comparison, and the commit that is measured."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np

#: Plays for some seconds and returns frames or steps per second.
Play = Callable[[float], float]


def make_miniworld() -> Play:
    """Miniworld FourRooms (80 x 60 colour), without Gymnasium's wrappers, with random actions."""
    import miniworld  # noqa: F401  (registers its ids; needs a display)

    env = gym.make("MiniWorld-FourRooms-v0").unwrapped
    env.reset(seed=0)
    rng = np.random.default_rng(0)

    def play(seconds: float) -> float:
        steps, began = 0, time.perf_counter()
        while (spent := time.perf_counter() - began) < seconds:
            _, _, terminated, truncated, _ = env.step(int(rng.integers(env.action_space.n)))
            steps += 1
            if terminated or truncated:
                env.reset()
        return steps / spent

    return play


def commit() -> str:
    """Short hash of the commit that is measured; "unknown" outside a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
