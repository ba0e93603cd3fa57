"""Attention of narrow heads on a CPU: compiled, exact in float32, without a matrix of scores.

Matrix-product libraries are at their worst where heads are 8 or 16 wide, as in small networks. Here keys and values lie transposed, so
that one query runs over many keys at a time and all inner loops are plain vector code. Keys are taken in whole vectors of `LANES`;
what a query may not see in them gets weight zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable

LANES = 64
"""Keys that are taken together; bounds the number of sinks."""
WIDTH_STEP = 8
"""The width of a head must be a multiple of it."""
ROWS = 4
"""Queries whose gradients are added to the keys together."""

_ZERO, _ONE, _HIDDEN = np.float32(0), np.float32(1), np.float32(-1e30)
_LOG2E = np.float32(math.log2(math.e))
# 2^f for f in (-1, 0]: Chebyshev fit of degree 6 to the relative error, which stays below the rounding of float32.
_C1, _C2, _C3 = np.float32(0.6931470036506653), np.float32(0.2402239441871643), np.float32(0.05548930913209915)
_C4, _C5, _C6 = np.float32(0.009576802141964436), np.float32(0.0012728723231703043), np.float32(0.00010845304495887831)


@njit(fastmath=True, inline="always")
def _exp2(y: Any) -> Any:
    """2^y for y <= 1, in operations that a compiler turns into vector code; 0 from y = -127 down."""
    y = max(y, np.float32(-127))  # whose power has exponent bits 0, which is the number 0
    whole = np.int32(y)
    f = y - np.float32(whole)
    p = _ONE + f * (_C1 + f * (_C2 + f * (_C3 + f * (_C4 + f * (_C5 + f * _C6)))))
    return p * np.int32((whole + np.int32(127)) << np.int32(23)).view(np.float32)


@njit(fastmath=True, inline="always")
def _highest(s):  # type: ignore[no-untyped-def]
    """The largest number of `s`; `_HIDDEN` where there is none."""
    top = _HIDDEN
    for j in range(s.shape[0]):
        top = max(top, s[j])
    return top


@njit(fastmath=True, inline="always")
def _exponentials(s, top):  # type: ignore[no-untyped-def]
    """Replace `s` by 2^(s - top) and return their sum."""
    total = _ZERO
    for j in range(s.shape[0]):
        w = _exp2(s[j] - top)
        s[j] = w
        total += w
    return total


@njit(fastmath=True, inline="always")
def _weights(s, g, lse, delta):  # type: ignore[no-untyped-def]
    """Replace scores `s` by their weights, and gradients `g` of the weights by those of the scores."""
    for j in range(s.shape[0]):
        w = _exp2(s[j] - lse)
        s[j] = w
        g[j] = w * (g[j] - delta)


@njit(fastmath=True, inline="always")
def _dots(x, y, out, a, z, factor):  # type: ignore[no-untyped-def]
    """out[j] = factor * sum over d of x[d] * y[d, j], for j from a to z."""
    part = out[a:z]
    for d in range(0, x.shape[0], 8):
        x0, x1, x2, x3 = x[d] * factor, x[d + 1] * factor, x[d + 2] * factor, x[d + 3] * factor
        x4, x5, x6, x7 = x[d + 4] * factor, x[d + 5] * factor, x[d + 6] * factor, x[d + 7] * factor
        y0, y1, y2, y3 = y[d][a:z], y[d + 1][a:z], y[d + 2][a:z], y[d + 3][a:z]
        y4, y5, y6, y7 = y[d + 4][a:z], y[d + 5][a:z], y[d + 6][a:z], y[d + 7][a:z]
        if d == 0:
            for j in range(z - a):
                low = x0 * y0[j] + x1 * y1[j] + x2 * y2[j] + x3 * y3[j]
                part[j] = low + (x4 * y4[j] + x5 * y5[j] + x6 * y6[j] + x7 * y7[j])
        else:
            for j in range(z - a):
                low = x0 * y0[j] + x1 * y1[j] + x2 * y2[j] + x3 * y3[j]
                part[j] += low + (x4 * y4[j] + x5 * y5[j] + x6 * y6[j] + x7 * y7[j])


@njit(fastmath=True, inline="always")
def _mix(weight, y, out, a, z, factor):  # type: ignore[no-untyped-def]
    """out[d] += factor * sum over j from a to z of weight[j] * y[d, j]."""
    part = weight[a:z]
    for d in range(0, out.shape[0], 8):
        y0, y1, y2, y3 = y[d][a:z], y[d + 1][a:z], y[d + 2][a:z], y[d + 3][a:z]
        y4, y5, y6, y7 = y[d + 4][a:z], y[d + 5][a:z], y[d + 6][a:z], y[d + 7][a:z]
        s0, s1, s2, s3, s4, s5, s6, s7 = _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO
        for j in range(z - a):
            w = part[j]
            s0 += w * y0[j]
            s1 += w * y1[j]
            s2 += w * y2[j]
            s3 += w * y3[j]
            s4 += w * y4[j]
            s5 += w * y5[j]
            s6 += w * y6[j]
            s7 += w * y7[j]
        out[d] += s0 * factor
        out[d + 1] += s1 * factor
        out[d + 2] += s2 * factor
        out[d + 3] += s3 * factor
        out[d + 4] += s4 * factor
        out[d + 5] += s5 * factor
        out[d + 6] += s6 * factor
        out[d + 7] += s7 * factor


@njit
def _fill_hidden(x, sinks, first, last, begin, end, value):  # type: ignore[no-untyped-def]
    """Put `value` where a query does not see: outside of the sinks and of first..last, in the front vector and begin..end."""
    for j in range(sinks, first if begin == 0 else LANES):
        x[j] = value
    if begin > 0:
        for j in range(begin, first):
            x[j] = value
    for j in range(last + 1, end):
        x[j] = value


@njit
def _span(first, last, sinks):  # type: ignore[no-untyped-def]
    """Begin and end, in whole vectors, of the keys from first to last; from 0 where the sinks' vector is next to them."""
    begin = first & ~(LANES - 1)
    if first <= sinks or begin <= LANES:
        begin = 0
    return begin, (last + LANES) & ~(LANES - 1)


@njit(fastmath=True, inline="always")
def _spread(x, weight, out, row, a, z):  # type: ignore[no-untyped-def]
    """out[d, j] += sum over r of x[row + r, d] * weight[r, j], for j from a to z; weights beyond the last row are zero."""
    final = x.shape[0] - 1
    i1, i2, i3 = min(row + 1, final), min(row + 2, final), min(row + 3, final)
    w0, w1, w2, w3 = weight[0][a:z], weight[1][a:z], weight[2][a:z], weight[3][a:z]
    for d in range(x.shape[1]):
        x0, x1, x2, x3 = x[row, d], x[i1, d], x[i2, d], x[i3, d]
        y = out[d][a:z]
        for j in range(z - a):
            y[j] += x0 * w0[j] + x1 * w1[j] + x2 * w2[j] + x3 * w3[j]


_FLOAT4, _FLOAT3, _INT2, _INT = "float32[:,:,:,:]", "float32[:,:,:]", "int64[:,:]", "int64"


@njit(
    f"void({_FLOAT4},{_FLOAT4},{_FLOAT4},{_INT2},{_INT2},{_INT},{_FLOAT4},{_FLOAT3},{_INT},{_INT})",
    fastmath=True,
    nogil=True,
    cache=True,
)
def _forward(q, k, v, first, last, sinks, out, lse, head_begin, head_end):  # type: ignore[no-untyped-def]
    """Attention of the heads from `head_begin` to `head_end` of all B * heads.

    Args:
        q: float32, (B, heads, T, width).
        k: float32, (B, heads, M, width).
        v: float32, (B, heads, M, width).
        first: int64, (B or 1, T); first key of each query's run.
        last: int64, (B or 1, T); last key of it.
        sinks: Keys at the front that every query sees.
        out: float32, (B, heads, T, width); written.
        lse: float32, (B, heads, T); written; base-2 logarithm of the sum of base-2 exponentials.
        head_begin: First head.
        head_end: One past the last head.
    """
    heads, steps, width, keys = q.shape[1], q.shape[2], q.shape[3], k.shape[2]
    padded = (keys + LANES - 1) & ~(LANES - 1)
    kt, vt = np.zeros((width, padded), np.float32), np.zeros((width, padded), np.float32)
    s, o = np.empty(padded, np.float32), np.empty(width, np.float32)
    scale = _LOG2E / np.float32(math.sqrt(width))
    for head in range(head_begin, head_end):
        b, h = head // heads, head % heads
        run = b if first.shape[0] > 1 else 0
        for j in range(keys):
            for d in range(width):
                kt[d, j], vt[d, j] = k[b, h, j, d], v[b, h, j, d]
        for i in range(steps):
            begin, end = _span(first[run, i], last[run, i], sinks)
            front = LANES if begin > 0 and sinks > 0 else 0
            if front > 0:
                _dots(q[b, h, i], kt, s, 0, front, scale)
            _dots(q[b, h, i], kt, s, begin, end, scale)
            _fill_hidden(s, sinks, first[run, i], last[run, i], begin, end, _HIDDEN)
            top = _highest(s[begin:end])
            if front > 0:
                top = max(top, _highest(s[:front]))
            total = _exponentials(s[begin:end], top)
            if front > 0:
                total += _exponentials(s[:front], top)
            o[:] = _ZERO
            if front > 0:
                _mix(s, vt, o, 0, front, _ONE / total)
            _mix(s, vt, o, begin, end, _ONE / total)
            for d in range(width):
                out[b, h, i, d] = o[d]
            lse[b, h, i] = top + np.float32(math.log2(total))


@njit(
    f"void({_FLOAT4},{_FLOAT4},{_FLOAT4},{_INT2},{_INT2},{_INT},{_FLOAT4},{_FLOAT3},{','.join([_FLOAT4] * 4)},{_INT},{_INT})",
    fastmath=True,
    nogil=True,
    cache=True,
)
def _backward(q, k, v, first, last, sinks, out, lse, g_out, g_q, g_k, g_v, head_begin, head_end):  # type: ignore[no-untyped-def]
    """Gradients of `_forward`; weights are computed again from `lse`.

    Args as in `_forward`; `g_out` is the gradient of `out`, and `g_q`, `g_k`, `g_v` are written.

    Source:
        Dao et al., "FlashAttention", 2022, algorithm 4.
    """
    heads, steps, width, keys = q.shape[1], q.shape[2], q.shape[3], k.shape[2]
    padded = (keys + LANES - 1) & ~(LANES - 1)
    kt, vt = np.zeros((width, padded), np.float32), np.zeros((width, padded), np.float32)
    gkt, gvt = np.empty((width, padded), np.float32), np.empty((width, padded), np.float32)
    p, g, gq = np.zeros((ROWS, padded), np.float32), np.zeros((ROWS, padded), np.float32), np.empty(width, np.float32)
    inverse = np.float32(1 / math.sqrt(width))
    for head in range(head_begin, head_end):
        b, h = head // heads, head % heads
        run = b if first.shape[0] > 1 else 0
        for j in range(keys):
            for d in range(width):
                kt[d, j], vt[d, j] = k[b, h, j, d], v[b, h, j, d]
        gkt[:], gvt[:] = _ZERO, _ZERO
        for row in range(0, steps, ROWS):
            lowest, highest = first[run, row], last[run, row]
            for i in range(row + 1, min(steps, row + ROWS)):
                lowest, highest = min(lowest, first[run, i]), max(highest, last[run, i])
            begin, end = _span(lowest, highest, sinks)
            front = LANES if begin > 0 and sinks > 0 else 0
            for r in range(ROWS):
                i, pr, gr = row + r, p[r], g[r]
                if i >= steps:
                    pr[:], gr[:] = _ZERO, _ZERO
                    continue
                delta = _ZERO
                for d in range(width):
                    delta += out[b, h, i, d] * g_out[b, h, i, d]
                gq[:] = _ZERO
                for part in range(0 if front > 0 else 1, 2):
                    a, z = (0, front) if part == 0 else (begin, end)
                    _dots(q[b, h, i], kt, pr, a, z, _LOG2E * inverse)
                    _dots(g_out[b, h, i], vt, gr, a, z, _ONE)
                    if part == 1:
                        _fill_hidden(pr, sinks, first[run, i], last[run, i], begin, end, _HIDDEN)
                for part in range(0 if front > 0 else 1, 2):
                    a, z = (0, front) if part == 0 else (begin, end)
                    _weights(pr[a:z], gr[a:z], lse[b, h, i], delta)
                _fill_hidden(gr, sinks, first[run, i], last[run, i], begin, end, _ZERO)
                for part in range(0 if front > 0 else 1, 2):
                    a, z = (0, front) if part == 0 else (begin, end)
                    _mix(gr, kt, gq, a, z, inverse)
                for d in range(width):
                    g_q[b, h, i, d] = gq[d]
            for part in range(0 if front > 0 else 1, 2):
                a, z = (0, front) if part == 0 else (begin, end)
                _spread(g_out[b, h], p, gvt, row, a, z)
                _spread(q[b, h], g, gkt, row, a, z)
        for j in range(keys):
            for d in range(width):
                g_k[b, h, j, d], g_v[b, h, j, d] = gkt[d, j] * inverse, gvt[d, j]


@njit(
    "void(float32[:,:,:,:,:],float32[:,:,::1],float32[:,:,::1],float32[:,:,:,:,::1],int64,int64)",
    nogil=True,
    cache=True,
)
def _turn(x, cos, sin, out, row_begin, row_end):  # type: ignore[no-untyped-def]
    """Turn pairs of features; see `RotaryEmbedding`. Rows are the B sequences."""
    half = cos.shape[2]
    for b in range(row_begin, row_end):
        for t in range(x.shape[1]):
            for part in range(x.shape[2]):
                for h in range(x.shape[3]):
                    for d in range(half):
                        low, high = x[b, t, part, h, d], x[b, t, part, h, d + half]
                        out[b, t, part, h, d] = low * cos[b, t, d] - high * sin[b, t, d]
                        out[b, t, part, h, d + half] = high * cos[b, t, d] + low * sin[b, t, d]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """The threads that heads are split over; made when first needed."""
    return ThreadPoolExecutor(threads, thread_name_prefix="attention")


def _over_threads(run: Callable[..., None], arrays: list[Any], count: int) -> None:
    """Call `run(*arrays, begin, end)` for all of `count` heads or rows, over as many threads as torch has."""
    threads = min(torch.get_num_threads(), count)
    if threads == 1:
        run(*arrays, 0, count)
        return
    bounds = [count * i // threads for i in range(threads + 1)]
    jobs = [_pool(threads - 1).submit(run, *arrays, *bounds[i : i + 2]) for i in range(1, threads)]
    run(*arrays, *bounds[:2])
    for job in jobs:
        job.result()


class NarrowAttention(torch.autograd.Function):
    """Attention in windows, float32 on a CPU; see `narrow_attention`."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, first: Tensor, last: Tensor, sinks: int) -> Tensor:
        """Attention, float32 (B, heads, T, width), laid out (B, T, heads, width) in memory."""
        batch, heads, steps, width = q.shape
        out = q.new_empty(batch, steps, heads, width).transpose(1, 2)
        lse = q.new_empty(batch, heads, steps)
        arrays = [x.detach().numpy() for x in (q, k, v, first, last)]
        _over_threads(_forward, [*arrays, sinks, out.numpy(), lse.numpy()], batch * heads)
        ctx.save_for_backward(q, k, v, first, last, out, lse)
        ctx.sinks = sinks
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_out: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of queries, keys and values."""
        q, k, v, first, last, out, lse = ctx.saved_tensors
        gradients = [torch.empty_like(x) for x in (q, k, v)]
        arrays = [x.numpy() for x in (q, k, v, first, last)]
        written = [x.numpy() for x in (out, lse, g_out, *gradients)]
        _over_threads(_backward, [*arrays, ctx.sinks, *written], q.shape[0] * q.shape[1])
        return (*gradients, None, None, None)


def narrow_attention(q: Tensor, k: Tensor, v: Tensor, first: Tensor, last: Tensor, sinks: int) -> Tensor:
    """Softmax attention with scale 1 / sqrt(width), each query over the sinks and one run of keys.

    Args:
        q: float32, (B, heads, T, width), on a CPU; the width is a multiple of `WIDTH_STEP`.
        k: float32, (B, heads, M, width).
        v: float32, (B, heads, M, width).
        first: int64, (B or 1, T); first key of the run, counted with the sinks; >= `sinks`.
        last: int64, (B or 1, T); last key of the run; `first` <= `last` < M.
        sinks: Keys at the front that every query sees; at most `LANES`.

    Returns:
        float32, (B, heads, T, width).
    """
    out: Tensor = NarrowAttention.apply(q, k, v, first, last, sinks)
    return out


class RotaryEmbedding(torch.autograd.Function):
    """Rotation of feature pairs in one pass, float32 on a CPU: tensor operations crawl over halves of a few numbers each."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Each pair (x[i], x[i + width / 2]) turned by its angle.

        Args:
            ctx: Of autograd.
            x: float32, (B, T, parts, heads, width).
            cos: float32, (B, T, width / 2); cosine of the angles.
            sin: float32, (B, T, width / 2).

        Returns:
            float32, (B, T, parts, heads, width).
        """
        ctx.save_for_backward(cos, sin)
        return _turned(x.detach(), cos, sin)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_out: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient turned back."""
        cos, sin = ctx.saved_tensors
        return _turned(g_out, cos, -sin), None, None


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """What `RotaryEmbedding` computes."""
    out = x.new_empty(x.shape)
    _over_threads(_turn, [x.numpy(), cos.contiguous().numpy(), sin.contiguous().numpy(), out.numpy()], x.shape[0])
    return out
