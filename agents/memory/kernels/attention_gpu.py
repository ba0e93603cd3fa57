"""Attention in windows on a GPU by FlexAttention, which stores no T x M mask."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

BLOCK = 128
"""Queries, and keys, in a block."""


def flex_windows(q: Tensor, k: Tensor, v: Tensor, first: Tensor, last: Tensor, sinks: int) -> Tensor:
    """Attend from each query to the sinks and to one run of keys, with scale 1 / sqrt(width).

    Args:
        q: float, (B, heads, T, width), on a GPU; the width is 16 or more.
        k: float, (B, heads, M, width).
        v: float, (B, heads, M, width).
        first: int64, (B or 1, T); first key of the run, counted with the sinks.
        last: int64, (B or 1, T); last key of the run.
        sinks: Keys at the front that every query attends to.

    Returns:
        float, (B, heads, T, width).
    """
    out: Tensor = _compiled()(q, k, v, block_mask=window_blocks(first, last, sinks, k.shape[-2]))
    return out


def window_blocks(first: Tensor, last: Tensor, sinks: int, keys: int) -> BlockMask:
    """Make the block mask of windows, without a matrix of queries by keys.

    Args:
        first: As in `flex_windows`, and so are `last` and `sinks`.
        last: See `first`.
        sinks: See `first`.
        keys: Number of keys, M.
    """
    steps = first.shape[1]
    padding = -steps % BLOCK
    low = F.pad(first, (0, padding), value=keys).unflatten(1, (-1, BLOCK)).amin(-1) // BLOCK  # (B, blocks of queries)
    high = F.pad(last, (0, padding)).unflatten(1, (-1, BLOCK)).amax(-1) // BLOCK
    block = torch.arange(-(-keys // BLOCK), device=first.device)
    reached = (block >= low[..., None]) & (block <= high[..., None]) | (block * BLOCK < sinks)
    # as `from_kv_blocks` takes them, for each block of queries: how many blocks of keys it reaches, and these first
    kv_num_blocks = reached.sum(-1, dtype=torch.int32)
    kv_indices = reached.int().argsort(dim=-1, descending=True, stable=True).int()

    def attends(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        row = b if first.shape[0] > 1 else 0
        return (j < sinks) | ((j >= first[row, i]) & (j <= last[row, i]))

    return BlockMask.from_kv_blocks(
        kv_num_blocks[:, None], kv_indices[:, None], BLOCK_SIZE=BLOCK, mask_mod=attends, seq_lengths=(steps, keys)
    )


@cache
def _compiled() -> Any:
    """Compile FlexAttention when it is first used."""
    return torch.compile(flex_attention, dynamic=True)
