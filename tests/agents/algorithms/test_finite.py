"""Numbers that are not finite are named, and only these."""

from __future__ import annotations

import math

import pytest
import torch

from memenvs.agents.algorithms.finite import check_finite, check_finite_tensors, check_finite_weights


def test_numbers() -> None:
    check_finite({"loss": 1e30, "norm": 0.0}, "after 3 steps")
    with pytest.raises(ValueError, match=r"finite, got norm nan, q -inf after 3 steps; lower learning_rate"):
        check_finite({"loss": 1.0, "norm": math.nan, "q": -math.inf}, "after 3 steps")


def test_tensors_and_weights() -> None:
    good, layer = torch.tensor([1.0, -2.0]), torch.nn.Linear(2, 1)
    check_finite_tensors("file", {"good": good})
    check_finite_weights(layer, "model.zip", "after 3 steps")
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match=r"^file: 'bad' must be finite, got NaN or infinity$"):
            check_finite_tensors("file", {"good": good, "bad": torch.tensor([0.0, value])})
        with torch.no_grad():
            layer.bias.fill_(value)
        with pytest.raises(ValueError, match=r"^model\.zip: not written, .* 'bias' after 3 steps$"):
            check_finite_weights(layer, "model.zip", "after 3 steps")
