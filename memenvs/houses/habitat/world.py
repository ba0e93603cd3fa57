"""World "habitat": homes of a scene dataset of habitat-sim."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from memenvs.houses.classes import FIRST_YCB_CLASS
from memenvs.houses.habitat.home_file import SemanticEntry, read_home
from memenvs.houses.habitat.navmesh import NavmeshMap
from memenvs.houses.habitat.package import import_habitat
from memenvs.houses.habitat.renderer import HabitatRenderer, HabitatScene
from memenvs.houses.habitat.robots import HabitatSimulator
from memenvs.houses.habitat.simulation import SceneName, SceneObject, simulation
from memenvs.houses.house import House
from memenvs.houses.house_world import Home, HouseWorld
from memenvs.houses.navigation.navmap import ROBOT_HEIGHT, ROBOT_RADIUS
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.interface import HomeRenderer
from memenvs.houses.splits import split_file
from memenvs.json_records import read_json

_SUFFIX = ".scene_dataset_config.json"
#: What a data set is and where to get one; ends the message about a missing one.
DATASET_HELP = (
    f"World 'habitat' needs habitat_dataset=FILE{_SUFFIX}. Make one of generated homes with `memenvs house --seed 1000 "
    "--habitat FOLDER`, or of ProcTHOR houses with `--file FILE`."
)


@dataclass(frozen=True, eq=False)
class HabitatHome(Home):
    """A home in habitat-sim.

    Attributes:
        name: Its scene.
        entries: Meaning of its semantic ids.
    """

    name: SceneName
    entries: list[SemanticEntry]

    def make_scene(self, house: House) -> HabitatScene:
        """Prepare the home for drawing; `house` is this home, or this home with small objects in it."""
        first = max((entry.id for entry in self.entries), default=0) + 1  # id of the first small object
        classes = np.zeros(first + len(house.objects) + 1, np.uint8)
        instances = np.zeros(len(classes), np.uint16)
        for entry in self.entries:
            classes[entry.id], instances[entry.id] = entry.semantic, entry.instance
        objects = []
        for number, each in enumerate(house.objects, start=first):
            classes[number], instances[number] = FIRST_YCB_CLASS + each.category, each.instance
            x, y, z = each.position
            objects.append(SceneObject(each.category, (x, z, -y), each.yaw, number))
        return HabitatScene(self.name, tuple(objects), classes, instances)


class HabitatWorld(HouseWorld):
    """Homes of a scene dataset that `memenvs house --habitat` has written.

    Images are drawn by habitat-sim. Its `PathFinder` moves robots and measures distances. Rooms and furniture are those
    of the exported houses, from `homes/NAME.json` beside the config. Scenes are in the order of their names.

    Args:
        dataset: The scene dataset config.
        split: "train" (the first three quarters of the scenes, rounded up), "validation" (the rest) or "all".
        robot_radius: See `HouseWorld`.
        robot_height: See `HouseWorld`.

    Raises:
        ValueError: Unknown split, the data set is not named, is no such file or has no home that was exported, the
            split is empty, or a size of the robot is out of range.
        FileNotFoundError: There is no such file.
        ImportError: habitat-sim is not installed, or cannot be loaded.
    """

    _simulator_class = HabitatSimulator  # its robots move by `PathFinder`

    def __init__(
        self,
        dataset: str | Path | None,
        split: str = "train",
        *,
        robot_radius: float = ROBOT_RADIUS,
        robot_height: float = ROBOT_HEIGHT,
    ) -> None:
        super().__init__(robot_radius=robot_radius, robot_height=robot_height)
        split_file(split, 0)  # an unknown split is reported before a missing file
        self._path = find_dataset(dataset)
        self._names = scene_names(self._path)
        import_habitat()
        rows = split_file(split, len(self._names))
        if len(rows) == 0:
            count = len(self._names)
            raise ValueError(f"split {split!r} of {self._path.name} is empty: it has {count} homes; use split='all'")
        self._names = [self._names[row] for row in rows]
        self._entries: dict[str, list[SemanticEntry]] = {}

    def __len__(self) -> int:
        return len(self._names)

    @cached_property
    def max_rooms(self) -> int:
        """Rooms of the largest home; all files of homes are read when this is first used."""
        return max(len(read_home(self._home_file(name))[0].rooms) for name in self._names)

    def make_house(self, index: int) -> House:
        """House number `index`, as its file describes it."""
        name = self._names[index]
        house, self._entries[name] = read_home(self._home_file(name))
        if house.name != name:
            raise ValueError(f"{self._home_file(name)}: name must be {name!r}, got {house.name!r}")
        return house

    def make_home(self, house: House) -> HabitatHome:
        """Add to a house the map from the scene's navigation mesh."""
        name = SceneName(str(self._path), str(self._path.parent / "scenes" / f"{house.name}.scene_instance.json"))
        simulation().enter(name)
        navmesh = simulation().navmesh(self.robot_radius, self.robot_height)
        return HabitatHome(house, NavmeshMap(house, navmesh), name, self._entries[house.name])

    def make_renderer(self, camera: Camera, num_envs: int, *, threads: int = 1) -> HomeRenderer:
        """Make a renderer by the simulator of this process."""
        return HabitatRenderer(camera, num_envs, threads=threads)

    def _home_file(self, name: str) -> Path:
        return self._path.parent / "homes" / f"{name}.json"


def find_dataset(dataset: str | Path | None) -> Path:
    """Return the absolute path of a scene dataset config.

    Raises:
        ValueError: None is given, or the name does not end as such a file's does.
        FileNotFoundError: There is no such file.
    """
    if dataset is None:
        raise ValueError(f"habitat_dataset is missing. {DATASET_HELP}")
    if not isinstance(dataset, (str, os.PathLike)):
        raise ValueError(f"habitat_dataset must be the path of a file, got {dataset!r}")
    path = Path(dataset).absolute()
    if not path.is_file():
        raise FileNotFoundError(f"no scene dataset at {path}. {DATASET_HELP}")
    if not path.name.endswith(_SUFFIX):
        raise ValueError(f"habitat_dataset must end in {_SUFFIX}, got {path.name!r}. {DATASET_HELP}")
    return path


def scene_names(path: Path) -> list[str]:
    """Names of the exported homes of a data set, in order.

    Raises:
        ValueError: The file is no scene dataset config, or a file of its homes is missing.
    """
    read_json(path)["scene_instances"]  # the package ends the process where it is no JSON
    suffix = ".scene_instance.json"
    names = sorted(each.name.removesuffix(suffix) for each in path.parent.glob(f"scenes/*{suffix}"))
    missing = [name for name in names if not (path.parent / "homes" / f"{name}.json").is_file()]
    if missing or not names:
        found = f"no homes/{missing[0]}.json, which `memenvs house --habitat` writes" if missing else "no scene"
        raise ValueError(f"{path}: there is {found}. {DATASET_HELP}")
    return names
