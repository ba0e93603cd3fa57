"""The choice of points that lie as far apart as possible, compiled for a CPU."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def select_farthest(
    points: np.ndarray, nearest: np.ndarray, chosen: np.ndarray
) -> None:  # pragma: no cover  (compiled)
    """Chooses all but the first, by the distances from those that are chosen; `memenvs.agents.memory.smt.farthest_points` makes the rest.

    Args:
        points: float32, (G, D, L).
        nearest: float32, (G, L); infinity, or minus infinity for points that are not there; is written to.
        chosen: int64, (G, C); the first of each row is known, the others are written.
    """
    length, none = points.shape[2], np.float32(-np.inf)
    squared = np.empty(length, np.float32)
    for g in range(len(chosen)):
        near = nearest[g]
        for c in range(1, chosen.shape[1]):
            last = chosen[g, c - 1]
            squared[:] = 0.0
            for d in range(points.shape[1]):
                row = points[g, d]
                here = row[last]
                for i in range(length):
                    squared[i] += (row[i] - here) * (row[i] - here)
            near[last] = -1.0  # taken again only where no other is left
            best, at = none, 0
            for i in range(length):
                least = min(near[i], squared[i])
                near[i] = least
                if least > best:
                    best, at = least, i
            chosen[g, c] = at
