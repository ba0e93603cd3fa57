"""Navigation map: an occupancy grid of a home, for moves and walking distances of robots.

The grid is computed once for a home: which cells a round robot may be in, which of them are connected, and which room
each belongs to. Everything else is a query on it.
"""

from __future__ import annotations

import math

import numpy as np

from memenvs.houses.house import House, grid_in_polygon
from memenvs.houses.navigation.geodesic import fast_march, interpolate_field, raise_to_straight
from memenvs.houses.navigation.occupancy import block_footprints, block_outside, label_islands
from memenvs.houses.navigation.sliding import choose_turns, slide_many

#: Radius and height of ExtObjNav's robot, m.
ROBOT_RADIUS = 0.30
ROBOT_HEIGHT = 1.5
#: Height of obstacles that a robot can roll over, m; shapes that are entirely lower do not block.
CLIMB = 0.2
#: Side of a cell, m.
CELL_SIZE = 0.05
#: Cells around the home that are always blocked, so that stencils need no bounds checks.
MARGIN = 3
#: Most cells of a map, beyond which distance fields take gigabytes.
MAX_CELLS = 2**24
#: Half depth of the rectangle that is added to the floor in a doorway, m. It bridges the wall between two rooms.
DOORWAY_HALF_DEPTH = 0.3
#: The robot's radius is reduced by this share of a cell; otherwise the grid closes passages that the robot fits
#: through.
RADIUS_REDUCTION = 0.25


class NavigationMap:
    """Navigation grid of a home for a round robot.

    Every position inside a navigable cell is navigable. A cell is navigable if a disc around its centre overlaps
    neither the outside nor the footprint of a shape between `CLIMB` and `height` above the floor. The radius of the
    disc is `radius` minus a quarter of a cell (`RADIUS_REDUCTION`). A robot in a corner of the cell is 0.71 cells from
    the middle. So it overlaps an obstacle by less than 0.96 cells (0.048 m), and the camera 0.25 m ahead of its axis
    stays out of walls.
    Cells that touch at corners only are not connected.

    Args:
        house: The home. Later changes of it do not change the map.
        radius: Radius of the robot, m; > 0.
        height: Height of the robot, m; shapes that are entirely above do not block.

    Attributes:
        origin: float64, (2,); (x, y) of the corner of cell [0, 0], m.
        cell_size: Side of a cell, m.
        free: bool, (H, W); navigable cells; row 0 has the smallest y.
        room: int16, (H, W); index of the room; a doorway belongs to the first of its rooms; -1 outside.
        island: int32, (H, W); number of the connected part, 0 for the largest, -1 where not navigable.
        island_areas: float64, (I,); square metres, in descending order.

    Raises:
        ValueError: No cell is navigable, there are more than `MAX_CELLS`, or a size is out of range.

    Source:
        Robot and limits: Habitat's Fetch (radius 0.3, height 1.5, climb 0.2); cell 0.05 m as in ReLIC's setting.
    """

    cell_size = CELL_SIZE

    def __init__(self, house: House, *, radius: float = ROBOT_RADIUS, height: float = ROBOT_HEIGHT) -> None:
        if not radius > 0:
            raise ValueError(f"radius must be > 0 m, got {radius}")
        if not height > CLIMB:
            raise ValueError(f"height must be > {CLIMB} m, got {height}")
        self._lay_grid(house)
        rows, columns = self.room.shape
        blocked = np.zeros((rows, columns), bool)
        reduced_radius = radius - RADIUS_REDUCTION * CELL_SIZE
        block_outside(blocked, self.room >= 0, CELL_SIZE, reduced_radius)
        shapes = house.shapes
        bottom, top = shapes.centre[:, 2] - shapes.half[:, 2], shapes.centre[:, 2] + shapes.half[:, 2]
        solid = shapes.take((top > CLIMB) & (bottom < height))
        block_footprints(
            blocked, self.origin, CELL_SIZE, reduced_radius, solid.kind, solid.centre, solid.half, solid.yaw
        )
        for rim in (blocked[:MARGIN], blocked[-MARGIN:], blocked[:, :MARGIN], blocked[:, -MARGIN:]):
            rim[:] = True
        self.free = ~blocked
        self.island, counts = label_islands(self.free)
        if len(counts) == 0:
            raise ValueError(f"house {house.name!r} has no navigable cell for a robot of radius {radius} m")
        self.island_areas = counts * CELL_SIZE * CELL_SIZE
        self._largest = np.flatnonzero(self.island == 0)

    def _lay_grid(self, house: House) -> None:
        """Lay the grid over a home: `origin` and `room`.

        Raises:
            ValueError: It has more than `MAX_CELLS`.
        """
        low, high = house.bounds
        self.origin = (np.floor(low / CELL_SIZE) - MARGIN) * CELL_SIZE
        columns, rows = (np.ceil((high - self.origin) / CELL_SIZE).astype(int) + MARGIN).tolist()
        if rows * columns > MAX_CELLS:
            width, depth = (high - low).tolist()
            raise ValueError(
                f"house {house.name!r} must have at most {MAX_CELLS} cells of {CELL_SIZE} m, got {rows} x {columns}: "
                f"it is {width:g} by {depth:g} m"
            )
        self.room = self._rooms(house, rows, columns)

    @property
    def shape(self) -> tuple[int, int]:
        """(H, W) of the grid."""
        return self.free.shape

    @property
    def area(self) -> float:
        """Navigable area of the largest island, square metres."""
        return float(self.island_areas[0])

    def cells(self, points: np.ndarray) -> np.ndarray:
        """Find the cell of each point (Q, 2), m; flat indices, int64, (Q,), -1 off the grid."""
        rows, columns = self.shape
        j, i = np.floor((np.asarray(points, np.float64) - self.origin) / self.cell_size).astype(np.int64).T
        on_grid = (i >= 0) & (i < rows) & (j >= 0) & (j < columns)
        return np.where(on_grid, i * columns + j, -1)

    def points(self, cells: np.ndarray) -> np.ndarray:
        """Compute the centres of cells, given by flat indices, int, (Q,); float64, (Q, 2), m."""
        i, j = np.divmod(cells, self.shape[1])
        return self.origin + (np.stack([j, i], axis=-1) + 0.5) * self.cell_size

    def islands(self, points: np.ndarray) -> np.ndarray:
        """Find the island of each point (Q, 2), m; int32, (Q,), -1 where not navigable."""
        index = self.cells(points)
        return np.where(index >= 0, self.island.ravel()[index], -1)

    def snap(self, points: np.ndarray) -> np.ndarray:
        """Move points onto the largest island.

        Args:
            points: float, (Q, 2); m.

        Returns:
            float64, (Q, 2), m. A point on the island stays; any other becomes the centre of the island's nearest cell.
        """
        out = np.array(points, np.float64)
        centres = self.points(self._largest)
        for q in np.flatnonzero(self.islands(out) != 0):
            out[q] = centres[np.argmin(((centres - out[q]) ** 2).sum(1))]
        return out

    def random_point(self, rng: np.random.Generator) -> tuple[float, float]:
        """Draw a point uniformly from the largest island; (x, y), m."""
        i, j = divmod(int(self._largest[rng.integers(len(self._largest))]), self.shape[1])
        right, up = (0.001 + 0.998 * rng.random(2)).tolist()  # off the edges, where rounding might leave the cell
        return float(self.origin[0]) + (j + right) * self.cell_size, float(self.origin[1]) + (i + up) * self.cell_size

    def random_points(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw points as `random_point` does; float64, (count, 2), m."""
        return np.array([self.random_point(rng) for _ in range(count)]).reshape(-1, 2)

    def distance_field(self, goals: np.ndarray) -> np.ndarray:
        """Compute the walking distance from every cell to the nearest goal (distance field).

        Args:
            goals: int, (Q,); flat indices of navigable cells, Q >= 1.

        Returns:
            float32, (H * W,); m, between centres of cells; 0 at goals, inf where no path leads.

        Raises:
            ValueError: No goals, or one that is not navigable.
        """
        goals = np.asarray(goals, np.int64)
        if len(goals) == 0 or not self.free.ravel()[goals].all():
            raise ValueError(
                f"goals must be at least one navigable cell, got {len(goals)} of which some may be blocked"
            )
        return fast_march(self.free.ravel(), self.shape[1], goals, self.cell_size)

    def distances(self, field: np.ndarray, points: np.ndarray, goals: np.ndarray | None = None) -> np.ndarray:
        """Interpolate a distance field at points, but never below the straight line.

        Args:
            field: float32, (H * W,); as `distance_field` returns it.
            points: float, (Q, 2); m.
            goals: float64, (G, 2); its `goal_points`. None finds them.

        Returns:
            float64, (Q,), m; inf where no path leads.
        """
        points = np.asarray(points, np.float64)
        in_cells = (points - self.origin) / self.cell_size
        distances = np.array([interpolate_field(field, self.shape[1], x, y) for x, y in in_cells.tolist()])
        goals = self.goal_points(field) if goals is None else goals
        raise_to_straight(goals, np.full((len(points), 2), (0, len(goals))), points, distances)
        return distances

    def goal_points(self, field: np.ndarray) -> np.ndarray:
        """Compute the centres of the goals of a distance field; float64, (G, 2), m."""
        return self.points(np.flatnonzero(field == 0.0))

    def move(self, positions: np.ndarray, headings: np.ndarray, distance: float) -> tuple[np.ndarray, np.ndarray]:
        """Move robots straight on; they slide along obstacles and never leave the navigable area.

        Args:
            positions: float, (Q, 2); m.
            headings: float, (Q,); rad.
            distance: Length of the move, m; >= 0.

        Returns:
            float64, (Q, 2); new positions, m. A robot that is not on a navigable cell stays.
            bool, (Q,); True where the move was blocked.
        """
        moved = np.array(positions, np.float64)
        collided = np.zeros(len(moved), bool)
        steps = np.stack([np.cos(headings), np.sin(headings)], axis=1) * distance
        widths = np.full(len(moved), self.shape[1])
        slide_many(self.free.reshape(1, -1), widths, self.origin[None], self.cell_size, moved, steps, collided)
        return moved, collided

    def steer(
        self, field: np.ndarray, position: np.ndarray, heading: float, turn: float, distance: float
    ) -> tuple[int, float]:
        """Choose the number of turns after which a move brings the robot nearest to a goal.

        Args:
            field: float32, (H * W,); as `distance_field` returns it.
            position: float64, (2,); m.
            heading: rad.
            turn: One turn, rad.
            distance: Length of the next move, m.

        Returns:
            Number of turns, positive to the left, and the gain: the decrease of the interpolated distance by that move,
            m. With a gain of 0 or less no move leads nearer, so the path ends here.
        """
        count = math.floor(math.pi / turn + 1e-6)  # at most half a circle to either side
        free = self.free.ravel()
        width = self.shape[1]
        position = np.asarray(position)
        return choose_turns(free, field, width, self.origin, self.cell_size, position, heading, turn, count, distance)

    def _rooms(self, house: House, rows: int, columns: int) -> np.ndarray:
        """Find the room of each cell.

        Returns:
            int16, (rows, columns); the room that the centre of the cell lies in, -1 for none.
        """
        # The first area that covers a cell decides, so doorways come after rooms and fill only cells between them.
        areas = [(number, room.polygon) for number, room in enumerate(house.rooms)]
        for door in house.doors:
            if -1 in door.rooms or door.rooms[0] == door.rooms[1]:
                continue  # a front door, or a door within one room
            along = np.array([math.cos(door.yaw), math.sin(door.yaw)]) * door.width / 2
            across = np.array([-math.sin(door.yaw), math.cos(door.yaw)]) * DOORWAY_HALF_DEPTH
            corners = np.stack([-along - across, along - across, along + across, -along + across])
            areas.append((door.rooms[0], np.array(door.centre) + corners))
        rooms = np.full((rows, columns), -1, np.int16)
        for number, polygon in areas:
            j0, i0 = np.maximum(np.floor((polygon.min(0) - self.origin) / self.cell_size).astype(int), 0)
            j1, i1 = np.ceil((polygon.max(0) - self.origin) / self.cell_size).astype(int)
            window = rooms[i0:i1, j0:j1]
            x, y = (
                self.origin[axis] + (np.arange(count) + first + 0.5) * self.cell_size
                for axis, (first, count) in enumerate(((j0, window.shape[1]), (i0, window.shape[0])))
            )
            window[grid_in_polygon(x, y, polygon) & (window < 0)] = number
        return rooms
