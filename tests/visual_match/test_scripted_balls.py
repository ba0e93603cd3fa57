"""The view of the rules of Visual Match, and their paths to a ball."""

from __future__ import annotations

import numpy as np

from memenvs.core import TrialVectorEnv
from memenvs.visual_match.env import VisualMatch
from memenvs.visual_match.rooms import BLUE, EMPTY, FORWARD, GREEN, LEFT, RED, RIGHT, VIEW
from memenvs.visual_match.scripted_balls import BallMemory, approach, find_ball


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
