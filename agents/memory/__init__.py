"""Table of memories: name, class and settings, imported when first used."""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

from memenvs.agents.memory.base import EXTRA_INPUTS, ExtraInputs, Memory, State, StepInputs
from memenvs.agents.memory.sizes import check_largest
from memenvs.checks import choices_for

__all__ = [
    "EXTRA_INPUTS",
    "MEMORIES",
    "ExtraInputs",
    "Memory",
    "MemorySpec",
    "State",
    "StepInputs",
    "check_largest",
    "make_memory",
    "memory_spec",
    "required_inputs",
]


@dataclass(frozen=True)
class MemorySpec:
    """One memory of the table.

    Attributes:
        name: Its name in presets and on the command line.
        module: The module that defines it; imported when the class or its config is first needed.
        memory_class: Name of its class, which is made from the width of the embedding and the config.
        config_class: Name of the class of its settings, a frozen dataclass.
        summary: The memory in one line; the value in `MEMORIES`.
    """

    name: str
    module: str
    memory_class: str
    config_class: str
    summary: str

    @property
    def memory(self) -> type[Memory]:
        """The class of the memory."""
        memory: type[Memory] = getattr(import_module(self.module), self.memory_class)
        return memory

    @property
    def config(self) -> type:
        """The class of its settings."""
        config: type = getattr(import_module(self.module), self.config_class)
        return config


def _spec(name: str, module: str, memory_class: str, config_class: str, summary: str) -> MemorySpec:
    """A memory of this package; `module` is the name of the file."""
    return MemorySpec(name, f"{__name__}.{module}", memory_class, config_class, summary)


_SPECS = (
    _spec("none", "none", "NoMemory", "NoMemoryConfig", "the current step only"),
    _spec("gru", "recurrent", "GRUMemory", "RecurrentConfig", "one recurrent vector, gated recurrent unit"),
    _spec("lstm", "recurrent", "LSTMMemory", "RecurrentConfig", "one recurrent vector, long short-term memory (RL2)"),
    _spec(
        "relic",
        "relic",
        "RelicMemory",
        "RelicConfig",
        "a transformer over all steps of the trial, with sinks in keys and values (ReLIC)",
    ),
    _spec(
        "trxl",
        "trxl",
        "TransformerXLMemory",
        "TransformerXLConfig",
        "a transformer over the newest steps, with cached hidden states of earlier ones (Transformer-XL)",
    ),
    _spec(
        "smt",
        "smt",
        "SMTMemory",
        "SMTConfig",
        "attention over steps as seen from the current pose (Scene Memory Transformer)",
    ),
    _spec(
        "smt-factorized",
        "smt",
        "FactorizedMemory",
        "FactorizedConfig",
        "as smt, through some centres (SMT + Factorization)",
    ),
    _spec(
        "smt-causal",
        "smt_causal",
        "CausalMemory",
        "CausalConfig",
        "as smt, with causal attention to relative poses: each step is encoded once",
    ),
    _spec(
        "sm-pooling",
        "smt",
        "PoolingMemory",
        "SceneConfig",
        "max pooling over the steps of the scene memory (SM + Pooling)",
    ),
    _spec(
        "frmqn", "frmqn", "FRMQNMemory", "FRMQNConfig", "a recurrent network that reads from steps by attention (FRMQN)"
    ),
    _spec("t-fifo", "token_memory", "TokenMemory", "TokenConfig", "steps and their times, read by attention (T-FIFO)"),
    _spec("t-fifo+a", "sat", "MoveMemory", "MoveConfig", "as t-fifo, with moves as tokens too (T-FIFO+A)"),
    _spec(
        "sat-fifo", "sat", "SpatialMemory", "SpatialConfig", "as t-fifo, with places too (Spatially-Aware Transformer)"
    ),
    _spec("sat-fifo-th", "sat", "ChunkedMemory", "ChunkConfig", "as sat-fifo, read in chunks of time (SAT-FIFO-TH)"),
    _spec("sat-pm", "sat", "SpatialMemory", "PlaceConfig", "as sat-fifo, with a queue for each place (SAT-PM)"),
    _spec(
        "sat-pm-ph",
        "sat",
        "PlaceChunkedMemory",
        "PlaceChunkConfig",
        "as sat-pm, read in chunks of one place (SAT-PM-PH)",
    ),
    _spec(
        "dnc",
        "dnc",
        "DNCMemory",
        "DNCConfig",
        "a recurrent network that writes to cells of its own and reads them (DNC)",
    ),
)


MEMORIES = {spec.name: spec.summary for spec in _SPECS}
"""All memories: name -> one line."""


def memory_spec(name: str) -> MemorySpec:
    """Return the spec of the memory of that name.

    Raises:
        ValueError: The name is unknown; the message lists the choices.
    """
    specs = {spec.name: spec for spec in _SPECS}
    if name not in specs:
        raise ValueError(f"unknown memory {name!r}; {choices_for(name, specs)}")
    return specs[name]


def make_memory(name: str, input_dim: int, **kwargs: Any) -> Memory:
    """Make the memory of that name.

    Args:
        name: A name in `MEMORIES`.
        input_dim: Width of the embedding.
        **kwargs: Settings, as in the spec's config.

    Raises:
        ValueError: The name or a setting is unknown; the message lists the choices.
    """
    return memory_spec(name).memory(input_dim, _config(name, kwargs))


def required_inputs(name: str, **kwargs: Any) -> tuple[str, ...]:
    """Return `Memory.required_inputs` of a memory with these settings, without making it.

    Raises:
        ValueError: As `make_memory`.
    """
    config, memory = _config(name, kwargs), memory_spec(name).memory
    uses_pose = getattr(config, "poses", memory.uses_pose)  # the scene memories can do without
    required = {"pose": uses_pose, "place": memory.uses_place, "move": memory.uses_move}
    return tuple(key for key in EXTRA_INPUTS if required[key])


def _config(name: str, settings: dict[str, Any]) -> Any:
    """Make the config of a memory; a ValueError lists the choices if the name or a setting is unknown."""
    config = memory_spec(name).config
    choices = [field.name for field in fields(config)]
    for key in settings:
        if key not in choices:
            known = choices_for(key, choices) if choices else "it has none"
            raise ValueError(f"unknown setting {key!r} of the memory {name!r}; {known}")
    return config(**settings)
