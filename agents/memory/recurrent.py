"""Recurrent memories: the whole past in one vector per layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, last_steps
from memenvs.checks import check_fields, check_int

ResetOn = Literal["trial", "episode"]
SHUT = 1e4
"""Input to a gate that closes it (negative) or opens it (positive) for good: the sigmoid is then 0 or 1 in any precision."""


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """Settings of a recurrent memory.

    Attributes:
        hidden_dim: Width of the hidden state, and of the features; >= 1.
        layers: Recurrent layers on top of each other; >= 1.
        reset_on: What empties the state: the start of a trial (the memory spans episodes) or of an episode.
        bptt: Steps after which gradients stop, counted from the first step that is learned from; >= 1; None never.
    """

    hidden_dim: int = 256
    layers: int = 1
    reset_on: ResetOn = "trial"
    bptt: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("hidden_dim", "layers"):
            check_int(name, getattr(self, name))
        check_int("bptt", self.bptt, or_none=True)


def stretches(steps: int, length: int | None) -> list[tuple[int, int]]:
    """Begin and end of each stretch of `length` steps; all in one if that is None."""
    length = length or steps
    return [(begin, min(begin + length, steps)) for begin in range(0, steps, length)]


class RecurrentMemory(Memory):
    """An LSTM or GRU over the steps, emptied at each start.

    Sequences with starts inside are cut there, and the pieces run as one packed batch: as many steps in a row as the longest piece has,
    and no step for padding.

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
        if state is None:
            state = self.initial_state(batch)
        parts = []
        for begin, end in stretches(steps, self.config.bptt):
            if begin > 0:
                state = {part: value.detach() for part, value in state.items()}
            features, state = self._run_stretch(x.steps(begin, end), state)
            parts.append(features)
        return torch.cat(parts, 1)[:, steps - kept :], state

    def _run_stretch(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """Steps through all of which gradients flow; features of all, and the state after them."""
        resets = self._resets(x)
        if resets[:, 1:].any():
            return self._run_pieces(x.embedding, resets, state)
        return self._run(x.embedding, {part: value * ~resets[:, :1, None] for part, value in state.items()})

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


class GRUMemory(RecurrentMemory):
    """A gated recurrent unit (Cho et al., 2014); see `RecurrentMemory`."""

    parts = ("hidden",)

    def __init__(self, input_dim: int, config: RecurrentConfig) -> None:
        super().__init__(input_dim, config, nn.GRU(input_dim, config.hidden_dim, config.layers, batch_first=True))


class LSTMMemory(RecurrentMemory):
    """A long short-term memory (Hochreiter and Schmidhuber, 1997); see `RecurrentMemory`.

    On a CPU sequences are not cut, because only equally long ones run in one compiled kernel: each start is preceded by a step that closes
    the gates of input and memory, which leaves exactly nothing of what was before, neither forwards nor for gradients. Steps that keep
    the memory as it is fill up the sequences with fewer starts. There it runs in the precision of its weights also under autocast: not every
    CPU has this kernel in bfloat16.
    """

    parts = ("hidden", "cell")
    network: nn.LSTM

    def __init__(self, input_dim: int, config: RecurrentConfig) -> None:
        super().__init__(input_dim, config, nn.LSTM(input_dim, config.hidden_dim, config.layers, batch_first=True))

    def _run_stretch(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """See `RecurrentMemory._run_stretch`."""
        if x.embedding.device.type != "cpu":
            return super()._run_stretch(x, state)
        with torch.autocast("cpu", enabled=False):
            return super()._run_stretch(replace(x, embedding=x.embedding.to(next(self.parameters()).dtype)), state)

    def _run_pieces(self, embedding: Tensor, resets: Tensor, state: State) -> tuple[Tensor, State]:
        """The network over sequences with starts inside; see `RecurrentMemory._run_pieces`."""
        if embedding.device.type != "cpu":
            return super()._run_pieces(embedding, resets, state)
        batch, steps = resets.shape
        later = torch.cat([torch.zeros_like(resets[:, :1]), resets[:, 1:]], 1)  # those that need a step of their own
        before = later.cumsum(1)
        length = steps + int(before[:, -1].max())
        place = torch.arange(batch)[:, None] * length + torch.arange(steps) + before  # (B, T) of B * length
        forget, keep = torch.zeros(batch * length, 1), torch.ones(batch * length, 1)
        keep[place] = 0.0
        forget[place[later] - 1], keep[place[later] - 1] = 1.0, 0.0
        flags = torch.cat([forget, keep], 1).to(embedding).view(batch, length, 2)
        gates = flags.new_tensor([[-SHUT, -SHUT], [-SHUT, SHUT], [0.0, 0.0], [0.0, 0.0]])  # input, memory, new, output
        gates = gates.repeat_interleave(self.config.hidden_dim, 0)
        width = embedding.shape[-1]
        h = embedding.new_zeros(batch * length, width).index_copy(0, place.flatten(), embedding.flatten(0, 1))
        h = h.view(batch, length, width)
        after: dict[str, list[Tensor]] = {part: [] for part in self.parts}
        for layer in range(self.config.layers):
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            weight, *others = (getattr(self.network, f"{name}_l{layer}") for name in names)
            initial = [(state[part][:, layer] * ~resets[:, :1])[None] for part in self.parts]
            h, _, cell = torch.lstm(
                torch.cat([h, flags], -1), initial, [torch.cat([weight, gates], 1), *others],
                True, 1, 0.0, self.training, False, True,
            )  # fmt: skip
            features = h.flatten(0, 1)[place]  # (B, T, hidden_dim)
            after["hidden"].append(features[:, -1])
            after["cell"].append(cell[0])
        return features, {part: torch.stack(values, 1) for part, values in after.items()}
