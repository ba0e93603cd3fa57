"""Settings of ExtObjNav."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memenvs.checks import MAX_STEPS, MAX_THREADS, check_int, check_pair
from memenvs.houses.classes import YCB_CLASSES
from memenvs.houses.homes_config import HomesConfig, check_range
from memenvs.houses.playable import HomeCheck
from memenvs.houses.rendering.camera import Camera
from memenvs.moves import check_moves
from memenvs.objectnav.layout import LayoutCheck

OBS_MODES = ("rgb", "symbolic")
SENSORS = ("rgb", "depth", "semantic")
GPS_FRAMES = ("trial", "layout")
#: More objects find no place in a home.
MAX_NUM_OBJECTS = 1000


@dataclass(frozen=True, kw_only=True)
class ExtObjNavConfig(HomesConfig):
    """Settings of ExtObjNav, beside those of `HomesConfig`.

    Attributes:
        num_objects: Fewest and most objects to place, before invisible ones are removed; 1 to 1000. The paper places 30
            to 40, of which 22 stay on average. Here more objects are visible, so fewer are placed and 22 stay. A
            category with 10 or more visible objects is never a goal, so few categories need few objects.
        categories: Names or numbers of the categories to place, each once; None for all 20.
        obs_mode: "rgb" (images of `sensors`) or "symbolic" (52 numbers, see `memenvs.objectnav.symbolic`).
        sensors: Images to observe, any of "rgb", "depth" and "semantic"; None for "rgb" alone. None in
            `obs_mode="symbolic"`.
        image_size: Rows and columns of the images; None for 256 x 256. The horizontal field of view is 90 degrees. None
            in `obs_mode="symbolic"`.
        turn_deg: One turn, degrees; > 0. The paper gives 30; its code turns by 14.3239.
        gps_frame: "trial" (x ahead and y to the left of the start that is drawn for the first episode of the trial) or
            "layout" (the axes of the home, as in the paper's code).
        compass: True adds `compass`, cosine and sine of the heading in `gps_frame`. The paper's robot has none.
        fixed_goal_per_trial: True gives all episodes of a trial the same goal.
        moves: Probability that an object moves to another receptacle of the home between two episodes of a trial; 0 to
            1. No observation shows it, and the oracle knows.
        layout_pool: Number of layouts to draw from, >= 1; None for a new one each trial.
        max_episode_steps: Steps after which an episode is truncated; 1 to 1,000,000.
        threads: Rendering threads; 1 to 1024. Results do not depend on it.

    Source:
        ReLIC, section on ExtObjNav, and its release; they differ in `turn_deg`, `gps_frame` and the tilt of the camera;
        the tilt is that of the release.
    """

    num_objects: tuple[int, int] = (20, 27)
    categories: Sequence[str | int] | None = None
    obs_mode: str = "rgb"
    sensors: Sequence[str] | None = None
    image_size: tuple[int, int] | None = None
    turn_deg: float = 30.0
    gps_frame: str = "trial"
    compass: bool = False
    fixed_goal_per_trial: bool = False
    moves: float = 0.0
    layout_pool: int | None = None
    max_episode_steps: int = 500
    threads: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, choices in (("obs_mode", OBS_MODES), ("gps_frame", GPS_FRAMES)):
            if getattr(self, name) not in choices:
                raise ValueError(f"unknown {name} {getattr(self, name)!r}; choose from {list(choices)}")
        for name, default in (("sensors", ("rgb",)), ("image_size", (256, 256))):
            if self.obs_mode == "rgb" and getattr(self, name) is None:
                object.__setattr__(self, name, default)
            elif self.obs_mode != "rgb" and getattr(self, name) is not None:
                raise ValueError(f"{name} must be None in obs_mode 'symbolic', got {getattr(self, name)!r}")
        object.__setattr__(self, "num_objects", check_range("num_objects", self.num_objects, MAX_NUM_OBJECTS))
        if self.sensors is not None:
            sensors = self.sensors
            is_list = isinstance(sensors, (list, tuple))
            if not is_list or not sensors or any(sensors.count(name) > 1 or name not in SENSORS for name in sensors):
                raise ValueError(f"sensors must be a list of some of {list(SENSORS)}, each once, got {sensors!r}")
            object.__setattr__(self, "sensors", tuple(sensors))
        if self.image_size is not None:
            height, width = check_pair("image_size", self.image_size, "rows and columns")
            try:
                Camera(height=height, width=width)
            except ValueError as error:
                raise ValueError(f"image_size: {error}") from None
            object.__setattr__(self, "image_size", (height, width))
        listed = range(len(YCB_CLASSES)) if self.categories is None else self.categories
        if not isinstance(listed, (list, tuple, range)) or not listed:
            raise ValueError(f"categories must be None or a list of at least one name or number, got {listed!r}")
        categories = sorted(category_number(value) for value in listed)
        if len(set(categories)) < len(categories):
            raise ValueError(f"categories must have each category once, got {listed!r}")
        object.__setattr__(self, "categories", tuple(categories))
        is_number = isinstance(self.turn_deg, (int, float, np.number)) and not isinstance(self.turn_deg, bool)
        if not is_number or not 0 < self.turn_deg <= 180:
            raise ValueError(f"turn_deg must be above 0 and at most 180 degrees, got {self.turn_deg!r}")
        for name in ("compass", "fixed_goal_per_trial"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")
        check_int("max_episode_steps", self.max_episode_steps, at_most=MAX_STEPS)
        check_int("threads", self.threads, at_most=MAX_THREADS)
        check_int("layout_pool", self.layout_pool, or_none=True)
        check_moves(self.moves)

    def home_check(self) -> HomeCheck:
        """Return the check of whether an object can be seen in a home."""
        return LayoutCheck(self.num_objects, self.categories, self.moves)  # type: ignore[arg-type]


def category_number(value: object, argument: str = "categories") -> int:
    """Convert a category, given as number or name, to its number.

    Args:
        value: The number or name.
        argument: Where it was given, for the message.

    Raises:
        ValueError: No such category.
    """
    if isinstance(value, str) and value in YCB_CLASSES:
        return YCB_CLASSES.index(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= value < len(YCB_CLASSES):
        return int(value)
    choices = f"choose from 0 ... {len(YCB_CLASSES) - 1} or {list(YCB_CLASSES)}"
    raise ValueError(f"{argument}: unknown category {value!r}; {choices}")
