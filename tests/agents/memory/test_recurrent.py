"""Recurrent memories on a CPU against PyTorch's own layer over a packed batch of pieces."""

import pytest
import torch
from torch import Tensor

from memenvs.agents.memory import StepInputs, make_memory
from memenvs.agents.memory.recurrent import RecurrentMemory


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("probability", [0.05, 0.5, 1.0])
@pytest.mark.parametrize(("name", "own"), [("lstm", "_run_pieces"), ("gru", "_run")])
def test_equal_to_packed_pieces(
    name: str, own: str, probability: float, layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dtype = torch.float64
    generator = torch.Generator().manual_seed(0)
    memory = make_memory(name, 3, hidden_dim=5, layers=layers).to(dtype)
    assert isinstance(memory, RecurrentMemory)
    starts = torch.rand(4, 31, generator=generator) < probability
    starts[0] = False  # goes on without a reset
    embedding = torch.randn(4, 31, 3, generator=generator, dtype=dtype)
    past = {key: torch.randn(4, layers, 5, generator=generator, dtype=dtype) for key in memory.parts}
    probe = torch.randn(4, 31, 5, generator=generator, dtype=dtype)

    def run() -> list[Tensor]:
        leaves = [embedding.clone().requires_grad_(), *(value.clone().requires_grad_() for value in past.values())]
        state = dict(zip(past, leaves[1:], strict=True))
        features, after = memory(StepInputs(leaves[0], starts, starts), state)
        assert after is not None
        total = (features * probe).sum() + sum((value**2).sum() for value in after.values())
        assert isinstance(total, Tensor)
        gradients = torch.autograd.grad(total, [*leaves, *memory.parameters()])
        return [features, *after.values(), *gradients]

    got_all = run()
    monkeypatch.setattr(type(memory), own, getattr(RecurrentMemory, own))
    for got, expected in zip(got_all, run(), strict=True):
        torch.testing.assert_close(got, expected, atol=1e-11, rtol=1e-5)


@pytest.mark.parametrize(("settings", "bias"), [({}, 1.0), ({"forget_bias": -2.0}, -2.0)])
def test_forget_gates_begin_with_their_bias(settings: dict[str, float], bias: float) -> None:
    network = make_memory("lstm", 3, hidden_dim=5, layers=2, **settings).network
    for begin in (network.bias_ih_l0, network.bias_ih_l1):
        assert (begin.view(4, 5) == bias).all(1).tolist() == [False, True, False, False]  # i, f, g, o
