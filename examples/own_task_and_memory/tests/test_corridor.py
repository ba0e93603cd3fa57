"""The task keeps the contract, and an episode is as computed by hand."""

import gymnasium as gym

import memenvs  # noqa: F401  (registers the installed task)
from memenvs.testing import check_env


def test_contract():
    check_env("corridor/Corridor-v0")


def test_an_episode_by_hand():
    env = gym.make("corridor/Corridor-v0", length=2)
    observation, info = env.reset(seed=0, options={"layout": 0, "side": 1})
    assert (observation["signal"], observation["junction"], info["cell"]) == (1.0, 0.0, 0)
    for cell, junction in ((1, 0.0), (2, 1.0), (2, 1.0)):  # the wall stops the third step
        observation, reward, terminated, _, info = env.step(0)
        assert (observation["signal"], observation["junction"], info["cell"]) == (0.0, junction, cell)
        assert (reward, terminated) == (0.0, False)
    _, reward, terminated, truncated, info = env.step(2)
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    env.reset(options={"layout": 0, "side": 0})
    for action in (1, 0, 0, 2):  # the first turn does nothing, the last one is wrong
        _, reward, terminated, _, info = env.step(action)
    assert (reward, terminated, info["success"]) == (0.0, True, False)
