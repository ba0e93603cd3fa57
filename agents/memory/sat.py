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
from memenvs.agents.memory.timeline import Timeline, take_steps
from memenvs.agents.memory.token_memory import TokenConfig, TokenMemory
from memenvs.agents.memory.tokens import Tokens
from memenvs.retention import STRATEGY_NAMES, Strategy, place_quota, strategy_numbers


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
    """Settings of a place memory, in which each place has a queue of its own ("sat-pm").

    Idea:
        As `sat-fifo`, and the capacity is divided evenly among the places. Each place has a queue of its own and evicts
        its own oldest token, so that a long stay in one place cannot push out what was seen in the others.

    State:
        As `sat-fifo`. At most capacity / n_places tokens are of one place.

    When to use:
        Where the capacity is small, stays differ in length, and any place may matter later.

    When not to use:
        Where few of many places are visited: the capacity of the others stays unused.

    Difference from the paper:
        The quota is equal for all places, as the paper does not state it. Otherwise as `sat-fifo`.
    """

    strategy: Strategy = "quota"


@dataclass(frozen=True, kw_only=True)
class PlaceChunkConfig(ChunkConfig):
    """Settings of a place memory that is read in chunks."""

    strategy: Strategy = "quota"


class MoveMemory(TokenMemory):
    r"""A token memory with one more token for the action before each step ("t-fifo+a").

    Idea:
        As `t-fifo`, and the movement that led to each step is a token too. In principle the movements show where each
        step was; the agent would have to add them up.

    Equations:
        .. math::

            m_i &= W x_i + \operatorname{code}(\mathrm{time}_i) \\
            m'_i &= E_{\mathrm{move}_i} + \operatorname{code}(\mathrm{time}_i)

        E has a learned row for each movement. The reader is that of `t-fifo`, over both kinds of tokens.

    State:
        As `t-fifo`; a slot also has the number of the movement.

    Cost:
        As `t-fifo` with 2 M tokens.

    When to use:
        As a baseline: it shows whether an agent can work out places by itself. It needs the observation `move`, which
        tasks have where the environment moves the agent, such as Room Ballet.

    When not to use:
        Where places are known; `sat-fifo` uses them. In Room Ballet adding up the movements has not been learned.

    Difference from the paper:
        A token of a movement has the time of the step that it leads to. In the paper movements have times of their own
        between those of the observations.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity, codes, number of actions.

    Source:
        Cho, Yoon and Ahn, "Spatially-Aware Transformer for Embodied Agents", ICLR 2024 (arXiv:2402.15160),
        appendix on baselines (T-FIFO+A).
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
        rows = tuple(torch.cat([row, row], -1) for row in tokens.rows)  # both tokens of a step have its time
        return query, Tokens(values, tokens.tables, rows, mask)


class SpatialMemory(TokenMemory):
    r"""A token memory whose tokens also encode the place of their step ("sat-fifo", "sat-pm").

    Idea:
        Each step leaves one token with a code of its time and one of its place. So a query can find what happened at a
        place, or next to it, without having learned a map. A full memory evicts by time, or by the visits of places
        (`strategy`).

    Equations:
        .. math::

            m_i = W x_i + \operatorname{code}(\mathrm{time}_i) + \operatorname{code}(\mathrm{place}_i)

        The reader is that of `t-fifo`.

    State:
        As `t-fifo`; a slot also has the number of the place.

    Cost:
        As `t-fifo`; the places are rows of one more table of codes.

    When to use:
        Where rooms or cells are known (`make_vec_env(..., place=True)`) and the answer depends on where something was
        seen. With a small capacity, choose the `strategy` whose evictions keep what is needed later.

    When not to use:
        Without places. Where a long stay in one place would push out all others; `sat-pm` keeps some of each.

    Difference from the paper:
        Tables of place codes are filled from the first place on; the release fills them from the last one, so that
        codes change with the number of places. A unit of eviction is a step; in Room Ballet's own models it is a visit.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity and strategy, codes.

    Source:
        Cho, Yoon and Ahn, "Spatially-Aware Transformer for Embodied Agents", ICLR 2024 (arXiv:2402.15160),
        sections 3.1 (SAT-FIFO) and 3.2 (place memory and other strategies).
    """

    uses_place = True
    config: SpatialConfig

    def __init__(self, input_dim: int, config: SpatialConfig) -> None:
        super().__init__(input_dim, config)
        self.place_code = PlaceCode(config.place_code, config.n_places, config.dim, config.columns)

    def _strategy(self) -> str:
        return self.config.strategy

    def _strategies(self) -> tuple[str, ...]:
        capacity = self.config.capacity
        assert capacity is not None
        # a quota is at least one step of each place
        return tuple(name for name in STRATEGY_NAMES if name != "quota" or capacity >= self.config.n_places)

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
        """Add the code of its place to each token and to the query."""
        table = self.place_code.table().to(query.dtype)
        query = query + table[take_steps(timeline.steps["place"], now)]
        rows = steps["place"].clamp(min=0)  # an empty slot of the log may have -1; the mask hides it
        return query, Tokens(tokens.values, (*tokens.tables, table), (*tokens.rows, rows), tokens.mask)


class ChunkedMemory(SpatialMemory):
    r"""A spatial memory that is read in chunks of consecutive steps ("sat-fifo-th").

    Idea:
        As `sat-fifo`, read in two stages. First the query scores chunks of consecutive steps by their mean tokens. Then
        it attends to the tokens of the k best chunks only.

    Equations:
        .. math::

            s_c &= (A \hat q)^\top B \bar m_c / \sqrt{D}, \quad C = \operatorname{top}_k(s) \\
            r_c &= \operatorname{MultiHead}(\hat q,\; \{m_i : i \in c\}) \\
            q &\leftarrow q + \sum_{c \in C} \operatorname{softmax}_C(s)_c \, r_c

        The mean token of chunk c has a bar. This replaces the third row of `t-fifo`; tokens are those of `sat-fifo`.

    State:
        As `sat-fifo`.

    Cost:
        A decision with M tokens takes about I D + L (8 D^2 + 2 D D_mlp + M D + 2 h k n D + (2 h + 1) K D)
        multiply-adds. All tokens are scored, then k chunks of n tokens are read with h heads; K are the rows in the
        tables of codes. Reading gathers k n D numbers per query.

    When to use:
        Where the steps that matter came one after the other, such as one visit of several steps.

    When not to use:
        Where what belongs together is scattered over time, such as many short visits of a place; `sat-pm-ph` keeps it
        together. For speed: from tables of codes, reading all tokens at once is faster.

    Difference from the paper:
        As in the release, the softmax over chunks is over the chosen ones only. The chunk of a step is fixed when it
        arrives, so that chunks do not shift as older steps leave.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity and strategy, codes, chunks.

    Source:
        Cho, Yoon and Ahn, "Spatially-Aware Transformer for Embodied Agents", ICLR 2024 (arXiv:2402.15160),
        section 3.1 (time-centric hierarchical attention), after Lampinen et al., "Towards mental time travel: a
        hierarchical memory for reinforcement learning agents", NeurIPS 2021 (arXiv:2105.14039).
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
    r"""A spatial memory that is read in chunks of steps at one place ("sat-pm-ph").

    Idea:
        As `sat-pm`, read in two stages. A chunk has successive steps of one place only, so that its mean token has one
        place code and the query can choose the right place before it reads.

    Equations:
        .. math::

            \operatorname{chunk}(i) = \left( \mathrm{place}_i,\;
            \lfloor \mathrm{visits}_i / n \rfloor \right)

        visits is the number of earlier steps at the same place, n the size of a chunk. The reader is that of
        `sat-fifo-th`, tokens are those of `sat-fifo`.

    State:
        As `sat-pm`; a slot also has the number of earlier steps at its place, and the state one counter per place.

    Cost:
        As `sat-fifo-th`.

    When to use:
        Where a place is visited many times for short stays, and a question is about one place.

    When not to use:
        Without places, or where what matters is one stretch of time across places; `sat-fifo-th` keeps it together.

    Difference from the paper:
        As `sat-fifo-th`. The place code is in the mean token once, and not added to it again.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity and strategy, codes, chunks.

    Source:
        Cho, Yoon and Ahn, "Spatially-Aware Transformer for Embodied Agents", ICLR 2024 (arXiv:2402.15160),
        section 3.1 (place-centric hierarchical attention).
    """

    def _log_fields(self) -> tuple[str, ...]:
        return ("step_index", "place", "earlier_visits")

    def _chunk_numbers(self, steps: State) -> Tensor:
        # `earlier_visits` counts the earlier steps at this place. Chunk j of place p is j * n_places + p.
        return steps["earlier_visits"] // self.config.chunk * self.config.n_places + steps["place"]
