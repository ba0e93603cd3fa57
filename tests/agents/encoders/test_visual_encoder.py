"""Visual encoder: network, weights in the package, features in place of images."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from safetensors.torch import load, save_file
from torch import nn

from memenvs.agents import PartialUpdatePPO, PPOConfig, make_vec_env
from memenvs.agents.encoders import FrozenEncoder, VisualEncoder, load_encoder, make_encoder, save_encoder
from memenvs.agents.encoders.visual import GRID, STRIPS
from memenvs.houses.worlds import make_house_world
from studies.ext_objnav_pictures.pretraining.presence_dataset import render_dataset
from studies.ext_objnav_pictures.pretraining.presence_pretraining import predict_presence
from tests.agents.pictures import SMALL, noise


@pytest.fixture
def network() -> VisualEncoder:
    """Random weights, with batch statistics other than those of a new network."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = VisualEncoder()
    for _ in range(2):
        encoder(noise(4))
    return encoder.eval()


def test_shapes_and_size(network):
    features = network(noise(3))
    assert features.shape == (3, VisualEncoder.features_dim) == (3, 256)
    assert network.presence_logits(features).shape == (3, 20)
    assert 1.5e6 < sum(parameter.numel() for parameter in network.parameters()) < 2e6


def test_pooling_by_hand():
    cells = torch.randn(2, GRID, GRID, 64, generator=torch.Generator().manual_seed(0))
    pooled = VisualEncoder.pool_strips(cells).reshape(2, STRIPS, 64)
    for strip in range(STRIPS):
        columns = cells[:, :, 2 * strip : 2 * strip + 2].reshape(2, 2 * GRID, 64)
        assert torch.equal(pooled[:, strip], columns.max(1).values)


def test_presence_is_the_maximum_over_strips(network):
    features = torch.rand(2, 256, generator=torch.Generator().manual_seed(0))
    head = network.presence
    for row, logits in zip(features, network.presence_logits(features), strict=True):
        by_strip = torch.stack([head.weight @ strip + head.bias for strip in row.reshape(STRIPS, 64)])
        torch.testing.assert_close(logits, by_strip.max(0).values)


def test_larger_images_are_averaged(network):
    small = noise(2)
    large = small.repeat_interleave(2, 1).repeat_interleave(2, 2)
    torch.testing.assert_close(network(large), network(small))


def test_wrong_images_are_named(network):
    for wrong in (noise(1).float(), noise(1)[0], noise(1).permute(0, 3, 1, 2)):
        with pytest.raises(ValueError, match=r"images must be uint8 \(B, H, W, 3\), got"):
            network(wrong)


def test_saved_and_loaded(tmp_path, network):
    save_encoder(network, tmp_path / "weights.safetensors")
    loaded = load_encoder(tmp_path / "weights.safetensors")
    assert not any(isinstance(module, nn.BatchNorm2d) for module in loaded.modules())
    assert not loaded.training
    assert not any(parameter.requires_grad for parameter in loaded.parameters())
    assert any(isinstance(module, nn.BatchNorm2d) for module in network.modules())  # the original stays as it was
    torch.testing.assert_close(loaded(noise(4)), network(noise(4)), atol=2e-3, rtol=2e-2)
    assert (tmp_path / "weights.safetensors").stat().st_size < 4_000_000


def test_broken_weights_are_named(tmp_path, network):
    path = tmp_path / "weights.safetensors"
    with pytest.raises(FileNotFoundError, match="no weights at"):
        load_encoder(path)
    save_encoder(network, path)
    tensors = load(path.read_bytes())
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match="was it cut short"):
        load_encoder(path)
    save_file({**tensors, "presence.bias": torch.zeros(19)}, path)
    with pytest.raises(ValueError, match=r"presence.bias must be \(20,\), got \(19,\)"):
        load_encoder(path)
    save_file({name: value for name, value in tensors.items() if name != "presence.bias"} | {"x": torch.zeros(1)}, path)
    with pytest.raises(ValueError, match=r"1 are missing \['presence.bias'\], 1 are unknown \['x'\]"):
        load_encoder(path)


@pytest.mark.slow
def test_micro_f1_in_unseen_homes():
    data = render_dataset(make_house_world("procedural", split="validation"), range(1000, 1003), 20, seed=7)
    predicted, present = predict_presence(load_encoder(), data.images), data.present
    assert present.sum() > 100
    assert 2 * (predicted & present).sum() / (predicted.sum() + present.sum()) > 0.75  # guesses without the image: 0.2


def test_frozen_encoder(network):
    encoder = FrozenEncoder(network.train(), "cpu")
    images = noise(3, 64)
    features = encoder(images.numpy())
    assert features.dtype == np.float16
    np.testing.assert_array_equal(features, network(images).to(torch.float16).numpy())
    assert not network.training  # now in evaluation mode
    assert not any(parameter.requires_grad for parameter in network.parameters())
    two, one = encoder.encode_observations(
        [{"rgb": images[:2].numpy(), "gps": np.ones((2, 2))}, {"rgb": images[2:].numpy(), "gps": np.zeros((1, 2))}]
    )
    assert list(two) == ["gps", "visual"]
    np.testing.assert_allclose(np.concatenate([two["visual"], one["visual"]]), features, atol=1e-3)
    assert one["gps"].tolist() == [[0.0, 0.0]]


def test_spaces(network):
    encoder = FrozenEncoder(network, "cpu")
    images, gps = spaces.Box(0, 255, (64, 64, 3), np.uint8), spaces.Box(-1, 1, (2,))
    space = encoder.encoded_space(spaces.Dict({"rgb": images, "gps": gps}))
    assert space == spaces.Dict({"gps": gps, "visual": spaces.Box(-np.inf, np.inf, (256,), np.float16)})
    for wrong in (images, spaces.Dict({"gps": gps}), spaces.Dict({"rgb": gps})):
        with pytest.raises(ValueError, match="an encoder needs observations with 'rgb'"):
            encoder.encoded_space(wrong)
    with pytest.raises(ValueError, match=r"unknown encoder 'resnet'; choose from \['cnn', 'symbolic'\]"):
        make_encoder("resnet")


def test_a_policy_refuses_features_of_another_encoder(tmp_path, network):
    env = make_vec_env("memenvs/ExtObjNav-v0", 2, seed=0, encoder="cnn", **SMALL)
    memory = {"layers": 1, "heads": 2, "dim": 16, "mlp_dim": 16, "max_episode_steps": 4}
    policy = {"memory_kwargs": memory}
    model = PartialUpdatePPO("MemoryPolicy", env, PPOConfig(n_steps=8), policy_kwargs=policy, seed=0, device="cpu")
    model.save(tmp_path / "model.zip")
    PartialUpdatePPO.load(tmp_path / "model.zip", env, "cpu")
    save_encoder(network, tmp_path / "weights.safetensors")
    weights = {"weights": tmp_path / "weights.safetensors"}
    other = make_vec_env("memenvs/ExtObjNav-v0", 2, seed=0, encoder="cnn", encoder_kwargs=weights, **SMALL)
    message = "encoder must be the one that was learned with, of weights [0-9a-f]{16}, got one of weights [0-9a-f]{16}"
    with pytest.raises(ValueError, match=message):
        PartialUpdatePPO.load(tmp_path / "model.zip", other, "cpu")
    with pytest.raises(ValueError, match=message):
        model.set_env(other)
