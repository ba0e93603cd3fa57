"""Models that answer Room Ballet's questions: frames, times and places as memory tokens, what is kept of them, and a reader that is asked."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from memenvs.agents.encoders.frame_encoder import FrameEncoder, Initialisation
from memenvs.agents.memory.chunking import Chunks, chunks_by_place, chunks_by_time
from memenvs.agents.memory.dnc import DNCConfig, DNCReader, TaskOn
from memenvs.agents.memory.place_codes import PlaceCode, PlaceCodeKind, TimeIndex, sinusoid, time_indices
from memenvs.agents.memory.reader import MemoryReader, Tokens
from memenvs.checks import check_fields, check_int, choices_for
from memenvs.retention import STRATEGIES, STRATEGY_NAMES, retained, strategy_numbers
from memenvs.room_ballet.descriptions import TASKS
from memenvs.room_ballet.episodes import FRAMES, NO_ACTION, Episodes
from memenvs.room_ballet.tasks import BalletTask

DANCES = 8
MOVES = 4
SHARPNESS = 4.0
"""What relevances are multiplied with at the start of "calibrated": over a memory their standard deviation is then 1.6; it was 0.4."""
MemoryName = Literal["t-fifo", "t-fifo+a", "sat-fifo", "sat-fifo-th", "sat-pm", "sat-pm-ph", "dnc-first", "dnc-every"]


@dataclass(frozen=True, kw_only=True)
class BalletModelConfig:
    """Settings of `BalletModel`.

    Attributes:
        memory: What tokens say and how they are read. "t-fifo": frame and time; "t-fifo+a": also the moves, one token after each visit; the
            others frame, time and place. "sat-fifo-th" reads the best chunks of time, "sat-pm-ph" the best chunks of places, the others all
            tokens at once. "dnc-first" and "dnc-every" go through the tokens one after the other (`DNCReader`).
        strategy: What is kept where the capacity is not enough, one of `memenvs.retention.STRATEGY_NAMES`; None: "quota" for "sat-pm" and
            "sat-pm-ph", else "fifo". DNCs, which go through all visits, have none.
        capacity: Visits that are kept; >= 1; "task" for as many as the task's published protocol has room for, which is all for a DNC, None for all.
        time_index: What the code of time tells; see `time_indices`. Moves ("t-fifo+a") have times of their own between those of frames, which slots do
            not have.
        place_code: How places are encoded, and
        columns: of how many columns their grid is; see `PlaceCode`. For memories that know places.
        initialisation: "calibrated": frames as in `FrameEncoder`, attention that is not flat (`MemoryReader.sharpen`), DNCs that write to free cells
            and read what is alike (`DNCMemory.sharpen`); "release": PyTorch's own weights.
        keys_like_queries: Whether calibrated attention begins by looking for what resembles the query, which helps where the dance is beside it: in
            Short Stay, or in its chunk. Not for DNCs.
        first: First step of a visit that is seen; 0 ... the task's `stay` - 1, like
        every: after which it is every so-manyth one; 1 ... `stay`. With 5 all dances still differ, and their three steps after 20 are enough.
        chunk: Steps of a chunk; >= 1.
        top_k: Chunks that are read; >= 1.
        dim: Width of tokens, D.
        layers: Of the reader.
        heads: Attention heads of the reader.
        mlp_dim: Neurons of each of its layers.
        own_layers: Layers after which a head of its own tells the dance of the dancer that is asked about, which is learned along with the answer; 0
            ... `layers` - 1, 0 for none. For tasks that ask for the dance of another room: to find the dancer and to find the other room are
            both needed there, and neither pays alone.
        dnc: Settings of `DNCConfig`, for the memories of that name.

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
                f"capacity and strategy must be left out with memory {self.memory!r}, which goes through all visits, got {self.capacity} and "
                f"{self.strategy!r}"
            )
        if self.memory == "t-fifo+a" and self.time_index == "slot":
            raise ValueError("time_index must be 'step', 'age' or 'mod32' with memory 't-fifo+a', got 'slot'")
        if self.keys_like_queries and (self.is_dnc or self.initialisation != "calibrated"):
            raise ValueError(
                f"keys_like_queries must be False with memory {self.memory!r} and initialisation {self.initialisation!r}, got True"
            )
        if not self.knows_places and (self.place_code, self.columns) != ("sine1d", None):
            raise ValueError(
                f"place_code and columns must be left out with memory {self.memory!r}, got {self.place_code!r} and {self.columns}"
            )
        if self.dnc and not self.is_dnc:
            raise ValueError(f"dnc must be left out with memory {self.memory!r}, got {self.dnc}")

    @property
    def strategy_name(self) -> str:
        """Name of the strategy."""
        return self.strategy or ("quota" if self.memory.startswith("sat-pm") else "fifo")

    @property
    def is_dnc(self) -> bool:
        """Whether it goes through all tokens one after the other."""
        return self.memory.startswith("dnc")

    @property
    def knows_places(self) -> bool:
        """Whether tokens say where they were seen."""
        return not self.memory.startswith("t-fifo")

    @property
    def is_hierarchical(self) -> bool:
        """Whether the best chunks are read, not all tokens at once."""
        return self.memory in ("sat-fifo-th", "sat-pm-ph")


class BalletModel(nn.Module):
    """Answers from what a memory has kept of an episode.

    Args:
        task: What episodes it gets: rooms, steps.
        config: Settings.
        **settings: Fields of the config to change.

    Raises:
        ValueError: The capacity and the strategy do not go together with the task, such as a quota below one visit for each room; or `first` or
            `every` is not within a visit.
    """

    times: Tensor

    def __init__(self, task: BalletTask, config: BalletModelConfig | None = None, **settings: Any) -> None:
        super().__init__()
        known = [each.name for each in fields(BalletModelConfig)]
        for name in settings:
            if name not in known:
                raise ValueError(f"unknown setting {name!r} of a ballet model; {choices_for(name, known)}")
        values = {} if config is None else {name: getattr(config, name) for name in known}
        self.task, self.config = task, BalletModelConfig(**{**values, **settings})
        config = self.config
        if config.first >= task.stay:
            raise ValueError(f"first must be below the steps of a visit ({task.stay}), got {config.first}")
        if config.every > task.stay:
            raise ValueError(f"every must be at most the steps of a visit ({task.stay}), got {config.every}")
        if config.own_layers and not task.asks_of_rooms:
            raise ValueError(f"own_layers must be 0 in tasks that ask about visits, got {config.own_layers}")
        self._seen = np.arange(config.first, task.stay, config.every)
        """Steps of a visit that are seen."""
        self.encoder = FrameEncoder(config.dim, config.initialisation)
        self.reader: MemoryReader | DNCReader
        if config.is_dnc:
            on: TaskOn = "first" if config.memory == "dnc-first" else "every"
            self.reader = DNCReader(config.dim, len(TASKS), on, DNCConfig(**config.dnc))
            if config.initialisation == "calibrated":
                self.reader.memory.sharpen()
            self.head = nn.Linear(self.reader.output_dim, DANCES)
        else:
            self.reader = MemoryReader(config.dim, config.layers, config.heads, config.mlp_dim)
            if config.initialisation == "calibrated":
                self.reader.sharpen(SHARPNESS, alike=config.keys_like_queries)
            self.head = nn.Linear(config.dim, DANCES)
        self.own_head = nn.Linear(config.dim, DANCES) if config.own_layers else None
        self.actions = nn.Parameter(torch.randn(MOVES, config.dim)) if config.memory == "t-fifo+a" else None
        self.places = (
            PlaceCode(config.place_code, task.rooms, config.dim, config.columns) if config.knows_places else None
        )
        self._units = task.steps + (0 if self.actions is None else task.visits - 1)
        """What has a time: steps and, where they are tokens, the moves between visits."""
        self.register_buffer(
            "times", sinusoid(torch.arange(self._units).double(), config.dim).float(), persistent=False
        )
        published = None if config.is_dnc else task.capacity
        self.capacity = published if isinstance(config.capacity, str) else config.capacity
        first = np.zeros((1, task.visits), np.int64)
        retained(
            first, config.strategy_name, self.capacity, n_places=task.rooms
        )  # says at once what does not go together

    def forward(self, episodes: Episodes, strategies: np.ndarray | None = None) -> Tensor:
        """What it answers.

        Args:
            episodes: B of the task.
            strategies: int, (B,); which one chooses what is kept of each; None: the config's for all.

        Returns:
            float, (B, 8); logits of the dances.
        """
        return self.answers(episodes, strategies)[0]

    def answers(self, episodes: Episodes, strategies: np.ndarray | None = None) -> tuple[Tensor, Tensor | None]:
        """What it answers, and what it says of the dancer's own dance after `own_layers`, None without; args and shapes as in `forward`."""
        query, tokens, chunks = self.memory(episodes, strategies)
        if isinstance(self.reader, DNCReader):
            values = sum(  # the gradient of an index_select is much faster than that of an embedding
                table.index_select(0, rows.flatten()).unflatten(0, rows.shape)
                for table, rows in zip(tokens.tables, tokens.rows, strict=True)
            )
            task = nn.functional.one_hot(torch.from_numpy(episodes.task).long().to(query.device), len(TASKS))
            return self.head(self.reader(values, query[:, 0], task.to(query.dtype))), None
        top_k, half = self.config.top_k, self.config.own_layers
        if self.own_head is None:
            return self.head(self.reader(query, tokens, chunks, top_k)[:, 0]), None
        found = self.reader(query, tokens, chunks, top_k, layers=slice(half))
        read = self.reader(found, tokens, chunks, top_k, layers=slice(half, None))
        return self.head(read[:, 0]), self.own_head(found[:, 0])

    def memory(self, episodes: Episodes, strategies: np.ndarray | None = None) -> tuple[Tensor, Tokens, Chunks | None]:
        """What the reader gets.

        Each frame that occurs in the batch is encoded once; tokens name their frame, time and place by rows of tables.

        Args:
            episodes: As in `forward`.
            strategies: As in `forward`.

        Returns:
            Queries, float (B, 1, D), the tokens and, for hierarchical memories, which of them belong together.
        """
        device = self.times.device
        steps, there = self.retained_steps(episodes, strategies)

        def at_steps(each: np.ndarray) -> Tensor:
            return torch.from_numpy(np.take_along_axis(each, steps, 1).astype(np.int64)).to(device)

        frames, places = at_steps(episodes.frame), at_steps(episodes.place)
        queries = torch.from_numpy(episodes.query.astype(np.int64)).to(device)
        occurs = torch.zeros(FRAMES, dtype=torch.bool, device=device)
        occurs[frames] = occurs[queries] = True
        row_of = occurs.cumsum(0) - 1
        table = self.encoder.table(occurs.nonzero()[:, 0])
        mask = None if there.all() else torch.from_numpy(there).to(device)
        when, rows = self._times(episodes, steps, there, strategies).to(device), row_of[frames]
        if self.actions is not None:
            table, rows, when, mask = self._with_moves(table, rows, when, mask, episodes, steps)
        tables, by_row = [table, self.times.to(table.dtype)], [rows, when]
        if self.places is not None:
            tables.append(self.places.table().to(table.dtype))
            by_row.append(places)
        tokens = Tokens(tables=tuple(tables), rows=tuple(by_row), mask=mask)
        query = table[row_of[queries]][:, None]
        held = torch.from_numpy(there).to(device)
        if self.config.memory == "sat-fifo-th":
            return query, tokens, chunks_by_time(held, self.config.chunk)
        if self.config.memory == "sat-pm-ph":
            return query, tokens, chunks_by_place(places, held, self.config.chunk)
        return query, tokens, None

    def retained_visits(self, episodes: Episodes, strategies: np.ndarray | None = None) -> np.ndarray:
        """Which visits are in memory when the question comes, bool, (B, V); args as in `forward`."""
        chosen = strategy_numbers(self.config.strategy_name, len(episodes)) if strategies is None else strategies
        return retained(episodes.visit_place, chosen, self.capacity, n_places=self.task.rooms)

    def retained_steps(self, episodes: Episodes, strategies: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The steps that are in memory, in order, int64 (B, N), and whether there are as many, bool (B, N); args as in `forward`."""
        kept = self.retained_visits(episodes, strategies)
        order = np.argsort(~kept, axis=1, kind="stable")[:, : int(kept.sum(1).max())]
        steps = (order[:, :, None] * self.task.stay + self._seen).reshape(len(order), -1)
        return steps, np.repeat(np.take_along_axis(kept, order, 1), len(self._seen), axis=1)

    def _times(self, episodes: Episodes, steps: np.ndarray, there: np.ndarray, strategies: np.ndarray | None) -> Tensor:
        """Rows of the codes of time, int64, (B, N)."""
        if self.config.time_index != "slot":
            return self._rows_of(steps if self.actions is None else steps + steps // self.task.stay)
        numbers = strategy_numbers(self.config.strategy_name, len(episodes)) if strategies is None else strategies
        by_place = torch.from_numpy(numbers >= STRATEGIES.index("lvfo"))
        places = torch.from_numpy(np.take_along_axis(episodes.place, steps, 1))
        return time_indices("slot", torch.from_numpy(there), places, by_place)

    def _rows_of(self, units: np.ndarray) -> Tensor:
        """Rows of the codes of time of steps and moves that are numbered in the order in which they were, int64, (B, N)."""
        return time_indices(self.config.time_index, torch.ones(1, self._units, dtype=torch.bool))[0][
            torch.from_numpy(units)
        ]

    def _with_moves(
        self, table: Tensor, rows: Tensor, when: Tensor, mask: Tensor | None, episodes: Episodes, steps: np.ndarray
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Adds a token for the move after each visit: its embedding and its time, which it has of its own.

        The walk's last visit has none, so that its token is left out by the mask.
        """
        assert self.actions is not None
        batch, stay, seen_of_visit = len(steps), self.task.stay, len(self._seen)
        moves = np.roll(episodes.action[:, ::stay], -1, 1).astype(np.int64)
        moves[:, -1] = NO_ACTION
        visits = steps[:, ::seen_of_visit] // stay
        moves = np.take_along_axis(moves, visits, 1)
        after = self._rows_of(np.minimum(visits * (stay + 1) + stay, self._units - 1)).to(rows.device)
        own = torch.from_numpy(np.minimum(moves, MOVES - 1)).to(rows.device) + len(table)
        told = torch.from_numpy(moves != NO_ACTION).to(rows.device)
        seen = torch.ones_like(rows, dtype=torch.bool) if mask is None else mask
        return (
            torch.cat([table, self.actions.to(table.dtype)]),
            torch.cat([rows.view(batch, -1), own], 1),
            torch.cat([when, after], 1),
            torch.cat([seen, told & seen[:, ::seen_of_visit]], 1),
        )
