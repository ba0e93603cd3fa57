"""Add a pose, a place, the previous action or whole trials to any Gymnasium environment."""

from memenvs.wrappers.clustering import collect_positions, fit_places
from memenvs.wrappers.place import PlaceWrapper
from memenvs.wrappers.pose import PoseWrapper
from memenvs.wrappers.previous_action import PreviousActionWrapper
from memenvs.wrappers.trial import TrialWrapper

__all__ = [
    "PlaceWrapper",
    "PoseWrapper",
    "PreviousActionWrapper",
    "TrialWrapper",
    "collect_positions",
    "fit_places",
]
