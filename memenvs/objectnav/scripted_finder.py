"""Rules for ExtObjNav with symbolic observations.

One remembers its home, one its last 16 steps, and one nothing.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from memenvs.exploration import drive, own_map
from memenvs.exploration.own_map import MapRule, OwnMaps, PixelRays
from memenvs.houses.classes import YCB_CLASSES
from memenvs.houses.simulator import CAMERA_AHEAD
from memenvs.houses.ycb import object_footprint, object_height
from memenvs.objectnav.env import ExtObjNav
from memenvs.objectnav.robot import FORWARD, FORWARD_DISTANCE, LEFT, RIGHT, STOP
from memenvs.objectnav.symbolic import NUM_RAYS, RAY_RANGE, SYMBOLIC_CAMERA
from memenvs.poses import wrap_angle
from memenvs.rules import PREVIOUS_ACTION, Rule, RuleError, Window
from memenvs.task import LEG_START, BatchTask, Observation

#: The camera points 22 degrees down. Of a wall it sees the highest part as nearest: at this share of its distance.
_WALL_SHARE = 0.77
#: Only obstacles nearer than this are drawn, as the height of others makes their distances uncertain, m.
_NEAR = 0.8
#: Radii of what obstacles block, m, less than the robot's: it slides along what it touches.
_RADII = 0.05, 0.05
#: Where it was stopped it marks a disc ahead of its axis: distance and radius, m.
_CONTACT, _CONTACT_RADIUS = 0.35, 0.2
#: After this number of steps in the same place the robot drives where there is room, whatever its plan is.
_STILL = 9
#: With the goal in view it drives on until it has not moved for this number of steps.
_BLOCKED_STEPS = 2
#: Floor that was in view from nearer than this is no goal of exploration, m.
_VIEW_RANGE = 1.3
#: A stop mostly fails where fewer pixels of the object are in the image of 64 x 64.
_STOP_PIXELS = 3.5
#: Large objects have more pixels where a stop still fails. The robot stops where it sees as many as from the first
#: distance from its axis, m; where it comes no nearer, as many as from the second one.
_STOP_DISTANCE, _BLOCKED_DISTANCE = 1.55, 1.9
#: The robot is back where it has seen an object within this distance, m. With fewer pixels than 4 it goes to within
#: the second distance of a point that is the third one ahead, and turns around, as it does not see at which side the
#: object was.
_ARRIVAL, _ARRIVAL_SMALL, _AHEAD_SMALL = 0.25, 0.45, 0.9
#: Sights kept for each category, and the distance from which on they are of different objects, m.
_NUM_SIGHTS, _OTHER_OBJECT = 3, 1.5
#: A step forward that gains less than this share of its length was blocked.
_BLOCKED_SHARE = 0.5
#: Memoryless: free distance that it drives, m; half the width that must be free, m; probability of a needless turn.
_SHORTEST, _HALF_WIDTH, _TURN = 0.55, 0.35, 0.06
#: The same for the window: free distance, m; probability of a needless turn.
_WINDOW_SHORTEST, _WINDOW_TURN = 0.8, 0.02
_ACTIONS = np.zeros(3, np.int64)
_ACTIONS[[drive.FORWARD, drive.LEFT, drive.RIGHT]] = FORWARD, LEFT, RIGHT


def ray_slopes() -> np.ndarray:
    """Directions of the rays, float64, (32,).

    To the left of the optical axis, per metre of depth.
    """
    columns = (np.arange(NUM_RAYS) + 0.5) * SYMBOLIC_CAMERA.width / NUM_RAYS
    return (SYMBOLIC_CAMERA.width / 2 - columns) / SYMBOLIC_CAMERA.focal


def _area_of(pixels: np.ndarray | float) -> np.ndarray:
    """Areas as the symbols have them, of pixels in the image of 64 x 64."""
    return np.log(1 + 16.0 * np.asarray(pixels)) / math.log(1 + 256 * 256)


def stop_areas(distance: float) -> np.ndarray:
    """Observed areas of the categories at a distance (m) from the robot's axis, float64, (20,).

    They are those of the largest side of a box of the object's size, and of `_STOP_PIXELS` at least.
    """
    sizes = np.array([(*object_footprint(k), object_height(k)) for k in range(len(YCB_CLASSES))])
    side = sizes[:, :2].max(1) * sizes[:, 2]  # m^2
    pixels = side * (SYMBOLIC_CAMERA.focal / (distance - CAMERA_AHEAD)) ** 2
    return _area_of(np.maximum(pixels, _STOP_PIXELS))


def check_settings(task: BatchTask) -> ExtObjNav:
    """Return the task if its settings let a rule of this module play.

    Raises:
        RuleError: It does not observe symbols and the heading.
    """
    assert isinstance(task, ExtObjNav)
    config = task.config
    for name, value, needed in (("obs_mode", config.obs_mode, "symbolic"), ("compass", config.compass, True)):
        if value != needed:
            raise RuleError(f"{name} must be {needed!r} for this rule, got {value!r}")
    return task


def _die(observation: Observation) -> np.ndarray:
    """Last digits of position, heading and distances, (N,), in [0, 1): nothing else is left to chance."""
    depth = observation["symbolic"][:, len(YCB_CLASSES) :].astype(np.float64) * RAY_RANGE
    return (1e4 * (depth.sum(1) + observation["gps"].sum(1) + observation["compass"] @ [1.0, 3.0])) % 1.0


def _room(depth: np.ndarray) -> np.ndarray:
    """Free depth in the robot's way, (N,), m, from the depths of the rays, (N, 32)."""
    return np.where(np.abs(depth * ray_slopes()) < _HALF_WIDTH, depth, RAY_RANGE).min(1)


class PresentFinder(Rule):
    """Stop where an object of the goal category is in view.

    Else it drives on while there is room, and else turns left. With few pixels of the object in view it comes
    nearer. Now and then it turns without need. As nothing is left to chance in its observations, the last digits of its
    position, heading and distances are its die.

    Raises:
        RuleError: The settings leave out symbols or the compass.
    """

    way = "present"
    window = 1

    def __init__(self, task: BatchTask) -> None:
        check_settings(task)
        self._large, self._large_enough = stop_areas(_STOP_DISTANCE), stop_areas(_BLOCKED_DISTANCE)

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        symbols = observation["symbolic"]
        in_view = (symbols[:, : len(YCB_CLASSES)] * observation["goal"]).sum(1)
        goal = observation["goal"].argmax(1)
        depth = symbols[:, len(YCB_CLASSES) :].astype(np.float64) * RAY_RANGE
        room = _room(depth)
        turns = (room < _SHORTEST) | ((_die(observation) < _TURN) & (in_view == 0))
        large = np.where(room < _SHORTEST, self._large_enough[goal], self._large[goal])
        return np.where(in_view > large, STOP, np.where(turns, LEFT, FORWARD)).astype(np.int64)


class Finder(MapRule):
    """Go back to where an object of the goal category was seen.

    Without any, it goes to floor that was not in view yet. With `moves` it then goes to floor that was not in view in
    this episode.

    Over the episodes of a trial it keeps a map of obstacles and of the floor in view, and for each category the pose
    from which it was seen largest. It stops where enough pixels of the goal are in view. The
    steps back are those to the sight of the goal's category, or to the oldest of the views that rule nearer floor out.
    A pose is counted as 10 bits for the position (1,000 cells of 0.25 m in a small home), and those of the number of
    headings: 3 for turns of 45 degrees.

    Raises:
        RuleError: The settings leave out symbols or the compass.
    """

    def __init__(self, task: BatchTask) -> None:
        config = check_settings(task).config
        super().__init__(task.num_envs, OwnMaps.empty(task.num_envs, *_RADII))
        self._turn = math.radians(config.turn_deg)
        self._num_headings = round(360.0 / config.turn_deg)
        self.bits = (10.0 + math.log2(self._num_headings)) * len(config.categories or YCB_CLASSES)
        self._lens = PixelRays(ray_slopes(), np.zeros(1), CAMERA_AHEAD)
        self._large, self._large_enough = stop_areas(_STOP_DISTANCE), stop_areas(_BLOCKED_DISTANCE)
        shape = task.num_envs, len(YCB_CLASSES), _NUM_SIGHTS
        self._sight = np.zeros((*shape, 3))  # poses from which objects of each category were seen largest
        self._sight_at = np.zeros(shape, np.int64)  # stamps
        self._area = np.zeros(shape)  # observed there; 0 for no sight
        self._nearest = np.zeros(task.num_envs, np.int64)  # sight to which the robot goes
        self._turned = np.zeros(task.num_envs, np.int64)  # steps since it is back and does not see the goal
        self._still = np.zeros(task.num_envs, np.int64)  # steps in the same place
        self._has_moves = config.moves > 0
        self._stale = np.zeros(task.num_envs, np.int64)  # stamps up to these are of earlier episodes

    def forget(self, env_mask: np.ndarray) -> None:
        """Begin a new map, without sights; see `Rule`."""
        super().forget(env_mask)
        self._area[env_mask] = 0.0

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Take note that the robot is elsewhere; positions of earlier episodes hold.

        Those of objects that move may not.
        """
        self._poses[env_mask] = np.nan
        if self._has_moves:
            self._stale[env_mask] = self._clock[env_mask]

    def see(self, observation: Observation) -> None:
        """Draw what is observed on the map, and keep from where objects were seen; see `Rule`."""
        self._clock += 1
        heading = np.arctan2(observation["compass"][:, 1], observation["compass"][:, 0])
        poses = np.column_stack([observation["gps"], heading]).astype(np.float64)
        moved = np.hypot(*(poses - self._poses)[:, :2].T)  # NaN at the start of an episode
        stuck = (observation[PREVIOUS_ACTION] == 1 + FORWARD) & (moved < _BLOCKED_SHARE * FORWARD_DISTANCE)
        self._poses = poses
        self._still = np.where(moved < _BLOCKED_SHARE * FORWARD_DISTANCE, self._still + 1, 0)
        symbols = observation["symbolic"]
        depth = symbols[:, None, len(YCB_CLASSES) :].astype(np.float64) * RAY_RANGE / _WALL_SHARE
        _see(self._maps, depth, self._lens, poses, stuck, self._clock, _CONTACT_RADIUS, _NEAR, _VIEW_RANGE)
        area = symbols[:, : len(YCB_CLASSES)].astype(np.float64)
        _note_sights(area, poses, self._clock, self._large, self._sight, self._sight_at, self._area)
        rows, goal = np.arange(len(self._clock)), observation["goal"].argmax(1)
        distance = np.hypot(*np.moveaxis(self._sight[rows, goal, :, :2] - poses[:, None, :2], -1, 0))
        nearest = np.where(self._area[rows, goal] > 0, distance, np.inf).argmin(1)
        self._turned = np.where(nearest == self._nearest, self._turned, 0)
        self._nearest = nearest
        sight, is_large, is_back = self._sight_of(goal)
        is_back &= ~is_large | (np.abs(wrap_angle(sight[:, 2] - poses[:, 2])) < self._turn / 2) | (self._turned > 0)
        self._turned = np.where(is_back & (area[rows, goal] == 0), self._turned + 1, 0)
        gone = self._turned >= self._num_headings  # it has turned all around
        self._turned[gone] = 0
        self._area[rows[gone], goal[gone], nearest[gone]] = 0.0

    def _sight_of(self, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Nearest sight of the goals (N,): its pose (N, 3), NaN for none; whether it was large; whether it is here."""
        rows = np.arange(len(goal))
        area = self._area[rows, goal, self._nearest]
        sight = np.where(area[:, None] > 0, self._sight[rows, goal, self._nearest], np.nan)
        distance = np.hypot(*(sight - self._poses)[:, :2].T)
        is_large = area > self._large[goal]
        return sight, is_large, distance < np.where(is_large, _ARRIVAL, _ARRIVAL_SMALL)

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        rows, goal = np.arange(len(self._clock)), observation["goal"].argmax(1)
        sights, is_large, is_back = self._sight_of(goal)
        arrival = np.where(is_large, _ARRIVAL, _ARRIVAL_SMALL)
        moves, self._needed = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        targets, reach = sights[:, None, :2], arrival - 0.05
        stale = np.maximum(self._stale, self._born)
        own_map.choose_goals(
            self._maps, self._born, self._poses, targets, reach, self._turn, stale, moves, self._needed
        )
        moves = np.maximum(moves, drive.FORWARD)  # also where it is shut in on its map
        self._needed = np.where(np.isfinite(sights[:, 0]), self._sight_at[rows, goal, self._nearest], self._needed)
        turn = wrap_angle(sights[:, 2] - self._poses[:, 2])
        to_heading = np.where(np.abs(turn) < self._turn / 2, FORWARD, np.where(turn > 0, LEFT, RIGHT))
        search = np.where(is_large & (self._turned == 0), to_heading, LEFT)
        in_view = observation["symbolic"][rows, goal]
        actions = np.where(is_back & (in_view == 0), search, _ACTIONS[moves])
        depth = observation["symbolic"][:, len(YCB_CLASSES) :] * RAY_RANGE
        # It comes nearer to what it sees, as a turn towards the old sight would lose it from view.
        actions = np.where((in_view > 0) & (self._still < _BLOCKED_STEPS), FORWARD, actions)
        actions = np.where(self._still >= _STILL, np.where(_room(depth) > _SHORTEST, FORWARD, LEFT), actions)
        large = np.where(self._still < _BLOCKED_STEPS, self._large[goal], self._large_enough[goal])
        return np.where(in_view > large, STOP, actions)


class Traveller(Finder):
    """Play as `Finder` with a memory of its own for each home of an itinerary.

    The observation `leg_start` names the home when it begins a visit there.

    Raises:
        RuleError: The settings leave out symbols or the compass.
    """

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task)
        self._home = np.zeros(task.num_envs, np.int64)  # as `leg_start` names it; 0 before it does
        self._left: dict[tuple[int, int], list[np.ndarray]] = {}  # memory of each home that a robot has left

    def forget(self, env_mask: np.ndarray) -> None:
        """Begin a new map, without sights, and forget all other homes; see `Rule`."""
        super().forget(env_mask)
        self._home[env_mask] = 0
        self._left = {(i, home): kept for (i, home), kept in self._left.items() if not env_mask[i]}

    def see(self, observation: Observation) -> None:
        """Go on with the memory of the home, and see; see `Finder`."""
        for i in np.flatnonzero(observation[LEG_START]).tolist():
            self._enter(i, int(observation[LEG_START][i]))
        super().see(observation)

    def _enter(self, i: int, home: int) -> None:
        """Keep the memory of the home that robot `i` leaves, and restore that of the one that it enters."""
        maps = self._maps
        rows = [maps.blocked, maps.solid, maps.driven, maps.done, maps.passed, maps.bounds]
        rows += [self._born, self._sight, self._sight_at, self._area]
        if self._home[i]:
            self._left[i, int(self._home[i])] = [row[i].copy() for row in rows]
        kept = self._left.pop((i, home), None)
        if kept is None:
            super().forget(np.arange(len(self._home)) == i)
        else:
            for row, value in zip(rows, kept, strict=True):
                row[i] = value
        self._home[i] = home


class Wanderer(Finder):
    """Explore without a map, and go back as `Finder` to where the goal was seen.

    Without a sight of the goal it drives on while there is room. Else it turns to the side with more of it, and on to
    that side until there is room.
    """

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        goal, previous = observation["goal"].argmax(1), observation[PREVIOUS_ACTION]
        depth = observation["symbolic"][:, len(YCB_CLASSES) :].astype(np.float64) * RAY_RANGE
        side = np.where(depth[:, : NUM_RAYS // 2].mean(1) > depth[:, NUM_RAYS // 2 :].mean(1), LEFT, RIGHT)
        side = np.where(np.isin(previous, (1 + LEFT, 1 + RIGHT)), previous - 1, side)
        is_stuck = (previous == 1 + FORWARD) & (self._still > 0)
        turns = is_stuck | (_room(depth) < _WINDOW_SHORTEST) | (_die(observation) < _WINDOW_TURN)
        explores = (self._area[np.arange(len(goal)), goal].max(1) == 0) & (
            observation["symbolic"][np.arange(len(goal)), goal] == 0
        )
        return np.where(explores, np.where(turns, side, FORWARD), super().choose(observation))


class WindowFinder(Window):
    """Play as `Wanderer` with the last 16 observations and own actions.

    In large homes this is better than `Finder` with as many: a map of 16 steps leads in circles.

    Raises:
        RuleError: The settings leave out symbols or the compass.
    """

    def __init__(self, task: BatchTask) -> None:
        super().__init__(Wanderer(task), 16)


@njit(nogil=True, cache=True)
def _see(
    maps: OwnMaps,
    depth: np.ndarray,
    lens: PixelRays,
    poses: np.ndarray,
    stuck: np.ndarray,
    clock: np.ndarray,
    contact: float,
    nearest: float,
    view: float,
) -> None:
    for i in range(len(poses)):
        near = np.where(depth[i] < nearest, depth[i], 0.0)
        own_map.stamp_obstacles(maps, i, near, lens, poses[i], clock[i])
        own_map.stamp_robot(maps, i, poses[i], False, clock[i])
        if stuck[i]:
            x, y = poses[i, 0] + _CONTACT * math.cos(poses[i, 2]), poses[i, 1] + _CONTACT * math.sin(poses[i, 2])
            own_map.stamp_disc(maps.blocked[i], x, y, contact, clock[i])
            own_map.stamp_disc(maps.solid[i], x, y, contact / 2, clock[i])
        own_map.stamp_view(maps.done[i], depth[i], lens, poses[i], view, clock[i])


@njit(nogil=True, cache=True)
def _note_sights(
    area: np.ndarray,
    poses: np.ndarray,
    clock: np.ndarray,
    large: np.ndarray,
    sight: np.ndarray,
    sight_at: np.ndarray,
    areas: np.ndarray,
) -> None:
    """Keep from where each category in view is seen: in place of a smaller sight nearby, or of none, or the oldest."""
    for i in range(len(poses)):
        for k in range(area.shape[1]):
            if area[i, k] == 0.0:
                continue
            x, y, heading = poses[i]
            if area[i, k] <= large[k]:
                x, y = x + _AHEAD_SMALL * math.cos(heading), y + _AHEAD_SMALL * math.sin(heading)
            slot = -1
            for n in range(areas.shape[2]):
                if areas[i, k, n] > 0 and math.hypot(sight[i, k, n, 0] - x, sight[i, k, n, 1] - y) < _OTHER_OBJECT:
                    slot = n
            if slot < 0:
                slot = int(np.where(areas[i, k] > 0, sight_at[i, k], -1).argmin())
            elif area[i, k] < areas[i, k, slot] and areas[i, k, slot] > large[k]:
                continue
            sight[i, k, slot, 0], sight[i, k, slot, 1], sight[i, k, slot, 2] = x, y, heading
            sight_at[i, k, slot], areas[i, k, slot] = clock[i], area[i, k]
