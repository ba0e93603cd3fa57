"""Encoder for observations that are dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_flattened_obs_dim, is_image_space
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, NatureCNN
from torch import Tensor, nn

#: Smallest image side, in pixels, of which the convolutions of `NatureCNN` leave at least one pixel.
NATURE_CNN_SIZE = 36


class SmallCNN(BaseFeaturesExtractor):
    """Two 3 x 3 convolutions of 16 channels (strides 2, 1) and a linear layer, each with a ReLU.

    Args:
        observation_space: Images, channels first (C, H, W), at least 7 x 7, scaled to [0, 1] by Stable-Baselines3.
        features_dim: Width of the linear layer.

    Raises:
        ValueError: Images are smaller than 7 x 7.

    Source:
        Decision-Pretrained Transformer, network for Miniworld. ReLIC uses it too, with 8 features of images of 25 x 25.
    """

    def __init__(self, observation_space: spaces.Box, features_dim: int = 256) -> None:
        super().__init__(observation_space, features_dim)
        channels, height, width = observation_space.shape
        if min(height, width) < 7:
            raise ValueError(f"images must have at least 7 x 7 pixels, got {height} x {width}")
        pixels = ((height - 3) // 2 - 1) * ((width - 3) // 2 - 1)  # after both convolutions
        self.layers = nn.Sequential(
            nn.Conv2d(channels, 16, 3, stride=2),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * pixels, features_dim),
            nn.ReLU(),
        )

    def forward(self, observations: Tensor) -> Tensor:
        """Encode images, float, (B, C, H, W) -> (B, features_dim)."""
        return self.layers(observations)


class DictEncoder(BaseFeaturesExtractor):
    """Encodes every key by its kind and concatenates the results.

    Images pass a convolutional network that ends in a ReLU: `NatureCNN` of Stable-Baselines3, or `SmallCNN` if they
    are too small for it. A key in `widths` passes a linear layer, and a ReLU if it is in `rectified` too. Every other
    key is flattened; a key in `scaled` is first mapped from its bounds to [-1, 1]. Texts are for `OptionsEncoder`,
    not for this one.

    Args:
        observation_space: A `Dict`. Stable-Baselines3 has scaled images to [0, 1] and made `Discrete` one-hot.
        widths: Key -> width of its linear layer.
        scaled: Keys of `Box` spaces with finite bounds that are mapped to [-1, 1].
        image_dim: Width that each image is encoded to.
        rectified: Keys of `widths` whose linear layer is followed by a ReLU.

    Raises:
        ValueError: A key of `widths` or `scaled` is not in the space, one of `scaled` has no finite bounds, one of
            `rectified` is not in `widths`, or an image is smaller than 7 x 7.

    Source:
        ReLIC's release: goal and position pass a linear layer each, features of a frozen visual encoder one with a
        ReLU; one-dimensional sensors of the Darkroom are concatenated raw.
    """

    def __init__(
        self,
        observation_space: spaces.Dict,
        widths: Mapping[str, int] | None = None,
        scaled: Sequence[str] = (),
        image_dim: int = 256,
        rectified: Sequence[str] = (),
    ) -> None:
        widths = dict(widths or {})
        for name, keys in (("widths", widths), ("scaled", scaled)):
            for key in keys:
                if key not in observation_space.spaces:
                    raise ValueError(f"unknown key {key!r} in {name}; choose from {list(observation_space.spaces)}")
        for key in rectified:
            if key not in widths:
                raise ValueError(f"unknown key {key!r} in rectified; choose from those of widths, {list(widths)}")
        parts: dict[str, nn.Module] = {}
        total = 0
        for key, space in observation_space.spaces.items():
            flat = get_flattened_obs_dim(space)
            if is_image_space(space):
                assert isinstance(space, spaces.Box)
                cnn = SmallCNN if min(space.shape[1:]) < NATURE_CNN_SIZE else NatureCNN
                parts[key] = cnn(space, features_dim=image_dim)
                total += image_dim
            elif key in widths:
                activation = [nn.ReLU()] if key in rectified else []
                parts[key] = nn.Sequential(nn.Flatten(), nn.Linear(flat, widths[key]), *activation)
                total += widths[key]
            else:
                parts[key] = nn.Flatten()
                total += flat
        super().__init__(observation_space, features_dim=total)
        self.parts = nn.ModuleDict(parts)
        self._scaled = tuple(scaled)
        for key in scaled:
            low, high = _bounds(key, observation_space[key])
            self.register_buffer(f"_low_{key}", low, persistent=False)  # from the space, not learned
            self.register_buffer(f"_scale_{key}", 2.0 / (high - low), persistent=False)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Encode observations; float, (B, features_dim)."""
        encoded = []
        for key, part in self.parts.items():
            value = observations[key]
            if key in self._scaled:
                value = (value - self.get_buffer(f"_low_{key}")) * self.get_buffer(f"_scale_{key}") - 1.0
            encoded.append(part(value if value.dim() > 1 else value[:, None]))  # a Box of shape () has no axis
        return torch.cat(encoded, -1)


def _bounds(key: str, space: spaces.Space) -> tuple[Tensor, Tensor]:
    """Return the lower and upper bounds of a space that is scaled.

    Raises:
        ValueError: The space has no bounds, or they are equal.
    """
    if (
        not isinstance(space, spaces.Box)
        or not np.all(np.isfinite([space.low, space.high]))
        or np.any(space.low >= space.high)
    ):
        raise ValueError(f"scaled key {key!r} must be a Box with finite bounds, got {space}")
    return torch.as_tensor(space.low), torch.as_tensor(space.high)
