"""Settings of `ImitationA2C`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memenvs.agents.algorithms.schedules import linear_schedule
from memenvs.checks import check_fields


@dataclass(frozen=True, kw_only=True)
class ImitationConfig:
    """Settings of `ImitationA2C`; the defaults are those of MTVM with PREVALENT's weights.

    Attributes:
        learning_rate: Learning rate of AdamW, > 0.
        warmup_updates: Updates over which it first rises linearly; >= 0. Without PREVALENT's weights, 1000 with a
            learning rate of 1e-4.
        final_learning_rate: Learning rate at the end of `learn`, reached linearly; >= 0. None for no decay.
        weight_decay: Decoupled weight decay of AdamW, >= 0.
        imitation_updates: Updates at the beginning with the imitation loss only; >= 0.
        imitation_weight: Weight of the imitation loss, >= 0.
        gamma: Discount of the sampled rollouts, in [0, 1].
        value_coef: Coefficient of the value loss, >= 0.
        entropy_coef: Coefficient of the entropy, >= 0.
        word_drop: Probability that a word is dropped in the second pass of the consistency loss, in [0, 1). There is no
            second pass if both of its weights are 0.
        text_consistency: Weight of the inconsistency of the encoded text, once for a rollout; >= 0.
        cross_consistency: Weight of the inconsistency of text and views after the cross layers, mean over decisions;
            >= 0.
        consistency_axis: Axis of the softmax in both: over tokens, for each channel, or over channels.
        max_grad_norm: Largest norm of all gradients, the critic's too, > 0; larger gradients are scaled down.
        precision: Precision of the network in learning; "bfloat16" is torch's autocast.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.

    Source:
        MTVM, section on implementation, and its release. The consistency weights are 6 and 2, as in the paper's
        ablation and in the release; its text has 0.6 and 0.2, an error.
    """

    learning_rate: float = 5e-6
    warmup_updates: int = 0
    final_learning_rate: float | None = None
    weight_decay: float = 0.01
    imitation_updates: int = 0
    imitation_weight: float = 0.2
    gamma: float = 0.9
    value_coef: float = 0.5
    entropy_coef: float = 0.01
    word_drop: float = 0.5
    text_consistency: float = 6.0
    cross_consistency: float = 2.0
    consistency_axis: Literal["token", "channel"] = "token"
    max_grad_norm: float = 40.0
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in (
            "warmup_updates",
            "weight_decay",
            "imitation_updates",
            "imitation_weight",
            "value_coef",
            "entropy_coef",
            "text_consistency",
            "cross_consistency",
        ):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.final_learning_rate is not None and self.final_learning_rate < 0:
            raise ValueError(f"final_learning_rate must be >= 0 or None, got {self.final_learning_rate}")
        if not 0.0 <= self.gamma <= 1.0:
            raise ValueError(f"gamma must be in [0, 1], got {self.gamma}")
        if not 0.0 <= self.word_drop < 1.0:  # at 1 every text would stay whole, see `drop_words`
            raise ValueError(f"word_drop must be in [0, 1), got {self.word_drop}")
        for name in ("learning_rate", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be > 0, got {getattr(self, name)}")

    @property
    def drops_words(self) -> bool:
        """True if there is a consistency loss."""
        return self.text_consistency > 0 or self.cross_consistency > 0

    def learning_rate_at(self, update: int, total: int) -> float:
        """Learning rate of update number `update` (from 0) of `total` updates."""
        return linear_schedule(self.learning_rate, self.final_learning_rate, self.warmup_updates, update, total)
