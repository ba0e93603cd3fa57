"""Recurrent memories: the whole past in one vector per layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from agents.memory.base import Memory, State, StepInputs, check_inputs, last_steps

ResetOn = Literal["trial", "episode"]
STAIR = 16
"""Steps that lengths of pieces are rounded up to, where nothing depends on it: fewer and larger blocks."""


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """Settings of a recurrent memory.

    Attributes:
        hidden_dim: Width of the hidden state, and of the features; >= 1.
        layers: Recurrent layers on top of each other; >= 1.
        reset_on: What empties the state: the start of a trial (the memory spans episodes) or of an episode.
    """

    hidden_dim: int = 256
    layers: int = 1
    reset_on: ResetOn = "trial"

    def __post_init__(self) -> None:
        if self.hidden_dim < 1:
            raise ValueError(f"hidden_dim must be at least 1, got {self.hidden_dim}")
        if self.layers < 1:
            raise ValueError(f"layers must be at least 1, got {self.layers}")
        if self.reset_on not in get_args(ResetOn):
            raise ValueError(
                f"unknown reset_on {self.reset_on!r}; choose from {', '.join(map(repr, get_args(ResetOn)))}"
            )


class RecurrentMemory(Memory):
    """An LSTM or GRU over the steps, emptied at each start.

    Sequences with starts inside are cut there, and the pieces run side by side: as many steps in a row as the longest piece has.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, and what empties the state.
    """

    parts: tuple[str, ...]
    """Names of the state's tensors, each (B, layers, hidden_dim)."""

    def __init__(self, input_dim: int, config: RecurrentConfig, network: nn.GRU | nn.LSTM) -> None:
        super().__init__()
        self.config = config
        self.input_dim = input_dim
        self.output_dim = config.hidden_dim
        self.network = network

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Zeros, (B, layers, hidden_dim) each."""
        weight = next(self.network.parameters())
        return {part: weight.new_zeros(batch_size, self.config.layers, self.config.hidden_dim) for part in self.parts}

    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """One step of every sequence; see `Memory.step`."""
        check_inputs(x, self.input_dim)
        kept = ~self._resets(x)[:, 0]
        features, state = self._run(x.embedding, {part: value * kept[:, None, None] for part, value in state.items()})
        return features[:, 0], state

    def forward(self, x: StepInputs, state: State | None = None, last: int | None = None) -> tuple[Tensor, State]:
        """T steps at once; see `Memory.forward`. The state after the last step is returned in any case."""
        batch, steps = check_inputs(x, self.input_dim)
        kept = last_steps(steps, last)
        resets = self._resets(x)
        if state is None:
            state = self.initial_state(batch)
        if resets[:, 1:].any():
            features, state = self._run_pieces(x.embedding, resets, state)
        else:
            features, state = self._run(
                x.embedding, {part: value * ~resets[:, :1, None] for part, value in state.items()}
            )
        return features[:, steps - kept :], state

    def _resets(self, x: StepInputs) -> Tensor:
        """Bool (B, T): the state is emptied before this step."""
        return x.trial_start if self.config.reset_on == "trial" else x.trial_start | x.episode_start

    def _run(self, data: Tensor | PackedSequence, state: State) -> tuple[Tensor, State]:
        """The network over equally long sequences, or over a packed batch."""
        hidden = [state[part].transpose(0, 1).contiguous() for part in self.parts]  # (layers, B, hidden_dim)
        out, new = self.network(data, tuple(hidden) if len(hidden) > 1 else hidden[0])
        new = new if isinstance(new, tuple) else (new,)
        features = out.data if isinstance(out, PackedSequence) else out
        return features, {part: value.transpose(0, 1) for part, value in zip(self.parts, new, strict=True)}

    def _run_pieces(self, embedding: Tensor, resets: Tensor, state: State) -> tuple[Tensor, State]:
        """The network over sequences that are cut at their resets.

        Args:
            embedding: float, (B, T, D_in).
            resets: bool, (B, T).
            state: Before the first step.

        Returns:
            float (B, T, D) features, and the state after the last step.
        """
        batch, steps = resets.shape
        first = resets.clone()
        first[:, 0] = True
        row, begin = first.nonzero(as_tuple=True)  # (P,) each, in reading order
        piece = first.flatten().cumsum(0) - 1  # (B*T,) the piece that a step belongs to
        length = torch.bincount(piece, minlength=len(row))
        if embedding.device.type == "cpu":
            return self._run_stairs(embedding, resets, state, row, begin, length)
        longest_first = torch.argsort(length, descending=True, stable=True)
        rank = torch.argsort(longest_first)  # (P,)
        since = (
            torch.arange(batch * steps, device=piece.device) - (row * steps + begin)[piece]
        )  # (B*T,) steps since the piece began
        packing = torch.argsort(since * len(row) + rank[piece])  # all first steps, then all second steps, ...
        batch_sizes = torch.bincount(since).cpu()
        packed = PackedSequence(embedding.flatten(0, 1).index_select(0, packing), batch_sizes)

        carried = (~resets[row, begin])[longest_first, None, None]
        state = {part: value[row[longest_first]] * carried for part, value in state.items()}
        features, state = self._run(packed, state)
        features = features.index_select(0, torch.argsort(packing)).view(batch, steps, -1)
        final = rank[piece.view(batch, steps)[:, -1]]
        return features, {part: value[final] for part, value in state.items()}

    def _run_stairs(
        self, embedding: Tensor, resets: Tensor, state: State, row: Tensor, begin: Tensor, length: Tensor
    ) -> tuple[Tensor, State]:
        """As `_run_pieces`, with the pieces side by side in blocks that get narrower as shorter pieces end.

        On a CPU a block runs in one compiled kernel, forwards and backwards, where a packed batch takes each step apart.

        Args:
            embedding: float, (B, T, D_in).
            resets: bool, (B, T).
            state: Before the first step.
            row: int64, (P,); row of each piece, in reading order.
            begin: int64, (P,); its first step.
            length: int64, (P,); its steps.
        """
        batch, steps = resets.shape
        is_last = begin + length == steps  # its state is wanted, so that it must end exactly; others may run on
        until = torch.where(is_last, length, (length + STAIR - 1) // STAIR * STAIR)
        until, longest_first = until.sort(descending=True, stable=True)
        row, begin, length, is_last = (value[longest_first] for value in (row, begin, length, is_last))
        ends = until.unique().tolist()
        places = []  # (n, block) step of each cell of a block, counted over the batch; beyond the end of a piece any step does
        for since, end in zip([0, *ends], ends, strict=False):
            n = int((until >= end).sum())
            places.append(((row * steps + begin)[:n, None] + torch.arange(since, end)).clamp(max=batch * steps - 1))
        data = embedding.flatten(0, 1).index_select(0, torch.cat([place.flatten() for place in places]))
        carried = (~resets[row, begin])[:, None, None]
        state = {part: value[row] * carried for part, value in state.items()}
        blocks, ended = [], []
        for x, place in zip(data.split([place.numel() for place in places]), places, strict=True):
            n = len(place)
            ended.append({part: value[n:] for part, value in state.items()})
            out, state = self._run(x.view(*place.shape, -1), {part: value[:n] for part, value in state.items()})
            blocks.append(out.flatten(0, 1))
        ended.append(state)
        kept = [  # which cells of a block are steps of their piece
            (length[: len(place), None] > torch.arange(since, end)).flatten()
            for place, since, end in zip(places, [0, *ends], ends, strict=False)
        ]
        cells = torch.cat(kept).nonzero()[:, 0]
        where = torch.empty(batch * steps, dtype=torch.int64)
        where[torch.cat([place.flatten() for place in places])[cells]] = cells
        features = torch.cat(blocks).index_select(0, where).view(batch, steps, -1)
        final = is_last.nonzero()[:, 0]
        final = final[row[final].argsort()]
        return features, {part: torch.cat([each[part] for each in reversed(ended)])[final] for part in self.parts}


class GRUMemory(RecurrentMemory):
    """A gated recurrent unit (Cho et al., 2014); see `RecurrentMemory`."""

    parts = ("hidden",)

    def __init__(self, input_dim: int, config: RecurrentConfig) -> None:
        super().__init__(input_dim, config, nn.GRU(input_dim, config.hidden_dim, config.layers, batch_first=True))


class LSTMMemory(RecurrentMemory):
    """A long short-term memory (Hochreiter and Schmidhuber, 1997); see `RecurrentMemory`."""

    parts = ("hidden", "cell")

    def __init__(self, input_dim: int, config: RecurrentConfig) -> None:
        super().__init__(input_dim, config, nn.LSTM(input_dim, config.hidden_dim, config.layers, batch_first=True))
