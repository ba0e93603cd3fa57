"""Settings of the models that answer Room Ballet's questions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from memenvs.agents.encoders.frame_encoder import Initialisation
from memenvs.agents.memory import MemorySpec, memory_spec
from memenvs.agents.memory.place_codes import PlaceCodeKind, TimeIndex
from memenvs.agents.sizes import check_largest
from memenvs.checks import check_fields, check_int, choices_for
from memenvs.retention import STRATEGY_NAMES

MemoryName = Literal["t-fifo", "t-fifo+a", "sat-fifo", "sat-fifo-th", "sat-pm", "sat-pm-ph", "dnc-first", "dnc-every"]


@dataclass(frozen=True, kw_only=True)
class BalletModelConfig:
    """Settings of `BalletModel`.

    Attributes:
        memory: What a token encodes and how tokens are read. "t-fifo" encodes frame and time; "t-fifo+a" adds one token
            for the action after each visit; the others encode frame, time and place. "sat-fifo-th" reads the most
            relevant chunks of time and "sat-pm-ph" those of places; the others read all tokens at once. "dnc-first" and
            "dnc-every" process the tokens one after the other (`DNCReader`).
        strategy: What is kept if the capacity is too small, one of `memenvs.retention.STRATEGY_NAMES`. None is
            "quota" for "sat-pm" and "sat-pm-ph" and "fifo" for the others. Not for DNCs, which read all visits.
        capacity: Visits that are kept, >= 1. "task" takes the task's published protocol (all for a DNC). None keeps
            all.
        time_index: Number that the time code encodes; see `time_indices`. With "t-fifo+a", actions have times of
            their own between those of frames, so "slot" is not possible.
        place_code: Code of a place; see `PlaceCode`. For memories that know places.
        columns: Columns of the grid of places; see `PlaceCode`. For memories that know places.
        initialisation: "calibrated" scales frames as in `FrameEncoder`, starts with attention that is not uniform
            (`MemoryReader.sharpen`), and lets DNCs write to free cells and read similar ones (`DNCMemory.calibrate`).
            "release" keeps PyTorch's own weights.
        keys_like_queries: Whether calibrated attention first attends to what resembles the query. It helps where the
            dance is stored beside it: in Short Stay, or in its chunk. Not for DNCs.
        first: First step of a visit that is read, 0 to the task's `visit_steps` - 1.
        every: Stride between the steps of a visit that are read, 1 to `visit_steps`. With 5, all dances still differ,
            even if only the three steps from step 20 on are read.
        chunk: Steps in a chunk, >= 1.
        top_k: Chunks that are read, >= 1.
        dim: Width D of tokens.
        layers: Layers of the reader.
        heads: Attention heads of the reader.
        mlp_dim: Hidden width of each layer's MLP.
        own_layers: Layers after which a second head predicts the dance of the queried dancer itself, 0 (none) to
            `layers` - 1. It is trained together with the answer. It helps in tasks that ask about another room's dance:
            the model must find the dancer, then the other room, and the answer alone teaches neither step by itself.
        dnc: Settings of `DNCConfig`, for the two DNC memories.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.

    Source:
        Sizes of SAT's release.
    """

    memory: MemoryName = "sat-fifo"
    strategy: str | None = None
    capacity: int | str | None = "task"
    time_index: TimeIndex = "step"
    place_code: PlaceCodeKind = "sine1d"
    columns: int | None = None
    initialisation: Initialisation = "calibrated"
    keys_like_queries: bool = False
    first: int = 0
    every: int = 1
    chunk: int = 32
    top_k: int = 4
    dim: int = 128
    layers: int = 4
    heads: int = 2
    mlp_dim: int = 128
    own_layers: int = 0
    dnc: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("every", "chunk", "top_k", "dim", "layers", "heads", "mlp_dim"):
            check_int(name, getattr(self, name))
        for name in ("first", "own_layers"):
            check_int(name, getattr(self, name), at_least=0)
        check_largest(vars(self))
        if self.own_layers and (self.own_layers >= self.layers or self.is_dnc):
            raise ValueError(
                f"own_layers must be below layers ({self.layers}), and 0 with a DNC, got {self.own_layers}"
            )
        if self.capacity != "task":
            check_int("capacity", self.capacity, or_none=True)
        if self.strategy is not None and self.strategy not in STRATEGY_NAMES:
            raise ValueError(f"unknown strategy {self.strategy!r}; {choices_for(self.strategy, STRATEGY_NAMES)}")
        if self.is_dnc and (self.capacity not in ("task", None) or self.strategy is not None):
            raise ValueError(
                f"capacity and strategy must be left out with memory {self.memory!r}, which reads all visits, "
                f"got {self.capacity} and {self.strategy!r}"
            )
        if self.uses_action and self.time_index == "slot":
            raise ValueError(f"time_index must be 'step', 'age' or 'mod32' with memory {self.memory!r}, got 'slot'")
        if self.keys_like_queries and (self.is_dnc or self.initialisation != "calibrated"):
            raise ValueError(
                f"keys_like_queries must be False with memory {self.memory!r} and initialisation "
                f"{self.initialisation!r}, got True"
            )
        if not self.uses_place and (self.place_code, self.columns) != ("sine1d", None):
            raise ValueError(
                f"place_code and columns must be left out with memory {self.memory!r}, "
                f"got {self.place_code!r} and {self.columns}"
            )
        if self.dnc and not self.is_dnc:
            raise ValueError(f"dnc must be left out with memory {self.memory!r}, got {self.dnc}")

    @property
    def is_dnc(self) -> bool:
        """True if a DNC processes the tokens one after the other."""
        return self.memory.startswith("dnc")

    @property
    def spec(self) -> MemorySpec:
        """Row of the memory with the same tokens; of a spatial one for a DNC."""
        return memory_spec("sat-fifo" if self.is_dnc else self.memory)

    @property
    def strategy_name(self) -> str:
        """Name of the retention strategy."""
        default: str = getattr(self.spec.config(), "strategy", "fifo")
        return default if self.strategy is None else self.strategy

    @property
    def uses_place(self) -> bool:
        """True if tokens encode places."""
        return self.spec.memory.uses_place

    @property
    def uses_action(self) -> bool:
        """True if the actions between visits are tokens too."""
        return self.spec.memory.uses_move
