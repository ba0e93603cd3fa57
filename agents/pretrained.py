"""Trained agents that come with this package."""

from __future__ import annotations

from pathlib import Path

import torch

from agents import checkpoint
from agents.policies import MemoryPolicy
from agents.ppo import PartialUpdatePPO
from agents.presets import find_preset
from memenvs.checks import choices_for

#: Preset -> checkpoint of a run of it; how each was trained is in the README.
PRETRAINED = {file.stem: file for file in sorted(Path(__file__).with_name("pretrained").glob("*.zip"))}


def load_pretrained(name: str, *, seed: int = 0, device: torch.device | str = "auto") -> MemoryPolicy:
    """The policy of a preset, trained.

    Args:
        name: A key of `PRETRAINED`; `find_preset` gives the environment that it was trained in.
        seed: Of the actions that it draws.
        device: Where it runs.

    Raises:
        ValueError: No such agent, or its file is not whole or of other settings than the preset's.
    """
    if name not in PRETRAINED:
        raise ValueError(f"unknown pretrained agent {name!r}; {choices_for(name, PRETRAINED)}")
    config = find_preset(name)
    checkpoint.check_run(PRETRAINED[name], config.ppo, config.policy, config.n_envs)
    policy = PartialUpdatePPO.load(PRETRAINED[name], device=device).policy
    policy.generator.manual_seed(seed)
    return policy
