"""Settings of the models that answer with pictures or classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from memenvs.agents.encoders.frame_encoder import Initialisation
from memenvs.agents.memory import MemorySpec, memory_spec
from memenvs.agents.memory.place_codes import PlaceCodeKind
from memenvs.agents.sizes import check_largest
from memenvs.checks import check_fields, check_int, choices_for
from memenvs.retention import STRATEGY_NAMES

PictureMemory = Literal["t-fifo", "t-fifo+a", "sat-fifo", "sat-pm-ph"]
MoveQuery = Literal["displacement", "moves"]
Convolutions = Literal["learned", "fixed", "components"]


@dataclass(frozen=True, kw_only=True)
class PictureModelConfig:
    """Settings of `PictureModel`.

    Attributes:
        memory: What a token encodes and how tokens are read. "t-fifo" encodes picture and time; "t-fifo+a" adds one
            token for each move; the others encode picture, time and place. "sat-pm-ph" reads the most relevant chunks
            of regions; the others read all tokens at once.
        strategy: What is kept if the capacity is too small, one of `memenvs.retention.STRATEGY_NAMES`.
        capacity: Steps that are kept, >= 1. "task" takes the task's published protocol. None keeps all.
        place_code: Code of a place; see `PlaceCode`. None is "sine2d" where places are a grid and "sine1d" elsewhere.
            For memories that know places.
        move_query: What a query after some moves encodes, in tasks with moves. "moves", as published: the first query
            encodes the picture at the start, each other one a move, and all of them the time. "displacement": each
            encodes the picture at the start and the sum of the moves so far, so that the agent need not learn to add.
            Numbers of rows and of columns have learned vectors, as rows and columns have in `PlaceCode`.
        initialisation: "calibrated" scales pictures (`PictureEncoder.calibrate`) and codes of time and place, so that
            each is visible in a token, and starts with attention to what resembles the query (`MemoryReader.sharpen`).
            "release" keeps PyTorch's own weights and published codes.
        convolutions: Those of the encoder. "fixed" leaves them as they are drawn (and calibrated), and its last layer
            alone learns. Views that a task draws once are then convolved once, and not in every batch. "components" has
            principal components, with `initialisation` "calibrated". In tasks of views, they take the place of the
            third convolution (`PrincipalComponents`), so that small objects are seen beside large ones. In tasks that
            answer with patches, the whole encoder is made of them, does not learn, and the decoder starts as its
            opposite (`make_picture_prediction` fits both by `start_with_components`; a model made by hand has random
            ones). The layers after `place_layers` then start by copying what they read
            (`MemoryReader.start_by_copying`), and the decoder gets that without the query that they add it to. In a
            memory that knows places, with `place_layers`, these layers are given the code of the predicted place alone,
            and start by comparing it with those of tokens (`MemoryReader.start_by_comparing`); this is sharp with
            learned codes.
        place_layers: Layers after which a second head predicts the place of each query, 0 (none) to `layers` - 1, in
            tasks with moves. It is trained together with the answer. The model must find the place of the start, add
            the moves, and read there; the answer alone teaches none of the three by itself.
        flat_layers: First layers that read all tokens at once though the others read chunks; 0 to `place_layers`. For
            "sat-pm-ph". The place of the start is known by its picture alone, and the mean of a chunk hides it.
        chunk: Steps in a chunk, >= 1. The published value is 8.
        top_k: Chunks that are read, >= 1.
        dim: Width D of tokens.
        layers: Layers of the reader.
        heads: Attention heads of the reader.
        mlp_dim: Hidden width of each layer's MLP.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.

    Source:
        Sizes of SAT's release.
    """

    memory: PictureMemory = "sat-fifo"
    strategy: str = "fifo"
    capacity: int | str | None = "task"
    place_code: str | None = None
    move_query: MoveQuery = "displacement"
    initialisation: Initialisation = "calibrated"
    convolutions: Convolutions = "learned"
    place_layers: int = 0
    flat_layers: int = 0
    chunk: int = 8
    top_k: int = 4
    dim: int = 128
    layers: int = 4
    heads: int = 2
    mlp_dim: int = 128

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("chunk", "top_k", "dim", "layers", "heads", "mlp_dim"):
            check_int(name, getattr(self, name))
        for name in ("place_layers", "flat_layers"):
            check_int(name, getattr(self, name), at_least=0)
        if self.place_layers >= self.layers:
            raise ValueError(f"place_layers must be below layers ({self.layers}), got {self.place_layers}")
        if self.flat_layers > (self.place_layers if self.is_chunked else 0):
            raise ValueError(
                f"flat_layers must be at most place_layers ({self.place_layers}) with memory 'sat-pm-ph', and 0 with "
                f"others, got {self.flat_layers}"
            )
        check_largest(vars(self))
        if self.initialisation != "calibrated" and self.convolutions == "components":
            raise ValueError(
                f"initialisation must be 'calibrated' with convolutions 'components', got {self.initialisation!r}"
            )
        if self.capacity != "task":
            check_int("capacity", self.capacity, or_none=True)
        if self.strategy not in STRATEGY_NAMES:
            raise ValueError(f"unknown strategy {self.strategy!r}; {choices_for(self.strategy, STRATEGY_NAMES)}")
        if not self.uses_place and self.strategy not in ("fifo", "lifo"):
            raise ValueError(
                f"strategy must be 'fifo' or 'lifo' with memory {self.memory!r}, which knows no places, "
                f"got {self.strategy!r}"
            )
        if not self.uses_place and self.place_code is not None:
            raise ValueError(f"place_code must be left out with memory {self.memory!r}, got {self.place_code!r}")
        if self.place_code not in (None, *get_args(PlaceCodeKind)):
            raise ValueError(
                f"unknown place_code {self.place_code!r}; {choices_for(self.place_code, get_args(PlaceCodeKind))}"
            )

    @property
    def spec(self) -> MemorySpec:
        """Row of the memory with the same tokens."""
        return memory_spec(self.memory)

    @property
    def uses_place(self) -> bool:
        """True if tokens encode places."""
        return self.spec.memory.uses_place

    @property
    def uses_moves(self) -> bool:
        """True if the moves between steps are tokens too."""
        return self.spec.memory.uses_move

    @property
    def is_chunked(self) -> bool:
        """True if the memory is read in chunks of regions."""
        return self.memory == "sat-pm-ph"
