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


def _next() -> BalletTask:
    return BalletTask(schedule="grid_walk", rooms=9, visits=40, query_rules=("next",))


def _short_stay(size: int = 3) -> BalletTask:
    if not is_int(size) or size not in SHORT_STAY_SIZES:
        raise ValueError(f"size must be one of {SHORT_STAY_SIZES}, got {size!r}")
    return BalletTask(schedule="short_stay", rooms=size**2, visits=1280, visit_steps=1, query_rules=("own",))


def _opposite() -> BalletTask:
    return BalletTask(schedule="ring", rooms=8, visits=40, query_rules=("opposite",))


def _aba() -> BalletTask:
    return BalletTask(schedule="aba", rooms=8, visits=18, query_rules=("initial",), capacity=8)


def _strategy_task(
    schedule: StrategySchedule, query_rules: tuple[QueryRule, ...], rooms: int = RELEASE_ROOMS
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


def _fifo(schedule: StrategySchedule = "histogram") -> BalletTask:
    return _strategy_task(schedule, ("fifo",))


def _lifo(schedule: StrategySchedule = "histogram") -> BalletTask:
    return _strategy_task(schedule, ("lifo",))


def _lvfo(schedule: StrategySchedule = "histogram") -> BalletTask:
    return _strategy_task(schedule, ("lvfo",))


def _mvfo(schedule: StrategySchedule = "histogram", rooms: int = RELEASE_ROOMS) -> BalletTask:
    return _strategy_task(schedule, ("mvfo",), rooms)


def _multi_task(schedule: StrategySchedule = "histogram") -> BalletTask:
    return _strategy_task(schedule, ("fifo", "lifo", "lvfo", "mvfo"))


_MAKERS: Mapping[str, Callable[..., BalletTask]] = MappingProxyType(
    {
        "Next": _next,
        "ShortStay": _short_stay,
        "FIFO": _fifo,
        "LIFO": _lifo,
        "MVFO": _mvfo,
        "LVFO": _lvfo,
        "MultiTask": _multi_task,
        "Opposite": _opposite,
        "ABA": _aba,
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
    known = list(inspect.signature(_MAKERS[name]).parameters)
    for setting in settings:
        if setting not in known:
            raise TypeError(
                f"ballet {name!r} got an unexpected keyword argument {setting!r}; {choices_for(setting, known)}"
            )
    return _MAKERS[name](**settings)
