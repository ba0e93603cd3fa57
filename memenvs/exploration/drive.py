"""The Fetch base: actions, wheel noise and dead reckoning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from memenvs.houses.navigation.arcs import arc_end
from memenvs.poses import wrap_angle
from memenvs.random import normal_pair

FORWARD, LEFT, RIGHT = range(3)
ACTION_NAMES = ("forward", "turn left", "turn right")
#: Radius of the wheels and distance between them, m.
WHEEL_RADIUS = 0.065
AXLE_WIDTH = 0.375
#: The robot as a cylinder, m.
ROBOT_RADIUS = 0.28
ROBOT_HEIGHT = 1.5
#: One step forward (m) and one turn (rad).
FORWARD_DISTANCE = 0.25
TURN = math.pi / 4
#: float64, (3, 2); commanded arc length (m) and turn (rad) of each action.
COMMANDS = np.array([[FORWARD_DISTANCE, 0.0], [0.0, TURN], [0.0, -TURN]])

_wrap_angle: Any = njit(nogil=True, cache=True)(wrap_angle)


@njit(nogil=True, cache=True)
def noisy_motions(commands: np.ndarray, wheel_std: float, keys: np.ndarray, steps: np.ndarray, out: np.ndarray) -> None:
    """Add normal noise of the wheel rates to commanded motions.

    Args:
        commands: float64, (N, 2); arc length (m) and turn (rad).
        wheel_std: Standard deviation of the error of the distance that each wheel rolls, m: its radius x
            `wheel_noise` x the second that an action takes.
        keys: uint64, (N,); streams of random numbers, see `memenvs.random`.
        steps: int64, (N,); number of the action in its episode.
        out: float64, (N, 2); written.

    Source:
        SMT, section 3.1: Gaussian noise on both wheel velocities.
    """
    for i in range(len(commands)):
        left, right = normal_pair(keys[i], np.uint64(steps[i]))
        out[i, 0] = commands[i, 0] + wheel_std * (right + left) / 2.0
        out[i, 1] = commands[i, 1] + wheel_std * (right - left) / AXLE_WIDTH


@njit(nogil=True, cache=True)
def dead_reckon(estimates: np.ndarray, commands: np.ndarray) -> None:
    """Advance pose estimates, in place, as if motions were as commanded.

    Args:
        estimates: float64, (N, 3); x, y (m) and heading (rad; in [-pi, pi) afterwards).
        commands: float64, (N, 2); arc length (m) and turn (rad).
    """
    for i in range(len(estimates)):
        x, y, heading = arc_end(estimates[i, 0], estimates[i, 1], estimates[i, 2], commands[i, 0], commands[i, 1])
        estimates[i, 0] = x
        estimates[i, 1] = y
        estimates[i, 2] = _wrap_angle(heading)


def collision_points(path: np.ndarray) -> np.ndarray:
    """Find points of collision on a path: the robot's front wherever its pose did not change.

    Args:
        path: float, (T, 3); x, y (m) and heading (rad) step by step.

    Returns:
        float64, (K, 2); m.
    """
    # Only a collision leaves a pose as it was.
    stayed = np.asarray(path[1:], np.float64)[(path[1:] == path[:-1]).all(1)]
    return stayed[:, :2] + ROBOT_RADIUS * np.stack([np.cos(stayed[:, 2]), np.sin(stayed[:, 2])], 1)
