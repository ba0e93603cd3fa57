"""Observers of FFHQ-world: the errors without memory, without the map, and with both.

An observer with memory and the map knows every pixel that a retained patch has shown. Where it knows none, and in
observers without memory, the best linear prediction from the patch at the start of the query stands in its place.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from memenvs.faces.episodes import MOVES, PATCH_PIXELS, PATCH_STRIDE, PICTURE_PIXELS, FaceEpisodes
from memenvs.faces.observer import LinearPrediction
from memenvs.faces.places import cell_positions
from memenvs.faces.world import FaceWorld, cut_patches
from memenvs.retention import retained


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
        differences = {
            "mean patch": linear[False].means[0].reshape(start.shape) - targets,
            "no memory": (blind - targets) * unknown,
            "no memory, map": (placed - targets) * unknown,
            **{name: (placed - targets) * _unknown_pixels(query, cell[kept[name][b]]) for name in kept},
            "fifo, no map": _stitch(start, patches[cell[kept["fifo"][b]]], episodes.query_action[b], blind) - targets,
        }
        for name, difference in differences.items():
            errors.setdefault(name, []).append(float((difference**2).mean()))
    return {name: float(np.mean(values)) for name, values in errors.items()}


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
