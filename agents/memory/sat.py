"""The Spatially-Aware Transformer, and the memory of moves that it is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from memenvs.agents.memory.base import State, StepInputs
from memenvs.agents.memory.chunking import Chunks, chunks_by_key
from memenvs.agents.memory.place_codes import PlaceCode, PlaceCodeKind, check_place_code, check_places
from memenvs.agents.memory.reader import Tokens
from memenvs.agents.memory.token_memory import Timeline, TokenConfig, TokenMemory
from memenvs.checks import check_int
from memenvs.retention import Strategy, place_quota, strategy_numbers


@dataclass(frozen=True, kw_only=True)
class MoveConfig(TokenConfig):
    """Settings of a memory that has moves as tokens.

    Attributes:
        moves: How many moves there are; the number after the last says that there was none.
    """

    moves: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("moves", self.moves)


@dataclass(frozen=True, kw_only=True)
class SpatialConfig(TokenConfig):
    """Settings of a memory that knows places.

    Attributes:
        strategy: Which step is dropped when the memory is full; see `memenvs.retention`.
        n_places: Places in all; >= 1.
        place_code: How places are encoded; see `PlaceCode`.
        columns: Columns of the grid of places, for "sine2d" and "learned2d".
    """

    strategy: Strategy = "fifo"
    n_places: int = 9
    place_code: PlaceCodeKind = "sine1d"
    columns: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_place_code(self.place_code, self.n_places, self.columns)
        place_quota(strategy_numbers(self.strategy, 1), self.capacity, self.n_places)


@dataclass(frozen=True, kw_only=True)
class ChunkConfig(SpatialConfig):
    """Settings of a memory that is read in chunks.

    Attributes:
        chunk: Tokens in one; >= 1.
        top_k: Chunks that are read; >= 1.
    """

    chunk: int = 32
    top_k: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("chunk", self.chunk)
        check_int("top_k", self.top_k)


@dataclass(frozen=True, kw_only=True)
class PlaceConfig(SpatialConfig):
    """Settings of a place memory, in which each place has a queue of its own."""

    strategy: Strategy = "quota"


@dataclass(frozen=True, kw_only=True)
class PlaceChunkConfig(ChunkConfig):
    """Settings of a place memory that is read in chunks."""

    strategy: Strategy = "quota"


class MoveMemory(TokenMemory):
    """A memory without places that has the moves between steps as tokens too ("t-fifo+a").

    Args:
        input_dim: Width of the embedding.
        config: Sizes, room, codes, number of moves.

    Source:
        Spatially-Aware Transformer, appendix on baselines (T-FIFO+A).
    """

    uses_move = True
    config: MoveConfig

    def __init__(self, input_dim: int, config: MoveConfig) -> None:
        super().__init__(input_dim, config)
        self.move = nn.Embedding(config.moves, config.dim)

    def _numbers(self) -> tuple[str, ...]:
        return ("number", "move")

    def _check(self, x: StepInputs) -> tuple[int, int]:
        shape = super()._check(x)
        assert x.move is not None
        if not (int(x.move.min()) >= 0 and int(x.move.max()) <= self.config.moves):
            wrong = int(x.move.min()) if int(x.move.min()) < 0 else int(x.move.max())
            raise ValueError(
                f"move must be 0 ... {self.config.moves - 1}, or {self.config.moves} for none, got {wrong}"
            )
        return shape

    def _placed(self, line: Timeline, now: Tensor, query: Tensor, tokens: Tokens, seen: State) -> tuple[Tensor, Tokens]:
        """As many tokens again, of the moves that led to the steps."""
        move = seen["move"]
        there = (move >= 0) & (move < self.config.moves)
        assert tokens.values is not None and tokens.mask is not None
        values = torch.cat([tokens.values, self.move(move * there)], 1)
        mask = torch.cat([tokens.mask, tokens.mask & there[:, None]], -1)
        rows = tuple(torch.cat([each, each], -1) for each in tokens.rows)
        return query, Tokens(values, tokens.tables, rows, mask)


class SpatialMemory(TokenMemory):
    """A memory whose tokens have codes of their places too, and whose strategy may depend on places ("sat-fifo", "sat-pm").

    Args:
        input_dim: Width of the embedding.
        config: Sizes, room and strategy, codes.

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

    def _places(self) -> int:
        return self.config.n_places

    def _numbers(self) -> tuple[str, ...]:
        return ("number", "place")

    def _check(self, x: StepInputs) -> tuple[int, int]:
        shape = super()._check(x)
        assert x.place is not None
        check_places(x.place, self.config.n_places)
        return shape

    def _placed(self, line: Timeline, now: Tensor, query: Tensor, tokens: Tokens, seen: State) -> tuple[Tensor, Tokens]:
        """Codes of places are added to tokens and, if it has codes, to the query."""
        table = self.place_code.table().to(query.dtype)
        if self.config.query_codes:
            query = query + table[line.steps["place"].gather(1, now)]
        rows = seen["place"].clamp(min=0)
        return query, Tokens(tokens.values, (*tokens.tables, table), (*tokens.rows, rows), tokens.mask)


class ChunkedMemory(SpatialMemory):
    """A spatial memory that is read in chunks of consecutive steps ("sat-fifo-th"): the most relevant chunks are chosen, then their tokens are read.

    Which chunk a step belongs to is fixed when it arrives: chunks do not shift as older steps leave.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, room and strategy, codes, chunks.

    Source:
        Spatially-Aware Transformer, section 3.1 (time-centric hierarchical attention).
    """

    config: ChunkConfig

    def _chunks(self, line: Timeline, seen: State, begin: int, end: int) -> Chunks:
        key = self._chunk_numbers(seen)
        key = key + line.trial[:, begin:end] * (int(key.max()) + 1)
        return chunks_by_key(key, seen["number"] >= 0, self.config.chunk)

    def _chunk_numbers(self, seen: State) -> Tensor:
        """Which of a trial's chunks each step is in, int64 (B, N)."""
        return seen["number"] // self.config.chunk

    def _top_k(self) -> int:
        return self.config.top_k

    def _numbers_of_chunks(self) -> int:
        return self.config.top_k * self.config.chunk * self.config.dim


class PlaceChunkedMemory(ChunkedMemory):
    """A spatial memory that is read in chunks of steps at one place ("sat-pm-ph").

    Args:
        input_dim: Width of the embedding.
        config: Sizes, room and strategy, codes, chunks.

    Source:
        Spatially-Aware Transformer, section 3.1 (place-centric hierarchical attention).
    """

    def _numbers(self) -> tuple[str, ...]:
        return ("number", "place", "nth")

    def _chunk_numbers(self, seen: State) -> Tensor:
        return seen["nth"] // self.config.chunk * self.config.n_places + seen["place"]
