"""A recurrent network that reads from the newest steps by attention: the Feedback Recurrent Memory Q-Network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, last_steps
from memenvs.agents.memory.kernels.frmqn_cpu import FRMQNSequence
from memenvs.agents.memory.recurrent import ResetOn, stretches
from memenvs.agents.memory.step_log import append, empty_log, view_log
from memenvs.checks import check_fields, check_int

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
        check_int("dim", self.dim, 2)
        if self.dim % 2:
            raise ValueError(f"dim must be even, got {self.dim}")
        check_int("capacity", self.capacity)
        check_int("bptt", self.bptt, or_none=True)


class FRMQNMemory(Memory):
    """An LSTM that hears what it read at the step before, and reads keys and values of the newest steps before the present one.

    h_t = LSTM(psi_t, [h_{t-1}; o_{t-1}]), o_t = softmax(h_t K') V without a scale, zero while there is nothing to read; features are
    W h_t + o_t, the second half of them rectified. psi = FC(embedding); keys and values are linear maps of it. It begins as an LSTM whose
    hidden state are the features: what is read is 0 (weights of values), W is 1.

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
        with torch.no_grad():
            self.memory.weight[config.dim :] = 0.0
            self.output.weight.copy_(torch.eye(config.dim))

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Zeros for the recurrent network, float (B, D) each, and an empty log of keys and values; see `Memory.initial_state`."""
        config, like = self.config, self.fusion.weight
        recurrent = {name: like.new_zeros(batch_size, config.dim) for name in RECURRENT}
        return recurrent | empty_log(batch_size, config.capacity, {"memory": (2 * config.dim,)}, like)

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """One step of every sequence, without gradient; see `Memory.step`."""
        features, after = self(x, state)
        return features[:, 0], after

    def forward(
        self, x: StepInputs, state: State | None = None, last: int | None = None
    ) -> tuple[Tensor, State | None]:
        """T steps, one after the other; see `Memory.forward`. Without a state None is returned for it."""
        batch, steps = check_inputs(x, self.input_dim)
        kept = last_steps(steps, last)
        config = self.config
        log = None if state is None else {name: value for name, value in state.items() if name not in RECURRENT}
        if state is None or log is None:
            recurrent = [x.embedding.new_zeros(batch, config.dim) for _ in RECURRENT]
            past, live = (
                x.embedding.new_zeros(batch, 0, 2 * config.dim),
                x.trial_start.new_zeros(batch, dtype=torch.int64),
            )
        else:
            recurrent = [state[name] for name in RECURRENT]
            seen, live = view_log(log, config.capacity)
            past = seen["memory"]
        before = past.shape[1]
        resets = x.trial_start if config.reset_on == "trial" else x.trial_start | x.episode_start
        now = torch.arange(steps, device=resets.device)
        began = torch.where(resets, now, -1).cummax(1).values  # -1: before the first of these steps
        first = before + torch.maximum(torch.where(began >= 0, began, -live[:, None]), now - config.capacity)
        psi = self.fusion(x.embedding)
        memory = self.memory(psi)
        read_from = past if steps == 1 else torch.cat([past.to(memory.dtype), memory], 1)
        keys, values = read_from.chunk(2, -1)
        if steps > 1 and all(each.is_cpu and each.dtype == torch.float32 for each in (psi, memory)):
            heard, cell = FRMQNSequence.apply(
                psi,
                keys,
                values,
                torch.cat([recurrent[0], recurrent[2]], 1),
                recurrent[1],
                first,
                resets,
                frozenset(begin for begin, _ in stretches(steps, config.bptt) if begin > 0),
                *self.network.parameters(),
            )
            hidden, reads = heard.chunk(2, -1)
        else:
            hidden, reads, cell = self._step_by_step(psi, keys, values, recurrent, first, resets, before)
        g = self.output(hidden[:, -kept:]) + reads[:, -kept:]
        linear, rectified = g.chunk(2, -1)
        features = torch.cat([linear, rectified.relu()], -1)
        if log is None:
            return features, None
        log = append(log, {"memory": memory}, resets, config.capacity)
        return features, log | dict(zip(RECURRENT, (hidden[:, -1], cell, reads[:, -1]), strict=True))

    def _step_by_step(
        self,
        psi: Tensor,
        keys: Tensor,
        values: Tensor,
        recurrent: list[Tensor],
        first: Tensor,
        resets: Tensor,
        before: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Hidden states and reads, float (B, T, D), and the cell state after the last step; args as in `frmqn_cpu.FRMQNSequence`, slots of the past."""
        steps = psi.shape[1]
        starts, lows = resets.any(0).tolist(), first.amin(0).tolist()
        hidden, reads = [], []
        bank = _Bank(keys.detach(), values.detach(), steps)
        token = _Token.apply(keys, values, bank)
        for begin, end in stretches(steps, self.config.bptt):
            if begin > 0:
                recurrent = [value.detach() for value in recurrent]
            for t in range(begin, end):
                if starts[t]:
                    recurrent = [value * ~resets[:, t, None] for value in recurrent]
                h, cell, read = recurrent
                h, cell = self.network(torch.cat([psi[:, t], read], -1), (h, cell))
                read = _Read.apply(h, token, first[:, t], slice(lows[t], before + t), t, bank)
                recurrent = [h, cell, read]
                hidden.append(h)
                reads.append(read)
        return torch.stack(hidden, 1), torch.stack(reads, 1), recurrent[1]


class _Bank:
    """Keys and values of all steps, and what the reads of T steps give back to them.

    Were each read to give its gradient of all keys and values, that would be T times as much as there is. It leaves its part
    here instead, as one row of four matrices, and two products give the sums when all reads are through.
    """

    def __init__(self, keys: Tensor, values: Tensor, steps: int) -> None:
        self.keys, self.values, self.steps = keys, values, steps
        self.rows: list[Tensor] = []  # of scores, float (B, T, M); hidden states; weights, (B, T, M); reads

    def give_back(self, t: int, run: slice, *rows: Tensor) -> None:
        """Leaves gradients of scores (B, L), hidden state (B, D), weights (B, L) and the gradient of the read (B, D) of step t."""
        if not self.rows:
            shapes = [(self.steps, self.keys.shape[1]), (self.steps, self.keys.shape[2])] * 2
            self.rows = [self.keys.new_zeros(len(self.keys), *shape) for shape in shapes]
        for store, row, part in zip(self.rows, rows, (run, slice(None)) * 2, strict=True):
            store[:, t, part] = row


class _Token(torch.autograd.Function):
    """A number that every read takes in, so that its gradient is asked for when all reads have left theirs in the bank."""

    @staticmethod
    def forward(ctx: Any, keys: Tensor, values: Tensor, bank: _Bank) -> Tensor:
        """Zero, ()."""
        ctx.bank = bank
        return keys.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        """Gradients of keys and values, float (B, M, D)."""
        scores, hidden, weights, reads = ctx.bank.rows
        ctx.bank.rows = []  # another backward pass begins anew
        return scores.transpose(1, 2) @ hidden, weights.transpose(1, 2) @ reads, None


class _Read(torch.autograd.Function):
    """What a step reads: softmax(h K') V over a run of the bank, zero where a row sees nothing of it."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, token: Tensor, first: Tensor, run: slice, t: int, bank: _Bank) -> Tensor:
        """Reads.

        Args:
            ctx: Of autograd.
            h: float, (B, D).
            token: From `_Token`.
            first: int64, (B,); the first slot that a row sees; the end of the run where it sees none.
            run: Slots that some row sees.
            t: Which step it is.
            bank: Keys and values.

        Returns:
            float, (B, D).
        """
        h = h.to(bank.keys.dtype)
        scores = (bank.keys[:, run] @ h[..., None])[..., 0]
        if bool((first > run.start).any()):
            outside = torch.arange(run.start, run.stop, device=h.device) < first[:, None]
            weights = scores.masked_fill(outside, -torch.inf).softmax(-1).masked_fill(outside, 0.0)
        else:
            weights = scores.softmax(-1)
        ctx.save_for_backward(h, weights)
        ctx.run, ctx.t, ctx.bank = run, t, bank
        return (weights[:, None] @ bank.values[:, run])[:, 0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Gradient of h; those of keys and values go to the bank."""
        (h, weights), run, bank = ctx.saved_tensors, ctx.run, ctx.bank
        of_weights = (bank.values[:, run] @ gradient[..., None])[..., 0]
        of_scores = weights * (of_weights - (weights * of_weights).sum(-1, keepdim=True))
        bank.give_back(ctx.t, run, of_scores, h, weights, gradient)
        return (of_scores[:, None] @ bank.keys[:, run])[:, 0], gradient.new_zeros(()), None, None, None, None
