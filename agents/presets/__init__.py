"""Presets: complete settings of runs, with their ablations and baselines as named variants."""

from __future__ import annotations

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.presets.mtvm import MTVM_PRESETS
from memenvs.agents.presets.preset import SEPARATOR, Preset, Variant
from memenvs.agents.presets.relic import RELIC_PRESETS
from memenvs.agents.presets.sat import SAT_PRESETS
from memenvs.agents.presets.smt import SMT_PRESETS
from memenvs.checks import choices_for

__all__ = ["FAMILIES", "PRESETS", "Preset", "Variant", "find_preset", "folder_name", "run_names"]

#: Title -> presets of one paper.
FAMILIES: dict[str, dict[str, Preset]] = {
    "ReLIC: in-context reinforcement learning over the episodes of a trial": RELIC_PRESETS,
    "Scene Memory Transformer: exploration of unseen homes": SMT_PRESETS,
    "Spatially-Aware Transformer: Room Ballet": SAT_PRESETS,
    "MTVM: instruction following (R2R, CVDN)": MTVM_PRESETS,
}
PRESETS: dict[str, Preset] = {name: preset for family in FAMILIES.values() for name, preset in family.items()}


def run_names() -> dict[str, str]:
    """Every name that `find_preset` knows, "preset" or "preset:variant" -> one line about it."""
    names = {}
    for name, preset in PRESETS.items():
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
    if base not in PRESETS:
        raise ValueError(
            f"unknown preset {name!r}; {choices_for(name, run_names())}; `python -m memenvs.agents presets` lists them"
        )
    if not separator:
        return PRESETS[base].config
    try:
        return PRESETS[base].variant(variant)
    except ValueError as error:
        raise ValueError(f"preset {base!r}: {error}; `python -m memenvs.agents presets {base}` lists them") from None


def folder_name(name: str, seed: int) -> str:
    """Name of the folder of a run, such as "darkroom-k1-0" of "darkroom:k1" with seed 0."""
    return f"{name.replace(SEPARATOR, '-')}-{seed}"
