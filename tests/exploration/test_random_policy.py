"""The random policy in the 46 test homes, against Table 1 of the SMT paper.

The homes are calibrated so that it scores about the same here as in the paper's homes.
"""

import gymnasium as gym
import numpy as np
import pytest

import memenvs  # noqa: F401  (registers the ids)

HOMES = range(46)
EPISODES = 5  # in each home
#: Metric -> value of the paper and largest difference. The number of steps follows from the paper's forward steps.
PAPER = {"distance": (25.3, 1.5), "collisions": (42.7, 1.5), "cells": (27.4, 2.0), "num_steps": (431.0, 20.0)}
PAPER_SEARCH = {"classes": (1.79, 0.25), "ratio": (0.363, 0.04)}


def play_random(task: str, homes: range, *names: str) -> dict[str, np.ndarray]:
    """Metrics at the end of each episode, float64 (homes, episodes); only Search renders images."""
    count = len(homes) * EPISODES
    env = gym.make_vec(f"memenvs/{task}-v0", num_envs=count, world="suncg_style", split="test", modalities=("pose",))
    rng = np.random.default_rng(0)
    ends = {name: np.full(count, np.nan) for name in names}
    episodes = [(home, 10_000 + 100 * home + k) for home in homes for k in range(EPISODES)]
    env.reset(seed=[seed for _, seed in episodes], options=[{"layout": home} for home, _ in episodes])
    running = np.ones(count, bool)
    while running.any():
        _, _, terminated, truncated, info = env.step(rng.integers(3, size=count))
        ended = (terminated | truncated) & running
        for name, values in ends.items():
            values[ended] = info[name][ended]
        running &= ~ended
    env.close()
    return {name: values.reshape(len(homes), EPISODES) for name, values in ends.items()}


def check_bands(ends: dict, paper: dict, standard_errors: float = 0.0) -> None:
    """Compare means with the paper; a sample of homes may differ by standard errors more."""
    for name, (expected, margin) in paper.items():
        of_home = ends[name].mean(1)
        slack = standard_errors * float(of_home.std(ddof=1)) / np.sqrt(len(of_home))
        assert abs(float(of_home.mean()) - expected) < margin + slack, (name, float(of_home.mean()), slack)


@pytest.mark.slow
def test_random_policy_moves_and_collides_as_in_the_paper():
    """In Coverage, which renders nothing here; the path is the same in all three tasks."""
    ends = play_random("Coverage", HOMES, *PAPER, "forwards_ok", "return")
    check_bands(ends, PAPER)
    np.testing.assert_allclose(ends["distance"], 0.25 * ends["forwards_ok"])
    np.testing.assert_allclose(ends["return"], 5 * ends["cells"] - ends["collisions"])


@pytest.mark.slow
def test_random_policy_finds_as_much_as_in_the_paper_in_some_homes():
    """Every eighth home; the mean over 6 of the 46 homes has a standard error of 0.25 classes."""
    ends = play_random("Search", HOMES[::8], *PAPER_SEARCH, "cells", "collisions", "return")
    check_bands(ends, PAPER_SEARCH, standard_errors=2.0)
    np.testing.assert_allclose(ends["return"], 100 * ends["classes"] + ends["cells"] - ends["collisions"])
