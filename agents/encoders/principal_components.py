"""Principal components of features, as a layer that is fitted once and does not learn."""

from __future__ import annotations

import torch
from torch import Tensor, nn

REGULARISATION = 1e-4
"""Added to the variance of each component before it is divided by, as a share of the largest variance."""


class PrincipalComponents(nn.Module):
    """Projects features to their principal components, each scaled to about the same variance.

    What varies most between features, such as walls between views, would hide everything else in a random projection.
    Here what is rare and small has as much weight.

    Args:
        inputs: Width of the features.
        components: Number K of components.
    """

    mean: Tensor
    axes: Tensor

    def __init__(self, inputs: int, components: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("axes", torch.zeros(inputs, components))

    def forward(self, features: Tensor) -> Tensor:
        """Project float, (P, inputs), to float, (P, K)."""
        return (features - self.mean) @ self.axes

    @torch.no_grad()
    def fit(self, features: Tensor) -> None:
        """Find the components of typical features.

        Afterwards outputs have mean 0 and mean square 1 over these features.

        Args:
            features: float, (P, inputs).

        Raises:
            ValueError: P is not above the number of components.
        """
        count, components = len(features), self.axes.shape[1]
        if count <= components:
            raise ValueError(f"features must be of more than {components} pictures, as many components, got {count}")
        mean = features.mean(0)
        centred = features - mean
        # the products of all pairs of pictures have the same components as the covariance, which is larger
        products = (centred @ centred.T).double() / count
        variances, weights = torch.linalg.eigh(products)
        variances, weights = variances[-components:], weights[:, -components:]
        directions = centred.double().T @ weights / (variances * count).sqrt()  # (inputs, K), of length 1
        axes = (directions / (variances + REGULARISATION * variances[-1]).sqrt()).to(features.dtype)
        self.mean.copy_(mean)
        self.axes.copy_(axes / (centred @ axes).square().mean().sqrt())
