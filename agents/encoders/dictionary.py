"""An encoder for observations that are dictionaries."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_flattened_obs_dim, is_image_space
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, NatureCNN
from torch import Tensor, nn


class DictEncoder(BaseFeaturesExtractor):
    """Encodes every key by its kind and concatenates the parts.

    Images go through a convolutional network and a ReLU, a key named in `widths` through a linear layer, a key named in `one_hot` (whole
    numbers) becomes a one-hot vector for each of its entries; every other key is taken as it is, flattened.

    Args:
        observation_space: What comes in; a `Dict` (after Stable-Baselines3's preprocessing: images scaled to 0 ... 1,
            `Discrete` one-hot).
        widths: Key -> width of its linear layer.
        one_hot: Key -> number of values n; its entries must be whole numbers 0 ... n - 1.
        image_dim: Width that each image is encoded to.

    Raises:
        ValueError: A key of `widths` or `one_hot` is not in the space.

    Source:
        ReLIC release: goal and position pass a linear layer each; one-dimensional sensors of the Darkroom are concatenated raw.
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        widths: Mapping[str, int] | None = None,
        one_hot: Mapping[str, int] | None = None,
        image_dim: int = 256,
    ) -> None:
        widths, self.one_hot = dict(widths or {}), dict(one_hot or {})
        for name, keys in (("widths", widths), ("one_hot", self.one_hot)):
            for key in keys:
                if key not in observation_space.spaces:
                    raise ValueError(f"unknown key {key!r} in {name}; choose from {list(observation_space.spaces)}")
        parts: dict[str, nn.Module] = {}
        total = 0
        for key, space in observation_space.spaces.items():
            flat = get_flattened_obs_dim(space) * self.one_hot.get(key, 1)
            if is_image_space(space):
                assert isinstance(space, spaces.Box)
                parts[key] = NatureCNN(space, features_dim=image_dim)  # ends in a ReLU
                total += image_dim
            elif key in widths:
                parts[key] = nn.Sequential(nn.Flatten(), nn.Linear(flat, widths[key]))
                total += widths[key]
            else:
                parts[key] = nn.Flatten()
                total += flat
        super().__init__(observation_space, features_dim=total)
        self.parts = nn.ModuleDict(parts)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """float, (B, features_dim)."""
        encoded = []
        for key, part in self.parts.items():
            value = observations[key]
            if key in self.one_hot:
                value = nn.functional.one_hot(value.long(), self.one_hot[key]).to(value.dtype)
            encoded.append(part(value))
        return torch.cat(encoded, -1)
