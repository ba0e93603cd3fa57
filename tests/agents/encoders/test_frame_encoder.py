"""Encoder of Room Ballet: table against convolutions, initial weights."""

import numpy as np
import pytest
import torch

from memenvs.agents.encoders.frame_encoder import FrameEncoder
from memenvs.room_ballet.frames import frame_table


def encoder(seed: int = 0, **settings) -> FrameEncoder:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return FrameEncoder(**settings)


def test_table_is_what_the_convolutions_give():
    """All 2565 frames in double precision, values and gradients of every weight."""
    images = torch.from_numpy(frame_table().copy())
    towards = torch.randn(len(images), 128, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    results = []
    for fast in (False, True):
        model = encoder().double()
        vectors = model.table(torch.arange(len(images))) if fast else model(images)
        (vectors * towards).sum().backward()
        results.append([vectors.detach(), *(parameter.grad for parameter in model.parameters())])
    for plain, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-9 * float(plain.abs().max()))


def test_calibrated_outputs_have_mean_0_and_mean_square_1():
    vectors = encoder()(torch.from_numpy(frame_table().copy())).detach().numpy()
    np.testing.assert_allclose(vectors.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose((vectors**2).mean(0), 1, atol=1e-3)


def test_release_weights_make_frames_hardly_differ():
    """The spread over frames is a few hundredths of that of time and place codes, so "calibrated" is the default."""
    vectors = encoder(initialisation="release")(torch.from_numpy(frame_table().copy())).detach()
    assert 0 < float(vectors.std(0).norm()) < 0.08 * 8


def test_unknown_initialisation_is_named():
    with pytest.raises(ValueError, match="unknown initialisation 'random'; choose from"):
        encoder(initialisation="random")
