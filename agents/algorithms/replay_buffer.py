"""Replay buffer of whole episodes, sampled by episode and by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from memenvs.agents.algorithms.replay_file import ReplayContent
from memenvs.agents.algorithms.rollout_buffer import Observations, StoredSteps
from memenvs.agents.memory import EXTRA_INPUTS, ExtraInputs
from memenvs.agents.policies.acting import tensor_type
from memenvs.agents.policies.policy_arguments import has_phase

DEPTH = ("depth", torch.float32)
"""Key and dtype of observations that are stored as 16-bit integers."""
DEPTH_SCALE = 1000.0
"""Stored units in a metre (millimetres)."""
MAX_DEPTH = 32.767
"""Largest stored depth, m: the largest int16 in millimetres."""


@dataclass(frozen=True)
class StepSample:
    """S steps of each of B episodes, drawn to learn from.

    Attributes:
        rows: int64, (B,); rows of the episodes in the buffer.
        steps: int64, (B, S); steps of each episode, in no particular order.
        is_valid: bool, (B, S); False where an episode is shorter than S and `steps` is padding (0).
    """

    rows: Tensor
    steps: Tensor
    is_valid: Tensor


class EpisodeReplayBuffer:
    """Ring buffer of the newest episodes, one per row.

    An episode of T steps has T + 1 positions: the last holds the observation after the last action. A row stores
    observations in the dtype of their space or, with a frozen features extractor, its embeddings in bfloat16 and no
    observation. The key `depth` (float32, metres) is stored as int16 millimetres, up to 32.767 m.

    Args:
        capacity: Number of episodes.
        max_steps: Largest number of steps of an episode, T.
        observation_space: Observation space of one environment.
        device: Device of the tensors.
        embedding_dim: Width of frozen embeddings to store instead of observations; None stores observations.
        required_inputs: Memory inputs to store beside them, see `Memory.required_inputs`.

    Attributes:
        lengths: int64, (capacity,); steps of each episode, 0 where a row is empty.
        terminated: bool, (capacity,); True if the episode terminated, False if the time limit truncated it.
        next: Row that the next episode is written to; it holds the oldest one.

    Source:
        SMT, section on training (a replay buffer of episodes).
    """

    def __init__(
        self,
        capacity: int,
        max_steps: int,
        observation_space: spaces.Space,
        device: torch.device,
        embedding_dim: int | None = None,
        required_inputs: Sequence[str] = (),
    ) -> None:
        self.capacity = capacity
        self.max_steps = max_steps
        self.device = device
        self.next = 0
        self._running = torch.zeros(0, dtype=torch.int64)  # rows of `start_episodes`, until all of them have ended
        self._required_inputs = tuple(required_inputs)

        def zeros(*shape: int, dtype: torch.dtype) -> Tensor:
            return torch.zeros(capacity, max_steps + 1, *shape, dtype=dtype, device=device)

        self._stores = {"action": zeros(dtype=torch.int64), "reward": zeros(dtype=torch.float32)}
        self._has_phase = has_phase(observation_space)
        if self._has_phase:
            self._stores["ignored"] = zeros(dtype=torch.bool)
        is_dict = isinstance(observation_space, spaces.Dict)
        self._depth_is_scaled = False  # True where `depth` is stored in millimetres
        parts: dict[str, spaces.Space] = {"": observation_space}
        if isinstance(observation_space, spaces.Dict):
            parts = dict(observation_space.spaces)
        if embedding_dim is not None:
            self._stores["embedding"] = zeros(embedding_dim, dtype=torch.bfloat16)
        else:
            for key, space in parts.items():
                shape = space.shape or ()
                dtype = tensor_type(torch.as_tensor(np.zeros(0, space.dtype)).dtype)
                if (key, dtype) == DEPTH:
                    self._depth_is_scaled = True
                    dtype = torch.int16
                self._stores[f"observation.{key}" if is_dict else "observation"] = zeros(*shape, dtype=dtype)
        for key in required_inputs:
            dtype, shape = EXTRA_INPUTS[key]
            self._stores[key] = zeros(*shape, dtype=dtype)
        # After the larger ones: where those do not fit into memory, that is known at once.
        self.lengths = torch.zeros(capacity, dtype=torch.int64)
        self.terminated = torch.zeros(capacity, dtype=torch.bool)

    @property
    def nbytes(self) -> int:
        """Memory that the buffer takes, bytes."""
        return sum(store.nbytes for store in self._stores.values())

    @property
    def count(self) -> int:
        """Number of episodes in the buffer."""
        return int((self.lengths > 0).sum())

    @property
    def is_full(self) -> bool:
        """True if every row has an episode."""
        return self.count == self.capacity

    def start_episodes(self, count: int) -> Tensor:
        """Reserve rows for new episodes, in place of the oldest ones.

        Args:
            count: Number of episodes, at most `capacity`.

        Returns:
            int64, (count,); the rows.
        """
        rows = torch.arange(self.next, self.next + count) % self.capacity
        self._running = rows
        self.lengths[rows] = 0
        for store in self._stores.values():
            store[rows] = 0
        return rows

    def discard_running(self) -> None:
        """Give back the rows of the latest `start_episodes`, unless all of its episodes have ended."""
        self.lengths[self._running] = 0
        self._running = self._running[:0]

    def add(
        self,
        rows: Tensor,
        running: Tensor,
        t: int,
        observations: Observations | Tensor,
        extra_inputs: ExtraInputs,
        actions: Tensor,
        rewards: Tensor,
        ignored: Tensor | None = None,
    ) -> None:
        """Store step t of the episodes that are still running.

        Args:
            rows: int64, (B,); rows of the episodes.
            running: bool, (B,); True where the step is stored.
            t: Number of the step, 0 ... T - 1.
            observations: Observations, or embeddings if these are stored, (B, ...).
            extra_inputs: Memory inputs beside the embedding, (B, ...).
            actions: int64, (B,); counted from 0.
            rewards: float, (B,).
            ignored: bool, (B,); True where the environment ignores the action. None: nowhere.
        """
        if ignored is not None:
            self._stores["ignored"][rows[running], t] = ignored[running.to(self.device)]
        if bool(running.all()):  # mostly
            self._store_observations(rows, t, observations, extra_inputs)
            self._stores["action"][rows, t] = actions
            self._stores["reward"][rows, t] = rewards.to(self.device, torch.float32)
            return
        rows = rows[running]
        mask = running.to(self.device)
        if isinstance(observations, dict):
            observations = {key: value[mask] for key, value in observations.items()}
        else:
            observations = observations[mask]
        self._store_observations(rows, t, observations, {key: value[mask] for key, value in extra_inputs.items()})
        self._stores["action"][rows, t] = actions[mask]
        self._stores["reward"][rows, t] = rewards.to(self.device, torch.float32)[mask]

    def end_episodes(
        self,
        rows: Tensor,
        steps: int,
        observations: Observations | Tensor,
        extra_inputs: ExtraInputs,
        terminated: Tensor,
    ) -> None:
        """End some episodes, which can be sampled from now on.

        Args:
            rows: int64, (B,); rows of the episodes.
            steps: Steps of each of them, 1 ... T.
            observations: Their last observations, or embeddings if these are stored, (B, ...).
            extra_inputs: Memory inputs beside the embedding, (B, ...).
            terminated: bool, (B,); True if the episode terminated, False if the time limit truncated it.
        """
        self._store_observations(rows, steps, observations, extra_inputs)
        self.lengths[rows] = steps
        self.terminated[rows] = terminated.cpu()
        if bool((self.lengths[self._running] > 0).all()):
            self.next = (self.next + len(self._running)) % self.capacity
            self._running = self._running[:0]

    def _store_observations(
        self, rows: Tensor, t: int, observations: Observations | Tensor, extra_inputs: ExtraInputs
    ) -> None:
        if "embedding" in self._stores:
            assert isinstance(observations, Tensor)
            self._stores["embedding"][rows, t] = observations.to(torch.bfloat16)
        elif isinstance(observations, dict):
            for key, value in observations.items():
                if key == "depth" and self._depth_is_scaled:
                    value = (value.clamp(0.0, MAX_DEPTH) * DEPTH_SCALE).round().to(torch.int16)
                self._stores[f"observation.{key}"][rows, t] = value
        else:
            self._stores["observation"][rows, t] = observations
        for key in self._required_inputs:
            self._stores[key][rows, t] = extra_inputs[key]

    def sample(self, episodes: int, steps: int, rng: np.random.Generator) -> StepSample:
        """Draw distinct episodes, and distinct steps of each.

        Args:
            episodes: Number of episodes, B; at most `count`.
            steps: Number of steps of each, S; fewer if all drawn episodes are shorter: S is then the longest length.
            rng: Draws both.
        """
        rows = rng.choice(np.flatnonzero(self.lengths.numpy()), episodes, replace=False)
        lengths = self.lengths.numpy()[rows]
        # The first S entries of a random order of an episode's steps are S distinct steps; absent steps sort last.
        sort_key = rng.random((episodes, int(lengths.max())))
        sort_key[np.arange(sort_key.shape[1]) >= lengths[:, None]] = 2.0
        drawn = sort_key.argsort(1)[:, :steps]  # (B, S)
        is_valid = drawn < lengths[:, None]
        return StepSample(
            torch.as_tensor(rows),
            torch.as_tensor(np.where(is_valid, drawn, 0)).to(self.device),
            torch.as_tensor(is_valid).to(self.device),
        )

    def read(self, rows: Tensor, steps: Tensor) -> StoredSteps:
        """Read steps of some episodes.

        Args:
            rows: int64, (B,); rows of the episodes.
            steps: int64, (B, P); steps of each, 0 ... T (T is the observation after the last action).
        """
        index = rows.to(self.device)[:, None]  # (B, 1)
        slots = steps + self._stores["action"].shape[1] * index  # (B, P), among those of all episodes

        def get(name: str) -> Tensor:  # `index_select` copies a step at once, indexing each number
            return self._stores[name].flatten(0, 1).index_select(0, slots.flatten()).unflatten(0, slots.shape)

        before = (steps - 1).clamp(min=0)
        previous_action = torch.where(steps > 0, 1 + self._stores["action"][index, before], 0)
        if self._has_phase:
            previous_action = previous_action.masked_fill(self._stores["ignored"][index, before], 0)
        observations: Observations | None = None
        if "observation" in self._stores:
            observations = get("observation")
        elif "embedding" not in self._stores:
            keys = [name.partition(".")[2] for name in self._stores if name.startswith("observation.")]
            observations = {key: get(f"observation.{key}") for key in keys}
            if self._depth_is_scaled:
                observations["depth"] = observations["depth"].float() / DEPTH_SCALE
        return StoredSteps(
            observations=observations,
            embeddings=get("embedding") if "embedding" in self._stores else None,
            previous_action=previous_action,
            extra_inputs={key: get(key) for key in self._required_inputs},
        )

    def actions(self, rows: Tensor, steps: Tensor) -> Tensor:
        """Read the actions taken at some steps, int64 (B, S); arguments as in `read`."""
        return self._stores["action"][rows.to(self.device)[:, None], steps]

    def n_step_returns(
        self, rows: Tensor, steps: Tensor, n_step: int, gamma: float, min_reward: float = -math.inf
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Sum the discounted rewards of n steps, and find the step to bootstrap from.

        Args:
            rows: int64, (B,); rows of the episodes.
            steps: int64, (B, S); steps of each, before its end.
            n_step: Number of rewards, n; fewer where the episode ends before.
            gamma: Discount.
            min_reward: Value that lower rewards are raised to.

        Returns:
            Sum of the discounted rewards, float32 (B, S).
            Bootstrap step, int64 (B, S).
            Factor of its value, float32 (B, S): gamma to the power of the number of rewards, or 0 at the end of a
            terminated episode.

        Source:
            Sutton and Barto, 2018, equation 7.1, with an action value as the bootstrap.
        """
        length = self.lengths[rows].to(self.device)[:, None]  # (B, 1)
        index = rows.to(self.device)[:, None]  # (B, 1)
        total = torch.zeros(steps.shape, device=self.device)  # (B, S)
        for k in range(n_step):
            step = steps + k
            reward = self._stores["reward"][index, step.clamp(max=self.max_steps)].clamp(min=min_reward)
            total += gamma**k * torch.where(step < length, reward, 0.0)
        bootstrap = torch.minimum(steps + n_step, length)
        is_over = (bootstrap == length) & self.terminated[rows].to(self.device)[:, None]
        return total, bootstrap, torch.where(is_over, 0.0, gamma ** (bootstrap - steps).float())

    def save(self, path: str | PathLike[str], stamp: int) -> None:
        """Write the episodes to a file, which is complete or not there.

        Args:
            path: The file (safetensors).
            stamp: A number that `load` must be given again, such as the environment steps of the learner.
        """
        positions = self._filled_positions()
        tensors = {name: store[positions].cpu().contiguous() for name, store in self._stores.items()}
        tensors |= {"lengths": self.lengths, "terminated": self.terminated}
        ReplayContent(tensors, self.next, stamp).write(Path(path))

    def load(self, path: str | PathLike[str], stamp: int) -> None:
        """Replace the episodes by those of a file.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is damaged, not a replay, or of another stamp, size or content.
        """
        path = Path(path)
        content = ReplayContent.read(path, stamp)
        content.check(path, self.capacity, self.max_steps, self._stores)
        self.lengths = content.tensors["lengths"]
        self.terminated = content.tensors["terminated"]
        self.next = content.next
        self._running = self._running[:0]
        positions = self._filled_positions()
        for name, store in self._stores.items():
            store.zero_()
            store[positions] = content.tensors[name].to(self.device)

    def _filled_positions(self) -> tuple[Tensor, Tensor]:
        """Row and position of everything that belongs to an episode, int64 (positions,) each."""
        positions = torch.arange(self.max_steps + 1)
        is_filled = (positions <= self.lengths[:, None]) & (self.lengths > 0)[:, None]  # (capacity, T + 1)
        row, position = is_filled.nonzero(as_tuple=True)
        return row.to(self.device), position.to(self.device)
