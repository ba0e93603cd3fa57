"""Maps that robots draw of a home from their own depth images, and plans on them.

A map is a grid of stamps: each cell has the number of the step at which something was last observed there. So what was
observed before a step can be forgotten at once, and a stamp shows how far back an observation lies.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from memenvs.exploration.carmine import CAMERA_HEIGHT
from memenvs.exploration.drive import ROBOT_HEIGHT, ROBOT_RADIUS, TURN
from memenvs.exploration.planner import CLEARANCE_COSTS, STRAIGHT_COST, UNREACHABLE, costs_to_goals, first_action
from memenvs.rules import Rule

#: Side of a cell, m; rows and columns of a map, whose middle is the start of the episode.
CELL = 0.1
SIZE = 640
#: What is lower than this is no obstacle, m.
CLIMB = 0.15
#: Depths of neighbouring rows that differ by less belong to one upright surface, m; their mean is taken.
_SAME_SURFACE = 0.15
#: Bounds are this much wider than what was observed, m.
_RIM = 0.3
#: A cell is passed within this distance of it, m.
_PASSED = 0.25
#: A robot that has run into something has it at this distance ahead of its axis, m.
_CONTACT = 0.4
#: Plans use the cells within this number of rows and columns of the robot; wider ones where no goal is as near.
_WINDOWS = (20, 60, SIZE)
#: Plans without a goal use the cells within this number of rows and columns; none is longer.
_ROOM = 40
#: Cells beyond those observed in which plans may go.
_MARGIN = 3


class OwnMaps(NamedTuple):
    """The maps of N robots. Stamps are int32, (N, SIZE, SIZE); 0 where nothing was observed.

    Attributes:
        blocked: An obstacle leaves no room for the robot.
        solid: It leaves not even room for a smaller robot.
        driven: The robot was there.
        done: The cell is no goal, as long as there are others.
        passed: It is none at all: the robot has passed it by.
        blocked_radius: Cells nearer than this to an obstacle are blocked, m.
        solid_radius: Cells nearer than this to one are solid, and no way leads through them, m.
        bounds: int64, (N, 4); first row and column, last row and column of what was observed.
    """

    blocked: np.ndarray
    solid: np.ndarray
    driven: np.ndarray
    done: np.ndarray
    passed: np.ndarray
    blocked_radius: float
    solid_radius: float
    bounds: np.ndarray

    @staticmethod
    def empty(num_envs: int, blocked_radius: float = ROBOT_RADIUS + 0.02, solid_radius: float = 0.2) -> OwnMaps:
        """Make the maps of `num_envs` robots that have observed nothing; see the class."""
        blocked, solid, driven, done, passed = np.zeros((5, num_envs, SIZE, SIZE), np.int32)
        maps = OwnMaps(
            blocked, solid, driven, done, passed, blocked_radius, solid_radius, np.zeros((num_envs, 4), np.int64)
        )
        maps.forget_bounds(np.ones(num_envs, bool))
        return maps

    def forget_bounds(self, env_mask: np.ndarray) -> None:
        """Forget how far the maps of the environments in `env_mask`, bool (N,), extend."""
        self.bounds[env_mask] = SIZE, SIZE, 0, 0


class MapRule(Rule):
    """Base of the rules that remember all they have seen on a map.

    Args:
        num_envs: Number of environments, N.
        maps: Their maps, which are empty.
    """

    way = "ideal"
    window = None

    def __init__(self, num_envs: int, maps: OwnMaps) -> None:
        self._maps = maps
        # Steps since the first one, and what it was when the memory was emptied: older stamps are forgotten.
        self._clock = np.zeros(num_envs, np.int64)
        self._born = np.zeros(num_envs, np.int64)
        self._poses = np.full((num_envs, 3), np.nan)  # the latest ones; NaN before the first
        self._needed = np.zeros(num_envs, np.int64)  # stamp of what the last choice needed; 0 for nothing

    def forget(self, env_mask: np.ndarray) -> None:
        """Begin a new map; see `Rule`."""
        self._born[env_mask] = self._clock[env_mask]
        self._poses[env_mask] = np.nan
        self._maps.forget_bounds(env_mask)

    def steps_back(self) -> np.ndarray:
        """Return the age of the oldest observation that the choice needed; see the class and `Rule`."""
        return np.where(self._needed > 0, self._clock - self._needed, 0)


class PixelRays(NamedTuple):
    """Place of a level camera, and directions of its pixels per metre of depth.

    Attributes:
        slopes: float64, (W,); to the left of the optical axis.
        drops: float64, (H,); below it.
        ahead: Of the camera, from the axis of the robot, m.
    """

    slopes: np.ndarray
    drops: np.ndarray
    ahead: float


@njit(nogil=True, cache=True)
def cell_of(metres: float) -> int:
    """Row or column of a coordinate, m; that of the rim beyond the map."""
    return min(max(math.floor(metres / CELL) + SIZE // 2, 0), SIZE - 1)


@njit(nogil=True, cache=True)
def metres_of(cell: int) -> float:
    """Middle of a row or column, m."""
    return (cell - SIZE // 2 + 0.5) * CELL


@njit(nogil=True, cache=True)
def stamp_disc(stamps: np.ndarray, x: float, y: float, radius: float, stamp: int) -> None:
    """Stamp the cells of a map, in place, around a point (m).

    They are those whose middle is nearer to it than `radius` (m).
    """
    for i in range(cell_of(y - radius), cell_of(y + radius) + 1):
        dy = metres_of(i) - y
        for j in range(cell_of(x - radius), cell_of(x + radius) + 1):
            dx = metres_of(j) - x
            if dx * dx + dy * dy < radius * radius:
                stamps[i, j] = stamp


@njit(nogil=True, cache=True)
def is_obstacle(depth: float, drop: float) -> bool:
    """True if a pixel shows something that a robot runs into.

    It follows from the depth (m) of the pixel and its drop (`PixelRays`).
    """
    return depth > 0.0 and CLIMB < CAMERA_HEIGHT - drop * depth < ROBOT_HEIGHT


@njit(nogil=True, cache=True)
def stamp_obstacle(maps: OwnMaps, i: int, x: float, y: float, stamp: int) -> None:
    """Stamp what an obstacle at a point (m) blocks on the map of robot `i`, in place."""
    stamp_disc(maps.blocked[i], x, y, maps.blocked_radius, stamp)
    stamp_disc(maps.solid[i], x, y, maps.solid_radius, stamp)
    _widen(maps.bounds[i], x, y)


@njit(nogil=True, cache=True)
def stamp_obstacles(maps: OwnMaps, i: int, depth: np.ndarray, lens: PixelRays, pose: np.ndarray, stamp: int) -> None:
    """Stamp what the obstacles in a depth image block on the map of robot `i`, in place.

    Args:
        maps: The maps.
        i: Robot.
        depth: float32, (H, W); m; 0 where nothing is measured.
        lens: Of the camera.
        pose: float64, (3,); x, y (m) and heading (rad) of the robot.
        stamp: What is written.
    """
    cos, sin = math.cos(pose[2]), math.sin(pose[2])
    rows, columns = depth.shape
    for column in range(columns):
        total, count = 0.0, 0  # sum and number of the depths of the present surface
        for row in range(rows + 1):
            near = float(depth[row, column]) if row < rows else 0.0
            is_hit = row < rows and is_obstacle(near, lens.drops[row])
            if count > 0 and not (is_hit and abs(near - total / count) < _SAME_SURFACE):
                ahead = total / count
                left = ahead * lens.slopes[column]
                ahead += lens.ahead
                stamp_obstacle(maps, i, pose[0] + cos * ahead - sin * left, pose[1] + sin * ahead + cos * left, stamp)
                total, count = 0.0, 0
            if is_hit:
                total += near
                count += 1


@njit(nogil=True, cache=True)
def stamp_robot(maps: OwnMaps, i: int, pose: np.ndarray, has_collided: bool, stamp: int) -> None:
    """Stamp that robot `i` is at a pose, and what it has run into, in place."""
    maps.driven[i, cell_of(pose[1]), cell_of(pose[0])] = stamp
    stamp_disc(maps.passed[i], pose[0], pose[1], _PASSED, stamp)
    _widen(maps.bounds[i], pose[0], pose[1])
    if has_collided:
        x, y = pose[0] + _CONTACT * math.cos(pose[2]), pose[1] + _CONTACT * math.sin(pose[2])
        stamp_obstacle(maps, i, x, y, stamp)


@njit(nogil=True, cache=True)
def stamp_view(
    stamps: np.ndarray, depth: np.ndarray, lens: PixelRays, pose: np.ndarray, view_range: float, stamp: int
) -> None:
    """Stamp the cells from the camera to the nearest obstacle of each column, in place.

    Args:
        stamps: int32, (SIZE, SIZE).
        depth: As in `stamp_obstacles`, as `lens`, `pose` and `stamp`.
        lens: See there.
        pose: See there.
        view_range: Largest depth, m.
        stamp: See there.
    """
    cos, sin = math.cos(pose[2]), math.sin(pose[2])
    for column in range(depth.shape[1]):
        end = view_range
        for row in range(depth.shape[0]):
            near = float(depth[row, column])
            if is_obstacle(near, lens.drops[row]):
                end = min(end, near)
        for k in range(int(2.0 * end / CELL) + 1):
            ahead = k * CELL / 2.0
            left = ahead * lens.slopes[column]
            ahead += lens.ahead
            stamps[cell_of(pose[1] + sin * ahead + cos * left), cell_of(pose[0] + cos * ahead - sin * left)] = stamp


@njit(nogil=True, cache=True)
def _widen(bounds: np.ndarray, x: float, y: float) -> None:
    """Widen the bounds of a map so that what an obstacle or a robot at a point (m) may stamp is within them."""
    bounds[0] = min(bounds[0], cell_of(y - _RIM))
    bounds[1] = min(bounds[1], cell_of(x - _RIM))
    bounds[2] = max(bounds[2], cell_of(y + _RIM))
    bounds[3] = max(bounds[3], cell_of(x + _RIM))


@njit(nogil=True, cache=True)
def action_to_goal(
    maps: OwnMaps,
    i: int,
    born: int,
    pose: np.ndarray,
    done: np.ndarray,
    targets: np.ndarray,
    reach: float,
    turn: float,
    stale: int,
) -> tuple[int, int]:
    """Choose the first action of the way to the nearest goal of robot `i`.

    A way keeps clear of the obstacles that are on the map; what was never observed counts as free. `stamp_robot` comes
    first.

    Args:
        maps: The maps.
        i: Robot.
        born: Stamps up to this one are forgotten.
        pose: float64, (3,); x, y (m) and heading (rad) of the robot.
        done: int32, (SIZE, SIZE); stamps of the cells that are no goals.
        targets: float64, (T, 2); the goals are the cells within `reach` of one of these points (m). If there are none,
            the goals are all other cells.
        reach: m.
        turn: One turn of the robot, rad.
        stale: Cells whose stamps in `done` are no newer are goals, too; `born` for none.

    Returns:
        The action, -1 if there is no way; and the length of the way in cells.
    """
    row, column = cell_of(pose[1]), cell_of(pose[0])
    bounds = maps.bounds[i]
    for level in range(2 * len(_WINDOWS)):
        half = _WINDOWS[level % len(_WINDOWS)]
        obstacles = maps.blocked[i] if level < len(_WINDOWS) else maps.solid[i]
        low_row, low_column = max(row - half, bounds[0] - _MARGIN, 0), max(column - half, bounds[1] - _MARGIN, 0)
        rows = min(row + half, bounds[2] + _MARGIN, SIZE - 1) + 1 - low_row
        width = min(column + half, bounds[3] + _MARGIN, SIZE - 1) + 1 - low_column
        free, goals = np.zeros(rows * width, np.bool_), np.zeros(rows * width, np.bool_)
        for k in range(1, rows - 1):
            for j in range(1, width - 1):
                a, b = low_row + k, low_column + j
                free[k * width + j] = obstacles[a, b] <= born or maps.driven[i, a, b] > born
                goals[k * width + j] = len(targets) == 0 and done[a, b] <= stale
        _mark_targets(goals, width, low_row, low_column, targets, reach)
        robot = (row - low_row) * width + column - low_column
        free[robot] = True
        to_go = costs_to_goals(_clearance_costs(free, width), width, goals, robot, len(free))
        # A goal outside the window is further away than `half` cells.
        is_last = level % len(_WINDOWS) == len(_WINDOWS) - 1
        if to_go[robot] <= STRAIGHT_COST * half or (is_last and to_go[robot] < UNREACHABLE):
            origin = np.array([(low_column - SIZE // 2) * CELL, (low_row - SIZE // 2) * CELL])
            return first_action(free, width, origin, CELL, pose, to_go, turn), to_go[robot] // STRAIGHT_COST
    return -1, 0


@njit(nogil=True, cache=True)
def choose_goals(
    maps: OwnMaps,
    born: np.ndarray,
    poses: np.ndarray,
    targets: np.ndarray,
    reach: np.ndarray,
    turn: float,
    stale: np.ndarray,
    actions: np.ndarray,
    needed: np.ndarray,
) -> None:
    """Choose the way of N robots to the nearest target, or cell that is not done.

    Args:
        maps: The maps.
        born: int64, (N,); stamps up to these are forgotten.
        poses: float64, (N, 3); x, y (m) and heading (rad).
        targets: float64, (N, T, 2); m; NaN for none.
        reach: float64, (N,); see `action_to_goal`.
        turn: One turn, rad.
        stale: int64, (N,); where nothing else is left, cells that were done up to these stamps are goals again; `born`
            for none.
        actions: int64, (N,); filled; -1 where the robot is shut in on its map.
        needed: int64, (N,); filled with the oldest stamp that the way depends on, 0 for none.
    """
    for i in range(len(poses)):
        points = targets[i][np.isfinite(targets[i, :, 0])]
        done = maps.done[i]
        action, length = action_to_goal(maps, i, born[i], poses[i], done, points, reach[i], turn, born[i])
        if action < 0 and len(points) > 0:
            action, length = action_to_goal(maps, i, born[i], poses[i], done, points[:0], 0.0, turn, born[i])
        if action < 0 and stale[i] > born[i]:  # what was not there then may be there now
            action, length = action_to_goal(maps, i, born[i], poses[i], done, points[:0], 0.0, turn, stale[i])
        if action < 0:  # nothing is left: be more thorough
            done = maps.passed[i]
            action, length = action_to_goal(maps, i, born[i], poses[i], done, points[:0], 0.0, turn, born[i])
        actions[i] = action
        needed[i] = oldest_within(done, born[i], poses[i], length)


@njit(nogil=True, cache=True)
def _mark_targets(
    goals: np.ndarray, width: int, low_row: int, low_column: int, targets: np.ndarray, reach: float
) -> None:
    """Mark the cells within `reach` of a target in a window, bool (H * W,), in place."""
    rows = len(goals) // width
    for target in targets:
        first_row, last_row = cell_of(target[1] - reach) - low_row, cell_of(target[1] + reach) - low_row
        first, last = cell_of(target[0] - reach) - low_column, cell_of(target[0] + reach) - low_column
        for k in range(max(first_row, 1), min(last_row + 1, rows - 1)):
            for j in range(max(first, 1), min(last + 1, width - 1)):
                dx, dy = metres_of(low_column + j) - target[0], metres_of(low_row + k) - target[1]
                goals[k * width + j] |= dx * dx + dy * dy < reach * reach


@njit(nogil=True, cache=True)
def action_with_room(maps: OwnMaps, i: int, born: int, pose: np.ndarray) -> int:
    """Choose the first action of the plan with the most steps forward per action.

    The plan is one of robot `i`; see `action_to_goal`.
    """
    row, column = cell_of(pose[1]), cell_of(pose[0])
    half = _ROOM
    low_row, low_column, width = row - half, column - half, 2 * half + 1
    free = np.zeros(width * width, np.bool_)
    for k in range(1, width - 1):
        for j in range(1, width - 1):
            a, b = min(max(low_row + k, 0), SIZE - 1), min(max(low_column + j, 0), SIZE - 1)
            free[k * width + j] = maps.blocked[i, a, b] <= born or maps.driven[i, a, b] > born
    origin = np.array([(low_column - SIZE // 2) * CELL, (low_row - SIZE // 2) * CELL])
    return first_action(free, width, origin, CELL, pose, np.zeros(0, np.int32), TURN)


@njit(nogil=True, cache=True)
def oldest_within(stamps: np.ndarray, born: int, pose: np.ndarray, radius: int) -> int:
    """Return the oldest stamp after `born` within `radius` cells of a pose, 0 for none."""
    row, column = cell_of(pose[1]), cell_of(pose[0])
    oldest = 0
    for i in range(max(row - radius, 0), min(row + radius + 1, SIZE)):
        for j in range(max(column - radius, 0), min(column + radius + 1, SIZE)):
            if (i - row) ** 2 + (j - column) ** 2 <= radius * radius and stamps[i, j] > born:
                oldest = stamps[i, j] if oldest == 0 else min(oldest, stamps[i, j])
    return oldest


@njit(nogil=True, cache=True)
def _clearance_costs(free: np.ndarray, width: int) -> np.ndarray:
    """As `memenvs.exploration.planner.cell_costs`, of a flat grid, bool (H * W,), whose rim is not free."""
    costs = np.where(free, 0, UNREACHABLE).astype(np.int32)
    inner = free.copy()
    for cost in CLEARANCE_COSTS:
        eroded = inner.copy()
        for cell in range(width, len(free) - width):
            if inner[cell] and not (
                inner[cell - 1] and inner[cell + 1] and inner[cell - width] and inner[cell + width]
            ):
                eroded[cell] = False
                costs[cell] = cost
        inner = eroded
    return costs
