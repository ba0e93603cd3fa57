"""Settings of the Room Ballet environments."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from memenvs.checks import check_fields
from memenvs.room_ballet.descriptions import Part
from memenvs.room_ballet.tasks import RELEASE_ROOMS, BalletTask, StrategySchedule, make_ballet

Obs = Literal["pixels", "symbols"]
TaskAs = Literal["one_hot", "language"]


@dataclass(frozen=True, kw_only=True)
class BalletConfig:
    """Settings of every Room Ballet.

    Attributes:
        obs: "pixels": frames are images; "symbols": they are numbers of rows of `memenvs.room_ballet.frames.frame_table()`.
    """

    obs: Obs = "pixels"

    def __post_init__(self) -> None:
        check_fields(self)

    def make_ballet_task(self, name: str) -> BalletTask:
        """The task of this name with these settings; errors as `make_ballet`."""
        own = {"obs", "task_as", "split", "part"}
        return make_ballet(
            name, **{each.name: getattr(self, each.name) for each in fields(self) if each.name not in own}
        )


@dataclass(frozen=True, kw_only=True)
class ShortStayConfig(BalletConfig):
    """Settings of Short Stay.

    Attributes:
        size: Rooms along a side: 3, 4 or 5.
    """

    size: int = 3


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig(BalletConfig):
    """Settings of the tasks of the four strategies.

    Attributes:
        schedule: "histogram": 8 rooms that are always visited 8, 3, 2, 1, 1, 1, 1 and 1 times; "grid_walk": a walk over 3 x 3 rooms,
            where only such visits are asked about as the strategy that solves the task has kept.
    """

    schedule: StrategySchedule = "histogram"


@dataclass(frozen=True, kw_only=True)
class RoomsConfig(ScheduleConfig):
    """Settings of the task whose number of rooms can be chosen.

    Attributes:
        rooms: 4 ... 12; with `schedule="histogram"` only. R rooms are visited 16 - R, 3, 2 times and the others once.
    """

    rooms: int = RELEASE_ROOMS


@dataclass(frozen=True, kw_only=True)
class MultiTaskConfig(ScheduleConfig):
    """Settings of the multi-task.

    Attributes:
        task_as: How an observation says which task it is: "one_hot", or "language": a description in words.
        split: With "language" only, which descriptions are held out: 0, 1 or 2.
        part: With "language" only, descriptions to draw from: "train" (16 for each task), "held_out" (4) or "all" (20).
    """

    task_as: TaskAs = "one_hot"
    split: int = 0
    part: Part = "train"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task_as == "one_hot" and (self.split, self.part) != (0, "train"):
            raise ValueError(
                f"split and part go with task_as 'language' only, got split {self.split!r} and part {self.part!r} with 'one_hot'"
            )
