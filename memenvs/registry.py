"""The table of environments, ours and those that others register: a row for each id."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.envs.registration import find_highest_version, get_env_id, parse_env_id

from memenvs.checks import choices_for
from memenvs.plugins import caller_place, check_class_path, class_path

if TYPE_CHECKING:
    from memenvs.certificate import Certificate
    from memenvs.task import BatchTask

NAMESPACE = "memenvs"
#: Group of entry points in which an installed package names functions that call `register`.
PLUGINS = "memenvs.environments"
IMPORT_HINT = "`memenvs list` lists the tasks; 'MODULE:ID' imports the module that registers it"
#: Least similarity of an id that is suggested, as ids share a prefix and a suffix.
SIMILAR = 0.7
SINGLE, VECTOR = "memenvs.core:TrialEnv", "memenvs.core:TrialVectorEnv"


@dataclass(frozen=True, kw_only=True)
class EnvironmentSpec:
    """Row of the table: an id, its task, its default settings and its test bounds.

    Attributes:
        name: The id without the namespace, such as "Darkroom-v0".
        task: "module:Class" of its `BatchTask`, or the class itself. None for an id of Gymnasium without a `BatchTask`.
        family: Folder of `memenvs` that contains it; of an id of others its namespace.
        remembers: What the agent must remember, as a phrase for tables.
        needs: Optional dependency or data set that it needs; "" for none.
        answers_picture: True if the action is a picture, which agents learn by prediction and not by reinforcement.
        defaults: Settings passed to `TrialEnv` and `TrialVectorEnv`.
        oracle_at_least: Lower bound of the oracle's mean score over episodes; a test checks it. None if unknown.
        random_below: Upper bound of a random policy's mean score over episodes; a test checks it. None if unknown.
        score_key: Key of the score in the `info` of an episode's last step.
        policies: Scripted policies that see observations alone (`memenvs.rules.Rule`): name -> "module:Class".
        rule_settings: Observation settings with which they play the episodes of the id, where they cannot read what it
            observes.
        namespace: Part of the id before the slash; "" for none.
        certificate: File of its certificate; None: that of this package, if there is one.
        place: File and line where it was registered; rows that differ in it alone are equal.
    """

    name: str
    task: str | type[BatchTask] | None
    family: str
    remembers: str
    score_key: str
    oracle_at_least: float | None = None
    random_below: float | None = None
    needs: str = ""
    answers_picture: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    rule_settings: Mapping[str, Any] = field(default_factory=dict)
    namespace: str = NAMESPACE
    certificate: str | None = None
    place: str = field(default=__name__, compare=False)

    @property
    def id(self) -> str:
        """The full id, such as "memenvs/Darkroom-v0"."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def load_certificate(self) -> Certificate | None:
        """Read the certificate of the id; None if it has none.

        Raises:
            ValueError: The file is broken, of another id, or of too few trials.
        """
        from memenvs.certificate import DATA, read_certificate

        shipped = DATA / f"{self.name}.json"
        if self.certificate is None and not (self.namespace == NAMESPACE and shipped.is_file()):
            return None
        path = shipped if self.certificate is None else Path(self.certificate)
        certificate = read_certificate(path)
        if certificate.id != self.id:
            raise ValueError(f"{path}: id must be {self.id!r}, got {certificate.id!r}")
        if certificate.is_quick:
            raise ValueError(
                f"{path}: certificates of ids are of 200 trials, got one of {certificate.trials} (--quick)"
            )
        return certificate


#: Settings of EpisodicQA-Tiny-v0.
TINY = {
    "objects": ("greencup", "redcup", "corn"),
    "locations": ("roomcenter", "sideboard", "countertop", "roundtable"),
    "kinds": ("location", "object"),
    "lengths": (1, 2),
}

#: Settings of Roaming, Coverage and Search that a laptop learns in minutes, those of our results.
SMALL_HOME = {"world": "suncg_style", "max_episode_steps": 200, "obs_mode": "scan"}

#: Settings of ExtObjNav that a laptop learns in an hour.
SMALL_OBJECTNAV = {
    "obs_mode": "symbolic",
    "rooms": (3, 4),
    "num_objects": (2, 2),
    "categories": ("013_apple", "017_orange"),
    "turn_deg": 45.0,
    "compass": True,
    "gps_frame": "layout",
    "max_episode_steps": 64,
}

#: Rules of tasks with several ids.
DARKROOM_RULES = {
    "memoryless": "memenvs.darkroom.scripted_sweep:Sweep",
    "window4": "memenvs.darkroom.window_paths:PathCode4",
    "window16": "memenvs.darkroom.window_paths:PathCode16",
    "ideal": "memenvs.darkroom.explorer:DarkroomExplorer",
}
FINDERS = {
    "memoryless": "memenvs.objectnav.scripted_finder:PresentFinder",
    "ideal": "memenvs.objectnav.scripted_finder:Finder",
}
EXPLORER_RULES = {
    "memoryless": "memenvs.exploration.present_rule:PresentRule",
    "window4": "memenvs.exploration.window_rule:WindowRule",
    "window16": "memenvs.exploration.window_rule:SixteenScans",
}
READERS = {
    "memoryless": "memenvs.vln.scripted_reader:Reader",
    "ideal": "memenvs.vln.ideal_reader:IdealReader",
}
FOUR_BOXES_RULES = {
    "memoryless": "memenvs.four_boxes.tour:BoxTour",
    "ideal": "memenvs.four_boxes.explorer:BoxExplorer",
}
VISUAL_MATCH_RULES = {
    "memoryless": "memenvs.visual_match.scripted_balls:GreenBall",
    "notebook": "memenvs.visual_match.scripted_balls:BallNotebook",
    "ideal": "memenvs.visual_match.scripted_balls:BallMemory",
}
TWO_ROOMS_RULES = {
    "memoryless": "memenvs.two_rooms.scripted_boxes:GreenBox",
    "notebook": "memenvs.two_rooms.scripted_boxes:BoxNotebook",
    "ideal": "memenvs.two_rooms.scripted_boxes:BoxMemory",
}

#: Task, family, bound of the random policy, and rules of the ids with a stay that hides a cue.
VISUAL_MATCH = ("VisualMatch", "visual_match", 0.15, VISUAL_MATCH_RULES)
TWO_ROOMS = ("TwoRooms", "two_rooms", 0.45, TWO_ROOMS_RULES)

ENVIRONMENTS = (
    EnvironmentSpec(
        name="ExtObjNav-v0",
        task="memenvs.objectnav.env:ExtObjNav",
        family="objectnav",
        remembers="where objects were seen in earlier episodes in the same home",
        score_key="success",
        oracle_at_least=0.8,
        random_below=0.05,
        defaults={"trial_steps": 4096},
        policies={**FINDERS, "window16": "memenvs.objectnav.scripted_finder:WindowFinder"},
        rule_settings={"obs_mode": "symbolic", "compass": True},
    ),
    EnvironmentSpec(
        name="ExtObjNav-Small-v0",
        task="memenvs.objectnav.env:ExtObjNav",
        family="objectnav",
        remembers="where fruits were seen in earlier episodes in the same small home",
        score_key="success",
        oracle_at_least=0.8,
        random_below=0.15,
        defaults={"trial_steps": 1024, **SMALL_OBJECTNAV},
        policies=FINDERS,
    ),
    *(
        EnvironmentSpec(
            name=f"ExtObjNav-{name}-v0",
            task="memenvs.objectnav.env:ExtObjNav",
            family="objectnav",
            remembers=remembers,
            score_key="success",
            oracle_at_least=0.8,
            random_below=0.15,
            defaults={**settings, **SMALL_OBJECTNAV},
            policies={
                **FINDERS,
                "window16": "memenvs.objectnav.scripted_finder:WindowFinder",
                "ideal": f"memenvs.objectnav.scripted_finder:{ideal}",
            },
        )
        for name, ideal, remembers, settings in (
            (
                "Moves",
                "Finder",
                "where fruits were seen last in the same small home, and that they may be elsewhere by now",
                {"trial_steps": 1024, "moves": 0.3},
            ),
            (
                "Itinerary",
                "Traveller",
                "where fruits were seen in a small home, over a stay in another one",
                {"trial_episodes": 15, "itinerary": "AAAAAABBBBBBAAA", "leg_flag": True},
            ),
        )
    ),
    *(
        EnvironmentSpec(
            name=f"{task}{size}-v0",
            task=f"memenvs.exploration.{task.lower()}:{task}",
            family="exploration",
            remembers=remembers,
            score_key=score_key,
            oracle_at_least=oracle_at_least,
            random_below=random_below,
            defaults={"trial_episodes": 1, **(SMALL_HOME if size else {})},
            policies={**EXPLORER_RULES, "ideal": f"memenvs.exploration.explorer:{task}Explorer"},
        )
        for task, size, remembers, score_key, oracle_at_least, random_below in (
            ("Roaming", "", "where there is room to move", "return", 380.0, 100.0),
            ("Roaming", "-Small", "where there is room to move", "return", 150.0, 70.0),
            ("Coverage", "", "where it has been", "cells", 160.0, 40.0),
            ("Coverage", "-Small", "where it has been", "cells", 70.0, 25.0),
            ("Search", "", "where it has searched, and what it has found", "ratio", 0.95, 0.5),
            ("Search", "-Small", "where it has searched, and what it has found", "ratio", 0.95, 0.4),
        )
    ),
    EnvironmentSpec(
        name="Darkroom-v0",
        task="memenvs.darkroom.env:Darkroom",
        family="darkroom",
        remembers="the cell that gave reward in earlier episodes",
        score_key="return",
        oracle_at_least=85.0,
        random_below=5.0,
        defaults={"trial_episodes": 10},
        policies=DARKROOM_RULES,
    ),
    EnvironmentSpec(
        name="Darkroom-Gap-v0",
        task="memenvs.darkroom.env:Darkroom",
        family="darkroom",
        remembers="the cell that gave reward in earlier episodes, over a blank gap",
        score_key="return",
        oracle_at_least=16.0,
        random_below=3.0,
        defaults={"trial_episodes": 10, "gap": 20, "size": 5, "max_episode_steps": 40},
        policies=DARKROOM_RULES,
    ),
    EnvironmentSpec(
        name="Darkroom-Moves-v0",
        task="memenvs.darkroom.env:Darkroom",
        family="darkroom",
        remembers="the cell that gave reward last, over a blank gap, and that it may be another one by now",
        score_key="return",
        oracle_at_least=16.0,
        random_below=3.0,
        defaults={"trial_episodes": 10, "gap": 20, "size": 5, "max_episode_steps": 40, "moves": 0.3},
        policies=DARKROOM_RULES,
    ),
    *(
        EnvironmentSpec(
            name=f"VLN-{name}-v0",
            task=f"memenvs.vln.{task.lower()}:{task}",
            family="vln",
            remembers=remembers,
            score_key="success",
            oracle_at_least=1.0,
            random_below=0.05,
            defaults={"trial_episodes": 1, **settings},
            policies=READERS,
        )
        for name, task, remembers, settings in (
            ("R2R", "R2R", "how much of the instruction is done", {}),
            ("R2R-Long", "R2R", "how many laps are done, and how much of the instruction", {"laps": 5}),
            ("IR2R", "IR2R", "how much of the instruction is done, on a tour of one house", {"trial_episodes": 10}),
            ("CVDN", "CVDN", "how much of the dialogue is done", {}),
        )
    ),
    EnvironmentSpec(
        name="FourBoxes-v0",
        task="memenvs.four_boxes.env:FourBoxes",
        family="four_boxes",
        remembers="the colour that gave reward in earlier episodes",
        score_key="return",
        oracle_at_least=41.0,
        random_below=5.0,
        defaults={"trial_episodes": 10},
        policies=FOUR_BOXES_RULES,
    ),
    EnvironmentSpec(
        name="FourBoxes-Gap-v0",
        task="memenvs.four_boxes.env:FourBoxes",
        family="four_boxes",
        remembers="the colour that gave reward in earlier episodes, over a blank gap",
        score_key="return",
        oracle_at_least=41.0,
        random_below=5.0,
        defaults={"trial_episodes": 10, "gap": 20},
        policies=FOUR_BOXES_RULES,
    ),
    *(
        EnvironmentSpec(
            name=f"{task}{name}-v0",
            task=f"memenvs.{family}.env:{task}",
            family=family,
            remembers=remembers,
            score_key="success",
            oracle_at_least=1.0,
            random_below=random_below,
            defaults={"trial_episodes": 1, **({"led": True} if name == "-Led" else {})},
            policies=rules,
        )
        for task, family, random_below, rules, name, remembers in (
            (*VISUAL_MATCH, "", "the colour of a ball that was seen before a long stay elsewhere"),
            (*VISUAL_MATCH, "-Led", "the colour of a ball that was seen before a long stay, in which the agent is led"),
            (*TWO_ROOMS, "", "the colour of a box that was seen before a long stay in another room"),
            (*TWO_ROOMS, "-Led", "the colour of a box that was seen before a long stay, in which the robot is led"),
        )
    ),
    EnvironmentSpec(
        name="ColorRecall-v0",
        task="memenvs.recall.color_recall:ColorRecall",
        family="recall",
        remembers="the colour of a square in the first view of a long tour",
        score_key="success",
        oracle_at_least=1.0,
        random_below=0.25,
        defaults={"trial_episodes": 1},
        policies={
            "memoryless": "memenvs.recall.scripted_colour:FixedColour",
            "ideal": "memenvs.recall.scripted_colour:ColourObserver",
        },
    ),
    EnvironmentSpec(
        name="ViewRecall-v0",
        task="memenvs.recall.view_recall:ViewRecall",
        family="recall",
        remembers="views in all directions, from before a long stay at a few of them",
        score_key="return",
        oracle_at_least=-0.001,
        random_below=-0.1,
        answers_picture=True,
        defaults={"trial_episodes": 1},
        policies={
            "memoryless": "memenvs.recall.observer:MeanView",
            "ideal": "memenvs.recall.observer:ViewObserver",
        },
    ),
    *(
        EnvironmentSpec(
            name=f"FFHQWorld{name}-v0",
            task=f"memenvs.faces.env:{task}",
            family="faces",
            remembers=remembers,
            score_key="return",
            oracle_at_least=-0.001,
            random_below=-3.0,
            answers_picture=True,
            defaults={"trial_episodes": 1},
            policies={
                "memoryless": "memenvs.faces.scripted_patches:PatchGuess",
                "ideal": "memenvs.faces.scripted_patches:PatchObserver",
            },
        )
        for name, task, remembers in (
            ("", "FFHQWorld", "what every part of a picture shows, and where it is"),
            ("-LongStay", "FFHQWorldLongStay", "the parts of a picture from before a long stay at one of them"),
        )
    ),
    EnvironmentSpec(
        name="Ballet3D-v0",
        task="memenvs.ballet3d.env:Ballet3D",
        family="ballet3d",
        remembers="the dance of one of the dancers that were seen while turning",
        score_key="return",
        oracle_at_least=-1e-6,
        random_below=-0.1,
        answers_picture=True,
        defaults={"trial_episodes": 1},
        policies={
            "memoryless": "memenvs.ballet3d.scripted_dances:MeanDance",
            "ideal": "memenvs.ballet3d.scripted_dances:DanceObserver",
        },
    ),
    *(
        EnvironmentSpec(
            name=f"EpisodicQA{name}-v0",
            task="memenvs.verbalization.env:EpisodicQA",
            family="verbalization",
            remembers=remembers,
            score_key="success",
            oracle_at_least=1.0,
            random_below=0.05,
            defaults={"trial_episodes": 1, "sampling": "even", **settings},
            policies={
                "memoryless": "memenvs.verbalization.rules:LikeliestAnswer",
                "ideal": "memenvs.verbalization.rules:FactLog",
            },
        )
        for name, remembers, settings in (
            ("-Tiny", "which of 3 objects went where, over one or two episodes", TINY),
            ("", "what a robot did in five episodes, days apart", {"lengths": (5,)}),
            (
                "-Long",
                "what a robot did in up to a hundred episodes, months apart",
                {"lengths": (20, 50, 100), "frames_per_step": 4},
            ),
        )
    ),
    *(
        EnvironmentSpec(
            name=f"RoomBallet-{name}-v0",
            task=f"memenvs.room_ballet.env:{task}",
            family="room_ballet",
            remembers=remembers,
            score_key="success",
            oracle_at_least=1.0,
            random_below=0.2,
            defaults={"trial_episodes": 1},
            policies={
                "memoryless": "memenvs.room_ballet.rules:OneDance",
                "ideal": "memenvs.room_ballet.rules:BalletObserver",
            },
        )
        for name, task, remembers in (
            ("Next", "NextBallet", "the dance in the room next to that of a dancer"),
            ("ShortStay", "ShortStay", "a dance that was seen in pieces, in a room among others"),
            ("FIFO", "FifoBallet", "the dances of the newest half of the visits"),
            ("LIFO", "LifoBallet", "the dances of the oldest half of the visits"),
            ("MVFO", "MvfoBallet", "the last dance in each room"),
            ("LVFO", "LvfoBallet", "the dances in the room that was visited most"),
            ("MultiTask", "MultiTaskBallet", "what the task named in the episode needs: one of FIFO, LIFO, LVFO, MVFO"),
            ("Opposite", "OppositeBallet", "the dance in the room opposite that of a dancer"),
            ("ABA", "AbaBallet", "dances from before a long stay in one room"),
        )
    ),
)


#: Every registered row by its id.
_ROWS: dict[str, EnvironmentSpec] = {}


def environments() -> tuple[EnvironmentSpec, ...]:
    """List the rows of this package and of all others that have registered theirs."""
    return tuple(_ROWS.values())


def register(
    id: str,
    task: str | type[BatchTask],
    *,
    remembers: str = "",
    score_key: str = "return",
    defaults: Mapping[str, Any] | None = None,
    policies: Mapping[str, str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
) -> EnvironmentSpec:
    """Register a task of one's own, for Gymnasium, for `make_vec_env` and for every command.

    An installed package names a function that calls this in its entry points `memenvs.environments`; that function runs
    at `import memenvs`, so its module should import nothing heavy, and memenvs inside of the function only.

    Args:
        id: Id with a namespace of one's own and a version, such as "corridor/Corridor-v0".
        task: The class, or "module:Class", which is imported when an environment is made.
        remembers: What the agent must remember, as a phrase for `memenvs list`.
        score_key: Key of the score in the `info` of an episode's last step; "return" is the sum of rewards.
        defaults: Settings of the id, such as {"trial_episodes": 10} and those of the task.
        policies: Scripted policies that see observations alone (`memenvs.rules.Rule`): name -> "module:Class".
            `memenvs certify` plays them; it needs one named "ideal".
        certificate: File that `memenvs certify ID --out FILE` has written for this id.

    Returns:
        The row. Registering an equal one again has no effect.

    Raises:
        ValueError: The id is malformed or taken; the message names both places. `task` is no "module:Class", or
            `defaults` has a "task" too. A path of `policies` has another form. The certificate is broken, quick or of
            another id.
        FileNotFoundError: There is no such certificate.
        TypeError: `task` is no `BatchTask`, or `defaults` is no dict of names.
    """
    namespace, name = _parts_of(id)
    row = EnvironmentSpec(
        name=name,
        namespace=namespace,
        task=_task_path(task),
        family=namespace,
        remembers=remembers,
        score_key=score_key,
        defaults=_checked_defaults(defaults),
        policies={key: check_class_path(f"policies[{key!r}]", path) for key, path in (policies or {}).items()},
        certificate=None if certificate is None else str(Path(certificate).absolute()),
        place=caller_place(),
    )
    row.load_certificate()  # refuses one that is broken or of another id
    _add(row)
    return row


def _parts_of(id: str) -> tuple[str, str]:
    """Split the argument `id` of `register` into the namespace and the name with its version."""
    form = "id must have the form 'namespace/Name-v0'"
    try:
        namespace, name, version = parse_env_id(id)
    except (gym.error.Error, TypeError) as error:
        raise ValueError(f"{form}, got {id!r} ({error})") from None
    if not namespace or version is None:  # beside an id without version Gymnasium takes no further one
        raise ValueError(f"{form}, got {id!r} without {'its version' if namespace else 'a namespace'}")
    return namespace, get_env_id(None, name, version)


def _add(row: EnvironmentSpec) -> None:
    """Add a row to the table and to Gymnasium's registry."""
    registered = _ROWS.get(row.id)
    if registered == row and row.id in gym.registry:
        return
    if registered is not None and registered != row:
        raise ValueError(f"id {row.id!r} is registered twice: at {registered.place} and at {row.place}")
    kwargs = {"task": row.task, **row.defaults}
    before = gym.registry.get(row.id)
    if before is None:
        try:
            gym.register(row.id, entry_point=SINGLE, vector_entry_point=VECTOR, kwargs=kwargs)
        except gym.error.RegistrationError as error:  # an id without a version beside those with one
            raise ValueError(f"id {row.id!r} cannot be registered: {error}") from None
    elif registered is None and (before.entry_point, before.kwargs) != (
        SINGLE,
        kwargs,
    ):  # equal after a reload of this file
        where = f"with Gymnasium, as {before.entry_point!r}"
        raise ValueError(f"id {row.id!r} is registered twice: {where}, and at {row.place}")
    _ROWS[row.id] = row


def _checked_defaults(defaults: Mapping[str, Any] | None) -> dict[str, Any]:
    """Check the argument `defaults` of `register`, and copy it."""
    if not isinstance(defaults, Mapping | None) or not all(isinstance(name, str) for name in defaults or ()):
        raise TypeError(f"defaults must be a dict of settings by name, got {defaults!r}")
    if "task" in (defaults or ()):
        raise ValueError(f"defaults must not have 'task', an argument of its own, got {defaults!r}")
    return dict(defaults or {})


def _task_path(task: str | type[BatchTask]) -> str | type[BatchTask]:
    """Check the argument `task` of `register`, without importing what a text names."""
    if isinstance(task, str):
        return check_class_path("task", task)
    from memenvs.task import BatchTask

    if not (isinstance(task, type) and issubclass(task, BatchTask)):
        raise TypeError(f"task must be a subclass of memenvs.core.BatchTask or 'module:Class', got {task!r}")
    return class_path(task)


def find_environment(id: str) -> EnvironmentSpec:
    """Return the row of an id, or describe any other id of Gymnasium.

    Args:
        id: The id, with or without the namespace; "module:id" imports the module that registers it. Without namespace
            it is the id of this package, then that of Gymnasium, then that of any other package.

    Raises:
        ValueError: No such id; the message lists all of the table. Or several packages have one of that name.
    """
    name = _import_module_of(id)
    rows = environments()
    if name in _ROWS:
        return _ROWS[name]
    if f"{NAMESPACE}/{name}" in _ROWS:
        return _ROWS[f"{NAMESPACE}/{name}"]
    if name not in gym.registry:
        same = [row for row in rows if row.name == name]
        if len(same) > 1:
            raise ValueError(f"id {id!r} must have its namespace: {' or '.join(row.id for row in same)}")
        if same:
            return same[0]
    if not _is_registered(name):
        full = name if "/" in name else f"{NAMESPACE}/{name}"
        hint = "" if full.startswith(f"{NAMESPACE}/") else f"; {IMPORT_HINT}"
        raise ValueError(f"unknown id {id!r}; {choices_for(full, (row.id for row in rows), SIMILAR)}{hint}")
    if full_id(name) in _ROWS:  # the version was left out
        return _ROWS[full_id(name)]
    spec = gym.registry[full_id(name)]
    settings = dict(spec.kwargs)
    task = settings.pop("task", None) if entry_path(spec.entry_point) == SINGLE else None
    if task is not None and spec.max_episode_steps is not None:
        settings["max_episode_steps"] = spec.max_episode_steps
    return EnvironmentSpec(
        name=get_env_id(None, spec.name, spec.version),
        namespace=spec.namespace or "",
        task=task,
        family=spec.namespace or "",
        remembers="",
        score_key="return",
        defaults={} if task is None else settings,
        place="Gymnasium's registry",
    )


def entry_path(entry_point: Any) -> str | None:
    """Return "module:Class" of an entry point that names a class or is one; None for functions."""
    if isinstance(entry_point, type):
        return f"{entry_point.__module__}:{entry_point.__name__}"
    return entry_point if isinstance(entry_point, str) else None


def full_id(id: str) -> str:
    """Return an id as registered: without `module:`, with its highest version if it has none."""
    namespace, name, version = parse_env_id(id.rpartition(":")[2])
    return get_env_id(namespace, name, find_highest_version(namespace, name) if version is None else version)


def check_registered(id: str) -> None:
    """Check that Gymnasium can make an id, of this package or any other.

    Args:
        id: The id; "module:id" imports the module that registers it, and the version may be left out.

    Raises:
        ValueError: There is no such module or id; the message has the most similar ids.
    """
    name = _import_module_of(id)
    if not _is_registered(name):
        raise ValueError(f"unknown id {id!r}; {choices_for(name, gym.registry)}; {IMPORT_HINT}")


def _is_registered(name: str) -> bool:
    """True if Gymnasium has the id, or a version of it."""
    if name in gym.registry:
        return True
    try:
        return full_id(name) in gym.registry
    except gym.error.Error:  # malformed
        return False


def _import_module_of(id: str) -> str:
    """Import the module of "module:id"; return the id without it."""
    module, _, name = id.rpartition(":")
    if module:
        try:
            import_module(module)
        except (ImportError, TypeError) as error:  # a TypeError where the name is relative
            raise ValueError(f"id {id!r}: module {module!r} cannot be imported ({error})") from None
    return name


def register_all() -> None:
    """Register every id of this package, unless it is registered already."""
    for row in ENVIRONMENTS:
        _add(row)
