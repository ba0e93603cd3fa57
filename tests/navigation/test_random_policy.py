"""What a random policy does in the 46 test homes, 10 episodes each, against Table 1 of the Scene Memory Transformer's article."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

import memenvs  # noqa: F401  (registers the ids)

HOMES, EPISODES = 46, 10
NAMES = ("distance", "collisions", "cells", "classes", "ratio", "forwards_ok", "return", "num_steps")


def play() -> np.ndarray:
    """Metrics at the end of each episode, float64, (homes, episodes, names)."""
    env = gym.make_vec("memenvs/Search-v0", num_envs=EPISODES, world="suncg_style", split="test", modalities=("pose",))
    rng = np.random.default_rng(0)
    ends = np.full((HOMES, EPISODES, len(NAMES)), np.nan)
    for home in range(HOMES):
        env.reset(seed=[10_000 + 100 * home + k for k in range(EPISODES)], options={"layout": home})
        playing = np.ones(EPISODES, bool)
        while playing.any():
            _, _, terminated, truncated, info = env.step(rng.integers(3, size=EPISODES))
            ended = (terminated | truncated) & playing
            ends[home, ended] = np.stack([info[name][ended] for name in NAMES], axis=1)
            playing &= ~ended
    env.close()
    return ends


def test_a_random_policy_scores_as_in_the_article():
    ends = play()
    mean = dict(zip(NAMES, ends.mean((0, 1)).tolist(), strict=True))
    assert abs(mean["distance"] - 25.3) < 1.5, mean
    assert abs(mean["collisions"] - 42.7) < 1.5, mean
    assert abs(mean["cells"] - 27.4) < 2.0, mean
    assert abs(mean["classes"] - 1.79) < 0.25, mean
    assert abs(mean["ratio"] - 0.363) < 0.04, mean
    assert abs(mean["num_steps"] - 431) < 20, mean  # derived from the article's forward steps and collisions
    values = {name: ends[..., k] for k, name in enumerate(NAMES)}
    np.testing.assert_allclose(values["distance"], 0.25 * values["forwards_ok"])
    np.testing.assert_allclose(values["return"], 100 * values["classes"] + values["cells"] - values["collisions"])
