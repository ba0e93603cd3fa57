"""Navigation map of a home in habitat-sim: distances and moves by its `PathFinder`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from memenvs.houses.habitat.simulation import simulation
from memenvs.houses.house import House
from memenvs.houses.navigation.geodesic import interpolate_field
from memenvs.houses.navigation.navmap import MARGIN, NavigationMap
from memenvs.houses.navigation.sliding import TURN_COST

#: Points along a side of a cell that are tested for being on the mesh.
_POINTS = 3
#: Islands belong to the floor if they are at most this much above or below it, m; others are tops of furniture.
_FLOOR_RANGE = 0.3
#: A point belongs to the mesh if the mesh is this near, m; it computes with float32.
_TOUCH = 2e-3
#: A move is blocked if it ends this much early, m.
_SHORT = 1e-3


def island_triangles(pathfinder: Any, number: int) -> np.ndarray:
    """Triangles of an island of a navigation mesh, float64 (T, 3, 3), in habitat-sim's frame, m."""
    vertices = np.array(pathfinder.build_navmesh_vertices(number), np.float64).reshape(-1, 3)
    return vertices[np.array(pathfinder.build_navmesh_vertex_indices(number), np.int64).reshape(-1, 3)]


class NavmeshMap(NavigationMap):
    """Navigation map from a mesh of habitat-sim.

    `PathFinder` answers where a robot can be, where moves end and how far goals are. The grid of cells serves what
    needs one: rooms, viewpoints, coverage, and plans of oracles, whose distance fields are computed on it. A cell is
    free if one of 9 points in it is on the mesh. It belongs to an island if its middle is.

    Args:
        house: The home.
        navmesh: Content of a .navmesh file.
        floor: Height of the floor in habitat-sim's frame, m.
        main: The package's number of the island that robots are on; None for the largest one inside the rooms. Where
            it is given, cells outside all rooms belong to the nearest one.

    Raises:
        ValueError: No part of the mesh is on the floor and inside the rooms, or the home is too large.
    """

    def __init__(self, house: House, navmesh: bytes, floor: float = 0.0, main: int | None = None) -> None:
        self._navmesh = navmesh
        self._pathfinder: Any = None
        self._lay_grid(house)
        pathfinder = self.pathfinder
        on_floor = []
        for number in range(pathfinder.num_islands):
            triangles = island_triangles(pathfinder, number)
            if len(triangles) and abs(triangles[..., 1].mean() - floor) < _FLOOR_RANGE:
                on_floor.append((-float(pathfinder.island_area(number)), number, triangles))
        on_floor.sort(key=lambda island: (island[1] != main, *island[:2]))
        rows, columns = self.room.shape
        points = np.full((_POINTS * rows, _POINTS * columns), -1, np.int32)
        kept: list[tuple[int, float, float]] = []  # number, area, height
        for area, number, triangles in on_floor:
            is_on = self._rasterise(triangles, points.shape)
            if is_on.any():
                points[is_on] = len(kept)
                kept.append((number, -area, float(triangles[..., 1].mean())))
        inside = np.zeros((rows, columns), bool)
        inside[MARGIN:-MARGIN, MARGIN:-MARGIN] = True
        self.island = np.where(inside, points[_POINTS // 2 :: _POINTS, _POINTS // 2 :: _POINTS], -1).astype(np.int32)
        blocks = points.reshape(rows, _POINTS, columns, _POINTS)
        self.free = inside & (blocks.max((1, 3)) >= 0)
        if main is not None:
            _fill(self.room, self.free)
        self._largest = np.flatnonzero(self.island == 0)
        if len(self._largest) == 0:
            raise ValueError(f"house {house.name!r} has no floor in habitat-sim where the robot can be")
        self.island_areas = np.array([area for _, area, _ in kept])
        self._numbers = {number: k for k, (number, _, _) in enumerate(kept)}
        self._main, _, self._height = kept[0]

    @property
    def pathfinder(self) -> Any:
        """The `PathFinder`, whose mesh is loaded."""
        if self._pathfinder is None:
            self._pathfinder = simulation().load_navmesh(self._navmesh)
        return self._pathfinder

    def islands(self, points: np.ndarray) -> np.ndarray:
        """Find the island of each point (Q, 2), m; int32, (Q,), -1 where not navigable."""
        islands = np.full(len(points), -1, np.int32)
        for q, point in enumerate(np.asarray(points, np.float64)):
            snapped = self._from_mesh(self.pathfinder.snap_point(self._to_mesh(point)))
            if np.hypot(*(snapped - point)) < _TOUCH:  # not where it is NaN
                islands[q] = self._numbers.get(int(self.pathfinder.get_island(self._to_mesh(snapped))), -1)
        return islands

    def snap(self, points: np.ndarray) -> np.ndarray:
        """Move points (Q, 2) to the nearest ones on the largest island; float64, (Q, 2), m."""
        out = np.array(points, np.float64)
        centres = self.points(self._largest)
        for q, point in enumerate(out):
            nearest = point
            if np.hypot(*(centres - point).T).min() > 1.0:  # the package searches 2 m around, at any height
                nearest = centres[np.argmin(((centres - point) ** 2).sum(1))]
            out[q] = self._from_mesh(self.pathfinder.snap_point(self._to_mesh(nearest), self._main))
        return out

    def random_point(self, rng: np.random.Generator) -> tuple[float, float]:
        """Draw a point uniformly from the largest island; (x, y), m."""
        x, y = self.snap(np.array([super().random_point(rng)]))[0].tolist()
        return x, y

    def distances(self, field: np.ndarray, points: np.ndarray, goals: np.ndarray | None = None) -> np.ndarray:
        """Measure the walking distance from points to the nearest goal of a field by `PathFinder`.

        Args:
            field: float32, (H * W,); as `distance_field` returns it.
            points: float, (Q, 2); m.
            goals: float64, (G, 2); its `goal_points`. None finds them.

        Returns:
            float64, (Q,), m; inf where no path leads.
        """
        path = self.path_to(self.goal_points(field) if goals is None else goals)
        return np.array([self.length(path, point) for point in np.asarray(points, np.float64)])

    def path_to(self, goals: np.ndarray) -> Any:
        """Prepare `length` for goals, float64 (G, 2), m: a `MultiGoalShortestPath`."""
        path = simulation().package.MultiGoalShortestPath()
        path.requested_ends = np.array([self._to_mesh(goal) for goal in goals], np.float32).reshape(-1, 3)
        return path

    def length(self, path: Any, point: np.ndarray) -> float:
        """Measure the walking distance from a point (2,) to the nearest goal, m; or inf."""
        path.requested_start = np.array(self.pathfinder.snap_point(self._to_mesh(point), self._main), np.float32)
        return float(path.geodesic_distance) if self.pathfinder.find_path(path) else math.inf

    def step(self, point: np.ndarray, end: np.ndarray, *, slides: bool) -> tuple[np.ndarray, bool]:
        """Move a robot from a point (2,) towards another one, m.

        Returns:
            Where it gets, float64 (2,), and True if that is not the end.
        """
        move = self.pathfinder.try_step if slides else self.pathfinder.try_step_no_sliding
        reached = self._from_mesh(move(self._to_mesh(point), self._to_mesh(end)))
        return reached, bool(np.hypot(*(reached - end)) > _SHORT)

    def move(self, positions: np.ndarray, headings: np.ndarray, distance: float) -> tuple[np.ndarray, np.ndarray]:
        """Move robots straight on; they slide along obstacles.

        Args:
            positions: float, (Q, 2); m.
            headings: float, (Q,); rad.
            distance: Length of the move, m; >= 0.

        Returns:
            float64, (Q, 2); new positions, m.
            bool, (Q,); True where the move was blocked.
        """
        moved, collided = np.array(positions, np.float64), np.zeros(len(positions), bool)
        for q, heading in enumerate(np.asarray(headings, np.float64)):
            end = moved[q] + distance * np.array([math.cos(heading), math.sin(heading)])
            moved[q], collided[q] = self.step(moved[q], end, slides=True)
        return moved, collided

    def steer(
        self, field: np.ndarray, position: np.ndarray, heading: float, turn: float, distance: float
    ) -> tuple[int, float]:
        """Choose the turns after which a move leads nearest to a goal; see `NavigationMap`."""
        count = math.floor(math.pi / turn + 1e-6)
        turns = np.array([(k + 1) // 2 if k % 2 else -(k // 2) for k in range(2 * count + 1)])  # 0, 1, -1, 2, ...
        ends, _ = self.move(np.tile(position, (len(turns), 1)), heading + turns * turn, distance)
        gains = self._interpolate(field, np.asarray(position)[None]) - self._interpolate(field, ends)
        gains = np.where(np.isfinite(gains), gains, -np.inf)
        best = int(np.argmax(gains - TURN_COST * np.abs(turns)))
        return int(turns[best]), float(gains[best])

    def _interpolate(self, field: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Distances of the grid at points (Q, 2)."""
        in_cells = (points - self.origin) / self.cell_size
        return np.array([interpolate_field(field, self.shape[1], x, y) for x, y in in_cells.tolist()])

    def _rasterise(self, triangles: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Find the test points of all cells that lie in triangles (T, 3, 3); bool, of that shape."""
        mask = np.zeros(shape, bool)
        spacing = self.cell_size / _POINTS
        corners = (np.stack([triangles[..., 0], -triangles[..., 2]], -1) - self.origin) / spacing - 0.5
        for corner in corners:  # in test points
            low = np.maximum(np.ceil(corner.min(0) - 1e-6).astype(int), 0)
            high = np.minimum(np.floor(corner.max(0) + 1e-6).astype(int) + 1, shape[::-1])
            if (high <= low).any():
                continue
            x, y = np.meshgrid(np.arange(low[0], high[0]), np.arange(low[1], high[1]))
            sides = []
            for k in range(3):
                (ax, ay), (bx, by) = corner[k], corner[(k + 1) % 3]
                sides.append((bx - ax) * (y - ay) - (by - ay) * (x - ax))
            inside = np.all([side >= -1e-6 for side in sides], 0) | np.all([side <= 1e-6 for side in sides], 0)
            mask[low[1] : high[1], low[0] : high[0]] |= inside
        return mask

    def _to_mesh(self, point: np.ndarray) -> np.ndarray:
        """Point (2,) of the floor plan in habitat-sim's frame, float32 (3,)."""
        return np.array([point[0], self._height, -point[1]], np.float32)

    @staticmethod
    def _from_mesh(point: Any) -> np.ndarray:
        """Point of habitat-sim on the floor plan, float64 (2,); NaN for none."""
        return np.array([point[0], -point[2]], np.float64)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pathfinder": None}


def _fill(room: np.ndarray, free: np.ndarray) -> None:
    """Give free cells without a room that of the nearest cell which has one, in place; int16 and bool, (H, W)."""
    while (free & (room < 0)).any():
        before = room.copy()
        for axis, step in ((0, 1), (0, -1), (1, 1), (1, -1)):
            beside = np.roll(before, step, axis)  # the rim is never free, so that nothing comes from the other side
            np.copyto(room, beside, where=(room < 0) & (beside >= 0))
        if (room == before).all():
            break
