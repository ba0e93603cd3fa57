"""Settings of partial-update PPO."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from memenvs.checks import check_fields


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """Settings of partial-update PPO; the defaults are ReLIC's but for sizes.

    Attributes:
        learning_rate: Step size of Adam, > 0; the largest one where it changes.
        warmup_steps: Environment steps over which it rises from a thousandth of `learning_rate`; >= 0.
        final_learning_rate: Where a cosine takes it by the end of `learn`, > 0; None keeps it constant.
        n_steps: Steps of a rollout in each environment, T; >= 2.
        n_updates: Updates in a rollout, K; divides n_steps. K - 1 partial ones and a full one; 1 is ordinary PPO.
        n_epochs: Passes over the data in each update; >= 1.
        batch_size: Sequences (environments) in an optimiser step; >= 1.
        micro_batch_tokens: Steps that go through the network at once, but for a single longer sequence; gradients of smaller pieces are
            added up; >= 1.
        gamma: Discount, in [0, 1].
        gae_lambda: Lambda of the advantages, in [0, 1].
        clip_range: Clip of the probability ratio, > 0.
        clip_range_vf: Clip of the value's change, > 0; None for none.
        normalize_advantage: Whether the advantages of an update get mean 0 and standard deviation 1.
        ent_coef: Weight of the entropy.
        vf_coef: Weight of the squared error of the value.
        max_grad_norm: Clip of the gradient's norm, > 0.
        prefix_grad: How a partial update treats the steps before its segment: "full" lets gradients through all of them, "detach" takes
            them from the memory's state as it was when the segment began, "window" recomputes them but lets gradients through
            the last `prefix_window` only.
        prefix_window: Steps, >= 1; for "window" only.
        full_update: Whether the last update of a rollout learns from all of it; without, from its segment, as the others.
        shuffle_episodes: Whether completed episodes are put into a random order after each partial update.
        refresh_log_probs: Whether the log probabilities that the full update compares with are those of the weights and the order at the
            last refresh, instead of those recorded when acting.
        bootstrap_truncated: Whether an episode cut by the clock is credited with the value of what it did not see.
        credit_across_episodes: Whether advantages flow from an episode back into those before it in its trial (RL2). Needs episodes
            in the order in which they were played, and no `bootstrap_truncated`.
        precision: In which features and memory multiply matrices where the policy learns and its memory is refilled ("bfloat16" is
            torch's autocast). Weights, optimiser, heads, losses and acting are float32 in any case.
        reset_each_rollout: Whether a rollout begins with a reset to a new trial. None: if the environment has trials, if n_updates > 1, or
            if the memory keeps every step.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.
    """

    learning_rate: float = 2e-4
    warmup_steps: int = 0
    final_learning_rate: float | None = None
    n_steps: int = 512
    n_updates: int = 4
    n_epochs: int = 4
    batch_size: int = 32
    micro_batch_tokens: int = 32_768
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    clip_range_vf: float | None = 0.2
    normalize_advantage: bool = False
    ent_coef: float = 0.01
    vf_coef: float = 0.25
    max_grad_norm: float = 0.2
    prefix_grad: Literal["full", "detach", "window"] = "full"
    prefix_window: int = 256
    full_update: bool = True
    shuffle_episodes: bool = True
    refresh_log_probs: bool = False
    bootstrap_truncated: bool = False
    credit_across_episodes: bool = False
    precision: Literal["float32", "bfloat16"] = "float32"
    reset_each_rollout: bool | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("n_updates", "n_epochs", "batch_size", "micro_batch_tokens", "prefix_window"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.n_steps < 2:
            raise ValueError(f"n_steps must be at least 2, got {self.n_steps}")
        if self.n_steps % self.n_updates:
            raise ValueError(f"n_updates must divide n_steps ({self.n_steps}), got {self.n_updates}")
        for name in ("gamma", "gae_lambda"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        for name in ("clip_range", "clip_range_vf", "max_grad_norm", "learning_rate", "final_learning_rate"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be > 0, got {value}")
        if self.warmup_steps < 0:
            raise ValueError(f"warmup_steps must be at least 0, got {self.warmup_steps}")
        if self.credit_across_episodes and (self.bootstrap_truncated or (self.shuffle_episodes and self.n_updates > 1)):
            raise ValueError(
                "credit_across_episodes must be False with bootstrap_truncated and where episodes are shuffled, got True"
            )

    @property
    def segment(self) -> int:
        """Steps between two updates, c."""
        return self.n_steps // self.n_updates

    def learning_rate_at(self, steps: int, total: int) -> float:
        """Learning rate after `steps` of `total` environment steps."""
        if steps < self.warmup_steps:
            return self.learning_rate * (0.001 + 0.999 * steps / self.warmup_steps)
        if self.final_learning_rate is None:
            return self.learning_rate
        done = min(1.0, (steps - self.warmup_steps) / max(1, total - self.warmup_steps))
        span = self.learning_rate - self.final_learning_rate
        return self.final_learning_rate + 0.5 * span * (1.0 + math.cos(math.pi * done))
