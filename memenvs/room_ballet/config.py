"""Settings of the Room Ballet environments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memenvs.checks import check_fields
from memenvs.room_ballet.ballet_task import RELEASE_ROOMS, BalletTask
from memenvs.room_ballet.tasks import StrategySchedule, make_ballet

Obs = Literal["pixels", "symbols"]


@dataclass(frozen=True, kw_only=True)
class BalletConfig:
    """Settings of every Room Ballet.

    Attributes:
        obs: "pixels": frames are images. "symbols": frames are rows of `memenvs.room_ballet.frames.frame_table()`.
    """

    obs: Obs = "pixels"

    def __post_init__(self) -> None:
        check_fields(self)

    def make_ballet_task(self, name: str) -> BalletTask:
        """Make the task of this name with these settings; raises as `make_ballet` does."""
        settings = {setting: value for setting, value in vars(self).items() if setting != "obs"}
        return make_ballet(name, **settings)


@dataclass(frozen=True, kw_only=True)
class ShortStayConfig(BalletConfig):
    """Settings of Short Stay.

    Attributes:
        size: Rooms along a side: 3, 4 or 5.
    """

    size: int = 3


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig(BalletConfig):
    """Settings of the strategy tasks FIFO, LIFO and LVFO, and of the multi-task.

    Attributes:
        schedule: "histogram": 8 rooms with always 8, 3, 2, 1, 1, 1, 1 and 1 visits. "grid_walk": a random walk over 3 x
            3 rooms; queries are about visits that the strategy of the task keeps.
    """

    schedule: StrategySchedule = "histogram"


@dataclass(frozen=True, kw_only=True)
class RoomsConfig(ScheduleConfig):
    """Settings of MVFO, the strategy task with a free number of rooms.

    Attributes:
        rooms: 4 ... 12; with `schedule="histogram"` only. The first of R rooms has 16 - R visits, the next two have 3
            and 2, the others 1 each.
    """

    rooms: int = RELEASE_ROOMS
