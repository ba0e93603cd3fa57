import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from stable_baselines3.common.env_checker import check_env

from memenvs.wrappers import (
    PlaceWrapper,
    PoseWrapper,
    PreviousActionWrapper,
    TrialWrapper,
    collect_positions,
    fit_places,
)
from memenvs.wrappers.key import observation_key
from tests.rollouts import random_actions, rollout, same
from tests.wrappers.conftest import ENVS


def wrap(env: gym.Env) -> gym.Env:
    env = PlaceWrapper(env, centres=np.array([[0.0, 0.0], [5.0, 5.0]]))
    env = PoseWrapper(env, frame="camera", noise="gaussian", position_sd=0.1)
    return TrialWrapper(PreviousActionWrapper(env), trial_episodes=2)


@pytest.mark.parametrize("name", ["darkroom", "minigrid", "miniworld"])
def test_spec_goes_through_json(make, name):
    env = wrap(make(name))
    text = env.spec.to_json()
    assert len(json.loads(text)["additional_wrappers"]) == 4
    again = gym.make(EnvSpec.from_json(text))
    assert type(again) is type(env)
    actions = random_actions(env, 30, 1)[:, 0]
    for before, after in zip(rollout(env, actions, seed=1), rollout(again, actions, seed=1), strict=True):
        assert same(before[0], after[0])
    again.close()


@pytest.mark.parametrize("name", ENVS)
def test_every_environment(make, name):
    """Observations are of their space; inner episodes start at the origin and without an action."""
    env = make(name)
    if name != "cartpole":  # which has no pose
        env = PoseWrapper(PlaceWrapper(env, centres=fit_places(collect_positions(env, 60, seed=0), 3)))
    env = TrialWrapper(PreviousActionWrapper(env), trial_episodes=2)
    env.action_space.seed(0)
    observation, info = env.reset(seed=4)
    keys, previous, starts, is_over = set(info), 0, 0, False
    while not is_over:
        assert env.observation_space.contains(observation)
        assert set(info) - {"TimeLimit.truncated"} == keys
        assert observation["previous_action"] == (0 if info["episode_start"] else previous)
        if info["episode_start"]:
            starts += 1
            assert name == "cartpole" or not observation["pose"].any()
        else:
            assert info["last_obs"] is observation and info["last_info"].items() <= info.items()
        action = env.action_space.sample()
        previous = action + 1
        observation, _, terminated, truncated, info = env.step(action)
        is_over = terminated or truncated
    assert starts == 2 and env.observation_space.contains(observation)


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


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: PreviousActionWrapper(TrialWrapper(env, trial_episodes=2)),
        lambda env: TrialWrapper(PreviousActionWrapper(env), trial_episodes=2),
    ],
)
def test_an_inner_episode_starts_without_an_action(make, wrap):
    env = wrap(make("cartpole", max_episode_steps=2))
    env.reset(seed=0)
    assert [int(env.step(1)[0]["previous_action"]) for _ in range(4)] == [2, 0, 2, 2]


class Other(gym.Env):
    observation_space = gym.spaces.Discrete(2)

    def __init__(self, action_space):
        self.action_space = action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 1, 0.0, False, False, {}


def test_other_action_spaces():
    env = PreviousActionWrapper(Other(gym.spaces.Discrete(3, start=-1)))
    env.reset(seed=0)
    assert [int(env.step(action)[0]["previous_action"]) for action in (-1, 0, 1)] == [1, 2, 3]
    env = PreviousActionWrapper(Other(gym.spaces.Box(1.0, 2.0, (2,), np.float32)))
    negative = PreviousActionWrapper(Other(gym.spaces.Box(-2.0, -1.0, (2,), np.float32)))
    assert negative.observation_space["previous_action"] == gym.spaces.Box(-2.0, 0.0, (2,), np.float32)
    assert env.observation_space["previous_action"] == gym.spaces.Box(0.0, 2.0, (2,), np.float32)
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    observation = env.step(np.array([1.5, 2.0], np.float32))[0]
    assert env.observation_space.contains(observation)
    np.testing.assert_array_equal(observation["previous_action"], [1.5, 2.0])
    with pytest.raises(TypeError, match="the action space must be Discrete or Box, got MultiBinary"):
        PreviousActionWrapper(Other(gym.spaces.MultiBinary(2)))
