"""Presets: complete settings of runs, with their ablations and baselines as named variants."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.presets.preset import SEPARATOR, Preset, Variant
from memenvs.checks import choices_for
from memenvs.plugins import caller_place, load_plugins

__all__ = [
    "FAMILIES",
    "PRESETS",
    "Preset",
    "Variant",
    "find_preset",
    "folder_name",
    "preset_descriptions",
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
        name: Its name, without ":", which begins the name of a variant.
        preset: The preset; making its `RunConfig` imports no torch.
        family: Title under which `presets` lists it.

    Raises:
        ValueError: The name is taken or has a ":"; a taken name is reported with both places. Registering an equal
            preset again has no effect.
        TypeError: It is no `Preset`.
    """
    if not isinstance(preset, Preset):
        raise TypeError(f"preset must be a Preset, got {preset!r}")
    if not isinstance(name, str) or not name or SEPARATOR in name:
        raise ValueError(f"name of a preset must be a text without {SEPARATOR!r}, got {name!r}")
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


def preset_descriptions() -> dict[str, str]:
    """Every name that `find_preset` knows, "preset" or "preset:variant" -> one line about it."""
    names = {}
    for _, family in _families():
        for name, preset in family.items():
            names[name] = preset.about
            names |= {f"{name}{SEPARATOR}{variant}": each.about for variant, each in preset.variants.items()}
    return names


def find_preset(name: str) -> RunConfig:
    """Settings of a preset, or of one of its variants.

    Args:
        name: "darkroom", or "darkroom:k1" for a variant.

    Raises:
        ValueError: There is no such preset or variant; the message lists the nearest names.
    """
    base, separator, variant = name.partition(SEPARATOR)
    preset = next((family[base] for _, family in _families() if base in family), None)
    if preset is None:
        raise ValueError(
            f"unknown preset {name!r}; {choices_for(name, preset_descriptions())} (`memenvs presets` lists them)"
        )
    if not separator:
        return preset.config
    try:
        return preset.variant(variant)
    except ValueError as error:
        more = f" (`memenvs presets {base}` lists them)" * bool(preset.variants)
        raise ValueError(f"preset {base!r}: {error}{more}") from None


def folder_name(name: str, seed: int) -> str:
    """Name of the folder of a run, such as "darkroom-k1-0" of "darkroom:k1" with seed 0."""
    return f"{name.replace(SEPARATOR, '-')}-{seed}"
