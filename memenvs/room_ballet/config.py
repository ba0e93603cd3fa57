"""Settings of the Room Ballet environments."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from memenvs.checks import check_fields
from memenvs.room_ballet.ballet_task import RELEASE_ROOMS, BalletTask
from memenvs.room_ballet.descriptions import Part
from memenvs.room_ballet.tasks import StrategySchedule, make_ballet

Obs = Literal["pixels", "symbols"]
TaskAs = Literal["one_hot", "language"]
#: Settings of observations; the others are settings of `make_ballet`.
_OBSERVATION_SETTINGS = ("obs", "task_as", "split", "part")


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
        names = [each.name for each in fields(self) if each.name not in _OBSERVATION_SETTINGS]
        return make_ballet(name, **{each: getattr(self, each) for each in names})


@dataclass(frozen=True, kw_only=True)
class ShortStayConfig(BalletConfig):
    """Settings of Short Stay.

    Attributes:
        size: Rooms along a side: 3, 4 or 5.
    """

    size: int = 3


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig(BalletConfig):
    """Settings of the strategy tasks FIFO, LIFO and LVFO.

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


@dataclass(frozen=True, kw_only=True)
class MultiTaskConfig(ScheduleConfig):
    """Settings of the multi-task.

    Attributes:
        task_as: Form of the observation `task`: "one_hot", or "language" for a description in words.
        split: With "language" only: number of the split into training and held-out descriptions: 0, 1 or 2.
        part: With "language" only: descriptions to draw from: "train" (16 per task), "held_out" (4) or "all" (20).
    """

    task_as: TaskAs = "one_hot"
    split: int = 0
    part: Part = "train"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task_as == "one_hot" and (self.split, self.part) != (0, "train"):
            raise ValueError(
                f"split and part go with task_as 'language' only, "
                f"got split {self.split!r} and part {self.part!r} with 'one_hot'"
            )
