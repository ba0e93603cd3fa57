"""Rules of Visual Match: a notebook in the own motion, closed by a led stay; a cue memory."""

from __future__ import annotations

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.rules import Window
from memenvs.visual_match.env import VisualMatch
from memenvs.visual_match.rooms import BLUE, EMPTY, FORWARD, GREEN, LEFT, RED, RIGHT, VIEW
from memenvs.visual_match.scripted_balls import BallMemory, BallNotebook, GreenBall, approach, find_ball
from tests.rule_scores import actions_alone, actions_on_a_copy, scores, windowed

RULES = (GreenBall, BallNotebook, BallMemory)
IDS = ("VisualMatch-v0", "VisualMatch-Led-v0")
SHORT = {"phases": (4, 20, 16)}


def is_green(id: str, trials: int, **settings: object) -> np.ndarray:
    """True where the cue is green, bool, (trials,)."""
    env = TrialVectorEnv(VisualMatch, trials, **settings)
    return env.reset(seed=0)[1]["goal"] == 0


@pytest.mark.parametrize("obs", ["symbols", "one_hot"])
@pytest.mark.parametrize("id", IDS)
def test_a_led_stay_closes_the_notebook(id, obs):
    """In all 60 episodes the notebook is right without it, and with it where the colour is its guess."""
    settings = {**SHORT, "obs": obs}
    green = is_green(id, 60, **settings)
    assert 20 < green.sum() < 40
    assert scores(id, "ideal", 60, **settings).all()
    np.testing.assert_array_equal(scores(id, "memoryless", 60, **settings)[0], green)
    np.testing.assert_array_equal(scores(id, "notebook", 60, **settings)[0], green if "Led" in id else 1)


@pytest.mark.parametrize("id", IDS)
def test_windows_over_the_stay_need_its_length(id):
    green = is_green(id, 40, **SHORT)
    for window in (1, 16, 21):
        np.testing.assert_array_equal(scores(id, windowed(id, window), 40, **SHORT)[0], green)
    assert scores(id, windowed(id, 27), 40, **SHORT).all()  # the cue, 20 steps of the stay, six of the choice


def test_the_notebook_needs_its_two_steps():
    plain = scores(IDS[0], lambda task: Window(BallNotebook(task), 2), 40, **SHORT)
    assert plain.all() and BallNotebook.window == 2 and BallNotebook.way == "world"
    one = scores(IDS[0], lambda task: Window(BallNotebook(task), 1), 40, **SHORT)[0]
    np.testing.assert_array_equal(one, is_green(IDS[0], 40, **SHORT))


def test_steps_back_to_the_cue():
    env = TrialVectorEnv(VisualMatch, 30, autoreset_mode="Disabled")
    rule = BallMemory(env.task)
    assert rule.bits == 1
    observation, _ = env.reset(seed=0)
    rule.start(*np.ones((2, 30), bool))
    for step in range(88):
        actions = rule.actions(observation)
        # Seen four times, 0 to 3; needed from step 84 on, where the balls are in view.
        assert (rule.steps_back() == (step - 3 if step >= 84 else 0)).all(), step
        observation, *_, terminated, _, _ = env.step(actions)
        if terminated.any():
            break
    assert step == 86


def test_paths_by_hand():
    """From (1, 4) to the three balls, which are three cells ahead in this and the next rows."""
    for goal, moves in ((0, [LEFT, FORWARD, RIGHT, *3 * [FORWARD]]), (1, 3 * [FORWARD])):
        env = TrialVectorEnv(VisualMatch, 1, phases=(1, 1, 9), random_order=False, autoreset_mode="Disabled")
        rule = BallMemory(env.task)
        observation, _ = env.reset(seed=0, options={"goal": goal})
        taken = []
        for _ in range(2 + len(moves)):
            taken.append(int(rule.actions(observation)[0]))
            observation, *_, info = env.step(np.array(taken[-1:]))
        assert taken[2:] == moves
        assert info["success"].all()


def test_approach_by_hand():
    for right, ahead, action in ((0, 3, FORWARD), (-1, 3, LEFT), (2, 3, RIGHT), (3, 1, FORWARD), (3, 0, RIGHT)):
        kinds = np.full((1, VIEW, VIEW), EMPTY)
        kinds[0, 3 + right, 6 - ahead] = BLUE
        kinds[0, 3 + right, 5 - ahead] = RED
        found = find_ball(kinds, np.array([1]))
        assert [part.tolist() for part in found] == [[right], [ahead], [True]]
        assert approach(*found).tolist() == [action]
    nothing = np.full((1, VIEW, VIEW), EMPTY)
    nothing[0, 0, 0] = GREEN
    assert approach(*find_ball(nothing, np.array([1]))).tolist() == [LEFT]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("led", [False, True])
def test_rules_follow_from_the_observations_of_their_environment_alone(rule, led):
    def make(count: int) -> TrialVectorEnv:
        settings = {"trial_episodes": 2, "led": led, "phases": (3, 9, 8)}
        return TrialVectorEnv(VisualMatch, count, autoreset_mode="Disabled", **settings)

    actions_alone(make(5), rule, [make(1) for _ in range(5)])
    actions_on_a_copy(make(5), rule, VisualMatch(5, phases=(3, 9, 8)))
