"""Action distributions that draw from a generator that is passed in."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from gymnasium import spaces
from torch import Tensor, nn


class ActionDistribution(ABC):
    """A batch of distributions over actions."""

    @abstractmethod
    def sample(self, generator: torch.Generator) -> Tensor:
        """One action each."""

    @abstractmethod
    def mode(self) -> Tensor:
        """The most likely action of each."""

    @abstractmethod
    def log_prob(self, actions: Tensor) -> Tensor:
        """float, (...); log probability (density) of the actions."""

    @abstractmethod
    def entropy(self) -> Tensor:
        """float, (...); nats."""


class Categorical(ActionDistribution):
    """One of A actions, from logits (..., A); -inf where there is no such action."""

    def __init__(self, logits: Tensor) -> None:
        self.log_probs = logits.float().log_softmax(-1)

    def sample(self, generator: torch.Generator) -> Tensor:
        """int64, (...); by the Gumbel-max rule, exact and free of loops over the batch."""
        noise = torch.empty_like(self.log_probs).exponential_(generator=generator)
        return (self.log_probs - noise.log()).argmax(-1)

    def mode(self) -> Tensor:
        """int64, (...)."""
        return self.log_probs.argmax(-1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """float, (...)."""
        return self.log_probs.gather(-1, actions.long().unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """float, (...)."""
        finite = self.log_probs.clamp(min=torch.finfo(self.log_probs.dtype).min)  # 0 log 0 is 0
        return -(self.log_probs.exp() * finite).sum(-1)


class MultiCategorical(ActionDistribution):
    """Several independent choices, from logits (..., sum of sizes)."""

    def __init__(self, logits: Tensor, sizes: tuple[int, ...]) -> None:
        self.parts = [Categorical(part) for part in logits.split(sizes, -1)]

    def sample(self, generator: torch.Generator) -> Tensor:
        """int64, (..., choices)."""
        return torch.stack([part.sample(generator) for part in self.parts], -1)

    def mode(self) -> Tensor:
        """int64, (..., choices)."""
        return torch.stack([part.mode() for part in self.parts], -1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """float, (...)."""
        return torch.stack([part.log_prob(actions[..., i]) for i, part in enumerate(self.parts)]).sum(0)

    def entropy(self) -> Tensor:
        """float, (...)."""
        return torch.stack([part.entropy() for part in self.parts]).sum(0)


class DiagonalGaussian(ActionDistribution):
    """Independent normal variables, from means (..., A) and one log standard deviation (A,)."""

    def __init__(self, mean: Tensor, log_std: Tensor) -> None:
        self.mean, self.log_std = mean.float(), log_std.float()

    def sample(self, generator: torch.Generator) -> Tensor:
        """float, (..., A)."""
        noise = torch.empty_like(self.mean).normal_(generator=generator)
        return self.mean + self.log_std.exp() * noise

    def mode(self) -> Tensor:
        """float, (..., A)."""
        return self.mean

    def log_prob(self, actions: Tensor) -> Tensor:
        """float, (...)."""
        z = (actions - self.mean) * (-self.log_std).exp()
        return (-0.5 * z**2 - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)

    def entropy(self) -> Tensor:
        """float, (...)."""
        each = 0.5 + 0.5 * math.log(2 * math.pi) + self.log_std
        return each.sum(-1).expand(self.mean.shape[:-1])


class ActionHead(nn.Module):
    """From features to a distribution over the actions of a space.

    Args:
        dim: Width of the features.
        space: `Discrete`, or a `MultiDiscrete` or `Box` with one axis.

    Raises:
        ValueError: Another kind of space.
    """

    def __init__(self, dim: int, space: spaces.Space) -> None:
        super().__init__()
        self.space = space
        if isinstance(space, spaces.Discrete):
            width = int(space.n)
        elif isinstance(space, spaces.MultiDiscrete) and len(space.shape) == 1:
            width = int(space.nvec.sum())
        elif isinstance(space, spaces.Box) and len(space.shape) == 1:
            width = space.shape[0]
            self.log_std = nn.Parameter(torch.zeros(width))
        else:
            raise ValueError(f"action space must be Discrete, or a MultiDiscrete or Box with one axis, got {space}")
        self.linear = nn.Linear(dim, width)
        nn.init.orthogonal_(self.linear.weight, 0.01)  # a nearly uniform first policy
        nn.init.zeros_(self.linear.bias)

    def forward(self, features: Tensor, allowed: Tensor | None = None) -> ActionDistribution:
        """The distribution for features (..., dim).

        Args:
            features: float, (..., dim).
            allowed: bool, (..., A), which actions of a `Discrete` space there are, at least one in each row: the others have probability 0. None is
                all.
        """
        out = self.linear(features)
        if allowed is not None:
            out = out.masked_fill(~allowed, -torch.inf)
        if isinstance(self.space, spaces.Discrete):
            return Categorical(out)
        if isinstance(self.space, spaces.MultiDiscrete):
            return MultiCategorical(out, tuple(self.space.nvec.tolist()))
        return DiagonalGaussian(out, self.log_std)
