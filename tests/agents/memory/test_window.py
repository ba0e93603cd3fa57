"""The window of newest steps, step by step."""

import torch

from memenvs.agents.memory import make_memory
from tests.agents.memory.comparison import steps


def test_newest_steps():
    """Features are those of the newest k embeddings of the trial, the oldest first, and zeros before it."""
    k, width = 3, 2
    memory = make_memory("window", width, steps=k, dim=5).double()
    x = steps(9, width, trials=[(0, 6)], episodes=[(2,)])
    features, _ = memory(x)
    weight = memory.hidden.weight.view(5, width, k)
    for t in range(9):
        first = 6 if t >= 6 else 0
        newest = torch.zeros(k, width, dtype=torch.float64)
        seen = x.embedding[0, max(first, t + 1 - k) : t + 1]
        newest[k - len(seen) :] = seen
        expected = (torch.einsum("dik,ki->d", weight, newest) + memory.hidden.bias).relu()
        torch.testing.assert_close(features[0, t], expected)
