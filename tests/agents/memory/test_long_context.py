"""Long contexts: counted operations, and nothing of the size of T x T."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks._flops import Flops
from memenvs.agents.memory import StepInputs
from memenvs.agents.memory.attention import KeyWindow, attend
from memenvs.agents.memory.relic import RelicConfig, RelicMemory
from tests.agents.memory.comparison import steps


def test_the_prefix_gives_only_keys_and_values_to_the_last_layer() -> None:
    """Written out for one layer: no queries, attention or MLP for steps whose features are not wanted."""
    dim, mlp, count, last = 64, 96, 40, 5
    memory = RelicMemory(dim, RelicConfig(layers=1, heads=2, dim=dim, mlp_dim=mlp, depth_dropout=0.0))
    x = _inputs(count, dim)
    with Flops() as counted, torch.no_grad():
        memory(x, None, last)
    products = 2 * dim * 2 * dim * count + 2 * (2 * dim * dim + 3 * dim * mlp + dim * dim) * last
    assert counted.total == products + 4 * dim * last * (count + 1)


def _inputs(count: int, dim: int) -> StepInputs:
    x = steps(count, dim, trials=[(0,)], episodes=[range(0, count, 100)])
    return replace(x, embedding=x.embedding.float())


def kept_bytes(run: Any) -> int:
    """Bytes that autograd keeps of a computation, each storage once."""
    saved: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        saved[tensor.untyped_storage().data_ptr()] = tensor  # kept alive, so that no address is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        run()
    return sum(tensor.untyped_storage().nbytes() for tensor in saved.values())


def check_linear(make: Callable[[int], Callable[[], Tensor]], **settings: Any) -> None:
    """Compare computations over 2048 and 4096 steps, forward and backward.

    Twice as many steps at most double the largest tensor and what autograd keeps.
    """
    largest, kept = [], []
    for count in (2048, 4096):
        run, outputs = make(count), []
        with Flops(**settings) as counted:
            kept.append(kept_bytes(lambda: outputs.append(run())))  # noqa: B023
            outputs[0].sum().backward()
        largest.append(counted.largest)
    assert largest[1] <= 2.1 * largest[0]
    assert kept[1] <= 2.1 * kept[0]


@pytest.mark.parametrize("kind", ["square", "sink", "suffix", "half", "windows", "trial"])
def test_attention_keeps_nothing_quadratic(kind: str) -> None:
    def make(steps: int) -> Callable[[], Tensor]:
        generator = torch.Generator().manual_seed(0)
        keys = steps + 1
        queries = {"square": keys, "sink": steps, "suffix": 700, "half": steps // 2}.get(kind, steps)
        q, k, v = (torch.randn(1, 2, n, 16, generator=generator).requires_grad_() for n in (queries, keys, keys))
        last = torch.arange(1, keys)[None]
        reach = {"windows": 300, "trial": steps}.get(kind)
        window = None if reach is None else KeyWindow((last - reach).clamp(min=1), last, 1)
        return lambda: attend(q, k, v, causal=window is None, mask=window)

    check_linear(make)


@pytest.mark.parametrize("inter_episode", [True, False])
@pytest.mark.parametrize("past", [False, True])
def test_a_pass_keeps_nothing_quadratic(past: bool, inter_episode: bool) -> None:
    """Through the whole sequence, and through its last steps after a cached past."""

    def make(steps: int) -> Callable[[], Tensor]:
        config = RelicConfig(layers=2, heads=2, dim=64, mlp_dim=64, inter_episode=inter_episode)
        memory, x = RelicMemory(64, config).train(), _inputs(steps, 64)
        begin = steps - 512 if past else 0

        def run() -> Tensor:
            state = memory.initial_state(1, max_steps=steps) if past else None
            if past:
                _, state = memory.prefill(x.steps(0, begin), state, last=1)
            return memory(x.steps(begin, steps), state, 512)[0]

        return run

    check_linear(make, skip=True)
