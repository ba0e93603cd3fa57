"""Exact softmax attention for every memory: one function that suits device, shapes and mask.

No path keeps a tensor of size T x M. Causal attention needs no mask where queries and keys are square; elsewhere,
a block of queries at a time shares one mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right
from torch.utils.checkpoint import checkpoint

QUERY_BLOCK = 512
"""Queries for which a mask exists at one time."""


@dataclass(frozen=True)
class KeyWindow:
    """Mask in which each query attends to the sinks at the front and to one run of keys.

    Attributes:
        first: int64, (B, T); index of the first key of the run, counted with the sinks.
        last: int64, (B, T); index of its last key.
        sinks: Keys at the front that every query attends to; >= 0.
    """

    first: Tensor
    last: Tensor
    sinks: int = 0


def attend(q: Tensor, k: Tensor, v: Tensor, *, causal: bool, mask: Tensor | KeyWindow | None = None) -> Tensor:
    """Compute softmax attention with scale 1 / sqrt(head width).

    Causal attention is aligned to the lower right: the last query attends to every key, the one before it to all but
    the last key, and so on. So sinks, which are extra keys and values at the front, need no mask.

    Args:
        q: float, (B, heads, T, width).
        k: float, (B, heads, M, width); M >= T if `causal`.
        v: float, (B, heads, M, width).
        causal: Whether the queries are the last T of the M steps and attend to nothing later.
        mask: bool (B or 1, heads or 1, T, M), True where a query attends, or a `KeyWindow`; not together with `causal`.

    Returns:
        float, (B, heads, T, width).

    Raises:
        ValueError: Both `causal` and `mask`, or more queries than keys in causal attention.
    """
    queries, keys = q.shape[-2], k.shape[-2]
    if causal and mask is not None:
        raise ValueError("attend takes either causal=True or a mask, got both")
    if causal and queries > keys:
        raise ValueError(
            f"causal attention needs at least as many keys as queries, got {queries} queries and {keys} keys"
        )
    if isinstance(mask, KeyWindow):
        return _attend_windows(q, k, v, mask)
    if not causal or queries == 1:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    if queries == keys:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    if queries == keys - 1:  # one dummy query in front makes it square, as with one sink
        return F.scaled_dot_product_attention(F.pad(q, (0, 0, 1, 0)), k, v, is_causal=True)[..., 1:, :]
    if q.is_cuda:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(queries, keys))
    return _attend_lower_right(q, k, v)


def _query_blocks(queries: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each block of at most `QUERY_BLOCK` queries."""
    for begin in range(0, queries, QUERY_BLOCK):
        yield begin, min(queries, begin + QUERY_BLOCK)


def _attend_lower_right(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of the last T of M steps, a block of queries at a time.

    All blocks slice their mask from one, which autograd then keeps once: a mask per block would add up to T x M.
    """
    queries, keys = q.shape[-2], k.shape[-2]
    rows = min(queries, QUERY_BLOCK)
    last_mask = q.new_full((rows, keys), -torch.inf).triu(keys - rows + 1)  # of the block that ends with the last key
    parts = []
    for begin, end in _query_blocks(queries):
        visible = keys - queries + end  # keys that the last query of the block attends to
        mask = last_mask[rows - (end - begin) :, keys - visible :]
        k_block, v_block = k[..., :visible, :], v[..., :visible, :]
        parts.append(F.scaled_dot_product_attention(q[..., begin:end, :], k_block, v_block, attn_mask=mask))
    return torch.cat(parts, dim=-2)


def _attend_windows(q: Tensor, k: Tensor, v: Tensor, window: KeyWindow) -> Tensor:
    """Attention in windows, a block of queries at a time, whose mask is made again in the backward pass."""
    parts = []
    for begin, end in _query_blocks(q.shape[-2]):
        block = KeyWindow(window.first[:, begin:end], window.last[:, begin:end], window.sinks)
        parts.append(checkpointed(_attend_block, q[..., begin:end, :], k, v, block))
    return torch.cat(parts, dim=-2)


def _attend_block(q: Tensor, k: Tensor, v: Tensor, window: KeyWindow) -> Tensor:
    """Attention of a block of queries to the keys that one of them can reach."""
    sinks = window.sinks
    low, high = int(window.first.min()), int(window.last.max()) + 1
    index = torch.arange(low, high, device=q.device)  # (R,): keys that a query of the block can reach
    mask = (index >= window.first[..., None]) & (index <= window.last[..., None])  # (B, queries, R)
    mask = F.pad(mask, (sinks, 0), value=True)[:, None]  # (B, 1, queries, sinks + R)
    k, v = (torch.cat([x[..., :sinks, :], x[..., low:high, :]], dim=-2) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the last axis, of the scores that the mask lets through.

    A row without any score is 0, not NaN.

    Args:
        scores: float, (..., M).
        mask: bool, broadcast to `scores`; True where a score takes part; None for all.

    Returns:
        float, (..., M); exactly 0 where the mask is False.
    """
    if mask is None:
        return scores.softmax(-1)
    # Arithmetic on floats, because PyTorch fills by a mask, and multiplies by one, ten times as slowly.
    keep = mask.to(scores.dtype)
    return (scores + (1.0 - keep) * torch.finfo(scores.dtype).min).softmax(-1) * keep


def checkpointed(function: Callable[..., Any], *args: Any, when: bool = True) -> Any:
    """Call a function and keep only its arguments for the backward pass.

    The backward pass computes the rest again.

    Args:
        function: Anything without random numbers.
        *args: Its arguments.
        when: If False, everything is kept, as in an ordinary call.
    """
    if not when or not torch.is_grad_enabled():
        return function(*args)
    return checkpoint(function, *args, use_reentrant=False, preserve_rng_state=False)


def rotation_factors(angle: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine of each number of a head, for `rotate`.

    Args:
        angle: float, (..., width / 2).

    Returns:
        float, (..., width) each; the sine of the first half of a head is negative.
    """
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1)


def index_rotation(index: Tensor, width: int, base: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the rotary embedding of an index, such as that of the episode.

    Args:
        index: int64, (...).
        width: Width of a head.
        base: Base of the wavelengths, > 1.
        dtype: Of the result.

    Returns:
        (..., width) each; see `rotation_factors`.
    """
    exact = torch.promote_types(dtype, torch.float32)
    exponent = torch.arange(0, width, 2, device=index.device, dtype=exact) / width
    cos, sin = rotation_factors(index[..., None] * base**-exponent)
    return cos.to(dtype), sin.to(dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate each pair (x[i], x[i + width / 2]) of every head by its angle.

    Args:
        x: float, (B, T, parts, heads, width).
        cos: float, (B, T, width); from `rotation_factors`.
        sin: float, (B, T, width); the same.

    Returns:
        float, (B, T, parts, heads, width).

    Source:
        Su et al., "RoFormer", 2021, in the half-split form.
    """
    cos = cos[:, :, None, None].to(x.dtype)  # (B, T, 1, 1, width)
    sin = sin[:, :, None, None].to(x.dtype)
    return x * cos + x.roll(x.shape[-1] // 2, -1) * sin
