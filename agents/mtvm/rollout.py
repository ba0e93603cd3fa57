"""What a rollout of episodes gave, and returns of its decisions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class RolloutStep:
    """One decision of each episode that was still going on, B of N.

    Attributes:
        rows: int64, (B,); which episodes.
        log_probs: float, (B,); of the actions taken.
        entropy: float, (B,).
        values: float, (B,).
        rewards: float, (B,).
        imitation_loss: float, (B,); cross entropy to the teacher's actions.
        teacher_agreement: float, (B,); 1 where the most likely action is the teacher's.
        inconsistency: float, (B,); inconsistency of the pass with dropped words.
    """

    rows: Tensor
    log_probs: Tensor
    entropy: Tensor
    values: Tensor
    rewards: Tensor
    imitation_loss: Tensor
    teacher_agreement: Tensor
    inconsistency: Tensor


@dataclass
class Rollout:
    """One episode of each of N environments.

    Attributes:
        steps: Decisions in order.
        bootstrap_value: float, (N,); value of what follows where the clock cut an episode, else 0; without gradient.
        text_inconsistency: float, (N,); inconsistency of the text as it was read.
    """

    steps: list[RolloutStep]
    bootstrap_value: Tensor
    text_inconsistency: Tensor

    @property
    def n_decisions(self) -> int:
        """How many, in all episodes."""
        return sum(len(step.rows) for step in self.steps)


def discounted_returns(steps: list[RolloutStep], bootstrap_value: Tensor, gamma: float) -> Tensor:
    """Sums of discounted rewards from each decision on, in the order of the decisions; without gradient.

    Args:
        steps: Decisions of each episode; once an episode is over it has no more.
        bootstrap_value: float, (N,); value of what follows the last decision of each episode.
        gamma: Discount.
    """
    after, found = bootstrap_value.clone(), []
    for step in reversed(steps):
        now = step.rewards + gamma * after[step.rows]
        after[step.rows] = now
        found.append(now)
    return torch.cat(found[::-1])
