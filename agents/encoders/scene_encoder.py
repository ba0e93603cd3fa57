"""Encoder for a robot's colour, depth and label images, or one row of rays, and its pose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from memenvs.checks import check_int, choices_for

Network = Literal["small", "resnet"]
DISTANCE_SCALE = 5.0
"""Metres that depths, ranges and positions are divided by."""
LABELS = 40
"""Classes of NYU40. Label 0, "no class", has no channel."""
NORM_GROUPS = 16
"""Groups of each group normalisation."""


class QuarterResNet18(nn.Sequential):
    """ResNet-18 with a quarter of its channels.

    There is no stride and no pooling before the end of the first stage. A linear layer over the whole last feature map
    replaces the mean. For images of 3 x 48 x 64 and 64 features it has 1,095,376 parameters.

    Args:
        channels: Channels of the input.
        height: Rows of the input.
        width: Columns of the input.
        features_dim: Width of the linear layer.

    Source:
        Fang et al., "Scene Memory Transformer", 2019, which lists its changes to He et al., 2016. Group normalisation
        as in SoundSpaces.
    """

    def __init__(self, channels: int, height: int, width: int, features_dim: int) -> None:
        stages = [ResidualBlock(16, 16, 1), ResidualBlock(16, 16, 1)]
        for inputs, outputs in ((16, 32), (32, 64), (64, 128)):
            stages += [ResidualBlock(inputs, outputs, 2), ResidualBlock(outputs, outputs, 1)]
            height, width = -(-height // 2), -(-width // 2)
        stem = [nn.Conv2d(channels, 16, 7, padding=3, bias=False), nn.GroupNorm(NORM_GROUPS, 16), nn.ReLU()]
        super().__init__(*stem, *stages, nn.Flatten(), nn.Linear(128 * height * width, features_dim))


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions, each with group normalisation, with a shortcut (He et al., 2016).

    Args:
        inputs: Channels of the input.
        outputs: Channels of the output.
        stride: Stride of the first convolution. Where the output has another shape, the shortcut is a 1 x 1
            convolution.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.GroupNorm(NORM_GROUPS, outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.GroupNorm(NORM_GROUPS, outputs),
        )
        self.input = nn.Sequential()  # the shortcut
        if stride > 1 or inputs != outputs:
            self.input = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.GroupNorm(NORM_GROUPS, outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """float, (B, inputs, H, W) -> (B, outputs, H / stride, W / stride), rounded up."""
        return (self.layers(x) + self.input(x)).relu()


class SmallNetwork(nn.Sequential):
    """Three 3 x 3 convolutions (stride 2; 16, 32, 32 channels) and a linear layer; cheap.

    Args:
        channels: Channels of the input.
        height: Rows of the input.
        width: Columns of the input.
        features_dim: Width of the linear layer.
    """

    def __init__(self, channels: int, height: int, width: int, features_dim: int) -> None:
        layers: list[nn.Module] = []
        for outputs in (16, 32, 32):
            layers += [nn.Conv2d(channels, outputs, 3, stride=2, padding=1), nn.ReLU()]
            channels = outputs
            height, width = -(-height // 2), -(-width // 2)
        super().__init__(*layers, nn.Flatten(), nn.Linear(channels * height * width, features_dim))


class ScanNetwork(nn.Sequential):
    """Two convolutions over rays (kernel 5, stride 2, 32 channels) and a linear layer.

    Args:
        channels: Channels of the input.
        rays: Number of rays.
        features_dim: Width of the linear layer.
    """

    def __init__(self, channels: int, rays: int, features_dim: int) -> None:
        layers: list[nn.Module] = []
        for _ in range(2):
            layers += [nn.Conv1d(channels, 32, 5, stride=2, padding=2), nn.ReLU()]
            channels = 32
            rays = -(-rays // 2)
        super().__init__(*layers, nn.Flatten(), nn.Linear(channels * rays, features_dim))


NETWORKS: dict[Network, Callable[[int, int, int, int], nn.Module]] = {"small": SmallNetwork, "resnet": QuarterResNet18}


class SceneEncoder(BaseFeaturesExtractor):
    """Encodes colour, depth, labels, rays and pose separately and concatenates the results.

    | key | space | input of the network | network |
    |---|---|---|---|
    | `rgb` | uint8 (3, H, W) | -0.5 to 0.5 | `network` |
    | `depth` | float32 (H, W, 1), m, 0 for invalid | depth / 5; 1 where valid | `network` |
    | `semantic` | uint8 (H, W), NYU40 | one-hot, all 0 for label 0 | `network` |
    | `scan`, `scan_class`, or both | float32 and uint8 (R,) | as depth and labels | `ScanNetwork` |
    | `pose` | float32 (3,), x m, y m, heading rad | x / 5, y / 5, cosine, sine | none |

    Args:
        observation_space: A `Dict` with some of these keys and no other, as Stable-Baselines3 passes it: `rgb` has
            channels first, and `forward` gets it as floats from 0 to 1.
        network: Network for images: "resnet" (`QuarterResNet18`) or "small" (`SmallNetwork`).
        dim: Width that each of `rgb`, `depth`, `semantic` and the rays is encoded to; >= 1.

    Raises:
        ValueError: The space has another key, none of these, or one of another shape; or a setting is not allowed.

    Source:
        Fang et al., "Scene Memory Transformer", 2019, section on embeddings. Rays and small networks are ours.
    """

    def __init__(self, observation_space: spaces.Dict, network: Network = "small", dim: int = 64) -> None:
        if network not in NETWORKS:
            raise ValueError(f"unknown network {network!r}; {choices_for(network, get_args(Network))}")
        check_int("dim", dim)
        shapes = {key: _checked_shape(key, space) for key, space in observation_space.spaces.items()}
        if not shapes:
            raise ValueError("observations must have one of the keys that are encoded, got none")
        parts: dict[str, nn.Module] = {}
        for key, channels in (("rgb", 3), ("depth", 2), ("semantic", LABELS)):
            if key in shapes:
                height, width = shapes[key]
                parts[key] = NETWORKS[network](channels, height, width, dim)
        if network == "resnet" and not parts:
            raise ValueError("network must be 'small' where there is no image, which is what it is for, got 'resnet'")
        channels = 2 * ("scan" in shapes) + LABELS * ("scan_class" in shapes)
        if channels > 0:
            rays = {shapes[key][0] for key in ("scan", "scan_class") if key in shapes}
            if len(rays) > 1:
                raise ValueError(f"scan and scan_class must have equally many rays, got {sorted(rays)}")
            parts["scan"] = ScanNetwork(channels, rays.pop(), dim)
        super().__init__(observation_space, features_dim=dim * len(parts) + 4 * ("pose" in shapes))
        self.parts = nn.ModuleDict(parts)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """Encode observations; float, (B, features_dim): colour, depth, labels, rays, pose."""
        inputs: dict[str, Tensor] = {}
        if "rgb" in observations:
            inputs["rgb"] = observations["rgb"] - 0.5  # (B, 3, H, W)
        if "depth" in observations:
            inputs["depth"] = _with_validity(observations["depth"].squeeze(-1))  # (B, 2, H, W)
        if "semantic" in observations:
            inputs["semantic"] = _one_hot(observations["semantic"])  # (B, 40, H, W)
        rays = []
        if "scan" in observations:
            rays.append(_with_validity(observations["scan"]))  # (B, 2, R)
        if "scan_class" in observations:
            rays.append(_one_hot(observations["scan_class"]))  # (B, 40, R)
        if rays:
            inputs["scan"] = torch.cat(rays, 1)
        encoded = [part(inputs[key]) for key, part in self.parts.items()]
        if "pose" in observations:
            x, y, heading = observations["pose"].unbind(-1)
            encoded.append(torch.stack([x / DISTANCE_SCALE, y / DISTANCE_SCALE, heading.cos(), heading.sin()], -1))
        return torch.cat(encoded, -1)


def _with_validity(depth: Tensor) -> Tensor:
    """Convert depths, float (B, ...), to (B, 2, ...): depth / `DISTANCE_SCALE`, and 1 where it is valid."""
    return torch.stack([depth / DISTANCE_SCALE, (depth > 0).to(depth.dtype)], 1)


def _one_hot(labels: Tensor) -> Tensor:
    """Convert labels, float (B, ...), to 40 channels, (B, 40, ...)."""
    return F.one_hot(labels.long(), LABELS + 1)[..., 1:].movedim(-1, 1).to(labels.dtype)


def _checked_shape(key: str, space: spaces.Space) -> tuple[int, ...]:
    """Return rows and columns, or rays, of a key's space; a ValueError if it is unknown or has another shape."""
    shapes = {
        "rgb": "(3, H, W)",
        "depth": "(H, W, 1)",
        "semantic": "(H, W)",
        "scan": "(R,)",
        "scan_class": "(R,)",
        "pose": "(3,)",
    }
    if key not in shapes:
        raise ValueError(f"unknown key {key!r} in observations; {choices_for(key, shapes)}")
    shape = tuple(space.shape or ())
    fits = {
        "rgb": len(shape) == 3 and shape[0] == 3,
        "depth": len(shape) == 3 and shape[2] == 1,
        "semantic": len(shape) == 2,
        "pose": shape == (3,),
    }
    if not fits.get(key, len(shape) == 1):
        raise ValueError(f"{key} must have the shape {shapes[key]}, got {shape}")
    return {"rgb": shape[1:], "depth": shape[:2]}.get(key, shape)
