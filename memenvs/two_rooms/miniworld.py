"""The two rooms in the package Miniworld. Importing this module opens a display."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from miniworld.entity import COLORS, Box, Entity

from memenvs.box_rooms.miniworld import RoomsEnv
from memenvs.two_rooms.rooms import (
    COLOUR_NAMES,
    FORWARD,
    FORWARD_DISTANCE,
    LARGE_SIZE,
    LEFT,
    MAX_BOXES,
    ROOMS,
    TURN_DEG,
)


class MiniworldRooms:
    """N robots, each alone in one of the rooms; has the interface of `BoxRooms`.

    One Miniworld environment serves all robots in turn: it takes the state of a robot, steps, and its state is read.

    Args:
        num_robots: N.
        image_size: Rows and columns of images.

    Attributes:
        pose: As in `BoxRooms`.
        room: As in `BoxRooms`.
        boxes: As in `BoxRooms`.
        colours: As in `BoxRooms`.
    """

    def __init__(self, num_robots: int, image_size: tuple[int, int]) -> None:
        self.pose = np.zeros((num_robots, 3))
        self.room = np.zeros(num_robots, np.int64)
        self.boxes = np.zeros((num_robots, MAX_BOXES, 2))
        self.colours = np.full((num_robots, MAX_BOXES), -1)
        self._image_size = image_size
        self._env = _make_env(image_size)

    def enter(self, i: int, room: int, pose: np.ndarray, boxes: np.ndarray, colours: np.ndarray) -> None:
        """Put a robot into a room; arguments as in `BoxRooms.enter`."""
        self.room[i] = room
        self.pose[i] = pose
        self.colours[i] = -1
        self.boxes[i, : len(boxes)] = boxes
        self.colours[i, : len(boxes)] = colours

    def move(self, actions: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Turn robots, or move them forward where that is free; as `BoxRooms.move`."""
        touched = np.full(len(self.pose), -1)
        for i in np.flatnonzero(active).tolist():
            env = self._at(i)
            if actions[i] == FORWARD:
                hit = env.intersect(env.agent, env.agent.pos + FORWARD_DISTANCE * env.agent.dir_vec, env.agent.radius)
                if isinstance(hit, Entity):
                    touched[i] = env.solids.index(hit)
                env.move_agent(FORWARD_DISTANCE, 0.0)
            else:
                env.turn_agent(TURN_DEG if actions[i] == LEFT else -TURN_DEG)
            x, _, z = env.agent.pos
            self.pose[i] = x, -z, env.agent.dir % (2 * math.pi)
        return touched

    def remove(self, i: int, box: int) -> None:
        """Take a box out of the room of robot `i`."""
        self.colours[i, box] = -1

    def render(self, out: np.ndarray, env_mask: np.ndarray) -> None:
        """Render the views of robots; as `BoxRooms.render`."""
        for i in np.flatnonzero(env_mask).tolist():
            out[i] = self._at(i).render_obs()

    def render_large(self, i: int) -> np.ndarray:
        """Render the view of robot `i` for people; uint8, (384, 384, 3)."""
        env = self._at(i)
        return env.render_obs(env.vis_fb)

    def close(self) -> None:
        """Close the Miniworld environment."""
        self._env.close()

    def _at(self, i: int) -> RoomsEnv:
        """Return the Miniworld environment in the state of robot `i`."""
        env = self._env
        env.set_pose(self.pose[i])
        there = np.flatnonzero(self.colours[i] >= 0).tolist()
        for k in there:
            x, y = self.boxes[i, k]
            env.solids[k].pos = np.array([x, 0.0, -y])
            env.solids[k].color_vec = COLORS[COLOUR_NAMES[self.colours[i, k]]]
        env.show([env.solids[k] for k in there])
        return env

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_env": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _env=_make_env(state["_image_size"]))


def _make_env(image_size: tuple[int, int]) -> RoomsEnv:
    rooms = [{"min_x": low[0], "max_x": high[0], "min_z": -high[1], "max_z": -low[1]} for low, high in ROOMS.tolist()]
    return RoomsEnv(
        rooms,
        lambda: [Box("yellow") for _ in range(MAX_BOXES)],
        image_size,
        LARGE_SIZE,
        forward_step=FORWARD_DISTANCE,
        turn_step=TURN_DEG,
    )
