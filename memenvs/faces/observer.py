"""Observers of FFHQ-world: the errors without memory, without the map, and with both.

An observer with memory and the map knows every pixel that a retained patch has shown. Where it knows none, and in
observers without memory, the best linear prediction from the patch at the start of the query stands in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from memenvs.faces.episodes import GRID, MOVES, NUM_CELLS, PATCH_PIXELS, PATCH_STRIDE, PICTURE_PIXELS, FaceEpisodes
from memenvs.faces.places import cell_positions
from memenvs.faces.world import FaceWorld, cut_patches
from memenvs.retention import retained

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


def observer_errors(
    world: FaceWorld, episodes: FaceEpisodes, linear: Mapping[bool, LinearPrediction], capacity: int = 256
) -> dict[str, float]:
    """Compute mean squared errors of observers.

    Args:
        world: World of the episodes.
        episodes: B episodes.
        linear: Best linear predictions, without the map (False) and with it (True).
        capacity: Steps that a memory can keep.

    Returns:
        Observer -> mean over patches, colours from 0 to 1.

        - "mean patch": the mean of all patches.
        - "no memory": from the patch at the start of the query, and its moves.
        - "no memory, map": it knows the cells of the query too.
        - "fifo", "mvfo": the map, and the patches that a memory of this capacity keeps.
        - "fifo, no map": patches without their cells. It takes the first one whose overlap with the current patch is
          right in every pixel, and predicts where there is none.
    """
    errors: dict[str, list[float]] = {}
    places = episodes.place.astype(np.int64)
    kept = {name: retained(places, name, capacity, n_places=world.num_places) for name in ("fifo", "mvfo")}
    nothing = np.zeros(0, np.int64)
    for b in range(len(episodes)):
        query, cell = episodes.query_cell[b], episodes.cell[b]
        picture = world.pictures.read(int(episodes.picture[b]))
        patches = cut_patches(picture[None])[0]
        start, targets = patches[query[0]], patches[query[1:]].astype(np.float32) / 255
        blind, placed = (linear[knows_map].predict(start, query) for knows_map in (False, True))
        unknown = _unknown_pixels(query, nothing)
        found = {
            "mean patch": linear[False].means[0].reshape(start.shape) - targets,
            "no memory": (blind - targets) * unknown,
            "no memory, map": (placed - targets) * unknown,
            **{name: (placed - targets) * _unknown_pixels(query, cell[kept[name][b]]) for name in kept},
            "fifo, no map": _stitch(start, patches[cell[kept["fifo"][b]]], episodes.query_action[b], blind) - targets,
        }
        for name, difference in found.items():
            errors.setdefault(name, []).append(float((difference**2).mean()))
    return {name: float(np.mean(each)) for name, each in errors.items()}


def _unknown_pixels(query: np.ndarray, retained_cells: np.ndarray) -> np.ndarray:
    """Mark pixels of the patches to produce that neither the start nor a retained patch shows, (Q, 16, 16, 1)."""
    unknown = np.ones((1, PICTURE_PIXELS, PICTURE_PIXELS, 1), bool)
    for x, y in (cell_positions(np.unique(np.append(retained_cells, query[0]))) * PATCH_STRIDE).tolist():
        unknown[0, y : y + PATCH_PIXELS, x : x + PATCH_PIXELS] = False
    return cut_patches(unknown)[0][query[1:]]


def _stitch(start: np.ndarray, memory: np.ndarray, moves: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Find the patches of the query in a memory without places, by their overlaps; float32, (Q, 16, 16, 3)."""
    current, produced = start.astype(np.float32) / 255, predicted.copy()
    stored = memory.astype(np.float32) / 255
    for step, (dx, dy) in enumerate((MOVES[moves] * PATCH_STRIDE).tolist()):
        old = slice(max(0, dy), PATCH_PIXELS + min(0, dy)), slice(max(0, dx), PATCH_PIXELS + min(0, dx))
        new = slice(max(0, -dy), PATCH_PIXELS + min(0, -dy)), slice(max(0, -dx), PATCH_PIXELS + min(0, -dx))
        fits = (stored[(slice(None), *new)] == current[old]).all((1, 2, 3))
        if fits.any():
            produced[step] = stored[fits.argmax()]
        else:
            produced[step][new] = current[old]
        current = produced[step]
    return produced
