"""The room with four boxes: geometry, motion of the robots, and images from our renderer.

Frame: that of the project. Miniworld's floor plan has the axes x and z; its z is -y here. So the room extends from
(0, -6) to (6, 0).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, MATERIAL_INDEX
from memenvs.houses.house import BOX, House, Room, ShapeBuilder
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.renderer import Renderer, render_frame
from memenvs.houses.rendering.scene import Scene

LEFT, RIGHT, FORWARD, STAY = range(4)
#: Side and height of the room, side of a box; m.
SIZE = 6.0
HEIGHT = 2.74
BOX_SIDE = 0.8
#: Radius of the circle in which a box is solid, and of the robot; m.
BOX_RADIUS = math.hypot(BOX_SIDE, BOX_SIDE) / 2
ROBOT_RADIUS = 0.4
#: One step (m) and one turn (degrees).
FORWARD_DISTANCE = 0.7
TURN_DEG = 15.0
#: Camera: height above the floor (m), vertical field of view (degrees), rows and columns of its images.
CAMERA_HEIGHT = 1.5
FIELD_OF_VIEW_DEG = 60.0
VIEW_SIZE = (60, 80)
#: x (m), y (m) and heading (rad) in the middle of the room.
START = (SIZE / 2, -SIZE / 2, 0.0)

COLOURS = ("blue", "red", "green", "yellow")
_LOW = BOX_RADIUS
_HIGH = SIZE - BOX_RADIUS
#: float64, (4, 2); middles of the boxes in the order of `COLOURS`, m.
BOX_POSITIONS = np.array([(_LOW, -_LOW), (_HIGH, -_LOW), (_HIGH, -_HIGH), (_LOW, -_HIGH)])

#: Rows and columns of images for people.
LARGE_SIZE = (288, 384)
# The room is rendered with three changes, none of which an image shows. It is larger, because our checkered floor has
# squares of 0.4 m and Miniworld's has squares of 0.25 m. It is turned by 90 degrees, so that our light comes from the
# side of Miniworld's light. It is shifted by one square, so that the same squares are black.
_RENDER_SCALE = 1.6
_RENDER_TURN = math.pi / 2
_RENDER_SHIFT = 0.25
_BOX_COLOURS = ((0, 0, 245), (245, 0, 0), (0, 245, 0), (245, 245, 0))
# Two corners (x, y) and grey of each wall. The greys are as bright in our light as Miniworld's textures are in its
# light.
_WALLS = (
    ((-0.1, 0.0), (SIZE + 0.1, 0.1), 146),
    ((-0.1, -SIZE - 0.1), (SIZE + 0.1, -SIZE), 137),
    ((-0.1, -SIZE), (0.0, 0.0), 151),
    ((SIZE, -SIZE), (SIZE + 0.1, 0.0), 132),
)
_FLOOR_GREY = 134
_CEILING_GREY = 171


def is_blocked(position: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Test positions for collisions with a wall or the box of the goal, the only solid one.

    Args:
        position: float64, (..., 2); m, not farther than one step outside the room.
        goal: float64, (..., 2); middle of the goal's box, m.

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


def make_room() -> House:
    """Make the room as a house; instances 1 to 4 are the boxes in the order of `COLOURS`."""
    builder = ShapeBuilder()

    def add(low: tuple, high: tuple, colour: tuple, name: str, material: str = "plain", instance: int = 0) -> None:
        corners = np.array([low, high])
        builder.add(
            BOX,
            corners.mean(0),
            np.ptp(corners, 0) / 2,
            colour=colour,
            semantic=CLASS_INDEX[name],
            material=MATERIAL_INDEX[material],
            instance=instance,
        )

    for low, high, grey in _WALLS:
        add((*low, 0.0), (*high, HEIGHT), (grey,) * 3, "wall", "plaster")
    top = HEIGHT + 0.1
    add((-0.1, -SIZE - 0.1, HEIGHT), (SIZE + 0.1, 0.1, top), (_CEILING_GREY,) * 3, "ceiling", "tiles")
    half = BOX_SIDE / 2
    for k, (x, y) in enumerate(BOX_POSITIONS.tolist()):
        add(
            (x - half, y - half, 0.0),
            (x + half, y + half, BOX_SIDE),
            _BOX_COLOURS[k],
            "box",
            instance=k + 1,
        )
    polygon = np.array([(0.0, -SIZE), (SIZE, -SIZE), (SIZE, 0.0), (0.0, 0.0)])
    room = Room("other", polygon, MATERIAL_INDEX["checker"], (_FLOOR_GREY,) * 3)
    return House("four boxes", builder.build(), (room,), (), (), ("building", *COLOURS), height=top)


def make_camera(height: int, width: int) -> Camera:
    """Make the camera of the robot for a size of images."""
    tangent = math.tan(math.radians(FIELD_OF_VIEW_DEG) / 2) * width / height
    return Camera(height=height, width=width, hfov_deg=math.degrees(2 * math.atan(tangent)))


class BoxRoom:
    """N robots, each alone in such a room.

    Args:
        num_robots: N.
        threads: Rendering threads; results do not depend on it.

    Attributes:
        pose: float64, (N, 3); x, y (m), heading (rad, 0 to 2 pi).
        goal: int64, (N,); the box that is solid. Robots pass through the others.
    """

    def __init__(self, num_robots: int, *, threads: int = 1) -> None:
        self.pose = np.tile(START, (num_robots, 1))
        self.goal = np.zeros(num_robots, np.int64)
        self._scene = _rendered_scene()
        self._renderer = Renderer(make_camera(*VIEW_SIZE), num_robots, threads=threads)
        for i in range(num_robots):
            self._renderer.set_scene(i, self._scene)

    def place(self, i: int, pose: tuple[float, float, float], goal: int) -> None:
        """Set the pose (m, m, rad) of robot `i` and its goal."""
        self.pose[i] = pose
        self.goal[i] = goal

    def move(self, actions: np.ndarray, active: np.ndarray) -> None:
        """Turn robots, or move them forward where that is free.

        Args:
            actions: int64, (N,).
            active: bool, (N,); the other robots stay as they are.
        """
        turn = active * ((actions == LEFT) - 1.0 * (actions == RIGHT)) * math.radians(TURN_DEG)
        ahead = position_ahead(self.pose)
        moves = active & (actions == FORWARD) & ~is_blocked(ahead, BOX_POSITIONS[self.goal])
        self.pose[:, :2] = np.where(moves[:, None], ahead, self.pose[:, :2])
        self.pose[:, 2] = (self.pose[:, 2] + turn) % (2 * math.pi)

    def render(self, out: np.ndarray, env_mask: np.ndarray) -> None:
        """Render the views of robots.

        Args:
            out: uint8, (N, 60, 80, 3); written.
            env_mask: bool, (N,); robots whose images are written.
        """
        writeable_mask = env_mask.copy()  # the renderer takes no read-only arrays
        self._renderer.render(_camera_poses(self.pose), rgb=out, env_mask=writeable_mask)

    def render_large(self, i: int) -> np.ndarray:
        """Render the view of robot `i` for people; uint8, (288, 384, 3)."""
        return render_frame(self._scene, make_camera(*LARGE_SIZE), _camera_poses(self.pose[i : i + 1])[0].tolist()).rgb

    def close(self) -> None:
        """Stop the rendering threads; they start again when needed."""
        self._renderer.close()


def _rendered_scene() -> Scene:
    """The room as it is rendered, with the changes described at `_RENDER_SCALE`."""
    house = make_room()
    shapes = house.shapes
    centre = np.column_stack([_to_rendered_room(shapes.centre[:, :2]), _RENDER_SCALE * shapes.centre[:, 2]])
    half = _RENDER_SCALE * shapes.half[:, [1, 0, 2]]
    shapes = replace(shapes, centre=centre.astype(np.float32), half=half.astype(np.float32))
    (room,) = house.rooms
    room = replace(room, polygon=_to_rendered_room(room.polygon))
    return Scene.from_house(replace(house, shapes=shapes, rooms=(room,), height=house.height * _RENDER_SCALE))


def _to_rendered_room(position: np.ndarray) -> np.ndarray:
    """Move positions (Q, 2), m, into the rendered room: turned by 90 degrees, shifted and scaled."""
    return _RENDER_SCALE * np.column_stack([_RENDER_SHIFT - position[:, 1], position[:, 0]])


def _camera_poses(pose: np.ndarray) -> np.ndarray:
    """Camera poses in the rendered room for poses (N, 3): float64, (N, 5); x, y, z, heading, pitch."""
    poses = np.zeros((len(pose), 5))
    poses[:, :2] = _to_rendered_room(pose[:, :2])
    poses[:, 2] = _RENDER_SCALE * CAMERA_HEIGHT
    poses[:, 3] = pose[:, 2] + _RENDER_TURN
    return poses
