"""The layers of `MemoryReader` for the case that is learned from most, with a backward pass by hand: independent queries read all tokens at once.

Tokens are sums of rows of tables. In autograd such a step is mostly bookkeeping, as its matrices are small; here all tables are scored and summed
up by one product each, their gradient is one product for all layers, and nothing has a number for each token and dimension.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

WEIGHTS = (
    *("local_norm.weight", "local_norm.bias", "local_value.weight", "local_mix.weight", "local_mix.bias"),
    *("read_norm.weight", "read_norm.bias", "relevance_query.weight", "relevance_query.bias", "relevance_key.weight"),
    *("value.weight", "mix.weight", "mix.bias"),
    *("mlp_norm.weight", "mlp_norm.bias", "mlp.0.weight", "mlp.0.bias", "mlp.2.weight", "mlp.2.bias"),
)
"""Weights of a `MemoryLayer` that take part."""
_KEPT = 19
"""Tensors of a layer that the backward pass needs besides its weights."""


class FlatRead(torch.autograd.Function):
    """Queries after having gone through all layers; the same numbers and gradients as the layers give one after the other."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        table: Tensor,
        index: Tensor,
        mask: Tensor | None,
        scale: float,
        eps: float,
        sizes: list[int],
        *tensors: Tensor,
    ) -> Tensor:
        """Queries that have heard.

        Args:
            ctx: Of autograd.
            query: float, (B Q, D).
            table: As in `Tokens.joined`, like the next.
            index: See there.
            mask: bool, broadcast to (B, Q, N); None: all tokens are there.
            scale: What products of queries and tokens are multiplied with.
            eps: Of the normalisations.
            sizes: Rows of each of the tables of which `table` is made.
            *tensors: These tables, to which gradients go; then each layer's `WEIGHTS`.

        Returns:
            float, (B Q, D).
        """
        tables, weights = len(sizes), tensors[len(sizes) :]
        index = index.expand(-1, len(query) // len(index), -1)
        x, shape, kept = query, query.shape[1:], []
        for begin in range(0, len(weights), len(WEIGHTS)):
            (
                n1w,
                n1b,
                local,
                mix,
                mix_b,
                n2w,
                n2b,
                ask,
                ask_b,
                key,
                value,
                out,
                out_b,
                n3w,
                n3b,
                m1,
                m1_b,
                m2,
                m2_b,
            ) = weights[begin : begin + len(WEIGHTS)]
            normed, mean1, rstd1 = torch.native_layer_norm(x, shape, n1w, n1b, eps)
            heard = normed @ local.T
            x1 = torch.addmm(mix_b, heard, mix.T).add_(x)
            normed2, mean2, rstd2 = torch.native_layer_norm(x1, shape, n2w, n2b, eps)
            asked = torch.addmm(ask_b, normed2, ask.T)
            asking = (asked @ key).mul_(scale)
            share = _gathered(asking @ table.T, index, tables)
            if mask is not None:
                share.masked_fill_(~mask, torch.finfo(share.dtype).min)
            share = share.softmax(2)
            if mask is not None:
                share *= mask
            by_row = _summed(share, index, len(table))
            read = by_row @ table
            valued = read @ value.T
            x2 = torch.addmm(out_b, valued, out.T).add_(x1)
            normed3, mean3, rstd3 = torch.native_layer_norm(x2, shape, n3w, n3b, eps)
            inner = torch.addmm(m1_b, normed3, m1.T).relu_()
            kept += [x, mean1, rstd1, normed, heard, x1, mean2, rstd2, normed2, asked, asking]
            kept += [share, by_row, read, valued, x2, torch.stack([mean3, rstd3]), normed3, inner]
            x = torch.addmm(m2_b, inner, m2.T).add_(x2)
        ctx.save_for_backward(table, index, *weights, *kept)
        ctx.settings = scale, sizes
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of queries, tables and weights."""
        (table, index, *saved), (scale, sizes) = ctx.saved_tensors, ctx.settings
        layers, shape, all_three = len(saved) // (len(WEIGHTS) + _KEPT), gradient.shape[1:], [True, True, True]
        kept, g = saved[layers * len(WEIGHTS) :], gradient
        by_rows, heard_by = [], []  # what tables are multiplied with, and gradients: rows of both belong together
        found: list[Tensor] = []  # gradients of the weights of all layers behind
        for layer in reversed(range(layers)):
            (n1w, n1b, local, mix, _, n2w, n2b, ask, _, key, value, out, _, n3w, n3b, m1, _, m2, _) = saved[
                layer * len(WEIGHTS) : (layer + 1) * len(WEIGHTS)
            ]
            (x, mean1, rstd1, normed, heard, x1, mean2, rstd2, normed2, asked, asking, share, by_row, read, valued) = (
                kept[layer * _KEPT : layer * _KEPT + 15]
            )
            x2, (mean3, rstd3), normed3, inner = kept[layer * _KEPT + 15 : (layer + 1) * _KEPT]

            g_m2, g_m2_b = g.T @ inner, g.sum(0)
            g_inner = torch.ops.aten.threshold_backward(g @ m2, inner, 0)
            g_m1, g_m1_b = g_inner.T @ normed3, g_inner.sum(0)
            g_x, g_n3w, g_n3b = torch.ops.aten.native_layer_norm_backward(
                g_inner @ m1, x2, shape, mean3, rstd3, n3w, n3b, all_three
            )
            g = g_x.add_(g)

            g_out, g_out_b = g.T @ valued, g.sum(0)
            g_valued = g @ out
            g_value = g_valued.T @ read
            g_read = g_valued @ value
            g_share = _gathered(g_read @ table.T, index, len(sizes)).mul_(share)
            g_scores = g_share.addcmul_(share, g_share.sum(2, keepdim=True), value=-1)
            g_scores = _summed(g_scores, index, len(table))
            by_rows += [by_row, g_scores]
            heard_by += [g_read, asking]
            g_asking = (g_scores @ table).mul_(scale)
            g_key = asked.T @ g_asking
            g_asked = g_asking @ key.T
            g_ask, g_ask_b = g_asked.T @ normed2, g_asked.sum(0)
            g_x, g_n2w, g_n2b = torch.ops.aten.native_layer_norm_backward(
                g_asked @ ask, x1, shape, mean2, rstd2, n2w, n2b, all_three
            )
            g = g_x.add_(g)

            g_mix, g_mix_b = g.T @ heard, g.sum(0)
            g_heard = g @ mix
            g_local = g_heard.T @ normed
            g_x, g_n1w, g_n1b = torch.ops.aten.native_layer_norm_backward(
                g_heard @ local, x, shape, mean1, rstd1, n1w, n1b, all_three
            )
            g = g_x.add_(g)
            of_layer = [g_n1w, g_n1b, g_local, g_mix, g_mix_b, g_n2w, g_n2b, g_ask, g_ask_b, g_key]
            found = [*of_layer, g_value, g_out, g_out_b, g_n3w, g_n3b, g_m1, g_m1_b, g_m2, g_m2_b, *found]
        of_tables: list[Tensor | None] = []
        rows, vectors, first = torch.cat(by_rows), torch.cat(heard_by), 0
        for number, size in enumerate(sizes):
            wanted = ctx.needs_input_grad[7 + number]
            of_tables.append(rows[:, first : first + size].T @ vectors if wanted else None)
            first += size
        return g, None, None, None, None, None, None, *of_tables, *found


def _gathered(by_row: Tensor, index: Tensor, tables: int) -> Tensor:
    """Sums over tables of what each token's rows have, float (B, Q, N).

    Args:
        by_row: float, (B Q, K).
        index: int64, (B, Q, J N).
        tables: J.
    """
    return by_row.view(*index.shape[:2], -1).gather(2, index).unflatten(2, (tables, -1)).sum(2)


def _summed(of_tokens: Tensor, index: Tensor, rows: int) -> Tensor:
    """Sums for each row of what the tokens have that are made of it, float (B Q, K): the transpose of `_gathered`."""
    sums = of_tokens.new_zeros(*of_tokens.shape[:2], rows)
    repeated = of_tokens.repeat(1, 1, index.shape[2] // of_tokens.shape[2])
    return sums.scatter_add_(2, index, repeated).flatten(0, 1)
