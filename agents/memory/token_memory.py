"""Memory of tokens with codes of time; the base of all memories read by `MemoryReader`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.attention import checkpointed
from memenvs.agents.memory.base import Memory, ResetOn, State, StepInputs, check_inputs, last_steps
from memenvs.agents.memory.chunking import Chunks, ranks_within
from memenvs.agents.memory.clock import last_reset
from memenvs.agents.memory.place_codes import TIME_MODULUS, TimeIndex, query_time_indices, sinusoid, time_indices
from memenvs.agents.memory.reader import MemoryReader
from memenvs.agents.memory.tokens import Tokens
from memenvs.checks import check_fields, check_int
from memenvs.retention import STRATEGY_NAMES, eviction_times

NUMBERS_AT_ONCE = 1 << 22
"""Size of the largest intermediate tensor, of scores or gathered tokens; more is computed in parts."""
INITIAL_STEPS = 64
"""Steps for which the log of a memory without a capacity has room at first."""


@dataclass(frozen=True, kw_only=True)
class TokenConfig:
    """Settings that all memories of tokens have.

    Attributes:
        dim: Width D of a token and of the features; even.
        layers: Layers of the reader; >= 1.
        heads: Attention heads; divides `dim`.
        mlp_dim: Hidden width of the MLP in each layer; >= 1.
        capacity: Steps that are kept, the present one among them; >= 1; None keeps all.
        time_index: Number that the time code encodes: "step" (counted from the last reset), "age" (steps ago), "slot"
            (tokens in memory that are newer) or "mod32" (the step modulo 32).
        query_codes: Whether the query, which is the present step, has codes of time and place too.
        reset_on: Start that empties the memory: of a trial or of an episode.
    """

    dim: int = 128
    layers: int = 4
    heads: int = 2
    mlp_dim: int = 128
    capacity: int | None = None
    time_index: TimeIndex = "step"
    query_codes: bool = True
    reset_on: ResetOn = "trial"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.dim < 2 or self.dim % 2:
            raise ValueError(f"dim must be even, got {self.dim}")
        check_int("capacity", self.capacity, or_none=True)


@dataclass(frozen=True)
class Timeline:
    """The steps of the log in their order, followed by T new ones: N in all.

    Attributes:
        steps: Fields of the log: `value`, float (B, N, D), and, as far as the memory needs them, int64 (B, N):
            `number` (of the step, counted from the last reset; -1 if it is no longer in memory), `place`, `move` and
            `nth` (earlier steps at the same place since the reset).
        trial: int64, (B, N); resets among the T new steps up to and with this one; 0 for steps of the log.
        evicted_at: int64, (B, N); index of the step with whose arrival this one leaves the memory. N if it stays, its
            own index if it is never stored.
        past: Steps of the log, N - T.
    """

    steps: State
    trial: Tensor
    evicted_at: Tensor
    past: int


class _ReaderArguments(NamedTuple):
    """Arguments of `MemoryReader.forward` for some steps."""

    query: Tensor
    tokens: Tokens
    chunks: Chunks | None
    top_k: int


class TokenMemory(Memory):
    """Keeps a token for each step and reads them with the present one as query ("t-fifo").

    A token is the embedded observation plus a code of its time (subclasses add a code of its place):

        m_i = W x_i + code(time_i),   features = reader(m_t, {m_i in memory})

    A state keeps a log of embeddings and of the numbers that the codes follow from. Steps are appended to the log in
    place, and `number` in the state, which is not shared, marks those that are in memory; so an older state with the
    same log stays valid. When the log is full, the steps in memory move to a new one. `strategy` in a state, int64
    (B,), is the number of each sequence's eviction strategy in `memenvs.retention.STRATEGY_NAMES`; it may be set.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity, codes.

    Source:
        Spatially-Aware Transformer for Embodied Agents, 2024, sections 3.1 and 3.2; tokens of observation and time
        alone are its T-FIFO.
    """

    config: TokenConfig

    def __init__(self, input_dim: int, config: TokenConfig) -> None:
        super().__init__()
        self.config = config
        self.bounded = config.capacity is not None
        self.input_dim, self.output_dim = input_dim, config.dim
        self.embed = nn.Linear(input_dim, config.dim)
        self.reader = MemoryReader(config.dim, config.layers, config.heads, config.mlp_dim)
        self._time_codes = sinusoid(torch.arange(INITIAL_STEPS).double(), config.dim)

    # ------------------------------------------------------------------ contract

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """An empty log; see `Memory.initial_state`."""
        capacity = self.config.capacity
        slots = max_steps or INITIAL_STEPS if capacity is None else 2 * capacity
        zeros = torch.zeros(batch_size, slots, dtype=torch.int64, device=self.embed.weight.device)
        state = {name: torch.full_like(zeros, -1) for name in self._log_fields()}
        state["value"] = self.embed.weight.new_zeros(batch_size, slots, self.config.dim)
        state |= {name: torch.zeros_like(zeros[:, 0]) for name in ("end", "length")}
        state["strategy"] = torch.full_like(zeros[:, 0], STRATEGY_NAMES.index(self._strategy()))
        if "nth" in state:
            state["visits"] = zeros.new_zeros(batch_size, self._n_places())
        return state

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """Act: one step of every sequence, without gradient; see `Memory.step`."""
        features, after = self(x, state)
        assert after is not None
        return features[:, 0], after

    def forward(
        self, x: StepInputs, state: State | None = None, last: int | None = None
    ) -> tuple[Tensor, State | None]:
        """Learn: T steps at once; see `Memory.forward`.

        With a state, the steps go on after the past that it holds, through which no gradient flows. Without one None is
        returned for it.
        """
        batch, steps = self._check(x)
        kept = last_steps(steps, last)
        line = self._timeline(x, state)
        at = torch.arange(steps - kept, steps, device=line.trial.device).expand(batch, -1)
        return self._decisions(line, at), None if state is None else self._after(line, state)

    def features_at(self, x: StepInputs, at: Tensor) -> Tensor:
        """Compute the features of some steps only; see `Memory.features_at`."""
        self._check(x)
        return self._decisions(self._timeline(x, None), at)

    @torch.no_grad()
    def attention(self, x: StepInputs, at: Tensor) -> Tensor:
        """Return the attention weights of each layer at a few steps of whole trials.

        Args:
            x: T steps, from the first one of a trial on.
            at: int64, (B, S); index of each wanted step.

        Returns:
            float, (layers, B, S, T); weights of steps, which sum to 1. With "t-fifo+a", those of a step and of the
            action before it together.
        """
        self._check(x)
        line = self._timeline(x, None)
        total = line.trial.shape[1]
        weights = self.reader.attention(*self._reader_arguments(line, at, 0, total), independent=True)
        return weights.unflatten(-1, (-1, total)).sum(-2)

    # ------------------------------------------------------------------ the log

    def _strategy(self) -> str:
        """Name of the eviction strategy."""
        return "fifo"

    def _n_places(self) -> int:
        return 1

    def _log_fields(self) -> tuple[str, ...]:
        """Integers that the log keeps of each step; see `Timeline.steps`."""
        return ("number",)

    def _check(self, x: StepInputs) -> tuple[int, int]:
        """(B, T) of a complete input."""
        return check_inputs(x, self.input_dim, uses_place=self.uses_place, uses_move=self.uses_move)

    def _timeline(self, x: StepInputs, state: State | None) -> Timeline:
        """Join the steps in memory and the new ones, and compute when each leaves."""
        resets = x.resets(self.config.reset_on)
        batch, steps = resets.shape
        now = torch.arange(steps, device=resets.device)
        length = torch.zeros_like(now[:1]).expand(batch) if state is None else state["length"]
        new: State = {"value": self.embed(x.embedding), "number": now - last_reset(resets, length)}
        if x.place is not None and self.uses_place:
            new["place"] = x.place
        if x.move is not None and self.uses_move:
            new["move"] = x.move
        trial = resets.cumsum(1)
        if "nth" in self._log_fields():
            new["nth"] = self._earlier_visits(new["place"], trial, None if state is None else state["visits"])
        past = 0 if state is None else int(state["end"].max())
        if state is not None:
            new = {name: torch.cat([state[name][:, :past], value], 1) for name, value in new.items()}
            resets = torch.cat([torch.zeros_like(resets[:, :1]).expand(-1, past), resets], 1)
            trial = torch.cat([torch.zeros_like(trial[:, :1]).expand(-1, past), trial], 1)
        places = new["place"] if self.uses_place else torch.zeros_like(new["number"])
        evicted_at = eviction_times(
            places.masked_fill(new["number"] < 0, -1).cpu().numpy(),
            self._strategy() if state is None else state["strategy"].cpu().numpy(),
            self.config.capacity,
            n_places=self._n_places(),
            resets=resets.cpu().numpy(),
        )
        return Timeline(new, trial, torch.from_numpy(evicted_at).to(resets.device), past)

    @staticmethod
    def _earlier_visits(place: Tensor, trial: Tensor, before: Tensor | None) -> Tensor:
        """Count the earlier steps at the same place since the reset, int64 (B, T); `before` counts the past."""
        keys = trial * (int(place.max()) + 1) + place
        earlier = ranks_within(keys, torch.ones_like(keys, dtype=torch.bool))
        return earlier if before is None else earlier + before.gather(1, place) * (trial == 0)

    def _after(self, line: Timeline, state: State) -> State:
        """Return the state after the last step."""
        total = line.trial.shape[1]
        in_memory = line.evicted_at == total
        after = state | {"length": line.steps["number"][:, -1] + 1}
        if "visits" in state:
            of_last_trial = line.trial == line.trial[:, -1:]
            of_last_trial[:, : line.past] = False  # `visits` counts them already
            visits = torch.zeros_like(state["visits"]).scatter_add(1, line.steps["place"], of_last_trial.long())
            after["visits"] = visits + state["visits"] * (line.trial[:, -1:] == 0)
        number = line.steps["number"].masked_fill(~in_memory, -1)
        fields = {name: value.detach() for name, value in line.steps.items() if name != "number"}
        slots = state["number"].shape[1]
        if total <= slots and bool((state["end"] == line.past).all()):
            for name, value in fields.items():
                state[name][:, line.past : total] = value[:, line.past :]
            after["number"] = F.pad(number, (0, slots - total), value=-1)
            after["end"] = torch.full_like(state["end"], total)
            return after
        return after | _compacted(fields | {"number": number}, in_memory, slots)

    # ------------------------------------------------------------------ decisions

    def _decisions(self, line: Timeline, at: Tensor) -> Tensor:
        """Compute features of some of the T steps, float (B, S, D), in parts that fit into memory.

        Args:
            line: The steps.
            at: int64, (B, S).
        """
        batch, total = line.trial.shape
        numbers_per_decision = max(total, self._numbers_of_chunks())
        size = max(1, NUMBERS_AT_ONCE // (batch * numbers_per_decision))

        def decide(at: Tensor, values: Tensor) -> Tensor:
            now = at + line.past
            begin = int((line.evicted_at > now.amin()).int().amax(0).argmax())  # first step that a query can read
            arguments = self._reader_arguments(line, at, begin, int(now.max()) + 1, values)
            return self.reader(*arguments, independent=True)

        if size >= at.shape[1]:
            return decide(at, line.steps["value"])
        return torch.cat([checkpointed(decide, part, line.steps["value"]) for part in at.split(size, dim=1)], 1)

    def _numbers_of_chunks(self) -> int:
        """Numbers that a decision gathers from chunks."""
        return 0

    def _reader_arguments(
        self, line: Timeline, at: Tensor, begin: int, end: int, values: Tensor | None = None
    ) -> _ReaderArguments:
        """Make queries, tokens and chunks for some steps.

        Args:
            line: The steps.
            at: int64, (B, S); index among the T of each step that reads.
            begin: First of the N steps that one of the queries reads.
            end: One after the last.
            values: float, (B, N, D); in place of `line.steps["value"]`.
        """
        kind = self.config.time_index
        values = line.steps["value"] if values is None else values
        now = at + line.past  # (B, S), among the N
        unit = torch.arange(begin, end, device=at.device)
        steps = {name: value[:, begin:end] for name, value in line.steps.items()}
        in_memory = (unit <= now[..., None]) & (now[..., None] < line.evicted_at[:, None, begin:end])  # (B, S, n)
        number_now = line.steps["number"].gather(1, now)
        table = self._time_table(int(line.steps["number"].max()) + 1)
        times = time_indices(kind, steps["number"], number_now, in_memory)
        query = values.gather(1, now[..., None].expand(-1, -1, values.shape[-1]))  # (B, S, D)
        tokens = Tokens(values[:, begin:end], (table,), (times,), in_memory)
        if self.config.query_codes:
            query = query + table[query_time_indices(kind, number_now)]
        query, tokens = self._extend(line, now, query, tokens, steps)
        return _ReaderArguments(query, tokens, self._chunks(line, steps, begin, end), self._top_k())

    def _time_table(self, count: int) -> Tensor:
        """Codes of the first times, float (at least `count`, D), from a table that grows with the steps."""
        weight = self.embed.weight
        if count > len(self._time_codes):
            self._time_codes = sinusoid(torch.arange(2 * count).double(), self.config.dim)
        self._time_codes = self._time_codes.to(weight.device)
        return self._time_codes[: max(count, TIME_MODULUS)].to(weight.dtype)

    def _extend(
        self, line: Timeline, now: Tensor, query: Tensor, tokens: Tokens, steps: State
    ) -> tuple[Tensor, Tokens]:
        """Return queries and tokens with the additions of subclasses: codes of places, tokens of actions."""
        return query, tokens

    def _chunks(self, line: Timeline, steps: State, begin: int, end: int) -> Chunks | None:
        """Chunks of the tokens; None where all are read at once."""
        return None

    def _top_k(self) -> int:
        return 1


def _compacted(fields: State, in_memory: Tensor, slots: int) -> State:
    """Copy the steps in memory to the front of new tensors.

    Args:
        fields: (B, N) or (B, N, D) each.
        in_memory: bool, (B, N).
        slots: Slots of the new tensors; twice as many as needed if there are too few.

    Returns:
        The fields, (B, slots, ...), and `end`, int64 (B,).
    """
    count = int(in_memory.sum(1).max())
    slots = slots if count <= slots else 2 * count
    order = (~in_memory).long().argsort(dim=1, stable=True)[:, :count]  # those in memory first, in their order
    state = {}
    for name, value in fields.items():
        index = order if value.ndim == 2 else order[..., None].expand(-1, -1, value.shape[-1])
        moved = value.gather(1, index)  # (B, count, ...)
        state[name] = moved.new_full((len(moved), slots, *moved.shape[2:]), -1 if name == "number" else 0)
        state[name][:, :count] = moved
    return state | {"end": torch.full_like(order[:, 0], count)}
