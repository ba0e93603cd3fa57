"""Long-term states: what becomes of the vectors that leave the last queue of a layer."""

from __future__ import annotations

import abc

import torch
from torch import Tensor, nn


class LongTerm(nn.Module, abc.ABC):
    """State of a constant number of vectors that reads the vectors leaving a queue.

    Attributes:
        length: Number of vectors S in the state.
    """

    length: int

    @abc.abstractmethod
    def write(self, state: Tensor, mask: Tensor, leaving: Tensor) -> tuple[Tensor, Tensor]:
        """Write the vectors that leave a queue.

        Args:
            state: float, (B, S, D); the oldest content first where there is an order.
            mask: bool, (B, S); True where a vector has been written.
            leaving: float, (B, n, D); the oldest first.

        Returns:
            State and mask after it.
        """


class RecurrentState(LongTerm):
    """One vector that a gated recurrent unit updates from the vectors that leave.

        l~ = attention(l, G W_K, G W_V),  l <- GRU(input l~, hidden l)

    The first time it becomes the plain mean of G W_V.

    Args:
        dim: Width D.
    """

    length = 1

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.keys = nn.Linear(dim, dim, bias=False)
        self.values = nn.Linear(dim, dim, bias=False)
        self.cell = nn.GRUCell(dim, dim, bias=False)

    def write(self, state: Tensor, mask: Tensor, leaving: Tensor) -> tuple[Tensor, Tensor]:
        """See `LongTerm.write`."""
        before = state[:, 0]
        query = before * mask  # 0 the first time
        scores = (self.keys(leaving) @ query[..., None])[..., 0] / before.shape[-1] ** 0.5  # (B, n)
        candidate = (scores.softmax(-1)[..., None] * self.values(leaving)).sum(1)
        after = torch.where(mask, self.cell(candidate, before), candidate)
        return after[:, None], torch.ones_like(mask)


class MergingLevels(LongTerm):
    """Levels of a few vectors; a full one merges its two oldest for the next level.

    The last level keeps what it merges. With n vectors a level, a vector that came N vectors ago has been merged about
    log2(N / n) times, until the last level is full.

        merge(a, b) = g a + (1 - g) b + W_2 ReLU(W_1 [a; b]),  g = sigmoid(W_g [a; b])

    Args:
        dim: Width D.
        levels: Number of levels.
        slots: Vectors n in a level; >= 2.
    """

    def __init__(self, dim: int, levels: int, slots: int) -> None:
        super().__init__()
        self.levels, self.slots = levels, slots
        self.length = levels * slots
        self.gate = nn.Linear(2 * dim, dim)
        self.change = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, dim))

    def write(self, state: Tensor, mask: Tensor, leaving: Tensor) -> tuple[Tensor, Tensor]:
        """See `LongTerm.write`; the highest level comes first, and empty slots within a level."""
        contents = list(state.unflatten(1, (self.levels, self.slots)).unbind(1))[::-1]  # the lowest level first
        counts = list(mask.unflatten(1, (self.levels, self.slots)).sum(-1).unbind(1))[::-1]  # (B,) each
        for moving in leaving.unbind(1):
            moves = torch.ones_like(counts[0], dtype=torch.bool)
            for level, (content, count) in enumerate(zip(contents, counts, strict=True)):
                is_full = moves & (count == self.slots)
                merged = self.merge(content[:, 0], content[:, 1])
                is_last = level == self.levels - 1
                front = torch.where(is_full[:, None], merged if is_last else 0.0, content[:, 1])
                entered = torch.cat([front[:, None], content[:, 2:], moving[:, None]], 1)
                contents[level] = torch.where(moves[:, None, None], entered, content)
                counts[level] = torch.where(is_full, count - int(not is_last), count + moves.long())
                moving, moves = merged, is_full
        slot = torch.arange(self.slots, device=mask.device)
        masks = [slot >= self.slots - count[:, None] for count in counts]
        return torch.cat(contents[::-1], 1), torch.cat(masks[::-1], 1)

    def merge(self, older: Tensor, newer: Tensor) -> Tensor:
        """Merge two vectors into one, float (B, D) each."""
        both = torch.cat([older, newer], -1)
        return torch.lerp(newer, older, self.gate(both).sigmoid()) + self.change(both)
