"""Scripted answers of ColorRecall: the square is found, windows guess.

Actions before the query carry nothing.
"""

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.recall.color_recall import COLOURS, RGB, ColorRecall
from memenvs.recall.scripted_colour import ColourObserver, FixedColour, square_colour
from memenvs.recall.tours import NO_MOVE
from memenvs.rules import PREVIOUS_ACTION, Rule, Window
from memenvs.task import BatchTask, Observation
from tests.rule_scores import play_episode

#: Tours of six steps and more whose first image no memory has to keep.
SMALL = {"rooms": (4, 5), "image_size": (12, 16), "steps": (6, 6), "capacity": 30, "square_size": 3}


def success(env: TrialVectorEnv, rule: Rule) -> np.ndarray:
    """Success of an episode in each environment, all in one home."""
    return play_episode(env, rule, {"layout": 0})[1]["success"]


def test_squares_by_hand() -> None:
    """A square is found by what differs, also where it hides its own colour, and in a view full of such colours."""
    rng = np.random.default_rng(0)
    background = RGB[rng.integers(6, size=(10, 14))]
    for colour in range(len(COLOURS)):
        image = background.copy()
        image[4:7, 9:12] = RGB[colour]
        assert square_colour(image, background, 3) == colour
        assert square_colour(image, image, 3) == colour  # nothing differs; it is the only block of one colour
    plain = np.full((10, 14, 3), 77, np.uint8)
    assert square_colour(plain, plain, 3) is None  # no block of a colour at all
    image = plain.copy()
    image[2, 2] = image[2, 5] = RGB[1]
    assert square_colour(image, plain, 3) is None  # farther apart than a square
    image = plain.copy()
    image[2:5, 2:5] = (1, 2, 3)
    assert square_colour(image, plain, 3) is None  # none of the six colours


def observe(images: list[np.ndarray], move: list[int], phase: list[int]) -> Observation:
    """Observation of one step."""
    return {"rgb": np.stack(images), "move": np.array(move), "phase": np.array(phase)}


def test_episodes_by_hand() -> None:
    """Environments are out of step: each has its own first image, forgets by itself, and counts its own steps."""
    task = ColorRecall(2, **SMALL)
    rule = ColourObserver(task)
    plain = np.full((12, 16, 3), 50, np.uint8)
    blue, green = plain.copy(), plain.copy()
    blue[2:5, 3:6], green[7:10, 0:3] = RGB[1], RGB[2]
    other = plain + 9
    rule.see(observe([blue, other], [NO_MOVE, 0], [0, 0]))
    rule.see(observe([other, green], [1, NO_MOVE], [0, 0]))
    rule.see(observe([other, other], [0, 2], [0, 0]))
    query = observe([plain, other], [NO_MOVE, 1], [1, 0])
    rule.see(query)
    assert rule.choose(query).tolist() == [1, 0] and rule.steps_back().tolist() == [3, 0]
    query = observe([plain, plain], [NO_MOVE, NO_MOVE], [1, 1])
    rule.see(query)
    assert rule.choose(query).tolist() == [1, 2] and rule.steps_back().tolist() == [4, 3]
    rule.forget(np.array([False, True]))
    assert rule.choose(query).tolist() == [1, 0] and rule.steps_back().tolist() == [4, 0]
    elsewhere = observe([other, plain], [NO_MOVE, NO_MOVE], [1, 1])
    assert rule.choose(elsewhere).tolist() == [0, 0]  # the query is another view: no better than a guess
    task.close()


def test_scores_and_windows() -> None:
    env = TrialVectorEnv(ColorRecall, 12, autoreset_mode="Disabled", trial_episodes=1, **SMALL)
    blind, observer = success(env, FixedColour(env.task)), ColourObserver(env.task)
    assert success(env, observer).all() and (observer.steps_back() == 12).all()
    for window in (1, 4, 12):
        np.testing.assert_array_equal(success(env, Window(ColourObserver(env.task), window)), blind)
    assert success(env, Window(ColourObserver(env.task), 13)).all()  # as long as the episode
    env.close()


class Relay(Rule):
    """A rule that passes the colour on by its previous actions.

    It reads the colour off the first image, repeats it as the ignored action, and answers with the previous action.
    """

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, ColorRecall)
        self._size = task.config.square_size

    def choose(self, observation: Observation) -> np.ndarray:
        chosen = np.maximum(observation[PREVIOUS_ACTION] - 1, 0)
        for i in np.flatnonzero((observation["move"] == NO_MOVE) & (observation["phase"] == 0)).tolist():
            image = observation["rgb"][i]
            chosen[i] = square_colour(image, image, self._size)
        return chosen


class RawRelay(Relay):
    """The same, with the previous action as it was where it is ignored."""

    def actions(self, observation: Observation) -> np.ndarray:
        chosen = self.choose({**observation, PREVIOUS_ACTION: self._raw})
        self._raw = 1 + chosen
        return chosen

    def start(self, trial_start: np.ndarray, episode_start: np.ndarray) -> None:
        self._raw = np.zeros(len(trial_start), np.int64)


@pytest.mark.parametrize("settings", [SMALL, pytest.param({}, marks=pytest.mark.slow)], ids=["small", "default"])
def test_ignored_actions_carry_no_colour(settings: dict) -> None:
    """A policy of the present view and its previous action is perfect only while it sees actions that were ignored."""
    env = TrialVectorEnv(ColorRecall, 12, autoreset_mode="Disabled", trial_episodes=1, **settings)
    assert success(env, RawRelay(env.task)).all()
    np.testing.assert_array_equal(success(env, Relay(env.task)), success(env, FixedColour(env.task)))
    env.close()
