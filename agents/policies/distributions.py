"""Action distributions, sampled with a generator that the caller passes in."""

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
        """Draw one action from each distribution."""

    @abstractmethod
    def mode(self) -> Tensor:
        """Return the most likely action of each distribution."""

    @abstractmethod
    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the log probability (density) of the actions, float (...)."""

    @abstractmethod
    def entropy(self) -> Tensor:
        """Return the entropy of each distribution in nats, float (...)."""


class Categorical(ActionDistribution):
    """A choice of one of A actions.

    Args:
        logits: float, (..., A); unnormalised log probabilities, -inf for an action that is not available.
    """

    def __init__(self, logits: Tensor) -> None:
        self.log_probs = logits.float().log_softmax(-1)

    def sample(self, generator: torch.Generator) -> Tensor:
        """Draw actions, int64 (...), by the Gumbel-max trick."""
        # -log(Exponential(1)) is standard Gumbel noise; argmax(log p + Gumbel) is an exact sample of p.
        noise = torch.empty_like(self.log_probs).exponential_(generator=generator)
        return (self.log_probs - noise.log()).argmax(-1)

    def mode(self) -> Tensor:
        """Return the most likely actions, int64 (...)."""
        return self.log_probs.argmax(-1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the log probability of the actions, float (...)."""
        return self.log_probs.gather(-1, actions.long().unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """Return the entropy, float (...)."""
        finite = self.log_probs.clamp(min=torch.finfo(self.log_probs.dtype).min)  # else 0 * -inf is NaN; 0 log 0 is 0
        return -(self.log_probs.exp() * finite).sum(-1)


def check_action_mask(action_mask: Tensor) -> None:
    """Raise a ValueError if a row of a mask allows no action.

    Args:
        action_mask: bool, (..., A); True for available actions, from the observation `candidate_mask`.
    """
    if not bool(action_mask.any(-1).all()):
        raise ValueError(
            "candidate_mask must allow at least one action in each observation that is acted on, got one that allows "
            "none; end the episode at the step before"
        )


class MultiCategorical(ActionDistribution):
    """Several independent choices.

    Args:
        logits: float, (..., sum of sizes); the logits of all choices side by side.
        sizes: Number of actions of each choice.
    """

    def __init__(self, logits: Tensor, sizes: tuple[int, ...]) -> None:
        self.parts = [Categorical(part) for part in logits.split(sizes, -1)]

    def sample(self, generator: torch.Generator) -> Tensor:
        """Draw actions, int64 (..., choices)."""
        return torch.stack([part.sample(generator) for part in self.parts], -1)

    def mode(self) -> Tensor:
        """Return the most likely actions, int64 (..., choices)."""
        return torch.stack([part.mode() for part in self.parts], -1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the log probability of the actions, float (...)."""
        return torch.stack([part.log_prob(actions[..., i]) for i, part in enumerate(self.parts)]).sum(0)

    def entropy(self) -> Tensor:
        """Return the entropy, float (...)."""
        return torch.stack([part.entropy() for part in self.parts]).sum(0)


class DiagonalGaussian(ActionDistribution):
    """Independent normal variables.

    Args:
        mean: float, (..., A).
        log_std: float, (A,); logarithm of the standard deviation, the same for all means.
    """

    def __init__(self, mean: Tensor, log_std: Tensor) -> None:
        self.mean = mean.float()
        self.log_std = log_std.float()

    def sample(self, generator: torch.Generator) -> Tensor:
        """Draw actions, float (..., A)."""
        noise = torch.empty_like(self.mean).normal_(generator=generator)
        return self.mean + self.log_std.exp() * noise

    def mode(self) -> Tensor:
        """Return the means, float (..., A)."""
        return self.mean

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the log density of the actions, float (...)."""
        z = (actions - self.mean) * (-self.log_std).exp()
        return (-0.5 * z**2 - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)

    def entropy(self) -> Tensor:
        """Return the entropy, float (...)."""
        by_action = 0.5 + 0.5 * math.log(2 * math.pi) + self.log_std
        return by_action.sum(-1).expand(self.mean.shape[:-1])


class ActionHead(nn.Module):
    """A linear layer from features to a distribution over the actions of a space.

    Args:
        dim: Width of the features.
        space: A `Discrete` space, or a `MultiDiscrete` or `Box` with one axis.

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

    def forward(self, features: Tensor, action_mask: Tensor | None = None) -> ActionDistribution:
        """Return the action distribution.

        Args:
            features: float, (..., dim).
            action_mask: bool, (..., A); available actions of a `Discrete` space, at least one in each row. The others
                get probability 0. None: all are available.
        """
        out = self.linear(features)
        if action_mask is not None:
            out = out.masked_fill(~action_mask, -torch.inf)
        if isinstance(self.space, spaces.Discrete):
            return Categorical(out)
        if isinstance(self.space, spaces.MultiDiscrete):
            return MultiCategorical(out, tuple(self.space.nvec.tolist()))
        return DiagonalGaussian(out, self.log_std)
