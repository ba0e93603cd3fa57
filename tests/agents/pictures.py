"""Images of noise, and settings of an environment with small images."""

from typing import Any

import torch
from torch import Tensor

SMALL: dict[str, Any] = {"image_size": (32, 32), "rooms": (2, 2), "max_episode_steps": 4, "layout_pool": 1}


def noise(count: int, side: int = 128, seed: int = 0) -> Tensor:
    """uint8, (count, side, side, 3)."""
    return torch.randint(
        0, 256, (count, side, side, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed)
    )
