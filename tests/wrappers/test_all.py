from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from stable_baselines3.common.env_checker import check_env

from memenvs.wrappers import PlaceWrapper, PoseWrapper, PreviousActionWrapper, TrialWrapper
from memenvs.wrappers.key import observation_key


def wrap(env: gym.Env) -> gym.Env:
    env = PlaceWrapper(env, centres=np.array([[0.0, 0.0], [5.0, 5.0]]))
    env = PoseWrapper(env, frame="camera", noise="gaussian", position_sd=0.1)
    return TrialWrapper(PreviousActionWrapper(env), trial_episodes=2)


def play(env: gym.Env, steps: int = 30) -> list:
    env.action_space.seed(0)
    rows = [env.reset(seed=1)[0]]
    for _ in range(steps):
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        rows.append(observation)
        if terminated or truncated:
            rows.append(env.reset()[0])
    return rows


@pytest.mark.parametrize("name", ["darkroom", "minigrid", "miniworld"])
def test_spec_goes_through_json(make, name):
    env = wrap(make(name))
    text = env.spec.to_json()
    assert len(json.loads(text)["additional_wrappers"]) == 4
    again = gym.make(EnvSpec.from_json(text))
    assert type(again) is type(env)
    for before, after in zip(play(env), play(again), strict=True):
        assert before.keys() == after.keys()
        for key in before:
            np.testing.assert_array_equal(before[key], after[key])
    again.close()


def test_images_are_known_by_their_space():
    for space, key in (
        (gym.spaces.Box(0, 255, (5, 6, 3), np.uint8), "rgb"),
        (gym.spaces.Box(0, 255, (5, 6), np.uint8), "observation"),
        (gym.spaces.Box(0, 1, (5, 6, 3), np.float32), "observation"),
        (gym.spaces.Discrete(3), "observation"),
    ):
        assert observation_key(space) == key


def test_stable_baselines3_takes_them(make):
    check_env(wrap(make("darkroom")))


def test_gymnasium_vectors_take_them(make):
    env = gym.make_vec(
        "memenvs/Darkroom-v0", num_envs=3, vectorization_mode="sync", wrappers=[wrap], max_episode_steps=5
    )
    observation, _ = env.reset(seed=0)
    assert observation["pose"].shape == (3, 3)
    assert observation["place"].shape == (3,)
    for _ in range(12):
        observation, *_ = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation)
    env.close()
