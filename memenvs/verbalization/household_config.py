"""Settings of the household: goals, execution and key frames."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from memenvs.checks import check_fields, check_int, choices_for
from memenvs.verbalization.symbols import LOCATIONS, OBJECTS, PICK_LOCATIONS, PLACE_LOCATIONS

Preset = Literal["faithful", "debiased"]
#: Seed of what is drawn once: how long each object takes, and the offsets of joints.
HOUSE_SEED = 154
#: Most distractor days, and the episodes of each.
MAX_DISTRACTORS, DISTRACTOR_EPISODES = 100, 2
#: Kinds of goals: number of objects that are moved, hands that grasp at the end.
GOAL_KINDS = {
    "grasp": (0, 1),
    "move1": (1, 0),
    "move2": (2, 0),
    "move3": (3, 0),
    "move2_grasp": (2, 1),
    "grasp2": (0, 2),
}


@dataclass(frozen=True, kw_only=True)
class HouseholdConfig:
    """Settings of the episode generator. The defaults are those of the preset "faithful".

    Attributes:
        objects: Symbols of the objects that exist.
        locations: Symbols of the locations that exist; "roomcenter" is among them.
        scene_objects: Fewest and most objects of a scene.
        max_per_family: Most objects of a scene that are easily confused (`FAMILIES`); 0: any number.
        goal_mixture: Weight of each kind of `GOAL_KINDS`.
        equal_destinations: True: two objects of a goal may be brought to the same location.
        place_weights: Weight of each of `PLACE_LOCATIONS` as destination.
        pairs: (object, location) pairs of goals: "all", "seen" (without the held-out fifth) or "unseen" (that alone).
        start: Location at which an episode starts: "roomcenter", or "any".
        continuous: True: the episodes of a history follow each other in one house, so that objects stay where they
            were put. False: each episode has its own scene.
        chain_length: Episodes of a house, and so the longest history, if `continuous`.
        failure: Probabilities that a move, a grasp and a putdown fail.
        abort_share: Probability that a failed episode ends as "abort" and not as "failure".
        incomplete: Probability that an episode stops after any of its actions.
        empty_history: Probability that a history has no episode.
        distractors: Distractor days of a history, 0 to 100: days of two episodes in another house each, between its
            own days and the questions. Questions are about its own days.
        failure_histories: Share of the histories of one and two episodes that are drawn with a failure; None: as they
            come.
        duration_noise: Standard deviation of the logarithm of an action's duration.
        episode_speed: Bounds of the factor, log-uniform, by which all durations of an episode are multiplied.
        key_frames: "windows": one key frame for each window of time, which an event closes early. "events": for events
            alone; an event is the start or the end of an action.
        window_seconds: Length of a window.
        joint_offset: Standard deviation of a constant offset of the joint angles, drawn once, rad.
        missed_detections: Probability that a visible object is not detected in a frame.
    """

    objects: tuple[str, ...] = tuple(OBJECTS)
    locations: tuple[str, ...] = tuple(LOCATIONS)
    scene_objects: tuple[int, int] = (1, 6)
    max_per_family: int = 0
    goal_mixture: tuple[tuple[str, float], ...] = (
        ("grasp", 0.20),
        ("move1", 0.37),
        ("move2", 0.25),
        ("move3", 0.08),
        ("move2_grasp", 0.10),
    )
    equal_destinations: bool = True
    place_weights: tuple[float, ...] = (1.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0)  # a guess is right as often as in the thesis
    pairs: Literal["all", "seen", "unseen"] = "all"
    start: Literal["roomcenter", "any"] = "roomcenter"
    continuous: bool = False
    chain_length: int = 10
    failure: tuple[float, float, float] = (0.008, 0.058, 0.034)
    abort_share: float = 0.15
    incomplete: float = 0.0
    empty_history: float = 0.0
    distractors: int = 0
    failure_histories: float | None = None
    duration_noise: float = 0.03
    episode_speed: tuple[float, float] = (1.0, 1.0)
    key_frames: Literal["windows", "events"] = "windows"
    window_seconds: int = 5
    joint_offset: float = 0.0
    missed_detections: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, _as_tuples(getattr(self, field.name)))  # settings are keys of caches
        check_fields(self)
        check_names("objects", self.objects, OBJECTS)
        check_names("locations", self.locations, LOCATIONS)
        if "roomcenter" not in self.locations or not self.pick_locations or len(self.place_locations) < 2:
            raise ValueError(
                f"locations must have 'roomcenter', one of {PICK_LOCATIONS} and two of {PLACE_LOCATIONS}, "
                f"got {self.locations}"
            )
        kinds = dict(self.goal_mixture)
        if not kinds or not set(kinds) <= set(GOAL_KINDS) or min(kinds.values()) < 0 or not sum(kinds.values()) > 0:
            raise ValueError(
                f"goal_mixture must be weights >= 0 of some of {list(GOAL_KINDS)}, got {self.goal_mixture}"
            )
        low, high = self.scene_objects
        need = max(sum(GOAL_KINDS[kind]) for kind, weight in kinds.items() if weight)
        if not 1 <= low <= high <= len(self.objects) or high < need:
            raise ValueError(
                f"scene_objects must be two integers of 1 to {len(self.objects)}, the second at least {need} "
                f"(objects of a goal), got {self.scene_objects}"
            )
        for name in ("abort_share", "incomplete", "empty_history", "missed_detections"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be a probability, got {getattr(self, name)!r}")
        if len(self.failure) != 3 or not all(0 <= probability <= 1 for probability in self.failure):
            raise ValueError(f"failure must be three probabilities, got {self.failure!r}")
        if len(self.place_weights) != len(PLACE_LOCATIONS) or min(self.place_weights) <= 0:
            raise ValueError(f"place_weights must be {len(PLACE_LOCATIONS)} numbers > 0, got {self.place_weights!r}")
        for name in ("chain_length", "window_seconds"):
            check_int(name, getattr(self, name))
        check_int("distractors", self.distractors, 0, MAX_DISTRACTORS)
        if self.distractors and self.continuous and self.chain_length < DISTRACTOR_EPISODES:
            raise ValueError(
                f"distractors must be 0 in houses of {self.chain_length} episodes (chain_length), as a day has "
                f"{DISTRACTOR_EPISODES}, got {self.distractors}"
            )

    @property
    def pick_locations(self) -> tuple[str, ...]:
        """Locations at which a scene may have objects."""
        return tuple(name for name in PICK_LOCATIONS if name in self.locations)

    @property
    def place_locations(self) -> tuple[str, ...]:
        """Locations to which a goal may bring objects."""
        return tuple(name for name in PLACE_LOCATIONS if name in self.locations)


def check_names(name: str, values: Sequence[object], allowed: Collection[str]) -> None:
    """Check that a setting lists names of some kind, at least one and each once.

    Raises:
        ValueError: It does not.
    """
    for value in values:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{name}: unknown {value!r}; {choices_for(value, allowed)}")
    if not values or len(set(values)) < len(values):
        raise ValueError(f"{name} must have at least one of {list(allowed)}, each once, got {values!r}")


def check_preset(
    caller: str, config: type[Any], presets: Collection[str], preset: str, changes: Collection[str]
) -> None:
    """Check the name of a preset and the fields of its config that are changed.

    Raises:
        ValueError: Unknown preset.
        TypeError: Unknown field; the message names the function that was called.
    """
    if preset not in presets:
        raise ValueError(f"unknown preset {preset!r}; {choices_for(preset, presets)}")
    names = [field.name for field in fields(config)]
    for name in changes:
        if name not in names:
            raise TypeError(f"{caller} got an unexpected keyword argument {name!r}; {choices_for(name, names)}")


def _as_tuples(value: Any) -> Any:
    """Replace lists by tuples, also within tuples; a dict by the tuple of its items."""
    if isinstance(value, dict):
        value = tuple(value.items())
    return tuple(_as_tuples(item) for item in value) if isinstance(value, list | tuple) else value


#: Settings of each preset that differ from the defaults.
PRESETS: dict[str, dict[str, Any]] = {
    "faithful": {},
    "debiased": {
        "place_weights": (1.0,) * len(PLACE_LOCATIONS),
        "max_per_family": 2,
        "equal_destinations": False,
        "start": "any",
        "continuous": True,
        "scene_objects": (6, 10),
        "failure": (0.05, 0.05, 0.05),
        "incomplete": 0.05,
        "empty_history": 0.02,
        "failure_histories": 0.5,
        "duration_noise": 0.5,
        "episode_speed": (0.4, 3.0),
    },
}


def household(preset: str = "faithful", **changes: Any) -> HouseholdConfig:
    """Make the settings of a preset, with changes.

    Args:
        preset: "faithful" (the thesis, with its biases) or "debiased".
        changes: Fields of `HouseholdConfig`.

    Raises:
        ValueError: Unknown preset, or a field out of range.
        TypeError: Unknown field.
    """
    check_preset("household", HouseholdConfig, PRESETS, preset, changes)
    settings = {**PRESETS[preset], **changes}
    if not settings.get("continuous", False) and preset == "debiased" and "scene_objects" not in changes:
        settings["scene_objects"] = (1, 6)  # scenes of their own are as small as those of the thesis
    return replace(HouseholdConfig(), **settings)
