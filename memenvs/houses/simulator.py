"""Robots in homes: the small interface that tasks talk to. It moves, measures and draws; it knows no goal and no reward."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numba import njit

from memenvs.houses.navigation.arcs import drive_many
from memenvs.houses.navigation.geodesic import interpolate_field, interpolate_fields
from memenvs.houses.navigation.navmap import NavigationMap, slide_many
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.renderer import Renderer
from memenvs.houses.rendering.scene import Scene

#: The head camera of Habitat's Fetch robot: m ahead of the robot's axis, m above the floor.
CAMERA_AHEAD, CAMERA_HEIGHT = 0.25, 1.2
#: Nothing that pixels are counted of is larger, m from its middle.
THING_RADIUS = 0.15
#: The camera in whose images pixels of things are counted, whatever else is drawn; and its middle, the same pixels in less time.
COUNTING_CAMERA = Camera(height=256, width=256, hfov_deg=90.0)
MIDDLE_CAMERA = Camera(height=64, width=64, hfov_deg=math.degrees(2 * math.atan(32 / COUNTING_CAMERA.focal)))

#: Field of a robot without goals.
_NO_FIELD = np.full(1, np.inf, np.float32)


class Simulator:
    """N robots, each alone in a home.

    Args:
        num_robots: N.
        camera: Of the images that `render` draws.
        threads: Threads that share the drawing; results do not depend on it.
        camera_ahead: How far ahead of the robot's axis the camera is, m.
        camera_height: How far above the floor, m.

    Attributes:
        position: float64, (N, 2); (x, y) of the robot's axis, m.
        heading: float64, (N,); rad, in [0, 2 pi).
        pitch: float64, (N,); of the camera, rad, positive up.

    Source:
        Robot: Habitat's Fetch, head camera 0.25 m ahead of the axis and 1.2 m above the floor.
    """

    def __init__(
        self,
        num_robots: int,
        camera: Camera,
        *,
        threads: int = 1,
        camera_ahead: float = CAMERA_AHEAD,
        camera_height: float = CAMERA_HEIGHT,
    ) -> None:
        self.num_robots = num_robots
        self._mount = camera_ahead, camera_height
        self.position = np.zeros((num_robots, 2))
        self.heading = np.zeros(num_robots)
        self.pitch = np.zeros(num_robots)
        self._renderer = Renderer(camera, num_robots, threads=threads)
        self._maps: list[NavigationMap | None] = [None] * num_robots
        # One row of each bank is the flat grid of one robot's home; rows grow with the largest home.
        self._free = np.zeros((num_robots, 0), bool)
        self._room = np.zeros((num_robots, 0), np.int16)
        # Fields are not copied: there is one for each goal, and to copy one costs more than a whole step.
        self._fields = [_NO_FIELD] * num_robots
        self._addresses = np.full(num_robots, _NO_FIELD.ctypes.data)
        self._sizes = np.full(num_robots, len(_NO_FIELD))
        self._width = np.ones(num_robots, np.int64)
        self._origin = np.zeros((num_robots, 2))
        self._cell = 0.05
        self._instances: np.ndarray | None = None  # images of `count_pixels`, made when first needed

    def load(self, i: int, navmap: NavigationMap, scene: Scene) -> None:
        """Puts robot `i` into a home; `place` it next.

        Raises:
            ValueError: The cells of the map have another size than those of the other robots' maps.
        """
        if navmap.cell != self._cell:
            if any(other is not None for k, other in enumerate(self._maps) if k != i):
                raise ValueError(f"cell must be {self._cell} m as in the other robots' maps, got {navmap.cell} m")
            self._cell = navmap.cell
        missing = navmap.free.size - self._free.shape[1]
        if missing > 0:
            self._free, self._room = (np.pad(bank, ((0, 0), (0, missing))) for bank in (self._free, self._room))
        self._free[i, : navmap.free.size] = navmap.free.ravel()
        self._room[i, : navmap.free.size] = navmap.room.ravel()
        self._width[i] = navmap.shape[1]
        self._origin[i] = navmap.origin
        self._maps[i] = navmap
        self._fields[i], self._addresses[i], self._sizes[i] = _NO_FIELD, _NO_FIELD.ctypes.data, len(_NO_FIELD)
        self._renderer.set_scene(i, scene)

    def place(self, i: int, position: Sequence[float], heading: float, pitch: float) -> None:
        """Sets the pose of robot `i`; m and rad."""
        self.position[i] = position
        self.heading[i] = heading % (2 * math.pi)
        self.pitch[i] = pitch

    @property
    def pose(self) -> np.ndarray:
        """float64, (N, 3); x, y (m) and heading (rad) of every robot."""
        return np.column_stack([self.position, self.heading])

    @property
    def rooms(self) -> np.ndarray:
        """int64, (N,); index of the room that every robot is in; a doorway belongs to the first of its rooms."""
        column, row = ((self.position - self._origin) / self._cell).astype(np.int64).T
        return self._room[np.arange(self.num_robots), row * self._width + column].astype(np.int64)

    def forward(self, robot_mask: np.ndarray, distance: float) -> np.ndarray:
        """Moves robots straight on; obstacles deflect them.

        Args:
            robot_mask: bool, (N,); the robots that move.
            distance: How far, m.

        Returns:
            bool, (N,); whether something was in the way.
        """
        lengths = robot_mask * distance
        steps = np.stack([lengths * np.cos(self.heading), lengths * np.sin(self.heading)], axis=1)
        collided = np.empty(self.num_robots, bool)
        slide_many(self._free, self._width, self._origin, self._cell, self.position, steps, collided)
        return collided

    def turn(self, angles: np.ndarray) -> None:
        """Turns every robot by an angle (rad, (N,)), counter-clockwise."""
        self.heading = (self.heading + angles) % (2 * math.pi)

    def drive(self, robot_mask: np.ndarray, motions: np.ndarray, turns_freely: np.ndarray) -> np.ndarray:
        """Drives robots along arcs; one that would touch something stays where it was, as it was.

        Args:
            robot_mask: bool, (N,); the robots that drive.
            motions: float64, (N, 2); length of the arc (m, negative backwards) and turn (rad, counter-clockwise).
            turns_freely: bool, (N,); such a robot turns on the spot instead, and that is no collision.

        Returns:
            bool, (N,); True where it collided.
        """
        collided = np.empty(self.num_robots, bool)
        drive_many(
            self._free, self._width, self._origin, self._cell, self.position, self.heading, motions, robot_mask, turns_freely, collided
        )  # fmt: skip
        return collided

    def set_goals(self, i: int, field: np.ndarray) -> float:
        """Gives robot `i` a field of walking distances, float32, (H * W,), as `NavigationMap.field` makes it.

        Returns:
            Its distance now, m; inf if no way leads.

        Raises:
            ValueError: The field is not one of the robot's map.
        """
        if field.dtype != np.float32 or not field.flags.c_contiguous or len(field) != self._map(i).free.size:
            raise ValueError(
                f"field must be {self._map(i).free.size} float32 in one piece, got {field.shape} of {field.dtype}"
            )
        self._fields[i], self._addresses[i], self._sizes[i] = field, field.__array_interface__["data"][0], len(field)
        x, y = ((self.position[i] - self._origin[i]) / self._cell).tolist()
        return interpolate_field(field, int(self._width[i]), x, y)

    def geodesic(self) -> np.ndarray:
        """Walking distance of every robot to its goals, float64, (N,), m; inf where no way leads."""
        distances = np.empty(self.num_robots)
        interpolate_fields(
            self._addresses, self._sizes, self._width, self._origin, self._cell, self.position, distances
        )
        return distances

    def render(self, robot_mask: np.ndarray, images: Mapping[str, np.ndarray], *, camera: Camera | None = None) -> None:
        """Draws what head cameras see.

        Args:
            robot_mask: bool, (N,); robots whose rows are drawn.
            images: Arrays to draw into, any of "rgb", "depth" and "semantic"; see `Renderer.render` for their shapes.
            camera: In place of the one given at construction.
        """
        poses = head_camera_poses(self.position, self.heading, self.pitch, *self._mount)
        self._renderer.render(poses, env_mask=robot_mask.copy(), camera=camera, **images)

    def may_be_visible(self, rows: np.ndarray, places: np.ndarray, distance: float) -> np.ndarray:
        """Whether things are near and not certainly to the left or right of a picture of 90 degrees.

        Args:
            rows: int64, (R,); robots.
            places: float64, (R, K, 3); middles of the things, m; inf for none.
            distance: From the robot's axis on the floor plan, m.

        Returns:
            bool, (R, K); True where a thing of up to `THING_RADIUS` might have pixels.
        """
        out = np.zeros(places.shape[:2], bool)
        _may_be_visible(rows, self.position, self.heading, self.pitch, self._mount, places, distance, out)
        return out

    def count_pixels(self, robot_mask: np.ndarray, instances: np.ndarray) -> np.ndarray:
        """How many pixels things have in the 256 x 256 images of head cameras with a field of view of 90 degrees.

        Args:
            robot_mask: bool, (N,); robots that look.
            instances: int64, (N, K); ids of things, -1 for none.

        Returns:
            int64, (N, K); 0 where a robot does not look.
        """
        if self._instances is None:
            size = (self.num_robots, COUNTING_CAMERA.height, COUNTING_CAMERA.width)
            self._instances = np.zeros(size, np.uint16)
        poses = head_camera_poses(self.position, self.heading, self.pitch, *self._mount)
        self._renderer.render(poses, instance=self._instances, env_mask=robot_mask, camera=COUNTING_CAMERA)
        counts = np.zeros(instances.shape, np.int64)
        for i in np.flatnonzero(robot_mask):
            count_in(self._instances[i], instances[i], counts[i])
        return counts

    def _map(self, i: int) -> NavigationMap:
        found = self._maps[i]
        if found is None:
            raise RuntimeError(f"robot {i} is in no home; load one first")
        return found

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_instances": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._addresses = np.array([field.ctypes.data for field in self._fields])

    def close(self) -> None:
        """Stops the drawing threads; they start again when needed."""
        self._renderer.close()


class PixelCounter:
    """Counts pixels of things in a home from arbitrary poses, in the middle 64 x 64 of the 256 x 256 image."""

    def __init__(self) -> None:
        self._renderer = Renderer(MIDDLE_CAMERA, 1)
        self._image = np.zeros((1, MIDDLE_CAMERA.height, MIDDLE_CAMERA.width), np.uint16)

    def count(self, scene: Scene, poses: np.ndarray, instances: np.ndarray) -> np.ndarray:
        """Pixels of one thing from each pose.

        Args:
            scene: The home.
            poses: float64, (Q, 5); of the camera: x, y, z (m), heading and pitch (rad).
            instances: int64, (Q,); id of the thing.

        Returns:
            int64, (Q,).
        """
        self._renderer.set_scene(0, scene)
        counts = np.zeros((len(poses), 1), np.int64)
        for k in range(len(poses)):
            self._renderer.render(poses[k : k + 1], instance=self._image)
            count_in(self._image[0], instances[k : k + 1], counts[k])
        return counts[:, 0]


def head_camera_poses(
    position: np.ndarray,
    heading: np.ndarray,
    pitch: np.ndarray,
    ahead: float = CAMERA_AHEAD,
    height: float = CAMERA_HEIGHT,
) -> np.ndarray:
    """Poses of head cameras.

    Args:
        position: float64, (Q, 2); of the robots' axes, m.
        heading: float64, (Q,); rad.
        pitch: float64, (Q,); rad.
        ahead: How far ahead of the axis the camera is, m.
        height: How far above the floor, m.

    Returns:
        float64, (Q, 5); x, y, z (m), heading and pitch (rad).
    """
    poses = np.empty((len(position), 5))
    poses[:, 0] = position[:, 0] + ahead * np.cos(heading)
    poses[:, 1] = position[:, 1] + ahead * np.sin(heading)
    poses[:, 2] = height
    poses[:, 3] = heading
    poses[:, 4] = pitch
    return poses


@njit(nogil=True, cache=True)
def _may_be_visible(
    rows: np.ndarray,
    positions: np.ndarray,
    headings: np.ndarray,
    pitches: np.ndarray,
    mount: tuple[float, float],
    places: np.ndarray,
    distance: float,
    out: np.ndarray,
) -> None:
    """See `Simulator.may_be_visible`; `out` is bool, (R, K), False."""
    for r in range(len(rows)):
        i = rows[r]
        cos, sin = math.cos(headings[i]), math.sin(headings[i])
        for k in range(places.shape[1]):
            x, y = places[r, k, 0] - positions[i, 0], places[r, k, 1] - positions[i, 1]
            if x * x + y * y <= distance * distance:
                ahead, up = cos * x + sin * y - mount[0], places[r, k, 2] - mount[1]
                depth = ahead * math.cos(pitches[i]) + up * math.sin(pitches[i])
                out[r, k] = depth - abs(cos * y - sin * x) > -THING_RADIUS * math.sqrt(2.0)


@njit(nogil=True, cache=True)
def count_in(image: np.ndarray, instances: np.ndarray, counts: np.ndarray) -> None:
    """Adds to `counts` (int64, (K,)) how many pixels of `image` (uint16, (H, W)) belong to each of `instances` (int64, (K,))."""
    for row in image:
        for pixel in row:
            if pixel == 0:
                continue
            for k in range(len(instances)):
                if pixel == instances[k]:
                    counts[k] += 1
