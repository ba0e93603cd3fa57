"""FRMQN and truncated gradients against loops written out."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from memenvs.agents.memory import Memory, StepInputs, make_memory
from memenvs.agents.memory.frmqn import FRMQNMemory
from tests.agents.memory.comparison import assert_same, steps

B, T, D, DIM = 2, 14, 5, 6


def make(name: str = "frmqn", **kwargs: Any) -> Memory:
    """A small memory in float64 with random read weights, which start at zero otherwise."""
    torch.manual_seed(0)
    memory = make_memory(name, D, **({"dim": DIM} if name == "frmqn" else {"hidden_dim": DIM}), **kwargs).double()
    if isinstance(memory, FRMQNMemory):
        for layer in (memory.memory, memory.output):
            nn.init.normal_(layer.weight, std=0.4)
    return memory


def inputs() -> StepInputs:
    return steps(T, D, trials=[(0,), (0, 9)])


def lstm(cell: nn.LSTMCell, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """One step of a long short-term memory, gate by gate."""
    sums = cell.weight_ih @ x + cell.bias_ih + cell.weight_hh @ h + cell.bias_hh
    i, f, g, o = sums.chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


@pytest.mark.parametrize("capacity", [1, 3, T])
def test_frmqn_by_its_equations(capacity: int) -> None:
    memory, x = make(capacity=capacity), inputs()
    assert isinstance(memory, FRMQNMemory)
    x.embedding.requires_grad_()
    features, _ = memory(x)
    key, value = memory.memory.weight.chunk(2)
    plain = []
    for row in range(B):
        for t in range(T):
            if x.trial_start[row, t]:
                begin = t
                h = c = read = torch.zeros(DIM, dtype=torch.float64)
            psi = memory.fusion(x.embedding[row])
            h, c = lstm(memory.network, torch.cat([psi[t], read]), h, c)
            before = range(max(begin, t - capacity), t)
            read = torch.zeros(DIM, dtype=torch.float64)
            if len(before) > 0:
                weights = torch.stack([h @ (key @ psi[i]) for i in before]).softmax(0)
                read = sum((w * (value @ psi[i]) for w, i in zip(weights, before, strict=True)), read)
            g = memory.output.weight @ h + read
            plain.append(torch.cat([g[: DIM // 2], g[DIM // 2 :].clamp(min=0)]))
    expected = torch.stack(plain).view(B, T, DIM)
    assert_same(features, expected, [x.embedding, *memory.parameters()], atol=1e-10)


def test_frmqn_begins_as_an_lstm() -> None:
    """By its equations it reads zeros then, and half of the hidden numbers are rectified."""
    memory = make_memory("frmqn", D, dim=DIM)
    assert isinstance(memory, FRMQNMemory)
    _, value = memory.memory.weight.chunk(2)
    assert not value.any()
    assert torch.equal(memory.output.weight, torch.eye(DIM))


@pytest.mark.parametrize(
    ("name", "kwargs"), [("lstm", {}), ("gru", {"layers": 2}), ("frmqn", {"capacity": 1})], ids=str
)
@pytest.mark.parametrize("bptt", [1, 4, T])
def test_gradients_stop_every_n_steps(name: str, kwargs: dict[str, Any], bptt: int) -> None:
    """Features depend on the steps since the last cut; FRMQN reads one step more, which is no recurrence."""
    memory, x = make(name, bptt=bptt, **kwargs), inputs()
    x.embedding.requires_grad_()
    features, _ = memory(x)
    uncut, _ = make(name, **kwargs)(x)
    torch.testing.assert_close(features, uncut, atol=1e-12, rtol=0)
    for t in (T - 1, 0, 3, 4, 8):
        (gradient,) = torch.autograd.grad(features[0, t].sum(), x.embedding, retain_graph=True)
        reached = gradient[0].abs().sum(-1).nonzero()[:, 0].tolist()
        begin = t // bptt * bptt
        if name == "frmqn":  # after a cut it still reads what the step before put into the memory
            begin = max(0, begin - 1)
        assert reached == list(range(begin, t + 1))
