"""Long contexts: counted operations against closed forms, and nothing of the size of T x T."""

from __future__ import annotations

import importlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from memenvs.agents.memory.attention import KeyWindow, attend
from memenvs.agents.memory.relic import RelicConfig, RelicMemory

ROOT = Path(__file__).parents[3]
#: T, c, TFLOP of a rollout of the reference, with the prefix detached, and of a full update.
#: Source: ReLIC specification, section 8.2.
PUBLISHED = [
    (512, 128, "0.17", "0.08", "0.06"),
    (4096, 1024, "2.2", "1.2", "0.94"),
    (4096, 256, "7.2", "1.5", "0.94"),
    (16_384, 256, "245", "27", "9.5"),
    (65_536, 256, "1.235e4", "965", "130"),
    (65_536, 4096, "839", "195", "130"),
]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark as a module."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("long_context")


@pytest.fixture
def flops(benchmark: Any) -> Any:
    """The class that counts."""
    return benchmark.Flops


def test_the_arithmetic_gives_the_published_table(benchmark: Any) -> None:
    for steps, segment, reference, detached, full in PUBLISHED:
        got = benchmark.reference(benchmark.SIZES["small"], steps, steps // segment, matrices=9.34e6)
        for name, printed in (("reference", reference), ("detached", detached), ("full", full)):
            exponent = Decimal(printed).as_tuple().exponent  # of the last digit
            assert got[name] / 1e12 == pytest.approx(float(printed), abs=0.51 * 10 ** int(exponent))


def test_blocks_have_the_published_operations(benchmark: Any) -> None:
    assert 4 * benchmark.SIZES["small"].block == pytest.approx(8.39e6, rel=1e-3)


@pytest.mark.parametrize("scheme", ["full", "window", "detach"])
@pytest.mark.parametrize("long_steps", [1 << 62, 0])
@pytest.mark.slow
def test_counted_operations_are_the_closed_forms(
    benchmark: Any, monkeypatch: pytest.MonkeyPatch, scheme: str, long_steps: int
) -> None:
    """Partial, last partial and full updates with their refills."""
    size = "three layers"
    monkeypatch.setitem(benchmark.SIZES, size, benchmark.Size(3, 2, 64, 96, features=10, previous=4))
    monkeypatch.setattr("memenvs.agents.memory.relic.LONG_STEPS", long_steps)
    monkeypatch.setattr(benchmark, "WINDOW", 100)
    monkeypatch.setattr(benchmark, "PREFILL_STEPS", 600)
    monkeypatch.setattr("memenvs.agents.algorithms.ppo.PREFILL_STEPS", 600)
    row = benchmark.count_rollout(size, 1536, 3, scheme)
    assert row["counted_over_closed_form"] == {1: 1.0, 2: 1.0, 3: 1.0}
    for past in (0, 700):
        size_of_it = benchmark.SIZES[size]
        assert benchmark.count_step(size_of_it, 1536, past) == benchmark.Cost(size_of_it).step(past)


def test_the_prefix_gives_only_keys_and_values_to_the_last_layer(flops: Any) -> None:
    """Written out for one layer: no queries, attention or MLP for steps whose features are not wanted."""
    dim, mlp, steps, last = 64, 96, 40, 5
    memory = RelicMemory(dim, RelicConfig(layers=1, heads=2, dim=dim, mlp_dim=mlp, depth_dropout=0.0))
    x = _inputs(steps, dim)
    with flops() as counted, torch.no_grad():
        memory(x, None, last)
    products = 2 * dim * 2 * dim * steps + 2 * (2 * dim * dim + 3 * dim * mlp + dim * dim) * last
    assert counted.total == products + 4 * dim * last * (steps + 1)


def test_skipping_counts_alike(flops: Any) -> None:
    totals = []
    for skip in (False, True):
        memory = RelicMemory(64, RelicConfig(layers=2, heads=2, dim=64, mlp_dim=32, depth_dropout=0.0))
        with flops(skip=skip) as counted:
            memory(_inputs(600, 64), None, 20)[0].sum().backward()
        totals.append(counted.total)
    assert totals[0] == totals[1] > 0


def _inputs(steps: int, dim: int) -> Any:
    from memenvs.agents.memory import StepInputs

    episode, trial = torch.zeros(1, steps, dtype=torch.bool), torch.zeros(1, steps, dtype=torch.bool)
    episode[:, ::100] = True
    trial[:, 0] = True
    return StepInputs(torch.randn(1, steps, dim, generator=torch.Generator().manual_seed(0)), episode, trial)


def _kept(run: Any) -> int:
    """Bytes that autograd keeps of a computation, each storage once."""
    saved: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor  # kept alive, so that no address is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        run()
    return sum(tensor.untyped_storage().nbytes() for tensor in saved.values())


@pytest.mark.parametrize("kind", ["square", "sink", "suffix", "half", "windows", "trial"])
def test_attention_keeps_nothing_quadratic(flops: Any, kind: str) -> None:
    """Twice as many steps at most double the largest tensor and what autograd keeps, forward and backward."""
    largest, kept = [], []
    for steps in (2048, 4096):
        generator = torch.Generator().manual_seed(0)
        keys = steps + 1
        queries = {"square": keys, "sink": steps, "suffix": 700, "half": steps // 2}.get(kind, steps)
        q, k, v = (torch.randn(1, 2, n, 16, generator=generator).requires_grad_() for n in (queries, keys, keys))
        last = torch.arange(1, keys)[None]
        reach = {"windows": 300, "trial": steps}.get(kind)
        window = None if reach is None else KeyWindow((last - reach).clamp(min=1), last, 1)
        with flops() as counted:
            outputs = []
            kept.append(
                _kept(lambda: outputs.append(attend(q, k, v, causal=window is None, mask=window)))  # noqa: B023
            )
            outputs[0].sum().backward()
        largest.append(counted.largest)
    assert largest[1] <= 2.1 * largest[0]
    assert kept[1] <= 2.1 * kept[0]


@pytest.mark.parametrize("inter_episode", [True, False])
@pytest.mark.parametrize("past", [False, True])
def test_a_pass_keeps_nothing_quadratic(flops: Any, past: bool, inter_episode: bool) -> None:
    """Through the whole sequence, and through its last steps after a cached past."""
    largest, kept = [], []
    for steps in (2048, 4096):
        config = RelicConfig(layers=2, heads=2, dim=64, mlp_dim=64, inter_episode=inter_episode)
        memory, x = RelicMemory(64, config).train(), _inputs(steps, 64)
        state, begin = None, 0
        with flops(skip=True) as counted:
            if past:
                begin = steps - 512
                _, state = memory.prefill(x.steps(0, begin), memory.initial_state(1, max_steps=steps), last=1)
            features = []
            kept.append(_kept(lambda: features.append(memory(x.steps(begin, steps), state, 512)[0])))  # noqa: B023
            features[0].sum().backward()
        largest.append(counted.largest)
    assert largest[1] <= 2.1 * largest[0]
    assert kept[1] <= 2.1 * kept[0]
