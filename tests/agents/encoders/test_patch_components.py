"""Patch encoders and decoders that start as principal components."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from memenvs.agents.encoders.patch_components import start_with_components
from memenvs.agents.encoders.pictures import PatchDecoder, PatchEncoder, as_channels

CELLS = 10


def blocks_of_one_colour(count: int, seed: int) -> Tensor:
    """Pictures of 11 x 11 blocks, each of one colour, so that a patch has 12 different numbers."""
    colours = np.random.default_rng(seed).integers(256, size=(count, 11, 11, 3)).astype(np.uint8)
    return torch.from_numpy(colours.repeat(8, 1).repeat(8, 2))


def patches_of(pictures: Tensor) -> Tensor:
    """All patches, picture by picture and row by row, float, (P * 100, 16, 16, 3), 0 to 1."""
    cut = [pictures[:, 8 * y : 8 * y + 16, 8 * x : 8 * x + 16] for y in range(CELLS) for x in range(CELLS)]
    return torch.stack(cut, 1).flatten(0, 1) / 255


def started(pictures: Tensor, added: Tensor) -> tuple[PatchEncoder, PatchDecoder]:
    torch.manual_seed(0)
    encoder, decoder = PatchEncoder(len(added), CELLS), PatchDecoder(len(added))
    start_with_components(encoder, decoder, pictures, added)
    return encoder, decoder


@torch.no_grad()
def test_patches_with_few_numbers_pass_through_all_layers_unchanged() -> None:
    encoder, decoder = started(blocks_of_one_colour(40, 0), torch.zeros(32, 32))
    others = blocks_of_one_colour(5, 1)
    patches = patches_of(others)
    codes = encoder.table(others)
    seen = (torch.tanh(1.2 * (2 * patches - 1)) + 1) / 2  # the decoder ends with tanh
    torch.testing.assert_close(decoder(codes), seen, rtol=0, atol=2e-3)
    torch.testing.assert_close(decoder(encoder((patches * 255).round().to(torch.uint8))), seen, rtol=0, atol=2e-3)


@torch.no_grad()
def test_codes_leave_directions_to_what_is_added() -> None:
    rng = np.random.default_rng(3)
    basis, _ = np.linalg.qr(rng.normal(size=(32, 32)))
    basis = torch.from_numpy(basis.T).float()  # rows: unit vectors
    large, small = basis[:2], basis[2:4]
    added = 100 * large.T @ large + 0.01 * small.T @ small
    pictures = blocks_of_one_colour(40, 0)
    encoder, decoder = started(pictures, added)
    codes = encoder.table(pictures)
    torch.testing.assert_close(codes.mean(0), torch.zeros(32), rtol=0, atol=1e-4)
    assert codes.square().mean().item() == pytest.approx(1.0, rel=1e-4)
    assert (codes @ large.T).abs().max() < 1e-4
    sizes = torch.linalg.svdvals(codes)
    assert sizes[11] > 0.99 * sizes[0] and sizes[12] < 0.01 * sizes[0]  # 12 components, all of one size
    torch.testing.assert_close(decoder(codes + 10 * large[0] - 7 * large[1]), decoder(codes), rtol=0, atol=1e-4)
    # 12 components lie in 28 directions in which nothing is added
    assert (codes @ small.T).abs().max() < 2e-3


@torch.no_grad()
def test_a_decoder_starts_as_the_linear_regression_from_codes_and_what_is_added() -> None:
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(50, 16, generator=generator) * 0.4
    vectors[:, :5] *= 20  # more than the 4 directions that 12 components do not need
    added = vectors.T @ vectors / 50
    pictures = torch.from_numpy(np.random.default_rng(0).integers(256, size=(12, 88, 88, 3)).astype(np.uint8))
    encoder, decoder = started(pictures, added)
    used = 4 - 1  # of the last convolution's channels one is left out
    features = as_channels(pictures, torch.float32)
    for layer in encoder.convolutions:
        features = layer(features)
    blocks = functional.unfold(features[:, :used], 2).movedim(1, 2).flatten(0, 1).double()
    codes = encoder.table(pictures).double()
    large = torch.linalg.eigh(added).eigenvectors[:, -5:]
    assert (codes @ large.double()).abs().max() < 1e-4
    centred = blocks - blocks.mean(0)
    expected = centred.T @ codes @ torch.linalg.inv(codes.T @ codes + len(codes) * added.double())
    first = decoder.layers[0]
    assert isinstance(first, nn.Linear)
    torch.testing.assert_close(first.weight[: 4 * used].double(), expected, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(first.bias[: 4 * used].double(), blocks.mean(0), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_pictures_that_are_all_alike_are_decoded() -> None:
    grey = torch.full((3, 88, 88, 3), 140, dtype=torch.uint8)
    encoder, decoder = started(grey, torch.eye(16) / 2)
    expected = (np.tanh(1.2 * (2 * 140 / 255 - 1)) + 1) / 2
    torch.testing.assert_close(
        decoder(encoder.table(grey)), torch.full((300, 16, 16, 3), float(expected)), rtol=0, atol=1e-5
    )
