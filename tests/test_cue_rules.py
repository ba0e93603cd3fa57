"""Rules of VisualMatch and TwoRooms: a notebook, closed by a led stay, and a cue memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.rules import Window
from memenvs.task import BatchTask
from memenvs.two_rooms.env import TwoRooms
from memenvs.two_rooms.scripted_boxes import BoxMemory, BoxNotebook, GreenBox
from memenvs.visual_match.env import VisualMatch
from memenvs.visual_match.scripted_balls import BallMemory, BallNotebook, GreenBall
from tests.rule_scores import scores, windowed


class Case(NamedTuple):
    """A task with its rules, and what its tests need.

    `views` show the cue, windows of `reach` steps reach none of them, one of `long` steps does.
    """

    task: type[BatchTask]
    rules: tuple[type, type, type]
    settings: dict[str, Any]
    trials: int
    views: int
    reach: tuple[int, ...]
    long: int
    seen: dict[str, Any]  # settings in which the cue of full length is counted

    def is_green(self, trials: int) -> np.ndarray:
        """True where the cue is green, bool, (trials,)."""
        return TrialVectorEnv(self.task, trials, **self.settings).reset(seed=0)[1]["goal"] == 0


# The long windows have the cue, the stay, and the first steps of the choice, by which one colour alone is in view.
BALLS = Case(VisualMatch, (GreenBall, BallNotebook, BallMemory), {"phases": (4, 20, 16)}, 40, 4, (1, 16, 21), 27, {})
PLANES = BALLS._replace(settings={**BALLS.settings, "obs": "one_hot"})
BOXES = Case(
    TwoRooms,
    (GreenBox, BoxNotebook, BoxMemory),
    {"phases": (4, 12, 16), "image_size": (24, 40)},
    20,
    5,
    (1, 4, 12),
    24,
    {"image_size": (24, 40)},
)
both = pytest.mark.parametrize("case", [BALLS, BOXES], ids=["balls", "boxes"])
forms = pytest.mark.parametrize("form", ["", "-Led"])


@pytest.mark.parametrize("case", [BALLS, PLANES, BOXES], ids=["balls", "planes", "boxes"])
@forms
def test_a_led_stay_closes_the_notebook(case, form):
    """In all episodes the notebook is right without it, and with it where the colour is its guess."""
    id, trials = f"{case.task.__name__}{form}-v0", case.trials
    green = case.is_green(trials)
    assert 0.25 < green.mean() < 0.75
    assert scores(id, "ideal", trials, **case.settings).all()
    np.testing.assert_array_equal(scores(id, "memoryless", trials, **case.settings)[0], green)
    np.testing.assert_array_equal(scores(id, "notebook", trials, **case.settings)[0], green if form else 1)


@both
@forms
def test_windows_over_the_stay_need_its_length(case, form):
    id, green = f"{case.task.__name__}{form}-v0", case.is_green(case.trials)
    for window in case.reach:
        np.testing.assert_array_equal(scores(id, windowed(id, window), case.trials, **case.settings)[0], green)
    assert scores(id, windowed(id, case.long), case.trials, **case.settings).all()


@both
def test_the_notebook_needs_its_two_steps(case):
    id, notebook = f"{case.task.__name__}-v0", case.rules[1]
    assert notebook.window == 2 and notebook.way == "world"
    assert scores(id, lambda task: Window(notebook(task), 2), case.trials, **case.settings).all()
    assert scores(id, lambda task: Window(notebook(task), 1), case.trials, **case.settings).mean() < 0.7


@both
def test_steps_back_to_the_cue(case):
    """They count from the last view of the cue, and from where something to choose is in view, after 80 steps."""
    env = TrialVectorEnv(case.task, 8, autoreset_mode="Disabled", **case.seen)
    rule = case.rules[2](env.task)
    assert rule.bits == 1
    observation, _ = env.reset(seed=0)
    rule.start(*np.ones((2, 8), bool))
    for step in range(92):
        actions = rule.actions(observation)
        needs = step >= 80 + case.views
        assert (rule.steps_back() == (step - (case.views - 1) if needs else 0)).all(), step
        observation, _, terminated, *_ = env.step(actions)
        if terminated.any():
            break
    assert 80 + case.views < step < 91
