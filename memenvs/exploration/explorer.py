"""Explorers for Roaming, Coverage and Search.

They remember all they have seen, on a map of their own. None knows the truth: the map is drawn
from the observed depths and poses, and what was never observed counts as free.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from memenvs.exploration import own_map
from memenvs.exploration.carmine import CAMERA_AHEAD, IMAGE_SIZE, frame_camera, scan_camera
from memenvs.exploration.config import TARGETS, SearchConfig
from memenvs.exploration.drive import LEFT, RIGHT, TURN
from memenvs.exploration.env import Exploration
from memenvs.exploration.nyu40 import NYU40, NYU40_INDEX
from memenvs.exploration.own_map import CELL, MapRule, OwnMaps, PixelRays
from memenvs.exploration.visibility import MAX_DEPTH, MIN_PIXEL_SHARE
from memenvs.poses import wrap_angle
from memenvs.rules import RuleError
from memenvs.task import BatchTask, Observation

#: Coverage: places within this distance of the path are no goals, m. It is a little more than a cell's side: the robot
#: does not know where the cells begin. Chosen in homes of the training split.
_VISIT_RADIUS = 0.55
#: Search: floor that was in view from nearer than this is no goal, m; nor is floor within the second of the path.
_VIEW_RANGE, _NEAR_PATH = 2.0, 0.3
#: Search: the robot goes to within this of an object of a class that it misses, and there faces it, m and rad. Objects
#: that it faces in vain are left out from then on, with those within the third distance, m.
_ARRIVAL, _FACING, _REJECT_RADIUS = 1.3, 0.4, 1.0
#: Objects that Search leaves out at most, for each class; the oldest are forgotten first.
_NUM_REJECTED = 4
#: Roaming: the obstacles that count as needed for a choice are within this distance, m.
_NEEDED_RADIUS = 1.0


class Explorer(MapRule):
    """Base class: it draws the map, and forgets it. A subclass chooses.

    Raises:
        RuleError: The task does not observe its pose and depths.
    """

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, Exploration)
        super().__init__(task.num_envs, OwnMaps.empty(task.num_envs))
        config = task.config
        self._key = "scan" if config.obs_mode == "scan" else "depth"
        check_modalities(config.modalities, {self._key, "pose"})
        camera = scan_camera() if config.image_size is None else frame_camera(config.image_size)
        columns, rows = np.arange(camera.width), np.arange(camera.height)
        slopes, drops = (camera.centre[0] - columns) / camera.focal, (rows - camera.centre[1]) / camera.focal
        self._lens = PixelRays(slopes, drops, CAMERA_AHEAD)
        self._collided = np.zeros(task.num_envs, bool)

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Begin a new map: the poses of the last one are relative to another start."""
        self.forget(env_mask)

    def see(self, observation: Observation) -> None:
        """Draw what is observed on the map; see `Rule`."""
        self._clock += 1
        poses = observation["pose"].astype(np.float64)
        self._collided = (poses == self._poses).all(1)  # the wheels slip: only a collision leaves a pose as it was
        self._poses = poses
        _see(self._maps, self._depth(observation), self._lens, poses, self._collided, self._clock)

    def _choose_way(self, targets: np.ndarray) -> np.ndarray:
        """Choose the way to the nearest target, float64 (N, T, 2), NaN for none; one that is shut in turns."""
        actions, reach = np.zeros(len(targets), np.int64), np.full(len(targets), _ARRIVAL - CELL)
        own_map.choose_goals(
            self._maps, self._born, self._poses, targets, reach, TURN, self._born, actions, self._needed
        )
        return np.where(actions < 0, LEFT, actions)

    def _depth(self, observation: Observation) -> np.ndarray:
        """Depths, float32, (N, H, W), m."""
        return observation[self._key].reshape(len(self._clock), len(self._lens.drops), -1)


class RoamingExplorer(Explorer):
    """Drive where the map has the longest free way.

    The steps back are those to a nearby obstacle.
    """

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        actions = np.zeros(len(self._clock), np.int64)
        _choose_room(self._maps, self._born, self._poses, actions, self._needed)
        return actions


class CoverageExplorer(Explorer):
    """Drive to the nearest place where the robot has not been.

    The steps back are those to the oldest of the visits that rule nearer places out; of several visits to a place the
    newest counts. A bit for each cell has to be kept: entered or not.
    """

    def see(self, observation: Observation) -> None:
        """Draw what is observed, and where the robot is, on the map; see `Rule`."""
        super().see(observation)
        _see_visits(self._maps, self._poses, _VISIT_RADIUS, self._clock)

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        return self._choose_way(np.zeros((len(self._clock), 0, 2)))


class SearchExplorer(Explorer):
    """Go to the objects of missing classes that it has seen.

    Without any, it goes to floor that it has not seen from near.

    The steps back are those to the newest sight of the object, or to the oldest of the views that rule nearer places
    out, as in `CoverageExplorer`. It takes a class as found as the task does.

    Raises:
        RuleError: The task does not observe its pose, depths and classes.
    """

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task)
        config = task.config  # type: ignore[attr-defined]
        assert isinstance(config, SearchConfig)
        self._class_key = "scan_class" if config.obs_mode == "scan" else "semantic"
        check_modalities(config.modalities, {self._class_key})
        labels = [NYU40_INDEX[name] for name in config.targets or TARGETS]
        self._class_of = np.full(len(NYU40), -1)  # label -> number of the target class
        self._class_of[labels] = np.arange(len(labels))
        # A scan has one row of the image in which classes are found: there it takes more of the pixels.
        image_pixels = len(self._lens.drops) * len(self._lens.slopes)
        share = MIN_PIXEL_SHARE if config.obs_mode == "frames" else MIN_PIXEL_SHARE * IMAGE_SIZE[0] / 16
        self._min_pixels = share * image_pixels
        shape = task.num_envs, len(labels)
        self._found_at = np.zeros(shape, np.int64)  # stamps
        self._sight = np.zeros((*shape, 2))  # where the nearest object in the newest view of the class is, m
        self._sight_at = np.zeros(shape, np.int64)
        self._rejected = np.zeros((*shape, _NUM_REJECTED, 2))
        self._rejected_at = np.zeros((*shape, _NUM_REJECTED), np.int64)

    def see(self, observation: Observation) -> None:
        """Draw what is observed on the map, and keep where objects of the classes are; see `Rule`."""
        super().see(observation)
        depth = self._depth(observation)
        _see_floor(self._maps, depth, self._lens, self._poses, self._clock)
        labels = observation[self._class_key].reshape(depth.shape)
        _see_objects(
            depth,
            self._class_of[labels],
            self._lens,
            self._poses,
            self._clock,
            self._born,
            self._min_pixels,
            (self._found_at, self._sight, self._sight_at, self._rejected, self._rejected_at),
        )

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        born = self._born[:, None]
        is_wanted = (self._sight_at > born) & (self._found_at <= born)
        targets = np.where(is_wanted[..., None], self._sight, np.nan)
        actions = self._choose_way(targets)
        to_target = targets - self._poses[:, None, :2]
        distance = np.hypot(to_target[..., 0], to_target[..., 1])
        distance[~is_wanted] = np.inf
        rows, nearest = np.arange(len(distance)), distance.argmin(1)
        ahead = np.arctan2(to_target[rows, nearest, 1], to_target[rows, nearest, 0])
        turn = wrap_angle(ahead - self._poses[:, 2])
        faces = (distance[rows, nearest] < _ARRIVAL) & (np.abs(turn) > TURN / 2)
        actions = np.where(faces, np.where(turn > 0, LEFT, RIGHT), actions)
        has_target = is_wanted.any(1)
        self._needed = np.where(has_target, self._sight_at[rows, nearest], self._needed)
        return actions


def check_modalities(modalities: tuple[str, ...] | None, needed: set[str]) -> None:
    """Raise a `RuleError` if a rule needs an observation that the settings leave out."""
    missing = needed - set(modalities or ())
    if missing:
        raise RuleError(f"modalities must have {sorted(missing)}, which this rule needs, got {modalities}")


@njit(nogil=True, cache=True)
def _see(
    maps: OwnMaps, depth: np.ndarray, lens: PixelRays, poses: np.ndarray, collided: np.ndarray, clock: np.ndarray
) -> None:
    for i in range(len(poses)):
        own_map.stamp_obstacles(maps, i, depth[i], lens, poses[i], clock[i])
        own_map.stamp_robot(maps, i, poses[i], collided[i], clock[i])


@njit(nogil=True, cache=True)
def _see_visits(maps: OwnMaps, poses: np.ndarray, radius: float, clock: np.ndarray) -> None:
    for i in range(len(poses)):
        own_map.stamp_disc(maps.done[i], poses[i, 0], poses[i, 1], radius, clock[i])


@njit(nogil=True, cache=True)
def _see_floor(maps: OwnMaps, depth: np.ndarray, lens: PixelRays, poses: np.ndarray, clock: np.ndarray) -> None:
    for i in range(len(poses)):
        own_map.stamp_view(maps.done[i], depth[i], lens, poses[i], _VIEW_RANGE, clock[i])
        own_map.stamp_disc(maps.done[i], poses[i, 0], poses[i, 1], _NEAR_PATH, clock[i])


@njit(nogil=True, cache=True)
def _see_objects(
    depth: np.ndarray,
    classes: np.ndarray,
    lens: PixelRays,
    poses: np.ndarray,
    clock: np.ndarray,
    born: np.ndarray,
    min_pixels: float,
    state: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Note the classes that are found, and the nearest object of each class in view, in the arrays of `state`."""
    found_at, sight, sight_at, rejected, rejected_at = state
    for i in range(len(poses)):
        cos, sin = math.cos(poses[i, 2]), math.sin(poses[i, 2])
        near_pixels = np.zeros(found_at.shape[1], np.int64)
        nearest = np.full(found_at.shape[1], np.inf)
        for row in range(depth.shape[1]):
            for column in range(depth.shape[2]):
                k, metres = classes[i, row, column], depth[i, row, column]
                if k < 0 or metres <= 0.0:
                    continue
                near_pixels[k] += metres < MAX_DEPTH
                if metres < nearest[k] and found_at[i, k] <= born[i]:
                    left = metres * lens.slopes[column]
                    x = poses[i, 0] + cos * (metres + lens.ahead) - sin * left
                    y = poses[i, 1] + sin * (metres + lens.ahead) + cos * left
                    if not _is_rejected(rejected[i, k], rejected_at[i, k], born[i], x, y):
                        nearest[k], sight[i, k, 0], sight[i, k, 1], sight_at[i, k] = metres, x, y, clock[i]
        for k in range(len(near_pixels)):
            if near_pixels[k] > min_pixels:
                found_at[i, k] = clock[i]
            elif sight_at[i, k] > born[i] and found_at[i, k] <= born[i]:
                dx, dy = sight[i, k, 0] - poses[i, 0], sight[i, k, 1] - poses[i, 1]
                ahead, left = cos * dx + sin * dy, cos * dy - sin * dx
                if math.hypot(dx, dy) < _ARRIVAL and abs(math.atan2(left, ahead)) < _FACING:
                    oldest = rejected_at[i, k].argmin()
                    rejected[i, k, oldest], rejected_at[i, k, oldest] = sight[i, k], clock[i]
                    sight_at[i, k] = 0


@njit(nogil=True, cache=True)
def _is_rejected(points: np.ndarray, stamps: np.ndarray, born: int, x: float, y: float) -> bool:
    for k in range(len(points)):
        if stamps[k] > born and math.hypot(points[k, 0] - x, points[k, 1] - y) < _REJECT_RADIUS:
            return True
    return False


@njit(nogil=True, cache=True)
def _choose_room(maps: OwnMaps, born: np.ndarray, poses: np.ndarray, actions: np.ndarray, needed: np.ndarray) -> None:
    for i in range(len(poses)):
        actions[i] = own_map.action_with_room(maps, i, born[i], poses[i])
        needed[i] = own_map.oldest_within(maps.blocked[i], born[i], poses[i], int(_NEEDED_RADIUS / CELL))
