"""Random steps, acting through them, and comparison with a reference."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from memenvs.agents.memory import Memory, State, StepInputs
from memenvs.agents.testing import MemoryUnderTest


def steps(
    count: int, width: int, trials: Sequence[Iterable[int]], episodes: Sequence[Iterable[int]] = (), seed: int = 1
) -> StepInputs:
    """Random steps of rows whose trials begin at `trials`, and further episodes at `episodes`."""
    episode, trial = (torch.zeros(len(trials), count, dtype=torch.bool) for _ in range(2))
    for flags, firsts in ((trial, trials), (episode, trials), (episode, episodes)):
        for row, first in enumerate(firsts):
            flags[row, list(first)] = True
    generator = torch.Generator().manual_seed(seed)
    return StepInputs(torch.randn(len(trials), count, width, generator=generator, dtype=torch.float64), episode, trial)


def randomize(module: nn.Module, scale: float) -> None:
    """Draw weights that are large enough to matter."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype) * scale)


def act(memory: Memory, x: StepInputs, state: State | None = None) -> tuple[Tensor, State]:
    """Features (B, T, D) and final state of acting step by step."""
    return MemoryUnderTest(memory, "").step_by_step(x, state)


def assert_same(got: Tensor, expected: Tensor, leaves: Iterable[Tensor], atol: float = 1e-9, rtol: float = 0.0) -> None:
    """Compare values, and gradients of a weighted sum of them."""
    torch.testing.assert_close(got, expected, atol=atol, rtol=rtol)
    weight = torch.linspace(-1.0, 2.0, got.numel(), dtype=got.dtype).view_as(got)
    leaves = list(leaves)
    ours, theirs = (
        torch.autograd.grad((values * weight).sum(), leaves, retain_graph=True, materialize_grads=True)
        for values in (got, expected)
    )
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=atol, rtol=rtol)
