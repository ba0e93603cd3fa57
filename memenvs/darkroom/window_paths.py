"""Rules of the Darkroom that see a few steps, and let their path say where the goal is."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from memenvs.darkroom.env import MOVES, Darkroom
from memenvs.darkroom.scripted_sweep import Sweep
from memenvs.rules import Rule, RuleError
from memenvs.task import PHASE, BatchTask, Observation

Cell = tuple[int, int]
#: The newest cells of an episode, oldest first; `window` of them at most.
Path = tuple[Cell, ...]

_START: Cell = (0, 0)
_LARGEST = 16  # cells along a side: the paths of a larger room take long to plan


class PathCode(Rule):
    """Go to the goal along a path that differs from those to other goals.

    At the end of an episode the robot stands on the goal. So at the first `window - 1` steps of the next one the window
    still shows the goal. The path of these steps is another one for goals in other directions. From then on the
    newest `window` cells say how to go on (`plan_paths`), until there is reward. Without such an observation it does
    as `Sweep`.

    Everything follows from the last `window` observations: no other state is kept.

    Raises:
        RuleError: The room has more than 16 x 16 cells.
    """

    way = "window"
    window: int = 4

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, Darkroom)
        size, count = task.config.size, task.num_envs
        if size > _LARGEST:
            raise RuleError(f"size must be at most {_LARGEST} for this rule, got {size}")
        self._openings, self._table = plan_paths(size, self.window)
        self._sweep = Sweep(task)
        self._cells = np.zeros((count, self.window, 2), np.int64)  # oldest first
        self._rewarded = np.zeros((count, self.window), bool)
        self._begins = np.zeros((count, self.window), bool)  # True at the first observation of an episode
        self._is_blank = np.ones((count, self.window), bool)  # in a gap, or before the first observation
        self._will_begin = np.zeros(count, bool)

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget the window; see `Rule`."""
        self._is_blank[env_mask] = True
        self._rewarded[env_mask] = False

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Mark the next observation as the first one of an episode; see `Rule`."""
        self._will_begin |= env_mask

    def see(self, observation: Observation) -> None:
        """Take the observation into the window, and drop the oldest one; see `Rule`."""
        blank = observation[PHASE] == 0 if PHASE in observation else np.zeros(len(self._cells), bool)
        for kept, newest in (
            (self._cells, observation["position"]),
            (self._rewarded, observation["previous_reward"][:, 0] > 0),
            (self._begins, self._will_begin),
            (self._is_blank, blank),
        ):
            kept[:, :-1] = kept[:, 1:]
            kept[:, -1] = newest
        self._will_begin = np.zeros(len(self._cells), bool)

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        chosen = self._sweep.choose(observation)
        for i in np.flatnonzero(~self._rewarded[:, -1]).tolist():
            chosen[i] = self._next_move(i, int(chosen[i]))
        return chosen

    def _next_move(self, i: int, sweep: int) -> int:
        """Action of environment `i` where there is no reward; `sweep` is that of `Sweep`."""
        rewarded = np.flatnonzero(self._rewarded[i])
        begins = np.flatnonzero(self._begins[i])
        first = begins[-1] if len(begins) else 0
        visible = first + np.flatnonzero(~self._is_blank[i, first:])
        if len(rewarded) and len(begins) and rewarded[-1] < first:
            moves = self._openings[_cell(self._cells[i, rewarded[-1]])]
            if 0 < len(visible) <= len(moves):
                return moves[len(visible) - 1]
        return self._table.get(tuple(_cell(self._cells[i, k]) for k in visible), sweep)


class PathCode4(PathCode):
    """`PathCode` with the last 4 observations."""


class PathCode16(PathCode):
    """`PathCode` with the last 16 observations."""

    window = 16


def plan_paths(size: int, window: int) -> tuple[dict[Cell, list[int]], dict[Path, int]]:
    """Plan a path to each goal that can be followed by what the last cells say.

    The first `window - 1` moves are those of the goal. Each later move is a function of the newest `window` cells, the
    same one for all goals. Paths to far goals are planned first, each as short as those before it permit.

    Args:
        size: Cells along each side of the room.
        window: Number of cells on which a move may depend; >= 2.

    Returns:
        The first moves to each goal, `window - 1` of them or fewer where the path is shorter; and the later moves by
        the newest `window` cells, those of `Sweep` included.
    """
    table = _sweep_moves(size, window)
    openings: dict[Cell, list[int]] = {}
    goals = sorted(((x, y) for x in range(size) for y in range(size)), key=lambda cell: (-sum(cell), cell))
    for goal in goals:
        openings[goal] = []
        path: Path = (_START,)
        for move in _shortest_path(goal, size, window, table):
            if len(path) < window:
                openings[goal].append(move)
            else:
                table[path] = move
            path = (*path, _after(path[-1], move, size))[-window:]
    return openings, table


def _sweep_moves(size: int, window: int) -> dict[Path, int]:
    """Moves of `Sweep` by the newest `window` cells."""
    moves: dict[Path, int] = {}
    order = [(x, y if x % 2 == 0 else size - 1 - y) for x in range(size) for y in range(size)]
    for k in range(window, size**2):
        step = np.subtract(order[k], order[k - 1])
        moves[tuple(order[k - window : k])] = int(np.flatnonzero((step == MOVES).all(1))[0])
    return moves


def _shortest_path(goal: Cell, size: int, window: int, table: dict[Path, int]) -> list[int]:
    """Find the fewest moves to a goal, by a search with A*, of which `table` prescribes some."""
    front: list[tuple[int, int, int, Path, list[int]]] = [(0, 0, 0, (_START,), [])]
    visited: set[Path] = set()
    while front:
        *_, path, moves = heappop(front)
        if moves and path[-1] == goal:
            return moves
        if path in visited:
            continue
        visited.add(path)
        for move in (table[path],) if path in table else range(len(MOVES)):
            after = _after(path[-1], move, size)
            left = abs(goal[0] - after[0]) + abs(goal[1] - after[1])
            count = len(moves) + 1
            heappush(front, (count + left, left, len(visited), (*path, after)[-window:], [*moves, move]))
    raise AssertionError("the first moves are free, so that some path leads to each goal")


def _after(cell: Cell, move: int, size: int) -> Cell:
    """The cell after a move."""
    x, y = np.clip(np.add(cell, MOVES[move]), 0, size - 1).tolist()
    return x, y


def _cell(cell: np.ndarray) -> Cell:
    """A cell as two integers."""
    return int(cell[0]), int(cell[1])
