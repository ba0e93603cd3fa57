"""Walkers that go from cell to cell of a picture, a batch at once."""

from __future__ import annotations

import numpy as np

from memenvs.faces.episodes import GRID, MOVES

#: Rows and columns of the picture with a border of one cell, to which no walker may go.
_BORDERED = GRID + 2
#: Change of a position on the bordered picture by each move, int64, (4,).
_STEPS = MOVES @ (1, _BORDERED)
#: What one visit adds to the cost of a cell. Below it are 16 random bits, which decide between cells of the same cost,
#: and two bits for the number of the move.
_VISIT = 1 << 18
#: Cost of a cell that is not allowed, above that of any number of visits.
_FORBIDDEN = 1 << 48


class Walkers:
    """B walkers, each on a picture of its own.

    At every step a walker moves to one of the neighbours that it has visited least often.

    Args:
        start: int, (B,); first cell, which counts as visited once.
    """

    def __init__(self, start: np.ndarray) -> None:
        self._costs = self._allow(np.ones((len(start), GRID**2), bool))
        # Positions on all bordered pictures one after the other.
        self._corner = np.arange(len(start)) * _BORDERED**2 + _BORDERED + 1
        self._position = self._corner + start // GRID * _BORDERED + start % GRID
        self._costs[self._position] += _VISIT

    def move(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Go to neighbours with the fewest visits so far.

        Args:
            words: uint64, (B, n); a random number for each of n steps.

        Returns:
            Moves, int8, (B, n), and the cells after them, int16, (B, n).
        """
        return self._move(words, self._costs)

    def stay(self, words: np.ndarray, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Go to any neighbours within a region; later moves count these visits too.

        Args:
            words: uint64, (B, n); a random number for each of n steps.
            allowed: bool, (B, 100); cells of the region. Each of them has a neighbour in it.

        Returns:
            As `move`.
        """
        return self._move(words, self._allow(allowed))

    def _move(self, words: np.ndarray, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Go to the neighbours of the lowest cost, chosen at random among equal ones; see `_allow` for the costs."""
        batch, steps = words.shape
        moves, positions = np.zeros((steps, batch), np.int64), np.zeros((steps, batch), np.int64)
        number = np.arange(len(MOVES))[:, None]
        bits = words.T[:, None] >> (16 * number).astype(np.uint64) & np.uint64(0xFFFF)  # (n, 4, B)
        ties = (bits.astype(np.int64) << 2) + number
        position, visits, steps_of_moves = self._position, self._costs, _STEPS[:, None]
        for t in range(steps):
            moves[t] = move = (costs[position + steps_of_moves] + ties[t]).min(0) & 3
            positions[t] = position = position + _STEPS[move]
            visits[position] += _VISIT
        self._position = position
        row, column = np.divmod((positions - self._corner).T, _BORDERED)
        return moves.T.astype(np.int8), (row * GRID + column).astype(np.int16)

    @staticmethod
    def _allow(allowed: np.ndarray) -> np.ndarray:
        """Costs on the bordered pictures, int64, flat: 0 for the cells that are allowed, bool (B, 100)."""
        costs = np.full((len(allowed), _BORDERED, _BORDERED), _FORBIDDEN)
        costs[:, 1:-1, 1:-1][allowed.reshape(-1, GRID, GRID)] = 0
        return costs.reshape(-1)
