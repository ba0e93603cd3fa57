"""Pre-training of the visual encoder: pictures, loss, scores, and going on after a stop."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from memenvs.agents.encoders import VisualEncoder
from memenvs.agents.encoders.presence_dataset import (
    PresenceDataset,
    _camera_poses,
    f1_scores,
    presence_loss,
    render_dataset,
)
from memenvs.agents.encoders.presence_pretraining import (
    PretrainingConfig,
    crop_quarters,
    flip_horizontally,
    one_cycle,
    pretrain,
    visible_fraction,
)
from memenvs.houses.rendering.renderer import render_frame
from memenvs.houses.simulator import COUNTING_CAMERA, PixelCounter
from memenvs.houses.worlds import make_house_world
from memenvs.objectnav.layout import make_layout
from tests.agents.pictures import noise


def test_pictures_show_what_they_say():
    world, layouts = make_house_world("procedural"), [3, 41]
    drawn = render_dataset(world, layouts, 4, seed=5)
    assert drawn.images.shape == (8, 128, 128, 3)
    alone = render_dataset(world, layouts[1:], 4, seed=5)
    assert all(np.array_equal(a, b[4:]) for a, b in zip(alone, drawn, strict=True))
    assert not np.array_equal(render_dataset(world, layouts[1:], 4, seed=6).images, alone.images)
    layout = make_layout(
        world, 41, count_range=(20, 27), categories=tuple(range(20)), tilt_mode="ladder", counter=PixelCounter()
    )
    for k, pose in enumerate(_camera_poses(layout, 4, np.random.default_rng([5, 41]))):
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
    assert visible_fraction(torch.tensor([0, 5, 11, 200], dtype=torch.uint8)).tolist() == pytest.approx(
        [0, 5 / 11, 1, 1]
    )


def test_mirror():
    images = torch.arange(12, dtype=torch.uint8).view(2, 1, 3, 2)
    mirrored = flip_horizontally(images, torch.tensor([False, True]))
    assert mirrored.tolist() == [[[[0, 1], [2, 3], [4, 5]]], [[[10, 11], [8, 9], [6, 7]]]]


def test_cut_outs_are_quarters_that_mostly_show_a_thing():
    rng = np.random.default_rng(0)
    images = torch.arange(128 * 128).view(1, 128, 128, 1).expand(200, -1, -1, 3)  # each pixel says where it is
    cells = torch.arange(64, dtype=torch.uint8).view(1, 8, 8, 1).repeat(200, 1, 1, 1) // 64  # no thing yet
    cells[:100, 6, 1] = 40
    seen, in_cells = crop_quarters(images, cells, rng)
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


def some_pictures(count: int) -> PresenceDataset:
    rng = np.random.default_rng(0)
    cells = np.zeros((count, 8, 8, 20), np.uint8)
    cells[np.arange(count), rng.integers(8, size=count), rng.integers(8, size=count), rng.integers(20, size=count)] = 40
    return PresenceDataset(noise(count).numpy(), cells.max((1, 2)).astype(np.int32), cells)


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
