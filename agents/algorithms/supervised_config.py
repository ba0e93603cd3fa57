"""Settings of `SupervisedLearner`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memenvs.agents.algorithms.schedules import linear_schedule
from memenvs.checks import check_fields


@dataclass(frozen=True, kw_only=True)
class SupervisedConfig:
    """Settings of `SupervisedLearner`; the defaults are SAT's, without its decay.

    Attributes:
        batch_size: Episodes in a batch, of all processes together; >= 1.
        learning_rate: Learning rate of Adam, > 0.
        final_learning_rate: Learning rate at the end of the run, reached linearly; >= 0. None for no decay.
        warmup_steps: Batches over which the rate first rises linearly; >= 0.
        max_grad_norm: Largest norm of the gradient, > 0; larger gradients are scaled down.
        precision: Precision of the model in learning; "bfloat16" is torch's autocast. Weights, optimizer, loss and
            evaluation are float32 in any case.
        validation_episodes: Episodes, the same each time, whose accuracy is logged with every checkpoint; >= 1.
        checkpoint_steps: Batches between two checkpoints; >= 1.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.

    Source:
        SAT's release: batches of 32, Adam with 2e-4, the norm of the gradient clipped at 5.
    """

    batch_size: int = 32
    learning_rate: float = 2e-4
    final_learning_rate: float | None = None
    warmup_steps: int = 0
    max_grad_norm: float = 5.0
    precision: Literal["float32", "bfloat16"] = "float32"
    validation_episodes: int = 1000
    checkpoint_steps: int = 500

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("batch_size", "validation_episodes", "checkpoint_steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.warmup_steps < 0:
            raise ValueError(f"warmup_steps must be at least 0, got {self.warmup_steps}")
        for name in ("learning_rate", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be > 0, got {getattr(self, name)}")
        if self.final_learning_rate is not None and self.final_learning_rate < 0:
            raise ValueError(f"final_learning_rate must be >= 0 or None, got {self.final_learning_rate}")

    def learning_rate_at(self, step: int, total: int) -> float:
        """Learning rate of batch number `step` (from 0) of `total` batches."""
        return linear_schedule(self.learning_rate, self.final_learning_rate, self.warmup_steps, step, total)
