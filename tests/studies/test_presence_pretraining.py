"""Pre-training of the visual encoder: labels, loss, scores, resuming after a kill."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from memenvs.agents.encoders import VisualEncoder
from memenvs.houses.rendering.renderer import render_frame
from memenvs.houses.simulator import COUNTING_CAMERA, PixelCounter
from memenvs.houses.worlds import make_house_world
from memenvs.objectnav.layout import make_layout
from studies.ext_objnav_pictures.pretraining.epochs import one_cycle
from studies.ext_objnav_pictures.pretraining.presence_dataset import PresenceDataset, _camera_poses, render_dataset
from studies.ext_objnav_pictures.pretraining.presence_pretraining import (
    PretrainingConfig,
    crop_quarters,
    f1_scores,
    flip_horizontally,
    presence_loss,
    pretrain,
    visible_fraction,
)
from tests.agents.pictures import noise


@pytest.mark.slow
def test_labels_of_rendered_images():
    """Pixels and cells of each category, counted one object at a time in frames that are rendered alone."""
    world, layouts = make_house_world("procedural"), [3, 41]
    data = render_dataset(world, layouts, 4, seed=5)
    assert data.images.shape == (8, 128, 128, 3)
    alone = render_dataset(world, layouts[1:], 4, seed=5)
    assert all(np.array_equal(a, b[4:]) for a, b in zip(alone, data, strict=True))
    assert not np.array_equal(render_dataset(world, layouts[1:], 4, seed=6).images, alone.images)
    layout = make_layout(world, 41, count_range=(20, 27), categories=tuple(range(20)), counter=PixelCounter())
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
    assert data.present.any(1).sum() >= 6  # the robot stands in front of an object


def test_loss_by_hand():
    # p = 1/2 everywhere: Dice 1 - (2 * 1/2 + 1) / (1 + 1 + 1) = 1/3, cross-entropy log 2; then a certain, right answer
    present = torch.tensor([[1.0, 0.0]])
    assert presence_loss(torch.zeros(1, 2), present).item() == pytest.approx(1 / 3 + math.log(2))
    assert presence_loss(torch.tensor([[40.0, -40.0]]), present).item() == pytest.approx(0.0, abs=1e-6)
    both = presence_loss(torch.tensor([[0.0, 0.0], [40.0, -40.0]]), present.expand(2, 2))
    assert both.item() == pytest.approx((1 / 3 + math.log(2)) / 2)


def test_f1_scores_equal_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    predicted, present = rng.random((50, 6)) < 0.3, rng.random((50, 6)) < 0.4
    predicted[:, 5] = present[:, 5] = False
    expected = f1_score(present, predicted, average=None, zero_division=0.0)
    np.testing.assert_allclose(f1_scores(predicted, present), expected)


def test_schedule_targets_and_mirroring_by_hand():
    assert [one_cycle(done) for done in (0.0, 0.05, 0.1, 0.55, 1.0)] == pytest.approx([0.0, 0.5, 1.0, 0.5, 0.0])
    pixels = torch.tensor([0, 5, 11, 200], dtype=torch.uint8)
    assert visible_fraction(pixels).tolist() == pytest.approx([0, 5 / 11, 1, 1])
    images = torch.arange(12, dtype=torch.uint8).view(2, 1, 3, 2)
    mirrored = flip_horizontally(images, torch.tensor([False, True]))
    assert mirrored.tolist() == [[[[0, 1], [2, 3], [4, 5]]], [[[10, 11], [8, 9], [6, 7]]]]


def test_crops_are_quarters_that_mostly_show_an_object():
    rng = np.random.default_rng(0)
    images = torch.arange(128 * 128).view(1, 128, 128, 1).expand(200, -1, -1, 3)  # each pixel has its own number
    cells = torch.arange(64, dtype=torch.uint8).view(1, 8, 8, 1).repeat(200, 1, 1, 1) // 64  # no object yet
    cells[:100, 6, 1] = 40
    cropped, in_cells = crop_quarters(images, cells, rng)
    assert cropped.shape == (200, 64, 64, 3)
    assert in_cells.shape == (200, 4, 4, 1)
    corners = [divmod(value, 128) for value in cropped[:, 0, 0, 0].tolist()]
    for (top, left), image, crop, whole in zip(corners, cropped, in_cells, cells, strict=True):
        assert top % 16 == left % 16 == 0
        torch.testing.assert_close(image, images[0, top : top + 64, left : left + 64])
        torch.testing.assert_close(crop, whole[top // 16 : top // 16 + 4, left // 16 : left // 16 + 4])
    # of 100 with an object, 75 are chosen to show it, and 2/5 * 2/5 of the other 25 show it by chance
    with_object = int((in_cells[:100] > 10).any(-1).any(-1).any(-1).sum())
    assert abs(with_object - 79) < 4 * math.sqrt(100 * 0.79 * 0.21)
    assert len(set(corners[100:])) == 25


def random_data(count: int) -> PresenceDataset:
    """Noise, labelled with one random category each."""
    rng = np.random.default_rng(0)
    cells = np.zeros((count, 8, 8, 20), np.uint8)
    cells[np.arange(count), rng.integers(8, size=count), rng.integers(8, size=count), rng.integers(20, size=count)] = 40
    return PresenceDataset(noise(count).numpy(), cells.max((1, 2)).astype(np.int32), cells)


@pytest.mark.slow
def test_a_killed_training_ends_with_the_same_bits(tmp_path):
    data, config = random_data(9), PretrainingConfig(epochs=2, crop_epochs=1, batch_size=4)
    losses: list[float] = []
    whole = pretrain(data, config, tmp_path / "whole.safetensors", on_step=losses.append)
    assert len(losses) == 4  # the ninth image waits for another epoch

    def kill(epoch: int, encoder: VisualEncoder) -> None:
        assert not encoder.training
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        pretrain(data, config, tmp_path / "killed.safetensors", on_epoch=kill)
    rest: list[float] = []
    resumed = pretrain(data, config, tmp_path / "killed.safetensors", on_step=rest.append)
    assert rest == losses[2:]
    for name, value in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value), name
    with pytest.raises(ValueError, match="is of a training with other settings"):
        pretrain(data, replace(config, epochs=3), tmp_path / "whole.safetensors")


def test_settings_of_pretraining_are_checked(tmp_path):
    wrong_values = {"epochs": 0, "crop_epochs": 52, "batch_size": 0, "learning_rate": 0.0, "weight_decay": -1.0}
    for name, wrong in wrong_values.items():
        with pytest.raises(ValueError, match=name):
            PretrainingConfig(**{name: wrong})
    with pytest.raises(ValueError, match="images must be at least batch_size = 4, got 3"):
        pretrain(random_data(3), PretrainingConfig(batch_size=4), tmp_path / "c")
