"""Settings of an allocator that learns beside a network that answers."""

from __future__ import annotations

from dataclasses import dataclass

from memenvs.agents.algorithms.allocator_config import check_epsilons
from memenvs.agents.algorithms.schedules import linear_schedule
from memenvs.checks import check_fields, check_int


@dataclass(frozen=True, kw_only=True)
class SupervisedAllocation:
    """Settings of an allocator that learns from the losses of answers.

    Attributes:
        epsilon_start: Probability of a random strategy at the start, 0 to 1.
        epsilon_end: Probability of a random strategy after `epsilon_steps`, 0 to 1.
        epsilon_steps: Batches of the linear change between the two; >= 1.
        loss_weight: Weight of the allocator's loss beside that of the answers; > 0.
        rate: Factor on the learning rate for the allocator, > 0.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.
    """

    epsilon_start: float = 1.0
    epsilon_end: float = 0.2
    epsilon_steps: int = 200_000
    loss_weight: float = 0.1
    rate: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.rate > 0:
            raise ValueError(f"rate must be > 0, got {self.rate}")
        check_int("epsilon_steps", self.epsilon_steps)
        check_epsilons(self.epsilon_start, self.epsilon_end)
        if not self.loss_weight > 0:
            raise ValueError(f"loss_weight must be above 0, got {self.loss_weight}")

    def epsilon_at(self, step: int) -> float:
        """Return the probability of a random strategy after `step` batches."""
        return linear_schedule(self.epsilon_start, self.epsilon_end, 0, step, self.epsilon_steps)
