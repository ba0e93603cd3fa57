"""Encoders and decoders of pictures: sizes, patches of whole pictures, calibration."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from memenvs.agents.encoders.pictures import (
    PatchDecoder,
    PatchEncoder,
    PictureEncoder,
    ViewDecoder,
    ViewEncoder,
    as_channels,
)


def pictures(count: int, side: int) -> Tensor:
    """Pictures with large and small structure, uint8, (count, side, side, 3)."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 200, (count, side // 4, side // 4, 3)).repeat(4, 1).repeat(4, 2)
    return torch.from_numpy((coarse + rng.integers(0, 55, coarse.shape)).astype(np.uint8))


def test_sizes_are_the_published_ones() -> None:
    def parameters(module: nn.Module) -> int:
        return sum(parameter.numel() for parameter in module.parameters())

    modules: list[nn.Module] = [PatchEncoder(), PatchDecoder(), ViewEncoder(), ViewDecoder()]
    assert list(map(parameters, modules)) == [42_016, 41_987, 105_744, 167_202]


@torch.no_grad()
def test_a_table_of_patches_has_the_code_of_each_patch_row_by_row() -> None:
    torch.manual_seed(0)
    encoder = PatchEncoder(8)
    whole = pictures(2, 88)
    table = encoder.table(whole)
    assert table.shape == (200, 8)
    for picture, row, column in ((0, 0, 0), (0, 2, 7), (1, 9, 9)):
        patch = whole[picture, 8 * row : 8 * row + 16, 8 * column : 8 * column + 16]
        torch.testing.assert_close(encoder(patch[None])[0], table[100 * picture + 10 * row + column])


@torch.no_grad()
def test_calibration_makes_pictures_visible_in_every_number() -> None:
    torch.manual_seed(0)
    for encoder, side in ((PatchEncoder(16), 88), (ViewEncoder(16), 84)):
        assert isinstance(encoder, PictureEncoder)
        views = pictures(24, side)
        assert encoder.table(views).std(0).max() < 0.2  # hardly anything
        encoder.calibrate(views)
        table = encoder.table(views)
        torch.testing.assert_close(table.mean(0), torch.zeros(16), rtol=0, atol=1e-4)
        torch.testing.assert_close(table.square().mean(0), torch.ones(16), rtol=1e-3, atol=0)


def test_calibration_with_pictures_of_one_colour_leaves_weights_that_can_learn() -> None:
    torch.manual_seed(0)
    for encoder, side in ((PatchEncoder(16), 88), (ViewEncoder(16), 84)):
        assert isinstance(encoder, PictureEncoder)
        encoder.calibrate(torch.full((24, side, side, 3), 140, dtype=torch.uint8))
        encoder.table(pictures(24, side)).square().mean().backward()
        for parameter in encoder.parameters():
            assert parameter.abs().max() < 2 and parameter.grad is not None and parameter.grad.norm() < 100


@pytest.mark.slow
@torch.no_grad()
def test_a_calibrated_decoder_starts_near_the_mean_view_and_lets_vectors_through() -> None:
    rng = np.random.default_rng(0)
    views = torch.from_numpy(rng.integers(30, 220, (5, 84, 84, 3)).astype(np.uint8))
    torch.manual_seed(0)
    decoder = ViewDecoder(128, 2, background=True)
    decoder.calibrate(views)
    vectors = torch.randn(200, 128)
    decoded = decoder(vectors)
    mean = (views / 255).mean(0)
    assert (decoded.mean(0) - mean).abs().mean() < 0.02
    assert 0.01 < (decoded - mean).std() < 0.1
    hidden = decoder.layers[:-1]
    for layer in range(1, 7):
        if isinstance(decoder.layers[layer], nn.ReLU):
            share = (hidden[: layer + 1](vectors) > 0).flatten(1).float().mean(0)  # of the vectors
            assert ((share > 0.02) & (share < 0.98)).float().mean() > 0.9, layer


def test_patches_are_those_of_the_transposed_convolutions() -> None:
    torch.manual_seed(0)
    decoder = PatchDecoder(8)
    codes, plain = (torch.randn(3, 8, generator=torch.Generator().manual_seed(0), requires_grad=True) for _ in range(2))
    patches, expected = decoder(codes), (decoder.layers(plain).movedim(1, 3) + 1) / 2
    torch.testing.assert_close(patches, expected)
    for output in (patches, expected):
        output.square().sum().backward()
    torch.testing.assert_close(codes.grad, plain.grad)


def test_features_of_patches_are_those_of_the_convolutions() -> None:
    torch.manual_seed(0)
    encoder = PatchEncoder(8)
    views = pictures(2, 48)[:, :32]  # rows and columns are not exchanged
    features, expected = encoder.features(views), encoder.convolutions(as_channels(views, torch.float32))
    assert features.shape == (2, 2, 4, 6)  # a quarter of the width
    torch.testing.assert_close(features, expected)
    weights = list(encoder.convolutions.parameters())
    for ours, plain in zip(
        *(torch.autograd.grad(output.square().sum(), weights) for output in (features, expected)), strict=True
    ):
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_components_show_small_objects_beside_large_ones() -> None:
    """More of the variance of the codes is explained by the place of a small square, beside walls of all colours."""
    rng = np.random.default_rng(3)
    views = np.full((480, 84, 84, 3), 60, np.uint8)
    place = np.arange(len(views)) % 16
    for view, number in zip(views, place, strict=True):
        view[:42] = rng.integers(100, 250, 3)
        top, left = 10 + 18 * (number // 4), 10 + 18 * (number % 4)
        view[top : top + 6, left : left + 6] = 255, 0, 0
    explained = []
    for components in (0, 20):
        torch.manual_seed(0)
        encoder = ViewEncoder(64, components)
        encoder.calibrate(torch.from_numpy(views))
        codes = encoder.table(torch.from_numpy(views))
        means = codes.unflatten(0, (-1, 16)).mean(0)
        explained.append((means.var(0).sum() / codes.var(0).sum()).item())
    assert explained[1] > 0.6 > 0.4 > explained[0], explained
