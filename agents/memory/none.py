"""No memory: the features of a step depend on this step only."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, n_last_steps


@dataclass(frozen=True, kw_only=True)
class NoMemoryConfig:
    """No settings."""


class NoMemory(Memory):
    """Return the embedding as it is; the reference that every memory has to beat.

    Args:
        input_dim: Width of the embedding, and of the features.
        config: No settings.
    """

    def __init__(self, input_dim: int, config: NoMemoryConfig) -> None:
        super().__init__()
        self.config = config
        self.input_dim = self.output_dim = input_dim

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """The empty state; see `Memory.initial_state`."""
        return {}

    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """Return the embedding of the step, float (B, D)."""
        check_inputs(x, self.input_dim)
        return x.embedding[:, 0], state

    def forward(
        self, x: StepInputs, state: State | None = None, last: int | None = None
    ) -> tuple[Tensor, State | None]:
        """Return the embeddings of the last steps, float (B, `last` or T, D)."""
        _, steps = check_inputs(x, self.input_dim)
        return x.embedding[:, steps - n_last_steps(steps, last) :], state
