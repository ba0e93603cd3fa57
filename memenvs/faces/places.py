"""Places of FFHQ-world: the cells of a picture, or clusters of them."""

from __future__ import annotations

from functools import cache

import numpy as np

from memenvs.checks import is_int
from memenvs.clustering import fit_places, nearest_centre
from memenvs.faces.episodes import GRID, NUM_CELLS

#: Number of places, or "cells" for one place a cell.
Places = int | str


def check_places(places: Places) -> None:
    """Raise a ValueError unless `places` is "cells" or a number of clusters, 2 to 100."""
    if places != "cells" and not (is_int(places) and 2 <= places <= NUM_CELLS):  # type: ignore[operator]
        raise ValueError(f"places must be 'cells' or a number of clusters, 2 to {NUM_CELLS}, got {places!r}")


@cache
def place_table(places: Places) -> np.ndarray:
    """Place of each cell.

    Args:
        places: "cells", or the number of clusters into which k-means divides the cells.

    Returns:
        int16, (100,), read-only. Clusters are numbered by the column of their centres, then by the row.

    Source:
        Spatially-Aware Transformer, 2024: 8, 16 or 32 clusters, of coordinates from 0 to 1.
    """
    check_places(places)
    if places == "cells":
        table = np.arange(NUM_CELLS, dtype=np.int16)
    else:
        positions = cell_positions(np.arange(NUM_CELLS)) / (GRID - 1)
        table = nearest_centre(positions, fit_places(positions, int(places))).astype(np.int16)
    table.flags.writeable = False
    return table


def num_places(places: Places) -> int:
    """Return the number of places."""
    return NUM_CELLS if places == "cells" else int(places)


def cell_positions(cells: np.ndarray) -> np.ndarray:
    """Column and row, counted from above, of cells (...); int64, (..., 2)."""
    return np.stack([cells % GRID, cells // GRID], -1).astype(np.int64)
