"""What a random policy does in the 46 test homes, 10 episodes each, against Table 1 of the Scene Memory Transformer's article."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import memenvs  # noqa: F401  (registers the ids)

HOMES, EPISODES = 46, 10
#: Metric -> what the article has, and how far off it may be; the number of steps is derived from its forward steps and collisions.
ARTICLE = {"distance": (25.3, 1.5), "collisions": (42.7, 1.5), "cells": (27.4, 2.0), "num_steps": (431.0, 20.0)}
SEARCHED = {"classes": (1.79, 0.25), "ratio": (0.363, 0.04)}


def play(task: str, *names: str) -> dict[str, np.ndarray]:
    """Metrics at the end of each episode, float64, (homes, episodes) each. Nothing is drawn but what Search has to look at."""
    env = gym.make_vec(f"memenvs/{task}-v0", num_envs=EPISODES, world="suncg_style", split="test", modalities=("pose",))
    rng = np.random.default_rng(0)
    ends = {name: np.full((HOMES, EPISODES), np.nan) for name in names}
    for home in range(HOMES):
        env.reset(seed=[10_000 + 100 * home + k for k in range(EPISODES)], options={"layout": home})
        playing = np.ones(EPISODES, bool)
        while playing.any():
            _, _, terminated, truncated, info = env.step(rng.integers(3, size=EPISODES))
            ended = (terminated | truncated) & playing
            for name, values in ends.items():
                values[home, ended] = info[name][ended]
            playing &= ~ended
    env.close()
    return ends


def check(ends: dict[str, np.ndarray], article: dict[str, tuple[float, float]]) -> None:
    means = {name: float(ends[name].mean()) for name in article}
    for name, (expected, margin) in article.items():
        assert abs(means[name] - expected) < margin, (name, means)


def test_a_random_policy_walks_and_collides_as_in_the_article():
    """In Coverage, where nothing has to be drawn; ways are the same in all three tasks."""
    ends = play("Coverage", *ARTICLE, "forwards_ok", "return")
    check(ends, ARTICLE)
    np.testing.assert_allclose(ends["distance"], 0.25 * ends["forwards_ok"])
    np.testing.assert_allclose(ends["return"], 5 * ends["cells"] - ends["collisions"])


@pytest.mark.learning
def test_a_random_policy_finds_as_much_as_in_the_article():
    """Draws 200,000 pictures: some 20 s of a core."""
    ends = play("Search", *ARTICLE, *SEARCHED, "return")
    check(ends, ARTICLE | SEARCHED)
    np.testing.assert_allclose(ends["return"], 100 * ends["classes"] + ends["cells"] - ends["collisions"])
