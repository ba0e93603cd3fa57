"""The visual encoder: network, weights that come with the package, pre-training, features in place of pictures, VC-1."""

from __future__ import annotations

import math
import pickle
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from safetensors.torch import load, save_file
from sklearn.metrics import f1_score
from torch import Tensor, nn

from agents import PartialUpdatePPO, PPOConfig, TrialVecEnv, make_vec_env
from agents.encoders import DictEncoder, FrozenEncoder, VisualEncoder, load_encoder, make_encoder, save_encoder
from agents.encoders.presence import Pictures, _poses, draw_pictures, f1_scores, presence_loss
from agents.encoders.pretraining import (
    PretrainingConfig,
    cut_out,
    find_present,
    mirror,
    one_cycle,
    pretrain,
    share_seen,
)
from agents.encoders.vc1 import VC1Encoder, load_vc1
from agents.encoders.visual import GRID, STRIPS, WEIGHTS
from memenvs.houses.renderer import render_frame
from memenvs.houses.simulator import COUNTING_CAMERA, PixelCounter
from memenvs.houses.worlds import make_world
from memenvs.navigation.layout import make_layout
from tests.rollouts import same

SMALL: dict[str, Any] = {"image_size": (32, 32), "rooms": (2, 2), "max_episode_steps": 4, "layout_pool": 1}


def noise(count: int, side: int = 128, seed: int = 0) -> Tensor:
    return torch.randint(
        0, 256, (count, side, side, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed)
    )


@pytest.fixture
def network() -> VisualEncoder:
    """Random weights, with statistics of normalisation that are not those of a new network."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = VisualEncoder()
    for _ in range(2):
        encoder(noise(4))
    return encoder.eval()


# ---------------------------------------------------------------------- network


def test_shapes_and_size(network):
    features = network(noise(3))
    assert features.shape == (3, VisualEncoder.features_dim) == (3, 256)
    assert network.present(features).shape == (3, 20)
    assert 1.5e6 < sum(parameter.numel() for parameter in network.parameters()) < 2e6


def test_pooling_by_hand():
    cells = torch.randn(2, GRID, GRID, 64, generator=torch.Generator().manual_seed(0))
    pooled = VisualEncoder.pool(cells).reshape(2, STRIPS, 64)
    for strip in range(STRIPS):
        columns = cells[:, :, 2 * strip : 2 * strip + 2].reshape(2, 2 * GRID, 64)
        assert torch.equal(pooled[:, strip], columns.max(1).values)


def test_a_picture_shows_what_any_strip_shows(network):
    features = torch.rand(2, 256, generator=torch.Generator().manual_seed(0))
    head = network.presence
    for row, logits in zip(features, network.present(features), strict=True):
        by_strip = torch.stack([head.weight @ strip + head.bias for strip in row.reshape(STRIPS, 64)])
        torch.testing.assert_close(logits, by_strip.max(0).values)


def test_strips_go_from_left_to_right():
    strips = VisualEncoder.pool(torch.arange(8.0).view(1, 1, 8, 1).expand(1, 8, 8, 64)).view(STRIPS, 64)
    assert strips[:, 0].tolist() == [1.0, 3.0, 5.0, 7.0]


def test_larger_pictures_are_averaged(network):
    small = noise(2)
    large = small.repeat_interleave(2, 1).repeat_interleave(2, 2)
    torch.testing.assert_close(network(large), network(small))


def test_wrong_pictures_are_named(network):
    for wrong in (noise(1).float(), noise(1)[0], noise(1).permute(0, 3, 1, 2)):
        with pytest.raises(ValueError, match=r"images must be uint8 \(B, H, W, 3\), got"):
            network(wrong)


# ---------------------------------------------------------------------- weights


def test_saved_and_loaded(tmp_path, network):
    save_encoder(network, tmp_path / "weights.safetensors")
    loaded = load_encoder(tmp_path / "weights.safetensors")
    assert not any(isinstance(module, nn.BatchNorm2d) for module in loaded.modules())
    assert not loaded.training
    assert not any(parameter.requires_grad for parameter in loaded.parameters())
    assert any(isinstance(module, nn.BatchNorm2d) for module in network.modules())  # the original is left as it was
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


def test_weights_come_with_the_package():
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["agents"]
    assert any(WEIGHTS.match(f"agents/{pattern}") for pattern in patterns)
    assert WEIGHTS.stat().st_size < 4_000_000


def test_the_encoder_knows_what_it_sees_in_homes_that_it_has_never_seen():
    drawn = draw_pictures(make_world("procedural", split="validation"), range(1000, 1006), 20, seed=7)
    found, there = find_present(load_encoder(), drawn.images), drawn.present
    assert there.sum() > 200
    assert 2 * (found & there).sum() / (found.sum() + there.sum()) > 0.75  # blind guesses reach 0.2


# ---------------------------------------------------------------------- pre-training


def test_pictures_show_what_they_say():
    world, layouts = make_world("procedural"), [3, 41]
    drawn = draw_pictures(world, layouts, 4, seed=5)
    assert drawn.images.shape == (8, 128, 128, 3)
    alone = draw_pictures(world, layouts[1:], 4, seed=5)
    assert all(np.array_equal(a, b[4:]) for a, b in zip(alone, drawn, strict=True))
    assert not np.array_equal(draw_pictures(world, layouts[1:], 4, seed=6).images, alone.images)
    layout = make_layout(
        world, 41, count_range=(20, 27), categories=tuple(range(20)), tilt_mode="ladder", counter=PixelCounter()
    )
    for k, pose in enumerate(_poses(layout, 4, np.random.default_rng([5, 41]))):
        frame = render_frame(layout.scene, COUNTING_CAMERA, pose)
        means = frame.rgb.reshape(128, 2, 128, 2, 3).mean((1, 3))
        assert np.abs(alone.images[k] - means).max() <= 0.5
        pixels, cells = np.zeros(20), np.zeros((8, 8, 20))
        for category, instance in zip(layout.category, layout.instance, strict=True):
            mask = frame.instance == instance
            pixels[category] = max(pixels[category], mask.sum())
            cells[..., category] = np.maximum(cells[..., category], mask.reshape(8, 32, 8, 32).sum((1, 3)))
        np.testing.assert_array_equal(alone.pixels[k], pixels)
        np.testing.assert_array_equal(alone.cells[k], np.minimum(cells, 255))
    np.testing.assert_array_equal(alone.present, alone.pixels > 10)
    assert drawn.present.any(1).sum() >= 6  # the robot stands in front of something


def test_loss_by_hand():
    # p = 1/2 everywhere: Dice 1 - (2 * 1/2 + 1) / (1 + 1 + 1) = 1/3, cross-entropy log 2; then a sure and right answer.
    present = torch.tensor([[1.0, 0.0]])
    assert presence_loss(torch.zeros(1, 2), present).item() == pytest.approx(1 / 3 + math.log(2))
    assert presence_loss(torch.tensor([[40.0, -40.0]]), present).item() == pytest.approx(0.0, abs=1e-6)
    both = presence_loss(torch.tensor([[0.0, 0.0], [40.0, -40.0]]), present.expand(2, 2))
    assert both.item() == pytest.approx((1 / 3 + math.log(2)) / 2)


def test_f1_scores_equal_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    found, present = rng.random((50, 6)) < 0.3, rng.random((50, 6)) < 0.4
    found[:, 5] = present[:, 5] = False
    np.testing.assert_allclose(f1_scores(found, present), f1_score(present, found, average=None, zero_division=0.0))


def test_schedule_and_shares():
    rates = [one_cycle(done) for done in (0.0, 0.05, 0.1, 0.55, 1.0)]
    assert rates == pytest.approx([0.0, 0.5, 1.0, 0.5, 0.0])
    assert share_seen(torch.tensor([0, 5, 11, 200], dtype=torch.uint8)).tolist() == pytest.approx([0, 5 / 11, 1, 1])


def test_mirror():
    images = torch.arange(12, dtype=torch.uint8).view(2, 1, 3, 2)
    mirrored = mirror(images, torch.tensor([False, True]))
    assert mirrored.tolist() == [[[[0, 1], [2, 3], [4, 5]]], [[[10, 11], [8, 9], [6, 7]]]]


def test_cut_outs_are_quarters_that_mostly_show_a_thing():
    rng = np.random.default_rng(0)
    images = torch.arange(128 * 128).view(1, 128, 128, 1).expand(200, -1, -1, 3)  # each pixel says where it is
    cells = torch.arange(64, dtype=torch.uint8).view(1, 8, 8, 1).repeat(200, 1, 1, 1) // 64  # no thing yet
    cells[:100, 6, 1] = 40
    seen, in_cells = cut_out(images, cells, rng)
    assert seen.shape == (200, 64, 64, 3)
    assert in_cells.shape == (200, 4, 4, 1)
    corners = [divmod(value, 128) for value in seen[:, 0, 0, 0].tolist()]
    for (top, left), picture, cut, whole in zip(corners, seen, in_cells, cells, strict=True):
        assert top % 16 == left % 16 == 0
        torch.testing.assert_close(picture, images[0, top : top + 64, left : left + 64])
        torch.testing.assert_close(cut, whole[top // 16 : top // 16 + 4, left // 16 : left // 16 + 4])
    # of 100 with a thing 75 are chosen to show it, and of the others those that do by chance, 2 of 5 rows and 2 of 5 columns
    shown = int((in_cells[:100] > 10).any(-1).any(-1).any(-1).sum())
    assert abs(shown - 79) < 4 * math.sqrt(100 * 0.79 * 0.21)
    assert len(set(corners[100:])) == 25


def some_pictures(count: int) -> Pictures:
    rng = np.random.default_rng(0)
    cells = np.zeros((count, 8, 8, 20), np.uint8)
    cells[np.arange(count), rng.integers(8, size=count), rng.integers(8, size=count), rng.integers(20, size=count)] = 40
    return Pictures(noise(count).numpy(), cells.max((1, 2)).astype(np.int32), cells)


class KilledError(Exception):
    pass


def test_a_killed_training_ends_with_the_same_bits(tmp_path):
    pictures, config = some_pictures(9), PretrainingConfig(epochs=2, cut_out_epochs=1, batch_size=4)
    losses: list[float] = []
    whole = pretrain(pictures, config, tmp_path / "whole.safetensors", on_step=losses.append)
    assert len(losses) == 4  # the ninth picture waits for another epoch

    def kill(epoch: int, encoder: VisualEncoder) -> None:
        assert not encoder.training
        raise KilledError

    with pytest.raises(KilledError):
        pretrain(pictures, config, tmp_path / "killed.safetensors", on_epoch=kill)
    rest: list[float] = []
    resumed = pretrain(pictures, config, tmp_path / "killed.safetensors", on_step=rest.append)
    assert rest == losses[2:]
    for name, value in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value), name
    with pytest.raises(ValueError, match="is of a training with other settings"):
        pretrain(pictures, replace(config, epochs=3), tmp_path / "whole.safetensors")


def test_pretraining_learns(tmp_path):
    losses: list[float] = []
    config = PretrainingConfig(epochs=6, cut_out_epochs=0, batch_size=4)
    pretrain(some_pictures(4), config, tmp_path / "c", on_step=losses.append)
    assert losses[-1] < 0.8 * losses[0]


def test_settings_of_pretraining_are_checked(tmp_path):
    wrong_values = {"epochs": 0, "cut_out_epochs": 52, "batch_size": 0, "learning_rate": 0.0, "weight_decay": -1.0}
    for name, wrong in wrong_values.items():
        with pytest.raises(ValueError, match=name):
            PretrainingConfig(**{name: wrong})
    with pytest.raises(ValueError, match="pictures must be at least batch_size = 4, got 3"):
        pretrain(some_pictures(3), PretrainingConfig(batch_size=4), tmp_path / "c")


# ---------------------------------------------------------------------- features in place of pictures


def test_frozen_encoder(network):
    encoder = FrozenEncoder(network.train(), "cpu")
    images = noise(3, 64)
    features = encoder(images.numpy())
    assert features.dtype == np.float16
    np.testing.assert_array_equal(features, network(images).to(torch.float16).numpy())
    assert not network.training  # now in evaluation mode, for good
    assert not any(parameter.requires_grad for parameter in network.parameters())
    two, one = encoder.replace(
        [{"rgb": images[:2].numpy(), "gps": np.ones((2, 2))}, {"rgb": images[2:].numpy(), "gps": np.zeros((1, 2))}]
    )
    assert list(two) == ["gps", "visual"]
    np.testing.assert_allclose(np.concatenate([two["visual"], one["visual"]]), features, atol=1e-3)
    assert one["gps"].tolist() == [[0.0, 0.0]]


def test_spaces(network):
    encoder = FrozenEncoder(network, "cpu")
    pictures, gps = spaces.Box(0, 255, (64, 64, 3), np.uint8), spaces.Box(-1, 1, (2,))
    space = encoder.space(spaces.Dict({"rgb": pictures, "gps": gps}))
    assert space == spaces.Dict({"gps": gps, "visual": spaces.Box(-np.inf, np.inf, (256,), np.float16)})
    for wrong in (pictures, spaces.Dict({"gps": gps}), spaces.Dict({"rgb": gps})):
        with pytest.raises(ValueError, match="an encoder needs observations with 'rgb'"):
            encoder.space(wrong)
    with pytest.raises(ValueError, match=r"unknown encoder 'resnet'; choose from \['cnn', 'vc1'\]"):
        make_encoder("resnet")


def test_features_stand_where_pictures_were():
    plain = make_vec_env("memenvs/ExtObjNav-v0", 3, seed=2, **SMALL)
    coded = make_vec_env("memenvs/ExtObjNav-v0", 3, seed=2, encoder="cnn", encoder_kwargs={"device": "cpu"}, **SMALL)
    assert isinstance(coded, TrialVecEnv)
    assert set(coded.observation_space.spaces) == {"gps", "goal", "visual"}
    encoder = load_encoder()

    def expect(seen: dict[str, np.ndarray], features: dict[str, np.ndarray]) -> None:
        seen, features = dict(seen), dict(features)
        images = torch.as_tensor(seen.pop("rgb")).reshape(-1, 32, 32, 3)
        own = features.pop("visual")
        np.testing.assert_allclose(own.reshape(-1, 256), encoder(images).numpy(), atol=5e-3, rtol=5e-3)
        assert same(seen, features)

    expect(plain.reset(), coded.reset())
    rng, ended = np.random.default_rng(0), 0
    for _ in range(10):
        actions = rng.integers(6, size=3)
        (seen, reward, done, infos), (features, *others) = plain.step(actions), coded.step(actions)
        expect(seen, features)
        for i in np.flatnonzero(done).tolist():
            ended += 1
            expect(infos[i].pop("terminal_observation"), others[2][i].pop("terminal_observation"))
        assert all(same(a, b) for a, b in zip(infos, others[2], strict=True))
        np.testing.assert_array_equal(reward, others[0])
        np.testing.assert_array_equal(done, others[1])
    assert ended > 3
    assert coded.observation_space.spaces["visual"].contains(features["visual"][0])


def test_encoders_need_our_ids_and_pictures():
    with pytest.raises(ValueError, match="encoder must be None for 'CartPole-v1'"):
        make_vec_env("CartPole-v1", 1, encoder="cnn")
    with pytest.raises(ValueError, match="an encoder needs observations with 'rgb'"):
        make_vec_env("memenvs/Darkroom-v0", 1, encoder="cnn")


def test_a_policy_learns_from_features():
    env = make_vec_env("memenvs/ExtObjNav-v0", 2, seed=0, encoder="cnn", **SMALL)
    model = PartialUpdatePPO(
        "MemoryPolicy",
        env,
        PPOConfig(n_steps=8, n_updates=2, batch_size=2),
        policy_kwargs={
            "memory_kwargs": {"layers": 1, "heads": 2, "dim": 16, "mlp_dim": 16, "max_episode_steps": 4},
            "features_extractor_kwargs": {"widths": {"visual": 16, "goal": 8, "gps": 4}, "rectified": ["visual"]},
        },
        seed=0,
        device="cpu",
    )
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    model.learn(16)
    stored = model.rollout_buffer.observations
    assert isinstance(stored, dict)
    assert stored["visual"].dtype == torch.float16
    assert stored["visual"].shape == (2, 8, 256)
    assert stored["visual"].abs().sum() > 0
    assert "rgb" not in stored
    changed = {name for name, value in model.policy.state_dict().items() if not torch.equal(value, before[name])}
    assert "features_extractor.parts.visual.1.weight" in changed


def test_rectified_layer():
    space = spaces.Dict({"visual": spaces.Box(-1, 1, (3,)), "gps": spaces.Box(-1, 1, (2,))})
    encoder = DictEncoder(space, widths={"visual": 4, "gps": 5}, rectified=["visual"])
    values = {"visual": torch.randn(6, 3), "gps": torch.randn(6, 2)}
    parts = encoder(values).split([5, 4] if next(iter(encoder.parts)) == "gps" else [4, 5], 1)
    gps, visual = parts if next(iter(encoder.parts)) == "gps" else parts[::-1]
    layer: Any = encoder.parts["visual"]
    torch.testing.assert_close(visual, (values["visual"] @ layer[1].weight.T + layer[1].bias).clamp(min=0))
    assert (visual == 0).any()
    assert (gps < 0).any()
    with pytest.raises(ValueError, match="unknown key 'goal' in rectified"):
        DictEncoder(space, widths={"visual": 4}, rectified=["goal"])


# ---------------------------------------------------------------------- VC-1


def test_vc1_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError, match=r"memenvs\[vc1\]"):
        VC1Encoder()


def test_vc1_files_that_cannot_be_used(tmp_path):
    with pytest.raises(FileNotFoundError, match="no weights at"):
        load_vc1(tmp_path / "vc1.pth")
    with pytest.raises(FileNotFoundError, match="no weights at"):
        make_encoder("vc1", weights=str(tmp_path / "vc1.safetensors"))
    path = tmp_path / "vc1.pth"
    torch.save({"model": {"norm.weight": torch.zeros(768)}}, path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match="must be a whole file of nothing but tensors"):
        load_vc1(path)
    path.write_bytes(pickle.dumps(Path("executed"), protocol=2))
    with pytest.raises(ValueError, match="must be a whole file of nothing but tensors"):
        load_vc1(path)
    torch.save({"epoch": 3, "state": {}}, path)
    with pytest.raises(
        ValueError, match=r"must hold tensors by name, alone or under 'model', got a dict with \['epoch', 'state'\]"
    ):
        load_vc1(path)


@pytest.fixture(scope="module")
def vit() -> nn.Module:
    timm = pytest.importorskip("timm", reason="VC-1 needs the extra vc1")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return timm.create_model("vit_base_patch16_224", num_classes=0).eval()


def test_vc1_features(tmp_path, vit):
    tensors = {name: value.to(torch.float16) for name, value in vit.state_dict().items()}
    vit.load_state_dict(tensors)
    path = tmp_path / "vc1_vitb.pth"
    torch.save({"model": {**tensors, "mask_token": torch.zeros(1), "decoder_norm.bias": torch.zeros(1)}}, path)
    save_file(tensors, tmp_path / "vc1.safetensors")
    images = noise(2, 256)
    middle = images[:, 16:240, 16:240].numpy() / 255.0
    normal = (middle - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])
    with torch.no_grad():
        expected = vit.forward_features(torch.tensor(normal, dtype=torch.float32).permute(0, 3, 1, 2))[:, 0]
    for file in (path, tmp_path / "vc1.safetensors"):
        encoder = load_vc1(file)
        assert not any(parameter.requires_grad for parameter in encoder.parameters())
        torch.testing.assert_close(encoder(images), expected, atol=1e-4, rtol=1e-4)
    frozen = make_encoder("vc1", weights=str(path), device="cpu")
    assert frozen.features_dim == 768
    np.testing.assert_allclose(frozen(images.numpy()), expected.numpy(), atol=1e-2, rtol=1e-2)
    del tensors["cls_token"], tensors["blocks.3.mlp.fc1.bias"]
    torch.save({"model": tensors}, path)
    with pytest.raises(
        ValueError,
        match=r"vc1_vitb.pth: must have the \d+ tensors .* 2 are missing \['blocks.3.mlp.fc1.bias', 'cls_token'\]",
    ):
        load_vc1(path)


@pytest.mark.usefixtures("vit")
def test_what_vc1_sees():
    ramp = torch.linspace(0, 1, 512).view(1, 1, 1, 512).expand(1, 3, 256, 512)  # twice as wide as high, dark to bright
    seen = VC1Encoder().crop(ramp)
    assert seen.shape == (1, 3, 224, 224)
    torch.testing.assert_close(seen, ramp[:, :, 16:240, 144:368])
    whole = VC1Encoder(full_frame=True).crop(ramp)
    assert whole.shape == (1, 3, 224, 224)
    assert whole[..., 0].max() < 0.01 < 0.99 < whole[..., -1].min()
    assert 0 <= whole.min() <= whole.max() <= 1


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
