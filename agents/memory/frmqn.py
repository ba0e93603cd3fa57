"""Feedback Recurrent Memory Q-Network (FRMQN): an LSTM that attends to the newest steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from memenvs.agents.memory.attention import masked_softmax
from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, n_last_steps, step_ranges
from memenvs.agents.memory.clock import last_reset
from memenvs.agents.memory.step_log import append, empty_log, view_log
from memenvs.agents.sizes import check_sizes

RECURRENT = ("hidden", "cell", "read")
"""Entries of the state that the LSTM passes from step to step, float (B, D) each; `read` is the read vector."""


@dataclass(frozen=True, kw_only=True)
class FRMQNConfig:
    """Settings of FRMQN.

    Attributes:
        dim: Width D of keys, values, hidden state and features; even, >= 2.
        capacity: Newest steps before the current one that are read; >= 1.
        bptt: Length of truncated backpropagation through time, steps; >= 1; None does not truncate. Segments are
            counted from the first step of each `forward`.
    """

    dim: int = 128
    capacity: int = 500
    bptt: int | None = None

    def __post_init__(self) -> None:
        check_sizes(self)
        if self.dim % 2:
            raise ValueError(f"dim must be even, got {self.dim}")


class _Bank(NamedTuple):
    """Keys and values of M slots, and the slots that each of T steps reads.

    Slots hold the past steps, then the T steps. With T = 1 they hold the past steps only: no step reads itself.

    Attributes:
        keys: float, (B, M, D).
        values: float, (B, M, D).
        past: Number of slots of past steps.
        first: int64, (B, T); first slot that a step reads; it reads up to the slot before its own.
    """

    keys: Tensor
    values: Tensor
    past: int
    first: Tensor


class FRMQNMemory(Memory):
    r"""LSTM that attends to earlier steps, and whose input includes the last read vector.

    Idea:
        An LSTM controls a memory of the newest M steps. At each step its hidden state is the query, and what it reads
        is part of its input at the next step. So what was read can decide what to read next.

    Equations:
        .. math::

            \psi_t &= W_\psi x_t, \quad k_t = W_k \psi_t, \quad v_t = W_v \psi_t \\
            h_t &= \operatorname{LSTM}([\psi_t;\, o_{t-1}],\, h_{t-1}) \\
            o_t &= \operatorname{softmax}(h_t K^\top) V \\
            g_t &= W h_t + o_t

        K and V are keys and values of the M steps before t; o is 0 if there are none. Attention has no scale. The
        features are g, with a ReLU on the second half.

    State:
        h, the cell and o of the LSTM, 3 D numbers, and a log with slots for twice the capacity M, in each of which a
        key and a value have 2 D numbers.

    Cost:
        A decision with M steps takes about I D + 15 D^2 + 2 M D multiply-adds, with I inputs. Learning goes step by
        step, since each query needs the read vector before it.

    When to use:
        As a baseline between recurrence and attention, and where the query must follow from what was read before.

    When not to use:
        Where speed of learning matters: steps cannot be learned in parallel. Poses are not used; the scene memories
        use them.

    Difference from the paper:
        It is initialised as a plain LSTM, with W_v = 0 and W the identity, with which it learned more in Coverage. The
        sizes are those of Fang et al., 2019.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, capacity, truncation of gradients.

    Source:
        Oh et al., "Control of Memory, Active Perception, and Action in Minecraft", ICML 2016 (arXiv:1605.09128),
        section 4; as a baseline in Fang et al., "Scene Memory Transformer for Embodied Agents in Long-Horizon Tasks",
        CVPR 2019 (arXiv:1903.03878).
    """

    def __init__(self, input_dim: int, config: FRMQNConfig) -> None:
        super().__init__()
        self.config = config
        self.input_dim, self.output_dim = input_dim, config.dim
        self.fusion = nn.Linear(input_dim, config.dim)
        self.memory = nn.Linear(config.dim, 2 * config.dim, bias=False)  # keys, then values
        self.network = nn.LSTMCell(2 * config.dim, config.dim)
        self.output = nn.Linear(config.dim, config.dim, bias=False)
        with torch.no_grad():  # a plain LSTM
            self.memory.weight[config.dim :] = 0.0
            self.output.weight.copy_(torch.eye(config.dim))

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Return zeros for the LSTM and an empty log; see `Memory.initial_state`.

        `hidden`, `cell`, `read`, float (B, D) each, and keys and values of earlier steps.
        """
        config, like = self.config, self.fusion.weight
        recurrent = {name: like.new_zeros(batch_size, config.dim) for name in RECURRENT}
        return recurrent | empty_log(batch_size, config.capacity, {"memory": (2 * config.dim,)}, like)

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """Advance every sequence by one step, without gradient; see `Memory.step`."""
        features, after = self(x, state)
        return features[:, 0], after

    def forward(
        self, x: StepInputs, state: State | None = None, last: int | None = None
    ) -> tuple[Tensor, State | None]:
        """Process T steps in turn, to learn; see `Memory.forward`.

        Without a state, the returned state is None.
        """
        batch, steps = check_inputs(x, self.input_dim)
        n_last = n_last_steps(steps, last)
        config = self.config
        if state is None:
            log = None
            recurrent = [x.embedding.new_zeros(batch, config.dim) for _ in RECURRENT]
            past = x.embedding.new_zeros(batch, 0, 2 * config.dim)
            n_valid = x.trial_start.new_zeros(batch, dtype=torch.int64)
        else:
            log = {name: value for name, value in state.items() if name not in RECURRENT}
            recurrent = [state[name] for name in RECURRENT]
            view, n_valid = view_log(log, config.capacity)
            past = view["memory"]  # (B, P, 2 D)
        resets = x.trial_start
        now = torch.arange(steps, device=resets.device)
        # (B, T): since the last reset, and at most `capacity` steps back
        first = past.shape[1] + torch.maximum(last_reset(resets, n_valid), now - config.capacity)
        psi = self.fusion(x.embedding)  # (B, T, D)
        memory = self.memory(psi)  # (B, T, 2 D)
        # No step reads itself, so a single step needs the past only.
        keys, values = (past if steps == 1 else torch.cat([past.to(memory.dtype), memory], 1)).chunk(2, -1)
        bank = _Bank(keys, values, past.shape[1], first)
        hidden, reads, cell = self._run_steps(psi, bank, recurrent, resets)
        linear, rectified = (self.output(hidden[:, -n_last:]) + reads[:, -n_last:]).chunk(2, -1)
        features = torch.cat([linear, rectified.relu()], -1)
        if log is None:
            return features, None
        log = append(log, {"memory": memory}, resets, config.capacity)
        return features, log | dict(zip(RECURRENT, (hidden[:, -1], cell, reads[:, -1]), strict=True))

    def _run_steps(
        self, psi: Tensor, bank: _Bank, recurrent: list[Tensor], resets: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run the recurrent network step by step.

        Args:
            psi: float, (B, T, D).
            bank: Keys, values, and the slots that each step reads.
            recurrent: Hidden state, cell state and read vector before the first step, float (B, D) each.
            resets: bool, (B, T).

        Returns:
            Hidden states and read vectors, float (B, T, D), and the cell state after the last step, float (B, D).
        """
        steps = psi.shape[1]
        has_reset = resets.any(0).tolist()
        lowest = bank.first.amin(0).tolist()
        hiddens, reads = [], []
        for begin, end in step_ranges(steps, self.config.bptt):
            if begin > 0:
                recurrent = [value.detach() for value in recurrent]
            for t in range(begin, end):
                if has_reset[t]:
                    recurrent = [value * ~resets[:, t, None] for value in recurrent]
                hidden, cell, read = recurrent
                hidden, cell = self.network(torch.cat([psi[:, t], read], -1), (hidden, cell))
                read = self._read(hidden, bank, bank.first[:, t], lowest[t], bank.past + t)
                recurrent = [hidden, cell, read]
                hiddens.append(hidden)
                reads.append(read)
        return torch.stack(hiddens, 1), torch.stack(reads, 1), recurrent[1]

    @staticmethod
    def _read(hidden: Tensor, bank: _Bank, first: Tensor, low: int, end: int) -> Tensor:
        """Compute the read vector softmax(h K^T) V, float (B, D).

        Args:
            hidden: float, (B, D); h.
            bank: Keys and values.
            first: int64, (B,); first slot that each row reads.
            low: Smallest of `first`.
            end: Slot after the last one that is read.
        """
        query = hidden.to(bank.keys.dtype)
        scores = (bank.keys[:, low:end] @ query[..., None])[..., 0]  # (B, slots)
        mask = None
        if bool((first > low).any()):
            mask = torch.arange(low, end, device=first.device) >= first[:, None]
        weights = masked_softmax(scores, mask)
        return (weights[:, None] @ bank.values[:, low:end])[:, 0]  # (B, D)
