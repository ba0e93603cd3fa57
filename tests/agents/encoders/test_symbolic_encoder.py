"""Small visual encoder: network, training, weights, estimates in place of observations."""

from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces

from memenvs.agents import make_vec_env
from memenvs.agents.encoders import SymbolicEncoder, load_symbolic_encoder, make_encoder
from memenvs.agents.encoders.symbolic_encoder import WEIGHTS, area_of, pixels_of, save_symbolic_encoder
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.pretrained import load_pretrained, pretrained_config
from memenvs.houses.worlds import make_house_world
from studies.ext_objnav_pictures.pretraining.symbolic_dataset import SymbolicDataset, draw_symbolic_dataset
from studies.ext_objnav_pictures.pretraining.symbolic_pretraining import (
    SymbolicPretrainingConfig,
    predict,
    pretrain_symbolic,
)


@pytest.fixture
def network() -> SymbolicEncoder:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return SymbolicEncoder().eval()


def pictures(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 48, 64, 3), np.uint8)


def test_outputs_by_hand(network: SymbolicEncoder) -> None:
    images = torch.from_numpy(pictures(3))
    seen = network.see(images)
    assert seen.cell_logits.shape == (3, 20, 12, 16) and seen.rays.shape == (3, 32)
    assert torch.equal(seen.logits, seen.cell_logits.flatten(2).max(2).values)
    assert not network(images)[:, :20].any()  # a new network takes every category for absent
    with torch.no_grad():
        network.presence.bias[3] = 60.0
        network.area_scale[3] = torch.tensor([0.0, 0.1])
    areas = network(images)[:, :20]
    expected = 0.1 * np.log(1 + 12 * 16) + 0.3  # all cells show it
    assert areas[:, 3].tolist() == pytest.approx([expected] * 3, abs=1e-4)
    assert areas[:, :3].eq(0).all() and areas[:, 4:].eq(0).all()
    assert network(images)[:, 20:].tolist() == network.see(images).rays.clamp(0, 1).tolist()


def test_areas_are_those_of_symbolic_observations() -> None:
    areas = area_of(torch.tensor([0, 1, 64 * 64]))
    assert areas.tolist() == pytest.approx([0.0, np.log(17) / np.log(65537), 1.0])
    np.testing.assert_allclose(pixels_of(areas.numpy()), [0, 1, 4096], rtol=1e-4)


@pytest.fixture(scope="module")
def data() -> SymbolicDataset:
    return draw_symbolic_dataset(make_house_world("procedural", split="train"), [3], 12, seed=1)


def test_labels_agree_with_each_other(data: SymbolicDataset) -> None:
    again = draw_symbolic_dataset(make_house_world("procedural", split="train"), [3], 12, seed=1)
    assert all(np.array_equal(one, other) for one, other in zip(data, again, strict=True))
    assert data.images.shape == (12, 48, 64, 3) and len(np.unique(data.images)) > 100
    np.testing.assert_array_equal(data.cells.any((1, 2)), data.pixels > 0)
    assert (data.pixels > 0).any(1).sum() >= 5 and data.pixels.sum() >= data.cells.sum()
    assert 0 < data.rays.min() < data.rays.max() <= 1


def test_a_training_learns(data: SymbolicDataset, tmp_path: Path) -> None:
    """Its loop is that of `tests/studies/test_presence_pretraining.py`, which kills it and checks its settings."""
    losses: list[float] = []
    config = SymbolicPretrainingConfig(epochs=10, batch_size=12)
    pretrain_symbolic(data, config, tmp_path / "whole.safetensors", on_step=losses.append)
    assert len(losses) == 10 and losses[-1] < losses[0]


def test_saved_and_loaded(tmp_path: Path, network: SymbolicEncoder) -> None:
    path = tmp_path / "weights.safetensors"
    save_symbolic_encoder(network, path)
    images = torch.from_numpy(pictures(4))
    torch.testing.assert_close(load_symbolic_encoder(path)(images), network(images), atol=2e-3, rtol=0)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match="was it cut short"):
        load_symbolic_encoder(path)


def test_it_sees_small_objects_in_unseen_homes() -> None:
    assert WEIGHTS.stat().st_size < 60_000
    data = draw_symbolic_dataset(make_house_world("procedural", split="validation"), range(500, 503), 40, seed=3)
    seen = predict(load_symbolic_encoder(), data.images)
    predicted, present = seen[:, :20] > 0, data.pixels > 0
    assert present.sum() > 100
    assert 2 * (predicted & present).sum() / (predicted.sum() + present.sum()) > 0.5
    assert abs(seen[:, 20:] - data.rays).mean() < 0.08


def test_it_stands_in_for_symbolic_observations() -> None:
    config = pretrained_config("extobjnav-small-pictures")
    env = make_vec_env(config.env, 3, seed=2, **config.env_kwargs)
    exact = find_preset("extobjnav-small")
    space = make_vec_env(exact.env, 3, seed=2, **exact.env_kwargs).observation_space
    assert isinstance(space, spaces.Dict) and isinstance(env.observation_space, spaces.Dict)
    assert list(env.observation_space.spaces) == list(space.spaces)
    assert env.observation_space["symbolic"].shape == space["symbolic"].shape
    seen = env.reset()["symbolic"]
    assert seen.dtype == np.float16 and seen.min() >= 0 and seen.max() <= 1
    policy = load_pretrained("extobjnav-small-pictures", device="cpu")
    policy.check_env(env)  # learned from exact observations


def test_an_encoder_of_another_frame_size_is_refused() -> None:
    config = pretrained_config("extobjnav-small-pictures")
    for size in ((64, 64), (64, 48), (96, 128)):
        with pytest.raises(ValueError, match=rf"image_size must be \(48, 64\).* got \({size[0]}, {size[1]}\)"):
            make_vec_env(config.env, 1, **{**config.env_kwargs, "image_size": size})
    images = np.zeros((1, 64, 64, 3), np.uint8)
    with pytest.raises(ValueError, match=r"48 rows and 64 columns for this encoder, got \(1, 64, 64, 3\)"):
        make_encoder("symbolic", device="cpu")(images)
