"""A rule for Roaming, Coverage and Search that sees the present observation alone."""

from __future__ import annotations

import numpy as np

from memenvs.exploration.carmine import CAMERA_AHEAD, CAMERA_HEIGHT, frame_camera, scan_camera
from memenvs.exploration.drive import FORWARD, LEFT, RIGHT, ROBOT_HEIGHT, ROBOT_RADIUS
from memenvs.exploration.env import Exploration
from memenvs.exploration.explorer import check_modalities
from memenvs.exploration.own_map import CLIMB
from memenvs.rules import Rule
from memenvs.task import BatchTask, Observation

#: Obstacles nearer than this to the line of a drive block it, m.
_HALF_WIDTH = 0.4
#: A free distance below this is not driven, m; below the second it may end at something that is not in view.
_SHORTEST, _NEAR = 0.7, 1.0
#: What is this much nearer below the level line of sight than on it is low, m. The robot does not see its near side: it
#: is taken to begin this much nearer.
_LOW_STEP, _LOW_DEPTH = 0.3, 0.9
#: Probabilities of a turn where there is room, where there is little, and of a turn to the other side.
_TURN, _TURN_NEAR, _OTHER_SIDE = 0.1, 0.2, 0.25
_FAR = 9.0  # m, beyond all depths


class PresentRule(Rule):
    """Drive on while there is room ahead, else turn to the side with more.

    Sometimes it turns without need.

    A rule without memory does not know that it has collided or that it turns to and fro, so it must act at random. The
    noise of the measured depths is its die. Its numbers were chosen in homes of the training split.

    Raises:
        RuleError: The task does not observe its depths.
    """

    way = "present"
    window = 1

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, Exploration)
        config = task.config
        self._key = "scan" if config.obs_mode == "scan" else "depth"
        check_modalities(config.modalities, {self._key})
        camera = scan_camera() if config.image_size is None else frame_camera(config.image_size)
        self._slopes = (camera.centre[0] - np.arange(camera.width)) / camera.focal  # to the left, of each column
        self._drops = (np.arange(camera.height) - camera.centre[1]) / camera.focal  # below level, of each row

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        depth = observation[self._key].astype(np.float64)
        depth = depth.reshape(len(depth), len(self._drops), len(self._slopes))
        height = CAMERA_HEIGHT - self._drops[:, None] * depth
        is_obstacle = (depth > 0) & (height > CLIMB) & (height < ROBOT_HEIGHT)
        nearest = np.where(is_obstacle, depth, _FAR).min(1)  # in each column
        room = self._room(depth, is_obstacle)
        die, side_die = _dice(depth, 0), _dice(depth, 1)
        turns = (room < _SHORTEST) | (die < np.where(room < _NEAR, _TURN_NEAR, _TURN))
        middle = nearest.shape[1] // 2
        is_left_wider = np.minimum(nearest, 5.0)[:, :middle].mean(1) >= np.minimum(nearest, 5.0)[:, middle:].mean(1)
        is_left = is_left_wider != (side_die < _OTHER_SIDE)
        return np.where(turns, np.where(is_left, LEFT, RIGHT), FORWARD).astype(np.int64)

    def _room(self, depth: np.ndarray, is_obstacle: np.ndarray) -> np.ndarray:
        """Free distance ahead, float64, (N,), m."""
        in_way = is_obstacle & (np.abs(depth * self._slopes) < _HALF_WIDTH)
        room = np.where(in_way, depth, _FAR).min((1, 2))
        level = np.flatnonzero(np.abs(self._drops) < 0.06)
        if len(level):  # images, not scans
            on_level = np.where(depth[:, level] > 0, depth[:, level], _FAR).min(1)
            below = slice(-max(len(self._drops) // 12, 1), None)
            low = np.where(is_obstacle[:, below], depth[:, below], _FAR).min(1)
            is_low = (low < on_level - _LOW_STEP) & (np.abs(low * self._slopes) < _HALF_WIDTH)
            room = np.minimum(room, np.where(is_low, low - _LOW_DEPTH, _FAR).min(1))
        return room + CAMERA_AHEAD - ROBOT_RADIUS


def _dice(depth: np.ndarray, number: int) -> np.ndarray:
    """Numbers in [0, 1) from the noise of depths, float64, (N,); another `number` gives other ones."""
    micrometres = (depth[:, :, number::2].sum((1, 2)) * 1e6).astype(np.uint64)
    return (micrometres * np.uint64(2654435761) % np.uint64(2**32)) / 2.0**32
