"""Principal components of features against a singular value decomposition."""

import numpy as np
import pytest
import torch

from memenvs.agents.encoders.principal_components import PrincipalComponents


def test_components_are_those_of_a_singular_value_decomposition() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 60)) * np.geomspace(10, 0.1, 60) + rng.normal(size=60)
    layer = PrincipalComponents(60, 5).double()
    layer.fit(torch.from_numpy(features))
    outputs = layer(torch.from_numpy(features)).numpy()
    _, singular, directions = np.linalg.svd(features - features.mean(0), full_matrices=False)
    variances = singular[:5] ** 2 / 40
    expected = (features - features.mean(0)) @ directions[:5].T / np.sqrt(variances + 1e-4 * variances[0])
    expected = expected[:, ::-1] / np.sqrt((expected**2).mean())  # the largest is the last
    signs = np.sign((outputs * expected).sum(0))
    np.testing.assert_allclose(outputs, expected * signs, atol=1e-9)
    assert (outputs**2).mean() == pytest.approx(1.0)
    others = rng.normal(size=(3, 60))
    np.testing.assert_allclose(
        layer(torch.from_numpy(others)).numpy(), (others - features.mean(0)) @ layer.axes.numpy(), atol=1e-9
    )


def test_too_few_pictures_are_refused() -> None:
    with pytest.raises(ValueError, match="of more than 5 pictures, as many components, got 5"):
        PrincipalComponents(8, 5).fit(torch.randn(5, 8))
