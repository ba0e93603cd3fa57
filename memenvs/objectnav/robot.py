"""What ExtObjNav's robot can do: its actions, and how its head camera tilts."""

from __future__ import annotations

import math

import numpy as np

from memenvs.houses.simulator import CAMERA_AHEAD, CAMERA_HEIGHT

STOP, FORWARD, LEFT, RIGHT, UP, DOWN = range(6)
#: What a robot does that makes no step; behind the actions, so that a table of them can have a row for it.
WAIT = 6
#: By how much an action looks up, in steps.
TILT_OF = np.array([0, 0, 0, 0, 1, -1, 0])
#: Length of a step forward, m.
FORWARD_DISTANCE = 0.25
TILT_MODES = ("ladder", "nominal")
#: Ladder: the camera looks at a point on a circle of 1.25 m around the robot's foot; the point's angle from the vertical moves
#: in steps of 30 degrees between 20 and 100. It starts at the point (0.75 ahead, 1.0 up).
LADDER_START_DEG, LADDER_STEP_DEG, LADDER_RANGE_DEG = math.degrees(math.atan2(0.75, 1.0)), 30.0, (20.0, 100.0)
LADDER_RADIUS = 1.25
#: Nominal: the pitch itself moves in steps of 30 degrees.
NOMINAL_STEP_DEG, NOMINAL_RANGE_DEG = 30.0, (-55.0, 10.0)


def start_tilt(mode: str) -> float:
    """State of the tilt at the start of an episode, degrees; what it means depends on the mode."""
    return LADDER_START_DEG if mode == "ladder" else math.degrees(ladder_pitch(np.array(LADDER_START_DEG)).item())


def tilt(mode: str, state: np.ndarray, up: np.ndarray) -> np.ndarray:
    """State after a look up (+1), down (-1) or neither (0); `state` float64 (N,) degrees, `up` int (N,)."""
    if mode == "ladder":
        lowest, highest, moved = *LADDER_RANGE_DEG, state - LADDER_STEP_DEG * up
    else:
        lowest, highest, moved = *NOMINAL_RANGE_DEG, state + NOMINAL_STEP_DEG * up
    return np.minimum(np.maximum(moved, lowest), highest)  # np.clip takes twice as long


def pitch_of(mode: str, state: np.ndarray) -> np.ndarray:
    """Pitch of the camera, float64, (N,), rad, positive up, for states as `tilt` makes them."""
    return ladder_pitch(state) if mode == "ladder" else np.radians(state)


def ladder_pitch(angle_deg: np.ndarray) -> np.ndarray:
    """Pitch (rad) from the camera to the look-at point at an angle (degrees) from the vertical.

    Source:
        ReLIC release: look-at point (1.25 sin a, 1.25 cos a), camera at (0.25, 1.2), both (ahead, up) in m.
    """
    angle = np.radians(angle_deg)
    return np.arctan2(LADDER_RADIUS * np.cos(angle) - CAMERA_HEIGHT, LADDER_RADIUS * np.sin(angle) - CAMERA_AHEAD)
