"""Episodes of FFHQ-world as arrays of integers: pictures, cells, moves and the query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memenvs.query_task import Episodes

#: Side of a picture, pixels.
PICTURE_PIXELS = 88
#: Side of a patch, pixels.
PATCH_PIXELS = 16
#: Distance between neighbouring patches, pixels: neighbours share half of their pixels.
PATCH_STRIDE = 8
#: Cells along each side of a picture, one for each position of a patch. Cells are numbered row by row.
GRID = (PICTURE_PIXELS - PATCH_PIXELS) // PATCH_STRIDE + 1
NUM_CELLS = GRID**2
#: Column and row steps of the moves: right, left, up, down.
MOVES = np.array([[1, 0], [-1, 0], [0, -1], [0, 1]])
#: Value of `FaceEpisodes.action` at the first step, to which no move leads.
NO_ACTION = len(MOVES)


@dataclass(frozen=True, eq=False)
class FaceEpisodes(Episodes):
    """B episodes of T observed steps and a query of Q moves.

    The patches themselves are `FaceWorld.patches(episodes.picture, episodes.cell)` and
    `FaceWorld.patches(episodes.picture, episodes.query_cell)`.

    Attributes:
        picture: int32, (B,); number of the picture in its source.
        cell: int16, (B, T); cell of each observed step, row * 10 + column.
        place: int16, (B, T); place of each observed step: the cell, or the cluster that it belongs to.
        action: int8, (B, T); the move that led to each step: 0 right, 1 left, 2 up, 3 down; `NO_ACTION` at the first.
        query_cell: int16, (B, Q + 1); the start of the query, whose patch is shown, then the cell after each move,
            whose patch has to be produced.
        query_action: int8, (B, Q); the moves of the query, all known at its start.
        key: int64, (B,); the number that determines the episode.
    """

    picture: np.ndarray
    cell: np.ndarray
    place: np.ndarray
    action: np.ndarray
    query_cell: np.ndarray
    query_action: np.ndarray
    key: np.ndarray

    def __len__(self) -> int:
        """Number of episodes, B."""
        return len(self.key)
