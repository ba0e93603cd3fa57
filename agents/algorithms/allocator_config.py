"""Settings of the allocator of `PartialUpdatePPO`."""

from __future__ import annotations

from dataclasses import dataclass

from memenvs.agents.algorithms.schedules import linear_schedule
from memenvs.checks import as_names, check_fields, check_int


@dataclass(frozen=True, kw_only=True)
class AllocatorConfig:
    """Settings of an allocator that learns from returns.

    Attributes:
        strategies: Names of two or more eviction strategies of the memory (`Memory.strategies`).
        hidden_dim: Width of the hidden layer of Q; >= 1.
        learning_rate: Learning rate of Q's Adam, > 0; one step is made for each finished trial (or episode, where the
            memory is emptied at each).
        epsilon_start: Probability of a random strategy at the start, 0 to 1.
        epsilon_end: Probability of a random strategy after `epsilon_steps`, 0 to 1.
        epsilon_steps: Environment steps of the linear change between the two; >= 1. None: all of `learn`. Exploration
            must last as long as the policy takes to use what only the better strategy keeps.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.
    """

    strategies: tuple[str, ...] = ("fifo", "lifo", "lvfo", "mvfo")
    hidden_dim: int = 64
    learning_rate: float = 5e-4
    epsilon_start: float = 1.0
    epsilon_end: float = 0.05
    epsilon_steps: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "strategies", as_names("strategies", self.strategies))
        check_fields(self)
        if len(self.strategies) < 2 or len(set(self.strategies)) < len(self.strategies):
            raise ValueError(f"strategies must be two or more different names, got {list(self.strategies)}")
        check_int("hidden_dim", self.hidden_dim, at_most=2**16)
        check_int("epsilon_steps", self.epsilon_steps, or_none=True)
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be > 0, got {self.learning_rate}")
        check_epsilons(self.epsilon_start, self.epsilon_end)

    def epsilon_at(self, step: int, total: int) -> float:
        """Return the probability of a random strategy after `step` of `total` environment steps."""
        return linear_schedule(self.epsilon_start, self.epsilon_end, 0, step, self.epsilon_steps or total)


def check_epsilons(start: float, end: float) -> None:
    """Raise a ValueError unless both ends of a schedule of exploration are probabilities."""
    for name, value in (("epsilon_start", start), ("epsilon_end", end)):
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"{name} must be 0 ... 1, got {value}")
