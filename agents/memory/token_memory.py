"""The memory of tokens with codes of time, and what all memories that are read by `MemoryReader` share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from memenvs.agents.memory.attention import checkpointed
from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, last_steps
from memenvs.agents.memory.chunking import Chunks, ranks_within
from memenvs.agents.memory.place_codes import CLOCK, TimeIndex, query_time_indices, sinusoid, time_indices
from memenvs.agents.memory.reader import MemoryReader, Tokens
from memenvs.agents.memory.recurrent import ResetOn
from memenvs.checks import check_fields, check_int
from memenvs.retention import STRATEGY_NAMES, eviction_times

NUMBERS_AT_ONCE = 1 << 22
"""Size of the largest intermediate tensor (scores, or gathered tokens of chunks); decisions that need more are computed in parts."""
ROOM = 64
"""Steps for which the log of a memory without a capacity has room at first."""


@dataclass(frozen=True, kw_only=True)
class TokenConfig:
    """Settings that all memories of tokens have.

    Attributes:
        dim: Width of a token and of the features; even.
        layers: Layers of the reader; >= 1.
        heads: Attention heads; divides `dim`.
        mlp_dim: Hidden width of the MLP in each layer; >= 1.
        capacity: Steps that are kept, the present one among them; >= 1; None keeps all.
        time_index: Which number tells when a step was seen: "step" (counted from the last reset), "age" (steps ago), "slot" (how many of those in
            memory are newer) or "mod32" (the step modulo 32).
        query_codes: Whether the query, which is the present step, has codes of time and place too.
        reset_on: What empties the memory: the start of a trial or of an episode.
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
        steps: What the log keeps of each: `value`, float (B, N, D), and, as far as the memory needs them, int64 (B, N): `number` (of the step,
            counted from the last reset; -1 if it is no longer in memory), `place`, `move` and `nth` (earlier steps at the same place since the
            reset).
        trial: int64, (B, N); resets among the T new steps up to and with this one; 0 for steps of the log.
        gone: int64, (B, N); index of the step with whose arrival this one leaves the memory: N if it stays, its own if it is never stored.
        past: Steps of the log, N - T.
    """

    steps: State
    trial: Tensor
    gone: Tensor
    past: int


class TokenMemory(Memory):
    """Keeps a token for each step and reads them with the present one as query ("t-fifo").

    A token is the sum of the embedded observation and of codes of its time and place. A state keeps a log of embeddings and of the numbers that
    the codes follow from. Steps are appended to the log in place, and `number` in the state, which is not shared, says which of them are in
    memory; so an older state with the same log stays valid. When the log is full, the steps in memory move to a new one. `strategy` in a state,
    int64 (B,), is the number of each sequence's strategy in `memenvs.retention.STRATEGY_NAMES`; it may be set.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, room, codes.

    Source:
        Spatially-Aware Transformer for Embodied Agents, 2024, sections 3.1 and 3.2; tokens of observation and time alone are its T-FIFO.
    """

    config: TokenConfig

    def __init__(self, input_dim: int, config: TokenConfig) -> None:
        super().__init__()
        self.config = config
        self.bounded = config.capacity is not None
        self.input_dim, self.output_dim = input_dim, config.dim
        self.embed = nn.Linear(input_dim, config.dim)
        self.reader = MemoryReader(config.dim, config.layers, config.heads, config.mlp_dim)
        self._table = sinusoid(torch.arange(ROOM).double(), config.dim)

    # ------------------------------------------------------------------ contract

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """An empty log; see `Memory.initial_state`."""
        room = max_steps or ROOM if self.config.capacity is None else 2 * self.config.capacity
        whole = torch.zeros(batch_size, room, dtype=torch.int64, device=self.embed.weight.device)
        state = {name: torch.full_like(whole, -1) for name in self._numbers()}
        state["value"] = self.embed.weight.new_zeros(batch_size, room, self.config.dim)
        state |= {name: torch.zeros_like(whole[:, 0]) for name in ("end", "length")}
        state["strategy"] = torch.full_like(whole[:, 0], STRATEGY_NAMES.index(self._strategy()))
        if "nth" in state:
            state["visits"] = whole.new_zeros(batch_size, self._places())
        return state

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """One step of every sequence, without gradient; see `Memory.step`."""
        features, after = self(x, state)
        assert after is not None
        return features[:, 0], after

    def forward(
        self, x: StepInputs, state: State | None = None, last: int | None = None
    ) -> tuple[Tensor, State | None]:
        """T steps at once; see `Memory.forward`.

        With a state, the steps go on after the past that it holds, through which no gradient flows. Without one None is returned for it.
        """
        batch, steps = self._check(x)
        kept = last_steps(steps, last)
        line = self._timeline(x, state)
        at = torch.arange(steps - kept, steps, device=line.gone.device).expand(batch, -1)
        return self._decisions(line, at), None if state is None else self._after(line, state)

    def decide(self, x: StepInputs, at: Tensor) -> Tensor:
        """Features of a few steps of whole trials; only these are computed. See `Memory.decide`."""
        self._check(x)
        return self._decisions(self._timeline(x, None), at)

    def attention(self, x: StepInputs, at: Tensor) -> Tensor:
        """What each layer attends to at a few steps of whole trials.

        Args:
            x: T steps, from the first one of a trial on.
            at: int64, (B, S); the steps that are asked for.

        Returns:
            float, (layers, B, S, T); weights of steps, which add up to 1 (with "t-fifo+a" those of a step and of the move before it together).
        """
        self._check(x)
        with torch.no_grad():
            line = self._timeline(x, None)
            seen = self.reader.attention(*self._question(line, at, 0, line.gone.shape[1]), alone=True)
        return seen.unflatten(-1, (-1, line.gone.shape[1])).sum(-2)

    # ------------------------------------------------------------------ what is kept

    def _strategy(self) -> str:
        return "fifo"

    def _places(self) -> int:
        return 1

    def _numbers(self) -> tuple[str, ...]:
        """Names of the whole numbers that the log keeps of each step; see `Timeline.steps`."""
        return ("number",)

    def _check(self, x: StepInputs) -> tuple[int, int]:
        """(B, T) of an input in which everything is there."""
        return check_inputs(x, self.input_dim, uses_place=self.uses_place, uses_move=self.uses_move)

    def _timeline(self, x: StepInputs, state: State | None) -> Timeline:
        """What is in memory and the new steps, and when each leaves."""
        resets = x.trial_start if self.config.reset_on == "trial" else x.trial_start | x.episode_start
        batch, steps = resets.shape
        now = torch.arange(steps, device=resets.device)
        since = torch.where(resets, now, -1).cummax(1).values
        length = torch.zeros_like(now[:1]).expand(batch) if state is None else state["length"]
        number = now - torch.where(since >= 0, since, -length[:, None])
        new: State = {"value": self.embed(x.embedding), "number": number}
        if x.place is not None and self.uses_place:
            new["place"] = x.place
        if x.move is not None and self.uses_move:
            new["move"] = x.move
        trial = resets.cumsum(1)
        if "nth" in self._numbers():
            new["nth"] = self._visits(new["place"], trial, None if state is None else state["visits"])
        past = 0 if state is None else int(state["end"].max())
        if state is not None:
            new = {name: torch.cat([state[name][:, :past], value], 1) for name, value in new.items()}
            resets = torch.cat([torch.zeros_like(resets[:, :1]).expand(-1, past), resets], 1)
            trial = torch.cat([torch.zeros_like(trial[:, :1]).expand(-1, past), trial], 1)
        places = new["place"] if self.uses_place else torch.zeros_like(new["number"])
        gone = eviction_times(
            places.masked_fill(new["number"] < 0, -1).cpu().numpy(),
            self._strategy() if state is None else state["strategy"].cpu().numpy(),
            self.config.capacity,
            n_places=self._places(),
            resets=resets.cpu().numpy(),
        )
        return Timeline(new, trial, torch.from_numpy(gone).to(resets.device), past)

    @staticmethod
    def _visits(place: Tensor, trial: Tensor, before: Tensor | None) -> Tensor:
        """How many steps at the same place came before each of T steps since its reset, int64 (B, T)."""
        keys = trial * (int(place.max()) + 1) + place
        came = ranks_within(keys, torch.ones_like(keys, dtype=torch.bool))
        return came if before is None else came + before.gather(1, place) * (trial == 0)

    def _after(self, line: Timeline, state: State) -> State:
        """The state after the last step."""
        total = line.gone.shape[1]
        held = line.gone == total
        number = line.steps["number"].masked_fill(~held, -1)
        after = state | {"length": line.steps["number"][:, -1] + 1}
        if "visits" in state:
            goes_on = line.trial == line.trial[:, -1:]
            goes_on[:, : line.past] = False
            visits = torch.zeros_like(state["visits"]).scatter_add(1, line.steps["place"], goes_on.long())
            after["visits"] = visits + state["visits"] * (line.trial[:, -1:] == 0)
        kept = {name: value.detach() for name, value in line.steps.items() if name != "number"}
        room = state["number"].shape[1]
        if total <= room and bool((state["end"] == line.past).all()):
            for name, value in kept.items():
                state[name][:, line.past : total] = value[:, line.past :]
            after["number"] = torch.nn.functional.pad(number, (0, room - total), value=-1)
            after["end"] = torch.full_like(state["end"], total)
            return after
        count = int(held.sum(1).max())
        room = room if count <= room else 2 * count
        order = (~held).long().argsort(dim=1, stable=True)[:, :count]
        for name, value in (kept | {"number": number}).items():
            index = order if value.ndim == 2 else order[..., None].expand(-1, -1, value.shape[-1])
            moved = value.gather(1, index)
            fresh = moved.new_full((len(moved), room, *moved.shape[2:]), -1 if name == "number" else 0)
            fresh[:, :count] = moved
            after[name] = fresh
        after["end"] = torch.full_like(state["end"], count)
        return after

    # ------------------------------------------------------------------ decisions

    def _decisions(self, line: Timeline, at: Tensor) -> Tensor:
        """Features of some of the T steps, float (B, S, D), so many at once that what they compute fits into memory.

        Args:
            line: The steps.
            at: int64, (B, S).
        """
        batch, total = line.gone.shape
        each = max(total, self._numbers_of_chunks())
        size = max(1, NUMBERS_AT_ONCE // (batch * each))

        def decide(at: Tensor, values: Tensor) -> Tensor:
            now = at + line.past
            begin = int((line.gone > now.amin()).int().amax(0).argmax())
            query, tokens, chunks, top_k = self._question(line, at, begin, int(now.max()) + 1, values)
            return self.reader(query, tokens, chunks, top_k, alone=True)

        if size >= at.shape[1]:
            return decide(at, line.steps["value"])
        return torch.cat([checkpointed(decide, part, line.steps["value"]) for part in at.split(size, dim=1)], 1)

    def _numbers_of_chunks(self) -> int:
        return 0

    def _question(
        self, line: Timeline, at: Tensor, begin: int, end: int, values: Tensor | None = None
    ) -> tuple[Tensor, Tokens, Chunks | None, int]:
        """What the reader is asked at some steps: queries, tokens, chunks and how many of these to read.

        Args:
            line: The steps.
            at: int64, (B, S); which of the T.
            begin: First of the N that one of the queries sees.
            end: One after the last.
            values: As in `line`, which it stands for.
        """
        whole = line.steps["value"] if values is None else values
        now = at + line.past
        unit = torch.arange(begin, end, device=at.device)
        seen = {name: value[:, begin:end] for name, value in line.steps.items()}
        held = (unit <= now[..., None]) & (now[..., None] < line.gone[:, None, begin:end])
        number_now = line.steps["number"].gather(1, now)
        table = self._times(int(line.steps["number"].max()) + 1)
        times = time_indices(self.config.time_index, seen["number"], number_now, held)
        query = whole.gather(1, now[..., None].expand(-1, -1, whole.shape[-1]))
        tokens = Tokens(whole[:, begin:end], (table,), (times,), held)
        if self.config.query_codes:
            query = query + table[query_time_indices(self.config.time_index, number_now)]
        query, tokens = self._placed(line, now, query, tokens, seen)
        return query, tokens, self._chunks(line, seen, begin, end), self._top_k()

    def _times(self, count: int) -> Tensor:
        """Codes of the first times, float (at least `count`, D), from a table that grows as steps come."""
        weight = self.embed.weight
        if count > len(self._table):
            self._table = sinusoid(torch.arange(2 * count).double(), self.config.dim)
        self._table = self._table.to(weight.device)
        return self._table[: max(count, CLOCK)].to(weight.dtype)

    def _placed(self, line: Timeline, now: Tensor, query: Tensor, tokens: Tokens, seen: State) -> tuple[Tensor, Tokens]:
        """Queries and tokens with what subclasses add: codes of places, tokens of moves."""
        return query, tokens

    def _chunks(self, line: Timeline, seen: State, begin: int, end: int) -> Chunks | None:
        """Which tokens belong together; None where all are read at once."""
        return None

    def _top_k(self) -> int:
        return 1
