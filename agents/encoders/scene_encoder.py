"""An encoder for what a robot sees of a home: colour, depth and labels, as images or as one row of rays."""

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
"""Metres that count as 1 in depths, ranges and positions."""
LABELS = 40
"""Classes of NYU40; label 0, none, has no channel."""
NORM_GROUPS = 16


class QuarterResNet18(nn.Sequential):
    """ResNet-18 with a quarter of its channels, for small images.

    It has no stride and no pooling up to the end of its first stage, and a linear layer over the whole last map in place of the mean.

    Args:
        channels: Of the input.
        height: Rows.
        width: Columns.
        features_dim: Width of the linear layer.

    Source:
        Fang et al., "Scene Memory Transformer", 2019, which gives its changes to He et al., 2016; group normalisation as in SoundSpaces.
        1,095,376 parameters for 3 x 48 x 64.
    """

    def __init__(self, channels: int, height: int, width: int, features_dim: int) -> None:
        stages = [ResidualBlock(16, 16, 1), ResidualBlock(16, 16, 1)]
        for narrow, wide in ((16, 32), (32, 64), (64, 128)):
            stages += [ResidualBlock(narrow, wide, 2), ResidualBlock(wide, wide, 1)]
            height, width = -(-height // 2), -(-width // 2)
        first = [nn.Conv2d(channels, 16, 7, padding=3, bias=False), nn.GroupNorm(NORM_GROUPS, 16), nn.ReLU()]
        super().__init__(*first, *stages, nn.Flatten(), nn.Linear(128 * height * width, features_dim))


class ResidualBlock(nn.Module):
    """Two convolutions of 3 x 3, each with group normalisation, and the input added to them (He et al., 2016).

    Args:
        narrow: Channels that come in.
        wide: Channels that go out.
        stride: Of the first convolution; where it or the channels change the input, a convolution of 1 x 1 brings it along.
    """

    def __init__(self, narrow: int, wide: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(narrow, wide, 3, stride, 1, bias=False),
            nn.GroupNorm(NORM_GROUPS, wide),
            nn.ReLU(),
            nn.Conv2d(wide, wide, 3, 1, 1, bias=False),
            nn.GroupNorm(NORM_GROUPS, wide),
        )
        self.input = nn.Sequential()
        if stride > 1 or narrow != wide:
            self.input = nn.Sequential(nn.Conv2d(narrow, wide, 1, stride, bias=False), nn.GroupNorm(NORM_GROUPS, wide))

    def forward(self, x: Tensor) -> Tensor:
        """float, (B, wide, H / stride, W / stride)."""
        return (self.layers(x) + self.input(x)).relu()


class SmallNetwork(nn.Sequential):
    """Three convolutions of 3 x 3 with stride 2 and 16, 32 and 32 channels, and a linear layer; for images of any size, on few cores.

    Args:
        channels: Of the input.
        height: Rows.
        width: Columns.
        features_dim: Width of the linear layer.
    """

    def __init__(self, channels: int, height: int, width: int, features_dim: int) -> None:
        layers: list[nn.Module] = []
        for wide in (16, 32, 32):
            layers += [nn.Conv2d(channels, wide, 3, stride=2, padding=1), nn.ReLU()]
            channels, height, width = wide, -(-height // 2), -(-width // 2)
        super().__init__(*layers, nn.Flatten(), nn.Linear(channels * height * width, features_dim))


class ScanNetwork(nn.Sequential):
    """Two convolutions of 5 rays with stride 2 and 32 channels, and a linear layer.

    Args:
        channels: Of the input.
        rays: How many.
        features_dim: Width of the linear layer.
    """

    def __init__(self, channels: int, rays: int, features_dim: int) -> None:
        layers: list[nn.Module] = []
        for _ in range(2):
            layers += [nn.Conv1d(channels, 32, 5, stride=2, padding=2), nn.ReLU()]
            channels, rays = 32, -(-rays // 2)
        super().__init__(*layers, nn.Flatten(), nn.Linear(channels * rays, features_dim))


NETWORKS: dict[Network, Callable[[int, int, int, int], nn.Module]] = {"small": SmallNetwork, "resnet": QuarterResNet18}


class SceneEncoder(BaseFeaturesExtractor):
    """Encodes what is there of colour, depth, labels, a row of rays and the pose, each by itself, and concatenates the parts.

    | key | space | becomes | goes through |
    |---|---|---|---|
    | `rgb` | uint8 (3, H, W) | - 0.5 ... 0.5 | `network` |
    | `depth` | float32 (H, W, 1), m, 0 where there is none | depth / 5, and 1 where there is one | `network` |
    | `semantic` | uint8 (H, W), NYU40 | one-hot, nothing for 0 | `network` |
    | `scan` and `scan_class`, or one of them | float32 and uint8 (R,) | as depth and labels | `ScanNetwork` |
    | `pose` | float32 (3,), x m, y m, heading rad | x / 5, y / 5, cosine, sine | nothing |

    Args:
        observation_space: A `Dict` with some of these keys and no other, as Stable-Baselines3 hands it over (`rgb` with channels first).
        network: For images: "resnet" (`QuarterResNet18`) or "small" (`SmallNetwork`).
        dim: Width that each of `rgb`, `depth`, `semantic` and the rays is encoded to; >= 1.

    Raises:
        ValueError: The space has another key, none of them, or one of another shape, or a setting is not allowed.

    Source:
        Fang et al., "Scene Memory Transformer", 2019, section on embeddings; the row of rays and the small networks are ours.
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
                raise ValueError(f"scan and scan_class must have as many rays, got {sorted(rays)}")
            parts["scan"] = ScanNetwork(channels, rays.pop(), dim)
        super().__init__(observation_space, features_dim=dim * len(parts) + 4 * ("pose" in shapes))
        self.parts = nn.ModuleDict(parts)

    def forward(self, observations: dict[str, Tensor]) -> Tensor:
        """float, (B, features_dim); colour, depth, labels, rays, pose."""
        seen = observations
        inputs: dict[str, Tensor] = {}
        if "rgb" in seen:
            inputs["rgb"] = seen["rgb"] - 0.5
        if "depth" in seen:
            inputs["depth"] = _with_validity(seen["depth"].flatten(3).squeeze(-1))
        if "semantic" in seen:
            inputs["semantic"] = _one_hot(seen["semantic"])
        rays = [make(seen[key]) for key, make in (("scan", _with_validity), ("scan_class", _one_hot)) if key in seen]
        if rays:
            inputs["scan"] = torch.cat(rays, 1)
        encoded = [part(inputs[key]) for key, part in self.parts.items()]
        if "pose" in seen:
            x, y, heading = seen["pose"].unbind(-1)
            encoded.append(torch.stack([x / DISTANCE_SCALE, y / DISTANCE_SCALE, heading.cos(), heading.sin()], -1))
        return torch.cat(encoded, -1)


def _with_validity(depth: Tensor) -> Tensor:
    """Depths as channels, float (B, 2, ...): in units of `DISTANCE_SCALE`, and whether there is one; from (B, ...)."""
    return torch.stack([depth / DISTANCE_SCALE, (depth > 0).to(depth.dtype)], 1)


def _one_hot(labels: Tensor) -> Tensor:
    """Labels as channels, float (B, 40, ...), from float (B, ...)."""
    return F.one_hot(labels.long(), LABELS + 1)[..., 1:].movedim(-1, 1).to(labels.dtype)


def _checked_shape(key: str, space: spaces.Space) -> tuple[int, ...]:
    """Rows and columns, or rays, of a key's space; a ValueError if it is unknown or has another shape."""
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
