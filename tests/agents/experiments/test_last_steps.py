"""A memory of the last steps alone: it is that of a policy which has seen nothing else."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from memenvs.agents.experiments.last_steps import LastSteps
from tests.agents.learners import Noise, darkroom, learner, shake


@pytest.mark.parametrize("size", [0, 2, 100])
def test_it_is_the_memory_after_these_steps_alone(size: int) -> None:
    """Two environments, of which the second begins a trial at step 5; 100 steps are all of a trial."""
    policy = learner("gru").policy
    policy.resets_with_episode = False  # as after learning in trials
    short = LastSteps(policy, size)
    draws = np.random.default_rng(0)
    trial_start = np.zeros((9, 2), bool)
    trial_start[0] = trial_start[5, 1] = True
    episode_start = trial_start.copy()
    episode_start[[3, 7], 0] = episode_start[8, 1] = True
    policy.observation_space.seed(0)
    state, seen = None, []
    for t in range(9):
        drawn = [policy.observation_space.sample() for _ in range(2)]
        observation = {key: np.stack([one[key] for one in drawn]) for key in drawn[0]}
        actions, state = short.predict(observation, state, episode_start[t], bool(draws.integers(2)), trial_start[t])
        seen.append(({key: value.copy() for key, value in observation.items()}, actions))
        for value in observation.values():
            value[:] = 0  # as environments with copy=False do
        for i in range(2):
            began, trial = (max(np.flatnonzero(flags[: t + 1, i])) for flags in (episode_start, trial_start))
            own = None
            for s in range(max(trial, began - size), t + 1):
                one = {key: value[i : i + 1] for key, value in seen[s][0].items()}
                first = np.array([own is None])
                _, own = policy.predict(one, own, episode_start[s, i : i + 1] | first, True, first)
                own = policy.update_previous_action(own, seen[s][1][i : i + 1])
            for name, value in own.items():
                torch.testing.assert_close(state[0][name][i], value[0])


@pytest.mark.parametrize("memory", ["relic", "trxl"])
def test_with_all_steps_a_policy_acts_as_it_does_else(memory: str) -> None:
    """Also after 256 steps, when a new state of ReLIC has less room than the one that has grown."""
    env = darkroom(2, horizon=150)
    longest = {"max_episode_steps": 150} if memory == "relic" else {}
    policy = shake(learner(memory, env=env, memory_kwargs=longest)).policy
    policy.resets_with_episode = False
    policies = [policy, LastSteps(policy, 1_000)]
    policy.observation_space.seed(0)
    states: list[Any] = [None, None]
    taken = []
    for t in range(300):
        drawn = [policy.observation_space.sample() for _ in range(2)]
        observation = {key: np.stack([one[key] for one in drawn]) for key in drawn[0]}
        trial_start = np.array([t in (0, 270), t == 0])
        episode_start = trial_start | (t in (140, 280))
        drawn_from = policy.generator.get_state()
        for k, own in enumerate(policies):
            policy.generator.set_state(drawn_from)
            actions, states[k] = own.predict(observation, states[k], episode_start, False, trial_start)
            taken.append(actions)
    np.testing.assert_array_equal(taken[::2], taken[1::2])
    assert len(np.unique(taken)) > 1


def test_what_is_refused() -> None:
    policy = learner("gru").policy
    with pytest.raises(ValueError, match="last_steps must be an integer of at least 0, got -1"):
        LastSteps(policy, -1)
    with pytest.raises(ValueError, match="need an environment with trials"):
        LastSteps(policy, 1).predict({}, None, np.array([True]))


def test_an_observation_may_be_an_array() -> None:
    """Without a name, as of environments that have one sensor."""
    space = spaces.Box(-1.0, 1.0, (3,), np.float32)
    policy = shake(learner("gru", env=DummyVecEnv([partial(Noise, space)] * 2))).policy
    policy.resets_with_episode = False
    states: list[Any] = [None, None]
    for t in range(8):
        starts = np.array([t in (0, 3), t in (0, 5)]), np.full(2, t == 0)
        observation = np.stack([space.sample(), space.sample()])
        for k, own in enumerate((policy, LastSteps(policy, 100))):
            states[k] = own.predict(observation, states[k], starts[0], True, starts[1])[1]
    for name, value in states[0].items():
        torch.testing.assert_close(states[1][0][name], value)
