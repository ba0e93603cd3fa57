"""Scores of ViewRecall with what a memory keeps, without any training; prints a table.

    python -m memenvs.recall.observer [--positions 200] [--hfov_deg 90] [--world procthor]

An observer that turns on the spot can compute the view in a new direction from the pictures that it has kept, as far as
these show it. Where they do not, its best guess is the mean picture of other homes, at that pixel.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np

from memenvs.recall.config import ViewRecallConfig
from memenvs.recall.pools import ViewPool
from memenvs.recall.turns import OBSERVED_HEADINGS, QUERY_HEADINGS
from memenvs.retention import retained


def stitch(pictures: np.ndarray, headings: np.ndarray, query: float, hfov_deg: float) -> np.ndarray:
    """Compute the view in a direction from pictures in other directions.

    Args:
        pictures: uint8 or float, (K, H, W, 3); K >= 1.
        headings: float, (K,); rad.
        query: Heading of the view, rad.
        hfov_deg: Horizontal field of view of all pictures, degrees.

    Returns:
        float64, (H, W, 3); each pixel from the picture nearest to the direction that shows it, with linear
        interpolation; NaN where none does.
    """
    _, height, width, _ = pictures.shape
    focal = width / 2 / math.tan(math.radians(hfov_deg) / 2)
    row, column = np.indices((height, width))
    to_right = np.arctan((column + 0.5 - width / 2) / focal)  # angle of each pixel's ray from the middle, rad
    down = (row + 0.5 - height / 2) / focal * np.cos(to_right)  # of the ray, per horizontal metre
    view = np.full((height, width, 3), np.nan)
    gaps = (np.asarray(headings) - query + math.pi) % (2 * math.pi) - math.pi
    for k in np.argsort(np.abs(gaps), kind="stable").tolist():
        angle = to_right + gaps[k]
        ahead = np.cos(angle)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            u = np.tan(angle) * focal + width / 2 - 0.5  # column and row in picture k
            v = down / ahead * focal + height / 2 - 0.5
        is_seen = (ahead > 0) & (u > -0.5) & (u < width - 0.5) & (v > -0.5) & (v < height - 0.5)
        new = is_seen & np.isnan(view[..., 0])
        view[new] = _interpolated(pictures[k], v[new], u[new])
    return view


def _interpolated(picture: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Colours of a picture (H, W, 3) between pixels, (Q, 3)."""
    height, width, _ = picture.shape
    top = np.clip(np.floor(row).astype(int), 0, height - 2)
    left = np.clip(np.floor(column).astype(int), 0, width - 2)
    down = np.clip(row - top, 0, 1)[:, None]
    right = np.clip(column - left, 0, 1)[:, None]
    upper = picture[top, left] * (1 - right) + picture[top, left + 1] * right
    lower = picture[top + 1, left] * (1 - right) + picture[top + 1, left + 1] * right
    return upper * (1 - down) + lower * down


def observer_scores(config: ViewRecallConfig, positions: int, capacity: int, seed: int = 0) -> dict[str, float]:
    """Measure the mean squared error of answers from what a memory keeps.

    Args:
        config: Settings of the task; the mean picture is that of its split "train".
        positions: Positions for the mean picture, and as many episodes at other ones.
        capacity: Steps that the memory keeps.
        seed: Of positions and episodes.

    Returns:
        "fifo" and "mvfo": answers from the steps that this strategy keeps; "none": the mean picture; "random": colours
        drawn uniformly.
    """
    mean = ViewPool(config, positions=positions, seed=seed).pictures.mean((0, 1)) / 255
    pool = ViewPool(config, positions=positions, seed=seed + 1)
    rng = np.random.default_rng(seed)
    episodes = pool.sample_batch(positions, rng)
    targets = pool.targets(episodes) / 255
    answers = {"none": np.broadcast_to(mean, targets.shape), "random": rng.random(targets.shape)}
    for strategy in ("fifo", "mvfo"):
        kept = retained(episodes.place, strategy, capacity, n_places=len(QUERY_HEADINGS))
        answers[strategy] = np.zeros(targets.shape)
        for b in range(positions):
            seen = np.unique(episodes.heading[b, kept[b]])
            pictures = pool.pictures[episodes.position[b], seen] / 255
            query = QUERY_HEADINGS[episodes.query[b]]
            view = stitch(pictures, OBSERVED_HEADINGS[seen], query, config.hfov_deg)
            answers[strategy][b] = np.where(np.isnan(view), mean, view)
    return {name: float(((answer - targets) ** 2).mean()) for name, answer in answers.items()}


def main() -> int:
    """Print the scores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--positions", type=int, default=200, help="episodes (default: 200)")
    parser.add_argument("--capacity", type=int, default=150, help="steps that the memory keeps (default: 150)")
    parser.add_argument("--hfov_deg", type=float, default=ViewRecallConfig.hfov_deg, help="field of view, degrees")
    parser.add_argument("--world", default="procedural", help="world of the homes (default: procedural)")
    options = parser.parse_args()
    config = ViewRecallConfig(hfov_deg=options.hfov_deg, world=options.world)
    for name, mse in observer_scores(config, options.positions, options.capacity).items():
        print(f"{name}: {mse:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
