"""The log of the newest steps against lists."""

import pytest
import torch
from torch import Tensor

from memenvs.agents.memory.base import State
from memenvs.agents.memory.step_log import append, empty_log, view_log


class Lists:
    """The newest steps of each row since its last reset, as lists."""

    def __init__(self, rows: int, capacity: int) -> None:
        self.rows: list[list[float]] = [[] for _ in range(rows)]
        self.capacity = capacity

    def append(self, values: Tensor, resets: Tensor) -> None:
        for row, (kept, news, starts) in enumerate(zip(self.rows, values.tolist(), resets.tolist(), strict=True)):
            for value, start in zip(news, starts, strict=True):
                kept = [*([] if start else kept), value[0]]
            self.rows[row] = kept[-self.capacity :]


def pairs(values: Tensor) -> Tensor:
    """Values of the tensor "b" that belong to those of "a", (B, 3, T, 2)."""
    return torch.stack([torch.cat([k * values, -values], -1) for k in range(3)], 1)


def newest(state: State, capacity: int) -> list[list[float]]:
    view, live = view_log(state, capacity)
    assert view["a"].shape[1] == int(live.max())
    assert torch.equal(view["b"], pairs(view["a"]))
    return [row[len(row) - n :, 0].tolist() for row, n in zip(view["a"], live.tolist(), strict=True)]


@pytest.mark.parametrize("capacity", [1, 2, 5, 40])
@pytest.mark.parametrize("reset_probability", [0.0, 0.1, 0.6])
def test_the_log_equals_lists(capacity: int, reset_probability: float) -> None:
    generator = torch.Generator().manual_seed(capacity)
    state, lists = empty_log(3, capacity, {"a": (1,), "b": (3, 2)}, torch.zeros(())), Lists(3, capacity)
    old: list[tuple[State, list[list[float]]]] = []
    for steps in [1, 1, 4, 1, 1, 13, 1, 2, 1, 1, 1, 30, *[1] * 12]:
        values = torch.randn(3, steps, 1, generator=generator)
        resets = torch.rand(3, steps, generator=generator) < reset_probability
        dropped = append(state, {"a": values + 9, "b": pairs(values)}, resets, capacity)
        assert dropped["a"].shape == state["a"].shape  # for a value only; the state before stays as it was
        old.append((state, newest(state, capacity)))
        state = append(state, {"a": values, "b": pairs(values)}, resets, capacity)
        lists.append(values, resets)
        assert newest(state, capacity) == lists.rows
        for before, then in old[-3:]:
            assert newest(before, capacity) == then
