"""Plain rooms in the package Miniworld. Importing this module opens a display."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from miniworld.entity import Entity
from miniworld.miniworld import MiniWorldEnv
from miniworld.params import DEFAULT_PARAMS


class RoomsEnv(MiniWorldEnv):
    """Rectangular rooms as a Miniworld environment whose state is set from outside.

    Attributes:
        solids: Boxes and balls.
    """

    def __init__(
        self,
        rooms: Sequence[Mapping[str, Any]],
        make_entities: Callable[[], list[Entity]],
        view_size: tuple[int, int],
        large_size: tuple[int, int],
        *,
        forward_step: float,
        turn_step: float,
    ) -> None:
        """Open the window that nobody sees, and build the rooms.

        Args:
            rooms: Arguments of Miniworld's `add_rect_room`, one room each.
            make_entities: Makes boxes and balls; called when there is a window, which their meshes need.
            view_size: Rows and columns of observations.
            large_size: Rows and columns of images for people.
            forward_step: m.
            turn_step: Degrees.
        """
        self._room_arguments = tuple(rooms)
        self._make_entities = make_entities
        params = DEFAULT_PARAMS.no_random()
        params.set("forward_step", forward_step)
        params.set("turn_step", turn_step)
        with contextlib.redirect_stdout(sys.stderr):  # it prints the number of samples per pixel
            super().__init__(
                max_episode_steps=sys.maxsize,
                obs_width=view_size[1],
                obs_height=view_size[0],
                window_width=large_size[1],
                window_height=large_size[0],
                params=params,
            )

    def set_pose(self, pose: np.ndarray) -> None:
        """Put the robot at x (m), y (m) with a heading (rad), in our frame."""
        x, y, heading = pose.tolist()
        self.agent.pos = np.array([x, 0.0, -y])
        self.agent.dir = heading

    def show(self, solids: Sequence[Entity]) -> None:
        """Make these boxes and balls the only ones that are there."""
        self.entities = [*solids, self.agent]

    def _gen_world(self) -> None:
        for arguments in self._room_arguments:
            self.add_rect_room(**arguments)
        self.solids = [self.place_entity(entity, pos=np.zeros(3), dir=0.0) for entity in self._make_entities()]
        self.place_agent(pos=np.zeros(3), dir=0.0)

    def _render_world(self, frame_buffer: Any, render_agent: bool) -> np.ndarray:
        # All Miniworld environments of a process keep their walls in one OpenGL display list, which another environment
        # may have overwritten.
        self._render_static()
        return super()._render_world(frame_buffer, render_agent)
