"""A fixed rule for Roaming, Coverage and Search that sees the last few scans."""

from __future__ import annotations

import numpy as np

from memenvs.exploration.carmine import CAMERA_AHEAD, SCAN_ROW, frame_camera, scan_camera
from memenvs.exploration.carmine import IMAGE_SIZE as SCANNED_SIZE
from memenvs.exploration.drive import FORWARD, LEFT, RIGHT, ROBOT_RADIUS, TURN
from memenvs.exploration.env import Exploration
from memenvs.exploration.explorer import check_modalities
from memenvs.poses import relative_poses, wrap_angle
from memenvs.rules import Rule, Way
from memenvs.task import BatchTask, Observation

#: Obstacles nearer than this to the line of a drive block it, m.
_HALF_WIDTH = 0.32
#: A free distance below the first is not driven, m; beyond the second more room does not count.
_SHORTEST, _LONG_ENOUGH = 0.5, 3.0
#: Free distance that is assumed in a direction that no scan shows, m.
_UNSEEN = 1.5
#: Metres that a turn costs, that turning back costs, and that straight on is worth.
_TURN_COST, _BACK_COST, _AHEAD_BONUS = 0.3, 0.6, 0.5
#: A collision blocks its direction within this distance, m.
_COLLISION_DISTANCE = 0.3
#: Numbers of left turns (negative: right turns) to choose from.
_TURNS = np.array([0, 1, 2, 3, 4, -4, -3, -2, -1])
_HEADINGS = np.arange(8) * TURN


class WindowRule(Rule):
    """Drive on while there is room, else turn to where the last scans show most.

    It keeps the last `window` scans and poses, four here, and forgets the rest. A scan is row 32 of the depth image, or
    the observation `scan`. Its numbers were chosen in homes of the training split, for four scans.

    Raises:
        RuleError: The task does not observe its pose and depths.
    """

    way: Way = "window"
    window: int = 4

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, Exploration)
        config = task.config
        self._key = "scan" if config.obs_mode == "scan" else "depth"
        check_modalities(config.modalities, {self._key, "pose"})
        camera = scan_camera() if config.image_size is None else frame_camera(config.image_size)
        self._row = SCAN_ROW * camera.height // SCANNED_SIZE[0]
        self._slope = (camera.centre[0] - np.arange(camera.width)) / camera.focal  # to the left, of each ray
        self._scans = np.zeros((task.num_envs, self.window, camera.width))  # oldest first
        self._poses = np.zeros((task.num_envs, self.window, 3))
        self._count = np.zeros(task.num_envs, np.int64)  # scans of the episode so far, `window` at most

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget all scans; see `Rule`."""
        self._count[env_mask] = 0

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Forget the scans of earlier episodes, whose poses are relative to another start."""
        self.forget(env_mask)

    def see(self, observation: Observation) -> None:
        """Keep the scan and the pose, and drop the oldest ones; see `Rule`."""
        scan = observation[self._key]
        self._scans = np.roll(self._scans, -1, 1)
        self._poses = np.roll(self._poses, -1, 1)
        self._scans[:, -1] = scan if self._key == "scan" else scan[:, self._row, :, 0]
        self._poses[:, -1] = observation["pose"]
        self._count = np.minimum(self._count + 1, self.window)

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        is_known = np.arange(self.window) >= self.window - self._count[:, None]  # (N, window)
        room = self._free_lengths(is_known)
        last_turn = wrap_angle(self._poses[:, -1, 2] - self._poses[:, -2:, 2][:, 0])
        direction = np.where((self._count > 1) & (np.abs(last_turn) > TURN / 2), np.sign(last_turn), 0.0)
        free = room[:, _TURNS % 8]
        value = np.minimum(free, _LONG_ENOUGH) - _TURN_COST * np.abs(_TURNS) + _AHEAD_BONUS * (_TURNS == 0)
        value -= _BACK_COST * (_TURNS * direction[:, None] < 0)
        value -= _LONG_ENOUGH * 2 * (free < _SHORTEST)
        turns = _TURNS[value.argmax(1)]
        return np.select([turns == 0, turns > 0], [FORWARD, LEFT], RIGHT).astype(np.int64)

    def _free_lengths(self, is_known: np.ndarray) -> np.ndarray:
        """Free distance in 8 directions, (N, 8), m; the first is ahead, then counter-clockwise."""
        poses = relative_poses(self._poses, self._poses[:, -1:])  # (N, window, 3)
        cos, sin = np.cos(poses[..., 2:]), np.sin(poses[..., 2:])
        ahead, left = self._scans + CAMERA_AHEAD, self._scans * self._slope
        x, y = poses[..., :1] + cos * ahead - sin * left, poses[..., 1:2] + sin * ahead + cos * left
        is_hit = (self._scans > 0) & is_known[..., None]
        length = np.empty((len(x), len(_HEADINGS)))
        for k, heading in enumerate(_HEADINGS.tolist()):
            along, beside = x * np.cos(heading) + y * np.sin(heading), y * np.cos(heading) - x * np.sin(heading)
            blocks = is_hit & (np.abs(beside) < _HALF_WIDTH) & (along > 0.0)
            length[:, k] = np.where(blocks, along, np.inf).min((1, 2)) - ROBOT_RADIUS
        facing = np.round(poses[..., 2] / TURN).astype(np.int64) % 8  # direction of each scan
        is_seen = ((facing[..., None] == np.arange(8)) & is_known[..., None]).any(1)
        length = np.where(is_seen, length, np.minimum(length, _UNSEEN))
        stayed = (self._poses[:, 1:] == self._poses[:, :-1]).all(2) & is_known[:, :-1]  # only a collision does this
        stayed &= np.hypot(poses[:, :-1, 0], poses[:, :-1, 1]) < _COLLISION_DISTANCE
        is_blocked = ((facing[:, :-1, None] == np.arange(8)) & stayed[..., None]).any(1)
        return np.where(is_blocked, 0.0, length)


class SixteenScans(WindowRule):
    """`WindowRule` with the last 16 scans."""

    window = 16
