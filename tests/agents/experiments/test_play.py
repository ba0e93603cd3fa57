"""The loop in which policies act: what it passes on, and demonstrations."""

from __future__ import annotations

from typing import Any

import numpy as np

from memenvs.agents.experiments.play import DemonstratedPolicy, play_trials, trial_options
from tests.agents.learners import darkroom


class Counter:
    """Stands still; its state is the number of calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, Any, list[bool], bool]] = []
        self.replaced: list[list[int]] = []

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        self.calls.append((observation["position"].copy(), state, episode_start.tolist(), deterministic))
        return np.zeros(len(episode_start), np.int64), (state or 0) + 1

    def update_previous_action(self, state: Any, actions: np.ndarray) -> Any:
        self.replaced.append(actions.tolist())
        return state


def test_each_step_follows_from_the_one_before() -> None:
    env, policy = darkroom(2, episodes=2, seed=3), Counter()
    env.set_options(trial_options(0, 2))
    steps = []
    observation = env.reset()
    observed = [observation["position"].copy()]  # the environment reuses its arrays
    for step in play_trials(policy, env, observation, deterministic=True):
        steps.append(step)
        observed.append(step.observation["position"].copy())
        if len(steps) == 7:
            break
    assert len(policy.calls) == 7  # none after the caller has stopped
    positions, states, starts, deterministic = zip(*policy.calls, strict=True)
    assert states == (None, *range(1, 7)) and [step.state for step in steps] == list(range(1, 8))
    assert [all(start) for start in starts] == [True] + [bool(step.dones.all()) for step in steps[:-1]]
    assert [t for t, step in enumerate(steps) if step.dones.any()] == [4]  # episodes of 5 steps
    assert all("episode" in info for info in steps[4].infos) and steps[3].infos == [{}, {}]
    np.testing.assert_array_equal(positions, observed[:-1])
    assert set(deterministic) == {True}


def test_options_number_the_trials() -> None:
    assert trial_options(0, 3) == [{"trial": 0}] * 3
    assert trial_options(6, 3, [5, 7]) == [{"trial": 2, "layout": layout} for layout in (5, 7, 5)]


def test_the_oracle_acts_where_it_demonstrates() -> None:
    env, policy = darkroom(2, seed=3), Counter()
    player = DemonstratedPolicy(policy, env)
    player.demonstrated = np.array([False, True])
    observation = env.reset()
    oracle = env.oracle_actions()
    for step in play_trials(player, env, observation):
        assert step.actions.tolist() == [0, oracle[1]]
        assert policy.replaced == [[0, oracle[1]]]
        break
    player.demonstrated = np.zeros(2, bool)
    actions, _ = player.predict(step.observation, step.state, step.dones)
    assert actions.tolist() == [0, 0] and len(policy.replaced) == 1
