"""Rooms on a grid with balls, and N agents that move and see in them."""

from __future__ import annotations

import numpy as np

LEFT, RIGHT, FORWARD = range(3)
#: Cells along the sides of the view, of the room and of the field, the walls included.
VIEW, ROOM, FIELD = 7, 8, 30
#: Kinds of cells.
EMPTY, WALL, RED, GREEN, BLUE, YELLOW = range(6)
CELL_NAMES = ("empty", "wall", "red ball", "green ball", "blue ball", "yellow ball")
#: uint8, (6, 3); object, colour and state of each kind in Minigrid's code.
SYMBOLS = np.array([(1, 0, 0), (2, 5, 0), (6, 0, 0), (6, 1, 0), (6, 2, 0), (6, 4, 0)], np.uint8)
#: The largest number of Minigrid's code, that of an agent.
LARGEST_SYMBOL = 10
#: Change of column and row by heading: right, down, left, up. Rows count from above.
MOVES = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])

# A grid is kept with a margin of walls, so that no view leaves it.
_MARGIN = VIEW - 1
_STRIDE = FIELD + 2 * _MARGIN
_STEPS = MOVES @ (1, _STRIDE)  # (4,); the move by heading, as a difference of flat indices


def _view_offsets() -> np.ndarray:
    """int64, (4, 49); flat indices of the cells in view, relative to the agent, by heading.

    Cell (u, v) of the view is u - 3 cells to the right of the agent and 6 - v cells ahead.
    """
    u, v = np.indices((VIEW, VIEW)).reshape(2, -1)
    right = np.roll(_STEPS, -1)
    return right[:, None] * (u - VIEW // 2) + _STEPS[:, None] * (VIEW - 1 - v)


_VIEW_OFFSETS = _view_offsets()


def _flat(columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Flat indices of cells."""
    return (rows + _MARGIN) * _STRIDE + columns + _MARGIN


def _walls(size: int) -> np.ndarray:
    """uint8, (cells,); an empty room of this size, with walls all around."""
    cells = np.full((_STRIDE, _STRIDE), WALL, np.uint8)
    inside = slice(_MARGIN + 1, _MARGIN + size - 1)
    cells[inside, inside] = EMPTY
    return cells.ravel()


class GridRooms:
    """N agents, each alone in a room.

    Args:
        num_agents: N.
    """

    def __init__(self, num_agents: int) -> None:
        self._empty = {size: _walls(size) for size in (ROOM, FIELD)}
        self._cells = np.tile(self._empty[ROOM], (num_agents, 1))  # (N, cells)
        self._first = np.arange(num_agents) * self._cells.shape[1]  # index of each agent's first cell in all cells
        self._at = np.full(num_agents, _flat(np.array(1), np.array(1)))  # flat index of the agent's cell
        self._heading = np.zeros(num_agents, np.int64)
        self._solid = np.zeros(num_agents, bool)

    def enter(
        self, agents: np.ndarray, size: int, balls: np.ndarray, kinds: np.ndarray, pose: np.ndarray, *, solid: bool
    ) -> None:
        """Put agents into rooms of their own.

        Args:
            agents: int64, (K,); their indices.
            size: Cells along the sides of the room, `ROOM` or `FIELD`.
            balls: int64, (K, B, 2); column and row of each ball.
            kinds: int64, (K, B); kind of each ball's cell.
            pose: int64, (K, 3); column, row and heading of each agent.
            solid: True if agents cannot step onto balls.
        """
        self._cells[agents] = self._empty[size]
        self._cells[agents[:, None], _flat(balls[..., 0], balls[..., 1])] = kinds
        self._at[agents] = _flat(pose[:, 0], pose[:, 1])
        self._heading[agents] = pose[:, 2]
        self._solid[agents] = solid

    @property
    def pose(self) -> np.ndarray:
        """int64, (N, 3); column, row and heading of each agent."""
        row, column = np.divmod(self._at, _STRIDE)
        return np.column_stack([column - _MARGIN, row - _MARGIN, self._heading])

    def move(self, actions: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Turn agents, or move them forward where that is free, onto balls too.

        Args:
            actions: int64, (N,).
            active: bool, (N,); the other agents stay as they are.

        Returns:
            uint8, (N,); kind of the ball that each agent took, `EMPTY` for none.
        """
        forward = active & (actions == FORWARD)
        ahead = self._at + _STEPS[self._heading]
        cells = self._cells.reshape(-1)  # a view
        kind = cells[self._first + ahead]
        moves = forward & (kind != WALL) & ~(self._solid & (kind > WALL))
        self._at = np.where(moves, ahead, self._at)
        cells[(self._first + ahead)[moves]] = EMPTY
        turn = (actions == RIGHT) * 1 - (actions == LEFT) * 1
        self._heading = (self._heading + turn * active) % len(MOVES)
        return np.where(moves, kind, np.uint8(EMPTY))

    def view(self, env_mask: np.ndarray) -> np.ndarray:
        """Return what agents see ahead; walls hide nothing.

        Args:
            env_mask: bool, (N,); agents whose views are returned.

        Returns:
            uint8, (K, 7, 7); kind of each cell. The agent is in [3, 6] and faces [3, 0].
        """
        corner = (self._first + self._at)[env_mask]
        kinds = self._cells.reshape(-1)[corner[:, None] + _VIEW_OFFSETS[self._heading[env_mask]]]
        return kinds.reshape(-1, VIEW, VIEW)

    def close(self) -> None:
        """Do nothing; there is nothing to free."""
