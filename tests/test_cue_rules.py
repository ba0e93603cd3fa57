"""VisualMatch and TwoRooms: no view of the stay shows the cue; what keeps it."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.cue_task import GOALS
from memenvs.retention import retained
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


LEFT = 0
#: Task, key of its views, and number of observations that show the cue.
CASES = pytest.mark.parametrize(("task", "key", "views"), [(VisualMatch, "image", 4), (TwoRooms, "rgb", 5)])


@CASES
def test_nothing_after_the_cue_shows_the_colour(task, key, views):
    """Episodes that differ in the cue alone, with the same actions, show the same but for the cue."""
    env = TrialVectorEnv(task, 6, autoreset_mode="Disabled")
    rng = np.random.default_rng(0)
    observation, info = env.reset(seed=[0, 1, 2] * 2, options=[{"goal": 0}] * 3 + [{"goal": "blue"}] * 3)
    assert info["goal"].tolist() == [0, 0, 0, 1, 1, 1]
    for step in range(views + 82):
        green, blue = np.split(observation[key], 2)
        assert ((green == blue).reshape(3, -1).all(1) == (step >= views)).all(), step
        assert info["phase_id"].tolist() == [(step >= views) + (step >= views + 80)] * 6
        assert info["place"].tolist() == [int(views <= step < views + 80)] * 6
        # Before the stay the oracle keeps the cue in view.
        actions = env.oracle_actions()[:3] if step < views - 1 else rng.integers(3, size=3)
        observation, rewards, terminated, _, info = env.step(np.tile(actions, 2))
        assert not terminated.any() and (rewards[:3] == rewards[3:]).all()


@CASES
def test_what_fifo_loses_mvfo_keeps(task, key, views):
    """Of the views of the cue, with half of the steps of the stay as the capacity."""
    env = TrialEnv(task)
    places = [env.reset(seed=0)[1]["place"]]
    while len(places) < 100:
        places.append(env.step(LEFT)[4]["place"])
    assert places == [0] * views + [1] * 80 + [0] * (20 - views)
    for length in range(40 + views, 101):
        fifo, mvfo = (retained(np.array([places[:length]]), name, 40, n_places=2)[0] for name in ("fifo", "mvfo"))
        assert not fifo[:views].any() and mvfo[:views].sum() >= 4


@CASES
def test_the_colour_of_the_cue_is_an_option(task, key, views):
    env = TrialEnv(task)
    for goal in (2, -1, "red", True, 0.0, [0]):
        with pytest.raises(ValueError, match=r"option 'goal' must be 0 \.\.\. 1 or one of \['green', 'blue'\], got"):
            env.reset(options={"goal": goal})
    assert [env.reset(options={"goal": goal})[1]["goal"] for goal in GOALS] == [0, 1]
