"""The Spatially-Aware Transformer (SAT), and a baseline of it with action tokens.

The eviction rules of a full memory are in `memenvs.retention`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from memenvs.agents.memory.base import State, StepInputs
from memenvs.agents.memory.chunking import Chunks, chunks_by_key
from memenvs.agents.memory.place_codes import PlaceCode, PlaceCodeKind, check_place_code, check_places
from memenvs.agents.memory.token_memory import Timeline, TokenConfig, TokenMemory
from memenvs.agents.memory.tokens import Tokens
from memenvs.retention import Strategy, place_quota, strategy_numbers


@dataclass(frozen=True, kw_only=True)
class MoveConfig(TokenConfig):
    """Settings of a memory with action tokens.

    Attributes:
        moves: Number of actions, A. `StepInputs.move` is 0 ... A - 1, or A for no action.
    """

    moves: int = 4


@dataclass(frozen=True, kw_only=True)
class SpatialConfig(TokenConfig):
    """Settings of a memory whose tokens encode places.

    Attributes:
        strategy: Eviction strategy of a full memory; see `memenvs.retention`.
        n_places: Number of places; >= 1.
        place_code: Code of a place; see `PlaceCode`.
        columns: Columns of the grid of places, for "sine2d" and "learned2d".
    """

    strategy: Strategy = "fifo"
    n_places: int = 9
    place_code: PlaceCodeKind = "sine1d"
    columns: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_place_code(self.place_code, self.n_places, self.columns)
        # Called for its errors: with "quota" each place must get at least one step.
        place_quota(strategy_numbers(self.strategy, 1), self.capacity, self.n_places)


@dataclass(frozen=True, kw_only=True)
class ChunkConfig(SpatialConfig):
    """Settings of a memory that is read in chunks.

    Attributes:
        chunk: Tokens in a chunk; >= 1.
        top_k: Chunks that each query reads in each layer; >= 1.
    """

    chunk: int = 32
    top_k: int = 4


@dataclass(frozen=True, kw_only=True)
class PlaceConfig(SpatialConfig):
    """Settings of a place memory, in which each place has a queue of its own."""

    strategy: Strategy = "quota"


@dataclass(frozen=True, kw_only=True)
class PlaceChunkConfig(ChunkConfig):
    """Settings of a place memory that is read in chunks."""

    strategy: Strategy = "quota"


class MoveMemory(TokenMemory):
    """A token memory with one more token for the action before each step ("t-fifo+a").

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity, codes, number of actions.

    Source:
        Spatially-Aware Transformer, appendix on baselines (T-FIFO+A).
    """

    uses_move = True
    config: MoveConfig

    def __init__(self, input_dim: int, config: MoveConfig) -> None:
        super().__init__(input_dim, config)
        self.move = nn.Embedding(config.moves, config.dim)

    def _log_fields(self) -> tuple[str, ...]:
        return ("step_index", "move")

    def _check(self, x: StepInputs) -> tuple[int, int]:
        shape = super()._check(x)
        assert x.move is not None
        wrong = x.move[(x.move < 0) | (x.move > self.config.moves)]
        if len(wrong):
            raise ValueError(
                f"move must be 0 ... {self.config.moves - 1}, or {self.config.moves} for none, got {int(wrong[0])}"
            )
        return shape

    def _extend(
        self, timeline: Timeline, now: Tensor, query: Tensor, tokens: Tokens, steps: State
    ) -> tuple[Tensor, Tokens]:
        """Append a token for the action that led to each step, with the time of the step."""
        move = steps["move"]
        exists = (move >= 0) & (move < self.config.moves)  # an empty slot of the log may have -1
        assert tokens.values is not None and tokens.mask is not None
        # Without an action, row 0 of the table stands in, and the mask hides it.
        values = torch.cat([tokens.values, self.move(move * exists)], 1)  # (B, 2 n, D)
        mask = torch.cat([tokens.mask, tokens.mask & exists[:, None]], -1)  # (B, S, 2 n)
        rows = tuple(torch.cat([each, each], -1) for each in tokens.rows)  # both tokens of a step have its time
        return query, Tokens(values, tokens.tables, rows, mask)


class SpatialMemory(TokenMemory):
    """A token memory whose tokens also encode the place of their step ("sat-fifo", "sat-pm").

        m_i = W x_i + code(time_i) + code(place_i)

    Its eviction strategy may depend on places.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity and strategy, codes.

    Source:
        Spatially-Aware Transformer, sections 3.1 (SAT-FIFO) and 3.2 (place memory and other strategies).
    """

    uses_place = True
    config: SpatialConfig

    def __init__(self, input_dim: int, config: SpatialConfig) -> None:
        super().__init__(input_dim, config)
        self.place_code = PlaceCode(config.place_code, config.n_places, config.dim, config.columns)

    def _strategy(self) -> str:
        return self.config.strategy

    def _n_places(self) -> int:
        return self.config.n_places

    def _log_fields(self) -> tuple[str, ...]:
        return ("step_index", "place")

    def _check(self, x: StepInputs) -> tuple[int, int]:
        shape = super()._check(x)
        assert x.place is not None
        check_places(x.place, self.config.n_places)
        return shape

    def _extend(
        self, timeline: Timeline, now: Tensor, query: Tensor, tokens: Tokens, steps: State
    ) -> tuple[Tensor, Tokens]:
        """Add the code of its place to each token and, with `query_codes`, to the query."""
        table = self.place_code.table().to(query.dtype)
        if self.config.query_codes:
            query = query + table[timeline.steps["place"].gather(1, now)]
        rows = steps["place"].clamp(min=0)  # an empty slot of the log may have -1; the mask hides it
        return query, Tokens(tokens.values, (*tokens.tables, table), (*tokens.rows, rows), tokens.mask)


class ChunkedMemory(SpatialMemory):
    """A spatial memory that is read in chunks of consecutive steps ("sat-fifo-th").

    The most relevant chunks are chosen, then their tokens are read. The chunk of a step is fixed when it arrives:
    chunks do not shift as older steps leave.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity and strategy, codes, chunks.

    Source:
        Spatially-Aware Transformer, section 3.1 (time-centric hierarchical attention).
    """

    config: ChunkConfig

    def _chunks(self, timeline: Timeline, steps: State, begin: int, end: int) -> Chunks:
        key = self._chunk_numbers(steps)
        # Steps before and after a reset are never in one chunk, though their numbers start from 0 again.
        key = key + timeline.reset_count[:, begin:end] * (int(key.max()) + 1)
        return chunks_by_key(key, steps["step_index"] >= 0, self.config.chunk)

    def _chunk_numbers(self, steps: State) -> Tensor:
        """Number of each step's chunk, int64 (B, n); numbers start from 0 at each reset."""
        return steps["step_index"] // self.config.chunk

    def _top_k(self) -> int:
        return self.config.top_k

    def _gathered_elements(self) -> int:
        return self.config.top_k * self.config.chunk * self.config.dim


class PlaceChunkedMemory(ChunkedMemory):
    """A spatial memory that is read in chunks of steps at one place ("sat-pm-ph").

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity and strategy, codes, chunks.

    Source:
        Spatially-Aware Transformer, section 3.1 (place-centric hierarchical attention).
    """

    def _log_fields(self) -> tuple[str, ...]:
        return ("step_index", "place", "earlier_visits")

    def _chunk_numbers(self, steps: State) -> Tensor:
        # `earlier_visits` counts the earlier steps at this place. Chunk j of place p is j * n_places + p.
        return steps["earlier_visits"] // self.config.chunk * self.config.n_places + steps["place"]
