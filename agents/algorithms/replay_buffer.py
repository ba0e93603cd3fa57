"""What off-policy learning remembers: whole episodes in a ring, and which of their decisions are learned from next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from gymnasium import spaces
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from memenvs.agents.algorithms.rollout_buffer import Observations
from memenvs.agents.memory import EXTRA_INPUTS, ExtraInputs
from memenvs.files import atomic_replace

DEPTH = "depth", torch.float32
MILLIMETRES = 1000.0
MAX_DEPTH = 32.767
"""Metres; what 16 bits of millimetres hold."""


@dataclass(frozen=True)
class Steps:
    """Steps of some episodes.

    Attributes:
        observations: As the space says, (B, P, ...), or None where embeddings are stored instead.
        embeddings: bfloat16, (B, P, F), or None.
        previous: int64, (B, P); 1 + action before, 0 at the first step of an episode.
        where: What the memory asks for, (B, P, ...) each.
    """

    observations: Observations | None
    embeddings: Tensor | None
    previous: Tensor
    where: ExtraInputs


@dataclass(frozen=True)
class Decisions:
    """Steps that get a loss.

    Attributes:
        rows: int64, (B,); where their episodes are.
        at: int64, (B, S); the steps, in no particular order.
        given: bool, (B, S); False where the episode is shorter than S and `at` is padding (0).
    """

    rows: Tensor
    at: Tensor
    given: Tensor


class EpisodeReplayBuffer:
    """The newest episodes, one a row; T steps of which the last is followed by one more observation, so T + 1 positions.

    Stored are either observations, in the type of their space, or embeddings of a frozen network in bfloat16, then no image is. `depth` in
    metres is stored in millimetres of 16 bits, up to 32.767 m; 0 is unknown, as it comes.

    Args:
        capacity: Episodes.
        max_steps: Steps that an episode may have, T.
        observation_space: Of one environment.
        device: Where the tensors live.
        embedding_dim: Width of frozen embeddings to store instead of observations; None stores observations.
        asked: What the memory asks for beside the embedding (`Memory.required_inputs`).

    Attributes:
        lengths: int64, (capacity,); steps of each episode, 0 where a row is empty.
        terminated: bool, (capacity,); whether nothing comes after the episode (False if only the clock ended it).
        next: Row of the oldest episode, which goes first.

    Source:
        SMT, section on training (a replay of episodes); sizes as in our specification.
    """

    def __init__(
        self,
        capacity: int,
        max_steps: int,
        observation_space: spaces.Space,
        device: torch.device,
        embedding_dim: int | None = None,
        asked: Sequence[str] = (),
    ) -> None:
        self.capacity, self.max_steps, self.device = capacity, max_steps, device
        self.lengths = torch.zeros(capacity, dtype=torch.int64)
        self.terminated = torch.zeros(capacity, dtype=torch.bool)
        self.next = 0

        def room(*shape: int, dtype: torch.dtype) -> Tensor:
            return torch.zeros(capacity, max_steps + 1, *shape, dtype=dtype, device=device)

        self._stores = {"action": room(dtype=torch.int64), "reward": room(dtype=torch.float32)}
        if embedding_dim is not None:
            self._stores["embedding"] = room(embedding_dim, dtype=torch.bfloat16)
        else:
            is_dict = isinstance(observation_space, spaces.Dict)
            parts: dict[str, spaces.Space] = {"": observation_space}
            if isinstance(observation_space, spaces.Dict):
                parts = dict(observation_space.spaces)
            for key, space in parts.items():
                shape, dtype = space.shape or (), torch.as_tensor(np.zeros(0, space.dtype)).dtype
                if (key, dtype) == DEPTH:
                    dtype = torch.int16
                self._stores[f"observation.{key}" if is_dict else "observation"] = room(*shape, dtype=dtype)
        self._asked = tuple(asked)
        for key in asked:
            dtype, shape = EXTRA_INPUTS[key]
            self._stores[key] = room(*shape, dtype=dtype)

    @property
    def nbytes(self) -> int:
        """Memory that the replay takes."""
        return sum(store.nbytes for store in self._stores.values())

    @property
    def count(self) -> int:
        """How many rows hold an episode."""
        return int((self.lengths > 0).sum())

    @property
    def is_full(self) -> bool:
        """Whether every row holds an episode."""
        return self.count == self.capacity

    # ------------------------------------------------------------------ writing

    def begin(self, count: int) -> Tensor:
        """Rows (int64, (count,), at most `capacity`) for new episodes; the oldest ones in them are forgotten."""
        rows = torch.arange(self.next, self.next + count) % self.capacity
        self.next = (self.next + count) % self.capacity
        self.lengths[rows] = 0
        for store in self._stores.values():
            store[rows] = 0
        return rows

    def forget(self, rows: Tensor) -> None:
        """Gives the rows of the latest `begin` back, for episodes that did not come to their end."""
        self.next = int(rows[0])
        self.lengths[rows] = 0

    def add(
        self,
        rows: Tensor,
        running: Tensor,
        t: int,
        seen: Observations | Tensor,
        where: ExtraInputs,
        actions: Tensor,
        rewards: Tensor,
    ) -> None:
        """Stores step t of those episodes that are running; each argument has a row for each episode.

        Args:
            rows: int64, (B,).
            running: bool, (B,); whether the step is stored.
            t: The step, 0 ... T - 1.
            seen: Observations, or embeddings where these are stored.
            where: What the memory asks for.
            actions: int64, (B,); counted from 0.
            rewards: float, (B,).
        """
        rows, now = rows[running], running.to(self.device)
        seen = {key: value[now] for key, value in seen.items()} if isinstance(seen, dict) else seen[now]
        self._see(rows, t, seen, {key: value[now] for key, value in where.items()})
        self._stores["action"][rows, t] = actions[now]
        self._stores["reward"][rows, t] = rewards.to(self.device, torch.float32)[now]

    def end(
        self, rows: Tensor, steps: int, seen: Observations | Tensor, where: ExtraInputs, terminated: Tensor
    ) -> None:
        """Ends some episodes after as many steps; from now on they are drawn.

        Args:
            rows: int64, (B,).
            steps: 1 ... T.
            seen: Their last observations, or embeddings of them.
            where: What the memory asks for.
            terminated: bool, (B,).
        """
        self._see(rows, steps, seen, where)
        self.lengths[rows] = steps
        self.terminated[rows] = terminated.cpu()

    def _see(self, rows: Tensor, t: int, seen: Observations | Tensor, where: ExtraInputs) -> None:
        if "embedding" in self._stores:
            assert isinstance(seen, Tensor)
            self._stores["embedding"][rows, t] = seen.to(torch.bfloat16)
        elif isinstance(seen, dict):
            for key, value in seen.items():
                if (key, value.dtype) == DEPTH:
                    value = (value.clamp(0.0, MAX_DEPTH) * MILLIMETRES).round().to(torch.int16)
                self._stores[f"observation.{key}"][rows, t] = value
        else:
            self._stores["observation"][rows, t] = seen
        for key in self._asked:
            self._stores[key][rows, t] = where[key]

    # ------------------------------------------------------------------ reading

    def draw(self, episodes: int, decisions: int, rng: np.random.Generator) -> Decisions:
        """Decisions to learn from: different episodes, and different steps in each.

        Args:
            episodes: B; at most as many as are there.
            decisions: S, for each of them.
            rng: What draws.
        """
        held = np.flatnonzero(self.lengths.numpy())
        rows = rng.choice(held, episodes, replace=False)
        lengths = self.lengths.numpy()[rows]
        order = rng.random((episodes, int(lengths.max())))
        order[np.arange(order.shape[1]) >= lengths[:, None]] = 2.0  # steps that the episode does not have come last
        at = order.argsort(1)[:, :decisions]
        given = at < lengths[:, None]
        return Decisions(
            torch.as_tensor(rows),
            torch.as_tensor(np.where(given, at, 0)).to(self.device),
            torch.as_tensor(given).to(self.device),
        )

    def read(self, rows: Tensor, at: Tensor) -> Steps:
        """Steps of some episodes.

        Args:
            rows: int64, (B,).
            at: int64, (B, P); steps of each, 0 ... T (T is what was seen after the last action).
        """
        rows = rows.to(self.device)[:, None]

        def get(name: str) -> Tensor:
            return self._stores[name][rows, at]

        previous = torch.where(at > 0, 1 + self._stores["action"][rows, (at - 1).clamp(min=0)], 0)
        observations: Observations | None = None
        if "observation" in self._stores:
            observations = get("observation")
        elif "embedding" not in self._stores:
            keys = [name.partition(".")[2] for name in self._stores if name.startswith("observation.")]
            observations = {key: get(f"observation.{key}") for key in keys}
            if "depth" in observations and observations["depth"].dtype == torch.int16:
                observations["depth"] = observations["depth"].float() / MILLIMETRES
        return Steps(
            observations,
            get("embedding") if "embedding" in self._stores else None,
            previous,
            {key: get(key) for key in self._asked},
        )

    def actions(self, rows: Tensor, at: Tensor) -> Tensor:
        """int64, (B, S); the actions taken at steps `at` (int64, (B, S)) of the episodes in `rows` (int64, (B,))."""
        return self._stores["action"][rows.to(self.device)[:, None], at]

    def returns(
        self, rows: Tensor, at: Tensor, n_step: int, gamma: float, lowest: float = -math.inf
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rewards of the next n steps, and what follows them.

        Args:
            rows: int64, (B,).
            at: int64, (B, S); steps of each, before its end.
            n_step: n; fewer are left at the end of an episode.
            gamma: Discount.
            lowest: What lower rewards count as.

        Returns:
            Discounted sum of the rewards, float32 (B, S); the step whose value follows, int64 (B, S); and what that value is multiplied
            with, float32 (B, S): gamma to the number of rewards, 0 after the end of a terminated episode.
        """
        length = self.lengths[rows].to(self.device)[:, None]
        reward = self._stores["reward"]
        index = rows.to(self.device)[:, None]
        total = torch.zeros(at.shape, device=self.device)
        for k in range(n_step):
            step = at + k
            now = reward[index, step.clamp(max=self.max_steps)].clamp(min=lowest)
            total += gamma**k * torch.where(step < length, now, 0.0)
        then = torch.minimum(at + n_step, length)
        is_over = (then == length) & self.terminated[rows].to(self.device)[:, None]
        return total, then, torch.where(is_over, 0.0, gamma ** (then - at).float())

    # ------------------------------------------------------------------ files

    def save(self, path: str | PathLike[str], stamp: int) -> None:
        """Writes the episodes to a file, which is whole or not there.

        Args:
            path: The file (safetensors).
            stamp: A number that `load` asks for again.
        """
        path = Path(path)
        where = self._held()
        tensors = {name: store[where].cpu().contiguous() for name, store in self._stores.items()}
        tensors |= {"lengths": self.lengths, "terminated": self.terminated}
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_replace(path) as temporary:
            save_file(tensors, temporary, {"stamp": str(stamp), "next": str(self.next)})

    def load(self, path: str | PathLike[str], stamp: int) -> None:
        """Replaces the episodes by those of a file.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is cut short, not ours, of another moment or of another replay.
        """
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"no file {str(path)!r} with a replay")
        try:
            with safe_open(path, "pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no dict)
                head = file.metadata() or {}
        except SafetensorError as error:
            raise ValueError(f"{path}: not a whole replay ({error}); was it cut short?") from None
        if head.get("stamp") != str(stamp):
            raise ValueError(f"{path}: must be the replay of environment step {stamp}, got that of {head.get('stamp')}")
        names = {"lengths", "terminated", *self._stores}
        if tensors.keys() != names:
            raise ValueError(f"{path}: a replay of this learner must have {sorted(names)}, got {sorted(tensors)}")
        lengths = tensors["lengths"]
        if len(lengths) != self.capacity or int(lengths.max()) > self.max_steps:
            raise ValueError(
                f"{path}: is of another replay: must be of {self.capacity} episodes of at most {self.max_steps} steps, got "
                f"{len(lengths)} of at most {int(lengths.max())}"
            )
        positions = int((lengths[lengths > 0] + 1).sum())
        for name, store in self._stores.items():
            own, got = ((positions, *store.shape[2:]), store.dtype), (tuple(tensors[name].shape), tensors[name].dtype)
            if own != got:
                raise ValueError(f"{path}: is of another replay: {name!r} must be {own}, got {got}")
        self.lengths, self.terminated, self.next = lengths, tensors["terminated"], int(head["next"])
        where = self._held()
        for name, store in self._stores.items():
            store.zero_()
            store[where] = tensors[name].to(self.device)

    def _held(self) -> tuple[Tensor, Tensor]:
        """Row and position of everything that belongs to an episode."""
        positions = torch.arange(self.max_steps + 1)
        held = (positions <= self.lengths[:, None]) & (self.lengths > 0)[:, None]
        row, position = held.nonzero(as_tuple=True)
        return row.to(self.device), position.to(self.device)
