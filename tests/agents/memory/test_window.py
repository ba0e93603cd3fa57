"""The window of newest steps, step by step."""

from __future__ import annotations

import numpy as np
import torch

from memenvs.agents.memory import StepInputs, make_memory


def test_newest_steps():
    """Features are those of the newest k embeddings of the trial, the oldest first, and zeros before it."""
    k, width, steps = 3, 2, 9
    memory = make_memory("window", width, steps=k, dim=5).double()
    embedding = torch.randn(1, steps, width, dtype=torch.float64)
    episode, trial = torch.zeros(1, steps, dtype=torch.bool), torch.zeros(1, steps, dtype=torch.bool)
    trial[0, [0, 6]] = True
    episode[0, [0, 2, 6]] = True
    features, _ = memory(StepInputs(embedding, episode, trial))
    weight, bias = memory.hidden.weight.detach().numpy().reshape(5, width, k), memory.hidden.bias.detach().numpy()
    starts = trial[0].nonzero()[:, 0].tolist()
    for t in range(steps):
        first = max(start for start in starts if start <= t)
        newest = np.zeros((k, width))
        for place in range(k):
            step = t - k + 1 + place
            if step >= first:
                newest[place] = embedding[0, step].numpy()
        expected = np.maximum(np.einsum("dik,ki->d", weight, newest) + bias, 0.0)
        np.testing.assert_allclose(features[0, t].detach().numpy(), expected)
