"""One environment for each goal of FourBoxes, and the returns of policies in them."""

from memenvs.core import TrialVectorEnv
from memenvs.four_boxes.env import FourBoxes

LEFT, RIGHT, FORWARD, STAY = range(4)
CEILINGS = [39, 45, 45, 39]  # ReLIC's analytic optimum: blue, red, green, yellow


def one_for_each_goal(**settings) -> TrialVectorEnv:
    env = TrialVectorEnv(FourBoxes, 4, autoreset_mode="SameStep", **settings)
    env.reset(seed=0, options=[{"layout": goal} for goal in range(4)])
    return env
