"""The scripted expert of ExtObjNav: walks to a thing, faces it, tilts its camera and stops."""

from __future__ import annotations

import math

import numpy as np

from memenvs.houses.simulator import CAMERA_AHEAD, CAMERA_HEIGHT
from memenvs.objectnav.layout import Layout
from memenvs.objectnav.robot import DOWN, FORWARD, FORWARD_DISTANCE, LEFT, RIGHT, STOP, UP, pitch_of, tilt

#: A step that shortens the way by less than this is not worth making, m.
LEAST_GAIN = 0.01


class Expert:
    """Where each of N robots is heading.

    It heads for the nearest viewpoint of any goal thing. If the thing has too few pixels from there, it goes on to a cell from which
    it is known to have enough.

    Args:
        num_envs: N.
        turn: One turn, rad.
        tilt_mode: How the camera tilts.

    Source:
        ReLIC's shortest-path expert, mended: it looks at the right thing, keeps its aim, and knows how far it turns.
    """

    def __init__(self, num_envs: int, *, turn: float, tilt_mode: str) -> None:
        self._turn, self._tilt_mode = turn, tilt_mode
        self._aim = np.full(num_envs, -1, np.int64)  # thing that it knows where to stand for; -1: any viewpoint will do

    def reset(self, i: int) -> None:
        """Forgets where robot `i` was heading."""
        self._aim[i] = -1

    def approach(
        self, i: int, layout: Layout, category: int, position: np.ndarray, heading: float, tilt_state: float
    ) -> int:
        """The action of robot `i` where a stop would not succeed.

        Args:
            i: Which robot.
            layout: Where it is.
            category: What it looks for.
            position: float64, (2,); m.
            heading: rad.
            tilt_state: As in `memenvs.objectnav.robot.tilt`, degrees.
        """
        aim = int(self._aim[i])
        field = layout.field(category) if aim < 0 else layout.stand_field(aim)
        turns, gain = layout.navmap.steer(field, position, heading, self._turn, FORWARD_DISTANCE)
        if gain > LEAST_GAIN:
            return FORWARD if turns == 0 else LEFT if turns > 0 else RIGHT
        thing = _nearest(layout, category, position) if aim < 0 else aim
        x, y, z = layout.position[thing]
        bearing = math.atan2(y - position[1], x - position[0])
        error = (bearing - heading + math.pi) % (2 * math.pi) - math.pi
        if abs(error) > self._turn / 2 + 1e-6:
            return LEFT if error > 0 else RIGHT
        distance = max(math.dist((x, y), position) - CAMERA_AHEAD, 0.05)
        states = tilt(self._tilt_mode, np.full(3, tilt_state), np.array([0, 1, -1]))
        off = np.abs(pitch_of(self._tilt_mode, states) - math.atan2(z - CAMERA_HEIGHT, distance))
        best = int(off.argmin())  # 0, staying, is the first and wins where tilting changes nothing
        if best != 0:
            return UP if best == 1 else DOWN
        if aim < 0:
            self._aim[i] = thing
            return self.approach(i, layout, category, position, heading, tilt_state)
        return STOP


def _nearest(layout: Layout, category: int, position: np.ndarray) -> int:
    """The thing of a category with the viewpoint nearest to a position."""

    def distance(thing: int) -> float:
        return float(((layout.navmap.points(layout.viewpoints[thing]) - position) ** 2).sum(1).min())

    return min(layout.things(category).tolist(), key=distance)
