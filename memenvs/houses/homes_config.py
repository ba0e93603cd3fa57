"""Settings that all tasks in houses share: the world and its split; checks of start poses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from memenvs.checks import check_pair, check_start, plain_fields
from memenvs.houses.navigation.navmap import ROBOT_HEIGHT, ROBOT_RADIUS, NavigationMap
from memenvs.houses.playable import HomeCheck, PlayableHomes
from memenvs.houses.worlds import WORLDS, HouseWorld, make_house_world

#: x (m), y (m) and heading (rad) of a robot.
Pose = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class HomesConfig(ABC):
    """The settings that all tasks in houses share.

    Attributes:
        world: One of `memenvs.houses.worlds.WORLDS`, or a `HouseWorld`.
        split: Part of the world; None for "train". None with a `HouseWorld`.
        houses: File of ProcTHOR houses, for "procthor" only; None for `procthor/four_room.jsonl.gz` in the folder
            `$MEMENVS_DATA`.
        asset_sizes: File of the sizes of its assets, for "procthor" only; None for `asset_sizes.json.gz` beside it.
        unknown_assets: What to do about assets without a size, for "procthor" only: "class" gives them the median size
            of their object type, "drop" leaves them out, "error" refuses the house; None for "class".
        habitat_dataset: Scene dataset config of habitat-sim, for "habitat" only, such as the file that `memenvs house
            --habitat FOLDER` writes, or a stage alone.
        habitat_objects: Folder of the object configs of YCB, for "habitat" only; None for our own models.
        rooms: Fewest and most rooms of a house of world "procedural", 2 to 14; None for 6 to 14. None in other worlds.
        strict: True refuses a world with a home that the task cannot play; False leaves such homes out with a warning,
            see `memenvs.houses.playable`.
        robot_radius: Radius of the task's robot, m; no setting.
        robot_height: Its height, m; no setting.
    """

    robot_radius: ClassVar[float] = ROBOT_RADIUS
    robot_height: ClassVar[float] = ROBOT_HEIGHT

    world: str | HouseWorld = "procedural"
    split: str | None = None
    houses: str | Path | None = None
    asset_sizes: str | Path | None = None
    unknown_assets: str | None = None
    habitat_dataset: str | Path | None = None
    habitat_objects: str | Path | None = None
    rooms: tuple[int, int] | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        plain_fields(self)
        if not isinstance(self.world, (str, HouseWorld)):
            raise ValueError(f"world must be one of {list(WORLDS)} or a HouseWorld, got {self.world!r}")
        if isinstance(self.world, HouseWorld):
            of_files = ("houses", "asset_sizes", "unknown_assets", "habitat_dataset", "habitat_objects")
            for name in ("split", *of_files, "rooms"):
                value = getattr(self, name)
                if value is not None:
                    raise ValueError(f"{name} must be None with a HouseWorld, which has its own, got {value!r}")
        if self.rooms is not None:
            object.__setattr__(self, "rooms", check_range("rooms", self.rooms))
        if not isinstance(self.strict, bool):
            raise ValueError(f"strict must be True or False, got {self.strict!r}")

    @abstractmethod
    def home_check(self) -> HomeCheck:
        """Return the check of whether the task can play a home."""

    def playable_homes(self, task: str) -> PlayableHomes:
        """Make the world and find the homes in it that the task can play.

        Args:
            task: Name of the task, for messages.

        Raises:
            ValueError: Unknown world or split, a setting does not suit the world, or a home cannot be played and
                `strict` is True.
            FileNotFoundError: The file of homes is not there.
        """
        return PlayableHomes(self.make_world(), self.home_check(), task=task, strict=self.strict)

    def make_world(self) -> HouseWorld:
        """Make the world that these settings name.

        Its maps are for the task's robot; a `HouseWorld` has its own.

        Raises:
            ValueError: Unknown world or split, or a setting does not suit the world.
            FileNotFoundError: The file of homes or that of their asset sizes is not there.
        """
        if not isinstance(self.world, str):
            return self.world
        return make_house_world(
            self.world,
            split=self.split,
            houses=self.houses,
            asset_sizes=self.asset_sizes,
            unknown_assets=self.unknown_assets,
            habitat_dataset=self.habitat_dataset,
            habitat_objects=self.habitat_objects,
            rooms=self.rooms,
            robot_radius=self.robot_radius,
            robot_height=self.robot_height,
        )


def check_range(name: str, value: object, at_most: int | None = None) -> tuple[int, int]:
    """Return (fewest, most) as two integers.

    Raises:
        ValueError: They are no range from at least 1, or exceed `at_most`.
    """
    low, high = check_pair(name, value, "fewest and most")
    if not 1 <= low <= high or (at_most is not None and high > at_most):
        bound = "" if at_most is None else f" to at most {at_most}"
        raise ValueError(f"{name} must be a range from at least 1{bound}, got {(low, high)}")
    return low, high


def check_start_pose(navmap: NavigationMap, name: str, value: object) -> Pose:
    """Return the reset option `start` as (x, y, heading).

    Args:
        navmap: Map of the house.
        name: Name of the house, for the message.
        value: The option as it was given.

    Raises:
        ValueError: It is not three numbers, or not on the largest island of the house.
    """
    start = check_start(value)
    point = np.array([start[:2]])
    if navmap.islands(point)[0] != 0:
        nearest = navmap.snap(point)[0].round(3).tolist()
        raise ValueError(
            f"option 'start' must lie on the largest navigable island of {name!r}, got {value!r}; "
            f"the nearest point there is {nearest}"
        )
    return start


def draw_start_pose(navmap: NavigationMap, rng: np.random.Generator) -> Pose:
    """Draw a position uniformly from the largest island, and a heading uniformly from all."""
    return *navmap.random_point(rng), 2 * np.pi * rng.random()
