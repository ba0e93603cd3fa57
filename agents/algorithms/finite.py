"""Checks that numbers and weights are finite, shared by all learners."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from memenvs.agents.algorithms.archive import File


def check_finite(values: Mapping[str, float], when: str) -> None:
    """Raise a ValueError that names every loss or gradient that is NaN or infinite.

    Args:
        values: Name -> loss, statistic or norm of the gradient.
        when: Progress of the learner, for the message.
    """
    broken = ", ".join(f"{name} {value}" for name, value in values.items() if not math.isfinite(value))
    if broken:
        raise ValueError(
            f"loss and gradient must be finite, got {broken} {when}; lower learning_rate or max_grad_norm, or check "
            "the data and rewards"
        )


def check_finite_tensors(member: str, tensors: Mapping[str, Tensor]) -> None:
    """Raise a ValueError that names the first tensor with a number that is NaN or infinite.

    Args:
        member: Where the tensors come from, for the message.
        tensors: Name -> tensor.
    """
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"{member}: {name!r} must be finite, got NaN or infinity")


def check_finite_weights(module: nn.Module, path: File, when: str) -> None:
    """Raise a ValueError if a weight is NaN or infinite, before a checkpoint is written.

    Args:
        module: Policy or model.
        path: File of the checkpoint, for the message.
        when: Progress of the learner, for the message.
    """
    for name, parameter in module.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise ValueError(f"{path}: not written, weights must be finite, got NaN or infinity in {name!r} {when}")
