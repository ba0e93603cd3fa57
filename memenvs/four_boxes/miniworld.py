"""The room in the package Miniworld. Importing this module opens a display."""

from __future__ import annotations

import contextlib
import math
import sys
from typing import Any

import numpy as np
from miniworld.entity import Box
from miniworld.miniworld import MiniWorldEnv
from miniworld.params import DEFAULT_PARAMS

from memenvs.four_boxes.room import (
    BOX_POSITIONS,
    BOX_RADIUS,
    BOX_SIDE,
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
        goal: int64, (N,); the box that is solid. Robots pass through the others.
    """

    def __init__(self, num_robots: int) -> None:
        self.pose = np.tile(START, (num_robots, 1))
        self.goal = np.zeros(num_robots, np.int64)
        self._views = np.zeros((num_robots, *VIEW_SIZE, 3), np.uint8)
        self._env = _make_env()

    def place(self, i: int, pose: tuple[float, float, float], goal: int) -> None:
        """Set the pose (m, m, rad) of robot `i` and its goal."""
        self.pose[i] = pose
        self.goal[i] = goal
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

    def _at(self, i: int) -> _Env:
        """Return the Miniworld environment in the state of robot `i`."""
        env = self._env
        x, y, heading = self.pose[i].tolist()
        env.agent.pos = np.array([x, 0.0, -y])
        env.agent.dir = heading
        for k, box in enumerate(env.boxes):
            box.radius = BOX_RADIUS if k == self.goal[i] else -math.inf  # nothing collides with a radius of -inf
        return env

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_env": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _env=_make_env())


class _Env(MiniWorldEnv):
    """This room as a Miniworld environment."""

    def _gen_world(self) -> None:
        self.add_rect_room(min_x=0, max_x=SIZE, min_z=0, max_z=SIZE)
        self.boxes = [
            self.place_entity(Box(colour, BOX_SIDE), pos=np.array([x, 0.0, -y]), dir=0.0)
            for colour, (x, y) in zip(COLOURS, BOX_POSITIONS.tolist(), strict=True)
        ]
        self.place_agent(pos=np.array([START[0], 0.0, -START[1]]), dir=START[2])

    def _render_world(self, frame_buffer: Any, render_agent: bool) -> np.ndarray:
        # All Miniworld environments of a process keep their walls in one OpenGL display list, which another environment
        # may have overwritten.
        self._render_static()
        return super()._render_world(frame_buffer, render_agent)


def _make_env() -> _Env:
    params = DEFAULT_PARAMS.no_random()
    params.set("forward_step", FORWARD_DISTANCE)
    params.set("turn_step", TURN_DEG)
    height, width = LARGE_SIZE
    with contextlib.redirect_stdout(sys.stderr):  # it prints the number of samples per pixel
        return _Env(
            max_episode_steps=sys.maxsize,
            obs_width=VIEW_SIZE[1],
            obs_height=VIEW_SIZE[0],
            window_width=width,
            window_height=height,
            params=params,
        )
