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

    Idea:
        The features of a step are its embedding, and nothing of earlier steps is kept. The gap between this agent and
        one with a memory is what remembering is worth in a task.

    Equations:
        .. math::

            f_t = x_t

    State:
        Empty.

    Cost:
        None, in acting and in learning.

    When to use:
        As a baseline in every study. In tasks where the present observation shows all that matters, it is also the
        best agent, since it has the least to learn.

    When not to use:
        Where the best action depends on earlier observations.

    Difference from the paper:
        There is no paper. The baseline `reactive` of the Scene Memory Transformer is this memory with one more layer
        in the heads, in place of the projection that the scene memories make of an embedding.

    Args:
        input_dim: Width of the embedding, and of the features.
        config: No settings.

    Source:
        This package.
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
