"""Trained agents that come with this package."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from memenvs.agents.experiments.evaluate import policy_from_checkpoint
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.presets import find_preset
from memenvs.checks import choices_for

#: Preset -> checkpoint of a run of it, without what only training needs (`drop_training_state`); docs/in_context.md has
#: how each was trained.
PRETRAINED = {file.stem: file for file in sorted(Path(__file__).with_name("weights").glob("*.zip"))}


def load_pretrained(name: str, *, seed: int = 0, device: str = "auto") -> ActingPolicy:
    """Load the trained policy of a preset.

    Args:
        name: A key of `PRETRAINED`; `find_preset` gives the environment that it was trained in.
        seed: Of the actions that it draws.
        device: Where it runs: "auto", "cpu" or "cuda".

    Raises:
        ValueError: No such agent, or its file is not whole or of other settings than the preset's.
    """
    if name not in PRETRAINED:
        raise ValueError(f"unknown pretrained agent {name!r}; {choices_for(name, PRETRAINED)}")
    return policy_from_checkpoint(PRETRAINED[name], replace(find_preset(name), device=device), seed)
