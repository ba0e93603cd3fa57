"""A home prepared for exploration: its map, its coverage cells and the classes in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit

from memenvs.exploration.nyu40 import LABELS, NYU40, NYU40_INDEX
from memenvs.exploration.planner import cell_costs
from memenvs.houses.house import House
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.houses.rendering.interface import HomeScene
from memenvs.houses.rendering.scene import Scene
from memenvs.houses.worlds import Home, HouseWorld

#: Side of a coverage cell, m. Coverage cells are coarser than the cells of the navigation map.
COVERAGE_CELL_SIZE = 0.5
#: Coverage cells along each axis of the grid over a home; longer homes have more.
GRID_SIZE = 64
#: The oracle enters a cell by at least this distance, m.
_ENTRY_MARGIN = 0.05


@dataclass(frozen=True, eq=False)
class TaskHome:
    """A home prepared for exploration.

    Attributes:
        number: Its number in its world.
        house: Its geometry.
        navmap: Map for navigation.
        scene: The home prepared for rendering, with labels of NYU40.
        corner: float64, (2,); (x, y) of the corner of cell [0, 0], m.
        counted_cells: bool, (S, S), S >= 64; True for coverage cells that count: those whose centre can be reached. Row
            0 has the smallest y.
        has_label: bool, (41,); True for labels of NYU40 that the home contains.
        has_shapes: Whether our own renderer can draw the home; see `Home.has_shapes`.
    """

    number: int
    house: House
    navmap: NavigationMap
    scene: HomeScene
    corner: np.ndarray
    counted_cells: np.ndarray
    has_label: np.ndarray
    has_shapes: bool

    @staticmethod
    def of(number: int, home: Home) -> TaskHome:
        """Prepare a home.

        Args:
            number: Its number in its world.
            home: The home.

        Raises:
            ValueError: It cannot be drawn.

        Source:
            SMT: cells of 0.5 m on the floor plan, of which the unoccupied ones count.
        """
        low, high = home.house.bounds
        size = max(GRID_SIZE, math.ceil((high - low).max() / COVERAGE_CELL_SIZE - 1e-9))
        i, j = np.indices((size, size)).reshape(2, -1)
        centres = low + (np.stack([j, i], 1) + 0.5) * COVERAGE_CELL_SIZE
        has_label = np.zeros(len(NYU40), bool)
        has_label[LABELS[home.house.shapes.semantic]] = True
        return TaskHome(
            number=number,
            house=home.house,
            navmap=home.navmap,
            scene=home.make_scene(home.house).relabel(LABELS),
            corner=low,
            counted_cells=(home.navmap.islands(centres) == 0).reshape(size, size),
            has_label=has_label,
            has_shapes=home.has_shapes,
        )

    @cached_property
    def own_scene(self) -> HomeScene:
        """The home with labels of NYU40 for our own renderer; `scene` where that cannot draw it."""
        if isinstance(self.scene, Scene) or not self.has_shapes:
            return self.scene
        return Scene.from_house(self.house).relabel(LABELS)

    @cached_property
    def costs(self) -> np.ndarray:
        """int32, (H * W,); see `memenvs.exploration.planner.cell_costs`."""
        return cell_costs(self.navmap)

    @cached_property
    def coverage_cell(self) -> np.ndarray:
        """int32, (H * W,); flat index of the coverage cell that contains each cell of the map.

        -1 for cells of the map near the border of their coverage cell, or in one that does not count.
        """
        size = len(self.counted_cells)
        reachable = np.flatnonzero(self.navmap.island.ravel() == 0)
        in_cells = (self.navmap.points(reachable) - self.corner) / COVERAGE_CELL_SIZE
        column, row = np.floor(in_cells).astype(np.int64).T
        is_within = (np.abs(in_cells % 1.0 - 0.5) < 0.5 - _ENTRY_MARGIN / COVERAGE_CELL_SIZE).all(1)
        index = np.full(self.navmap.free.size, -1, np.int32)
        index[reachable] = np.where(is_within & self.counted_cells[row, column], row * size + column, -1)
        return index

    def unvisited(self, visited: np.ndarray) -> np.ndarray:
        """Find the cells of the map that lie in coverage cells not visited so far.

        Args:
            visited: bool, (S, S) or larger; coverage cells visited so far.

        Returns:
            bool, (H * W,); True for these cells of the map.
        """
        size = len(self.counted_cells)
        return _unvisited(self.coverage_cell, visited[:size, :size].ravel())

    def entered_cells(self, path: np.ndarray) -> np.ndarray:
        """Find the coverage cells on a path, of those that count.

        Args:
            path: float, (T, 2) or more columns; x and y, m.

        Returns:
            float64, (K, 3); x and y of the centre, and the side; m.
        """
        columns, rows = np.floor((path[:, :2] - self.corner) / COVERAGE_CELL_SIZE).astype(np.int64).T
        entered = np.zeros_like(self.counted_cells)
        entered[rows, columns] = True
        i, j = np.nonzero(entered & self.counted_cells)
        centres = self.corner + (np.stack([j, i], 1) + 0.5) * COVERAGE_CELL_SIZE
        return np.column_stack([centres, np.full(len(centres), COVERAGE_CELL_SIZE)])


@dataclass(frozen=True)
class ExplorationCheck:
    """Check of a home: it can be drawn, and has floor for the robot and the classes it needs.

    Homes of our own worlds have classes. Those of other data sets may have none.

    Attributes:
        modality: The observation that shows classes; None if none does.
        targets: Classes of NYU40 of which the home must have one; empty if the task needs none.
    """

    modality: str | None = None
    targets: tuple[str, ...] = ()

    def __call__(self, world: HouseWorld, index: int) -> None:
        """Check home `index` of a world.

        Raises:
            ValueError: It lacks something.
        """
        home = TaskHome.of(index, world.home(index))
        if home.has_shapes:
            return
        if self.targets and not home.has_label[[NYU40_INDEX[name] for name in self.targets]].any():
            raise ValueError(f"home {home.house.name!r} has no object category of the task: {', '.join(self.targets)}")
        if self.modality is not None and not home.has_label.any():
            raise ValueError(
                f"home {home.house.name!r} has no object classes, which modality {self.modality!r} shows; name the "
                "other ones: modalities=[...]"
            )


@njit(nogil=True, cache=True)
def _unvisited(coverage_cell: np.ndarray, visited: np.ndarray) -> np.ndarray:
    out = np.zeros(len(coverage_cell), np.bool_)
    for cell in range(len(coverage_cell)):
        out[cell] = coverage_cell[cell] >= 0 and not visited[coverage_cell[cell]]
    return out


@njit(nogil=True, cache=True)
def enter_cells(
    positions: np.ndarray,
    corners: np.ndarray,
    counted_cells: np.ndarray,
    env_mask: np.ndarray,
    visited: np.ndarray,
    is_new: np.ndarray,
) -> None:
    """Mark the coverage cells that contain robots as visited.

    Args:
        positions: float64, (N, 2); m.
        corners: float64, (N, 2); corner of each robot's cell [0, 0], m.
        counted_cells: bool, (N, S, S); True for cells that count.
        env_mask: bool, (N,); robots to consider.
        visited: bool, (N, S, S); changed in place.
        is_new: bool, (N,); written: True where the cell counts and was not visited before.
    """
    for i in range(len(positions)):
        is_new[i] = False
        if env_mask[i]:
            column = math.floor((positions[i, 0] - corners[i, 0]) / COVERAGE_CELL_SIZE)
            row = math.floor((positions[i, 1] - corners[i, 1]) / COVERAGE_CELL_SIZE)
            is_new[i] = counted_cells[i, row, column] and not visited[i, row, column]
            visited[i, row, column] = True
