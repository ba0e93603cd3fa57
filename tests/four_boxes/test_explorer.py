"""Scores of the robot that remembers the rewarded box: with a gap, without, and in windows."""

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.four_boxes.env import FourBoxes
from memenvs.four_boxes.explorer import BoxExplorer
from memenvs.rules import Window
from tests.four_boxes.test_four_boxes import CEILINGS
from tests.rule_scores import returns_by_goal

#: Returns of the tour by the corner of the rewarded box.
TOUR_RETURNS = [25, 34, 45, 17]


def by_goal(window: int | None, gap: int) -> np.ndarray:
    """Returns of two episodes with each goal, (2, 4); None for the whole memory."""
    settings = {"trial_episodes": 2, "gap": gap, "max_episode_steps": 50 + gap}
    env = TrialVectorEnv(FourBoxes, 4, autoreset_mode="Disabled", **settings)
    rule = BoxExplorer(env.task)
    player = rule if window is None else Window(rule, window)
    return returns_by_goal(env, player, [{"layout": goal} for goal in range(4)])


@pytest.mark.parametrize("gap", [0, 20])
def test_it_tours_once_and_then_goes_straight(gap):
    assert by_goal(None, gap).tolist() == [TOUR_RETURNS, CEILINGS]
    assert by_goal(1, gap).tolist() == [TOUR_RETURNS, TOUR_RETURNS]


def test_a_gap_closes_the_window_of_16():
    """Without a gap the last frames of an episode show the rewarded box, and a path takes 12 steps at most."""
    assert by_goal(16, 0).tolist() == [TOUR_RETURNS, CEILINGS]
    for window in (16, 20):
        assert by_goal(window, 20).tolist() == [TOUR_RETURNS, TOUR_RETURNS], window
    assert by_goal(33, 20).tolist() == [TOUR_RETURNS, CEILINGS]


def test_steps_back_to_the_reward():
    """The red box pays from step 16 on in the tour, and from the sixth step on in the second episode."""
    env = TrialVectorEnv(FourBoxes, 1, trial_episodes=2, gap=3, max_episode_steps=53, autoreset_mode="Disabled")
    rule = BoxExplorer(env.task)
    assert rule.bits == 2
    back = []
    for episode in range(2):
        observation, _ = env.reset(seed=0 if episode == 0 else None, options={"goal": "red"})
        rule.start(np.array([episode == 0]), np.ones(1, bool))
        for _ in range(53):
            actions = rule.actions(observation)
            back.append(int(rule.steps_back()[0]))
            observation, *_ = env.step(actions)
    assert back == [0] * 53 + list(range(1, 3 + 6 + 1)) + [0] * (53 - 9)


def test_it_turns_left_where_it_does_not_know_its_way():
    env = TrialVectorEnv(FourBoxes, 1)
    observation, _ = env.reset(seed=0, options={"start": (2.0, -2.0, 0.3)})
    assert BoxExplorer(env.task).actions(observation).tolist() == [0]
