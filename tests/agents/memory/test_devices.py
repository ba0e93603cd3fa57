"""Memories on a second device: no mixed devices, no other dtypes, few waits."""

import copy
from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from memenvs.agents.memory import MEMORIES, StepInputs
from memenvs.agents.testing import MIXED, B, inputs, make_subject
from tests.agents.memory.test_memory import SMALL
from tests.agents.second_device import SECOND, DeviceTensor, move, second_device, to_host

#: Operations of one step of acting for which a GPU would make the host wait, at most; docs/guides/processes.md.
WAITS = {"dnc": 1, "memo": 12, "relic": 11, "smt": 7, "smt-factorized": 8, "smt-causal": 12, "sm-pooling": 7}
WAITS |= {"frmqn": 9, "lstm-on": 4, "lstm-o1": 4, "t-fifo": 8, "t-fifo+a": 9, "sat-fifo": 9, "sat-fifo-th": 11}
WAITS |= {"sat-pm": 9, "sat-pm-ph": 12}
WAITS |= dict.fromkeys(("none", "gru", "lstm", "trxl", "gtrxl", "window", "mingru", "lru", "s5"), 0)
WAITS |= dict.fromkeys(("gated-deltanet", "mlstm"), 0)
#: One of each kind; the others are tested at night.
QUICK = ("gru", "relic", "smt-causal", "sat-pm")
STEPS = 9


def there(x: StepInputs) -> StepInputs:
    """The inputs on the second device."""
    values = {field.name: getattr(x, field.name) for field in fields(x)}
    return StepInputs(**{name: DeviceTensor(v) if isinstance(v, Tensor) else v for name, v in values.items()})


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.nightly) for name in MEMORIES]
)
def test_a_memory_on_a_second_device(name: str) -> None:
    memory = make_subject(name, **SMALL[name]).memory.float()
    x = inputs(MIXED[0], memory).steps(0, STEPS)
    x = replace(x, embedding=x.embedding.float(), pose=x.pose.float())
    here = copy.deepcopy(memory)
    expected, _ = here(x, here.initial_state(B))
    parameters = list(here.parameters())
    if parameters:
        expected.sum().backward()
    move(memory)
    x = there(x)
    with second_device() as device:
        state = memory.initial_state(B)
        dtypes = {key: value.dtype for key, value in state.items()}
        most = 0
        for t in range(STEPS):
            device.waits.clear()
            _, state = memory.step(x.steps(t, t + 1), state)
            most = max(most, device.waits.total())
        assert {key: value.dtype for key, value in state.items()} == dtypes
        assert {value.device for value in state.values()} <= {SECOND}
        features, _ = memory(x, memory.initial_state(B))
        assert features.dtype == torch.float32
        if parameters:
            features.sum().backward()
        memory.prefill(x, memory.initial_state(B))
    torch.testing.assert_close(to_host(features), expected, atol=1e-5, rtol=1e-4)
    # float32: some gradients are sums that cancel, so errors are relative to the largest one
    largest = max(
        (float(parameter.grad.abs().max()) for parameter in parameters if parameter.grad is not None), default=1.0
    )
    for ours, theirs in zip(memory.parameters(), parameters, strict=True):
        assert (ours.grad is None) == (theirs.grad is None)
        if ours.grad is not None:
            assert float((to_host(ours.grad) - theirs.grad).abs().max()) <= 1e-2 * largest
    assert most <= WAITS.get(name, 12), device.waits


def test_the_second_device_refuses_and_counts() -> None:
    a = DeviceTensor(torch.arange(6.0).reshape(2, 3))
    with second_device() as device:
        with pytest.raises(RuntimeError, match="add: expected all tensors to be on the same device"):
            a + torch.ones(3)
        made = torch.ones(3, device=SECOND)
        total = (a[:, 1:] * 2 + made[1:] + torch.tensor(1.0)).sum()  # a single number of the host is allowed
        assert device.waits.total() == 0
        assert float(total) == 2 * (1 + 2 + 4 + 5) + 4 + 4
        assert device.waits == {"_local_scalar_dense": 1}
        a[a > 4].sum()
        assert a.cpu().tolist() == [[0, 1, 2], [3, 4, 5]]
        assert device.waits == {"_local_scalar_dense": 1, "index": 1, "_to_copy": 1}
