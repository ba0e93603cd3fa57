"""An explorer of the Darkroom with a perfect memory of what it has observed."""

from __future__ import annotations

import numpy as np

from memenvs.darkroom.env import Darkroom, step_towards
from memenvs.rules import Rule
from memenvs.task import PHASE, BatchTask, Observation


class DarkroomExplorer(Rule):
    """Search cell after cell until there is reward, then go back to that cell.

    In every later episode it goes straight there. Where the goal is gone, as it may have moved between two episodes, it
    searches on from there, first the cells in which it has not been in this episode.

    It searches the nearest cell in which no step has ended, of equally near ones that which `Sweep` visits first from
    here on. So with a memory of no use it does as `Sweep`. The first cell of an episode is searched by a step that
    stays there.
    """

    way = "ideal"
    window = None

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, Darkroom)
        size, count = task.config.size, task.num_envs
        self.bits = float(np.log2(size**2))
        columns, rows = np.indices((size, size))
        self._rank = np.where(columns % 2 == 0, rows, size - 1 - rows) + size * columns  # in the order of `Sweep`
        self._columns, self._rows = columns, rows
        self._is_searched = np.zeros((count, size, size), bool)
        self._goal = np.full((count, 2), -1, np.int64)  # -1 before a reward was observed
        self._age = np.zeros(count, np.int64)  # steps since the newest reward
        self._begins = np.zeros(count, bool)  # True where no step of the episode has ended yet
        self._needed: np.ndarray | None = None

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget the goal and the cells that were searched; see `Rule`."""
        self._is_searched[env_mask] = False
        self._goal[env_mask] = -1
        self._begins[env_mask] = False

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Take note that no step has ended in the first cell; see `Rule`."""
        self._begins[env_mask] = True

    def see(self, observation: Observation) -> None:
        """Take in whether the last step was rewarded, and where it ended; see `Rule`."""
        cells = observation["position"].astype(np.int64)
        is_blank = observation[PHASE] == 0 if PHASE in observation else np.zeros(len(cells), bool)
        rewarded = observation["previous_reward"][:, 0] > 0
        self._goal[rewarded] = cells[rewarded]
        self._is_searched[rewarded] = False  # what it searches after this counts if the goal has gone
        self._age = np.where(rewarded, 0, self._age + 1)
        self._begins |= is_blank  # the first visible observation of an episode follows
        ended = np.flatnonzero(~self._begins)
        self._is_searched[ended, cells[ended, 0], cells[ended, 1]] = True
        self._goal[~self._begins & ~rewarded & (cells == self._goal).all(1)] = -1
        nowhere = self._is_searched.all((1, 2))  # it has moved to where it was not before
        self._is_searched[nowhere] = False
        self._is_searched[nowhere, cells[nowhere, 0], cells[nowhere, 1]] = True
        self._begins &= is_blank

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        cells = observation["position"].astype(np.int64)
        knows = self._goal[:, 0] >= 0
        target = np.where(knows[:, None], self._goal, cells)
        searching = np.flatnonzero(~knows)
        if len(searching):
            target[searching] = self._next_cells(cells[searching], self._is_searched[searching])
        self._needed = np.where(knows, self._age, 0)
        return step_towards(cells, target)

    def _next_cells(self, cells: np.ndarray, is_searched: np.ndarray) -> np.ndarray:
        """The cell to search next, int64, (K, 2), from cells (K, 2)."""
        column, row = cells[:, 0, None, None], cells[:, 1, None, None]
        steps = np.maximum(np.abs(self._columns - column) + np.abs(self._rows - row), 1)
        count = len(self._rank) ** 2
        later = (self._rank - self._rank[cells[:, 0], cells[:, 1], None, None] - 1) % count  # in the order of `Sweep`
        order = np.where(is_searched, np.iinfo(np.int64).max, steps * count + later)
        return np.column_stack(np.divmod(order.reshape(len(cells), -1).argmin(1), len(self._rank)))

    def steps_back(self) -> np.ndarray | None:
        """Steps since the newest rewarded observation, 0 before the first one; see `Rule`."""
        return self._needed
