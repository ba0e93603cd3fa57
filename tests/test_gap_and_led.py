"""The settings `gap` and `led`: they close two ways around a memory."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import memenvs
from memenvs.core import TrialEnv, TrialVectorEnv
from tests.test_core import Corridor

assert memenvs.ENVIRONMENTS


def played(env: TrialEnv, actions: list[int]) -> list[tuple[int, int, float, bool, int]]:
    """Cell, phase, reward, truncated and steps of the episode after each action."""
    rows = []
    for action in actions:
        observation, reward, _, truncated, info = env.step(action)
        rows.append((int(observation["cell"][0]), int(observation["phase"]), reward, truncated, info["num_steps"]))
    return rows


def test_a_gap_by_hand() -> None:
    env = TrialEnv(Corridor, gap=2, max_episode_steps=4, trial_episodes=2)
    observation, info = env.reset(seed=0, options={"start": 1})
    assert (observation["cell"].tolist(), observation["phase"]) == ([0], 0)  # blank, though the agent stands in cell 1
    assert info["start"] == 1 and env.at_trial_start
    # Two actions are ignored; then the first observation of the task comes, and two actions move.
    assert played(env, [1, 1]) == [(0, 0, 0.0, False, 1), (1, 1, 0.0, False, 2)]
    assert played(env, [1, 0]) == [(2, 1, 0.0, False, 3), (2, 1, 0.0, True, 4)]
    observation, info = env.reset()
    assert (info["trial_id"], info["episode_index"], info["num_steps"], observation["phase"]) == (0, 1, 0, 0)
    assert env.max_episode_steps == 4 and TrialEnv(Corridor, gap=2).max_episode_steps == 12  # 10 of the task
    assert env.observation_space["phase"] == gym.spaces.Discrete(2)


def test_a_gap_leaves_the_episodes_as_they_are() -> None:
    with_gap = TrialVectorEnv(Corridor, 3, gap=5, trial_episodes=2, autoreset_mode="SameStep")
    without = TrialVectorEnv(Corridor, 3, trial_episodes=2, autoreset_mode="SameStep")
    infos = [env.reset(seed=4)[1] for env in (with_gap, without)]
    for _ in range(6):
        np.testing.assert_array_equal(infos[0]["draws"], infos[1]["draws"])
        np.testing.assert_array_equal(infos[0]["layout_id"], infos[1]["layout_id"])
        for _ in range(5):
            with_gap.step(np.ones(3, np.int64))
        for _ in range(4):
            steps = [env.step(np.ones(3, np.int64)) for env in (with_gap, without)]
        infos = [step[-1] for step in steps]
        np.testing.assert_array_equal(steps[0][1], steps[1][1])  # the reward at the end of the corridor
        np.testing.assert_array_equal(steps[0][4]["final_obs"][1]["cell"], steps[1][4]["final_obs"][1]["cell"])
        assert steps[0][0]["phase"].tolist() == [0, 0, 0] and steps[0][4]["final_obs"][0]["phase"] == 1


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_no_window_of_the_gap_sees_two_episodes(mode: str) -> None:
    """Between the last observation of an episode and the first of the next there are `gap` blank ones."""
    env = TrialVectorEnv("memenvs.darkroom.env:Darkroom", 2, gap=3, size=4, max_episode_steps=9, autoreset_mode=mode)
    observation, _ = env.reset(seed=0)
    phases, cells = [], []
    for _ in range(40):
        phases.append(observation["phase"].copy())
        cells.append(observation["position"].sum() + observation["previous_reward"].sum())
        observation, *_ = env.step(np.full(2, 0))
    shown = np.flatnonzero(np.array(phases)[:, 0])
    breaks = np.diff(shown)[np.diff(shown) > 1]
    assert len(breaks) >= 3 and (breaks == 4).all()
    assert not np.array(cells)[np.array(phases)[:, 0] == 0].any()


class Stay(Corridor):
    """A corridor whose first four steps are a stay."""

    def __init__(self, num_envs: int, **kwargs: Any) -> None:
        super().__init__(num_envs, length=100)
        self.time = np.zeros(num_envs, np.int64)

    def begin_episode(self, i: int, rng: np.random.Generator, options: Any) -> None:
        super().begin_episode(i, rng, options)
        self.time[i] = 0

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.time += active
        return super().step(actions, active)

    def waits(self) -> np.ndarray:
        return self.time < 4


def positions(env: TrialVectorEnv, action: int, steps: int, seed: int) -> np.ndarray:
    """Cells of all environments, (steps, N), with one action throughout."""
    env.reset(seed=seed)
    return np.array([env.step(np.full(env.num_envs, action))[0]["cell"][:, 0] for _ in range(steps)])


def test_drawn_motions_lead_the_agent() -> None:
    env = TrialVectorEnv(Stay, 8, led=True)
    ahead, still = positions(env, 1, 6, 5), positions(env, 0, 6, 5)
    np.testing.assert_array_equal(ahead[:4], still[:4])  # the first four actions have no effect
    assert set(np.diff(ahead[:4], axis=0).flatten().tolist()) == {0, 1}  # and the drawn ones have
    np.testing.assert_array_equal(np.diff(ahead[3:], axis=0), 1)
    np.testing.assert_array_equal(np.diff(still[3:], axis=0), 0)
    one = TrialVectorEnv(Stay, 1, led=True)
    np.testing.assert_array_equal(positions(one, 0, 6, 5 + 3)[:, 0], still[:, 3])  # as the single environment
    again = env.reset(options={"new_trial": True})[1]
    assert again["trial_id"].tolist() == [1] * 8
    other = np.array([env.step(np.zeros(8, np.int64))[0]["cell"][:, 0] for _ in range(4)])
    assert (other != still[:4]).any()  # another episode, other motions
    env.reset(seed=5)
    phases = [int(env.step(np.zeros(8, np.int64))[0]["phase"][0]) for _ in range(5)]
    assert phases == [0, 0, 0, 1, 1]


def test_a_led_stay_shows_nothing_that_the_agent_chose() -> None:
    """Two agents that act differently during the stay see the same, to the bit."""
    for name, stay in (("VisualMatch", (4, 84)), ("TwoRooms", (5, 85))):
        rollouts = []
        for drawn in (1, 2):
            env = gym.make(f"memenvs/{name}-Led-v0").unwrapped
            rng = np.random.default_rng(drawn)
            observation, _ = env.reset(seed=3)
            key = next(key for key in observation if key != "phase")
            views = []
            for t in range(stay[1]):
                assert observation["phase"] == (not stay[0] <= t < stay[1])
                action = int(rng.integers(3)) if t >= stay[0] else 0
                observation, *_ = env.step(action)
                views.append(observation[key])
            rollouts.append(np.array(views))
        np.testing.assert_array_equal(*rollouts)
        assert len(np.unique(rollouts[0][stay[0] :].reshape(stay[1] - stay[0], -1), axis=0)) > 10  # it does move


def test_wrong_settings_are_refused_by_name() -> None:
    for settings, message in (
        ({"gap": 3, "trial_episodes": 1}, r"gap must be 0 with trials of one episode \(trial_episodes=1\), got 3"),
        ({"gap": -1}, "gap must be an integer of at least 0 and at most 1000000, got -1"),
        ({"gap": 2.5}, "gap must be an integer"),
        ({"gap": 4, "max_episode_steps": 4}, "max_episode_steps must be an integer of at least 5"),
        ({"led": 1}, "led must be True or False, got 1"),
        ({"led": True}, "led must be False for Corridor, in which the agent has to act at every step"),
    ):
        with pytest.raises(ValueError, match=message):
            TrialEnv(Corridor, **settings)
