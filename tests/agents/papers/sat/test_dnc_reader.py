"""The reader of Room Ballet's tokens by a DNC, against the steps that it should take."""

from __future__ import annotations

import pytest
import torch

from memenvs.agents.memory import StepInputs
from memenvs.agents.memory.dnc import DNCConfig
from memenvs.agents.papers.sat.dnc_reader import DNCReader

B, T, D = 2, 9, 3


def test_the_task_is_a_first_step_or_part_of_every_step() -> None:
    config = DNCConfig(hidden_dim=4, cells=5, cell_dim=3, read_heads=2)
    generator = torch.Generator().manual_seed(5)
    tokens, query, task = (torch.randn(B, *shape, generator=generator) for shape in ((T, D), (D,), (4,)))
    readers = {on: DNCReader(D, 4, on, config) for on in ("first", "every")}
    for reader in readers.values():
        answer = reader(tokens, query, task)
        assert answer.shape == (B, reader.output_dim) == (B, 4 + 2 * 3)
        assert not torch.equal(answer, reader(tokens, query, task + 1))
    project = readers["first"].project
    assert project is not None
    expected = torch.cat([project(task)[:, None], tokens, query[:, None]], 1)
    start = torch.zeros(B, T + 2, dtype=torch.bool)
    start[:, 0] = True
    features, _ = readers["first"].memory(StepInputs(expected, start, start))
    torch.testing.assert_close(readers["first"](tokens, query, task), features[:, -1])
    expected = torch.cat([torch.cat([tokens, query[:, None]], 1), task[:, None].expand(B, T + 1, 4)], -1)
    features, _ = readers["every"].memory(StepInputs(expected, start[:, :-1], start[:, :-1]))
    torch.testing.assert_close(readers["every"](tokens, query, task), features[:, -1])
    with pytest.raises(ValueError, match=r"unknown task 'last'; choose from \['first', 'every'\]"):
        DNCReader(D, 4, "last", config)  # type: ignore[arg-type]
