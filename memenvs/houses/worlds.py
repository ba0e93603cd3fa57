"""Sets of homes: made up on the spot, or read from ProcTHOR files; and how small things come to stand in them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from memenvs.checks import choices_for
from memenvs.houses.house import House
from memenvs.houses.navigation.navmap import CLIMB, ROBOT_HEIGHT, ROBOT_RADIUS, NavigationMap
from memenvs.houses.procedural.generator import SPLITS as PROCEDURAL_SPLITS
from memenvs.houses.procedural.generator import SUNCG_SPLITS, SUNCG_STYLE, HouseConfig, procedural_house
from memenvs.houses.procthor.loader import count_procthor, load_procthor, most_rooms
from memenvs.houses.ycb import PlacedObject, place_objects

WORLDS = ("procedural", "suncg_style", "procthor")
PROCTHOR_SPLITS = ("train", "validation", "all")
#: Environment variable of the folder with data files, and where in it the homes of world "procthor" are.
DATA_VARIABLE, PROCTHOR_FILE = "MEMENVS_DATA", "procthor/four_room.jsonl.gz"
#: Homes kept ready by each world; a home with its map takes 1 to 2 MB.
CACHED_HOMES = 64


@dataclass(frozen=True, eq=False)
class Home:
    """A home without small things, and where one can go in it."""

    house: House
    navmap: NavigationMap


class World(ABC):
    """Homes by number.

    Args:
        robot_radius: Radius of the robot that the homes' maps are for, m; > 0.
        robot_height: Its height, m; what hangs higher is in nobody's way. Above `memenvs.houses.navigation.navmap.CLIMB`.

    Raises:
        ValueError: A size is out of range.
    """

    def __init__(self, *, robot_radius: float = ROBOT_RADIUS, robot_height: float = ROBOT_HEIGHT) -> None:
        if not robot_radius > 0:
            raise ValueError(f"robot_radius must be > 0 m, got {robot_radius!r}")
        if not robot_height > CLIMB:
            raise ValueError(f"robot_height must be > {CLIMB} m, got {robot_height!r}")
        self.robot_radius, self.robot_height = robot_radius, robot_height
        self._homes: OrderedDict[int, Home] = OrderedDict()

    @abstractmethod
    def __len__(self) -> int:
        """How many homes there are."""

    @abstractmethod
    def make_house(self, index: int) -> House:
        """Home number `index` as data; always the same for the same number."""

    @property
    def most_rooms(self) -> int | None:
        """Rooms of the home that has most; None if unknown."""
        return None

    def furnish(
        self, house: House, rng: np.random.Generator, count_range: tuple[int, int], categories: tuple[int, ...]
    ) -> tuple[House, tuple[PlacedObject, ...]]:
        """Puts small things on the furniture of a home; see `memenvs.houses.ycb.place_objects`."""
        return place_objects(house, rng, count_range=count_range, categories=categories)

    def home(self, index: int) -> Home:
        """Home number `index`, from the cache if it was used lately.

        Raises:
            IndexError: There is no home of this number.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"home must be 0 ... {len(self) - 1}, got {index}")
        if index not in self._homes:
            house = self.make_house(index)
            self._homes[index] = Home(house, NavigationMap(house, radius=self.robot_radius, height=self.robot_height))
            if len(self._homes) > CACHED_HOMES:
                self._homes.popitem(last=False)
        self._homes.move_to_end(index)
        return self._homes[index]


class ProceduralWorld(World):
    """Homes of `memenvs.houses.procedural.generator`, one for a seed.

    Args:
        split: A key of `splits`.
        config: What homes to make.
        splits: Seeds of the homes of each split.
        robot_radius: As `World`.
        robot_height: As `World`.

    Raises:
        ValueError: Unknown split, or a size of the robot is out of range.
    """

    def __init__(
        self,
        split: str,
        *,
        config: HouseConfig,
        splits: Mapping[str, Sequence[int]] = PROCEDURAL_SPLITS,
        robot_radius: float = ROBOT_RADIUS,
        robot_height: float = ROBOT_HEIGHT,
    ) -> None:
        super().__init__(robot_radius=robot_radius, robot_height=robot_height)
        self._seeds = tuple(splits[_check_split(split, splits)])
        self._config = config

    def __len__(self) -> int:
        return len(self._seeds)

    @property
    def most_rooms(self) -> int:
        """As many as the settings allow."""
        return self._config.rooms[1]

    def make_house(self, index: int) -> House:
        """The home of the seed number `index` of the split."""
        return procedural_house(self._seeds[index], self._config)


class ProcthorWorld(World):
    """Homes of a file in ProcTHOR's format.

    Args:
        split: "train" (the first three quarters of the file, rounded up), "validation" (the rest) or "all".
        houses: The file; None for `procthor/four_room.jsonl.gz` in the folder that `$MEMENVS_DATA` names.
        robot_radius: As `World`.
        robot_height: As `World`.

    Raises:
        ValueError: Unknown split, no file named, no home of the file is in the split, or a size of the robot is out of range.
        FileNotFoundError: The file is not there.
    """

    def __init__(
        self,
        split: str,
        *,
        houses: str | Path | None = None,
        robot_radius: float = ROBOT_RADIUS,
        robot_height: float = ROBOT_HEIGHT,
    ) -> None:
        super().__init__(robot_radius=robot_radius, robot_height=robot_height)
        _check_split(split, PROCTHOR_SPLITS)
        if houses is None:
            if not os.environ.get(DATA_VARIABLE):
                raise ValueError(
                    f"world 'procthor' needs houses=FILE (ProcTHOR houses, one JSON document a line), or ${DATA_VARIABLE} "
                    f"set to a folder with {PROCTHOR_FILE}; got neither"
                )
            houses = Path(os.environ[DATA_VARIABLE]) / PROCTHOR_FILE
        elif not isinstance(houses, (str, os.PathLike)):
            raise ValueError(f"houses must be the path of a file or None, got {houses!r}")
        self._path = Path(houses)
        if not self._path.is_file():
            raise FileNotFoundError(f"no file of ProcTHOR houses at {self._path}")
        count = count_procthor(self._path)
        if count == 0:
            raise ValueError(f"{self._path}: holds no house")
        cut = -(-3 * count // 4)
        self._rows = {"train": range(cut), "validation": range(cut, count), "all": range(count)}[split]
        if len(self._rows) == 0:
            raise ValueError(f"split {split!r} of {self._path.name} is empty: it has {count} houses; use split='all'")

    def __len__(self) -> int:
        return len(self._rows)

    @cached_property
    def most_rooms(self) -> int:
        """Read from the file when first asked for.

        Raises:
            ValueError: The file cannot be read.
        """
        return most_rooms(self._path)

    def make_house(self, index: int) -> House:
        """The home in line number `index` of the split."""
        return load_procthor(self._path, self._rows[index])


def make_world(
    world: str,
    *,
    split: str | None = None,
    houses: str | Path | None = None,
    rooms: tuple[int, int] | None = None,
    robot_radius: float = ROBOT_RADIUS,
    robot_height: float = ROBOT_HEIGHT,
) -> World:
    """A set of homes by name.

    Args:
        world: One of `WORLDS`.
        split: None for "train". "procedural": "train" (37 homes), "validation" (12) or "all". "suncg_style": "train" (156),
            "validation" (39), "test" (46) or "all". "procthor": "train" (three quarters of the file), "validation" or "all".
        houses: File of homes, for "procthor" only.
        rooms: Fewest and most rooms of a home, for "procedural" only; None for 6 to 14. Each room adds 12 to 17 square metres.
        robot_radius: Radius of the robot that `Home.navmap` is for, m; > 0. ExtObjNav's is 0.30, the Scene Memory Transformer's 0.28.
        robot_height: Its height, m; things whose bottom is higher do not block.

    Returns:
        The world; homes are made when they are first used.

    Raises:
        ValueError: Unknown world or split, a setting does not suit the world, or a size of the robot is out of range.
        FileNotFoundError: The file of homes is not there.
    """
    split = "train" if split is None else split
    if world in ("suncg_style", "procthor") and rooms is not None:
        raise ValueError(f"rooms must be None in world {world!r}, whose homes have the rooms they have, got {rooms!r}")
    if world in ("procedural", "suncg_style") and houses is not None:
        raise ValueError(f"houses must be None in world {world!r}, got {str(houses)!r}")
    if world == "procthor":
        return ProcthorWorld(split, houses=houses, robot_radius=robot_radius, robot_height=robot_height)
    if world == "suncg_style":
        return ProceduralWorld(
            split, config=SUNCG_STYLE, splits=SUNCG_SPLITS, robot_radius=robot_radius, robot_height=robot_height
        )
    if world == "procedural":
        rooms = (6, 14) if rooms is None else rooms
        config = HouseConfig(rooms=rooms, area=(min(60.0, 12.0 * rooms[0]), 200.0))
        return ProceduralWorld(split, config=config, robot_radius=robot_radius, robot_height=robot_height)
    raise ValueError(f"unknown world {world!r}; {choices_for(world, WORLDS)}")


def _check_split(split: str, splits: Collection[str]) -> str:
    if split not in list(splits):
        raise ValueError(f"unknown split {split!r}; {choices_for(split, splits)}")
    return split
