from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from memenvs.four_boxes.resize import Resize


@pytest.mark.parametrize("target", [(25, 25), (7, 40), (60, 33)])
def test_equals_scikit_image(target):
    """Its `resize(..., anti_aliasing=True)` makes these two calls of SciPy."""
    images = np.random.default_rng(0).integers(0, 256, (3, 60, 80, 3), dtype=np.uint8)
    out = np.zeros((3, *target, 3), np.uint8)
    Resize((60, 80), target)(images, np.array([True, False, True]), out)
    factors = np.array([60 / target[0], 80 / target[1], 1.0])
    for k in (0, 2):
        smooth = ndimage.gaussian_filter(images[k].astype(float), (factors - 1) / 2, mode="mirror")
        expected = ndimage.zoom(smooth, 1 / factors, order=1, mode="mirror", grid_mode=True)
        assert np.abs(out[k] - expected).max() < 0.501  # it is rounded
    assert not out[1].any()
