"""k-means: cluster positions into places; the same input gives the same places."""

from __future__ import annotations

import numpy as np

from memenvs.checks import is_int

#: Runs from new first centres, of which that with the least squared distance wins, and most iterations of a run.
RUNS, MOST_ITERATIONS = 10, 300


def fit_places(positions: np.ndarray, num_places: int, *, seed: int = 0) -> np.ndarray:
    """Fit k place centres to positions with k-means.

    Args:
        positions: float, (P, 2); x and y.
        num_places: k; 1 ... number of different positions.
        seed: Seeds the first centres.

    Returns:
        float64, (k, 2); centres in order of x, then y, m.

    Raises:
        ValueError: A shape or a number is not allowed.

    Source:
        Lloyd's algorithm (1982) from k-means++ starts (Arthur and Vassilvitskii, 2007).
    """
    points = np.asarray(positions, np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise ValueError(f"positions must be finite and of shape (P, 2), got shape {points.shape}")
    different = len(np.unique(points, axis=0))
    if not is_int(num_places) or not 1 <= num_places <= different:
        raise ValueError(
            f"num_places must be an integer in 1 ... {different}, the number of different positions, got {num_places!r}"
        )
    rng = np.random.default_rng(seed)
    fits = [_lloyd(points, _first_centres(points, num_places, rng)) for _ in range(RUNS)]
    centres = min(fits, key=lambda fit: fit[1])[0]
    return centres[np.lexsort((centres[:, 1], centres[:, 0]))]


def nearest_centre(positions: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Index of the centre nearest to each position.

    Args:
        positions: float, (P, 2); m.
        centres: float, (k, 2); m.

    Returns:
        int64, (P,); ties go to the lower index.
    """
    return _squared_distance(positions, centres).argmin(1)


def _first_centres(points: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++ start: draw k distinct points, each with probability proportional to its squared distance."""
    chosen = [int(rng.integers(len(points)))]
    nearest = np.full(len(points), np.inf)
    while len(chosen) < k:
        nearest = np.minimum(nearest, ((points - points[chosen[-1]]) ** 2).sum(1))
        chosen.append(int(rng.choice(len(points), p=nearest / nearest.sum())))
    return points[chosen]


def _lloyd(points: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, float]:
    """Lloyd's iterations; returns the centres and the sum of squared distances, m^2."""
    label = nearest_centre(points, centres)
    for _ in range(MOST_ITERATIONS):
        count = np.bincount(label, minlength=len(centres))
        total = np.stack([np.bincount(label, points[:, axis], len(centres)) for axis in (0, 1)], axis=1)
        # a centre without points keeps its place, so that the number of centres stays k
        centres = np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], centres)
        new_label = nearest_centre(points, centres)
        if (new_label == label).all():
            break  # a fixed point: further iterations would change nothing
        label = new_label
    return centres, float(_squared_distance(points, centres).min(1).sum())


def _squared_distance(positions: np.ndarray, centres: np.ndarray) -> np.ndarray:
    dx, dy = (positions[:, None, axis] - centres[None, :, axis] for axis in (0, 1))
    return dx**2 + dy**2  # (P, k)
