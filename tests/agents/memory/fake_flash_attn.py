"""A stand-in for flash-attn 2.8 on the CPU, which refuses what the package refuses.

Arguments and refusals are those of its documentation and source; it was not run beside the package, which needs a GPU.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor

__version__ = "2.8.3"
#: Calls of each function.
calls: dict[str, int] = {"flash_attn_varlen_func": 0, "flash_attn_with_kvcache": 0}


def flash_attn_varlen_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
) -> Tensor:
    """Attention of packed sequences, (total, heads, width)."""
    calls["flash_attn_varlen_func"] += 1
    _check(q, k, v)
    for ends, packed, longest in ((cu_seqlens_q, q, max_seqlen_q), (cu_seqlens_k, k, max_seqlen_k)):
        if ends.dtype != torch.int32 or not ends.is_contiguous():
            raise RuntimeError("cu_seqlens must have dtype int32 and be contiguous")
        assert type(longest) is int and packed.dim() == 3
        assert ends[0] == 0 and ends[-1] == len(packed) and torch.diff(ends).max() == longest
    parts = []
    for (a, b), (c, d) in zip(_spans(cu_seqlens_q), _spans(cu_seqlens_k), strict=True):
        visible = torch.ones(b - a, d - c, dtype=torch.bool)
        if causal:
            visible = visible.tril(d - c - (b - a))
        out, _ = _attend(q[a:b].transpose(0, 1), k[c:d].transpose(0, 1), v[c:d].transpose(0, 1), visible)
        parts.append(out.transpose(0, 1))
    return torch.cat(parts)


def flash_attn_with_kvcache(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    cache_seqlens: Tensor | None = None,
    cache_leftpad: Tensor | None = None,
    causal: bool = False,
    return_softmax_lse: bool = False,
) -> tuple[Tensor, Tensor]:
    """Attention to a cache, (B, T or M, heads, width); it has no backward pass."""
    calls["flash_attn_with_kvcache"] += 1
    _check(q, k_cache, v_cache)
    assert return_softmax_lse and not causal
    assert cache_seqlens is not None and cache_leftpad is not None
    for given in (cache_seqlens, cache_leftpad):
        if given.dtype != torch.int32:
            raise RuntimeError("seqlens_k must have dtype int32")
    outs, sums = [], []
    for i, (begin, end) in enumerate(zip(cache_leftpad.tolist(), cache_seqlens.tolist(), strict=True)):
        keys, values = (cache[i, begin:end].transpose(0, 1) for cache in (k_cache, v_cache))
        visible = torch.ones(q.shape[1], end - begin, dtype=torch.bool)
        out, total = _attend(q[i].transpose(0, 1), keys, values, visible)
        outs.append(out.transpose(0, 1))
        sums.append(total)
    return torch.stack(outs).detach(), torch.stack(sums).detach()


def _check(*tensors: Tensor) -> None:
    for each in tensors:
        if each.dtype not in (torch.float16, torch.bfloat16):
            raise RuntimeError("FlashAttention only support fp16 and bf16 data type")
        if each.stride(-1) != 1:
            raise RuntimeError("Input tensor must have contiguous last dimension")
        if each.shape[-1] > 256:
            raise RuntimeError("FlashAttention forward only supports head dimension at most 256")


def _spans(ends: Tensor) -> list[tuple[int, int]]:
    values = ends.tolist()
    return list(pairwise(values))


def _attend(q: Tensor, k: Tensor, v: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
    """Output and logarithm of the sum of exponentials, of (heads, T, width)."""
    score = (q.float() @ k.float().transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~visible, -math.inf)
    total = score.logsumexp(-1)
    weights = torch.where(total[..., None].isfinite(), (score - total[..., None]).exp(), 0.0)
    return (weights @ v.float()).to(q.dtype), total
