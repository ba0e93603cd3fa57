"""Presets as data: the settings of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memenvs.agents.experiments.config import RunConfig

#: Queues of the Compressive Transformers of all presets: the 8 + 8 + 4 x 4 newest steps, in 20 vectors. What is older
#: is in their long-term vectors only.
COMPRESSIVE_QUEUES: dict[str, Any] = {"block_length": 8, "memory_length": 8, "compressed_lengths": [4], "ratios": [4]}


@dataclass(frozen=True)
class Preset:
    """Complete settings of a run.

    Attributes:
        about: One line for the list of presets.
        config: The settings.
        time: Time that learning took on one core, where it was measured and no study has it.
    """

    about: str
    config: RunConfig
    time: str = ""
