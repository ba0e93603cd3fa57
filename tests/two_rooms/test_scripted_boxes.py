"""Rules of TwoRooms: a notebook in the own motion, closed by a led stay; a cue memory."""

from __future__ import annotations

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.rules import Window
from memenvs.two_rooms.env import TwoRooms
from memenvs.two_rooms.rooms import FORWARD, LEFT, RIGHT, BoxRooms
from memenvs.two_rooms.scripted_boxes import BoxMemory, BoxNotebook, GreenBox, approach
from tests.rule_scores import actions_alone, actions_on_a_copy, scores, windowed

RULES = (GreenBox, BoxNotebook, BoxMemory)
IDS = ("TwoRooms-v0", "TwoRooms-Led-v0")
SHORT = {"phases": (4, 12, 16), "image_size": (24, 40)}


def is_green(trials: int, **settings: object) -> np.ndarray:
    """True where the cue is green, bool, (trials,)."""
    info = TrialVectorEnv(TwoRooms, trials, **settings).reset(seed=0)[1]
    return info["goal"] == 0


@pytest.mark.parametrize("id", IDS)
def test_a_led_stay_closes_the_notebook(id):
    """In all 30 episodes the notebook is right without it, and with it where the colour is its guess."""
    green = is_green(30, **SHORT)
    assert 8 < green.sum() < 22
    assert scores(id, "ideal", 30, **SHORT).all()
    np.testing.assert_array_equal(scores(id, "memoryless", 30, **SHORT)[0], green)
    np.testing.assert_array_equal(scores(id, "notebook", 30, **SHORT)[0], green if "Led" in id else 1)


@pytest.mark.parametrize("id", IDS)
def test_windows_over_the_stay_need_its_length(id):
    """The cue, 12 steps of the stay, and the first two turns of the choice, after which one box alone is in view."""
    green = is_green(20, **SHORT)
    for window in (1, 4, 12):
        np.testing.assert_array_equal(scores(id, windowed(id, window), 20, **SHORT)[0], green)
    assert scores(id, windowed(id, 24), 20, **SHORT).all()


def test_the_notebook_needs_its_two_steps():
    assert BoxNotebook.window == 2 and BoxNotebook.way == "world"
    assert scores(IDS[0], lambda task: Window(BoxNotebook(task), 2), 20, **SHORT).all()
    assert scores(IDS[0], lambda task: Window(BoxNotebook(task), 1), 20, **SHORT).mean() < 0.7


def test_steps_back_to_the_cue():
    env = TrialVectorEnv(TwoRooms, 8, image_size=(24, 40), autoreset_mode="Disabled")
    rule = BoxMemory(env.task)
    assert rule.bits == 1
    observation, _ = env.reset(seed=0)
    rule.start(*np.ones((2, 8), bool))
    for step in range(92):
        actions = rule.actions(observation)
        # Seen five times, 0 to 4; needed from step 85 on, where the boxes are in view.
        assert (rule.steps_back() == (step - 4 if step >= 85 else 0)).all(), step
        observation, _, terminated, *_ = env.step(actions)
        if terminated.any():
            break
    assert step > 88


@pytest.mark.parametrize("size", [(84, 84), (12, 20), (40, 100)])
def test_directions_of_boxes_are_read_from_images(size):
    """The boxes stand 26.6 degrees to the left and right; turned by 15 degrees, one of them 11.6 degrees."""
    task = TwoRooms(3, image_size=size)
    rooms, views = BoxRooms(3, size), np.zeros((3, *size, 3), np.uint8)
    for i, (turn, colours) in enumerate(((0, [0, 1]), (15, [1, 0]), (-15, [2, 2]))):
        pose = np.array([1.0, -4.0, np.radians(turn)])
        rooms.enter(i, 0, pose, np.array([(4.0, -2.5), (4.0, -5.5)]), np.array(colours))
    rooms.render(views, np.ones(3, bool))
    directions = GreenBox(task).directions({"rgb": views})
    is_wide = size != (84, 84)  # half of each box is outside of a square view
    np.testing.assert_allclose(directions[0], [26.6, -26.6], atol=2 if is_wide else 4)
    np.testing.assert_allclose(directions[1, 1], 11.6, atol=2)  # the blue one is on the left there
    assert np.isnan(directions[1, 0]) != is_wide
    assert np.isnan(directions[2]).all()  # yellow ones are not taken for green


def test_approach_by_hand():
    directions = np.array([0.0, 7.5, 7.6, -7.6, np.nan])
    assert approach(directions).tolist() == [FORWARD, FORWARD, LEFT, RIGHT, LEFT]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("led", [False, True])
def test_rules_follow_from_the_observations_of_their_environment_alone(rule, led):
    settings = {"phases": (3, 6, 9), "image_size": (12, 20)}

    def make(count: int) -> TrialVectorEnv:
        return TrialVectorEnv(TwoRooms, count, trial_episodes=2, led=led, autoreset_mode="Disabled", **settings)

    actions_alone(make(4), rule, [make(1) for _ in range(4)])
    actions_on_a_copy(make(4), rule, TwoRooms(4, **settings))
