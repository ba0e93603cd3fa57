"""The Fetch base as Roaming, Coverage and Search drive it: its actions, the noise of its wheels, and what it believes its motion was."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from memenvs.houses.navigation.arcs import arc_end
from memenvs.random import normal_pair

FORWARD, LEFT, RIGHT = range(3)
ACTION_NAMES = ("forward", "turn left", "turn right")
#: Of the wheels, and between them, m.
WHEEL_RADIUS, AXLE_WIDTH = 0.065, 0.375
#: The robot as a cylinder, m.
ROBOT_RADIUS, ROBOT_HEIGHT = 0.28, 1.5
FORWARD_DISTANCE, TURN = 0.25, math.pi / 4
#: What each action commands: length of the way (m) and turn (rad).
COMMANDS = np.array([[FORWARD_DISTANCE, 0.0], [0.0, TURN], [0.0, -TURN]])


def motion_sd(wheel_noise: float, action_seconds: float) -> tuple[float, float]:
    """How far one action's motion is off.

    Args:
        wheel_noise: Standard deviation of the rate of each wheel, rad/s.
        action_seconds: How long an action lasts, s; the noise is constant for so long.

    Returns:
        Standard deviations of the length of the way (m) and of the turn (rad); the two are independent.
    """
    way = WHEEL_RADIUS * wheel_noise * action_seconds
    return way / math.sqrt(2.0), math.sqrt(2.0) * way / AXLE_WIDTH


@njit(nogil=True, cache=True)
def noisy_motions(commands: np.ndarray, wheel_way: float, keys: np.ndarray, steps: np.ndarray, out: np.ndarray) -> None:
    """Motions that wheels make whose rates are off by normal noise.

    Args:
        commands: float64, (N, 2); length of the way (m) and turn (rad).
        wheel_way: Standard deviation of what each wheel rolls too far in one action: radius x rate x duration, m.
        keys: uint64, (N,); streams of random numbers, see `memenvs.random`.
        steps: int64, (N,); number of the action in its episode.
        out: float64, (N, 2); written.

    Source:
        SMT, section 3.1: Gaussian noise on both wheel velocities.
    """
    for i in range(len(commands)):
        left, right = normal_pair(keys[i], np.uint64(steps[i]))
        out[i, 0] = commands[i, 0] + wheel_way * (right + left) / 2.0
        out[i, 1] = commands[i, 1] + wheel_way * (right - left) / AXLE_WIDTH


@njit(nogil=True, cache=True)
def reckon(estimates: np.ndarray, commands: np.ndarray) -> None:
    """Dead reckoning: moves pose estimates on, in place, as if motions had been as commanded.

    Args:
        estimates: float64, (N, 3); x, y (m) and heading (rad; within [-pi, pi) afterwards).
        commands: float64, (N, 2); length of the way (m) and turn (rad).
    """
    for i in range(len(estimates)):
        x, y, heading = arc_end(estimates[i, 0], estimates[i, 1], estimates[i, 2], commands[i, 0], commands[i, 1])
        estimates[i, 0], estimates[i, 1] = x, y
        estimates[i, 2] = (heading + math.pi) % (2.0 * math.pi) - math.pi


def seen_from(poses: np.ndarray, origins: np.ndarray) -> np.ndarray:
    """Poses as seen from others: x ahead, y to the left.

    Args:
        poses: float64, (N, 3); x, y (m) and heading (rad).
        origins: float64, (N, 3).

    Returns:
        float64, (N, 3); headings within [-pi, pi).
    """
    (dx, dy, turn), heading = (poses - origins).T, origins[:, 2]
    cos, sin = np.cos(heading), np.sin(heading)
    return np.column_stack([cos * dx + sin * dy, cos * dy - sin * dx, (turn + math.pi) % (2.0 * math.pi) - math.pi])


def contacts(way: np.ndarray) -> np.ndarray:
    """Where a robot touched something: at its front after each step that left its pose as it was, which only a collision does.

    Args:
        way: float, (T, 3); x, y (m) and heading (rad) step by step.

    Returns:
        float64, (K, 2); m.
    """
    stayed = np.asarray(way[1:], np.float64)[(way[1:] == way[:-1]).all(1)]
    return stayed[:, :2] + ROBOT_RADIUS * np.stack([np.cos(stayed[:, 2]), np.sin(stayed[:, 2])], 1)
