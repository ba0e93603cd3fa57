"""Frozen encoders by name: pictures in, features out, which are stored in place of the pictures."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from safetensors.torch import save
from stable_baselines3.common.utils import get_device
from torch import nn

from memenvs.agents.encoders.vc1 import VC1Encoder, load_vc1
from memenvs.agents.encoders.visual import VisualEncoder, load_encoder

#: Name -> what loads it.
ENCODERS: dict[str, Callable[..., VisualEncoder | VC1Encoder]] = {"cnn": load_encoder, "vc1": load_vc1}
#: Keys of observations: the pictures that are encoded, and what stands in their place.
IMAGE_KEY, FEATURE_KEY = "rgb", "visual"


class FrozenEncoder:
    """Features of pictures, from a network that does not learn.

    Args:
        network: The network, with `features_dim`; takes uint8 (B, H, W, 3).
        device: Where it runs; "auto" for a GPU if there is one.
    """

    def __init__(self, network: VisualEncoder | VC1Encoder, device: torch.device | str = "auto") -> None:
        self._device = get_device(device)
        self._network: nn.Module = network.to(self._device).eval().requires_grad_(False)
        self.features_dim = network.features_dim

    @property
    def fingerprint(self) -> str:
        """Tells encoders with other weights apart: their SHA-256, 16 digits."""
        weights = {name: value.cpu().contiguous() for name, value in self._network.state_dict().items()}
        return sha256(save(weights)).hexdigest()[:16]

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Features, float16, (B, features_dim), of pictures, uint8, (B, H, W, 3)."""
        with torch.inference_mode():
            features = self._network(torch.as_tensor(images, device=self._device))
        return features.to(torch.float16).cpu().numpy()

    def encoded_space(self, space: spaces.Space) -> spaces.Dict:
        """The space of observations whose pictures were replaced by features.

        Raises:
            ValueError: `space` has no pictures.
        """
        pictures = space.spaces.get(IMAGE_KEY) if isinstance(space, spaces.Dict) else None
        if pictures is None or pictures.dtype != np.uint8 or len(pictures.shape or ()) != 3:
            raise ValueError(f"an encoder needs observations with {IMAGE_KEY!r}, uint8 (H, W, 3), got {space}")
        assert isinstance(space, spaces.Dict)
        rest = {key: part for key, part in space.spaces.items() if key != IMAGE_KEY}
        return spaces.Dict({**rest, FEATURE_KEY: spaces.Box(-np.inf, np.inf, (self.features_dim,), np.float16)})

    def encode_observations(self, observations: list[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
        """Batches of observations with features in place of pictures; all pictures go through the network at once."""
        features = self(np.concatenate([each[IMAGE_KEY] for each in observations]))
        parts = np.split(features, np.cumsum([len(each[IMAGE_KEY]) for each in observations])[:-1])
        rest = [{key: value for key, value in each.items() if key != IMAGE_KEY} for each in observations]
        return [{**others, FEATURE_KEY: part} for others, part in zip(rest, parts, strict=True)]


def make_encoder(name: str, *, device: torch.device | str = "auto", **settings: Any) -> FrozenEncoder:
    """A frozen encoder by name.

    Args:
        name: "cnn" (`load_encoder`, 256 features; comes with this package) or "vc1" (`load_vc1`, 768 features; needs `weights=FILE`).
        device: Where it runs.
        **settings: Of its loader.

    Raises:
        ValueError: Unknown name, or its file cannot be used.
        FileNotFoundError: Its file is not there.
        ImportError: What it needs is not installed.
    """
    if name not in ENCODERS:
        raise ValueError(f"unknown encoder {name!r}; choose from {list(ENCODERS)}")
    return FrozenEncoder(ENCODERS[name](**settings), device)
