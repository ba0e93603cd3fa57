"""DarkroomExplorer and window rules of the Darkroom: scores with and without a gap, by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.darkroom.env import Darkroom
from memenvs.darkroom.explorer import DarkroomExplorer
from memenvs.darkroom.window_paths import PathCode, PathCode4, PathCode16
from memenvs.rules import Rule, RuleError, Window
from memenvs.task import BatchTask
from tests.rule_scores import returns_by_goal

RULES = (DarkroomExplorer, PathCode4, PathCode16)
#: Trials in which each goal of a 5 x 5 room occurs once, without a gap.
SMALL = {"split": "all", "max_episode_steps": 25}
GAP = {**SMALL, "gap": 20, "max_episode_steps": 45}


def shortest(size: int, steps: int) -> np.ndarray:
    """Return from each cell: steps pay from arrival on, the first one at the earliest."""
    distance = np.add.outer(np.arange(size), np.arange(size)).ravel()
    return steps + 1 - np.maximum(distance, 1)


def by_cell(rule: Callable[[BatchTask], Rule], size: int, **settings: Any) -> np.ndarray:
    """Returns of three episodes with each goal, (3, cells), in the order x * size + y."""
    env = TrialVectorEnv(Darkroom, size**2, trial_episodes=3, autoreset_mode="Disabled", size=size, **settings)
    goals = [{"goal": divmod(cell, size)} for cell in range(size**2)]
    return returns_by_goal(env, rule(env.task), goals)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", [3, 5, 8])
def test_every_goal_is_reached_by_a_shortest_path_from_the_second_episode_on(rule, size):
    """In a 5 x 5 room four observations do, and in one of 8 x 8 they cost some goals a step."""
    steps = size**2
    played = by_cell(rule, size, split="all", max_episode_steps=steps)
    late = shortest(size, steps) - played[1:]
    assert (late[:, 1:] == 0).all() or (rule is PathCode4 and size == 8 and late[:, 1:].max() == 1)
    # Goal (0, 0), where episodes begin: the explorer stays there in the second episode, the others search and leave it.
    assert (late[:, 0] == 0).all() == (rule is DarkroomExplorer)
    sweep = np.array([[x * size + (y if x % 2 == 0 else size - 1 - y) for y in range(size)] for x in range(size)])
    first = np.where(sweep.ravel() > 0, steps + 1 - sweep.ravel(), 0)
    np.testing.assert_array_equal(played[0], first)


@pytest.mark.parametrize("rule", RULES)
def test_a_gap_leaves_window_rules_at_the_score_of_the_sweep(rule):
    """The attack that the gap closes: as many blank steps as the window has."""
    memoryless = by_cell(lambda task: Window(DarkroomExplorer(task), 1), 5, **GAP)
    played = by_cell(rule, 5, **GAP)
    if rule is DarkroomExplorer:
        assert (shortest(5, 25) - played[1:] == 0).all()
    else:
        np.testing.assert_array_equal(played, memoryless)
    without = by_cell(rule, 5, **SMALL)
    assert without[1:].mean() > memoryless.mean() + 7


def test_windows_of_the_explorer_reach_over_a_gap_that_is_shorter():
    memoryless = by_cell(lambda task: Window(DarkroomExplorer(task), 1), 5, **GAP)
    for window, reaches in ((20, False), (22, False), (40, True)):
        played = by_cell(lambda task, window=window: Window(DarkroomExplorer(task), window), 5, **GAP)
        assert (played[1:].mean() > memoryless.mean() + 7) == reaches, window


def test_steps_back_to_the_goal_count_the_gap():
    env = TrialVectorEnv(Darkroom, 1, trial_episodes=2, autoreset_mode="Disabled", size=5, **GAP)
    rule = DarkroomExplorer(env.task)
    assert rule.bits == pytest.approx(np.log2(25))
    observation, _ = env.reset(seed=0, options={"goal": (0, 2)})
    rule.start(*np.ones((2, 1), bool))
    back = []
    for step in range(90):
        actions = rule.actions(observation)
        back.append(int(rule.steps_back()[0]))
        observation, _, _, truncated, _ = env.step(actions)
        if truncated[0] and step == 44:
            observation, _ = env.reset(options={"goal": (0, 2)})
            rule.start(np.zeros(1, bool), np.ones(1, bool))
    # The reward is seen from step 22 to 44, and again from step 45 + 22 on; the reset is no step of its own.
    assert back == [0] * 45 + list(range(1, 23)) + [0] * 23


@pytest.mark.parametrize(("rule", "window"), [(PathCode4, 4), (PathCode16, 16)])
def test_path_rules_use_no_more_than_their_window(rule, window):
    """Seen through a window of that size, by which it forgets all else at each step, a rule does the same."""
    assert rule.window == window
    for steps in (30, 100):
        settings = {"split": "all", "max_episode_steps": steps}
        played = by_cell(lambda task: Window(rule(task), window), 10, **settings)
        np.testing.assert_array_equal(played, by_cell(rule, 10, **settings))
        assert (by_cell(lambda task: Window(rule(task), window // 2), 10, **settings) != played).any()


def test_large_rooms():
    env = TrialVectorEnv(Darkroom, 1, size=17)
    with pytest.raises(RuleError, match="size must be at most 16 for this rule, got 17"):
        PathCode4(env.task)
    assert issubclass(PathCode4, PathCode)
    observation, _ = env.reset(seed=0)
    assert DarkroomExplorer(env.task).actions(observation).tolist() == [2]
