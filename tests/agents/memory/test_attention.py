"""Attention against its definition."""

import math

import pytest
import torch
from torch import Tensor

from memenvs.agents.memory.attention import QUERY_BLOCK, KeyWindow, attend, masked_softmax

#: Precision and head width.
CASES = [(torch.float64, 6), (torch.float32, 8), (torch.float32, 32)]
#: Of outputs and of gradients.
TOLERANCES = {("cpu", torch.float64): (1e-10, 5e-10), ("cpu", torch.float32): (2e-5, 1e-4)}
TOLERANCES |= {("cuda", torch.float32): (5e-3, 1e-2), ("cuda", torch.bfloat16): (5e-2, 0.1)}


def by_definition(q: Tensor, k: Tensor, v: Tensor, visible: Tensor) -> Tensor:
    """Softmax over visible keys in float64; `visible` is bool (B or 1, 1, T, M)."""
    q, k, v = q.double(), k.double(), v.double()
    score = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~visible, -math.inf)
    return torch.softmax(score, dim=-1) @ v


def tensors(queries: int, keys: int, width: int, dtype: torch.dtype, large: float = 1.0) -> list[Tensor]:
    """q, k, v of 2 sequences and 3 heads, laid out as a network does."""
    generator = torch.Generator().manual_seed(queries + 7 * keys)
    shapes = [(2, n, 3, width) for n in (queries, keys, keys)]
    made = [torch.randn(shape, generator=generator, dtype=dtype).mul_(large).transpose(1, 2) for shape in shapes]
    return [x.requires_grad_() for x in made]


def check(
    qkv: list[Tensor],
    visible: Tensor,
    causal: bool,
    mask: Tensor | KeyWindow | None,
    device: str = "cpu",
    dtype: torch.dtype | None = None,
) -> None:
    """Output and gradients equal the definition's; a GPU's kernels may round products to TF32."""
    there = [x.detach().to(device, dtype).requires_grad_() for x in qkv]
    got = attend(*there, causal=causal, mask=mask)
    expected = by_definition(*qkv, visible).to(qkv[0].dtype)
    close, of_gradients = TOLERANCES[device, got.dtype]
    torch.testing.assert_close(got.to("cpu", expected.dtype), expected, atol=close, rtol=close)
    direction = torch.randn(got.shape, generator=torch.Generator().manual_seed(5), dtype=expected.dtype)
    ours = torch.autograd.grad(got, there, direction.to(device, dtype))
    for a, b in zip(ours, torch.autograd.grad(expected, qkv, direction), strict=True):
        torch.testing.assert_close(a.to("cpu", b.dtype), b, atol=of_gradients, rtol=of_gradients)


@pytest.mark.slow
def test_causal_is_aligned_to_the_lower_right() -> None:
    blocks = 2 * QUERY_BLOCK + 3, 2 * QUERY_BLOCK + 40
    for queries, keys in [(1, 1), (1, 9), (5, 5), (5, 6), (5, 70), (64, 64), (130, 131), (67, 200), blocks]:
        visible = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
        for dtype, width in CASES:
            check(tensors(queries, keys, width, dtype), visible[None, None], True, None)


def random_windows(queries: int, keys: int, sinks: int) -> tuple[KeyWindow, Tensor]:
    """Windows of 2 sequences, and their visible keys, bool (2, T, M)."""
    generator = torch.Generator().manual_seed(queries)
    last = torch.arange(keys - queries, keys).expand(2, -1).clamp(min=sinks)
    reach = torch.randint(0, keys, last.shape, generator=generator) * torch.rand(last.shape, generator=generator)
    first = (last - reach).long().clamp(min=sinks)
    key = torch.arange(keys)
    return KeyWindow(first, last, sinks), (key < sinks) | ((key >= first[..., None]) & (key <= last[..., None]))


@pytest.mark.parametrize("sinks", [0, 1, 3])
def test_windows(sinks: int) -> None:
    for queries, keys in [(1, 5), (9, 14), (150, 150), (530, 540)]:
        window, visible = random_windows(queries, keys, sinks)
        for dtype, width in CASES:
            check(tensors(queries, keys, width, dtype), visible[:, None], False, window)


def test_a_mask_and_no_mask() -> None:
    visible = torch.rand(2, 1, 6, 11, generator=torch.Generator().manual_seed(0)) < 0.5
    visible[..., 0] = True
    for dtype, width in CASES:
        check(tensors(6, 11, width, dtype), visible, False, visible)
        check(tensors(6, 11, width, dtype), torch.ones(1, 1, 6, 11, dtype=torch.bool), False, None)


def test_large_scores_stay_exact() -> None:
    qkv = tensors(70, 71, 16, torch.float32, large=12.0)
    visible = torch.ones(70, 71, dtype=torch.bool).tril(1)
    got = attend(*qkv, causal=True)
    torch.testing.assert_close(got.double(), by_definition(*qkv, visible), atol=2e-3, rtol=1e-4)


def test_masked_softmax_by_hand() -> None:
    scores = torch.tensor([[0.0, math.log(3.0), 9.0], [1.0, 2.0, 3.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    expected = torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(masked_softmax(scores, mask), expected)
    torch.testing.assert_close(masked_softmax(scores[None, :, None], mask[None, :, None]), expected[None, :, None])
    torch.testing.assert_close(masked_softmax(scores, None), scores.softmax(-1))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch can use, and MEMENVS_TEST_GPU=1")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_gpu(dtype: torch.dtype) -> None:
    for width in (8, 32):
        for queries, keys in [(1, 200), (64, 64), (64, 65), (64, 200), (600, 1300)]:
            visible = torch.ones(1, 1, queries, keys, dtype=torch.bool).tril(keys - queries)
            check(tensors(queries, keys, width, torch.float32), visible, True, None, "cuda", dtype)
        for queries, keys in [(1, 300), (300, 700), (513, 514)]:
            window, visible = random_windows(queries, keys, 1)
            there = KeyWindow(window.first.cuda(), window.last.cuda(), 1)
            check(tensors(queries, keys, width, torch.float32), visible[:, None], False, there, "cuda", dtype)


def test_contradictions_are_named() -> None:
    q, k, v = tensors(3, 4, 8, torch.float32)
    with pytest.raises(ValueError, match="either causal=True or a mask"):
        attend(q, k, v, causal=True, mask=torch.ones(3, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match="got 4 queries and 3 keys"):
        attend(k, q, q, causal=True)
