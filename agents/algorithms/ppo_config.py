"""Settings of `PartialUpdatePPO`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from memenvs.agents.algorithms.allocator_config import AllocatorConfig
from memenvs.agents.algorithms.schedules import cosine_schedule
from memenvs.checks import check_fields, check_int, choices_for


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """Settings of `PartialUpdatePPO`; the defaults are those of ReLIC except for sizes.

    Attributes:
        learning_rate: Learning rate of Adam, > 0; the largest one if it changes.
        warmup_steps: Environment steps in which it rises from a thousandth of `learning_rate`; >= 0.
        final_learning_rate: Learning rate at the end of `learn`, reached by cosine decay, > 0; None for no decay.
        n_steps: Steps of a rollout in each environment, T; >= 2.
        n_updates: Updates in a rollout, K; divides n_steps. K - 1 are partial and one is full; 1 is ordinary PPO.
        n_epochs: Passes over the data in each update; >= 1.
        batch_size: Sequences (environments) in an optimizer step; >= 1.
        micro_batch_tokens: Steps that go through the network at once, unless a single sequence is longer; gradients of
            the parts of a batch are added up; >= 1.
        gamma: Discount, in [0, 1].
        gae_lambda: Lambda of generalised advantage estimation, in [0, 1].
        clip_range: Clip range of the probability ratio, > 0.
        clip_range_vf: Clip range of the change of the value, > 0; None for no clip.
        normalize_advantage: If True, the advantages of an update are scaled to mean 0 and standard deviation 1. If
            "rollout", the scale is that of all advantages of the rollout so far. If False, they stay.
        ent_coef: Coefficient of the entropy.
        vf_coef: Coefficient of the value loss.
        max_grad_norm: Largest norm of the gradient, > 0; larger gradients are scaled down.
        prefix_grad: Treatment of the prefix, the steps before the segment, in a partial update. "full": gradients flow
            through all of it. "detach": the memory's state at the start of the segment replaces it. "window": it is
            computed again, and gradients flow through the last `prefix_window` steps only.
        prefix_window: Steps with a gradient before the segment, for `prefix_grad="window"`; >= 1.
        full_update: If True, the last update of a rollout learns from all of it; otherwise from its segment.
        shuffle_episodes: If True, completed episodes are put into a random order after each partial update.
        refresh_log_probs: Old log probabilities in the ratio of the full update. If True, they are computed again at
            the last refill of the memory, with the weights and the order of episodes at that time; otherwise they are
            those of acting.
        bootstrap_truncated: If True, the last reward of an episode that the time limit truncated includes the
            discounted value of its last observation.
        credit_across_episodes: If True, advantages flow from an episode back into those before it in its trial, as in
            RL2. Needs episodes in the order in which they were played, and no `bootstrap_truncated`.
        precision: Precision of the features extractor and the memory in learning and refilling; "bfloat16" is torch's
            autocast. Weights, optimizer, heads, losses and acting are float32 in any case.
        reset_each_rollout: If True, a rollout begins with a reset to a new trial. None: if the environment has trials,
            if n_updates > 1, or if the memory keeps every step. With False, checkpoints of a run wait for a rollout at
            whose end all environments start a trial.
        allocator: Settings of an allocator, which chooses the memory's eviction strategy for each trial (or episode,
            where the memory is emptied at each) and learns from the returns of those that the rollout has room for at
            any length; a dict of them in JSON. None: the strategy of the memory's own settings.
        cloning_steps: Environment steps at the start, rounded up to whole rollouts, in which the environment's oracle
            acts and the policy learns its actions by their log likelihood (behaviour cloning), as values learn its
            returns; >= 1, None for none. Needs an environment of `make_vec_env` with an oracle and `Discrete` actions.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.

    Source:
        ReLIC, section on training and its release.
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
    normalize_advantage: bool | str = False
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
    allocator: AllocatorConfig | None = None
    cloning_steps: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.allocator, dict):
            object.__setattr__(self, "allocator", _allocator(self.allocator))
        check_fields(self)
        for name in ("n_updates", "n_epochs", "batch_size", "micro_batch_tokens", "prefix_window"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.n_steps < 2:
            raise ValueError(f"n_steps must be at least 2, got {self.n_steps}")
        if self.n_steps % self.n_updates:
            raise ValueError(f"n_updates must divide n_steps ({self.n_steps}), got {self.n_updates}")
        if isinstance(self.normalize_advantage, str) and self.normalize_advantage != "rollout":
            raise ValueError(f"normalize_advantage must be true, false or 'rollout', got {self.normalize_advantage!r}")
        for name in ("gamma", "gae_lambda"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        for name in ("clip_range", "clip_range_vf", "max_grad_norm", "learning_rate", "final_learning_rate"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be > 0, got {value}")
        if self.warmup_steps < 0:
            raise ValueError(f"warmup_steps must be at least 0, got {self.warmup_steps}")
        if self.cloning_steps is not None:
            check_int("cloning_steps", self.cloning_steps)
        shuffles = self.shuffle_episodes and self.n_updates > 1
        if self.credit_across_episodes and (self.bootstrap_truncated or shuffles):
            raise ValueError(
                "credit_across_episodes must be False with bootstrap_truncated and where episodes are shuffled, "
                "got True"
            )

    @property
    def segment(self) -> int:
        """Steps between two updates, T / K."""
        return self.n_steps // self.n_updates

    def learning_rate_at(self, step: int, total: int) -> float:
        """Learning rate after `step` of `total` environment steps."""
        return cosine_schedule(self.learning_rate, self.final_learning_rate, self.warmup_steps, step, total)


def _allocator(settings: dict[str, Any]) -> AllocatorConfig:
    """Make the settings of an allocator; errors name the setting that they are part of."""
    names = [field.name for field in fields(AllocatorConfig)]
    for name in settings:
        if name not in names:
            raise ValueError(f"unknown setting {name!r} of allocator; {choices_for(name, names)}")
    try:
        return AllocatorConfig(**settings)
    except (TypeError, ValueError) as error:
        raise type(error)(f"allocator: {error}") from None
