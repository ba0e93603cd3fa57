"""Memories: one table from a name to the module and its settings."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from memenvs.agents.memory.base import WHERE, Memory, State, StepInputs, Where
from memenvs.agents.memory.dnc import DNCConfig, DNCMemory
from memenvs.agents.memory.frmqn import FRMQNConfig, FRMQNMemory
from memenvs.agents.memory.none import NoMemory, NoMemoryConfig
from memenvs.agents.memory.recurrent import GRUMemory, LSTMMemory, RecurrentConfig
from memenvs.agents.memory.relic import RelicConfig, RelicMemory
from memenvs.agents.memory.sat import (
    ChunkConfig,
    ChunkedMemory,
    MoveConfig,
    MoveMemory,
    PlaceChunkConfig,
    PlaceChunkedMemory,
    PlaceConfig,
    SpatialConfig,
    SpatialMemory,
)
from memenvs.agents.memory.scene_memory import SceneConfig
from memenvs.agents.memory.smt import FactorizedConfig, FactorizedMemory, PoolingMemory, SMTConfig, SMTMemory
from memenvs.agents.memory.smt_causal import CausalConfig, CausalMemory
from memenvs.agents.memory.token_memory import TokenConfig, TokenMemory
from memenvs.agents.memory.trxl import TransformerXLConfig, TransformerXLMemory
from memenvs.checks import choices_for

__all__ = [
    "MEMORIES",
    "WHERE",
    "Memory",
    "Row",
    "State",
    "StepInputs",
    "Where",
    "asks_for",
    "make_memory",
    "memory_row",
]


@dataclass(frozen=True)
class Row:
    """One memory.

    Attributes:
        name: How it is called in presets and on the command line.
        memory: Its class, made from the width of the embedding and the config.
        config: Class of its settings; a frozen dataclass.
        line: What it is, in one line.
    """

    name: str
    memory: type[Memory]
    config: type
    line: str


_ROWS = (
    Row("none", NoMemory, NoMemoryConfig, "the present only"),
    Row("gru", GRUMemory, RecurrentConfig, "one recurrent vector, gated recurrent unit"),
    Row("lstm", LSTMMemory, RecurrentConfig, "one recurrent vector, long short-term memory (RL2)"),
    Row(
        "relic",
        RelicMemory,
        RelicConfig,
        "a transformer over all steps of the trial, with sinks in keys and values (ReLIC)",
    ),
    Row(
        "trxl",
        TransformerXLMemory,
        TransformerXLConfig,
        "a transformer over the newest steps and hidden states of those before (Transformer-XL)",
    ),
    Row("smt", SMTMemory, SMTConfig, "attention over steps as seen from the present pose (Scene Memory Transformer)"),
    Row("smt-factorized", FactorizedMemory, FactorizedConfig, "as smt, through some centres (SMT + Factorization)"),
    Row("smt-causal", CausalMemory, CausalConfig, "as smt, with poses in attention, where no step is encoded twice"),
    Row("sm-pooling", PoolingMemory, SceneConfig, "the largest of each feature over steps (SM + Pooling)"),
    Row("frmqn", FRMQNMemory, FRMQNConfig, "a recurrent network that reads from steps by attention (FRMQN)"),
    Row("t-fifo", TokenMemory, TokenConfig, "steps and their times, read by attention (T-FIFO)"),
    Row("t-fifo+a", MoveMemory, MoveConfig, "as t-fifo, with moves as tokens too (T-FIFO+A)"),
    Row("sat-fifo", SpatialMemory, SpatialConfig, "as t-fifo, with places too (Spatially-Aware Transformer)"),
    Row("sat-fifo-th", ChunkedMemory, ChunkConfig, "as sat-fifo, read in chunks of time (SAT-FIFO-TH)"),
    Row("sat-pm", SpatialMemory, PlaceConfig, "as sat-fifo, with a queue for each place (SAT-PM)"),
    Row("sat-pm-ph", PlaceChunkedMemory, PlaceChunkConfig, "as sat-pm, read in chunks of one place (SAT-PM-PH)"),
    Row("dnc", DNCMemory, DNCConfig, "a recurrent network that writes to cells of its own and reads them (DNC)"),
)

MEMORIES = {row.name: row.line for row in _ROWS}
"""What memories there are: name -> what it is, in one line."""


def memory_row(name: str) -> Row:
    """The row of that name.

    Raises:
        ValueError: The name is unknown; the message lists the choices.
    """
    rows = {row.name: row for row in _ROWS}
    if name not in rows:
        raise ValueError(f"unknown memory {name!r}; {choices_for(name, rows)}")
    return rows[name]


def make_memory(name: str, input_dim: int, **kwargs: Any) -> Memory:
    """The memory of that name.

    Args:
        name: A name in `MEMORIES`.
        input_dim: Width of the embedding.
        **kwargs: Settings, as in the row's config.

    Raises:
        ValueError: The name or a setting is unknown; the message lists the choices.
    """
    return memory_row(name).memory(input_dim, _config(name, kwargs))


def asks_for(name: str, **kwargs: Any) -> tuple[str, ...]:
    """What the memory of that name with these settings will ask for (`Memory.asks_for`); it is not yet made.

    Raises:
        ValueError: As `make_memory`.
    """
    config = _config(name, kwargs)
    memory = memory_row(name).memory
    poses = config.poses if isinstance(config, SceneConfig) else memory.uses_pose
    asked = {"pose": poses, "place": memory.uses_place, "move": memory.uses_move}
    return tuple(key for key in WHERE if asked[key])


def _config(name: str, settings: dict[str, Any]) -> Any:
    """The config of a memory; a ValueError lists the choices if the name or a setting is unknown."""
    row = memory_row(name)
    choices = [field.name for field in fields(row.config)]
    for key in settings:
        if key not in choices:
            known = choices_for(key, choices) if choices else "it has none"
            raise ValueError(f"unknown setting {key!r} of the memory {name!r}; {known}")
    return row.config(**settings)
