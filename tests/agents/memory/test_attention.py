"""Attention against its definition."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from memenvs.agents.memory.attention import QUERY_BLOCK, Window, attend, rotate

CASES = [(torch.float64, 6), (torch.float32, 4), (torch.float32, 8), (torch.float32, 16), (torch.float32, 32)]


def by_definition(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """Softmax over what is seen, in float64; `seen` is bool (B or 1, 1, T, M)."""
    q, k, v = q.double(), k.double(), v.double()
    score = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~seen, -math.inf)
    return torch.softmax(score, dim=-1) @ v


def tensors(queries: int, keys: int, width: int, dtype: torch.dtype, large: float = 1.0) -> list[Tensor]:
    """q, k, v of 2 sequences and 3 heads, laid out as a network does."""
    generator = torch.Generator().manual_seed(queries + 7 * keys)
    shapes = [(2, n, 3, width) for n in (queries, keys, keys)]
    made = [torch.randn(shape, generator=generator, dtype=dtype).mul_(large).transpose(1, 2) for shape in shapes]
    return [x.requires_grad_() for x in made]


def check(qkv: list[Tensor], seen: Tensor, causal: bool, mask: Tensor | Window | None) -> None:
    got = attend(*qkv, causal=causal, mask=mask)
    expected = by_definition(*qkv, seen).to(got.dtype)
    tolerance = 1e-10 if got.dtype == torch.float64 else 2e-5
    torch.testing.assert_close(got, expected, atol=tolerance, rtol=tolerance)
    toward = torch.randn(got.shape, generator=torch.Generator().manual_seed(5), dtype=got.dtype)
    ours, theirs = torch.autograd.grad(got, qkv, toward), torch.autograd.grad(expected, qkv, toward)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=tolerance * 5, rtol=tolerance * 5)


@pytest.mark.parametrize(("dtype", "width"), CASES, ids=str)
@pytest.mark.parametrize(
    ("queries", "keys"), [(1, 1), (1, 9), (5, 5), (5, 6), (5, 70), (64, 64), (130, 131), (67, 200)]
)
def test_causal_is_aligned_to_the_lower_right(queries: int, keys: int, dtype: torch.dtype, width: int) -> None:
    seen = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
    check(tensors(queries, keys, width, dtype), seen[None, None], True, None)


@pytest.mark.parametrize("width", [6, 8])
def test_blocks_of_queries(width: int) -> None:
    queries, keys = 2 * QUERY_BLOCK + 3, 2 * QUERY_BLOCK + 40
    seen = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
    check(tensors(queries, keys, width, torch.float32), seen[None, None], True, None)


@pytest.mark.parametrize(("dtype", "width"), CASES, ids=str)
@pytest.mark.parametrize("sinks", [0, 1, 3])
@pytest.mark.parametrize(("queries", "keys"), [(1, 5), (9, 14), (150, 150), (530, 540)])
def test_windows(queries: int, keys: int, sinks: int, dtype: torch.dtype, width: int) -> None:
    generator = torch.Generator().manual_seed(queries)
    last = torch.arange(keys - queries, keys).expand(2, -1).clamp(min=sinks)
    first = last - torch.randint(0, keys, last.shape, generator=generator) * torch.rand(last.shape, generator=generator)
    first = first.long().clamp(min=sinks)
    reach = torch.arange(keys)
    seen = (reach < sinks) | ((reach >= first[..., None]) & (reach <= last[..., None]))
    check(tensors(queries, keys, width, dtype), seen[:, None], False, Window(first, last, sinks))


@pytest.mark.parametrize(("dtype", "width"), CASES, ids=str)
def test_a_mask_and_no_mask(dtype: torch.dtype, width: int) -> None:
    seen = torch.rand(2, 1, 6, 11, generator=torch.Generator().manual_seed(0)) < 0.5
    seen[..., 0] = True
    check(tensors(6, 11, width, dtype), seen, False, seen)
    check(tensors(6, 11, width, dtype), torch.ones(1, 1, 6, 11, dtype=torch.bool), False, None)


@pytest.mark.parametrize("width", [8, 16])
def test_large_scores_stay_exact(width: int) -> None:
    qkv = tensors(70, 71, width, torch.float32, large=12.0)
    seen = torch.ones(70, 71, dtype=torch.bool).tril(1)
    got = attend(*qkv, causal=True)
    torch.testing.assert_close(got.double(), by_definition(*qkv, seen), atol=2e-3, rtol=1e-4)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_number_of_threads_changes_nothing(threads: int) -> None:
    qkv = tensors(40, 41, 8, torch.float32)
    before = torch.get_num_threads()
    try:
        results = []
        for count in (1, threads):
            torch.set_num_threads(count)
            out = attend(*qkv, causal=True)
            results.append([out, *torch.autograd.grad(out.sum(), qkv)])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_rotation_in_one_pass_equals_tensor_operations() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 5, 3, 2, 8, generator=generator)[:, :, :2].requires_grad_()
    angle = torch.rand(3, 5, 4, generator=generator) * 9
    toward = torch.randn(x.shape, generator=generator)
    results = []
    for dtype in (torch.float32, torch.float64):
        out = rotate(x.to(dtype), angle.to(dtype).cos(), angle.to(dtype).sin())
        results.append([out, torch.autograd.grad(out, x, toward.to(dtype))[0]])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b.float(), atol=1e-5, rtol=0, check_dtype=False)
    torch.testing.assert_close(results[0][0].norm(), x.norm(), atol=1e-4, rtol=0)


def random_windows(queries: int, keys: int, sinks: int) -> tuple[Window, Tensor]:
    """Windows of 2 sequences, and what is seen in them, bool (2, T, M)."""
    generator = torch.Generator().manual_seed(queries)
    last = torch.arange(keys - queries, keys).expand(2, -1).clamp(min=sinks)
    first = (last - torch.randint(0, 90, last.shape, generator=generator)).clamp(min=sinks)
    reach = torch.arange(keys)
    return Window(first, last, sinks), (reach < sinks) | ((reach >= first[..., None]) & (reach <= last[..., None]))


@pytest.mark.parametrize("sinks", [0, 1, 3])
@pytest.mark.parametrize(("queries", "keys"), [(1, 300), (128, 128), (300, 700), (513, 514)])
def test_blocks_for_windows_are_those_that_a_mask_touches(queries: int, keys: int, sinks: int) -> None:
    """Against the blocks that torch finds in the whole mask."""
    from torch.nn.attention.flex_attention import create_block_mask

    from memenvs.agents.memory.kernels.attention_gpu import window_blocks

    window, seen = random_windows(queries, keys, sinks)
    ours = window_blocks(window.first, window.last, sinks, keys)
    theirs = create_block_mask(lambda b, h, i, j: seen[b, i, j], 2, None, queries, keys, device="cpu")
    touched = theirs.to_dense().bool()
    covered = ours.to_dense().bool()
    assert covered.shape == touched.shape
    assert not (touched & ~covered).any()
    assert ours.shape == theirs.shape
    low, high = touched.int().argmax(-1), touched.shape[-1] - touched.flip(-1).int().argmax(-1)
    blocks = torch.arange(touched.shape[-1])
    between = (blocks >= low[..., None]) & (blocks < high[..., None])
    assert not (covered & ~between).any()  # and nothing outside of what is seen
    i, j = torch.arange(queries)[:, None], torch.arange(keys)
    for row in range(2):
        assert torch.equal(ours.mask_mod(torch.tensor(row), torch.tensor(0), i, j), seen[row])


NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch can use")


@NEEDS_GPU
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("width", [8, 32])
@pytest.mark.parametrize(("queries", "keys"), [(1, 200), (64, 64), (64, 65), (64, 200), (600, 1300)])
def test_causal_on_a_gpu(queries: int, keys: int, width: int, dtype: torch.dtype) -> None:
    seen = torch.ones(1, 1, queries, keys, dtype=torch.bool).tril(keys - queries)
    check_gpu(tensors(queries, keys, width, torch.float32), seen, True, None, dtype)


@NEEDS_GPU
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("width", [8, 32])
@pytest.mark.parametrize(("queries", "keys"), [(1, 300), (300, 700), (513, 514)])
def test_windows_on_a_gpu(queries: int, keys: int, width: int, dtype: torch.dtype) -> None:
    window, seen = random_windows(queries, keys, 1)
    there = Window(window.first.cuda(), window.last.cuda(), 1)
    check_gpu(tensors(queries, keys, width, torch.float32), seen[:, None], False, there, dtype)


def check_gpu(qkv: list[Tensor], seen: Tensor, causal: bool, mask: Window | None, dtype: torch.dtype) -> None:
    """Output and gradients of a GPU; kernels may round products to TF32."""
    there = [x.detach().cuda().to(dtype).requires_grad_() for x in qkv]
    got = attend(*there, causal=causal, mask=mask)
    expected = by_definition(*qkv, seen).float()
    tolerance = 5e-3 if dtype == torch.float32 else 5e-2
    torch.testing.assert_close(got.float().cpu(), expected, atol=tolerance, rtol=tolerance)
    toward = torch.randn(got.shape, generator=torch.Generator().manual_seed(5))
    ours = torch.autograd.grad(got, there, toward.cuda().to(dtype))
    for a, b in zip(ours, torch.autograd.grad(expected, qkv, toward), strict=True):
        torch.testing.assert_close(a.float().cpu(), b, atol=2 * tolerance, rtol=2 * tolerance)


def test_contradictions_are_named() -> None:
    q, k, v = tensors(3, 4, 8, torch.float32)
    with pytest.raises(ValueError, match="either causal=True or a mask"):
        attend(q, k, v, causal=True, mask=torch.ones(3, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match="got 4 queries and 3 keys"):
        attend(k, q, q, causal=True)
