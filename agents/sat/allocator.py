"""Adaptive memory allocation (AMA): learns the retention strategy of a memory from rewards.

The strategies themselves, which choose the visit or step that a full memory evicts, are in `memenvs.retention`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from memenvs.agents.algorithms.archive import check_tensors, load_optimizer, optimizer_tensors
from memenvs.agents.memory import State
from memenvs.checks import check_fields, check_int, choices_for
from memenvs.retention import STRATEGIES, STRATEGY_NAMES, eviction_times


@dataclass(frozen=True, kw_only=True)
class AllocatorConfig:
    """Settings of an allocator.

    Attributes:
        hidden_dim: Width of the hidden layer; >= 1.
        epsilon_start: Probability of a random strategy at the start, 0 to 1.
        epsilon_end: Probability of a random strategy after `epsilon_steps` steps, 0 to 1.
        epsilon_steps: Steps of the linear change between the two, in the learner's unit (batches, or environment
            steps); >= 1.
        loss_weight: Weight of its loss beside the loss of the network that reads the memory; > 0.
    """

    hidden_dim: int = 64
    epsilon_start: float = 1.0
    epsilon_end: float = 0.2
    epsilon_steps: int = 200_000
    loss_weight: float = 0.1

    def __post_init__(self) -> None:
        check_fields(self)
        check_int("hidden_dim", self.hidden_dim)
        check_int("epsilon_steps", self.epsilon_steps)
        for name in ("epsilon_start", "epsilon_end"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be 0 ... 1, got {getattr(self, name)}")
        if self.loss_weight <= 0.0:
            raise ValueError(f"loss_weight must be above 0, got {self.loss_weight}")

    def epsilon_at(self, step: int) -> float:
        """Return the probability of a random strategy after `step` steps."""
        done = min(step / self.epsilon_steps, 1.0)
        return self.epsilon_start + (self.epsilon_end - self.epsilon_start) * done


class AdaptiveAllocator(nn.Module):
    """Predicts the reward of each retention strategy in a task.

    It is a contextual bandit with one decision an episode: Q(g)[h] is the mean reward of strategy h in task g, without
    bootstrapping.

    Difference from the paper:
        Presets for one core explore less and faster, and the network that reads the memory learns only from episodes in
        which the memory has the answer (`only_kept`). Without this, as in the paper, one of three seeds did not learn
        to answer in the same number of batches.

    Args:
        task_dim: Width G of the task vector g: 4 for one-hot tasks, that of the text encoder for descriptions.
        config: Settings; None for the defaults.
        strategies: Names of two or more strategies of `memenvs.retention`.

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

    def __init__(
        self, task_dim: int, config: AllocatorConfig | None = None, strategies: Sequence[str] = STRATEGIES
    ) -> None:
        super().__init__()
        check_int("task_dim", task_dim)
        for name in strategies:
            if name not in STRATEGY_NAMES:
                raise ValueError(f"unknown strategy {name!r}; {choices_for(name, STRATEGY_NAMES)}")
        if len(strategies) < 2 or len(set(strategies)) < len(strategies):
            raise ValueError(f"strategies must be two or more different ones, got {list(strategies)}")
        self.config = config or AllocatorConfig()
        self.task_dim = task_dim
        self.strategies = tuple(strategies)
        numbers = torch.tensor([STRATEGY_NAMES.index(name) for name in strategies])
        self.register_buffer("numbers", numbers, persistent=False)
        hidden = self.config.hidden_dim
        self.network = nn.Sequential(nn.Linear(task_dim, hidden), nn.ReLU(), nn.Linear(hidden, len(strategies)))

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

    @torch.no_grad()
    def best(self, tasks: Tensor) -> Tensor:
        """Return the strategy with the largest Q, int64, (B,); the first of equal ones."""
        return self.numbers[self(tasks).argmax(-1)]

    def choose(self, tasks: Tensor, epsilon: float, rng: np.random.Generator) -> Tensor:
        """Choose a strategy for each task, epsilon-greedily.

        Args:
            tasks: float, (B, G).
            epsilon: Probability of a random strategy, 0 to 1; `config.epsilon_at` in training. The number of random
                draws does not depend on it.
            rng: Random generator.

        Returns:
            int64, (B,); numbers of strategies.
        """
        explores = torch.from_numpy(rng.random(len(tasks)) < epsilon)
        drawn = torch.from_numpy(rng.integers(len(self.strategies), size=len(tasks)))
        device = self.numbers.device
        return torch.where(explores.to(device), self.numbers[drawn.to(device)], self.best(tasks))

    def loss(self, tasks: Tensor, chosen: Tensor, rewards: Tensor) -> Tensor:
        """Compute the mean of (R - Q(g)[h])^2, without `loss_weight`.

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


class EpisodeAllocator:
    """Chooses a strategy for each episode of N environments and learns from its return.

    For reinforcement learning with a memory of limited capacity. The steps in memory follow from places and strategy
    alone (`retained_steps`). So a learner only stores the strategy, and recomputes the memory with gradients. It
    does so episode by episode, because a state has one strategy for each sequence. With
    `AllocatorConfig(epsilon_end=0.05, epsilon_steps=total_steps // 5)` exploration falls over a fifth of the training.

    Args:
        allocator: The allocator; it is trained here, with its own Adam.
        num_envs: N.
        rng: Random generator of the strategies; the learner saves it with its others.
        learning_rate: Learning rate of Adam, > 0.

    Attributes:
        strategies: int64, (N,); numbers of the strategies of the current episodes.
        steps: Environment steps so far; exploration decreases with them.

    Source:
        Ours; the paper names PPO only.
    """

    def __init__(
        self, allocator: AdaptiveAllocator, num_envs: int, rng: np.random.Generator, learning_rate: float = 2.5e-4
    ) -> None:
        check_int("num_envs", num_envs)
        self.allocator = allocator
        self.rng = rng
        self.steps = 0
        self.optimizer = torch.optim.Adam(allocator.parameters(), learning_rate)
        device = allocator.numbers.device
        self.strategies = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self._tasks = torch.zeros(num_envs, allocator.task_dim, device=device)
        self._returns = torch.zeros(num_envs, device=device)

    def begin(self, starts: Tensor, tasks: Tensor, state: State, *, explore: bool = True) -> State:
        """Choose a strategy where an episode starts; call it before each step.

        Args:
            starts: bool, (N,); True at the first step of an episode.
            tasks: float, (N, G); task vectors, a constant if there is only one task.
            state: State of a memory with `strategy`, int64, (N,), such as SAT's. ("t-fifo" knows no places; strategies
                that count visits act as FIFO on it.)
            explore: Whether to explore; otherwise the best strategy of each task is taken.

        Returns:
            The state with the strategies of the current episodes.

        Raises:
            ValueError: The memory has no strategy.
        """
        if "strategy" not in state:
            raise ValueError(
                f"state must be of a memory with a strategy, as those of SAT have, got one of {sorted(state)}"
            )
        epsilon = self.allocator.config.epsilon_at(self.steps) if explore else 0.0
        chosen = self.allocator.choose(tasks, epsilon, self.rng)
        self.strategies = torch.where(starts, chosen, self.strategies)
        self._tasks = torch.where(starts[:, None], tasks, self._tasks)
        self._returns = self._returns.masked_fill(starts, 0.0)
        return state | {"strategy": self.strategies.clone()}

    def end(self, rewards: Tensor, ends: Tensor) -> list[float]:
        """Add rewards to the returns and learn from finished episodes; call it after each step.

        Args:
            rewards: float, (N,); undiscounted.
            ends: bool, (N,); True where the step ended an episode, by termination or truncation.

        Returns:
            Loss of each finished episode, in the order of environments. Each was followed by one step of Adam.
        """
        self.steps += len(rewards)
        self._returns = self._returns + rewards
        losses = []
        for row in ends.nonzero()[:, 0].tolist():
            one = slice(row, row + 1)
            loss = self.allocator.loss(self._tasks[one], self.strategies[one], self._returns[one])
            self.optimizer.zero_grad(set_to_none=True)
            (self.allocator.config.loss_weight * loss).backward()
            self.optimizer.step()
            losses.append(loss.item())
        return losses

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors of a checkpoint, by name; `rng` is saved by the learner."""
        network = {f"allocator.{name}": value for name, value in self.allocator.state_dict().items()}
        moments = {f"optimizer.{name}": value for name, value in optimizer_tensors(self.optimizer).items()}
        return self._episodes() | network | moments

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Restore the tensors of a checkpoint.

        Raises:
            ValueError: They are of another number of environments or another allocator, for example of another G.
        """
        moments = {k.removeprefix("optimizer."): v for k, v in tensors.items() if k.startswith("optimizer.")}
        rest = {name: value for name, value in tensors.items() if not name.startswith("optimizer.")}
        network = {f"allocator.{name}": value for name, value in self.allocator.state_dict().items()}
        check_tensors("allocator", rest, self._episodes() | network)
        load_optimizer(self.optimizer, list(self.allocator.parameters()), moments)
        self.allocator.load_state_dict({k.removeprefix("allocator."): rest[k] for k in network})
        self.strategies, self._tasks, self._returns = (
            rest[name].clone() for name in ("strategies", "tasks", "returns")
        )
        self.steps = int(rest["steps"])

    def _episodes(self) -> dict[str, Tensor]:
        """Return the tensors of the current episodes, by name."""
        counter = torch.tensor(self.steps)
        return {"strategies": self.strategies, "tasks": self._tasks, "returns": self._returns, "steps": counter}


def retained_steps(
    places: np.ndarray, strategies: str | np.ndarray, capacity: int, *, n_places: int | None = None
) -> np.ndarray:
    """List the steps in memory at each step of an episode, itself included if it is stored.

    Args:
        places: int, (B, T); place of each step, from the first step of an episode on.
        strategies: Name of a strategy, or the number of one for each episode, int, (B,).
        capacity: Number of steps that the memory can store, >= 1.
        n_places: As in `memenvs.retention.retained`.

    Returns:
        int64, (B, T, capacity); numbers of steps in order of time, padded with -1.

    Raises:
        ValueError: As `memenvs.retention.retained`.
    """
    evicted_at = eviction_times(places, strategies, capacity, n_places=n_places)
    batch, steps = evicted_at.shape
    kept = np.full((batch, steps, capacity), -1)
    for t in range(steps):
        in_memory = evicted_at[:, : t + 1] > t
        row, step = in_memory.nonzero()
        kept[row, t, in_memory.cumsum(1)[row, step] - 1] = step
    return kept
