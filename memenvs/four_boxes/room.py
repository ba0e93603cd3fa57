"""The room with four boxes: where they stand, how a robot moves among them, and what it sees in our own renderer.

Frame: that of the project; Miniworld's floor plan (x, z) is (x, -y) here, so the room reaches from (0, -6) to (6, 0).
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
#: Side of the room and its height, side of a box, m.
SIZE, HEIGHT, BOX_SIDE = 6.0, 2.74, 0.8
#: Around a box, which is solid in a circle, and around the robot, m.
BOX_RADIUS, ROBOT_RADIUS = math.hypot(BOX_SIDE, BOX_SIDE) / 2, 0.4
#: One step, m, and one turn, degrees.
FORWARD_DISTANCE, TURN_DEG = 0.7, 15.0
#: Of the camera: height above the floor, m; angle between the upper and the lower edge of its images, degrees; rows and columns.
EYE_HEIGHT, FIELD_OF_VIEW_DEG, VIEW_SIZE = 1.5, 60.0, (60, 80)
#: x (m), y (m) and heading (rad) in the middle of the room.
START = (SIZE / 2, -SIZE / 2, 0.0)

COLOURS = ("blue", "red", "green", "yellow")
_LOW, _HIGH = BOX_RADIUS, SIZE - BOX_RADIUS
#: float64, (4, 2); middles of the boxes in the order of `COLOURS`, m.
BOX_POSITIONS = np.array([(_LOW, -_LOW), (_HIGH, -_LOW), (_HIGH, -_HIGH), (_LOW, -_HIGH)])

#: Rows and columns of pictures for people.
LARGE_SIZE = (288, 384)
# Our checkered floor has squares of 0.4 m, Miniworld's has 0.25 m: the room is drawn larger, which no picture shows. It is also drawn
# turned by a quarter, so that our light comes from the side that Miniworld's comes from, and one square aside, so that the same
# squares are black.
_DRAWN_SCALE, _DRAWN_TURN, _DRAWN_ASIDE = 1.6, math.pi / 2, 0.25
_BOX_COLOURS = ((0, 0, 245), (245, 0, 0), (0, 245, 0), (245, 245, 0))
# Greys that are as bright in our light as Miniworld's textures are in its light.
_WALLS = (
    ((-0.1, 0.0), (SIZE + 0.1, 0.1), 146),
    ((-0.1, -SIZE - 0.1), (SIZE + 0.1, -SIZE), 137),
    ((-0.1, -SIZE), (0.0, 0.0), 151),
    ((SIZE, -SIZE), (SIZE + 0.1, 0.0), 132),
)
_FLOOR_GREY, _CEILING_GREY = 134, 171


def is_blocked(position: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Where a robot cannot stand: too near to a wall or to the box of the goal, which alone is solid.

    Args:
        position: float64, (..., 2); m, not farther than one step outside the room.
        goal: float64, (..., 2); middle of the goal's box, m.

    Returns:
        bool, (...).
    """
    x, y = position[..., 0], -position[..., 1]
    to_wall = np.minimum(np.minimum(x, SIZE - x), np.minimum(y, SIZE - y))
    to_box = np.hypot(*np.moveaxis(position - goal, -1, 0))
    return (to_wall < ROBOT_RADIUS) | (to_box < ROBOT_RADIUS + BOX_RADIUS)


def ahead(pose: np.ndarray) -> np.ndarray:
    """Where one step leads: float64 (..., 3), x, y (m), heading (rad) -> float64 (..., 2), m."""
    heading = pose[..., 2]
    return pose[..., :2] + FORWARD_DISTANCE * np.stack([np.cos(heading), np.sin(heading)], -1)


def make_house() -> House:
    """The room as a home of one room; instances 1 to 4 are the boxes in the order of `COLOURS`."""
    builder = ShapeBuilder()

    def add(low: tuple, high: tuple, colour: tuple, name: str, material: str = "plain", instance: int = 0) -> None:
        corners = np.array([low, high])
        builder.add(
            BOX, corners.mean(0), np.ptp(corners, 0) / 2, colour=colour,
            semantic=CLASS_INDEX[name], material=MATERIAL_INDEX[material], instance=instance,
        )  # fmt: skip

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
    """The robot's camera at a size of its images."""
    tangent = math.tan(math.radians(FIELD_OF_VIEW_DEG) / 2) * width / height
    return Camera(height=height, width=width, hfov_deg=math.degrees(2 * math.atan(tangent)))


class BoxRoom:
    """N robots, each alone in such a room.

    Args:
        num_robots: N.
        threads: Threads that draw; results do not depend on it.

    Attributes:
        pose: float64, (N, 3); x, y (m), heading (rad, 0 to 2 pi).
        goal: int64, (N,); the box that is solid; the others can be walked through.
    """

    def __init__(self, num_robots: int, *, threads: int = 1) -> None:
        self.pose = np.tile(START, (num_robots, 1))
        self.goal = np.zeros(num_robots, np.int64)
        self._scene = _drawn_scene()
        self._renderer = Renderer(make_camera(*VIEW_SIZE), num_robots, threads=threads)
        for i in range(num_robots):
            self._renderer.set_scene(i, self._scene)

    def place(self, i: int, pose: tuple[float, float, float], goal: int) -> None:
        """Puts robot `i` somewhere (m, m, rad), and says which box is solid for it."""
        self.pose[i], self.goal[i] = pose, goal

    def move(self, actions: np.ndarray, active: np.ndarray) -> None:
        """Turns the robots of `active` (bool, (N,)), or moves them if nothing is in the way; `actions` int64, (N,)."""
        turn = active * ((actions == LEFT) - 1.0 * (actions == RIGHT)) * math.radians(TURN_DEG)
        there = ahead(self.pose)
        moves = active & (actions == FORWARD) & ~is_blocked(there, BOX_POSITIONS[self.goal])
        self.pose[:, :2] = np.where(moves[:, None], there, self.pose[:, :2])
        self.pose[:, 2] = (self.pose[:, 2] + turn) % (2 * math.pi)

    def draw(self, out: np.ndarray, which: np.ndarray) -> None:
        """Draws what the robots of `which` (bool, (N,)) see into their rows of `out`, uint8, (N, 60, 80, 3)."""
        self._renderer.render(_drawn_poses(self.pose), rgb=out, env_mask=which.copy())

    def draw_large(self, i: int) -> np.ndarray:
        """What robot `i` sees, for people; uint8, (288, 384, 3)."""
        return render_frame(self._scene, make_camera(*LARGE_SIZE), _drawn_poses(self.pose[i : i + 1])[0].tolist()).rgb

    def close(self) -> None:
        """Stops the drawing threads; they start again when needed."""
        self._renderer.close()


def _drawn_scene() -> Scene:
    """The room as it is drawn: turned and larger; see `_DRAWN_SCALE`."""
    house = make_house()
    shapes = house.shapes
    centre = np.column_stack([_drawn(shapes.centre[:, :2]), _DRAWN_SCALE * shapes.centre[:, 2]])
    half = _DRAWN_SCALE * shapes.half[:, [1, 0, 2]]
    shapes = replace(shapes, centre=centre.astype(np.float32), half=half.astype(np.float32))
    (room,) = house.rooms
    room = replace(room, polygon=_drawn(room.polygon))
    return Scene.from_house(replace(house, shapes=shapes, rooms=(room,), height=house.height * _DRAWN_SCALE))


def _drawn(position: np.ndarray) -> np.ndarray:
    """Positions (Q, 2) on the floor plan as they are drawn: turned by a quarter, moved aside, larger."""
    return _DRAWN_SCALE * np.column_stack([_DRAWN_ASIDE - position[:, 1], position[:, 0]])


def _drawn_poses(pose: np.ndarray) -> np.ndarray:
    """Poses (N, 3) as those of cameras in the drawn room: float64, (N, 5); x, y, z, heading, pitch."""
    drawn = np.zeros((len(pose), 5))
    drawn[:, :2], drawn[:, 2] = _drawn(pose[:, :2]), _DRAWN_SCALE * EYE_HEIGHT
    drawn[:, 3] = pose[:, 2] + _DRAWN_TURN
    return drawn
