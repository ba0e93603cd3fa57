"""Attention for every memory: one function that picks an exact and fast way for the device, the shapes and the mask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right
from torch.utils.checkpoint import checkpoint

ROWS_AT_ONCE = 512
"""Queries for which a mask may exist at one time."""
NARROW_KEYS = {8: 1 << 62, 16: 768}
"""Up to how many keys causal attention with heads of this width is faster in compiled loops than in matrix products, on a CPU."""


FLEX_WIDTH = 16
"""Heads of at least this width have kernels for windows on a GPU."""


@dataclass(frozen=True)
class Window:
    """A mask in which each query sees the sinks at the front and one run of keys.

    Attributes:
        first: int64, (B, T); index of the first key of the run, counted with the sinks.
        last: int64, (B, T); index of its last key.
        sinks: Keys at the front that every query sees; >= 0.
    """

    first: Tensor
    last: Tensor
    sinks: int = 0


def attend(q: Tensor, k: Tensor, v: Tensor, *, causal: bool, mask: Tensor | Window | None = None) -> Tensor:
    """Softmax attention with scale 1 / sqrt(head width).

    Causal means lower-right alignment: the last query sees every key, the one before it all but the last key, and so on. Sinks are
    extra keys and values at the front and need no mask for it.

    Args:
        q: float, (B, heads, T, width).
        k: float, (B, heads, M, width); M >= T if `causal`.
        v: float, (B, heads, M, width).
        causal: Queries are the last T of the M steps and see nothing later.
        mask: What a query sees: bool (B or 1, heads or 1, T, M), True where it sees, or a `Window`; instead of `causal`, not on top of it.

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
    if isinstance(mask, Window):
        if _is_flexible(q):
            from memenvs.agents.memory.kernels.attention_gpu import flex_windows

            return flex_windows(q, k, v, mask.first, mask.last, mask.sinks)
        return _narrow(q, k, v, mask) if _is_narrow(q, mask.sinks) else _windowed(q, k, v, mask)
    if causal and queries > 1 and keys <= NARROW_KEYS.get(q.shape[-1], 0) and _is_narrow(q, 0):
        last = torch.arange(keys - queries, keys)[None]
        return _narrow(q, k, v, Window(torch.zeros_like(last), last))
    if not causal or queries == 1:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    if queries == keys:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    if queries == keys - 1:  # one dummy query in front makes it square
        return F.scaled_dot_product_attention(F.pad(q, (0, 0, 1, 0)), k, v, is_causal=True)[..., 1:, :]
    if q.is_cuda:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(queries, keys))
    return _lower_right(q, k, v)


def _is_flexible(q: Tensor) -> bool:
    """Whether FlexAttention can do it; for a single query a mask is small."""
    return q.is_cuda and q.shape[-2] > 1 and q.shape[-1] >= FLEX_WIDTH and q.dtype != torch.float64


def _is_narrow(q: Tensor, sinks: int) -> bool:
    """Whether the compiled loops can do it."""
    if q.device.type != "cpu" or q.dtype != torch.float32 or q.shape[-1] % 8 or sinks > 64:
        return False
    return not torch.is_autocast_enabled("cpu")


def _narrow(q: Tensor, k: Tensor, v: Tensor, window: Window) -> Tensor:
    """Attention in windows by compiled loops, which take seconds to compile when they are first used on a machine."""
    from memenvs.agents.memory.kernels.attention_cpu import narrow_attention

    return narrow_attention(q, k, v, window.first, window.last, window.sinks)


def _row_blocks(rows: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each block of at most `ROWS_AT_ONCE` rows."""
    for begin in range(0, rows, ROWS_AT_ONCE):
        yield begin, min(rows, begin + ROWS_AT_ONCE)


def _lower_right(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of the last T of M steps, a block of queries at a time.

    All blocks take their mask from one, which autograd then keeps once: a mask for each would add up to T x M.
    """
    queries, keys = q.shape[-2], k.shape[-2]
    rows = min(queries, ROWS_AT_ONCE)
    hidden = q.new_full((rows, keys), -torch.inf).triu(keys - rows + 1)  # of a block that ends with the last key
    parts = []
    for begin, end in _row_blocks(queries):
        seen = keys - queries + end  # keys that the last query of the block sees
        mask = hidden[rows - (end - begin) :, keys - seen :]
        parts.append(
            F.scaled_dot_product_attention(q[..., begin:end, :], k[..., :seen, :], v[..., :seen, :], attn_mask=mask)
        )
    return torch.cat(parts, dim=-2)


def _windowed(q: Tensor, k: Tensor, v: Tensor, window: Window) -> Tensor:
    """Attention in windows, a block of queries at a time, whose mask is made again in the backward pass."""
    parts = []
    for begin, end in _row_blocks(q.shape[-2]):
        part = Window(window.first[:, begin:end], window.last[:, begin:end], window.sinks)
        parts.append(checkpointed(_in_reach, q[..., begin:end, :], k, v, part))
    return torch.cat(parts, dim=-2)


def _in_reach(q: Tensor, k: Tensor, v: Tensor, window: Window) -> Tensor:
    """Attention of some queries to the keys that one of them can reach."""
    sinks, low, high = window.sinks, int(window.first.min()), int(window.last.max()) + 1
    reach = torch.arange(low, high, device=q.device)
    mask = (reach >= window.first[..., None]) & (reach <= window.last[..., None])  # (B, rows, reach)
    mask = F.pad(mask, (sinks, 0), value=True)[:, None]
    k, v = (torch.cat([x[..., :sinks, :], x[..., low:high, :]], dim=-2) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def checkpointed(function: Callable[..., Any], *args: Any) -> Any:
    """What a function returns; for the backward pass only its arguments are kept and the rest is computed again."""
    if not torch.is_grad_enabled():
        return function(*args)
    return checkpoint(function, *args, use_reentrant=False, preserve_rng_state=False)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (x[i], x[i + width / 2]) of every head by its angle.

    Args:
        x: float, (B, T, parts, heads, width).
        cos: float, (B, T, width / 2); cosine of the angles.
        sin: float, (B, T, width / 2).

    Returns:
        float, (B, T, parts, heads, width).

    Source:
        Su et al., "RoFormer", 2021, in the half-split form.
    """
    if x.device.type == "cpu" and x.dtype == cos.dtype == torch.float32:
        from memenvs.agents.memory.kernels.attention_cpu import RotaryEmbedding

        turned: Tensor = RotaryEmbedding.apply(x, cos, sin)
        return turned
    cos, sin = cos[:, :, None, None].to(x.dtype), sin[:, :, None, None].to(x.dtype)
    low, high = x.chunk(2, dim=-1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)
