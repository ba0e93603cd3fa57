"""What a rollout stores: whole sequences, environment by environment, whose episodes can be put into another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium import spaces
from numba import njit
from torch import Tensor

from memenvs.agents.memory import EXTRA_INPUTS, ExtraInputs

Observations = Tensor | dict[str, Tensor]


@dataclass(frozen=True)
class Sequences:
    """Steps `begin` to `end` of some environments, in the present order of their episodes.

    Attributes:
        observations: As the space says, (B, S, ...), or None where embeddings are stored instead.
        embeddings: bfloat16, (B, S, F), or None.
        previous: int64, (B, S); 1 + action before, 0 at the first step of an episode.
        episode_start: bool, (B, S).
        trial_start: bool, (B, S).
        actions: As the action space, (B, S, ...).
        where: What the memory asks for, (B, S, ...) each.
    """

    observations: Observations | None
    embeddings: Tensor | None
    previous: Tensor
    episode_start: Tensor
    trial_start: Tensor
    actions: Tensor
    where: ExtraInputs


class TrialRolloutBuffer:
    """T steps of N environments; scalars in float32, frozen embeddings in bfloat16, images never twice.

    Every step keeps the slot that it was written to. `order[i, p]` is the slot of the step at position p of environment i: shuffling
    episodes permutes `order` and nothing else. Only `trial_start` is kept by position: whichever episode comes first starts the trial.

    Args:
        n_envs: N.
        n_steps: T.
        observation_space: Of one environment.
        action_space: Of one environment.
        device: Where the tensors live.
        embedding_dim: Width of frozen embeddings to store instead of observations; None stores observations.
        asked: What the memory asks for beside the embedding (`Memory.required_inputs`).
    """

    def __init__(
        self,
        n_envs: int,
        n_steps: int,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        device: torch.device,
        embedding_dim: int | None = None,
        asked: Sequence[str] = (),
    ) -> None:
        self.n_envs, self.n_steps, self.device = n_envs, n_steps, device

        def room(space: spaces.Space) -> Tensor:
            dtype = torch.as_tensor(np.zeros(0, space.dtype)).dtype
            return torch.zeros((n_envs, n_steps, *(space.shape or ())), dtype=dtype, device=device)

        self.observations: Observations | None = None
        self.embeddings: Tensor | None = None
        if embedding_dim is not None:
            self.embeddings = torch.zeros(n_envs, n_steps, embedding_dim, dtype=torch.bfloat16, device=device)
        elif isinstance(observation_space, spaces.Dict):
            self.observations = {key: room(space) for key, space in observation_space.spaces.items()}
        else:
            self.observations = room(observation_space)
        self.where = {
            key: torch.zeros(n_envs, n_steps, *shape, dtype=dtype, device=device)
            for key, (dtype, shape) in EXTRA_INPUTS.items()
            if key in asked
        }
        self.actions = room(action_space)
        self.previous = torch.zeros(n_envs, n_steps, dtype=torch.int64, device=device)
        self.episode_start = torch.zeros(n_envs, n_steps, dtype=torch.bool, device=device)
        self.trial_start = torch.zeros_like(self.episode_start)
        self.rewards, self.values, self.log_probs = (torch.zeros(n_envs, n_steps, device=device) for _ in range(3))
        self.order = torch.arange(n_steps, device=device).repeat(n_envs, 1)
        self.shuffled = False
        self.pos = 0

    def reset(self) -> None:
        """Empties the buffer."""
        self.pos = 0
        self.shuffled = False
        self.order.copy_(torch.arange(self.n_steps, device=self.device).expand_as(self.order))

    def add(
        self,
        observations: Observations,
        embeddings: Tensor,
        previous: Tensor,
        episode_start: Tensor,
        trial_start: Tensor,
        actions: Tensor,
        rewards: Tensor,
        values: Tensor,
        log_probs: Tensor,
        where: ExtraInputs | None = None,
    ) -> None:
        """Stores one step of every environment; each argument has N rows."""
        t = self.pos
        if self.embeddings is not None:
            self.embeddings[:, t] = embeddings
        elif isinstance(self.observations, dict):
            assert isinstance(observations, dict)
            for key, value in observations.items():
                self.observations[key][:, t] = value
        else:
            assert isinstance(self.observations, Tensor)
            assert isinstance(observations, Tensor)
            self.observations[:, t] = observations
        for key, store in self.where.items():
            assert where is not None
            store[:, t] = where[key]
        self.previous[:, t] = previous
        self.episode_start[:, t] = episode_start
        self.trial_start[:, t] = trial_start
        self.actions[:, t] = actions
        self.rewards[:, t] = rewards
        self.values[:, t] = values
        self.log_probs[:, t] = log_probs
        self.pos += 1

    def ordered(self, store: Tensor, rows: Tensor, begin: int, end: int) -> Tensor:
        """Rows (B,) of a store (N, T, ...), positions `begin` to `end`, (B, end - begin, ...)."""
        if not self.shuffled:
            return store[rows, begin:end]
        return store[rows[:, None], self.order[rows, begin:end]]

    def sequences(self, rows: Tensor, begin: int, end: int) -> Sequences:
        """Steps `begin` to `end` of the environments in `rows` (int64, (B,))."""

        def get(store: Tensor) -> Tensor:
            return self.ordered(store, rows, begin, end)

        observations: Observations | None = None
        if isinstance(self.observations, dict):
            observations = {key: get(value) for key, value in self.observations.items()}
        elif self.observations is not None:
            observations = get(self.observations)
        return Sequences(
            observations,
            None if self.embeddings is None else get(self.embeddings),
            get(self.previous),
            get(self.episode_start),
            self.trial_start[rows, begin:end],  # belongs to the position: the block that comes first starts the trial
            get(self.actions),
            {key: get(store) for key, store in self.where.items()},
        )

    def write(self, store: Tensor, rows: Tensor, begin: int, values: Tensor) -> None:
        """Overwrites the positions from `begin` on of a store with values (B, S), wherever these steps are kept."""
        store[rows[:, None], self.order[rows, begin : begin + values.shape[1]]] = values

    def advantages(
        self,
        begin: int,
        end: int,
        last_values: Tensor,
        last_start: Tensor,
        gamma: float,
        gae_lambda: float,
        across_episodes: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Generalised advantages and returns of positions `begin` to `end`.

        Args:
            begin: First position.
            end: One after the last; what follows it is given by the next two arguments.
            last_values: float, (N,); value of the observation at `end`.
            last_start: bool, (N,); whether an episode starts at `end`; a trial, if `across_episodes`.
            gamma: Discount.
            gae_lambda: Lambda.
            across_episodes: Whether only the start of a trial stops the flow.

        Returns:
            float32, (N, end - begin) each.

        Source:
            Schulman et al., 2016; nothing flows across the start of an episode.
        """
        rows = torch.arange(self.n_envs, device=self.device)
        rewards, values, start = (
            self.ordered(store, rows, begin, end).cpu().numpy()
            for store in (self.rewards, self.values, self.episode_start)
        )
        if across_episodes:
            start = self.trial_start[:, begin:end].cpu().numpy()
        next_start = np.concatenate([start[:, 1:], last_start.cpu().numpy()[:, None]], 1)
        advantages = generalized_advantages(rewards, values, next_start, last_values.cpu().numpy(), gamma, gae_lambda)
        return (
            torch.as_tensor(advantages, device=self.device),
            torch.as_tensor(advantages + values, device=self.device),
        )

    def shuffle_episodes(self, end: int, generator: np.random.Generator) -> None:
        """Permutes the completed episodes of each environment's running trial, as whole blocks, among positions 0 to `end`.

        The running episode (the last one that starts before `end`) stays last, steps within an episode keep their order, and so do all
        earlier trials. Needs rollouts that begin with the start of a trial.

        Raises:
            RuntimeError: The rollout does not begin with the start of a trial.

        Source:
            ReLIC release; the paper shuffles to make the policy invariant to the order of past episodes.
        """
        rows = torch.arange(self.n_envs, device=self.device)
        start = self.ordered(self.episode_start, rows, 0, end).cpu().numpy()
        trial = self.trial_start[:, :end].cpu().numpy()
        if not trial[:, 0].all():
            raise RuntimeError("episodes can be shuffled only in rollouts that begin with the start of a trial")
        order = self.order[:, :end].cpu().numpy()
        for i in range(self.n_envs):
            first = int(np.flatnonzero(trial[i])[-1])
            bounds = np.flatnonzero(start[i, first:]) + first
            if len(bounds) < 3:
                continue  # fewer than two completed episodes
            blocks = np.split(order[i, first : bounds[-1]], bounds[1:-1] - first)
            order[i, first : bounds[-1]] = np.concatenate([blocks[j] for j in generator.permutation(len(blocks))])
        self.order[:, :end] = torch.as_tensor(order, device=self.device)
        self.shuffled = True


@njit(cache=True)
def generalized_advantages(
    rewards: np.ndarray,
    values: np.ndarray,
    next_start: np.ndarray,
    last_values: np.ndarray,
    gamma: float,
    gae_lambda: float,
) -> np.ndarray:  # pragma: no cover  (compiled)
    """Advantages, float32, (N, T): A_t = r_t + gamma m V_{t+1} - V_t + gamma lambda m A_{t+1}, m = 0 where an episode starts next.

    Args:
        rewards: float32, (N, T).
        values: float32, (N, T).
        next_start: bool, (N, T); whether an episode starts after the step.
        last_values: float32, (N,); V after the last step.
        gamma: Discount.
        gae_lambda: Lambda.
    """
    n, steps = rewards.shape
    out = np.zeros((n, steps), np.float32)
    for i in range(n):
        advantage = 0.0
        next_value = float(last_values[i])
        for t in range(steps - 1, -1, -1):
            mask = 0.0 if next_start[i, t] else 1.0
            delta = rewards[i, t] + gamma * next_value * mask - values[i, t]
            advantage = delta + gamma * gae_lambda * mask * advantage
            out[i, t] = advantage
            next_value = values[i, t]
    return out
