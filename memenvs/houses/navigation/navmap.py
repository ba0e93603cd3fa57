"""Where a robot can go in a home, how far it is to walk, and what happens when it bumps into things."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from memenvs.houses.house import House, points_in_polygon
from memenvs.houses.navigation.geodesic import fast_march, interpolate_field
from memenvs.houses.navigation.occupancy import block_footprints, block_outside, label_islands

#: Robot of ExtObjNav, m: its radius, its height, and what it rolls over.
ROBOT_RADIUS, ROBOT_HEIGHT, CLIMB = 0.30, 1.5, 0.2
#: Cells around the home that are always blocked, so that stencils need no bounds checks.
MARGIN = 3
#: Half depth of the floor in a doorway, m: bridges a gap between the polygons of two rooms.
DOORWAY_REACH = 0.3
#: Share of a cell that the robot's radius is eased by: without it the grid closes passages that the robot fits through.
EASING = 0.25
#: A move is made in parts of at most this share of a cell, so that none jumps over a blocked one.
SUBSTEP = 0.25
#: What a turn is worth to `steer`, m.
TURN_COST = 0.005


class NavigationMap:
    """Navigation grid of a home for a round robot.

    Every position inside a navigable cell is navigable. A cell is navigable if a disc around its middle, of `radius` less a quarter of
    a cell, overlaps neither the footprint of a shape between `climb` and `height` above the floor nor the outside. So a robot
    anywhere in the cell intrudes by less than 0.96 cells: 0.048 m, and the camera 0.25 m ahead of its axis stays out of walls.
    Cells that touch at corners only are not connected.

    Args:
        house: The home. Shapes added later are not seen.
        radius: Radius of the robot, m; > 0.
        height: Height of the robot, m; what is entirely above does not block.
        cell: Side of a cell, m; > 0.
        climb: What is entirely lower than this does not block, m.

    Attributes:
        origin: float64, (2,); (x, y) of the corner of cell [0, 0], m.
        cell: Side of a cell, m.
        free: bool, (H, W); navigable cells; row 0 has the smallest y.
        room: int16, (H, W); index of the room; a doorway belongs to the first of its rooms; -1 outside.
        island: int32, (H, W); number of the connected part, 0 for the largest, -1 where not navigable.
        island_areas: float64, (I,); square metres, falling.

    Raises:
        ValueError: No cell is navigable, or a size is out of range.

    Source:
        Robot and limits: Habitat's Fetch (radius 0.3, height 1.5, climb 0.2); cell 0.05 m as in ReLIC's setting.
    """

    def __init__(
        self,
        house: House,
        *,
        radius: float = ROBOT_RADIUS,
        height: float = ROBOT_HEIGHT,
        cell: float = 0.05,
        climb: float = CLIMB,
    ) -> None:
        for name, value in (("radius", radius), ("cell", cell)):
            if not value > 0:
                raise ValueError(f"{name} must be > 0 m, got {value}")
        if not 0 <= climb < height:
            raise ValueError(f"climb must be in 0 ... height m, got climb {climb} and height {height}")
        self.cell = cell
        low, high = house.bounds
        self.origin = (np.floor(low / cell) - MARGIN) * cell
        columns, rows = (np.ceil((high - self.origin) / cell).astype(int) + MARGIN).tolist()
        blocked = np.zeros((rows, columns), bool)
        self.room = self._rooms(house, rows, columns)
        reach = radius - EASING * cell
        block_outside(blocked, self.room >= 0, cell, reach)
        shapes = house.shapes
        bottom, top = shapes.centre[:, 2] - shapes.half[:, 2], shapes.centre[:, 2] + shapes.half[:, 2]
        solid = shapes.take((top > climb) & (bottom < height))
        block_footprints(blocked, self.origin, cell, reach, solid.kind, solid.centre, solid.half, solid.yaw)
        for rim in (blocked[:MARGIN], blocked[-MARGIN:], blocked[:, :MARGIN], blocked[:, -MARGIN:]):
            rim[:] = True
        self.free = ~blocked
        self.island, counts = label_islands(self.free)
        if len(counts) == 0:
            raise ValueError(f"house {house.name!r} has no navigable cell for a robot of radius {radius} m")
        self.island_areas = counts * cell * cell
        self._largest = np.flatnonzero(self.island == 0)

    @property
    def shape(self) -> tuple[int, int]:
        """(H, W) of the grid."""
        return self.free.shape

    @property
    def area(self) -> float:
        """Navigable area of the largest island, square metres."""
        return float(self.island_areas[0])

    def cells(self, points: np.ndarray) -> np.ndarray:
        """Flat index of the cell of each point, int64, (Q,); -1 off the grid. `points` is float, (Q, 2), m."""
        rows, columns = self.shape
        j, i = np.floor((np.asarray(points, np.float64) - self.origin) / self.cell).astype(np.int64).T
        on_grid = (i >= 0) & (i < rows) & (j >= 0) & (j < columns)
        return np.where(on_grid, i * columns + j, -1)

    def points(self, cells: np.ndarray) -> np.ndarray:
        """Middles of cells, float64, (Q, 2), m. `cells` is int, (Q,): flat indices."""
        i, j = np.divmod(cells, self.shape[1])
        return self.origin + (np.stack([j, i], axis=-1) + 0.5) * self.cell

    def islands(self, points: np.ndarray) -> np.ndarray:
        """Number of the island of each point (Q, 2), int32, (Q,); -1 where not navigable."""
        at = self.cells(points)
        return np.where(at >= 0, self.island.ravel()[at], -1)

    def is_navigable(self, points: np.ndarray) -> np.ndarray:
        """Which points (Q, 2) are navigable, on any island. Returns bool, (Q,)."""
        return self.islands(points) >= 0

    def snap(self, points: np.ndarray) -> np.ndarray:
        """Each point that is on the largest island itself, else the middle of the nearest cell there. Returns float64, (Q, 2), m."""
        out = np.array(points, np.float64)
        middles = self.points(self._largest)
        for q in np.flatnonzero(self.islands(out) != 0):
            out[q] = middles[np.argmin(((middles - out[q]) ** 2).sum(1))]
        return out

    def random_point(self, rng: np.random.Generator) -> tuple[float, float]:
        """A point drawn uniformly from the largest island, (x, y), m."""
        i, j = divmod(int(self._largest[rng.integers(len(self._largest))]), self.shape[1])
        right, up = (0.001 + 0.998 * rng.random(2)).tolist()  # off the edges, where rounding might leave the cell
        return float(self.origin[0]) + (j + right) * self.cell, float(self.origin[1]) + (i + up) * self.cell

    def random_points(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """As `random_point`, float64, (count, 2), m."""
        return np.array([self.random_point(rng) for _ in range(count)]).reshape(-1, 2)

    def field(self, goals: np.ndarray) -> np.ndarray:
        """Walking distance from every cell to the nearest goal.

        Args:
            goals: int, (Q,); flat indices of navigable cells, Q >= 1.

        Returns:
            float32, (H * W,); m, between middles of cells; 0 at goals, inf where no way leads.

        Raises:
            ValueError: No goals, or one that is not navigable.
        """
        goals = np.asarray(goals, np.int64)
        if len(goals) == 0 or not self.free.ravel()[goals].all():
            raise ValueError(
                f"goals must be at least one navigable cell, got {len(goals)} of which some may be blocked"
            )
        return fast_march(self.free.ravel(), self.shape[1], goals, self.cell)

    def distances(self, field: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Values of a field (see `field`) at points (Q, 2), between cells bilinear. Returns float64, (Q,), m; inf where unreachable."""
        at = (np.asarray(points, np.float64) - self.origin) / self.cell
        return np.array([interpolate_field(field, self.shape[1], x, y) for x, y in at.tolist()])

    def move(self, positions: np.ndarray, headings: np.ndarray, distance: float) -> tuple[np.ndarray, np.ndarray]:
        """Moves robots straight on, sliding along what is in the way; never leaves the navigable area.

        Args:
            positions: float, (Q, 2); m.
            headings: float, (Q,); rad.
            distance: How far, m; >= 0.

        Returns:
            New positions, float64, (Q, 2), and whether something was in the way, bool, (Q,). One that is not navigable stays.
        """
        moved = np.array(positions, np.float64)
        collided = np.zeros(len(moved), bool)
        steps = np.stack([np.cos(headings), np.sin(headings)], axis=1) * distance
        rows = np.zeros(len(moved), np.int64)
        slide_many(self.free.reshape(1, -1), rows + self.shape[1], self.origin[None], self.cell, moved, steps, collided)
        return moved, collided

    def steer(
        self, field: np.ndarray, position: np.ndarray, heading: float, turn: float, distance: float
    ) -> tuple[int, float]:
        """How to turn, by steps, so that the next move down a field gets nearest to its goals.

        Args:
            field: float32, (H * W,); of `field`.
            position: float64, (2,); m.
            heading: rad.
            turn: One turn, rad.
            distance: Length of the next move, m.

        Returns:
            Turns to make, positive to the left, and by how much the move then shortens the way, m (0 or less: the end is reached).
        """
        count = math.floor(math.pi / turn + 1e-6)
        return _steer(
            self.free.ravel(), field, self.shape[1], self.origin, self.cell, np.asarray(position), heading, turn, count, distance
        )  # fmt: skip

    def _rooms(self, house: House, rows: int, columns: int) -> np.ndarray:
        """int16, (rows, columns); room that the middle of each cell lies in, the first of both in a doorway; -1 for none."""
        areas = [(number, room.polygon) for number, room in enumerate(house.rooms)]
        for door in house.doors:
            if -1 in door.rooms or door.rooms[0] == door.rooms[1]:
                continue
            along = np.array([math.cos(door.yaw), math.sin(door.yaw)]) * door.width / 2
            across = np.array([-math.sin(door.yaw), math.cos(door.yaw)]) * DOORWAY_REACH
            corners = np.stack([-along - across, along - across, along + across, -along + across])
            areas.append((door.rooms[0], np.array(door.centre) + corners))
        rooms = np.full((rows, columns), -1, np.int16)
        for number, polygon in areas:
            j0, i0 = np.maximum(np.floor((polygon.min(0) - self.origin) / self.cell).astype(int), 0)
            j1, i1 = np.ceil((polygon.max(0) - self.origin) / self.cell).astype(int)
            window = rooms[i0:i1, j0:j1]
            i, j = np.indices(window.shape).reshape(2, -1)
            middles = self.origin + (np.stack([j + j0, i + i0], axis=1) + 0.5) * self.cell
            inside = points_in_polygon(middles, polygon).reshape(window.shape)
            window[inside & (window < 0)] = number
        return rooms


@njit(nogil=True, cache=True)
def _slide(
    free: np.ndarray, width: int, origin: np.ndarray, cell: float, x: float, y: float, dx: float, dy: float
) -> tuple[float, float, bool]:
    """End of a straight move over free cells, m, and whether something was in the way.

    What is in the way takes the part of the motion that goes against it, one axis at a time; the sides of cells are the obstacles.
    """
    parts = math.ceil(math.sqrt(dx * dx + dy * dy) / (SUBSTEP * cell))
    if parts == 0:
        return x, y, False
    row, column = int((y - origin[1]) / cell), int((x - origin[0]) / cell)
    if not free[row * width + column]:
        return x, y, True
    dx, dy = dx / parts, dy / parts
    blocked = False
    for _ in range(parts):
        to = int((x + dx - origin[0]) / cell)
        if free[row * width + to]:
            x, column = x + dx, to
        else:
            blocked = True
        to = int((y + dy - origin[1]) / cell)
        if free[to * width + column]:
            y, row = y + dy, to
        else:
            blocked = True
    return x, y, blocked


@njit(nogil=True, cache=True)
def slide_many(
    free: np.ndarray,
    widths: np.ndarray,
    origins: np.ndarray,
    cell: float,
    positions: np.ndarray,
    steps: np.ndarray,
    collided: np.ndarray,
) -> None:
    """Moves N robots, in place, each on its own grid or (M = 1) all on one.

    Args:
        free: bool, (M, cells); row i is the flat grid of robot i.
        widths: int64, (N,); W of each robot's grid.
        origins: float64, (M, 2); m.
        cell: Side of a cell, m.
        positions: float64, (N, 2); m; changed in place.
        steps: float64, (N, 2); wanted displacement, m.
        collided: bool, (N,); written.
    """
    for i in range(len(positions)):
        grid = i if len(free) > 1 else 0
        x, y, blocked = _slide(
            free[grid], widths[i], origins[grid], cell, positions[i, 0], positions[i, 1], steps[i, 0], steps[i, 1]
        )
        collided[i] = blocked
        positions[i, 0], positions[i, 1] = x, y


@njit(nogil=True, cache=True)
def _steer(
    free: np.ndarray,
    field: np.ndarray,
    width: int,
    origin: np.ndarray,
    cell: float,
    position: np.ndarray,
    heading: float,
    turn: float,
    count: int,
    distance: float,
) -> tuple[int, float]:
    """See `NavigationMap.steer`; tries up to `count` turns to either side."""
    x, y = position[0], position[1]
    here = interpolate_field(field, width, (x - origin[0]) / cell, (y - origin[1]) / cell)
    best, best_turns, best_gain = -np.inf, 0, 0.0
    for k in range(2 * count + 1):
        turns = (k + 1) // 2 if k % 2 else -(k // 2)
        angle = heading + turns * turn
        to_x, to_y, _ = _slide(free, width, origin, cell, x, y, distance * math.cos(angle), distance * math.sin(angle))
        gain = here - interpolate_field(field, width, (to_x - origin[0]) / cell, (to_y - origin[1]) / cell)
        # Each turn costs a little, so that nearly equal ways do not make it turn to and fro.
        if gain - TURN_COST * abs(turns) > best:
            best, best_turns, best_gain = gain - TURN_COST * abs(turns), turns, gain
    return best_turns, best_gain
