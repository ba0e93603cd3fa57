"""The best linear prediction of a patch of FFHQ-world from another one of the same picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from memenvs.faces.episodes import GRID, NUM_CELLS, PATCH_PIXELS
from memenvs.faces.places import cell_positions
from memenvs.faces.world import cut_patches

#: Directions of patches that predict, and that are predicted.
_INPUTS, _OUTPUTS = 64, 128
#: Weight of the penalty on coefficients, in pairs of patches.
_RIDGE = 1.0
_PATCH_SIZE = 3 * PATCH_PIXELS**2


@dataclass(frozen=True, eq=False)
class LinearPrediction:
    """Best linear prediction of a patch from another one of the same picture.

    Attributes:
        means: float32, (100, 768); what is subtracted from the patch of each cell: without the map the same for all.
        directions: float32, (768, 128); principal directions of patches, the largest first; 128 or `outputs`.
        weights: (dx, dy) -> float32, (65, 128); from the 64 (or `inputs`) largest directions of one patch, and 1, to
            all of the other patch, dx columns to the right and dy rows below.
    """

    means: np.ndarray
    directions: np.ndarray
    weights: Mapping[tuple[int, int], np.ndarray]

    @classmethod
    def fit(
        cls, pictures: np.ndarray, *, knows_map: bool, inputs: int = _INPUTS, outputs: int = _OUTPUTS
    ) -> LinearPrediction:
        """Fit to pictures.

        Args:
            pictures: uint8, (P, 88, 88, 3).
            knows_map: If True, the observer knows the cell of the first patch, and expects the mean patch of each cell.
            inputs: Number of directions that predict.
            outputs: Number of directions that are predicted.
        """
        patches = cut_patches(pictures).reshape(len(pictures), NUM_CELLS, -1).astype(np.float32) / 255
        means = patches.mean(0) if knows_map else np.broadcast_to(patches.mean((0, 1)), patches.shape[1:])
        flat = (patches - means).reshape(-1, _PATCH_SIZE)
        directions = np.linalg.eigh((flat.T @ flat).astype(np.float64))[1][:, ::-1][:, :outputs].astype(np.float32)
        codes = (flat @ directions).reshape(len(pictures), GRID, GRID, outputs)
        predictors = np.concatenate([codes[..., :inputs], np.ones_like(codes[..., :1])], -1)
        weights = {}
        for dx in range(1 - GRID, GRID):
            for dy in range(1 - GRID, GRID):
                first = predictors[:, max(0, -dy) : GRID - max(0, dy), max(0, -dx) : GRID - max(0, dx)]
                second = codes[:, max(0, dy) : GRID + min(0, dy), max(0, dx) : GRID + min(0, dx)]
                x, y = first.reshape(-1, inputs + 1), second.reshape(-1, outputs)
                weights[dx, dy] = np.linalg.solve(x.T @ x + _RIDGE * np.eye(inputs + 1), x.T @ y).astype(np.float32)
        return cls(means, directions, weights)

    def predict(self, start: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Predict patches.

        Args:
            start: uint8, (16, 16, 3); patch of the first cell.
            cells: int, (Q + 1,); the first cell, then those whose patches are predicted.

        Returns:
            float32, (Q, 16, 16, 3); 0 to 1.
        """
        steps = cell_positions(cells[1:]) - cell_positions(cells[:1])
        patches = self._codes(start, self.means[cells[0]], steps) @ self.directions.T + self.means[cells[1:]]
        return np.clip(patches, 0.0, 1.0).reshape(-1, *start.shape)

    def predict_at(self, start: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Predict patches without the map.

        Args:
            start: uint8, (16, 16, 3); the first patch.
            steps: int, (Q, 2); columns to the right and rows below of the others.

        Returns:
            float32, (Q, 16, 16, 3); 0 to 1.
        """
        patches = self._codes(start, self.means[0], steps) @ self.directions.T + self.means[0]
        return np.clip(patches, 0.0, 1.0).reshape(-1, *start.shape)

    def _codes(self, start: np.ndarray, mean: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Codes of predicted patches, float32, (Q, 128)."""
        inputs = len(self.weights[0, 0]) - 1
        code = (start.reshape(-1).astype(np.float32) / 255 - mean) @ self.directions[:, :inputs]
        code = np.append(code, np.float32(1))
        return np.stack([code @ self.weights[dx, dy] for dx, dy in steps.tolist()])
