"""Worlds by name: houses that are generated, read from ProcTHOR, or of habitat-sim."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from itertools import islice
from pathlib import Path

from memenvs.checks import choices_for
from memenvs.data import find_procthor_file
from memenvs.houses.house import House
from memenvs.houses.house_world import CACHED_HOMES, Home, HouseWorld
from memenvs.houses.navigation.navmap import ROBOT_HEIGHT, ROBOT_RADIUS, NavigationMap
from memenvs.houses.procedural.bsp_plan import ROOM_ORDER
from memenvs.houses.procedural.generator import HouseConfig, procedural_house, suncg_house
from memenvs.houses.procthor.asset_sizes import check_unknown_assets
from memenvs.houses.procthor.loader import count_procthor, make_house, max_rooms, read_asset_sizes
from memenvs.houses.splits import PROCEDURAL_SPLITS, SUNCG_SPLITS, check_split, split_file
from memenvs.json_records import Field, each_record, read_record

__all__ = ["WORLDS", "Home", "HouseWorld", "ProceduralHouseWorld", "ProcthorHouseWorld", "make_house_world"]

WORLDS = ("procedural", "suncg_style", "procthor", "habitat")
#: `HouseWorld.unplayable` of files, by their state, split and robot: a process checks the same file once.
_UNPLAYABLE_IN_FILES: dict[Hashable, dict[Hashable, Mapping[int, str]]] = {}


@lru_cache(maxsize=CACHED_HOMES)
def _generate(seed: int, config: HouseConfig | None) -> House:
    return suncg_house(seed) if config is None else procedural_house(seed, config)


@lru_cache(maxsize=CACHED_HOMES)
def _shared_home(house: House, radius: float, height: float) -> Home:
    return Home(house, NavigationMap(house, radius=radius, height=height))


class ProceduralHouseWorld(HouseWorld):
    """Houses of `memenvs.houses.procedural.generator`, one for each seed of a split.

    Args:
        split: A key of `PROCEDURAL_SPLITS`; of `SUNCG_SPLITS` without a config.
        config: Settings of `procedural_house`; None for `suncg_house`.
        robot_radius: See `HouseWorld`.
        robot_height: See `HouseWorld`.

    Raises:
        ValueError: Unknown split, or a size of the robot is out of range.
    """

    always_playable = True

    def __init__(
        self,
        split: str,
        *,
        config: HouseConfig | None,
        robot_radius: float = ROBOT_RADIUS,
        robot_height: float = ROBOT_HEIGHT,
    ) -> None:
        super().__init__(robot_radius=robot_radius, robot_height=robot_height)
        splits = SUNCG_SPLITS if config is None else PROCEDURAL_SPLITS
        self._seeds = tuple(splits[check_split(split, splits)])
        self._config = config

    def __len__(self) -> int:
        return len(self._seeds)

    @property
    def max_rooms(self) -> int:
        """Largest number of rooms that the generator makes."""
        return len(ROOM_ORDER) if self._config is None else self._config.rooms[1]

    def make_house(self, index: int) -> House:
        """The house of seed number `index` of the split."""
        return _generate(self._seeds[index], self._config)

    def make_home(self, house: House) -> Home:
        """Add to a house its map, once for all worlds of a process that have used it recently."""
        return _shared_home(house, self.robot_radius, self.robot_height)


class ProcthorHouseWorld(HouseWorld):
    """Houses of a file in ProcTHOR's format.

    Args:
        split: "train" (the first three quarters of the file, rounded up), "validation" (the rest) or "all".
        houses: The file; None for `procthor/four_room.jsonl.gz` in the folder that `$MEMENVS_DATA` names.
        asset_sizes: File of the sizes of its assets; None for `asset_sizes.json.gz` beside it.
        unknown_assets: What to do about assets that have no size there, "class", "drop" or "error"; see
            `memenvs.houses.procthor.loader.load_procthor`. The first house that has such assets gives one warning.
        robot_radius: See `HouseWorld`.
        robot_height: See `HouseWorld`.

    Raises:
        ValueError: Unknown split, no file is given, the split has no house of the file, the asset sizes cannot be read,
            `unknown_assets` is none of the choices, or a size of the robot is out of range.
        FileNotFoundError: There is no such file, or no file of asset sizes.
    """

    def __init__(
        self,
        split: str,
        *,
        houses: str | Path | None = None,
        asset_sizes: str | Path | None = None,
        unknown_assets: str = "class",
        robot_radius: float = ROBOT_RADIUS,
        robot_height: float = ROBOT_HEIGHT,
    ) -> None:
        super().__init__(robot_radius=robot_radius, robot_height=robot_height)
        split_file(split, 0)  # an unknown split is reported before a missing file
        self._path = find_procthor_file(houses)
        check_unknown_assets(unknown_assets)
        self._unknown_assets = unknown_assets
        self._has_warned = False
        count = count_procthor(self._path)
        if count == 0:
            raise ValueError(f"{self._path}: holds no house")
        self._rows = split_file(split, count)
        if len(self._rows) == 0:
            raise ValueError(f"split {split!r} of {self._path.name} is empty: it has {count} houses; use split='all'")
        self._sizes = read_asset_sizes(self._path, self._rows.start, asset_sizes)
        files = self._path, Path(self._sizes.source)
        states = tuple((str(file.resolve()), file.stat().st_mtime_ns, file.stat().st_size) for file in files)
        key = states, unknown_assets, split, robot_radius, robot_height
        self.unplayable = _UNPLAYABLE_IN_FILES.setdefault(key, {})

    def __len__(self) -> int:
        return len(self._rows)

    @cached_property
    def max_rooms(self) -> int:
        """Rooms of the file's largest house; the file is read when this is first used.

        Raises:
            ValueError: The file cannot be read.
        """
        return max_rooms(self._path)

    def make_house(self, index: int) -> House:
        """House number `index` of the split."""
        row = self._rows[index]
        return self._make_house(partial(read_record, self._path, row), row)

    def _each_house(self) -> Iterator[Callable[[], House]]:
        rows = islice(enumerate(each_record(self._path)), self._rows.start, self._rows.stop)
        return (partial(self._make_house, read, row) for row, read in rows)

    def _make_house(self, read: Callable[[], Field], row: int) -> House:
        """Make the house of a row of the file."""
        house, report = make_house(read(), self._path, row, self._sizes, self._unknown_assets)
        if report is not None and not self._has_warned:
            warnings.warn(f"{report}; other houses may have such assets too", stacklevel=2)
            self._has_warned = True
        return house


def make_house_world(
    world: str,
    *,
    split: str | None = None,
    houses: str | Path | None = None,
    asset_sizes: str | Path | None = None,
    unknown_assets: str | None = None,
    habitat_dataset: str | Path | None = None,
    habitat_objects: str | Path | None = None,
    rooms: tuple[int, int] | None = None,
    robot_radius: float = ROBOT_RADIUS,
    robot_height: float = ROBOT_HEIGHT,
) -> HouseWorld:
    """Make a world by its name.

    Args:
        world: One of `WORLDS`.
        split: None for "train". "procedural": "train" (37 houses), "validation" (100), "test" (100) or "all".
            "suncg_style": "train" (156), "validation" (39), "test" (46) or "all". "procthor" and "habitat": "train"
            (three quarters of the file or data set), "validation" or "all"; HSSD and ReplicaCAD have splits of their
            own, with "test".
        houses: File of houses, for "procthor" only.
        asset_sizes: File of the sizes of its assets, for "procthor" only; None for `asset_sizes.json.gz` beside it.
        unknown_assets: What to do about assets without a size, for "procthor" only: "class", "drop" or "error"; None
            for "class".
        habitat_dataset: Scene dataset config of habitat-sim, or a stage, for "habitat" only; see
            `memenvs.houses.habitat.world.HabitatWorld`.
        habitat_objects: Folder of the configs of ExtObjNav's objects, for "habitat" only; None for our own models.
        rooms: Fewest and most rooms of a house, for "procedural" only; None for 6 to 14. Each room adds 12 to 17
            square metres.
        robot_radius: Radius of the robot that `Home.navmap` is for, m; > 0. ExtObjNav's is 0.30, the Scene Memory
            Transformer's 0.28.
        robot_height: Its height, m; what hangs higher does not block it.

    Returns:
        The world; houses are made when they are first used.

    Raises:
        ValueError: Unknown world or split, a setting does not suit the world, or a size of the robot is out of range.
        FileNotFoundError: There is no such file of houses.
        ImportError: World "habitat" lacks its package.
    """
    split = "train" if split is None else split
    if world in WORLDS[1:] and rooms is not None:
        raise ValueError(f"rooms must be None in world {world!r}, whose homes are fixed, got {rooms!r}")
    of_procthor = {"houses": houses, "asset_sizes": asset_sizes, "unknown_assets": unknown_assets}
    of_habitat = {"habitat_dataset": habitat_dataset, "habitat_objects": habitat_objects}
    of_others = {} if world == "habitat" else of_habitat
    if world != "procthor":
        of_others.update(of_procthor)
    for name, value in of_others.items():
        if value is not None and world in WORLDS:
            raise ValueError(f"{name} must be None in world {world!r}, got {str(value)!r}")
    if world == "habitat":
        from memenvs.houses.habitat.world import HabitatWorld  # needs no package until it is used

        return HabitatWorld(
            habitat_dataset, split, objects=habitat_objects, robot_radius=robot_radius, robot_height=robot_height
        )
    if world == "procthor":
        return ProcthorHouseWorld(
            split,
            houses=houses,
            asset_sizes=asset_sizes,
            unknown_assets="class" if unknown_assets is None else unknown_assets,
            robot_radius=robot_radius,
            robot_height=robot_height,
        )
    if world == "suncg_style":
        return ProceduralHouseWorld(split, config=None, robot_radius=robot_radius, robot_height=robot_height)
    if world == "procedural":
        rooms = (6, 14) if rooms is None else rooms
        config = HouseConfig(rooms=rooms, area=(min(60.0, 12.0 * rooms[0]), 200.0))
        return ProceduralHouseWorld(split, config=config, robot_radius=robot_radius, robot_height=robot_height)
    raise ValueError(f"unknown world {world!r}; {choices_for(world, WORLDS)}")
