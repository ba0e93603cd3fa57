"""Presets: complete settings of runs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.presets.preset import Preset
from memenvs.checks import choices_for
from memenvs.plugins import caller_place, load_plugins

__all__ = [
    "FAMILIES",
    "PRESETS",
    "Preset",
    "find_preset",
    "register_preset",
]

#: Group of entry points in which an installed package names functions that call `register_preset`.
PLUGINS = "memenvs.presets"

#: Title -> module below `memenvs.agents.presets`, and the constant in it that holds the presets of one paper.
_MODULES = {
    "ReLIC: in-context reinforcement learning over the episodes of a trial": ("relic", "RELIC_PRESETS"),
    "Scene Memory Transformer: exploration of unseen homes": ("smt", "SMT_PRESETS"),
    "Spatially-Aware Transformer: what to keep, and where it was": ("sat", "SAT_PRESETS"),
    "MTVM: instruction following (R2R, CVDN)": ("mtvm", "MTVM_PRESETS"),
    "Episodic memory verbalization: questions about a robot's days": ("verbalization", "VERBALIZATION_PRESETS"),
}

#: Title -> presets of one paper or of another package.
#:
#: :meta hide-value:
FAMILIES: dict[str, dict[str, Preset]]
#: Name -> preset, of all families.
#:
#: :meta hide-value:
PRESETS: dict[str, Preset]

#: Title -> presets that others have registered, and name -> place where.
_REGISTERED: dict[str, dict[str, Preset]] = {}
_PLACES: dict[str, str] = {}


def register_preset(name: str, preset: Preset, family: str) -> None:
    """Register a preset of one's own, for `memenvs presets` and `train`.

    An installed package names a function that calls this in its entry points `memenvs.presets`.

    Args:
        name: Its name.
        preset: The preset; making its `RunConfig` imports no torch.
        family: Title under which `presets` lists it.

    Raises:
        ValueError: The name is empty or taken; a taken name is reported with both places. Registering an equal preset
            again has no effect.
        TypeError: It is no `Preset`.
    """
    if not isinstance(preset, Preset):
        raise TypeError(f"preset must be a Preset, got {preset!r}")
    if not isinstance(name, str) or not name:
        raise ValueError(f"name of a preset must be a text that is not empty, got {name!r}")
    place = caller_place()
    for title, presets in _families():
        if name in presets:
            if (title, presets[name]) == (family, preset):
                return
            before = _PLACES.get(name, f"{__name__}, {title!r}")
            raise ValueError(f"preset {name!r} is registered twice: at {before} and at {place}")
    _REGISTERED.setdefault(family, {})[name] = preset
    _PLACES[name] = place


def _own_families() -> Iterator[tuple[str, dict[str, Preset]]]:
    """Title and presets of each paper; its module is imported only when it is reached."""
    for title, (module, name) in _MODULES.items():
        yield title, getattr(import_module(f"memenvs.agents.presets.{module}"), name)


def _families() -> Iterator[tuple[str, dict[str, Preset]]]:
    """Title and presets of each paper, then of other packages, which are loaded only when they are reached."""
    yield from _own_families()
    load_plugins(PLUGINS)
    yield from _REGISTERED.items()


def __getattr__(name: str) -> Any:
    # a run loads the presets of its own paper only, so the presets of all are gathered when they are first used
    if name == "FAMILIES":
        return dict(_families())
    if name == "PRESETS":
        return {preset: value for _, family in _families() for preset, value in family.items()}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def find_preset(name: str) -> RunConfig:
    """Settings of a preset.

    Args:
        name: Its name, such as "darkroom".

    Raises:
        ValueError: There is no such preset; the message lists the nearest names.
    """
    for _, family in _families():
        if name in family:
            return family[name].config
    names = [preset for _, family in _families() for preset in family]
    raise ValueError(f"unknown preset {name!r}; {choices_for(name, names)} (`memenvs presets` lists them)")
