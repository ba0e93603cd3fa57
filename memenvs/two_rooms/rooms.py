"""The two rooms: geometry, motion of the robots, and images from our renderer.

Frame: that of the project; Miniworld's z is -y here. The small room extends from (0, -8) to (8, 0), the large one from
(12, -15) to (27, 0). They are not connected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memenvs.box_rooms.room import (
    BOX_RADIUS,
    ROBOT_RADIUS,
    RoomBuilder,
    camera_poses,
    make_camera,
    rendered_positions,
    rendered_scene,
)
from memenvs.houses.house import Colour, House
from memenvs.houses.rendering.renderer import Renderer, render_frame
from memenvs.houses.rendering.scene import BLUE, RED, Scene, X, Y

LEFT, RIGHT, FORWARD = range(3)
#: One step (m) and one turn (degrees).
FORWARD_DISTANCE = 0.8
TURN_DEG = 15.0
#: Numbers of the rooms.
SMALL, LARGE = range(2)
#: float64, (2, 2, 2); smallest and largest (x, y) of each room, m.
ROOMS = np.array([[(0.0, -8.0), (8.0, 0.0)], [(12.0, -15.0), (27.0, 0.0)]])

#: Names of the colours of boxes; the number of a colour is its index.
COLOUR_NAMES = ("green", "blue", "yellow")
_COLOURS: tuple[Colour, ...] = ((0, 245, 0), (0, 0, 245), (245, 245, 0))
#: Most boxes of a room.
MAX_BOXES = 15
#: Rows and columns of images for people.
LARGE_SIZE = (384, 384)


def make_house(rooms: Sequence[int], positions: np.ndarray, colours: np.ndarray) -> House:
    """Make rooms with boxes as a house; instances 1, 2, ... are the boxes.

    Args:
        rooms: Numbers of the rooms.
        positions: float, (K, 2); centres of the boxes, m.
        colours: int, (K,).
    """
    builder = RoomBuilder("two rooms")
    for room in rooms:
        low, high = ROOMS[room].tolist()
        builder.add_room(tuple(low), tuple(high))
    for position, colour in zip(positions.tolist(), colours.tolist(), strict=True):
        builder.add_box(COLOUR_NAMES[colour], position, _COLOURS[colour])
    return builder.build()


class BoxRooms:
    """N robots, each alone in one of the rooms with boxes.

    Args:
        num_robots: N.
        image_size: Rows and columns of images.
        threads: Rendering threads; results do not depend on it.

    Attributes:
        pose: float64, (N, 3); x, y (m), heading (rad, 0 to 2 pi).
        room: int64, (N,); number of the room.
        boxes: float64, (N, 15, 2); centres of the boxes, m.
        colours: int64, (N, 15); their colours; -1 where there is no box.
    """

    def __init__(self, num_robots: int, image_size: tuple[int, int], *, threads: int = 1) -> None:
        self.pose = np.zeros((num_robots, 3))
        self.room = np.zeros(num_robots, np.int64)
        self.boxes = np.zeros((num_robots, MAX_BOXES, 2))
        self.colours = np.full((num_robots, MAX_BOXES), -1)
        self._renderer = Renderer(make_camera(*image_size), num_robots, threads=threads)
        self._empty = [_room_scene(room) for room in (SMALL, LARGE)]

    def enter(self, i: int, room: int, pose: np.ndarray, boxes: np.ndarray, colours: np.ndarray) -> None:
        """Put a robot into a room.

        Args:
            i: The robot.
            room: Number of the room.
            pose: float, (3,); x, y (m), heading (rad).
            boxes: float, (K, 2); centres of the boxes, m.
            colours: int, (K,); their colours.
        """
        self.room[i] = room
        self.pose[i] = pose
        self.colours[i] = -1
        self.boxes[i, : len(boxes)] = boxes
        self.colours[i, : len(boxes)] = colours
        self._furnish(i)

    def move(self, actions: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Turn robots, or move them forward where that is free.

        Args:
            actions: int64, (N,).
            active: bool, (N,); the other robots stay as they are.

        Returns:
            int64, (N,); number of the box that a robot has run into, -1 for none.
        """
        turn = active * ((actions == LEFT) - 1.0 * (actions == RIGHT)) * math.radians(TURN_DEG)
        heading = self.pose[:, 2]
        ahead = self.pose[:, :2] + FORWARD_DISTANCE * np.stack([np.cos(heading), np.sin(heading)], -1)
        goes = active & (actions == FORWARD)
        low, high = np.moveaxis(ROOMS[self.room], 1, 0)
        at_wall = (np.minimum(ahead - low, high - ahead) < ROBOT_RADIUS).any(1)
        distance = np.hypot(*np.moveaxis(self.boxes - ahead[:, None], -1, 0))  # (N, 15)
        is_hit = (distance < ROBOT_RADIUS + BOX_RADIUS) & (self.colours >= 0)
        touches = goes & ~at_wall & is_hit.any(1)
        moves = goes & ~at_wall & ~touches
        self.pose[:, :2] = np.where(moves[:, None], ahead, self.pose[:, :2])
        self.pose[:, 2] = (heading + turn) % (2 * math.pi)
        return np.where(touches, is_hit.argmax(1), -1)

    def remove(self, i: int, box: int) -> None:
        """Take a box out of the room of robot `i`."""
        self.colours[i, box] = -1
        self._furnish(i)

    def render(self, out: np.ndarray, env_mask: np.ndarray) -> None:
        """Render the views of robots.

        Args:
            out: uint8, (N, H, W, 3); written.
            env_mask: bool, (N,); robots whose images are written.
        """
        writeable_mask = env_mask.copy()  # the renderer takes no read-only arrays
        self._renderer.render(camera_poses(self.pose), rgb=out, env_mask=writeable_mask)

    def render_large(self, i: int) -> np.ndarray:
        """Render the view of robot `i` for people; uint8, (384, 384, 3)."""
        scene = _with_boxes(self._empty[self.room[i]], self.boxes[i], self.colours[i])
        return render_frame(scene, make_camera(*LARGE_SIZE), camera_poses(self.pose[i : i + 1])[0].tolist()).rgb

    def close(self) -> None:
        """Stop the rendering threads; they start again when needed."""
        self._renderer.close()

    def _furnish(self, i: int) -> None:
        """Give the renderer the boxes of robot `i`."""
        self._renderer.set_scene(i, _with_boxes(self._empty[self.room[i]], self.boxes[i], self.colours[i]))


def _room_scene(room: int) -> Scene:
    """A room with as many boxes as it may have, one of each colour first; `_with_boxes` places them."""
    colours = np.arange(MAX_BOXES) % len(_COLOURS)
    return rendered_scene(make_house((room,), np.zeros((MAX_BOXES, 2)), colours))


def _with_boxes(scene: Scene, boxes: np.ndarray, colours: np.ndarray) -> Scene:
    """Place the boxes of a scene of `_room_scene`, and leave out the rest.

    Args:
        scene: The scene.
        boxes: float64, (15, 2); centres, m.
        colours: int64, (15,); -1 for no box.
    """
    first = scene.num_shapes - MAX_BOXES
    is_box = colours >= 0
    rows = scene.geometry[first : scene.num_shapes][is_box].copy()
    rows[:, [X, Y]] = rendered_positions(boxes[is_box])
    painted = scene.geometry[first : first + len(_COLOURS), RED : BLUE + 1]  # one box of each colour
    rows[:, RED : BLUE + 1] = painted[colours[is_box]]
    count = len(rows)
    return replace(
        scene,
        geometry=np.concatenate([scene.geometry[:first], rows, scene.geometry[scene.num_shapes :]]),
        attributes=np.delete(scene.attributes, np.s_[first + count : scene.num_shapes], 0),
        num_shapes=first + count,
    )
