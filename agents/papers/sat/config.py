"""Settings of SAT's models and of the allocator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from memenvs.agents.algorithms.allocator_config import check_epsilons
from memenvs.agents.algorithms.schedules import linear_schedule
from memenvs.agents.encoders.frame_encoder import Initialisation
from memenvs.agents.memory import MemorySpec, memories, memory_spec, required_inputs
from memenvs.agents.memory.place_codes import PlaceCodeKind, TimeIndex
from memenvs.agents.sizes import check_largest
from memenvs.checks import check_fields, check_int, choices_for
from memenvs.retention import STRATEGY_NAMES

TOKEN_MEMORIES = ("t-fifo", "t-fifo+a", "sat-fifo", "sat-fifo-th", "sat-pm", "sat-pm-ph")
"""Memories that store tokens, which the query reads all at once."""
TaskInput = Literal["first", "every"]
MoveQuery = Literal["displacement", "moves"]
Convolutions = Literal["learned", "fixed", "components"]


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Settings that both models have.

    Attributes:
        memory: What a token encodes and how tokens are read. "t-fifo" encodes what a step shows and its time;
            "t-fifo+a" adds tokens for the moves between; "sat-fifo" and those below encode the place, too.
            "sat-fifo-th" reads the most relevant chunks of time and "sat-pm-ph" those of places; the others read all
            tokens at once. Any other name in `memenvs.agents.memories` reads the tokens of "sat-fifo" one after the
            other, then the query (`StepReader`). With the suffix "-first" or "-every" it also reads the task, in a
            step before the tokens or in every step: "dnc-first", "lstm-every".
        memory_kwargs: Settings of a memory that reads one after the other.
        size: "small", or the number of its weights, about; see `memenvs.agents.policies.small_sizes`. None: its
            defaults. In a memory of tokens it sets `dim` and `mlp_dim`, which are then left out, for `layers` and
            `heads`; its weights are those of the reader.
        strategy: What is kept if the capacity is too small, one of `memenvs.retention.STRATEGY_NAMES`; None for that of
            the memory. Not for memories that read one after the other, which read all.
        capacity: Visits that are kept (steps, where a visit is one), >= 1. "task" takes the task's published protocol,
            which is all for memories that read one after the other. None keeps all.
        chunk: Steps in a chunk, >= 1.
        top_k: Chunks that are read, >= 1.
        dim: Width D of tokens.
        layers: Layers of the reader.
        heads: Attention heads of the reader.
        mlp_dim: Hidden width of each layer's MLP.
        initialisation: "calibrated" or "release"; what it scales depends on the model.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.

    Source:
        Sizes of SAT's release.
    """

    memory: str = "sat-fifo"
    memory_kwargs: dict[str, Any] = field(default_factory=dict)
    size: str | int | None = None
    strategy: str | None = None
    capacity: int | str | None = "task"
    chunk: int = 32
    top_k: int = 4
    dim: int = 128
    layers: int = 4
    heads: int = 2
    mlp_dim: int = 128
    initialisation: Initialisation = "calibrated"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("chunk", "top_k", "dim", "layers", "heads", "mlp_dim"):
            check_int(name, getattr(self, name))
        check_largest(vars(self))
        if self.capacity != "task":
            check_int("capacity", self.capacity, or_none=True)
        if self.strategy is not None and self.strategy not in STRATEGY_NAMES:
            raise ValueError(f"unknown strategy {self.strategy!r}; {choices_for(self.strategy, STRATEGY_NAMES)}")
        if not self.reads_in_turn:
            if self.memory_kwargs:
                raise ValueError(
                    f"memory_kwargs must be left out with memory {self.memory!r}, whose sizes are dim, layers, heads "
                    f"and mlp_dim, got {self.memory_kwargs!r}"
                )
            if self.size is not None and (self.dim, self.mlp_dim) != (ModelConfig.dim, ModelConfig.mlp_dim):
                raise ValueError(
                    f"dim and mlp_dim must be left out with size {self.size!r} and memory {self.memory!r}, got "
                    f"{self.dim} and {self.mlp_dim}"
                )
            return
        if self.capacity not in ("task", None) or self.strategy is not None:
            raise ValueError(
                f"capacity and strategy must be left out with memory {self.memory!r}, which reads all visits, "
                f"got {self.capacity} and {self.strategy!r}"
            )
        required_inputs(self.sequence_memory, **self.memory_settings)  # raises if there is no such memory or setting

    @property
    def reads_in_turn(self) -> bool:
        """True if the memory reads the tokens one after the other."""
        return self.memory not in TOKEN_MEMORIES

    @property
    def sequence_memory(self) -> str:
        """Name of the memory that reads the tokens one after the other, without a suffix."""
        return self.memory.removesuffix(f"-{self.task_input}")

    @property
    def task_input(self) -> TaskInput | None:
        """Steps in which the memory reads the task; None for none."""
        endings = () if self.memory in memories() else get_args(TaskInput)
        return next((ending for ending in endings if self.memory.endswith(f"-{ending}")), None)

    @property
    def memory_settings(self) -> dict[str, Any]:
        """Settings of the memory that reads the tokens one after the other, apart from `size`."""
        return self.memory_kwargs

    @property
    def spec(self) -> MemorySpec:
        """Row of the memory with the same tokens; a spatial one if they are read in turn."""
        return memory_spec("sat-fifo" if self.reads_in_turn else self.memory)

    @property
    def is_chunked(self) -> bool:
        """True if tokens are read in chunks."""
        return self.memory in ("sat-fifo-th", "sat-pm-ph")

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
    def uses_moves(self) -> bool:
        """True if the moves between visits or steps are tokens too."""
        return self.spec.memory.uses_move


@dataclass(frozen=True, kw_only=True)
class BalletModelConfig(ModelConfig):
    """Settings of `BalletModel`, beside those of `ModelConfig`.

    Attributes:
        strategy: None is "quota" for "sat-pm" and "sat-pm-ph" and "fifo" for the others.
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
        own_layers: Layers after which a second head predicts the dance of the queried dancer itself, 0 (none) to
            `layers` - 1. It is trained together with the answer. It helps in tasks that ask about another room's dance:
            the model must find the dancer, then the other room, and the answer alone teaches neither step by itself.
        dnc: As `memory_kwargs`, for a DNC.
    """

    time_index: TimeIndex = "step"
    place_code: PlaceCodeKind = "sine1d"
    columns: int | None = None
    keys_like_queries: bool = False
    first: int = 0
    every: int = 1
    own_layers: int = 0
    dnc: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("every", self.every)
        for name in ("first", "own_layers"):
            check_int(name, getattr(self, name), at_least=0)
        if self.own_layers and (self.own_layers >= self.layers or self.reads_in_turn):
            raise ValueError(
                f"own_layers must be below layers ({self.layers}), and 0 with a memory that reads one after the other, "
                f"got {self.own_layers}"
            )
        if self.uses_moves and self.time_index == "slot":
            raise ValueError(f"time_index must be 'step', 'age' or 'mod32' with memory {self.memory!r}, got 'slot'")
        if self.keys_like_queries and (self.reads_in_turn or self.initialisation != "calibrated"):
            raise ValueError(
                f"keys_like_queries must be False with memory {self.memory!r} and initialisation "
                f"{self.initialisation!r}, got True"
            )
        if not self.uses_place and (self.place_code, self.columns) != ("sine1d", None):
            raise ValueError(
                f"place_code and columns must be left out with memory {self.memory!r}, "
                f"got {self.place_code!r} and {self.columns}"
            )
        if self.dnc and self.sequence_memory != "dnc":
            raise ValueError(f"dnc must be left out with memory {self.memory!r}, got {self.dnc}")

    @property
    def memory_settings(self) -> dict[str, Any]:
        """Settings of the memory; see `ModelConfig.memory_settings`."""
        return {**self.memory_kwargs, **(self.dnc if self.sequence_memory == "dnc" else {})}


@dataclass(frozen=True, kw_only=True)
class PictureModelConfig(ModelConfig):
    """Settings of `PictureModel`, beside those of `ModelConfig`.

    Attributes:
        strategy: None is "quota" for "sat-pm" and "fifo" for the others.
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
            tasks with moves; 0 for memories that read one after the other. It is trained together with the answer. The
            model must find the place of the start, add the moves, and read there; the answer alone teaches none of the
            three by itself.
        compares: Whether the head is given how what was read differs from the query, and the layers start by copying
            what they read. For tasks whose query is a picture and whose answer is a class, if what has changed since
            then is the answer; with `initialisation` "calibrated".
        flat_layers: First layers that read all tokens at once though the others read chunks; 0 to `place_layers`. For
            memories that read chunks. The place of the start is known by its picture alone, and the mean of a chunk
            hides it.
    """

    place_code: str | None = None
    move_query: MoveQuery = "displacement"
    convolutions: Convolutions = "learned"
    place_layers: int = 0
    compares: bool = False
    flat_layers: int = 0
    chunk: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("place_layers", "flat_layers"):
            check_int(name, getattr(self, name), at_least=0)
        if self.place_layers and (self.place_layers >= self.layers or self.reads_in_turn):
            raise ValueError(
                f"place_layers must be below layers ({self.layers}), and 0 with a memory that reads one after the "
                f"other, got {self.place_layers}"
            )
        if self.flat_layers > (self.place_layers if self.is_chunked else 0):
            raise ValueError(
                f"flat_layers must be at most place_layers ({self.place_layers}) with a memory that reads chunks, and "
                f"0 with others, got {self.flat_layers}"
            )
        if self.compares and (self.initialisation != "calibrated" or self.reads_in_turn):
            raise ValueError(
                "compares must be False with initialisation 'release' and with a memory that reads in turn, "
                f"got True with {self.initialisation!r} and {self.memory!r}"
            )
        if self.initialisation != "calibrated" and self.convolutions == "components":
            raise ValueError(
                f"initialisation must be 'calibrated' with convolutions 'components', got {self.initialisation!r}"
            )
        if not self.uses_place and self.strategy not in (None, "fifo", "lifo"):
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
    def strategy_name(self) -> str:
        """Name of the retention strategy."""
        return self.strategy or ("quota" if self.memory == "sat-pm" else "fifo")


@dataclass(frozen=True, kw_only=True)
class AllocationConfig:
    """Settings of an allocator that learns from the losses of answers.

    Attributes:
        epsilon_start: Probability of a random strategy at the start, 0 to 1.
        epsilon_end: Probability of a random strategy after `epsilon_steps`, 0 to 1.
        epsilon_steps: Batches of the linear change between the two; >= 1.
        loss_weight: Weight of the allocator's loss beside that of the answers; > 0.
        rate: Factor on the learning rate for the allocator, > 0.
        task_input: Input of the allocator: "task" is the task's number, one-hot; "text" is the embedding of one of its
            descriptions.
        split: Split of the descriptions, 0, 1 or 2; it decides which are held out for evaluation. With "text".
        only_kept: If True, the model learns only from episodes whose answer is in memory; False learns from all, as the
            release does. The allocator always learns from all, and evaluation is not affected. For classes that a step
            shows.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.
    """

    epsilon_start: float = 1.0
    epsilon_end: float = 0.2
    epsilon_steps: int = 200_000
    loss_weight: float = 0.1
    rate: float = 1.0
    task_input: Literal["task", "text"] = "task"
    split: int = 0
    only_kept: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.rate > 0:
            raise ValueError(f"rate must be > 0, got {self.rate}")
        check_int("epsilon_steps", self.epsilon_steps)
        check_epsilons(self.epsilon_start, self.epsilon_end)
        if not self.loss_weight > 0:
            raise ValueError(f"loss_weight must be above 0, got {self.loss_weight}")
        if self.split and self.task_input != "text":
            raise ValueError(f"split must be left out where task_input is {self.task_input!r}, got {self.split}")

    def epsilon_at(self, step: int) -> float:
        """Return the probability of a random strategy after `step` batches."""
        return linear_schedule(self.epsilon_start, self.epsilon_end, 0, step, self.epsilon_steps)
