"""The scripted expert of ExtObjNav: go to an object, face it, tilt the camera, stop."""

from __future__ import annotations

import math

import numpy as np

from memenvs.houses.simulator import CAMERA_AHEAD, CAMERA_HEIGHT
from memenvs.objectnav.layout import Layout
from memenvs.objectnav.robot import DOWN, FORWARD, FORWARD_DISTANCE, LEFT, RIGHT, STOP, UP, pitch_of, tilt
from memenvs.poses import wrap_angle

#: A step that shortens the path by less than this is not taken, m.
MIN_GAIN = 0.01


class Expert:
    """Shortest-path policy for N robots.

    A robot goes to the nearest viewpoint of any goal object. If the object has too few pixels from there, it goes on to
    the cell from which the object is known to have enough.

    Args:
        num_envs: N.
        turn: One turn, rad.

    Source:
        ReLIC's shortest-path expert with three corrections: it faces the object that it went to, keeps that object
        until it stops, and uses the actual angle of a turn.
    """

    def __init__(self, num_envs: int, *, turn: float) -> None:
        self._turn = turn
        # Object to whose known view cell the robot goes; -1 while it goes to any viewpoint.
        self._target = np.full(num_envs, -1, np.int64)

    def reset(self, i: int) -> None:
        """Forget the target of robot `i`."""
        self._target[i] = -1

    def approach(
        self, i: int, layout: Layout, category: int, position: np.ndarray, heading: float, tilt_state: float
    ) -> int:
        """Choose the action of robot `i` where a stop would not succeed.

        Args:
            i: Index of the robot.
            layout: Its layout.
            category: Category of its goal.
            position: float64, (2,); m.
            heading: rad.
            tilt_state: As in `memenvs.objectnav.robot.tilt`, degrees.
        """
        target = int(self._target[i])
        field = layout.distance_field(category) if target < 0 else layout.view_cell_distance_field(target)
        turns, gain = layout.navmap.steer(field, position, heading, self._turn, FORWARD_DISTANCE)
        if gain > MIN_GAIN:
            return FORWARD if turns == 0 else LEFT if turns > 0 else RIGHT
        # It has arrived: face the object, ...
        object_index = _nearest_object(layout, category, position) if target < 0 else target
        x, y, z = layout.position[object_index]
        bearing = math.atan2(y - position[1], x - position[0])
        error = wrap_angle(bearing - heading)
        if abs(error) > self._turn / 2 + 1e-6:
            return LEFT if error > 0 else RIGHT
        # ... tilt the camera to it, ...
        distance = max(math.dist((x, y), position) - CAMERA_AHEAD, 0.05)
        states = tilt(np.full(3, tilt_state), np.array([0, 1, -1]))
        errors = np.abs(pitch_of(states) - math.atan2(z - CAMERA_HEIGHT, distance))
        best = int(errors.argmin())  # of equal ones the first, which is to stay
        if best != 0:
            return UP if best == 1 else DOWN
        # ... and if that does not show enough pixels, go to the known view cell.
        if target < 0:
            self._target[i] = object_index
            return self.approach(i, layout, category, position, heading, tilt_state)
        return STOP


def _nearest_object(layout: Layout, category: int, position: np.ndarray) -> int:
    """Object of a category with the viewpoint nearest to a position."""

    def squared_distance(k: int) -> float:
        return float(((layout.navmap.points(layout.viewpoints[k]) - position) ** 2).sum(1).min())

    return min(layout.objects_of(category).tolist(), key=squared_distance)
