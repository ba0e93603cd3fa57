"""Add a pose, a place, the previous action or whole trials to any Gymnasium environment."""

from memenvs.clustering import fit_places
from memenvs.wrappers.place import PlaceWrapper, collect_positions
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
