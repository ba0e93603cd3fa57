"""Adaptive memory allocation (AMA): learns the retention strategy of a memory from rewards.

The strategies themselves, which choose the visit or step that a full memory evicts, are in `memenvs.retention`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from memenvs.checks import check_int, choices_for
from memenvs.retention import STRATEGIES, STRATEGY_NAMES


class AdaptiveAllocator(nn.Module):
    """Predicts the reward of each retention strategy in a task.

    It is a contextual bandit with one decision an episode: Q(g)[h] is the mean reward of strategy h in task g, without
    bootstrapping. In Room Ballet it learns beside the network that answers (`AllocatedBallet`), in reinforcement
    learning beside the policy (`PPOConfig.allocator`), whose reward is the undiscounted return.

    Difference from the paper:
        Presets for one core explore less and faster, and the network that reads the memory learns only from episodes in
        which the memory has the answer (`only_kept`). Without this, as in the paper, one of three seeds did not learn
        to answer in the same number of batches.

    Args:
        task_dim: Width G of the task vector g: 4 for one-hot tasks, that of the text encoder for descriptions, 1 for a
            constant where there is only one task.
        strategies: Names of two or more strategies of `memenvs.retention`.
        hidden_dim: Width of the hidden layer; >= 1.

    Attributes:
        numbers: int64, (S,); numbers of `strategies` in `memenvs.retention.STRATEGY_NAMES`. All arguments and results
            use these numbers.

    Raises:
        ValueError: A setting is not allowed, or a strategy is unknown.

    Source:
        Cho, Yoon and Ahn, "Spatially-Aware Transformer for Embodied Agents", ICLR 2024 (arXiv:2402.15160), section 3.3;
        sizes and order as in its release.
    """

    numbers: Tensor

    def __init__(self, task_dim: int, strategies: Sequence[str] = STRATEGIES, hidden_dim: int = 64) -> None:
        super().__init__()
        check_int("task_dim", task_dim)
        check_int("hidden_dim", hidden_dim)
        for name in strategies:
            if name not in STRATEGY_NAMES:
                raise ValueError(f"unknown strategy {name!r}; {choices_for(name, STRATEGY_NAMES)}")
        if len(strategies) < 2 or len(set(strategies)) < len(strategies):
            raise ValueError(f"strategies must be two or more different ones, got {list(strategies)}")
        self.task_dim = task_dim
        self.strategies = tuple(strategies)
        numbers = torch.tensor([STRATEGY_NAMES.index(name) for name in strategies])
        self.register_buffer("numbers", numbers, persistent=False)
        self.network = nn.Sequential(nn.Linear(task_dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, len(strategies)))

    def forward(self, tasks: Tensor) -> Tensor:
        """Predict the reward Q of each strategy.

        Args:
            tasks: float, (B, G).

        Returns:
            float, (B, S), in the order of `strategies`.

        Raises:
            ValueError: The task vectors have another width.
        """
        if tasks.ndim != 2 or tasks.shape[1] != self.task_dim:
            raise ValueError(f"tasks must be (B, {self.task_dim}), got {tuple(tasks.shape)}")
        return self.network(tasks)

    @torch.no_grad()
    def distribution(self, tasks: Tensor) -> Tensor:
        """Compute softmax(Q), float, (B, S), for reports; strategies are not drawn from it."""
        return self(tasks).softmax(-1)

    def constant(self, count: int) -> Tensor:
        """Return the task vectors of `count` episodes of the same task, all ones, float, (B, G)."""
        return torch.ones(count, self.task_dim, device=self.numbers.device)

    @torch.no_grad()
    def best(self, tasks: Tensor) -> Tensor:
        """Return the strategy with the largest Q, int64, (B,); the first of equal ones."""
        return self.numbers[self(tasks).argmax(-1)]

    def choose(self, tasks: Tensor, epsilon: float, rng: np.random.Generator) -> Tensor:
        """Choose a strategy for each task, epsilon-greedily.

        Args:
            tasks: float, (B, G).
            epsilon: Probability of a random strategy, 0 to 1. The number of random draws does not depend on it.
            rng: Random generator.

        Returns:
            int64, (B,); numbers of strategies.
        """
        explores = torch.from_numpy(rng.random(len(tasks)) < epsilon)
        drawn = torch.from_numpy(rng.integers(len(self.strategies), size=len(tasks)))
        device = self.numbers.device
        return torch.where(explores.to(device), self.numbers[drawn.to(device)], self.best(tasks))

    def loss(self, tasks: Tensor, chosen: Tensor, rewards: Tensor) -> Tensor:
        """Compute the mean of (R - Q(g)[h])^2.

        Args:
            tasks: float, (B, G).
            chosen: int64, (B,); numbers of the strategies h that were used.
            rewards: float, (B,); their rewards R, without gradient.

        Raises:
            ValueError: A strategy is not one of the allocator's.
        """
        index = (chosen[:, None] == self.numbers).long()
        if not bool(index.any(1).all()):
            raise ValueError(
                f"chosen must be numbers of {self.strategies}, {self.numbers.tolist()}, got {chosen.tolist()}"
            )
        expected = self(tasks).gather(1, index.argmax(1, keepdim=True))[:, 0]
        return (rewards.detach() - expected).square().mean()
