"""World "habitat": homes of a scene dataset of habitat-sim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from memenvs.houses.classes import FIRST_YCB_CLASS, YCB_CLASSES
from memenvs.houses.habitat.dataset import Dataset, SceneName, missing_part
from memenvs.houses.habitat.description import BUILDING_CLASSES, HomeDescription, describe_scene
from memenvs.houses.habitat.navmesh import NavmeshMap
from memenvs.houses.habitat.package import import_habitat
from memenvs.houses.habitat.renderer import HabitatRenderer, HabitatScene
from memenvs.houses.habitat.robots import HabitatSimulator
from memenvs.houses.habitat.sight import find_seen_viewpoints
from memenvs.houses.habitat.simulation import SceneObject, simulation
from memenvs.houses.habitat.splits import split_scenes
from memenvs.houses.home_file import SemanticEntry, read_home
from memenvs.houses.house import Finish, House, PlacedObject
from memenvs.houses.house_world import CHECKED_HOMES, Home, HouseWorld
from memenvs.houses.navigation.navmap import ROBOT_HEIGHT, ROBOT_RADIUS
from memenvs.houses.object_model import ObjectModel
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.interface import HomeRenderer
from memenvs.houses.splits import split_file

#: Where the objects of ExtObjNav can be had; second line of the message about missing ones.
OBJECTS_HELP = (
    "Get them with `python -m habitat_sim.utils.datasets_download --uids ycb` (CC BY 4.0): their folder is "
    "objects/ycb/configs; None takes our own models."
)


@dataclass(frozen=True, eq=False)
class HabitatHome(Home):
    """A home in habitat-sim.

    Attributes:
        name: Its scene.
        entries: Meaning of its semantic ids.
        objects_folder: Folder of the configs of small objects; None for our own models.
        description: What was found out about a home of another data set; None for an exported one.
    """

    name: SceneName
    entries: list[SemanticEntry]
    objects_folder: Path | None = None
    description: HomeDescription | None = None

    @property
    def has_shapes(self) -> bool:
        """True for an exported home, whose house has all that is solid among its shapes."""
        return self.description is None

    def find_viewpoints(self, house: House, placed: PlacedObject) -> np.ndarray:
        """Find the cells from which a small object is seen; see `Home.find_viewpoints`."""
        if self.description is None:
            return super().find_viewpoints(house, placed)
        simulation().enter(self.name)
        return find_seen_viewpoints(self.navmap, np.array(placed.position), self.description.floor)

    def make_scene(self, house: House) -> HabitatScene:
        """Prepare the home for drawing; `house` is this home, or this home with small objects in it."""
        first = max((entry.id for entry in self.entries), default=0) + 1  # id of the first small object
        classes = np.zeros(first + len(house.objects) + 1, np.uint8)
        instances = np.zeros(len(classes), np.uint16)
        for entry in self.entries:
            classes[entry.id], instances[entry.id] = entry.semantic, entry.instance
        floor = 0.0 if self.description is None else self.description.floor
        objects = []
        for number, placed in enumerate(house.objects, start=first):
            classes[number], instances[number] = FIRST_YCB_CLASS + placed.category, placed.instance
            x, y, z = placed.position
            file = None if self.objects_folder is None else str(object_config(self.objects_folder, placed.category))
            objects.append(SceneObject(placed.category, (x, floor + z, -y), placed.yaw, number, file))
        has_building = self.description is not None and self.description.has_building
        building = BUILDING_CLASSES if has_building else None
        return HabitatScene(self.name, tuple(objects), classes, instances, floor, building, house.height)


class HabitatWorld(HouseWorld):
    """Homes of a scene dataset of habitat-sim, in the order of their names.

    Images are drawn by habitat-sim. Its `PathFinder` moves robots and measures distances. In a data set that
    `memenvs house --habitat` has written, rooms and furniture are those of the exported houses, from `homes/NAME.json`
    beside the config. In others they are found out in the simulator (`memenvs.houses.habitat.description`).

    Args:
        dataset: The scene dataset config, or a stage alone.
        split: "all"; "train", "validation" or "test" of HSSD and ReplicaCAD; of others "train" (the first three
            quarters of the scenes, rounded up) or "validation" (the rest).
        objects: Folder with an object config `NAME.object_config.json` for each of
            `memenvs.houses.classes.YCB_CLASSES`; None for our own models of them.
        robot_radius: See `HouseWorld`.
        robot_height: See `HouseWorld`.

    Raises:
        ValueError: Unknown split, the data set is not named, is no such file or has no scene, the split is empty, or a
            size of the robot is out of range.
        FileNotFoundError: There is no such file, or an object is missing.
        ImportError: habitat-sim is not installed, or cannot be loaded.
    """

    _simulator_class = HabitatSimulator  # its robots move by `PathFinder`

    def __init__(
        self,
        dataset: str | Path | None,
        split: str = "train",
        *,
        objects: str | Path | None = None,
        robot_radius: float = ROBOT_RADIUS,
        robot_height: float = ROBOT_HEIGHT,
    ) -> None:
        super().__init__(robot_radius=robot_radius, robot_height=robot_height)
        if split != "test":
            split_file(split, 0)  # an unknown split is reported before a missing file
        self._dataset = Dataset(dataset)
        self._objects = None if objects is None else Path(objects).absolute()
        if self._objects is not None:
            for category in range(len(YCB_CLASSES)):
                object_config(self._objects, category)
        import_habitat()
        names = self._dataset.names
        self._names = split_scenes(names, split)
        if not self._names:
            path = self._dataset.path.name
            raise ValueError(f"split {split!r} of {path} is empty: it has {len(names)} homes; use split='all'")
        # To load a home of another data set takes seconds, so that only the first one is checked.
        self.num_checked = CHECKED_HOMES if self._dataset.is_exported else 1
        self._entries: dict[str, list[SemanticEntry]] = {}
        self._descriptions: dict[str, HomeDescription] = {}
        self._models: dict[int, ObjectModel] = {}

    def __len__(self) -> int:
        return len(self._names)

    @cached_property
    def max_rooms(self) -> int | None:
        """Rooms of the largest exported home, whose files are all read; None in other data sets."""
        if not self._dataset.is_exported:
            return None
        return max(len(read_home(self._dataset.home_file(name))[0].rooms) for name in self._names)

    def make_house(self, index: int) -> House:
        """House number `index`, as its file describes it, or as it was found out."""
        name = self._names[index]
        if not self._dataset.is_exported:
            scene = self._dataset.scene(name)
            description = describe_scene(self._dataset, scene, name, self.robot_radius, self.robot_height)
            self._descriptions[name], self._entries[name] = description, description.entries
            return description.house
        file = self._dataset.home_file(name)
        house, self._entries[name] = read_home(file)
        if house.name != name:
            raise ValueError(f"{file}: name must be {name!r}, got {house.name!r}")
        return house

    def make_home(self, house: House) -> HabitatHome:
        """Add to a house the map from the scene's navigation mesh."""
        scene = self._dataset.scene(house.name)
        description = self._descriptions.pop(house.name, None)
        if description is not None:
            navmap = NavmeshMap(house, description.navmesh, description.floor, description.main)
        else:
            simulation().enter(scene)
            navmap = NavmeshMap(house, simulation().navmesh(self.robot_radius, self.robot_height))
        return HabitatHome(house, navmap, scene, self._entries[house.name], self._objects, description)

    @property
    def object_models(self) -> Callable[[int], ObjectModel] | None:
        """Function that makes a box of the size of the simulator's object; None for our models."""
        return None if self._objects is None else self._model

    def make_renderer(self, camera: Camera, num_envs: int, *, threads: int = 1) -> HomeRenderer:
        """Make a renderer by the simulator of this process."""
        return HabitatRenderer(camera, num_envs, threads=threads)

    def _model(self, category: int) -> ObjectModel:
        """A box of the size that an object has in the simulator."""
        if category not in self._models:
            assert self._objects is not None
            low, high = simulation().object_box(str(object_config(self._objects, category)))
            width, height, depth = (high - low).tolist()
            model = ObjectModel(YCB_CLASSES[category], width, depth)
            model.box((-width / 2, width / 2), (-depth / 2, depth / 2), (0.0, height), Finish("plain", (200, 200, 200)))
            self._models[category] = model
        return self._models[category]


def object_config(folder: Path, category: int) -> Path:
    """Path of the config of a small object, a category of `memenvs.houses.classes.YCB_CLASSES`.

    Raises:
        FileNotFoundError: There is none.
    """
    path = folder / f"{YCB_CLASSES[category]}.object_config.json"
    if not path.is_file():
        raise FileNotFoundError(f"habitat_objects: there is no {missing_part(path)}\n{OBJECTS_HELP}")
    return path
