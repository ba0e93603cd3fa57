"""Memory of one token per step with a time code, read by attention (`MemoryReader`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from memenvs.agents.memory.attention import checkpointed
from memenvs.agents.memory.base import STRATEGY, Memory, State, StepInputs, check_inputs, n_last_steps
from memenvs.agents.memory.chunking import Chunks
from memenvs.agents.memory.clock import last_reset
from memenvs.agents.memory.place_codes import TIME_MODULUS, TimeIndex, query_time_indices, sinusoid, time_indices
from memenvs.agents.memory.reader import MemoryReader
from memenvs.agents.memory.timeline import Timeline, earlier_visits, join_steps, next_state, shifted, take_steps
from memenvs.agents.memory.tokens import Tokens
from memenvs.agents.sizes import check_sizes
from memenvs.retention import STRATEGY_NAMES

MAX_ELEMENTS = 1 << 22
"""Elements of the largest intermediate tensor (scores or gathered tokens); more queries are computed in parts."""
SMALLEST_STD = 0.1
"""Smallest standard deviation by which an input is scaled, as a share of the largest one."""
READ_GAIN = 3.0
"""Factor on the initial projections of values and outputs."""
INITIAL_STEPS = 64
"""Initial length of the log of a memory without a capacity."""


@dataclass(frozen=True, kw_only=True)
class TokenConfig:
    """Settings that all token memories share.

    Attributes:
        dim: Width D of the tokens and of the features; even.
        layers: Layers of the reader; >= 1.
        heads: Attention heads; divides `dim`.
        mlp_dim: Hidden width of the MLP in each layer; >= 1.
        capacity: Number of steps in memory, including the current one; >= 1. None keeps all.
        time_index: Number that the time code encodes: "step" (counted from the last reset), "age" (steps ago),
            "slot" (number of newer tokens in memory) or "mod32" (the step modulo 32).
        standardize: Whether the initial weights are scaled to the first inputs; see `TokenMemory.standardize`. With
            PyTorch's own weights, what differs between two observations is small beside the codes of time and place.
    """

    dim: int = 128
    layers: int = 4
    heads: int = 2
    mlp_dim: int = 128
    capacity: int | None = None
    time_index: TimeIndex = "step"
    standardize: bool = True

    def __post_init__(self) -> None:
        check_sizes(self)
        if self.dim % 2:
            raise ValueError(f"dim must be even, got {self.dim}")


class _ReaderArguments(NamedTuple):
    """Arguments of `MemoryReader.forward` for some steps."""

    query: Tensor
    tokens: Tokens
    chunks: Chunks | None
    top_k: int


class TokenMemory(Memory):
    r"""Stores a token for each step; the current step attends to them ("t-fifo").

    A state has a log: tensors with a row for each past step, which hold its embedding W x_i and the integers from which
    its codes are computed. A new step is appended in place, so that successive states share the same log. Each
    state has its own `step_index`, which marks the steps in memory. So an older state stays valid. When the log is
    full, the steps in memory are copied to a new one.

    `strategy` in a state, int64 (B,), is the number of each sequence's eviction strategy in
    `memenvs.retention.STRATEGY_NAMES`. A caller may change it to choose a strategy (`strategies`).

    Idea:
        Each step leaves one token: the embedded observation plus a code of its time. The current step reads all tokens
        by attention, through a few layers. When the memory is full, the oldest token leaves (first in, first out).

    Equations:
        .. math::

            m_i &= W x_i + \operatorname{code}(\mathrm{time}_i), \qquad q \leftarrow m_t \\
            q &\leftarrow q + W_{lo} W_{lv} \hat q \\
            q &\leftarrow q + W_o W_v \sum_i a_i m_i,
            \quad a = \operatorname{softmax}_i ((A \hat q)^\top B m_i / \sqrt{D}) \\
            q &\leftarrow q + W_2 \operatorname{ReLU}(W_1 \hat q)

        A hat is a layer normalisation. The last three rows are one layer of the reader; the features are q after the
        last. All layers read the same tokens.

    State:
        A log with a slot for each step, and for twice the capacity M where there is one. A slot has the embedded
        observation, D numbers, and the integers from which codes are computed.

    Cost:
        A decision with M tokens takes about I D + L (6 D^2 + 2 D D_mlp + 2 M D + 2 K D) multiply-adds, with I inputs
        and K rows in the tables of codes. No key or value of a token is ever computed: projections go through the
        query. All steps of a sequence are learned in parallel.

    When to use:
        Where the order of events matters and places do not, and as the baseline of the memories with places.

    When not to use:
        Where the answer depends on where something was seen: the order of visits hardly shows which places are
        neighbours. Without a capacity the state grows with every step.

    Difference from the paper:
        The time code is of the step's number, as in the paper; its release uses the rank in memory, counted from the
        end (`time_index="slot"`). The current step is the query, with codes of its own; in the paper's Room Ballet the
        query is an image without codes. Initial weights are scaled to the first inputs (`standardize`): with PyTorch's
        own, two observations differ by a percent of their codes, and what is rare in them is learned late or not at
        all.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity and codes.

    Source:
        Cho, Yoon and Ahn, "Spatially-Aware Transformer for Embodied Agents", ICLR 2024 (arXiv:2402.15160),
        sections 3.1 and 3.2. Without codes of places this is its T-FIFO.
    """

    config: TokenConfig
    is_standardized: Tensor

    def __init__(self, input_dim: int, config: TokenConfig) -> None:
        super().__init__()
        self.config = config
        self.bounded = config.capacity is not None
        self.strategies = self._strategies() if self.bounded else ()
        self.input_dim, self.output_dim = input_dim, config.dim
        self.embed = nn.Linear(input_dim, config.dim)
        self.reader = MemoryReader(config.dim, config.layers, config.heads, config.mlp_dim)
        if config.standardize:
            self.register_buffer("is_standardized", torch.zeros((), dtype=torch.int64))
        self._time_codes = sinusoid(torch.arange(INITIAL_STEPS).double(), config.dim)

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Return a state with an empty log; see `Memory.initial_state`.

        Returns:
            The log: `value`, float (B, slots, D), and the integer fields of `Timeline.steps`, int64 (B, slots);
            `step_index` is -1 where no step is in memory. And int64 (B,) each: `end`, slots in use; `length`, steps
            since the last reset; `strategy`, see the class. Where a memory needs `earlier_visits`, also `visits`, int64
            (B, P): steps at each place since the last reset.
        """
        capacity = self.config.capacity
        # Twice the capacity: the log is copied at most once in `capacity` steps.
        slots = (max_steps or INITIAL_STEPS) if capacity is None else 2 * capacity
        zeros = torch.zeros(batch_size, slots, dtype=torch.int64, device=self.embed.weight.device)
        state = {name: torch.full_like(zeros, -1) for name in self._log_fields()}
        state["value"] = self.embed.weight.new_zeros(batch_size, slots, self.config.dim)
        state |= {name: torch.zeros_like(zeros[:, 0]) for name in ("end", "length")}
        state[STRATEGY] = torch.full_like(zeros[:, 0], STRATEGY_NAMES.index(self._strategy()))
        if "earlier_visits" in state:
            state["visits"] = zeros.new_zeros(batch_size, self._n_places())
        return state

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """Advance every sequence by one step, without gradient; see `Memory.step`."""
        features, after = self(x, state)
        assert after is not None
        return features[:, 0], after

    def forward(
        self, x: StepInputs, state: State | None = None, last: int | None = None
    ) -> tuple[Tensor, State | None]:
        """Compute the features of T steps in parallel; see `Memory.forward`.

        With a state, the steps continue its past, through which no gradient flows. Without one the memory starts empty,
        and None is returned in place of the next state.
        """
        batch, steps = self._check(x)
        n_last = n_last_steps(steps, last)
        timeline = self._timeline(x, state)
        at = torch.arange(steps - n_last, steps, device=timeline.reset_count.device).expand(batch, -1)  # (B, S)
        return self._read(timeline, at), None if state is None else next_state(timeline, state)

    def features_at(self, x: StepInputs, at: Tensor) -> Tensor:
        """Compute the features of some steps only; see `Memory.features_at`."""
        self._check(x)
        return self._read(self._timeline(x, None), at)

    @torch.no_grad()
    def standardize(self, embedding: Tensor) -> bool:
        """Scale the initial weights so that the inputs vary as much as the codes.

        Each input is divided by its variance, so that what is rare weighs most, and then each number of W x is scaled
        to mean 0 and variance 1, once. What is read, a mean over many tokens, is scaled by `READ_GAIN`, so that a few
        of them are not lost beside the query. Neither suffices alone where a cue is seen in a few of many steps.

        Args:
            embedding: float, (K, E); inputs of K steps.

        Returns:
            True if the weights were scaled, False if they were before or the setting `standardize` is off.
        """
        if not self.config.standardize or self.is_standardized:
            return False
        weight, bias = self.embed.weight, self.embed.bias
        mean, std = embedding.mean(0), embedding.std(0, correction=0)
        if std.max() > 0:
            weight.div_(std.clamp(min=SMALLEST_STD * std.max()).square())
            values = embedding @ weight.T  # (M, D)
            scale = values.std(0, correction=0)
            weight.div_(scale[:, None])
            bias.copy_(-(weight @ mean))
        self.reader.amplify(READ_GAIN)
        self.is_standardized.fill_(1)
        return True

    def _strategy(self) -> str:
        """Return the name of the eviction strategy."""
        return "fifo"

    def _strategies(self) -> tuple[str, ...]:
        """Return the names of the strategies that it can follow: without places those by time alone."""
        return ("fifo", "lifo")

    def _n_places(self) -> int:
        return 1

    def _log_fields(self) -> tuple[str, ...]:
        """Return the names of the integer fields of the log; see `Timeline.steps`."""
        return ("step_index",)

    def _check(self, x: StepInputs) -> tuple[int, int]:
        """Check the inputs and return their (B, T)."""
        return check_inputs(x, self.input_dim, uses_place=self.uses_place, uses_move=self.uses_move)

    def _timeline(self, x: StepInputs, state: State | None) -> Timeline:
        """Join past and new steps, and compute when each is evicted."""
        resets = x.trial_start
        batch, steps = resets.shape
        now = torch.arange(steps, device=resets.device)
        length = torch.zeros_like(now[:1]).expand(batch) if state is None else state["length"]
        new: State = {"value": self.embed(x.embedding), "step_index": now - last_reset(resets, length)}
        if x.place is not None and self.uses_place:
            new["place"] = x.place
        if x.move is not None and self.uses_move:
            new["move"] = x.move
        if "earlier_visits" in self._log_fields():
            before = None if state is None else state["visits"]
            new["earlier_visits"] = earlier_visits(new["place"], resets.cumsum(1), before)
        if state is None:
            strategy = resets.new_full((batch,), STRATEGY_NAMES.index(self._strategy()), dtype=torch.int64)
        else:
            strategy = state[STRATEGY]
        strategies = strategy[:, None].expand(-1, steps) if x.strategy is None else x.strategy
        return join_steps(
            new, resets, strategy, strategies, state, capacity=self.config.capacity, n_places=self._n_places()
        )

    def _read(self, timeline: Timeline, at: Tensor) -> Tensor:
        """Compute the features of some of the T steps, in parts whose intermediate tensors fit into memory.

        Args:
            timeline: Past and new steps.
            at: int64, (B, S); indices among the T new steps.

        Returns:
            float, (B, S, D).
        """
        batch, total = timeline.reset_count.shape
        elements_per_query = max(total, self._gathered_elements())
        size = max(1, MAX_ELEMENTS // (batch * elements_per_query))  # queries per part

        def read(at: Tensor, values: Tensor) -> Tensor:
            now = at + timeline.past
            # Skip the steps that all queries find evicted: begin at the first one that any sequence still has.
            begin = int((timeline.evicted_at > now.amin()).int().amax(0).argmax())
            arguments = self._reader_arguments(timeline, at, begin, int(now.max()) + 1, values)
            return self.reader(*arguments, independent=True)  # the queries are different steps of one sequence

        if size >= at.shape[1]:
            return read(at, timeline.steps["value"])
        return torch.cat([checkpointed(read, part, timeline.steps["value"]) for part in at.split(size, dim=1)], 1)

    def _gathered_elements(self) -> int:
        """Return the number of elements that a query gathers from its chunks; 0 without chunks."""
        return 0

    def _reader_arguments(
        self, timeline: Timeline, at: Tensor, begin: int, end: int, values: Tensor | None = None
    ) -> _ReaderArguments:
        """Make queries, tokens and chunks for some steps.

        Args:
            timeline: Past and new steps.
            at: int64, (B, S); indices of the queries among the T new steps.
            begin: First of the N steps that become tokens; all others that the queries can read come after it.
            end: One after the last step that becomes a token.
            values: float, (B, N, D); used instead of `timeline.steps["value"]`, so that gradients flow through a
                checkpointed function. None for those.
        """
        kind = self.config.time_index
        values = timeline.steps["value"] if values is None else values
        now = shifted(at, timeline.past)  # (B, S), among the N
        index = torch.arange(begin, end, device=at.device)  # (n,), among the N
        steps = {name: value[:, begin:end] for name, value in timeline.steps.items()}
        in_memory = (index <= now[..., None]) & (now[..., None] < timeline.evicted_at[:, None, begin:end])  # (B, S, n)
        step_now = take_steps(timeline.steps["step_index"], now)
        table = self._time_table(int(timeline.steps["step_index"].max()) + 1)
        times = time_indices(kind, steps["step_index"], step_now, in_memory)
        query = take_steps(values, now)  # (B, S, D)
        tokens = Tokens(values[:, begin:end], (table,), (times,), in_memory)
        query = query + table[query_time_indices(kind, step_now)]
        query, tokens = self._extend(timeline, now, query, tokens, steps)
        return _ReaderArguments(query, tokens, self._chunks(timeline, steps, begin, end), self._top_k())

    def _time_table(self, count: int) -> Tensor:
        """Return the time codes of 0, 1, 2, ..., at least `count` of them, float (rows, D)."""
        weight = self.embed.weight
        if count > len(self._time_codes):
            self._time_codes = sinusoid(
                torch.arange(2 * count).double(), self.config.dim
            )  # doubled, so that it grows rarely
        self._time_codes = self._time_codes.to(weight.device)
        return self._time_codes[: max(count, TIME_MODULUS)].to(weight.dtype)

    def _extend(
        self, timeline: Timeline, now: Tensor, query: Tensor, tokens: Tokens, steps: State
    ) -> tuple[Tensor, Tokens]:
        """Add what subclasses need to queries and tokens: codes of places, tokens of actions.

        Args:
            timeline: Past and new steps, N in all.
            now: int64, (B, S); indices of the queries among the N steps.
            query: float, (B, S, D).
            tokens: n tokens, one for each of `steps`.
            steps: The n of the N steps that become tokens; fields as in `Timeline.steps`.

        Returns:
            The new queries and tokens.
        """
        return query, tokens

    def _chunks(self, timeline: Timeline, steps: State, begin: int, end: int) -> Chunks | None:
        """Return the chunks of the tokens; None where all are read at once."""
        return None

    def _top_k(self) -> int:
        return 1
