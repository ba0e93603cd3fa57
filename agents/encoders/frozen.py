"""Frozen visual encoders by name: they replace the images in observations by features."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from safetensors.torch import save
from torch import nn

from memenvs.agents.devices import torch_device
from memenvs.agents.encoders.symbolic_encoder import SymbolicEncoder, load_symbolic_encoder
from memenvs.agents.encoders.visual import VisualEncoder, load_encoder

Network = VisualEncoder | SymbolicEncoder
#: Name -> function that loads the encoder.
ENCODERS: dict[str, Callable[..., Network]] = {
    "cnn": load_encoder,
    "symbolic": load_symbolic_encoder,
}
#: Observation key of the images.
IMAGE_KEY = "rgb"


class FrozenEncoder:
    """Maps images to features with a network that is not trained.

    Args:
        network: The network; takes uint8 (B, H, W, 3).
        device: Device that it runs on; "auto" for a GPU if there is one.

    Attributes:
        features_dim: Number of features.
        feature_key: Observation key of the features: "visual", or that of the observation that they estimate.
    """

    def __init__(self, network: Network, device: torch.device | str = "auto") -> None:
        self._device = torch_device(device)
        self._network: nn.Module = network.to(self._device).eval().requires_grad_(False)
        self.features_dim = network.features_dim
        self.feature_key = network.feature_key
        self._image_size = network.image_size

    @property
    def estimates(self) -> bool:
        """True if the features estimate an observation that the task also gives exactly."""
        return self.feature_key != VisualEncoder.feature_key

    @property
    def fingerprint(self) -> str:
        """First 16 digits of the SHA-256 of the weights."""
        weights = {name: value.cpu().contiguous() for name, value in self._network.state_dict().items()}
        return sha256(save(weights)).hexdigest()[:16]

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Encode images, uint8, (B, H, W, 3), to features, float16, (B, features_dim)."""
        with torch.inference_mode():
            features = self._network(torch.as_tensor(images, device=self._device))
        return features.to(torch.float16).cpu().numpy()

    def encoded_space(self, space: spaces.Space) -> spaces.Dict:
        """Return the observation space with features in place of images.

        Raises:
            ValueError: `space` has no images, or images of a size that the network does not take.
        """
        images = space.spaces.get(IMAGE_KEY) if isinstance(space, spaces.Dict) else None
        if images is None or images.dtype != np.uint8 or len(images.shape or ()) != 3:
            raise ValueError(f"an encoder needs observations with {IMAGE_KEY!r}, uint8 (H, W, 3), got {space}")
        size = (images.shape or ())[:2]
        if self._image_size not in (None, size):
            raise ValueError(f"image_size must be {self._image_size}, rows and columns, for this encoder, got {size}")
        assert isinstance(space, spaces.Dict)
        rest = {key: part for key, part in space.spaces.items() if key != IMAGE_KEY}
        return spaces.Dict({**rest, self.feature_key: spaces.Box(-np.inf, np.inf, (self.features_dim,), np.float16)})

    def encode_observations(self, observations: list[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
        """Replace images by features, with one call of the network.

        Args:
            observations: Batches of observations, each a dict of arrays (batch, ...); their sizes may differ.

        Returns:
            The same batches, with `feature_key`, float16 (batch, features_dim), in place of the images.
        """
        features = self(np.concatenate([observation[IMAGE_KEY] for observation in observations]))
        parts = np.split(features, np.cumsum([len(observation[IMAGE_KEY]) for observation in observations])[:-1])
        rest = [{key: value for key, value in observation.items() if key != IMAGE_KEY} for observation in observations]
        return [{**others, self.feature_key: part} for others, part in zip(rest, parts, strict=True)]


def make_encoder(name: str, *, device: torch.device | str = "auto", **settings: Any) -> FrozenEncoder:
    """Make a frozen encoder by name.

    Args:
        name: "cnn" (`load_encoder`, 256 features) and "symbolic" (`load_symbolic_encoder`, 52 numbers read from
            images of 48 x 64) come with this package.
        device: Device that it runs on.
        **settings: Arguments of its loader.

    Raises:
        ValueError: Unknown name, or its file cannot be used.
        FileNotFoundError: Its file does not exist.
    """
    if name not in ENCODERS:
        raise ValueError(f"unknown encoder {name!r}; choose from {list(ENCODERS)}")
    return FrozenEncoder(ENCODERS[name](**settings), device)
