"""Simulator: the interface through which tasks use robots in homes.

It moves robots, measures distances and renders images for N environments at once. Rewards are computed by the task.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numba import njit

from memenvs.houses.navigation.arcs import drive_many
from memenvs.houses.navigation.geodesic import interpolate_fields, raise_to_straight
from memenvs.houses.navigation.navmap import CELL_SIZE, NavigationMap
from memenvs.houses.navigation.sliding import slide_many
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.interface import HomeScene, MakeRenderer
from memenvs.houses.rendering.renderer import Renderer

#: The head camera of Habitat's Fetch robot: m ahead of the robot's axis, m above the floor.
CAMERA_AHEAD, CAMERA_HEIGHT = 0.25, 1.2
#: Largest distance from the centre of an object to its surface, m, of the objects whose pixels are counted.
OBJECT_RADIUS = 0.15
#: The camera in whose images pixels of objects are counted, whatever the observation is.
COUNTING_CAMERA = Camera(height=256, width=256, hfov_deg=90.0)
#: The central 64 x 64 pixels of that image: the same counts for objects in the centre, in less time.
CENTRE_CROP_CAMERA = Camera(height=64, width=64, hfov_deg=math.degrees(2 * math.atan(32 / COUNTING_CAMERA.focal)))

#: Distance field of a robot without goals.
_NO_FIELD = np.full(1, np.inf, np.float32)


class Simulator:
    """N robots, each alone in a home.

    Args:
        num_robots: N.
        camera: Camera of the images that `render` draws.
        threads: Threads that share the drawing; results do not depend on it.
        camera_ahead: Distance from the robot's axis forward to the camera, m.
        camera_height: Height of the camera above the floor, m.
        make_renderer: Makes the renderer of the homes' world.

    Attributes:
        position: float64, (N, 2); (x, y) of the robot's axis, m.
        heading: float64, (N,); rad, in [0, 2 pi).
        pitch: float64, (N,); pitch of the camera, rad, positive up.

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
        make_renderer: MakeRenderer = Renderer,
    ) -> None:
        self.num_robots = num_robots
        self._mount = camera_ahead, camera_height
        self.position = np.zeros((num_robots, 2))
        self.heading = np.zeros(num_robots)
        self.pitch = np.zeros(num_robots)
        self._renderer = make_renderer(camera, num_robots, threads=threads)
        self._maps: list[NavigationMap | None] = [None] * num_robots
        # Row i is the flat grid of robot i's home; rows are as long as the largest home needs.
        self._free = np.zeros((num_robots, 0), bool)
        self._room = np.zeros((num_robots, 0), np.int16)
        # Distance fields are not copied: there is one per goal, and copying one costs more than a whole step.
        # Compiled code reads each at its address; `_fields` keeps them alive.
        self._fields = [_NO_FIELD] * num_robots
        self._addresses = np.full(num_robots, _NO_FIELD.ctypes.data)
        self._sizes = np.full(num_robots, len(_NO_FIELD))
        # Centres of goals: rows of one table, as many for each robot, and the first and last + 1 that robot i uses.
        self._goal_points = np.zeros((num_robots, 0, 2))
        self._goal_spans = np.zeros((num_robots, 2), np.int64)
        self._width = np.ones(num_robots, np.int64)
        self._origin = np.zeros((num_robots, 2))
        self._instance_images: np.ndarray | None = None  # images of `count_pixels`, allocated when first needed

    def load(self, i: int, navmap: NavigationMap, scene: HomeScene) -> None:
        """Put robot `i` into a home; call `place` next."""
        missing = navmap.free.size - self._free.shape[1]
        if missing > 0:
            self._free = np.pad(self._free, ((0, 0), (0, missing)))
            self._room = np.pad(self._room, ((0, 0), (0, missing)))
        self._free[i, : navmap.free.size] = navmap.free.ravel()
        self._room[i, : navmap.free.size] = navmap.room.ravel()
        self._width[i] = navmap.shape[1]
        self._origin[i] = navmap.origin
        self._maps[i] = navmap
        self._set_field(i, _NO_FIELD, np.zeros((0, 2)))
        self._renderer.set_scene(i, scene)

    def place(self, i: int, position: Sequence[float], heading: float, pitch: float) -> None:
        """Set the pose of robot `i`; m and rad."""
        self.position[i] = position
        self.heading[i] = heading % (2 * math.pi)
        self.pitch[i] = pitch

    @property
    def pose(self) -> np.ndarray:
        """float64, (N, 3); x, y (m) and heading (rad) of every robot."""
        return np.column_stack([self.position, self.heading])

    @property
    def rooms(self) -> np.ndarray:
        """int64, (N,); room that each robot is in; a doorway belongs to the first of its rooms."""
        column, row = ((self.position - self._origin) / CELL_SIZE).astype(np.int64).T
        return self._room[np.arange(self.num_robots), row * self._width + column].astype(np.int64)

    def forward(self, robot_mask: np.ndarray, distance: float) -> np.ndarray:
        """Move robots straight on; they slide along obstacles.

        Args:
            robot_mask: bool, (N,); the robots that move.
            distance: Length of the move, m.

        Returns:
            bool, (N,); True where the move was blocked.
        """
        lengths = robot_mask * distance
        steps = np.stack([lengths * np.cos(self.heading), lengths * np.sin(self.heading)], axis=1)
        collided = np.empty(self.num_robots, bool)
        slide_many(self._free, self._width, self._origin, CELL_SIZE, self.position, steps, collided)
        return collided

    def turn(self, angles: np.ndarray) -> None:
        """Turn every robot by an angle, float (N,), rad, counter-clockwise."""
        self.heading = (self.heading + angles) % (2 * math.pi)

    def drive(self, robot_mask: np.ndarray, motions: np.ndarray, turns_freely: np.ndarray) -> np.ndarray:
        """Drive robots along arcs; a robot that would touch an obstacle keeps its pose.

        Args:
            robot_mask: bool, (N,); the robots that drive.
            motions: float64, (N, 2); length of the arc (m, negative backwards) and turn (rad, counter-clockwise).
            turns_freely: bool, (N,); True for a robot that turns on the spot if its arc is blocked, without a
                collision.

        Returns:
            bool, (N,); True for robots that collided.
        """
        collided = np.empty(self.num_robots, bool)
        grids = (self._free, self._width, self._origin, CELL_SIZE)
        drive_many(*grids, self.position, self.heading, motions, robot_mask, turns_freely, collided)
        return collided

    def set_goals(self, i: int, field: np.ndarray, goals: np.ndarray | None = None) -> float:
        """Give robot `i` goals, as a distance field.

        Args:
            i: The robot.
            field: float32, (H * W,), m; as `NavigationMap.distance_field` returns it. It is not copied.
            goals: float64, (G, 2); its `NavigationMap.goal_points`. None finds them.

        Returns:
            Walking distance from the robot to its nearest goal, m; inf if no path leads there.

        Raises:
            ValueError: The field does not belong to the robot's map.
        """
        if field.dtype != np.float32 or not field.flags.c_contiguous or len(field) != self._map(i).free.size:
            raise ValueError(
                f"field must be {self._map(i).free.size} float32, C-contiguous, got {field.shape} of {field.dtype}"
            )
        goals = self._map(i).goal_points(field) if goals is None else goals
        self._set_field(i, field, goals)
        return float(self._map(i).distances(field, self.position[i][None], goals)[0])

    def geodesic_distances(self) -> np.ndarray:
        """Compute each robot's walking distance to its nearest goal; float64, (N,), m; or inf."""
        distances = np.empty(self.num_robots)
        interpolate_fields(self._addresses, self._sizes, self._width, self._origin, CELL_SIZE, self.position, distances)
        # The field is on a grid and can be a little below the straight line, which no path is shorter than.
        raise_to_straight(self._goal_points.reshape(-1, 2), self._goal_spans, self.position, distances)
        return distances

    def render(self, robot_mask: np.ndarray, images: Mapping[str, np.ndarray], *, camera: Camera | None = None) -> None:
        """Draw the images of head cameras.

        Args:
            robot_mask: bool, (N,); robots whose rows are drawn.
            images: Arrays to draw into, any of "rgb", "depth" and "semantic"; see `Renderer.render` for their shapes.
            camera: Used in place of the one given at construction.
        """
        poses = head_camera_poses(self.position, self.heading, self.pitch, *self._mount)
        # a copy, because the mask may be read-only, which the renderer refuses
        self._renderer.render(poses, env_mask=robot_mask.copy(), camera=camera, **images)

    def may_be_visible(self, rows: np.ndarray, objects: np.ndarray, distance: float) -> np.ndarray:
        """Find objects that are near and may be in an image of a 90-degree camera.

        A cheap test before `count_pixels`: False only for objects that are too far away, or certainly to the left or
        right of the image.

        Args:
            rows: int64, (R,); indices of robots.
            objects: float64, (R, K, 3); x, y, z of the centres of the objects, m; inf for none.
            distance: Largest distance from the robot's axis to the object, ignoring heights, m.

        Returns:
            bool, (R, K); True where an object with a radius of at most `OBJECT_RADIUS` might have pixels.
        """
        out = np.zeros(objects.shape[:2], bool)
        _may_be_visible(rows, self.position, self.heading, self.pitch, self._mount, objects, distance, out)
        return out

    def count_pixels(self, robot_mask: np.ndarray, instances: np.ndarray) -> np.ndarray:
        """Count pixels of objects in the images of `COUNTING_CAMERA` at the robots' heads.

        Args:
            robot_mask: bool, (N,); robots whose images are drawn.
            instances: int64, (N, K); ids of objects, -1 for none.

        Returns:
            int64, (N, K); 0 for robots whose images are not drawn.
        """
        if self._instance_images is None:
            size = (self.num_robots, COUNTING_CAMERA.height, COUNTING_CAMERA.width)
            self._instance_images = np.zeros(size, np.uint16)
        poses = head_camera_poses(self.position, self.heading, self.pitch, *self._mount)
        self._renderer.render(poses, instance=self._instance_images, env_mask=robot_mask, camera=COUNTING_CAMERA)
        counts = np.zeros(instances.shape, np.int64)
        for i in np.flatnonzero(robot_mask):
            _count_instances(self._instance_images[i], instances[i], counts[i])
        return counts

    def _set_field(self, i: int, field: np.ndarray, goals: np.ndarray) -> None:
        """Set the distance field of robot `i`, float32, (cells,), without a copy, and its goals, float64, (G, 2)."""
        self._fields[i] = field
        self._addresses[i] = field.ctypes.data
        self._sizes[i] = len(field)
        missing = len(goals) - self._goal_points.shape[1]
        if missing > 0:
            self._goal_points = np.pad(self._goal_points, ((0, 0), (0, missing), (0, 0)))
            self._goal_spans += (np.arange(self.num_robots) * missing)[:, None]
        self._goal_points[i, : len(goals)] = goals
        self._goal_spans[i, 1] = self._goal_spans[i, 0] + len(goals)

    def _map(self, i: int) -> NavigationMap:
        navmap = self._maps[i]
        if navmap is None:
            raise RuntimeError(f"robot {i} is in no home; load one first")
        return navmap

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_instance_images": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        # The arrays were copied by pickle, so their old addresses are invalid.
        self._addresses = np.array([field.ctypes.data for field in self._fields])

    def close(self) -> None:
        """Stop the drawing threads; they start again when needed."""
        self._renderer.close()


class PixelCounter:
    """Counts pixels of objects from arbitrary poses, with `CENTRE_CROP_CAMERA`.

    Args:
        make_renderer: Makes the renderer of the homes' world.
    """

    def __init__(self, make_renderer: MakeRenderer = Renderer) -> None:
        self._renderer = make_renderer(CENTRE_CROP_CAMERA, 1)
        self._image = np.zeros((1, CENTRE_CROP_CAMERA.height, CENTRE_CROP_CAMERA.width), np.uint16)

    def count(self, scene: HomeScene, poses: np.ndarray, instances: np.ndarray) -> np.ndarray:
        """Count the pixels of one object from each pose.

        Args:
            scene: The home.
            poses: float64, (Q, 5); poses of the camera: x, y, z (m), heading and pitch (rad).
            instances: int64, (Q,); id of the object whose pixels are counted from each pose.

        Returns:
            int64, (Q,).
        """
        self._renderer.set_scene(0, scene)
        counts = np.zeros((len(poses), 1), np.int64)
        for k in range(len(poses)):
            self._renderer.render(poses[k : k + 1], instance=self._image)
            _count_instances(self._image[0], instances[k : k + 1], counts[k])
        return counts[:, 0]


def head_camera_poses(
    position: np.ndarray,
    heading: np.ndarray,
    pitch: np.ndarray,
    ahead: float = CAMERA_AHEAD,
    height: float = CAMERA_HEIGHT,
) -> np.ndarray:
    """Compute the poses of head cameras from those of their robots.

    Args:
        position: float64, (Q, 2); the robots' axes, m.
        heading: float64, (Q,); rad.
        pitch: float64, (Q,); rad.
        ahead: Distance from the axis forward to the camera, m.
        height: Height of the camera above the floor, m.

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
    objects: np.ndarray,
    distance: float,
    out: np.ndarray,
) -> None:
    """Fill `out` (bool, (R, K), initially False) with the result of `Simulator.may_be_visible`.

    `positions` (N, 2), `headings` (N,) and `pitches` (N,) are those of all robots; `mount` is `camera_ahead` and
    `camera_height`; the rest is as in `may_be_visible`.
    """
    for r in range(len(rows)):
        i = rows[r]
        cos, sin = math.cos(headings[i]), math.sin(headings[i])
        for k in range(objects.shape[1]):
            x = objects[r, k, 0] - positions[i, 0]
            y = objects[r, k, 1] - positions[i, 1]
            if x * x + y * y <= distance * distance:
                # Coordinates of the object relative to the camera: ahead and up, then depth along the optical axis.
                ahead = cos * x + sin * y - mount[0]
                up = objects[r, k, 2] - mount[1]
                depth = ahead * math.cos(pitches[i]) + up * math.sin(pitches[i])
                # At 90 degrees the image ends where |right| = depth. A sphere of radius R reaches into it if its centre
                # is at most R outside that plane, whose distance is (|right| - depth) / sqrt(2).
                out[r, k] = depth - abs(cos * y - sin * x) > -OBJECT_RADIUS * math.sqrt(2.0)


@njit(nogil=True, cache=True)
def _count_instances(image: np.ndarray, instances: np.ndarray, counts: np.ndarray) -> None:
    """Add the pixels of some instances to their counts.

    Args:
        image: uint16, (H, W); instance of each pixel.
        instances: int64, (K,).
        counts: int64, (K,); changed in place.
    """
    for row in image:
        for pixel in row:
            if pixel == 0:
                continue
            for k in range(len(instances)):
                if pixel == instances[k]:
                    counts[k] += 1
