"""Settings of learning by imitation and by reinforcement together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memenvs.agents.algorithms.schedules import linear_rate
from memenvs.checks import check_fields


@dataclass(frozen=True, kw_only=True)
class ImitationConfig:
    """Settings of `ImitationA2C`; the defaults are MTVM's, for which the network must come with PREVALENT's weights.

    Attributes:
        learning_rate: Step size of AdamW, > 0.
        warmup_updates: Updates over which it first rises linearly; >= 0. From scratch: 1000, with a learning rate of 1e-4.
        final_learning_rate: What it falls to, linearly, at the end of `learn`; >= 0. None for a constant one.
        weight_decay: Of AdamW, >= 0; applied apart from the gradient.
        imitation_updates: Updates at the beginning that imitate only; >= 0.
        imitation_weight: Of the imitation loss, >= 0.
        gamma: Discount of the sampled rollouts, in [0, 1].
        value_coef: Weight of the squared error of the value, >= 0.
        entropy_coef: Weight of the entropy, >= 0.
        word_drop: Chance that a word is dropped in the second pass of the consistency loss, in [0, 1). Both its weights 0: there is none.
        text_consistency: Weight of what dropped words change in the text as it is read, once for a rollout; >= 0.
        cross_consistency: Weight of what they change in text and views after the cross layers, a mean over decisions; >= 0.
        consistency_axis: Over what the softmax in both is taken: tokens, for each channel, or channels.
        max_grad_norm: Clip of the norm of all gradients, the critic's too, > 0.
        precision: In which matrices are multiplied where the agent learns ("bfloat16" is torch's autocast).

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.

    Source:
        MTVM, section on implementation, and its release. Weights of the consistency: 6 and 2, as in the article's study of them and in the release;
        the 0.6 and 0.2 of its text are a slip.
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
            "warmup_updates", "weight_decay", "imitation_updates", "imitation_weight", "value_coef", "entropy_coef",
            "text_consistency", "cross_consistency",
        ):  # fmt: skip
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.final_learning_rate is not None and self.final_learning_rate < 0:
            raise ValueError(f"final_learning_rate must be >= 0 or None, got {self.final_learning_rate}")
        if not 0.0 <= self.gamma <= 1.0:
            raise ValueError(f"gamma must be in [0, 1], got {self.gamma}")
        if not 0.0 <= self.word_drop < 1.0:  # of a text without any word all are heard
            raise ValueError(f"word_drop must be in [0, 1), got {self.word_drop}")
        for name in ("learning_rate", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be > 0, got {getattr(self, name)}")

    @property
    def drops_words(self) -> bool:
        """Whether there is a consistency loss."""
        return self.text_consistency > 0 or self.cross_consistency > 0

    def learning_rate_at(self, update: int, total: int) -> float:
        """The step size of an update.

        Args:
            update: Its number, counted from 0.
            total: Updates of the run.
        """
        return linear_rate(self.learning_rate, self.final_learning_rate, self.warmup_updates, update, total)
