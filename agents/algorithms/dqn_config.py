"""Settings of deep Q-learning from a replay of episodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from memenvs.checks import check_fields


@dataclass(frozen=True, kw_only=True)
class DQNConfig:
    """Settings of `EpisodeDQN`; the defaults are the Scene Memory Transformer's where its article states them.

    Attributes:
        learning_rate: Step size of Adam, > 0; constant.
        capacity: Episodes that the replay holds; >= 1. Learning begins when the random policy has filled it.
        episode_steps: Steps that an episode may have, for the room of the replay; >= 1.
        updates_per_collect: Updates between two collections, in each of which every environment plays one episode; >= 1.
        batch_size: Episodes in an update, drawn without replacement; 1 to `capacity`.
        decisions: Steps of each of them that get a loss, drawn without replacement (all of a shorter episode); >= 1.
        gamma: Discount, in [0, 1].
        n_step: Rewards in a target before the value of what follows; >= 1.
        min_reward: What a lower reward counts as in the loss; None: as itself.
        reward_scale: What rewards are multiplied with in the loss, after that, and with them Q, > 0.
        temperature: Actions are drawn from softmax(Q / temperature), > 0; in learning as in evaluation. Low is greedy.
        target_rate: Share of the network that the target network takes over in each update, in (0, 1].
        max_grad_norm: Clip of the gradient's norm, > 0.
        final_epsilon: Share of uniform actions where it has come down to, in [0, 1]; the others are drawn from the softmax.
        exploration: Share of learning, in environment steps after the replay was filled, in which it comes down from 1, in (0, 1].
        precision: In which features and memory multiply matrices where the policy learns ("bfloat16" is torch's autocast). Weights,
            optimiser, Q values, targets and acting are float32 in any case.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.

    Source:
        SMT: replay of 1000 episodes, 64 in a batch, Adam with 5e-4; one new episode every 500 updates. The article does not say the rest.
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
        """`min_reward`, minus infinity if there is none."""
        return -math.inf if self.min_reward is None else self.min_reward
