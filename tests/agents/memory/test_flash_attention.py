"""flash-attn as a backend: its packing and decoding are the reference's attention."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import fields
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from memenvs.agents.memory import StepInputs, flash, make_memory
from memenvs.agents.memory.attention import KeyWindow, attend
from memenvs.agents.testing import MIXED, B, T, inputs, make_subject
from tests.agents.memory import fake_flash_attn

REASON = "needs flash-attn and a GPU: MEMENVS_TEST_GPU=1, and " + flash.INSTALL_FLASH
HAS_PACKAGE = importlib.util.find_spec("flash_attn") is not None and torch.cuda.is_available()


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.skipif(not HAS_PACKAGE, reason=REASON))])
def device(request, monkeypatch) -> Iterator[str]:
    """The device on which the stand-in, or the package, is chosen."""
    monkeypatch.setenv(flash.VARIABLE, "flash-attn")
    if request.param == "fake":
        monkeypatch.setattr(flash, "_DEVICES", ("cpu",))
        monkeypatch.setattr(flash.importlib.util, "find_spec", lambda name: SimpleNamespace())
        monkeypatch.setitem(sys.modules, "flash_attn", fake_flash_attn)
    flash.chosen_package.cache_clear()
    yield "cpu" if request.param == "fake" else "cuda"
    flash.chosen_package.cache_clear()


def tensors(queries: int, keys: int, device: str, batch: int = 3, width: int = 16) -> list[Tensor]:
    """q, k, v in float16, laid out as a network does."""
    generator = torch.Generator().manual_seed(queries + 7 * keys)
    shapes = [(batch, n, 2, width) for n in (queries, keys, keys)]
    return [torch.randn(shape, generator=generator).half().to(device).transpose(1, 2) for shape in shapes]


def check(qkv: list[Tensor], mask: Tensor | KeyWindow, *, with_gradients: bool = True) -> None:
    """Output and gradients are those of the reference in float64, within half precision."""
    own = [each.detach().requires_grad_(with_gradients) for each in qkv]
    double = [each.detach().double().requires_grad_(with_gradients) for each in qkv]  # which flash-attn does not take
    got, expected = attend(*own, causal=False, mask=mask), attend(*double, causal=False, mask=mask)
    assert got.dtype == torch.float16
    torch.testing.assert_close(got.double(), expected, atol=4e-3, rtol=4e-3)
    if with_gradients:
        direction = torch.randn_like(expected)
        ours = torch.autograd.grad(got, own, direction.half())
        for a, b in zip(ours, torch.autograd.grad(expected, double, direction), strict=True):
            torch.testing.assert_close(a.double(), b, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("sinks", [0, 1, 3])
def test_ragged_windows_are_packed(device, sinks):
    """Episodes and trials of different length in each sequence; with and without steps before the new ones."""
    for queries, past in ((40, 0), (17, 9)):
        steps = torch.arange(queries).expand(3, -1)
        begins = torch.zeros(3, queries, dtype=torch.int64)
        begins[0, 5:], begins[1, 30 % queries :], begins[2, 16:] = 5 + past, 30 % queries + past, 16 + past
        window = KeyWindow((sinks + begins).to(device), (sinks + past + steps).to(device), sinks)
        before = fake_flash_attn.calls["flash_attn_varlen_func"]
        check(tensors(queries, sinks + past + queries, device), window)
        assert device == "cuda" or fake_flash_attn.calls["flash_attn_varlen_func"] == before + 1


@pytest.mark.parametrize("sinks", [0, 1, 3])
def test_a_decision_reads_the_cache(device, sinks):
    """One query in each sequence, with other numbers of steps; sinks are joined by the log-sum-exp."""
    first, last = torch.tensor([sinks, sinks + 4, sinks]), torch.tensor([sinks + 19, sinks + 4, sinks + 7])
    window = KeyWindow(first[:, None].to(device), last[:, None].to(device), sinks)
    before = fake_flash_attn.calls["flash_attn_with_kvcache"]
    check(tensors(1, sinks + 20, device), window, with_gradients=False)
    assert device == "cuda" or fake_flash_attn.calls["flash_attn_with_kvcache"] == before + 1
    check(tensors(1, sinks + 20, device), window)  # with gradients it is packed


def test_absent_elements_are_left_out(device):
    """Scene memories of different length."""
    present = torch.arange(12)[None] < torch.tensor([12, 1, 7])[:, None]
    for queries in (1, 12):
        check(tensors(queries, 12, device), present[:, None, None].to(device))


def test_what_it_cannot_do_is_left_to_pytorch(device):
    """Other types, widths and masks do not reach the package."""
    before = dict(fake_flash_attn.calls)
    mask = torch.ones(3, 1, 5, 5, dtype=torch.bool, device=device).tril()
    window = KeyWindow(torch.zeros(3, 5, dtype=torch.int64), torch.arange(5).expand(3, -1))
    attend(*tensors(5, 5, device), causal=False, mask=mask)
    attend(*tensors(5, 5, device), causal=True)
    attend(*(each.float() for each in tensors(5, 5, "cpu")), causal=False, mask=window)
    attend(*tensors(5, 5, "cpu", width=12), causal=False, mask=window)
    assert fake_flash_attn.calls == before
    steps = torch.arange(64)[None]
    assert flash.pack_windows(steps, steps + 40, 0, 104) is None  # each query has another first key


def test_a_memory_acts_and_learns_with_it(device, monkeypatch):
    """Trials that begin inside a batch: features in half precision are those of PyTorch's attention in float64."""
    settings = {"layers": 2, "heads": 2, "dim": 16, "mlp_dim": 16, "sink": "kv", "max_episode_steps": T}
    memory = make_subject("relic", **settings, cache_dtype="float64").memory
    x = inputs(MIXED[0], memory)
    with torch.no_grad():
        expected, _ = memory(x, memory.initial_state(B))
    half = make_subject("relic", **settings, cache_dtype="float16").memory.half().to(device)
    values = {each.name: getattr(x, each.name) for each in fields(x)}
    in_half = {name: v.half() if v is not None and v.is_floating_point() else v for name, v in values.items()}
    x = StepInputs(**{name: None if v is None else v.to(device) for name, v in in_half.items()})
    monkeypatch.setattr(fake_flash_attn, "calls", dict.fromkeys(fake_flash_attn.calls, 0))
    features, _ = half(x, half.initial_state(B))
    features.sum().backward()
    acted, state = [], half.initial_state(B)
    with torch.no_grad():
        for t in range(T):
            step, state = half.step(x.steps(t, t + 1), state)
            acted.append(step)
    scale = float(expected.abs().max())
    for got in (features, torch.stack(acted, 1)):
        assert float((got.detach().double().cpu() - expected).abs().max()) < 0.03 * scale
    assert device == "cuda" or all(count > 0 for count in fake_flash_attn.calls.values())


@pytest.mark.parametrize(
    ("value", "package", "message"),
    [
        ("flash", None, r"MEMENVS_ATTENTION must be one of \['sdpa', 'flash-attn'\], got 'flash'"),
        ("flash-attn", None, r"needs the package flash-attn: pip install flash-attn.*BSD"),
        (
            "flash-attn",
            SimpleNamespace(__version__="4.0"),
            r"flash-attn 4\.0 has no flash_attn_varlen_func; 2\.6",
        ),
        (
            "flash-attn",
            SimpleNamespace(
                __version__="1.0",
                flash_attn_varlen_func=fake_flash_attn.flash_attn_varlen_func,
                flash_attn_with_kvcache=lambda q, k_cache, v_cache, cache_seqlens: None,
            ),
            r"flash-attn 1\.0 has a flash_attn_with_kvcache without cache_leftpad, return_softmax_lse; .*unset",
        ),
    ],
)
def test_a_backend_that_cannot_be_used_is_named(value, package, message, monkeypatch):
    """A memory is not even made."""
    monkeypatch.setenv(flash.VARIABLE, value)
    found = None if package is None else SimpleNamespace()
    monkeypatch.setattr(flash.importlib.util, "find_spec", lambda name: found)
    monkeypatch.setitem(sys.modules, "flash_attn", package)
    flash.chosen_package.cache_clear()
    with pytest.raises((ValueError, ImportError), match=message):
        make_memory("gru", 4)
    flash.chosen_package.cache_clear()
