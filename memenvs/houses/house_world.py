"""Base class of worlds: numbered homes, what draws them and what moves robots in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from memenvs.caches import RecentlyUsed
from memenvs.houses.house import House, PlacedObject
from memenvs.houses.navigation.navmap import CLIMB, ROBOT_HEIGHT, ROBOT_RADIUS, NavigationMap
from memenvs.houses.navigation.viewpoints import find_viewpoints
from memenvs.houses.object_model import ObjectModel
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.interface import HomeRenderer, HomeScene
from memenvs.houses.rendering.renderer import Renderer
from memenvs.houses.rendering.scene import Scene
from memenvs.houses.simulator import CAMERA_AHEAD, CAMERA_HEIGHT, Simulator
from memenvs.houses.ycb import move_object, place_objects

#: Homes that each world keeps in memory; a home with its map takes 1 to 2 MB.
CACHED_HOMES = 64
#: Homes that are checked when an environment is made: 3 to 15 seconds in files of ProcTHOR, once in a process.
CHECKED_HOMES = 512


@dataclass(frozen=True, eq=False)
class Home:
    """A house without small objects, and the map of where a robot can go in it.

    Attributes:
        house: The house.
        navmap: The map.
    """

    house: House
    navmap: NavigationMap

    @property
    def has_shapes(self) -> bool:
        """True if the house has all that is solid among its shapes, as not all of habitat-sim."""
        return True

    def make_scene(self, house: House) -> HomeScene:
        """Prepare the home for drawing.

        Args:
            house: This home, or this home with small objects in it.

        Raises:
            ValueError: It cannot be drawn.
        """
        return Scene.from_house(house)

    def find_viewpoints(self, house: House, placed: PlacedObject) -> np.ndarray:
        """Find the cells from which a small object is seen.

        Args:
            house: This home with small objects in it.
            placed: One of them.
        """
        return find_viewpoints(self.navmap, house.shapes, np.array(placed.position), placed.instance)


class HouseWorld(ABC):
    """A numbered set of houses; each is made, and its map built, when it is first used.

    Args:
        robot_radius: Radius of the robot that the maps are for, m; > 0.
        robot_height: Its height, m; what hangs higher does not block it. Larger than
            `memenvs.houses.navigation.navmap.CLIMB`.

    Attributes:
        always_playable: True if every task can play every home, so that none is checked when an environment is made.
        num_checked: Homes that are checked when an environment is made; those after them when a layout needs them.
        unplayable: Results of the checks that were made of its homes, see `memenvs.houses.playable`: check -> {number
            of a home that fails it: reason}.

    Raises:
        ValueError: A size is out of range.
    """

    always_playable: ClassVar[bool] = False
    num_checked: int = CHECKED_HOMES
    _simulator_class: ClassVar[type[Simulator]] = Simulator

    def __init__(self, *, robot_radius: float = ROBOT_RADIUS, robot_height: float = ROBOT_HEIGHT) -> None:
        if not robot_radius > 0:
            raise ValueError(f"robot_radius must be > 0 m, got {robot_radius!r}")
        if not robot_height > CLIMB:
            raise ValueError(f"robot_height must be > {CLIMB} m, got {robot_height!r}")
        self.robot_radius = robot_radius
        self.robot_height = robot_height
        self.unplayable: dict[Hashable, Mapping[int, str]] = {}
        self._homes: RecentlyUsed[int, Home] = RecentlyUsed(CACHED_HOMES)

    @abstractmethod
    def __len__(self) -> int:
        """Number of houses."""

    @abstractmethod
    def make_house(self, index: int) -> House:
        """House number `index`, without its map; always the same for the same number."""

    @property
    def max_rooms(self) -> int | None:
        """Number of rooms of the largest house; None if unknown."""
        return None

    def place_objects(
        self, house: House, rng: np.random.Generator, count_range: tuple[int, int], categories: tuple[int, ...]
    ) -> tuple[House, tuple[PlacedObject, ...]]:
        """Put small objects on the furniture of a house; see `memenvs.houses.ycb.place_objects`."""
        return place_objects(house, rng, count_range, categories, self.object_models)

    def move_object(
        self, house: House, placed: tuple[PlacedObject, ...], k: int, rng: np.random.Generator
    ) -> tuple[House, tuple[PlacedObject, ...]]:
        """Put one of the small objects on other furniture; see `memenvs.houses.ycb.move_object`."""
        return move_object(house, placed, k, rng, self.object_models)

    @property
    def object_models(self) -> Callable[[int], ObjectModel] | None:
        """Function that makes the model of a category of small objects; None for our own models."""
        return None

    def make_renderer(self, camera: Camera, num_envs: int, *, threads: int = 1) -> HomeRenderer:
        """Make a renderer of scenes of `Home.make_scene`."""
        return Renderer(camera, num_envs, threads=threads)

    def make_simulator(
        self,
        num_robots: int,
        camera: Camera,
        *,
        threads: int = 1,
        camera_ahead: float = CAMERA_AHEAD,
        camera_height: float = CAMERA_HEIGHT,
    ) -> Simulator:
        """Make a simulator of robots in these homes; see `memenvs.houses.simulator.Simulator`."""
        return self._simulator_class(
            num_robots,
            camera,
            threads=threads,
            camera_ahead=camera_ahead,
            camera_height=camera_height,
            make_renderer=self.make_renderer,
        )

    def make_home(self, house: House) -> Home:
        """Add to a house the map of where the robot can go in it."""
        return Home(house, NavigationMap(house, radius=self.robot_radius, height=self.robot_height))

    def home(self, index: int) -> Home:
        """House number `index` with its map, from the cache if it was used recently.

        Raises:
            IndexError: There is no house of this number.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"home must be 0 ... {len(self) - 1}, got {index}")
        return self._home(index, partial(self.make_house, index))

    def each_home(self) -> Iterator[Callable[[], Home]]:
        """Yield for each number, from 0 on, a function that does what `home` does.

        A file is read once for all homes, not once for each. A home whose function is not called is not made.
        """
        return (partial(self._home, index, make_house) for index, make_house in enumerate(self._each_house()))

    def _each_house(self) -> Iterator[Callable[[], House]]:
        """Yield for each number, from 0 on, a function that does what `make_house` does."""
        return (partial(self.make_house, index) for index in range(len(self)))

    def _home(self, index: int, make_house: Callable[[], House]) -> Home:
        return self._homes.get(index, lambda: self.make_home(make_house()))
