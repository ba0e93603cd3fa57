"""Presets and their variants as data: the settings of a run, and named changes to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.checks import choices_for

SEPARATOR = ":"
"""Between the name of a preset and that of its variant, as in "darkroom:k1"."""
#: Queues of the Compressive Transformers of all presets: the 8 + 8 + 4 x 4 newest steps, in 20 vectors. What is older
#: is in their long-term vectors only.
COMPRESSIVE_QUEUES: dict[str, Any] = {"block_length": 8, "memory_length": 8, "compressed_lengths": [4], "ratios": [4]}


@dataclass(frozen=True)
class Variant:
    """An ablation, a baseline or another method: named changes to a preset.

    Attributes:
        about: One line for the list of variants.
        overrides: Dotted name of a setting -> its value, such as {"ppo.n_updates": 1}. Without any, the variant is
            another name of the preset itself. "learner" takes a whole config, such as that of another learner.
    """

    about: str
    overrides: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Preset:
    """Complete settings of a run, with named variants.

    Attributes:
        about: One line for the list of presets.
        config: The settings.
        variants: Name -> variant.
        time: Time that learning took on one core, where it was measured and is not in `results/`.
    """

    about: str
    config: RunConfig
    variants: Mapping[str, Variant] = field(default_factory=dict)
    time: str = ""

    def variant(self, name: str) -> RunConfig:
        """Settings of a variant.

        Raises:
            ValueError: The preset has no variant of this name.
        """
        if name not in self.variants:
            known = choices_for(name, self.variants) if self.variants else "this preset has none"
            raise ValueError(f"unknown variant {name!r}; {known}")
        overrides = self.variants[name].overrides
        settings = [(key, value) for key, value in overrides.items() if key != "learner"]
        learner = {key: value for key, value in overrides.items() if key == "learner"}
        return replace(with_overrides(self.config, settings), **learner)
