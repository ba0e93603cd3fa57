"""Homes as the recall tasks use them: positions, places and views of an observer.

The tasks use nothing else of a home. So a home of another simulator needs the methods of `RecallHome` and `Cameras`.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from memenvs.houses.homes_config import check_start_pose, draw_start_pose
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.interface import HomeScene, MakeRenderer
from memenvs.houses.rendering.renderer import Renderer
from memenvs.houses.worlds import Home, HouseWorld

#: Height of the camera above the floor, m. It is above the observer's axis, so that turns move it nowhere.
CAMERA_HEIGHT = 1.2
#: A place counts if the observer can be in at least this area of it, square metres.
MIN_PLACE_AREA = 1.0


class RecallHome:
    """A home with its places.

    Args:
        number: Its number in its world.
        home: House and navigation map.

    Attributes:
        number: As given.
        house: The house, for maps.
        centres: float64, (P, 2); centre of each room, m. A place is the part of the home that is nearest to one of
            them.
    """

    def __init__(self, number: int, home: Home) -> None:
        self.number = number
        self._home = home
        self.house = home.house
        self.navmap = home.navmap
        self.centres = np.array([_centroid(room.polygon) for room in home.house.rooms])

    @cached_property
    def scene(self) -> HomeScene:
        """The home prepared for rendering."""
        return self._home.make_scene(self.house)

    @property
    def name(self) -> str:
        """Name of the home."""
        return self.house.name

    def places(self, points: np.ndarray) -> np.ndarray:
        """Find the place of each point.

        Args:
            points: float, (Q, 2) or more columns; x and y, m.

        Returns:
            int64, (Q,); number of the nearest room centre.

        Source:
            SAT, appendix D.11: the room whose centre is nearest.
        """
        gaps = np.asarray(points)[:, None, :2] - self.centres
        return (gaps**2).sum(-1).argmin(1)

    def random_pose(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a position where the observer can be, and a heading; float64, (3,), m and rad."""
        return np.array(draw_start_pose(self.navmap, rng))

    def check_pose(self, value: object) -> np.ndarray:
        """Return the reset option `start` as a pose (3,).

        Raises:
            ValueError: It is not three numbers, or not where the observer can be.
        """
        return np.array(check_start_pose(self.navmap, self.name, value))

    def distances_to(self, goal: np.ndarray) -> np.ndarray:
        """Prepare paths to a goal (2,), m, for `turns_towards`."""
        return self.navmap.distance_field(self.navmap.cells(goal[None]))

    def turns_towards(self, distances: np.ndarray, pose: np.ndarray, turn: float, forward: float) -> int | None:
        """Find the turns after which a step brings the observer nearest to a goal.

        Args:
            distances: From `distances_to`.
            pose: float64, (3,); m and rad.
            turn: One turn, rad.
            forward: One step, m.

        Returns:
            Number of turns, positive to the left; None where no step leads nearer.
        """
        turns, gain = self.navmap.steer(distances, pose[:2], float(pose[2]), turn, forward)
        return turns if gain > 0 else None

    def forward(self, pose: np.ndarray, distance: float) -> np.ndarray:
        """Move a pose (3,) straight on; it slides along obstacles."""
        moved, _ = self.navmap.move(pose[None, :2], pose[2:], distance)
        return np.array([*moved[0], pose[2]])

    def check_places(self) -> None:
        """Check that there are at least two places.

        Raises:
            ValueError: There are fewer.
        """
        cells = np.flatnonzero(self.navmap.island.ravel() == 0)
        counts = np.bincount(self.places(self.navmap.points(cells)), minlength=len(self.centres))
        large = int((counts * self.navmap.cell_size**2 >= MIN_PLACE_AREA).sum())
        if large < 2:
            raise ValueError(
                f"house {self.name!r} must have two places of {MIN_PLACE_AREA} square metres where the observer can "
                f"be, got {large}"
            )


class Cameras:
    """Cameras of N observers, each in a home.

    Args:
        num_observers: N.
        image_size: Rows and columns of the images.
        hfov_deg: Horizontal field of view, degrees.
        threads: Rendering threads; results do not depend on it.
        make_renderer: Makes the renderer of the homes' world.
    """

    def __init__(
        self,
        num_observers: int,
        image_size: tuple[int, int],
        hfov_deg: float,
        *,
        threads: int = 1,
        make_renderer: MakeRenderer = Renderer,
    ) -> None:
        height, width = image_size
        camera = Camera(height=height, width=width, hfov_deg=hfov_deg)
        self._renderer = make_renderer(camera, num_observers, threads=threads)

    def enter(self, i: int, home: RecallHome) -> None:
        """Put observer `i` into a home."""
        self._renderer.set_scene(i, home.scene)

    def draw(self, poses: np.ndarray, env_mask: np.ndarray, out: np.ndarray) -> None:
        """Draw what observers see.

        Args:
            poses: float64, (N, 3); x, y (m) and heading (rad).
            env_mask: bool, (N,); observers whose images are drawn.
            out: uint8, (N, H, W, 3); written for these.
        """
        cameras = np.zeros((len(poses), 5))
        cameras[:, :2] = poses[:, :2]
        cameras[:, 2] = CAMERA_HEIGHT
        cameras[:, 3] = poses[:, 2]
        self._renderer.render(cameras, rgb=out, env_mask=env_mask.copy())  # the mask may be read-only

    def draw_all(self, home: RecallHome, poses: np.ndarray, out: np.ndarray) -> None:
        """Draw what a home shows from many poses; every observer enters it and draws a share.

        Args:
            home: The home.
            poses: float64, (Q, 3); x, y (m) and heading (rad).
            out: uint8, (Q, H, W, 3); written.
        """
        count = self._renderer.num_envs
        for i in range(min(count, len(poses))):
            self.enter(i, home)
        images = np.zeros((count, *out.shape[1:]), np.uint8)
        padded = np.zeros((count, 3))
        for first in range(0, len(poses), count):
            some = poses[first : first + count]
            padded[: len(some)] = some
            self.draw(padded, np.arange(count) < len(some), images)
            out[first : first + len(some)] = images[: len(some)]

    def close(self) -> None:
        """Stop the rendering threads; they start again when needed."""
        self._renderer.close()


def check_home(world: HouseWorld, index: int) -> None:
    """Check that home `index` of a world can be drawn and has an island to be on.

    Raises:
        ValueError: It has not.
    """
    home = world.home(index)
    home.make_scene(home.house)


def check_places(world: HouseWorld, index: int) -> None:
    """Check that home `index` of a world can be drawn and has two places.

    Raises:
        ValueError: It has not.
    """
    check_home(world, index)
    RecallHome(index, world.home(index)).check_places()


def _centroid(polygon: np.ndarray) -> np.ndarray:
    """Centre of mass of a polygon (P, 2)."""
    after = np.roll(polygon, -1, 0)
    cross = polygon[:, 0] * after[:, 1] - after[:, 0] * polygon[:, 1]
    return ((polygon + after) * cross[:, None]).sum(0) / (3 * cross.sum())
