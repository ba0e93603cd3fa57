"""The room with four boxes: geometry, motion of the robots, and images from our renderer.

Frame: that of the project. Miniworld's floor plan has the axes x and z; its z is -y here. So the room extends from
(0, -6) to (6, 0).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from memenvs.box_rooms.room import (
    BOX_RADIUS,
    ROBOT_RADIUS,
    RoomBuilder,
    camera_poses,
    make_camera,
    rendered_scene,
)
from memenvs.four_boxes.arrangements import PUBLISHED, Arrangement
from memenvs.houses.house import House
from memenvs.houses.rendering.renderer import Renderer, render_frame
from memenvs.houses.rendering.scene import Scene

LEFT, RIGHT, FORWARD, STAY = range(4)
#: Side of the room, m.
SIZE = 6.0
#: One step (m) and one turn (degrees).
FORWARD_DISTANCE = 0.7
TURN_DEG = 15.0
#: Rows and columns of the images that the robot's camera renders.
VIEW_SIZE = (60, 80)
#: x (m), y (m) and heading (rad) in the centre of the room.
START = (SIZE / 2, -SIZE / 2, 0.0)

COLOURS = ("blue", "red", "green", "yellow")
_LOW = BOX_RADIUS
_HIGH = SIZE - BOX_RADIUS
#: float64, (4, 2); centres of the boxes, m: corner by corner, in the order of `COLOURS` as the paper arranges them.
BOX_POSITIONS = np.array([(_LOW, -_LOW), (_HIGH, -_LOW), (_HIGH, -_HIGH), (_LOW, -_HIGH)])

#: Rows and columns of images for people.
LARGE_SIZE = (288, 384)
_BOX_COLOURS = ((0, 0, 245), (245, 0, 0), (0, 245, 0), (245, 245, 0))


def is_blocked(position: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Test positions for collisions with a wall or the box of the goal, the only solid one.

    Args:
        position: float64, (..., 2); m, not farther than one step outside the room.
        goal: float64, (..., 2); centre of the goal's box, m.

    Returns:
        bool, (...); True where a robot cannot be.
    """
    x, y = position[..., 0], -position[..., 1]
    to_wall = np.minimum(np.minimum(x, SIZE - x), np.minimum(y, SIZE - y))
    to_box = np.hypot(*np.moveaxis(position - goal, -1, 0))
    return (to_wall < ROBOT_RADIUS) | (to_box < ROBOT_RADIUS + BOX_RADIUS)


def position_ahead(pose: np.ndarray) -> np.ndarray:
    """Compute the position after a step forward.

    Args:
        pose: float64, (..., 3); x, y (m) and heading (rad).

    Returns:
        float64, (..., 2); m.
    """
    heading = pose[..., 2]
    return pose[..., :2] + FORWARD_DISTANCE * np.stack([np.cos(heading), np.sin(heading)], -1)


def make_room(arrangement: Arrangement = PUBLISHED) -> House:
    """Make the room as a house; instances 1 to 4 are the boxes in the order of `COLOURS`."""
    builder = RoomBuilder("four boxes")
    builder.add_room((0.0, -SIZE), (SIZE, 0.0))
    for name, corner, colour in zip(COLOURS, arrangement, _BOX_COLOURS, strict=True):
        builder.add_box(name, BOX_POSITIONS[corner].tolist(), colour)
    return builder.build()


@lru_cache(maxsize=24)
def _scene(arrangement: Arrangement) -> Scene:
    """The scene that is rendered."""
    return rendered_scene(make_room(arrangement))


class BoxRoom:
    """N robots, each alone in such a room.

    Args:
        num_robots: N.
        threads: Rendering threads; results do not depend on it.

    Attributes:
        pose: float64, (N, 3); x, y (m), heading (rad, 0 to 2 pi).
        corner: int64, (N,); the corner whose box is solid. Robots pass through the others.
    """

    def __init__(self, num_robots: int, *, threads: int = 1) -> None:
        self.pose = np.tile(START, (num_robots, 1))
        self.corner = np.zeros(num_robots, np.int64)
        self._arrangement = [PUBLISHED] * num_robots
        self._renderer = Renderer(make_camera(*VIEW_SIZE), num_robots, threads=threads)
        for i in range(num_robots):
            self.arrange(i, PUBLISHED)

    def arrange(self, i: int, arrangement: Arrangement) -> None:
        """Put the boxes of robot `i` into these corners."""
        self._arrangement[i] = arrangement
        self._renderer.set_scene(i, _scene(arrangement))

    def place(self, i: int, pose: tuple[float, float, float], corner: int) -> None:
        """Set the pose (m, m, rad) of robot `i` and the corner of its goal."""
        self.pose[i] = pose
        self.corner[i] = corner

    def move(self, actions: np.ndarray, active: np.ndarray) -> None:
        """Turn robots, or move them forward where that is free.

        Args:
            actions: int64, (N,).
            active: bool, (N,); the other robots stay as they are.
        """
        turn = active * ((actions == LEFT) - 1.0 * (actions == RIGHT)) * math.radians(TURN_DEG)
        ahead = position_ahead(self.pose)
        moves = active & (actions == FORWARD) & ~is_blocked(ahead, BOX_POSITIONS[self.corner])
        self.pose[:, :2] = np.where(moves[:, None], ahead, self.pose[:, :2])
        self.pose[:, 2] = (self.pose[:, 2] + turn) % (2 * math.pi)

    def render(self, out: np.ndarray, env_mask: np.ndarray) -> None:
        """Render the views of robots.

        Args:
            out: uint8, (N, 60, 80, 3); written.
            env_mask: bool, (N,); robots whose images are written.
        """
        writeable_mask = env_mask.copy()  # the renderer takes no read-only arrays
        self._renderer.render(camera_poses(self.pose), rgb=out, env_mask=writeable_mask)

    def render_large(self, i: int) -> np.ndarray:
        """Render the view of robot `i` for people; uint8, (288, 384, 3)."""
        scene = _scene(self._arrangement[i])
        return render_frame(scene, make_camera(*LARGE_SIZE), camera_poses(self.pose[i : i + 1])[0].tolist()).rgb

    def close(self) -> None:
        """Stop the rendering threads; they start again when needed."""
        self._renderer.close()
