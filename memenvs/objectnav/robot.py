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
TILT_MODES = ("ladder", "nominal")
# Ladder: the camera points at a target on a circle of 1.25 m around the foot of the robot.
# The state is the angle of the target from the vertical. The first target is 0.75 m ahead and 1.0 m up.
LADDER_START_DEG = math.degrees(math.atan2(0.75, 1.0))
LADDER_STEP_DEG = 30.0
LADDER_RANGE_DEG = (20.0, 100.0)
LADDER_RADIUS = 1.25
# Nominal: the state is the pitch itself.
NOMINAL_STEP_DEG = 30.0
NOMINAL_RANGE_DEG = (-55.0, 10.0)


def start_tilt(mode: str) -> float:
    """State of the tilt at the start of an episode, degrees; its meaning depends on the mode."""
    return LADDER_START_DEG if mode == "ladder" else math.degrees(ladder_pitch(np.array(LADDER_START_DEG)).item())


def tilt(mode: str, state: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Move the tilt.

    Args:
        mode: One of `TILT_MODES`.
        state: float64, (N,); states, degrees.
        steps: int, (N,); +1 for up, -1 for down, 0 for neither.

    Returns:
        float64, (N,); states afterwards.
    """
    if mode == "ladder":
        lowest, highest = LADDER_RANGE_DEG
        moved = state - LADDER_STEP_DEG * steps
    else:
        lowest, highest = NOMINAL_RANGE_DEG
        moved = state + NOMINAL_STEP_DEG * steps
    return np.minimum(np.maximum(moved, lowest), highest)  # np.clip takes twice as long


def pitch_of(mode: str, state: np.ndarray) -> np.ndarray:
    """Pitch of the camera, float64 (N,), rad, positive up, for states of `tilt`."""
    return ladder_pitch(state) if mode == "ladder" else np.radians(state)


def ladder_pitch(angle_deg: np.ndarray) -> np.ndarray:
    """Pitch (rad) from the camera to the target point at an angle (degrees) from the vertical.

    Source:
        ReLIC release: target point (1.25 sin a, 1.25 cos a), camera at (0.25, 1.2), both (ahead, up) in m.
    """
    angle = np.radians(angle_deg)
    return np.arctan2(LADDER_RADIUS * np.cos(angle) - CAMERA_HEIGHT, LADDER_RADIUS * np.sin(angle) - CAMERA_AHEAD)
