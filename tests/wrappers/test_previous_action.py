from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from memenvs.wrappers import PreviousActionWrapper, TrialWrapper


def _wrapped_outside(env):
    return PreviousActionWrapper(TrialWrapper(env, trial_episodes=2))


def _wrapped_inside(env):
    return TrialWrapper(PreviousActionWrapper(env), trial_episodes=2)


@pytest.mark.parametrize("wrap", [_wrapped_outside, _wrapped_inside])
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
