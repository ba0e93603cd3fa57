"""The table of environments: one `EnvironmentSpec` for each id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any

import gymnasium as gym

from memenvs.checks import choices_for

NAMESPACE = "memenvs"


@dataclass(frozen=True, kw_only=True)
class EnvironmentSpec:
    """Row of the table: an id, its task, its default settings and its test bounds.

    Attributes:
        name: The id without the namespace, such as "Darkroom-v0".
        task: "module:Class" of its `BatchTask`.
        family: Folder of `memenvs` that contains it.
        remembers: What the agent must remember, as a phrase for tables.
        needs: Optional dependency or data set that it needs; "" for none.
        defaults: Settings passed to `TrialEnv` and `TrialVectorEnv`.
        oracle_at_least: Lower bound of the oracle's mean score over episodes; a test checks it.
        random_below: Upper bound of a random policy's mean score over episodes; a test checks it.
        score_key: Key of the score in the `info` of an episode's last step.
    """

    name: str
    task: str
    family: str
    remembers: str
    score_key: str
    oracle_at_least: float
    random_below: float
    needs: str = ""
    defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def id(self) -> str:
        """The full id, such as "memenvs/Darkroom-v0"."""
        return f"{NAMESPACE}/{self.name}"


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
    ),
    EnvironmentSpec(
        name="Roaming-v0",
        task="memenvs.exploration.roaming:Roaming",
        family="exploration",
        remembers="where there is room to move",
        score_key="return",
        oracle_at_least=380.0,
        random_below=100.0,
        defaults={"trial_episodes": 1},
    ),
    EnvironmentSpec(
        name="Coverage-v0",
        task="memenvs.exploration.coverage:Coverage",
        family="exploration",
        remembers="where it has been",
        score_key="cells",
        oracle_at_least=160.0,
        random_below=40.0,
        defaults={"trial_episodes": 1},
    ),
    EnvironmentSpec(
        name="Search-v0",
        task="memenvs.exploration.search:Search",
        family="exploration",
        remembers="where it has searched, and what it has found",
        score_key="ratio",
        oracle_at_least=0.95,
        random_below=0.5,
        defaults={"trial_episodes": 1},
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
    ),
    EnvironmentSpec(
        name="VLN-R2R-v0",
        task="memenvs.vln.r2r:R2R",
        family="vln",
        remembers="how much of the instruction is done",
        score_key="success",
        oracle_at_least=1.0,
        random_below=0.05,
        defaults={"trial_episodes": 1},
    ),
    EnvironmentSpec(
        name="VLN-CVDN-v0",
        task="memenvs.vln.cvdn:CVDN",
        family="vln",
        remembers="how much of the dialogue is done",
        score_key="gp",
        oracle_at_least=7.5,
        random_below=1.0,
        defaults={"trial_episodes": 1},
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
    ),
    *(
        EnvironmentSpec(
            name=f"RoomBallet-{name}-v0",
            task=f"memenvs.room_ballet.env:{task}",
            family="room_ballet",
            remembers=remembers,
            score_key="success",
            oracle_at_least=1.0,
            random_below=0.25,
            defaults={"trial_episodes": 1},
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


def find_environment(id: str) -> EnvironmentSpec:
    """Return the row of an id, with or without the namespace.

    Raises:
        ValueError: No such id; the message lists all.
    """
    for spec in ENVIRONMENTS:
        if id in (spec.id, spec.name):
            return spec
    full_id = id if "/" in id else f"{NAMESPACE}/{id}"
    raise ValueError(f"unknown id {id!r}; {choices_for(full_id, (spec.id for spec in ENVIRONMENTS))}")


def check_registered(id: str) -> None:
    """Check that Gymnasium can make an id, of this package or any other.

    Args:
        id: The id; "module:id" imports the module that registers it, and the version may be left out.

    Raises:
        ValueError: There is no such module or id; the message has the most similar ids.
    """
    module, _, name = id.rpartition(":")
    if module:
        try:
            import_module(module)
        except ImportError as error:
            raise ValueError(f"id {id!r}: module {module!r} cannot be imported ({error})") from None
    if not any(name == known or known.startswith(f"{name}-v") for known in gym.registry):
        raise ValueError(f"unknown id {id!r}; {choices_for(name, gym.registry)}")


def register_all() -> None:
    """Register every id for `gym.make` and `gym.make_vec`, unless it is registered already."""
    for spec in ENVIRONMENTS:
        if spec.id not in gym.registry:
            gym.register(
                spec.id,
                entry_point="memenvs.core:TrialEnv",
                vector_entry_point="memenvs.core:TrialVectorEnv",
                kwargs={"task": spec.task, **spec.defaults},
            )
