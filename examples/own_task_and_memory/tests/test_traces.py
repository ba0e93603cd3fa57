"""The memory keeps the contract, and its traces are averages."""

import math

import torch

from memenvs.agents import StepInputs, make_memory
from memenvs.agents.testing import check_memory


def test_contract():
    check_memory("traces", dim=8)


def test_a_trace_forgets():
    memory = make_memory("traces", 3, dim=4)
    starts = torch.tensor([[True, False, False]])
    embedding = torch.zeros(1, 3, 3)
    embedding[0, 0] = 1.0
    with torch.no_grad():
        memory.encode.bias.zero_()
        features, _ = memory(StepInputs(embedding, starts, starts))
    fastest = features[0, :, 3:7]
    torch.testing.assert_close(fastest[2], fastest[0] * math.exp(-1.0))  # two steps later, with a span of 2
