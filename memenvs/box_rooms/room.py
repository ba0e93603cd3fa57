"""Rectangular rooms with boxes and balls as houses, rendered as Miniworld renders them.

Frame: that of the project. Miniworld's floor plan has the axes x and z; its z is -y here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, MATERIAL_INDEX
from memenvs.houses.house import BOX, ELLIPSOID, Colour, House, Room, ShapeBuilder
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.scene import Scene

#: Height of Miniworld's walls, radius of its robot; m.
HEIGHT = 2.74
ROBOT_RADIUS = 0.4
#: Camera: height above the floor (m), vertical field of view (degrees).
CAMERA_HEIGHT = 1.5
FIELD_OF_VIEW_DEG = 60.0
#: Side of Miniworld's boxes, and radius of the circle in which they are solid; m.
BOX_SIDE = 0.8
BOX_RADIUS = math.hypot(BOX_SIDE, BOX_SIDE) / 2

# Miniworld's default textures (concrete walls, a checkered floor, tiles above): materials and greys that are as bright
# in our light as they are in Miniworld's. Walls are in the order of `RoomBuilder.add_room`.
_WALLS: tuple[Colour, ...] = tuple((grey,) * 3 for grey in (146, 137, 151, 132))
_FLOOR: tuple[str, Colour] = ("checker", (134,) * 3)
_CEILING: Colour = (171,) * 3

# A room is rendered with three changes, none of which an image shows. It is larger, because our checkered floor has
# squares of 0.4 m and Miniworld's has squares of 0.25 m. It is turned by 90 degrees, so that our light comes from the
# side of Miniworld's light. It is shifted by one square, so that the same squares are black.
_RENDER_SCALE = 1.6
_RENDER_TURN = math.pi / 2
_RENDER_SHIFT = 0.25
_THICKNESS = 0.1  # of walls and ceiling, m


class RoomBuilder:
    """Collect the shapes of rectangular rooms, boxes and balls, then make a house of them.

    Args:
        name: Name of the house.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._shapes = ShapeBuilder()
        self._rooms: list[Room] = []
        self._instances = ["building"]
        self._height = 0.0

    def add_room(
        self,
        low: tuple[float, float],
        high: tuple[float, float],
        *,
        walls: Sequence[Colour] = _WALLS,
        wall_material: str = "plaster",
        floor: tuple[str, Colour] = _FLOOR,
        height: float = HEIGHT,
        sky: Sequence[Colour] = (),
    ) -> None:
        """Add walls, floor, and a ceiling or the sky.

        Args:
            low: Smallest x and y, m.
            high: Largest x and y, m.
            walls: Colours of the walls at the largest y, the smallest y, the smallest x and the largest x.
            wall_material: Material of the walls.
            floor: Material and colour.
            height: Height of the walls, m.
            sky: Colours of what is seen over each of the walls; then there is no ceiling.
        """
        (x0, y0), (x1, y1) = low, high
        edge = _THICKNESS
        sides = (
            ((x0 - edge, y1), (x1 + edge, y1 + edge)),
            ((x0 - edge, y0 - edge), (x1 + edge, y0)),
            ((x0 - edge, y0), (x0, y1)),
            ((x1, y0), (x1 + edge, y1)),
        )
        for (start, end), colour in zip(sides, walls, strict=True):
            self._add_block((*start, 0.0), (*end, height), colour, "wall", wall_material)
        if sky:
            top = height + x1 - x0  # too high to be seen from inside
            for (start, end), colour in zip(sides, sky, strict=True):
                self._add_block((*start, height), (*end, top), colour, "other", "plain")
        else:
            top = height + edge
            self._add_block((x0 - edge, y0 - edge, height), (x1 + edge, y1 + edge, top), _CEILING, "ceiling", "tiles")
        polygon = np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])
        self._rooms.append(Room("other", polygon, MATERIAL_INDEX[floor[0]], floor[1]))
        self._height = max(self._height, top)

    def add_box(
        self, name: str, position: Sequence[float], colour: Colour, side: float = BOX_SIDE, bottom: float = 0.0
    ) -> None:
        """Add a box.

        Args:
            name: Its name.
            position: x and y of its centre, m.
            colour: Its colour.
            side: Its side, m.
            bottom: Height of its lower face, m.
        """
        x, y = position
        half = side / 2
        self._instances.append(name)
        self._add_block(
            (x - half, y - half, bottom),
            (x + half, y + half, bottom + side),
            colour,
            "box",
            "plain",
            instance=len(self._instances) - 1,
        )

    def add_ball(
        self, name: str, position: Sequence[float], colour: Colour, side: float = BOX_SIDE, bottom: float = 0.0
    ) -> None:
        """Add a ball; arguments as in `add_box`, `side` is its diameter."""
        self._instances.append(name)
        self._shapes.add(
            ELLIPSOID,
            (*position, bottom + side / 2),
            (side / 2,) * 3,
            colour=colour,
            semantic=CLASS_INDEX["toy"],
            material=MATERIAL_INDEX["plain"],
            instance=len(self._instances) - 1,
        )

    def build(self) -> House:
        """Make the house.

        Returns:
            A house whose boxes and balls have the instances 1, 2, ... in the order in which they were added.
        """
        return House(
            self._name,
            self._shapes.build(),
            tuple(self._rooms),
            (),
            (),
            tuple(self._instances),
            height=self._height,
        )

    def _add_block(
        self, low: tuple, high: tuple, colour: Colour, semantic: str, material: str, instance: int = 0
    ) -> None:
        corners = np.array([low, high])
        self._shapes.add(
            BOX,
            corners.mean(0),
            np.ptp(corners, 0) / 2,
            colour=colour,
            semantic=CLASS_INDEX[semantic],
            material=MATERIAL_INDEX[material],
            instance=instance,
        )


def make_camera(height: int, width: int) -> Camera:
    """Make the camera of the robot for a size of images."""
    tangent = math.tan(math.radians(FIELD_OF_VIEW_DEG) / 2) * width / height
    return Camera(height=height, width=width, hfov_deg=math.degrees(2 * math.atan(tangent)))


def rendered_scene(house: House) -> Scene:
    """Convert a house to the scene that is rendered, changed as at `_RENDER_SCALE`."""
    shapes = house.shapes
    centre = np.column_stack([rendered_positions(shapes.centre[:, :2]), _RENDER_SCALE * shapes.centre[:, 2]])
    half = _RENDER_SCALE * shapes.half[:, [1, 0, 2]]
    shapes = replace(shapes, centre=centre.astype(np.float32), half=half.astype(np.float32))
    rooms = tuple(replace(room, polygon=rendered_positions(room.polygon)) for room in house.rooms)
    return Scene.from_house(replace(house, shapes=shapes, rooms=rooms, height=house.height * _RENDER_SCALE))


def rendered_positions(position: np.ndarray) -> np.ndarray:
    """Move positions (Q, 2), m, into the rendered room: turn, shift and scale them."""
    return _RENDER_SCALE * np.column_stack([_RENDER_SHIFT - position[:, 1], position[:, 0]])


def rendered_heights(height: np.ndarray) -> np.ndarray:
    """Scale heights above the floor, m, to those of the rendered room."""
    return _RENDER_SCALE * height


def camera_poses(pose: np.ndarray) -> np.ndarray:
    """Convert poses (N, 3) to camera poses in the rendered room.

    Returns:
        float64, (N, 5); x, y, z (m), heading and pitch (rad).
    """
    poses = np.zeros((len(pose), 5))
    poses[:, :2] = rendered_positions(pose[:, :2])
    poses[:, 2] = _RENDER_SCALE * CAMERA_HEIGHT
    poses[:, 3] = pose[:, 2] + _RENDER_TURN
    return poses
