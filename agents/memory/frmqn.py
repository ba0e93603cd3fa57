"""A recurrent network that reads from the newest steps by attention: the Feedback Recurrent Memory Q-Network."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from agents.memory.base import Memory, State, StepInputs, check_inputs, last_steps
from agents.memory.log import append, empty_log, view_log
from agents.memory.recurrent import ResetOn, stretches
from memenvs.checks import check_fields, check_whole

RECURRENT = ("hidden", "cell", "read")


@dataclass(frozen=True, kw_only=True)
class FRMQNConfig:
    """Settings of FRMQN.

    Attributes:
        dim: Width of keys, values, hidden state and features; even, >= 2.
        capacity: How many of the newest steps before the present one are read; >= 1.
        reset_on: What empties the memory: the start of a trial or of an episode.
        bptt: Steps after which gradients through the recurrent network stop, counted from the first step that is learned from; >= 1; None never.
    """

    dim: int = 128
    capacity: int = 500
    reset_on: ResetOn = "trial"
    bptt: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        check_whole("dim", self.dim, 2)
        if self.dim % 2:
            raise ValueError(f"dim must be even, got {self.dim}")
        check_whole("capacity", self.capacity)
        check_whole("bptt", self.bptt, or_none=True)


class FRMQNMemory(Memory):
    """An LSTM that hears what it read at the step before, and reads keys and values of the newest steps before the present one.

    h_t = LSTM(psi_t, [h_{t-1}; o_{t-1}]), o_t = softmax(h_t K') V without a scale, zero while there is nothing to read; features are
    W h_t + o_t, the second half of them rectified. psi = FC(embedding); keys and values are linear maps of it.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, reach, how far gradients flow.

    Source:
        Oh et al., "Control of Memory, Active Perception, and Action in Minecraft", 2016, section 4, with the sizes of Fang et al., 2019.
    """

    def __init__(self, input_dim: int, config: FRMQNConfig) -> None:
        super().__init__()
        self.config = config
        self.input_dim, self.output_dim = input_dim, config.dim
        self.fusion = nn.Linear(input_dim, config.dim)
        self.memory = nn.Linear(config.dim, 2 * config.dim, bias=False)  # keys, then values
        self.network = nn.LSTMCell(2 * config.dim, config.dim)
        self.output = nn.Linear(config.dim, config.dim, bias=False)

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Zeros for the recurrent network, float (B, D) each, and an empty log of keys and values; see `Memory.initial_state`."""
        config, like = self.config, self.fusion.weight
        recurrent = {name: like.new_zeros(batch_size, config.dim) for name in RECURRENT}
        return recurrent | empty_log(batch_size, config.capacity, {"memory": (2 * config.dim,)}, like)

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """One step of every sequence, without gradient; see `Memory.step`."""
        features, state = self(x, state)
        return features[:, 0], state

    def forward(self, x: StepInputs, state: State | None = None, last: int | None = None) -> tuple[Tensor, State]:
        """T steps, one after the other; see `Memory.forward`. The state after the last step is returned in any case."""
        batch, steps = check_inputs(x, self.input_dim)
        kept = last_steps(steps, last)
        config = self.config
        state = dict(self.initial_state(batch) if state is None else state)
        recurrent = [state.pop(name) for name in RECURRENT]
        past, live = view_log(state, config.capacity)
        before = past["memory"].shape[1]
        resets = x.trial_start if config.reset_on == "trial" else x.trial_start | x.episode_start
        now = torch.arange(steps, device=resets.device)
        began = torch.where(resets, now, -1).cummax(1).values  # -1: before the first of these steps
        first = before + torch.maximum(torch.where(began >= 0, began, -live[:, None]), now - config.capacity)
        psi = self.fusion(x.embedding)
        memory = self.memory(psi)
        read_from = past["memory"] if steps == 1 else torch.cat([past["memory"].to(memory.dtype), memory], 1)
        keys, values = read_from.chunk(2, -1)
        starts, lows = resets.any(0).tolist(), first.amin(0).tolist()
        hidden, reads = [], []
        for begin, end in stretches(steps, config.bptt):
            if begin > 0:
                recurrent = [value.detach() for value in recurrent]
            for t in range(begin, end):
                if starts[t]:
                    recurrent = [value * ~resets[:, t, None] for value in recurrent]
                h, cell, read = recurrent
                h, cell = self.network(torch.cat([psi[:, t], read], -1), (h, cell))
                run = slice(lows[t], before + t)
                read = self._read(h, keys[:, run], values[:, run], first[:, t] - lows[t])
                recurrent = [h, cell, read]
                hidden.append(h)
                reads.append(read)
        g = self.output(torch.stack(hidden[-kept:], 1)) + torch.stack(reads[-kept:], 1)
        linear, rectified = g.chunk(2, -1)
        features = torch.cat([linear, rectified.relu()], -1)
        log = append(state, {"memory": memory}, resets, config.capacity)
        return features, log | dict(zip(RECURRENT, recurrent, strict=True))

    @staticmethod
    def _read(h: Tensor, keys: Tensor, values: Tensor, first: Tensor) -> Tensor:
        """What a step reads, float (B, D).

        Args:
            h: float, (B, D).
            keys: float, (B, L, D).
            values: float, (B, L, D).
            first: int64, (B,); the first that a row sees; L where it sees none.
        """
        if keys.shape[1] == 0:
            return torch.zeros_like(h)
        scores = (keys @ h[..., None])[..., 0]
        if bool(first.any()):
            outside = torch.arange(keys.shape[1], device=h.device) < first[:, None]
            scores = scores.masked_fill(outside, -torch.inf)
            nothing = first[:, None] == keys.shape[1]
            return ((scores.masked_fill(nothing, 0.0).softmax(-1) * ~nothing)[:, None] @ values)[:, 0]
        return (scores.softmax(-1)[:, None] @ values)[:, 0]
