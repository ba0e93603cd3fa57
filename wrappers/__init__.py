"""Wrappers that give any Gymnasium environment a pose, a place, the previous action, or whole trials as episodes."""

from wrappers.clustering import collect_positions, fit_places
from wrappers.place import PlaceWrapper
from wrappers.pose import PoseWrapper
from wrappers.previous_action import PreviousActionWrapper
from wrappers.trial import TrialWrapper

__all__ = [
    "PlaceWrapper",
    "PoseWrapper",
    "PreviousActionWrapper",
    "TrialWrapper",
    "collect_positions",
    "fit_places",
]
