"""`SceneEncoder`: sizes, inputs of its networks, and which observations it takes."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space
from torch import Tensor, nn

from memenvs.agents.encoders import SceneEncoder
from memenvs.agents.policies.memory_policy import MemoryPolicy

POSE_BOUND = np.array([np.inf, np.inf, np.pi], np.float32)


def space(height: int = 48, width: int = 64, keys: tuple[str, ...] = ("rgb", "depth", "semantic")) -> spaces.Dict:
    parts = {
        "rgb": spaces.Box(0, 255, (3, height, width), np.uint8),
        "depth": spaces.Box(0.0, np.inf, (height, width, 1), np.float32),
        "semantic": spaces.Box(0, 40, (height, width), np.uint8),
        "scan": spaces.Box(0.0, np.inf, (width,), np.float32),
        "scan_class": spaces.Box(0, 40, (width,), np.uint8),
        "pose": spaces.Box(-POSE_BOUND, POSE_BOUND),
    }
    return spaces.Dict({key: parts[key] for key in keys})


def policy(observations: spaces.Space, **kwargs: Any) -> MemoryPolicy:
    torch.manual_seed(0)
    settings = {"features_extractor_class": "SceneEncoder", "features_extractor_kwargs": kwargs, "net_arch": []}
    return MemoryPolicy(observations, spaces.Discrete(3), lambda _: 1e-3, memory="none", **settings)


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def block_parameters(inputs: int, outputs: int) -> int:
    """Parameters of a residual block.

    Convolutions have a scale and a shift for each channel. Two convolutions are 3 x 3; where the number of channels
    changes, the shortcut is a third one of 1 x 1.
    """
    shortcut = inputs * outputs + 2 * outputs if inputs != outputs else 0
    return 9 * outputs * (inputs + outputs) + 4 * outputs + shortcut


def test_parameters_of_the_quarter_resnet() -> None:
    stages = 2 * block_parameters(16, 16)
    stages += sum(block_parameters(w // 2, w) + block_parameters(w, w) for w in (32, 64, 128))
    made = SceneEncoder(space(), network="resnet")
    for key, channels, published in (("rgb", 3, 1_095_376), ("depth", 2, 1_094_592), ("semantic", 40, 1_124_384)):
        stem = 49 * channels * 16 + 2 * 16
        assert count(made.parts[key]) == stem + stages + (128 * 6 * 8 + 1) * 64 == published


def test_any_size_of_image() -> None:
    for network, size in (("small", (48, 64)), ("small", (7, 9)), ("resnet", (24, 32)), ("resnet", (7, 9))):
        made = policy(space(*size), network=network)
        assert made.features_dim == 3 * 64
        observation = {
            "rgb": np.zeros((2, 3, *size), np.uint8),
            "depth": np.zeros((2, *size, 1), np.float32),
            "semantic": np.zeros((2, *size), np.uint8),
        }
        actions, _ = made.predict(observation)
        assert actions.shape == (2,)


class Echo(nn.Module):
    """Returns its input, flattened."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)


def test_inputs_of_the_networks_by_hand() -> None:
    """Scales on values as Stable-Baselines3's preprocessing leaves them; labels and depths do not count as images."""
    keys = ("rgb", "depth", "semantic", "scan", "scan_class", "pose")
    observations = space(1, 2, keys)
    assert [key for key in keys if is_image_space(observations[key])] == ["rgb"]
    made = policy(observations)
    encoder = made.features_extractor
    for key in list(encoder.parts):  # type: ignore[arg-type]
        encoder.parts[key] = Echo()  # type: ignore[index, operator]
    observation = {
        "rgb": np.array([[[0, 255]], [[51, 102]], [[0, 0]]], np.uint8),
        "depth": np.float32([[[2.5], [0.0]]]),
        "semantic": np.array([[0, 40]], np.uint8),
        "scan": np.float32([0.0, 10.0]),
        "scan_class": np.array([1, 0], np.uint8),
        "pose": np.float32([5.0, -2.5, np.pi / 2]),
    }
    out = made.features(made.obs_to_tensor(observation)[0])[0]
    expected = [-0.5, 0.5, -0.3, -0.1, -0.5, -0.5]  # colour
    expected += [0.5, 0.0, 1.0, 0.0]  # depth, and 1 where valid
    expected += [0.0] * 79 + [1.0]  # 40 channels of 2 pixels
    expected += [0.0, 2.0, 0.0, 1.0] + [1.0] + [0.0] * 79  # ranges, 1 where valid, 40 channels of 2 rays
    expected += [1.0, -0.5, 0.0, 1.0]  # pose
    torch.testing.assert_close(out, torch.tensor(expected), atol=1e-6, rtol=0)


def test_modalities_can_be_left_out() -> None:
    rng = np.random.default_rng(0)
    for keys in (("scan", "scan_class", "pose"), ("scan",), ("scan_class",), ("depth",)):
        made = policy(space(keys=keys))
        assert made.features_dim == 64 + 4 * ("pose" in keys)
        for key in keys:
            ones = {values: np.ones((1, *made.observation_space[values].shape), np.float32) for values in keys}
            changed = ones | {key: rng.integers(1, 41, ones[key].shape).astype(np.float32)}
            before, after = (made.features(made.obs_to_tensor(values)[0]) for values in (ones, changed))
            assert not torch.equal(before, after)


def test_spaces_and_settings_are_checked() -> None:
    for key, wrong, allowed in (
        ("rgb", (48, 64, 3), r"\(3, H, W\)"),
        ("depth", (48, 64), r"\(H, W, 1\)"),
        ("semantic", (48, 64, 1), r"\(H, W\)"),
        ("scan", (64, 1), r"\(R,\)"),
        ("pose", (2,), r"\(3,\)"),
    ):
        with pytest.raises(ValueError, match=rf"{key} must have the shape {allowed}, got "):
            SceneEncoder(spaces.Dict({key: spaces.Box(0.0, 1.0, wrong)}))
    rays = {"scan": spaces.Box(0.0, 1.0, (8,)), "pose": spaces.Box(-1.0, 1.0, (3,))}
    uneven = {"scan": spaces.Box(0.0, 1.0, (8,)), "scan_class": spaces.Box(0, 40, (9,), np.uint8)}
    parts: dict[str, Any]
    for parts, settings, message in (
        ({"semantics": spaces.Box(0.0, 1.0, (4, 4))}, {}, "unknown key 'semantics' .*; did you mean 'semantic'"),
        (space().spaces, {"network": "large"}, r"unknown network 'large'; choose from \['small', 'resnet'\]"),
        (space().spaces, {"dim": 0}, "dim must be an integer of at least 1, got 0"),
        (rays, {"network": "resnet"}, "network must be 'small' where there is no image"),
        (uneven, {}, r"scan and scan_class must have equally many rays, got \[8, 9\]"),
        ({}, {}, "observations must have"),
    ):
        with pytest.raises(ValueError, match=message):
            SceneEncoder(spaces.Dict(parts), **settings)
