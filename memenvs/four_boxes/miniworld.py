"""The room in the package Miniworld. Importing this module opens a display."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from miniworld.entity import Box

from memenvs.box_rooms.miniworld import RoomsEnv
from memenvs.box_rooms.room import BOX_RADIUS, BOX_SIDE
from memenvs.four_boxes.arrangements import PUBLISHED, Arrangement
from memenvs.four_boxes.room import (
    BOX_POSITIONS,
    COLOURS,
    FORWARD_DISTANCE,
    LARGE_SIZE,
    SIZE,
    START,
    STAY,
    TURN_DEG,
    VIEW_SIZE,
)


class MiniworldRoom:
    """N robots, each alone in a room; has the interface of `memenvs.four_boxes.room.BoxRoom`.

    One Miniworld environment serves all robots in turn: it takes the state of a robot, steps, and its state is read.

    Args:
        num_robots: N.

    Attributes:
        pose: float64, (N, 3); x, y (m), heading (rad, 0 to 2 pi).
        corner: int64, (N,); the corner whose box is solid. Robots pass through the others.
    """

    def __init__(self, num_robots: int) -> None:
        self.pose = np.tile(START, (num_robots, 1))
        self.corner = np.zeros(num_robots, np.int64)
        self._arrangement = [PUBLISHED] * num_robots
        self._views = np.zeros((num_robots, *VIEW_SIZE, 3), np.uint8)
        self._env = _make_env()

    def arrange(self, i: int, arrangement: Arrangement) -> None:
        """Put the boxes of robot `i` into these corners; seen from the next `place` on."""
        self._arrangement[i] = arrangement

    def place(self, i: int, pose: tuple[float, float, float], corner: int) -> None:
        """Set the pose (m, m, rad) of robot `i` and the corner of its goal."""
        self.pose[i] = pose
        self.corner[i] = corner
        self._views[i] = self._at(i).render_obs()

    def move(self, actions: np.ndarray, active: np.ndarray) -> None:
        """Turn robots, or move them forward where that is free.

        Args:
            actions: int64, (N,).
            active: bool, (N,); the other robots stay as they are.
        """
        for i in np.flatnonzero(active & (actions != STAY)).tolist():
            env = self._at(i)
            # LEFT, RIGHT and FORWARD have the same numbers in Miniworld; its 3 moves back, so STAY never gets there.
            self._views[i] = env.step(int(actions[i]))[0]
            x, _, z = env.agent.pos
            self.pose[i] = x, -z, env.agent.dir % (2 * math.pi)

    def render(self, out: np.ndarray, env_mask: np.ndarray) -> None:
        """Copy the views of robots.

        Args:
            out: uint8, (N, 60, 80, 3); written.
            env_mask: bool, (N,); robots whose images are written.
        """
        out[env_mask] = self._views[env_mask]

    def render_large(self, i: int) -> np.ndarray:
        """Render the view of robot `i` for people; uint8, (288, 384, 3)."""
        env = self._at(i)
        return env.render_obs(env.vis_fb)

    def close(self) -> None:
        """Close the Miniworld environment."""
        self._env.close()

    def _at(self, i: int) -> RoomsEnv:
        """Return the Miniworld environment in the state of robot `i`."""
        self._env.set_pose(self.pose[i])
        for corner, box in zip(self._arrangement[i], self._env.solids, strict=True):
            x, y = BOX_POSITIONS[corner].tolist()
            box.pos = np.array([x, 0.0, -y])
            box.radius = BOX_RADIUS if corner == self.corner[i] else -math.inf  # nothing collides with one of -inf
        return self._env

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_env": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _env=_make_env())


def _make_env() -> RoomsEnv:
    return RoomsEnv(
        [{"min_x": 0, "max_x": SIZE, "min_z": 0, "max_z": SIZE}],
        lambda: [Box(colour, BOX_SIDE) for colour in COLOURS],
        VIEW_SIZE,
        LARGE_SIZE,
        forward_step=FORWARD_DISTANCE,
        turn_step=TURN_DEG,
    )
