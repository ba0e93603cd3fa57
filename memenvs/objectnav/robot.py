"""The robot of ExtObjNav: its actions, and the tilt of its head camera."""

from __future__ import annotations

import math

import numpy as np

from memenvs.houses.simulator import CAMERA_AHEAD, CAMERA_HEIGHT

STOP, FORWARD, LEFT, RIGHT, UP, DOWN = range(6)
#: Entry for a robot that takes no step, in tables by action. It follows the actions; no agent can choose it.
WAIT = 6
#: Steps of the tilt, positive up, for each action and `WAIT`.
TILT_STEPS = np.array([0, 0, 0, 0, 1, -1, 0])
#: Length of a step forward, m.
FORWARD_DISTANCE = 0.25
# The camera points at a target on a circle of 1.25 m around the foot of the robot. The state of the tilt is the angle
# of the target from the vertical. The first target is 0.75 m ahead and 1.0 m up.
START_TILT_DEG = math.degrees(math.atan2(0.75, 1.0))
TILT_STEP_DEG = 30.0
TILT_RANGE_DEG = (20.0, 100.0)
TARGET_RADIUS = 1.25


def tilt(state: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Move the tilt.

    Args:
        state: float64, (N,); angles of the target from the vertical, degrees.
        steps: int, (N,); +1 for up, -1 for down, 0 for neither.

    Returns:
        float64, (N,); angles afterwards.
    """
    lowest, highest = TILT_RANGE_DEG
    return np.minimum(np.maximum(state - TILT_STEP_DEG * steps, lowest), highest)  # np.clip takes twice as long


def pitch_of(state: np.ndarray) -> np.ndarray:
    """Pitch of the camera, float64 (N,), rad, positive up, for states of `tilt`.

    Source:
        ReLIC release: target point (1.25 sin a, 1.25 cos a), camera at (0.25, 1.2), both (ahead, up) in m.
    """
    angle = np.radians(state)
    return np.arctan2(TARGET_RADIUS * np.cos(angle) - CAMERA_HEIGHT, TARGET_RADIUS * np.sin(angle) - CAMERA_AHEAD)
