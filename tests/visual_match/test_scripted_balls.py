"""The view of the rules of Visual Match, and their steps towards a ball."""

from __future__ import annotations

import numpy as np

from memenvs.visual_match.rooms import BLUE, EMPTY, FORWARD, GREEN, LEFT, RED, RIGHT, VIEW
from memenvs.visual_match.scripted_balls import approach, find_ball


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
