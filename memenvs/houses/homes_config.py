"""Settings that all tasks in houses share: the world and its split; checks of start poses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memenvs.checks import check_pair, check_start
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.houses.worlds import WORLDS, HouseWorld, make_house_world

#: x (m), y (m) and heading (rad) of a robot.
Pose = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class HomesConfig:
    """The settings that all tasks in houses share.

    Attributes:
        world: One of `memenvs.houses.worlds.WORLDS`, or a `HouseWorld`.
        split: Part of the world; None for "train". None with a `HouseWorld`.
        houses: File of ProcTHOR houses, for "procthor" only; None for `procthor/four_room.jsonl.gz` in the folder
            `$MEMENVS_DATA`.
        asset_sizes: File of the sizes of its assets, for "procthor" only; None for `asset_sizes.json.gz` beside it.
        unknown_assets: What to do about assets without a size, for "procthor" only: "class" gives them the median size
            of their class, "drop" leaves them out, "error" refuses the house; None for "class".
        rooms: Fewest and most rooms of a house of world "procedural", 2 to 14; None for 6 to 14. None in other worlds.
    """

    world: str | HouseWorld = "procedural"
    split: str | None = None
    houses: str | Path | None = None
    asset_sizes: str | Path | None = None
    unknown_assets: str | None = None
    rooms: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.world, (str, HouseWorld)):
            raise ValueError(f"world must be one of {list(WORLDS)} or a HouseWorld, got {self.world!r}")
        if isinstance(self.world, HouseWorld):
            for name in ("split", "houses", "asset_sizes", "unknown_assets", "rooms"):
                value = getattr(self, name)
                if value is not None:
                    raise ValueError(f"{name} must be None with a HouseWorld, which has its own, got {value!r}")
        if self.rooms is not None:
            object.__setattr__(self, "rooms", check_range("rooms", self.rooms))

    def make_world(self, **robot: float) -> HouseWorld:
        """Make the world that these settings name.

        Args:
            robot: `robot_radius` and `robot_height`, m, of the robot that the navigation maps are for; by default
                those of ExtObjNav. A `HouseWorld` has its own.

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
            rooms=self.rooms,
            **robot,
        )


def check_range(name: str, value: object) -> tuple[int, int]:
    """Return (fewest, most) as two integers.

    Raises:
        ValueError: They are no range from at least 1.
    """
    low, high = check_pair(name, value, "fewest and most")
    if not 1 <= low <= high:
        raise ValueError(f"{name} must be a range from at least 1, got {(low, high)}")
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
