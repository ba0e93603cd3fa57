"""Table of the tasks of Room Ballet: the `BalletTask` of each id."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, get_args

from memenvs.checks import choices_for, is_int
from memenvs.room_ballet.ballet_task import RELEASE_ROOMS, BalletTask, QueryRule

#: Schedules of the strategy tasks.
StrategySchedule = Literal["histogram", "grid_walk"]
#: Range of the number of rooms in MVFO.
MIN_ROOMS = 4
MAX_ROOMS = 12
#: Rooms along a side in Short Stay.
SHORT_STAY_SIZES = (3, 4, 5)


def _short_stay(size: int = 3) -> BalletTask:
    if not is_int(size) or size not in SHORT_STAY_SIZES:
        raise ValueError(f"size must be one of {SHORT_STAY_SIZES}, got {size!r}")
    return BalletTask(schedule="short_stay", rooms=size**2, visits=1280, visit_steps=1, query_rules=("own",))


def _strategy_task(
    query_rules: tuple[QueryRule, ...], schedule: StrategySchedule, rooms: int = RELEASE_ROOMS
) -> BalletTask:
    if schedule not in get_args(StrategySchedule):
        raise ValueError(f"unknown schedule {schedule!r}; {choices_for(schedule, get_args(StrategySchedule))}")
    if not is_int(rooms) or not MIN_ROOMS <= rooms <= MAX_ROOMS:
        raise ValueError(f"rooms must be an integer of {MIN_ROOMS} to {MAX_ROOMS}, got {rooms!r}")
    if schedule == "grid_walk":
        if rooms != RELEASE_ROOMS:
            raise ValueError(f"rooms can be chosen with schedule 'histogram' only ('grid_walk' has 3 x 3), got {rooms}")
        return BalletTask(schedule=schedule, rooms=9, visits=18, query_rules=query_rules, capacity=9)
    return BalletTask(schedule=schedule, rooms=rooms, visits=18, query_rules=query_rules, capacity=rooms + 1)


#: Name in ids -> function of its settings that makes the task.
_MAKERS: Mapping[str, Callable[..., BalletTask]] = MappingProxyType(
    {
        "Next": lambda: BalletTask(schedule="grid_walk", rooms=9, visits=40, query_rules=("next",)),
        "ShortStay": _short_stay,
        "FIFO": lambda schedule="histogram": _strategy_task(("fifo",), schedule),
        "LIFO": lambda schedule="histogram": _strategy_task(("lifo",), schedule),
        "MVFO": lambda schedule="histogram", rooms=RELEASE_ROOMS: _strategy_task(("mvfo",), schedule, rooms),
        "LVFO": lambda schedule="histogram": _strategy_task(("lvfo",), schedule),
        "MultiTask": lambda schedule="histogram": _strategy_task(("fifo", "lifo", "lvfo", "mvfo"), schedule),
        "Opposite": lambda: BalletTask(schedule="ring", rooms=8, visits=40, query_rules=("opposite",)),
        "ABA": lambda: BalletTask(schedule="aba", rooms=8, visits=18, query_rules=("initial",), capacity=8),
    }
)
#: Names of the tasks in ids.
BALLET_NAMES = tuple(_MAKERS)


def make_ballet(name: str, **settings: object) -> BalletTask:
    """Make the task of an id.

    Settings:
        ShortStay: `size`, 3 (default), 4 or 5 rooms along a side.
        FIFO, LIFO, MVFO, LVFO, MultiTask: `schedule`, "histogram" (default) or "grid_walk".
            "histogram", as in the release: 8 rooms with always 8, 3, 2, 1, 1, 1, 1 and 1 visits.
            "grid_walk", as in the paper: a random walk over 3 x 3 rooms. Queries are about visits that the strategy of
            the task keeps; if no such visit is left, the walk is drawn again.
        MVFO with "histogram": `rooms`, 4 to 12 (default 8).

    Args:
        name: One of `BALLET_NAMES`, the part of the id between "RoomBallet-" and the version.
        **settings: See above.

    Raises:
        ValueError: The task is unknown, or a setting is out of range.
        TypeError: A setting is unknown to the task.
    """
    if name not in _MAKERS:
        raise ValueError(f"unknown ballet {name!r}; {choices_for(name, BALLET_NAMES)}")
    allowed = list(inspect.signature(_MAKERS[name]).parameters)
    for setting in settings:
        if setting not in allowed:
            raise TypeError(
                f"ballet {name!r} got an unexpected keyword argument {setting!r}; {choices_for(setting, allowed)}"
            )
    return _MAKERS[name](**settings)
