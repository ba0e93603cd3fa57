"""VisualMatch and TwoRooms: no view of the stay shows the cue; strategies keep it or not."""

from __future__ import annotations

import numpy as np
import pytest

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.cue_task import GOALS
from memenvs.retention import retained
from memenvs.two_rooms.env import TwoRooms
from memenvs.visual_match.env import VisualMatch

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
