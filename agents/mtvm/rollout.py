"""Rollouts of whole episodes for `ImitationA2C`, and returns of their decisions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class RolloutStep:
    """One decision of each of the B episodes, out of N, that are not over.

    Attributes:
        rows: int64, (B,); indices of their environments, 0 to N - 1.
        log_probs: float, (B,); log probabilities of the actions taken.
        entropy: float, (B,); entropies of the action distributions.
        values: float, (B,); values.
        rewards: float, (B,); rewards.
        imitation_loss: float, (B,); cross-entropies to the teacher's actions.
        teacher_agreement: float, (B,); 1 where the most likely action is the teacher's.
        inconsistency: float, (B,); distances to the pass with dropped words.
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
        bootstrap_value: float, (N,); value of the last observation of episodes that the time limit truncated, else 0;
            without gradient.
        text_inconsistency: float, (N,); distance between the text encoded with all words and with dropped ones.
    """

    steps: list[RolloutStep]
    bootstrap_value: Tensor
    text_inconsistency: Tensor

    @property
    def n_decisions(self) -> int:
        """Number of decisions in all episodes."""
        return sum(len(step.rows) for step in self.steps)


def discounted_returns(steps: list[RolloutStep], bootstrap_value: Tensor, gamma: float) -> Tensor:
    """Compute the discounted return of each decision, in their order; without gradient.

    Args:
        steps: Decisions of each episode; an episode that is over has no more.
        bootstrap_value: float, (N,); value of what follows the last decision of each episode.
        gamma: Discount.

    Returns:
        float, (total number of decisions,).
    """
    following = bootstrap_value.clone()
    returns = []
    for step in reversed(steps):
        step_returns = step.rewards + gamma * following[step.rows]
        following[step.rows] = step_returns
        returns.append(step_returns)
    return torch.cat(returns[::-1])
