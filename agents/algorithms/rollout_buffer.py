"""Rollout buffer of whole sequences, one per environment, whose episodes can be reordered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from memenvs.agents.memory import EXTRA_INPUTS, ExtraInputs
from memenvs.agents.memory.base import STRATEGY
from memenvs.agents.policies.acting import tensor_type
from memenvs.agents.policies.memory_policy import MemoryPolicy

Observations = Tensor | dict[str, Tensor]


@contextmanager
def allocating(what: str) -> Iterator[None]:
    """Raise a ValueError where a buffer does not fit into memory.

    Args:
        what: Settings that decide its size, for the message.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{what} must be smaller, so that the buffer fits into memory ({reason})") from error


@dataclass(frozen=True)
class StoredSteps:
    """S steps of B sequences, as a buffer stores them.

    Attributes:
        observations: Observations, (B, S, ...) each, or None where embeddings are stored instead.
        embeddings: bfloat16, (B, S, F); embeddings of a frozen features extractor, or None.
        previous_action: int64, (B, S); 0 for none, else 1 + the action before.
        extra_inputs: Memory inputs beside the embedding, (B, S, ...) each.
    """

    observations: Observations | None
    embeddings: Tensor | None
    previous_action: Tensor
    extra_inputs: ExtraInputs

    def features(self, policy: MemoryPolicy) -> Tensor:
        """Encode the observations, or read their embeddings; float (B, S, F)."""
        if self.embeddings is not None:
            return self.embeddings.to(torch.float32)
        observations: Any = self.observations
        flat: Any = (  # (B, S, ...) -> (B * S, ...)
            {key: value.flatten(0, 1) for key, value in observations.items()}
            if isinstance(observations, dict)
            else observations.flatten(0, 1)
        )
        return policy.features(flat).unflatten(0, self.previous_action.shape[:2])


@dataclass(frozen=True)
class RolloutSequences(StoredSteps):
    """S consecutive steps of B environments, in the current order of their episodes.

    Attributes:
        episode_start: bool, (B, S).
        trial_start: bool, (B, S).
        actions: Actions counted from 0, (B, S, ...).
    """

    episode_start: Tensor
    trial_start: Tensor
    actions: Tensor


class TrialRolloutBuffer:
    """Rollout buffer for T steps of N environments.

    Observations and actions are stored in the types of their spaces, rewards, values and log probabilities in float32,
    embeddings of a frozen features extractor in bfloat16.

    A step stays in the slot that it was written to. `order[i, p]` is the slot of the step at position p of environment
    i, so that shuffling episodes permutes `order` and copies nothing. Only `trial_start` is stored by position:
    whichever episode comes first starts the trial.

    Args:
        n_envs: Number of environments, N.
        n_steps: Steps of a rollout, T.
        observation_space: Observation space of one environment.
        action_space: Action space of one environment.
        device: Device of the tensors.
        embedding_dim: Width of frozen embeddings to store instead of observations; None stores observations.
        required_inputs: Memory inputs to store beside them, see `Memory.required_inputs`.
        with_strategy: Whether to store the memory's eviction strategy too, see `StepInputs.strategy`.

    Attributes:
        pos: Number of steps written.
    """

    def __init__(
        self,
        n_envs: int,
        n_steps: int,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        device: torch.device,
        embedding_dim: int | None = None,
        required_inputs: Sequence[str] = (),
        with_strategy: bool = False,
    ) -> None:
        self.n_envs = n_envs
        self.n_steps = n_steps
        self.device = device

        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(n_envs, n_steps, *shape, dtype=dtype, device=device)  # (N, T, ...)

        def zeros_of(space: spaces.Space) -> Tensor:
            return zeros(*(space.shape or ()), dtype=tensor_type(torch.as_tensor(np.zeros(0, space.dtype)).dtype))

        self.observations: Observations | None = None
        self.embeddings: Tensor | None = None
        if embedding_dim is not None:
            self.embeddings = zeros(embedding_dim, dtype=torch.bfloat16)
        elif isinstance(observation_space, spaces.Dict):
            self.observations = {key: zeros_of(space) for key, space in observation_space.spaces.items()}
        else:
            self.observations = zeros_of(observation_space)
        self.extra_inputs = {
            key: zeros(*shape, dtype=dtype) for key, (dtype, shape) in EXTRA_INPUTS.items() if key in required_inputs
        }
        if with_strategy:
            self.extra_inputs[STRATEGY] = zeros(dtype=torch.int64)
        self.actions = zeros_of(action_space)
        self.previous_action = zeros(dtype=torch.int64)
        self.episode_start = zeros(dtype=torch.bool)
        self.trial_start = zeros(dtype=torch.bool)
        self.rewards = zeros()
        self.values = zeros()
        self.log_probs = zeros()
        self.order = torch.arange(n_steps, device=device).repeat(n_envs, 1)  # (N, T)
        self.shuffled = False
        self.pos = 0

    def reset(self) -> None:
        """Empty the buffer."""
        self.pos = 0
        self.shuffled = False
        self.order.copy_(torch.arange(self.n_steps, device=self.device).expand_as(self.order))

    def add(
        self,
        observations: Observations,
        embeddings: Tensor,
        previous_action: Tensor,
        episode_start: Tensor,
        trial_start: Tensor,
        actions: Tensor,
        rewards: Tensor,
        values: Tensor,
        log_probs: Tensor,
        extra_inputs: ExtraInputs | None = None,
    ) -> None:
        """Append one step of every environment.

        Args:
            observations: (N, ...), or a dict of such; not stored where the buffer stores embeddings.
            embeddings: float, (N, D); the encoder's output.
            previous_action: int64, (N,), or float, (N, A); the action before this step.
            episode_start: bool, (N,).
            trial_start: bool, (N,).
            actions: As `previous_action`; taken at this step.
            rewards: float, (N,); that followed.
            values: float, (N,); the critic's estimates.
            log_probs: float, (N,); of the actions, natural logarithm.
            extra_inputs: Key -> (N, ...); pose, place and whatever else the memory takes.
        """
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
        for key, store in self.extra_inputs.items():
            assert extra_inputs is not None
            store[:, t] = extra_inputs[key]
        self.previous_action[:, t] = previous_action
        self.episode_start[:, t] = episode_start
        self.trial_start[:, t] = trial_start
        self.actions[:, t] = actions
        self.rewards[:, t] = rewards
        self.values[:, t] = values
        self.log_probs[:, t] = log_probs
        self.pos += 1

    def ordered(self, store: Tensor, rows: Tensor, begin: int, end: int) -> Tensor:
        """Read positions of a store in the current order of episodes.

        Args:
            store: (N, T, ...); one of the buffer's tensors.
            rows: int64, (B,); environments.
            begin: First position.
            end: One after the last position.

        Returns:
            Tensor (B, end - begin, ...).
        """
        return self._reader(rows, begin, end)(store)

    def _reader(self, rows: Tensor, begin: int, end: int) -> Callable[[Tensor], Tensor]:
        """Return what reads a store as `ordered` does; `index_select` copies a step at once, indexing each number."""
        if not self.shuffled:
            return lambda store: store[:, begin:end].index_select(0, rows)
        slots = self.order.index_select(0, rows)[:, begin:end] + self.n_steps * rows[:, None]  # among all N T
        return lambda store: store.flatten(0, 1).index_select(0, slots.flatten()).unflatten(0, slots.shape)

    def sequences(self, rows: Tensor, begin: int, end: int) -> RolloutSequences:
        """Read positions of some environments; arguments as in `ordered`."""
        get = self._reader(rows, begin, end)
        observations: Observations | None = None
        if isinstance(self.observations, dict):
            observations = {key: get(value) for key, value in self.observations.items()}
        elif self.observations is not None:
            observations = get(self.observations)
        return RolloutSequences(
            observations=observations,
            embeddings=None if self.embeddings is None else get(self.embeddings),
            previous_action=get(self.previous_action),
            episode_start=get(self.episode_start),
            # by position: the first episode starts the trial
            trial_start=self.trial_start[:, begin:end].index_select(0, rows),
            actions=get(self.actions),
            extra_inputs={key: get(store) for key, store in self.extra_inputs.items()},
        )

    def write(self, store: Tensor, rows: Tensor, begin: int, values: Tensor) -> None:
        """Overwrite positions of a store, in the current order of episodes.

        Args:
            store: (N, T, ...); one of the buffer's tensors.
            rows: int64, (B,); environments.
            begin: First position.
            values: (B, S, ...); values of S positions from `begin` on.
        """
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
        """Compute generalised advantages and returns of positions `begin` to `end`.

        Args:
            begin: First position.
            end: One after the last position.
            last_values: float, (N,); value of the observation at `end`.
            last_start: bool, (N,); True where an episode starts at `end` (a trial, if `across_episodes`).
            gamma: Discount.
            gae_lambda: Lambda.
            across_episodes: If True, advantages stop at the start of a trial only; else at the start of an episode.

        Returns:
            Advantages and returns, float32, (N, end - begin) each.

        Source:
            Schulman et al., 2016, equation 16.
        """
        rows = torch.arange(self.n_envs, device=self.device)
        rewards, values, start = (
            self.ordered(store, rows, begin, end).cpu().numpy()
            for store in (self.rewards, self.values, self.episode_start)
        )  # (N, S) each
        if across_episodes:
            start = self.trial_start[:, begin:end].cpu().numpy()
        next_start = np.concatenate([start[:, 1:], last_start.cpu().numpy()[:, None]], 1)  # (N, S)
        advantages = generalized_advantages(rewards, values, next_start, last_values.cpu().numpy(), gamma, gae_lambda)
        return (
            torch.as_tensor(advantages, device=self.device),
            torch.as_tensor(advantages + values, device=self.device),
        )

    def shuffle_episodes(self, end: int, generator: np.random.Generator) -> None:
        """Permute the completed episodes of the current trial of each environment.

        Positions 0 to `end` take part. Episodes move as whole blocks: steps within one keep their order. The running
        episode (the last that starts before `end`) stays last, and earlier trials stay in place.

        Args:
            end: One after the last position.
            generator: Draws the permutations.

        Raises:
            RuntimeError: The rollout does not begin with the start of a trial.

        Source:
            ReLIC release; the paper shuffles to make the policy invariant to the order of past episodes.
        """
        rows = torch.arange(self.n_envs, device=self.device)
        episode_start = self.ordered(self.episode_start, rows, 0, end).cpu().numpy()  # (N, end)
        trial_start = self.trial_start[:, :end].cpu().numpy()
        if not trial_start[:, 0].all():
            raise RuntimeError("episodes can be shuffled only in rollouts that begin with the start of a trial")
        order = self.order[:, :end].cpu().numpy()
        for i in range(self.n_envs):
            first = int(np.flatnonzero(trial_start[i])[-1])  # first position of the current trial
            bounds = np.flatnonzero(episode_start[i, first:]) + first  # starts of its episodes
            if len(bounds) < 3:
                continue  # fewer than two completed episodes
            blocks = np.split(order[i, first : bounds[-1]], bounds[1:-1] - first)
            order[i, first : bounds[-1]] = np.concatenate([blocks[j] for j in generator.permutation(len(blocks))])
        self.order[:, :end] = torch.as_tensor(order, device=self.device)
        self.shuffled = True


def generalized_advantages(
    rewards: np.ndarray,
    values: np.ndarray,
    next_start: np.ndarray,
    last_values: np.ndarray,
    gamma: float,
    gae_lambda: float,
) -> np.ndarray:
    """Compute generalised advantages.

    A_t = r_t + gamma m_t V_{t+1} - V_t + gamma lambda m_t A_{t+1},
    where m_t is 0 if an episode starts at t + 1, else 1.

    Args:
        rewards: float32, (N, T).
        values: float32, (N, T).
        next_start: bool, (N, T); True if an episode starts after the step.
        last_values: float32, (N,); V after the last step.
        gamma: Discount.
        gae_lambda: Lambda.

    Returns:
        float32, (N, T).

    Source:
        Schulman et al., 2016, equation 16, as a recursion from the last step to the first.
    """
    rewards, values = rewards.astype(np.float64), values.astype(np.float64)
    mask = np.where(next_start, 0.0, 1.0)
    out = np.zeros(rewards.shape, np.float32)
    advantage, next_value = np.zeros(len(rewards)), last_values.astype(np.float64)
    for t in range(rewards.shape[1] - 1, -1, -1):
        delta = rewards[:, t] + gamma * next_value * mask[:, t] - values[:, t]
        advantage = delta + gamma * gae_lambda * mask[:, t] * advantage
        out[:, t] = advantage
        next_value = values[:, t]
    return out
