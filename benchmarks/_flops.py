"""Count floating-point operations of matrix products and attention, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten


class Flops(TorchDispatchMode):
    """Context manager that counts operations, also those of backward passes.

    A multiplication and an addition are two operations. Masked attention counts all pairs that the kernel computes,
    causal attention the half that is not masked.

    Args:
        skip: Return zeros in place of products and attention instead of computing them. The counts are the same, in far
            less time.

    Attributes:
        total: Operations.
        largest: Bytes of the largest storage that an operation returned; with `skip`, products and attention are left
            out.
    """

    def __init__(self, *, skip: bool = False) -> None:
        super().__init__()
        self.skip = skip
        self.total = self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        entry = OPERATIONS.get(func)
        if entry is not None:
            count, zeros = entry
            self.total += count(*args, **kwargs)
            if self.skip:
                return zeros(*args)
        out = func(*args, **kwargs)
        for leaf in tree_leaves(out):
            if isinstance(leaf, Tensor):
                self.largest = max(self.largest, leaf.untyped_storage().nbytes())
        return out


def _product(a: Tensor, b: Tensor, **_: Any) -> int:
    return 2 * a.numel() * b.shape[-1]


def _empty_product(a: Tensor, b: Tensor) -> Tensor:
    return a.new_zeros(*a.shape[:-1], b.shape[-1])


def _empty_attention(q: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    """Zeros for the output, (B, heads, T, D), and for the log-sum-exp of the scores, (B, heads, T).

    As from the kernel, the output lies in memory as (B, T, heads, D).
    """
    batch, heads, queries, width = q.shape
    out = q.new_zeros(batch, queries, heads, width).transpose(1, 2)
    return out, q.new_zeros(batch, heads, queries, dtype=torch.float32)


def _multiplications(q: Tensor, k: Tensor, causal: bool) -> int:
    """Multiplications of one product over all query-key pairs that a kernel computes, such as the scores."""
    queries, keys = q.shape[-2], k.shape[-2]
    pairs = queries * (queries + 1) // 2 if causal else queries * keys
    return q.shape[0] * q.shape[1] * q.shape[-1] * pairs


def _attention(q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0, causal: bool = False, **_: Any) -> int:
    # Two products: the scores, and the weights times the values.
    return 2 * 2 * _multiplications(q, k, causal)


def _attention_backward(
    g: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, dropout: float, causal: bool, **_: Any
) -> int:
    # Five products: the scores again, and the gradients of weights, queries, keys and values.
    return 5 * 2 * _multiplications(q, k, causal)


#: Operator -> functions for its number of operations and for zeros in the shape of its result.
OPERATIONS: dict[Any, tuple[Callable[..., int], Callable[..., Any]]] = {
    aten.mm.default: (_product, _empty_product),
    aten.bmm.default: (_product, _empty_product),
    aten.addmm.default: (lambda _, a, b, **__: _product(a, b), lambda _, a, b: _empty_product(a, b)),
    aten._scaled_dot_product_flash_attention_for_cpu.default: (_attention, _empty_attention),
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: (
        _attention_backward,
        lambda g, q, k, v, *_: tuple(torch.zeros_like(tensor) for tensor in (q, k, v)),
    ),
}
