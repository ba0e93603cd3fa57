"""Chunks of memory tokens for hierarchical reading: tokens of one stretch of time, or of one place."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from memenvs.checks import check_int


@dataclass(frozen=True)
class Chunks:
    """Which tokens belong together; each is in one chunk at most.

    Attributes:
        index: int64, (B, C, n); tokens of each chunk, 0 where a chunk has fewer.
        mask: bool, (B, C, n); whether there is a token.
    """

    index: Tensor
    mask: Tensor


def chunks_by_time(held: Tensor, size: int) -> Chunks:
    """The tokens in memory in their order, cut into runs of `size`, the last of which may be shorter.

    Args:
        held: bool, (B, N); which tokens are in memory.
        size: n, >= 1.
    """
    check_int("chunk", size)
    return chunks_by_key((held.cumsum(1) - 1) // size, held, size)


def chunks_by_place(places: Tensor, held: Tensor, size: int) -> Chunks:
    """The tokens of each place in their order, cut into runs of `size`, the last of each place may be shorter.

    Args:
        places: int, (B, N).
        held: bool, (B, N); which tokens are in memory.
        size: n, >= 1.
    """
    check_int("chunk", size)
    key = places.long() * held.shape[1] + ranks_within(places, held) // size
    return chunks_by_key(key, held, size)


def chunks_by_key(keys: Tensor, held: Tensor, size: int) -> Chunks:
    """Tokens with the same key, in the order of keys.

    Args:
        keys: int64, (B, N); at most `size` tokens in memory share one.
        held: bool, (B, N); which tokens are in memory.
        size: n.
    """
    batch, tokens = keys.shape
    keys = keys.masked_fill(~held, torch.iinfo(keys.dtype).max)
    keys, order = keys.sort(dim=1, stable=True)
    there = held.gather(1, order)
    number = F.pad((keys[:, 1:] != keys[:, :-1]).cumsum(1), (1, 0))
    slot = torch.arange(tokens, device=keys.device)
    begins = torch.where(F.pad(keys[:, 1:] != keys[:, :-1], (1, 0), value=True), slot, 0).cummax(1).values
    count = max(1, int((number.masked_fill(~there, -1)).max()) + 1) if tokens else 1
    target = torch.where(there, number * size + slot - begins, count * size)
    room = order.new_zeros(batch, count * size + 1).scatter(1, target, order)[:, :-1]
    mask = there.new_zeros(batch, count * size + 1).scatter(1, target, True)[:, :-1]
    return Chunks(room.unflatten(1, (count, size)), mask.unflatten(1, (count, size)))


def ranks_within(keys: Tensor, held: Tensor) -> Tensor:
    """How many tokens in memory with the same key come before each, int64 (B, N); args as in `chunks_by_key`."""
    keys = keys.long().masked_fill(~held, -1)
    ordered, order = keys.sort(dim=1, stable=True)
    slot = torch.arange(keys.shape[1], device=keys.device).expand_as(keys)
    begins = torch.where(F.pad(ordered[:, 1:] != ordered[:, :-1], (1, 0), value=True), slot, 0).cummax(1).values
    return torch.empty_like(order).scatter_(1, order, slot - begins)
