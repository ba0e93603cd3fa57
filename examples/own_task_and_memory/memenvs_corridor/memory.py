"""Traces: averages of the past, one for each speed of forgetting."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from memenvs.agents.memory import Memory, State, StepInputs
from memenvs.agents.memory.base import check_inputs, n_last_steps
from memenvs.agents.sizes import check_sizes

#: Steps after which a trace has forgotten about two thirds.
SPANS = (2.0, 8.0, 32.0)


@dataclass(frozen=True, kw_only=True)
class TraceConfig:
    """Settings of the memory.

    Attributes:
        dim: Width of a trace; >= 1.
    """

    dim: int = 64

    def __post_init__(self) -> None:
        check_sizes(self)


class TraceMemory(Memory):
    """Exponential averages of the embedding: m_t = d m_{t-1} + (1 - d) tanh(W x_t).

    Each span s has its own d = exp(-1 / s). The features are x_t and all averages.

    Args:
        input_dim: Width of the embedding.
        config: Sizes.
    """

    def __init__(self, input_dim: int, config: TraceConfig) -> None:
        super().__init__()
        self.config = config
        self.input_dim = input_dim
        self.output_dim = input_dim + len(SPANS) * config.dim
        self.encode = nn.Linear(input_dim, config.dim)
        self.register_buffer("decay", torch.exp(-1.0 / torch.tensor(SPANS))[:, None])  # (S, 1)

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Empty traces, (B, S, dim)."""
        return {"traces": self.encode.weight.new_zeros(batch_size, len(SPANS), self.config.dim)}

    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """Act: one step of every sequence."""
        features, state = self(x, state)
        return features[:, 0], state

    def forward(self, x: StepInputs, state: State | None = None, last: int | None = None) -> tuple[Tensor, State]:
        """Learn: T steps at once."""
        batch, steps = check_inputs(x, self.input_dim)
        first = steps - n_last_steps(steps, last)
        traces = (self.initial_state(batch) if state is None else state)["traces"]
        tokens = torch.tanh(self.encode(x.embedding))  # (B, T, dim)
        seen = []
        for t in range(steps):
            kept = traces * ~x.trial_start[:, t, None, None]  # a new trial starts with empty traces
            traces = self.decay * kept + (1.0 - self.decay) * tokens[:, t, None]
            seen.append(traces)
        past = torch.stack(seen[first:], 1).flatten(2)  # (B, last, S * dim)
        return torch.cat([x.embedding[:, first:], past], -1), {"traces": traces}
