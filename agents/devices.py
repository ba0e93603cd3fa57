"""Devices of networks, by the names that learners take."""

from __future__ import annotations

import torch
from stable_baselines3.common.utils import get_device


def torch_device(name: torch.device | str = "auto") -> torch.device:
    """Return a device; "auto" is the GPU if there is one.

    Raises:
        ValueError: It is a GPU and there is none; Stable-Baselines3 would silently take the CPU.
    """
    device = get_device(name)
    if str(name).startswith("cuda") and device.type != "cuda":
        raise ValueError(f"device must be 'auto' or 'cpu' where PyTorch finds no GPU, got {str(name)!r}")
    return device
