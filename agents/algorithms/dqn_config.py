"""Settings of `EpisodeDQN`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from memenvs.checks import check_fields


@dataclass(frozen=True, kw_only=True)
class DQNConfig:
    """Settings of `EpisodeDQN`; the defaults are those of SMT where the paper states them.

    Attributes:
        learning_rate: Learning rate of Adam, > 0; constant.
        capacity: Episodes in the replay buffer; >= 1. Learning begins when uniform actions have filled it.
        episode_steps: Largest number of steps of an episode, for the size of the replay buffer; >= 1.
        updates_per_collect: Updates between two collections, in each of which every environment plays an episode; >= 1.
        batch_size: Episodes in an update, drawn without replacement; 1 to `capacity`.
        decisions: Steps of each of them that get a loss, drawn without replacement (all of a shorter episode); >= 1.
        gamma: Discount, in [0, 1].
        n_step: Rewards in a target before it bootstraps; >= 1.
        min_reward: Value to which lower rewards are raised in the loss; None leaves rewards as they are.
        reward_scale: Factor of rewards in the loss, applied after `min_reward`; Q values scale with it; > 0.
        temperature: Temperature of the softmax policy, softmax(Q / temperature), > 0; low is greedy.
        target_rate: Rate of the polyak update of the target network after each update, in (0, 1].
        max_grad_norm: Largest norm of the gradient, > 0; larger gradients are scaled down.
        final_epsilon: Share of uniform actions at the end of exploration, in [0, 1].
        exploration: Length of the linear decay of epsilon, the share of uniform actions, from 1 to `final_epsilon`: a
            share of the environment steps after the replay buffer is full; in (0, 1].
        precision: Precision of the features extractor and the memory in learning; "bfloat16" is torch's autocast.
            Weights, optimizer, Q values, targets and acting are float32 in any case.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.

    Source:
        SMT, section on training: a replay buffer of 1000 episodes, 64 in a batch, Adam with 5e-4, one new episode every
        500 updates. The paper does not state the rest.
    """

    learning_rate: float = 5e-4
    capacity: int = 1000
    episode_steps: int = 500
    updates_per_collect: int = 500
    batch_size: int = 64
    decisions: int = 32
    gamma: float = 0.99
    n_step: int = 3
    min_reward: float | None = None
    reward_scale: float = 1.0
    temperature: float = 1.0
    target_rate: float = 1e-3
    max_grad_norm: float = 10.0
    final_epsilon: float = 0.05
    exploration: float = 0.2
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("capacity", "episode_steps", "updates_per_collect", "batch_size", "decisions", "n_step"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.batch_size > self.capacity:
            raise ValueError(f"batch_size must be at most capacity ({self.capacity}), got {self.batch_size}")
        for name in ("gamma", "final_epsilon"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        for name in ("target_rate", "exploration"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be in (0, 1], got {getattr(self, name)}")
        for name in ("learning_rate", "reward_scale", "temperature", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be > 0, got {getattr(self, name)}")

    @property
    def lowest_reward(self) -> float:
        """`min_reward`, or minus infinity if it is None."""
        return -math.inf if self.min_reward is None else self.min_reward
