"""Chunks of memory tokens for hierarchical reading: steps in a row, or at one place."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from memenvs.checks import check_int


@dataclass(frozen=True)
class Chunks:
    """Tokens that belong together; each is in one chunk at most.

    Attributes:
        index: int64, (B, C, n); tokens of each chunk, 0 where a chunk has fewer.
        mask: bool, (B, C, n); True where there is a token.
    """

    index: Tensor
    mask: Tensor


def chunks_by_time(in_memory: Tensor, size: int) -> Chunks:
    """Cut the tokens in memory into chunks of `size`; the last may be shorter.

    Args:
        in_memory: bool, (B, N).
        size: n, >= 1.
    """
    check_int("chunk", size)
    return chunks_by_key((in_memory.cumsum(1) - 1) // size, in_memory, size)


def chunks_by_place(places: Tensor, in_memory: Tensor, size: int) -> Chunks:
    """Cut the tokens of each place into chunks of `size`; the last may be shorter.

    Args:
        places: int, (B, N).
        in_memory: bool, (B, N).
        size: n, >= 1.
    """
    check_int("chunk", size)
    key = places.long() * in_memory.shape[1] + ranks_within(places, in_memory) // size
    return chunks_by_key(key, in_memory, size)


def chunks_by_key(keys: Tensor, in_memory: Tensor, size: int) -> Chunks:
    """Group tokens with the same key; chunks are in the order of keys.

    Args:
        keys: int64, (B, N), N >= 1; at most `size` tokens in memory share one.
        in_memory: bool, (B, N).
        size: n.
    """
    batch, tokens = keys.shape
    keys = keys.masked_fill(~in_memory, torch.iinfo(keys.dtype).max)  # tokens that are not in memory go last
    keys, order = keys.sort(dim=1, stable=True)
    exists = in_memory.gather(1, order)
    chunk = F.pad((keys[:, 1:] != keys[:, :-1]).cumsum(1), (1, 0))  # (B, N): number of the chunk of each sorted token
    rank = torch.arange(tokens, device=keys.device) - _first_of_run(keys)  # place within the chunk
    count = int(chunk.masked_fill(~exists, 0).max()) + 1
    slot = torch.where(exists, chunk * size + rank, count * size)  # one slot more for what is not in memory
    index = order.new_zeros(batch, count * size + 1).scatter(1, slot, order)[:, :-1]
    mask = exists.new_zeros(batch, count * size + 1).scatter(1, slot, True)[:, :-1]
    return Chunks(index.unflatten(1, (count, size)), mask.unflatten(1, (count, size)))


def ranks_within(keys: Tensor, in_memory: Tensor) -> Tensor:
    """Count the earlier tokens with the same key, int64 (B, N); args as in `chunks_by_key`."""
    keys = keys.long().masked_fill(~in_memory, -1)
    ordered, order = keys.sort(dim=1, stable=True)
    position = torch.arange(keys.shape[1], device=keys.device).expand_as(keys)
    return torch.empty_like(order).scatter_(1, order, position - _first_of_run(ordered))


def _first_of_run(ordered: Tensor) -> Tensor:
    """Position at which the run of equal keys around each sorted key begins, int64 (B, N)."""
    position = torch.arange(ordered.shape[1], device=ordered.device)
    begins = F.pad(ordered[:, 1:] != ordered[:, :-1], (1, 0))  # a new run; the first one begins at 0 in any case
    return torch.where(begins, position, 0).cummax(1).values
