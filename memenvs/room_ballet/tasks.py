"""The tasks of Room Ballet: how long a walk is, who dances, what is asked; and episodes of them in batches."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np

from memenvs.checks import check_int, choices_for, is_int
from memenvs.retention import retained
from memenvs.room_ballet import schedules
from memenvs.room_ballet.dances import PERFORMANCE_CELLS
from memenvs.room_ballet.descriptions import STRATEGY_TASKS
from memenvs.room_ballet.episodes import CENTRE_CELL, NO_ACTION, NUM_CELLS, PERFORMANCE_STEPS, Episodes

#: What is asked: the dance of the dancer itself, of the next room clockwise, of the room opposite; or of one visit, chosen as the task says.
QueryRule = Literal["own", "next", "opposite", "fifo", "lifo", "lvfo", "mvfo", "initial"]
#: How visits come about in the tasks of the four strategies.
StrategySchedule = Literal["histogram", "grid_walk"]
#: Rooms of the tasks of the four strategies, for which the release deals dances in a way of its own, and what else MVFO may have.
RELEASE_ROOMS = 8
MIN_ROOMS, MAX_ROOMS = 4, 12
#: Rooms along a side in Short Stay.
SHORT_STAY_SIZES = (3, 4, 5)
#: The way around the rooms of a 3 x 3 grid, clockwise.
_RING = (0, 1, 2, 5, 8, 7, 6, 3)


@dataclass(frozen=True, kw_only=True)
class BalletTask:
    """One task.

    Attributes:
        schedule: How the walker goes from room to room (`memenvs.room_ballet.schedules`).
        rooms: Number of places.
        visits: Visits in an episode (V); in Short Stay, where the walker may move at every step, the number of steps.
        visit_steps: Steps of a visit.
        query_rules: What is asked: one question, or those of the four tasks in the order of `memenvs.room_ballet.descriptions.STRATEGY_TASKS`.
        capacity: Visits that the memory has room for in the published protocol; None for all.

    Source:
        Spatially-Aware Transformer for Embodied Agents, 2024, sections 4.1, 4.2, D.1, D.2, D.5 and its release.
    """

    schedule: schedules.Schedule
    rooms: int
    visits: int
    visit_steps: int = PERFORMANCE_STEPS
    query_rules: tuple[QueryRule, ...]
    capacity: int | None = None

    @property
    def steps(self) -> int:
        """T, steps of an episode before the question."""
        return self.visits * self.visit_steps

    @property
    def queries_rooms(self) -> bool:
        """Whether each room has its dancer, so that a question is about a room; else every visit finds a new one, and it is about a visit."""
        return self.query_rules[0] in ("own", "next", "opposite")

    @cached_property
    def answer_room(self) -> np.ndarray:
        """int64, (rooms,); the room whose dance is right when its number's dancer is asked about, -1 for one that is not asked about."""
        answer = np.arange(self.rooms)
        if self.query_rules[0] == "next":
            answer[:] = -1
            answer[list(_RING)] = np.roll(_RING, -1)
        elif self.query_rules[0] == "opposite":
            answer = answer[::-1].copy()
        return answer

    @cached_property
    def positions(self) -> np.ndarray:
        """int64, (rooms, 2); column and row of each room, for maps. Where the visits are no walk rooms only have numbers, and are put in rows."""
        cells = np.arange(self.rooms)
        if self.schedule == "ring":
            cells += cells >= CENTRE_CELL
        columns = self.side
        return np.column_stack([cells % columns, cells // columns])

    @property
    def side(self) -> int:
        """Rooms along a side of the map."""
        return int(np.ceil(np.sqrt(self.rooms)))

    def sample_batch(self, batch: int, rng: np.random.Generator) -> Episodes:
        """Episodes for supervised training.

        Of the generator only `rng.integers(2**63, size=batch)` is taken: one key for each episode, from which all else follows. So a batch is as many
        batches of one drawn in turn, and `sample_batch(1, default_rng([seed, trial, 1 + episode]))` is that episode of the environment with
        this seed. Where an id has several tasks, they follow each other in a batch, from that of the first key on.

        Args:
            batch: B, >= 1.
            rng: Where keys come from.

        Raises:
            ValueError: B is below 1.
            TypeError: `rng` is something else.
        """
        check_int("batch", batch)
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy Generator (np.random.default_rng(0)), got {rng!r}")
        keys = rng.integers(2**63, size=batch)
        count = len(self.query_rules)
        if count > 1:
            keys = keys - keys % count + (keys[0] % count + np.arange(batch)) % count
        return self.make_episodes(keys)

    def make_episodes(self, keys: np.ndarray) -> Episodes:
        """The episodes of these keys.

        Args:
            keys: int64, (B,), not negative; the remainder by the number of questions tells which one is meant.

        Raises:
            ValueError: Keys are something else.
        """
        keys = np.asarray(keys)
        if keys.ndim != 1 or keys.dtype.kind not in "iu" or (keys < 0).any() or (keys >= 2**63).any():
            raise ValueError(f"keys must be integers (B,) in 0 ... 2^63 - 1, got {keys.dtype} {keys.shape}: {keys}")
        keys = keys.astype(np.int64)
        state = keys.astype(np.uint64)
        of_question = np.array(
            [STRATEGY_TASKS.index(name) if name in STRATEGY_TASKS else 0 for name in self.query_rules], np.int8
        )
        task = of_question[keys % len(self.query_rules)]
        drawn = self._draw(state, task)
        while (
            lacking := ~drawn["allowed"].any(1)
        ).any():  # nothing can be asked: another walk with the numbers that come next
            again = state[lacking]
            for name, values in self._draw(again, task[lacking]).items():
                drawn[name][lacking] = values
            state[lacking] = again
        chosen = schedules.draw_index(state, drawn.pop("allowed"))
        shown = {name: np.zeros((len(keys), self.steps), np.int16) for name in ("frame", "place", "visit")}
        shown["action"] = np.zeros((len(keys), self.steps), np.int8)
        visited = [drawn[f"visit_{name}"] for name in ("place", "dancer", "dance")]
        show: Callable[..., None] = schedules.expand_visits
        show(*visited, drawn.pop("visit_action"), PERFORMANCE_CELLS, *shown.values())

        blank = np.zeros(len(keys), np.int16)
        unasked = Episodes(
            **shown, **drawn, task_id=task, key=keys, query=blank, label=blank, query_place=blank, query_visit=blank
        )
        return self._set_query(unasked, chosen)

    def with_query(self, episodes: Episodes, query: np.ndarray) -> Episodes:
        """The same episodes with other questions.

        Args:
            episodes: B of this task.
            query: int, (B,); the visit that is asked about; in tasks where dancers stay in their rooms the room.

        Raises:
            ValueError: There is no such visit or room, or the room or that of the answer was never visited. (A visit need not be one that the task
                itself asks about.)
        """
        query = np.asarray(query)
        what, count = ("room", self.rooms) if self.queries_rooms else ("visit", self.visits)
        if (
            query.shape != (len(episodes),)
            or query.dtype.kind not in "iu"
            or (query < 0).any()
            or (query >= count).any()
        ):
            raise ValueError(
                f"query must be the number of a {what}, 0 ... {count - 1}, for each of {len(episodes)} episodes, got {query}"
            )
        if self.queries_rooms:
            can = self._valid_query_rooms(self._visited_rooms(episodes.visit_place))
            for b in np.flatnonzero(~can[np.arange(len(can)), query]).tolist():
                raise ValueError(
                    f"query must be a room that was visited and whose answer was, one of {np.flatnonzero(can[b]).tolist()}, got {query[b]}"
                )
        return self._set_query(episodes, query)

    def _draw(self, state: np.ndarray, task: np.ndarray) -> dict[str, np.ndarray]:
        """Visits and dancers of `Episodes`, `visit_action`, and what may be asked: `allowed`, bool, (B, rooms) or (B, V)."""
        place = np.zeros((len(state), self.visits), np.int16)
        action = np.full(place.shape, NO_ACTION, np.int8)
        slot = np.tile(np.arange(self.visits), (len(state), 1))
        if self.schedule == "histogram":
            schedules.draw_histogram(state, self.rooms, place, slot)
        elif self.schedule == "short_stay":
            schedules.draw_short_stay(state, self.side, place, action)
        elif self.schedule == "aba":
            schedules.draw_aba(state, self.rooms, place)
        else:
            schedules.draw_room_path(state, self.side, self.schedule == "ring", place, action)
        of_rooms: dict[str, np.ndarray] = {"room_dancer": np.full((len(state), self.rooms), -1, np.int16)}
        of_rooms["room_dance"] = of_rooms["room_dancer"].astype(np.int8)
        if self.queries_rooms:
            schedules.draw_dancers_of_rooms(state, *of_rooms.values())
            dancer, dance = (np.take_along_axis(each, place.astype(np.intp), 1) for each in of_rooms.values())
            short_stay = self.schedule == "short_stay"
            allowed = (
                np.ones((len(state), self.rooms), bool)
                if short_stay
                else self._valid_query_rooms(self._visited_rooms(place))
            )
        else:
            dancer, dance = np.zeros(place.shape, np.int16), np.zeros(place.shape, np.int8)
            is_dealt = self.schedule == "histogram" and self.rooms == RELEASE_ROOMS
            schedules.draw_dancers_of_visits(state, slot, is_dealt, dancer, dance)
            allowed = self._valid_query_visits(state, place, task)
        visits: dict[str, np.ndarray] = {
            "visit_place": place,
            "visit_action": action,
            "visit_dancer": dancer,
            "visit_dance": dance,
        }
        return {**visits, **of_rooms, "allowed": allowed}

    def _valid_query_visits(self, state: np.ndarray, place: np.ndarray, task: np.ndarray) -> np.ndarray:
        """bool, (B, V); which visits may be asked about."""
        number = np.arange(self.visits)
        if self.query_rules == ("initial",):
            return np.broadcast_to(number < self.rooms - 1, place.shape).copy()
        came = (place[:, :, None] == np.arange(self.rooms)).cumsum(1)  # visits of each room so far, this one included
        times = came[:, -1]
        busiest = schedules.draw_index(state, times == times.max(1, keepdims=True))
        of_room = place.astype(np.intp)
        is_last = came[np.arange(len(place))[:, None], number, of_room] == np.take_along_axis(times, of_room, 1)
        rules = {
            "fifo": np.broadcast_to(number >= self.visits // 2, place.shape),
            "lifo": np.broadcast_to(number < self.visits // 2, place.shape),
            "lvfo": place == busiest[:, None],
            "mvfo": is_last,
        }
        allowed = np.stack([rules[name] for name in STRATEGY_TASKS])[task, np.arange(len(place))]
        if self.schedule == "grid_walk":  # here the strategy that solves a task may lose some of what it could be asked
            allowed &= retained(place, task, self.capacity)
        return allowed

    def _visited_rooms(self, place: np.ndarray) -> np.ndarray:
        """bool, (B, rooms); rooms that were visited."""
        seen = np.zeros((len(place), self.rooms), bool)
        seen[np.arange(len(place))[:, None], place] = True
        return seen

    def _valid_query_rooms(self, seen: np.ndarray) -> np.ndarray:
        """bool, (B, rooms); rooms that can be asked about: the room and that of the answer were visited."""
        return (self.answer_room >= 0) & seen & seen[:, self.answer_room]

    def _set_query(self, episodes: Episodes, query: np.ndarray) -> Episodes:
        """The episodes with these rooms or visits asked about."""
        rows = np.arange(len(query))
        if self.queries_rooms:
            place, visit = query, np.full(len(query), -1)
            dancer, dance = episodes.room_dancer[rows, query], episodes.room_dance[rows, self.answer_room[query]]
        else:
            place, visit = episodes.visit_place[rows, query], query
            dancer, dance = episodes.visit_dancer[rows, query], episodes.visit_dance[rows, query]
        return replace(
            episodes,
            query=(dancer * NUM_CELLS + CENTRE_CELL).astype(np.int16),
            label=dance.astype(np.int8),
            query_place=place.astype(np.int16),
            query_visit=visit.astype(np.int16),
        )


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


def _of_strategies(
    schedule: StrategySchedule, questions: tuple[QueryRule, ...], rooms: int = RELEASE_ROOMS
) -> BalletTask:
    if schedule not in get_args(StrategySchedule):
        raise ValueError(f"unknown schedule {schedule!r}; {choices_for(schedule, get_args(StrategySchedule))}")
    if not is_int(rooms) or not MIN_ROOMS <= rooms <= MAX_ROOMS:
        raise ValueError(f"rooms must be an integer of {MIN_ROOMS} to {MAX_ROOMS}, got {rooms!r}")
    if schedule == "grid_walk":
        if rooms != RELEASE_ROOMS:
            raise ValueError(f"rooms can be chosen with schedule 'histogram' only ('grid_walk' has 3 x 3), got {rooms}")
        return BalletTask(schedule=schedule, rooms=9, visits=18, query_rules=questions, capacity=9)
    return BalletTask(schedule=schedule, rooms=rooms, visits=18, query_rules=questions, capacity=rooms + 1)


def _fifo(schedule: StrategySchedule = "histogram") -> BalletTask:
    return _of_strategies(schedule, ("fifo",))


def _lifo(schedule: StrategySchedule = "histogram") -> BalletTask:
    return _of_strategies(schedule, ("lifo",))


def _lvfo(schedule: StrategySchedule = "histogram") -> BalletTask:
    return _of_strategies(schedule, ("lvfo",))


def _mvfo(schedule: StrategySchedule = "histogram", rooms: int = RELEASE_ROOMS) -> BalletTask:
    return _of_strategies(schedule, ("mvfo",), rooms)


def _multi_task(schedule: StrategySchedule = "histogram") -> BalletTask:
    return _of_strategies(schedule, ("fifo", "lifo", "lvfo", "mvfo"))


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
#: Names of the tasks, as in the ids.
BALLET_NAMES = tuple(_MAKERS)


def make_ballet(name: str, **settings: object) -> BalletTask:
    """The task of an id.

    Args:
        name: What stands between "RoomBallet-" and the version: one of `BALLET_NAMES`.
        **settings: Of "ShortStay": `size`, 3 (default), 4 or 5 rooms along a side. Of "FIFO", "LIFO", "MVFO", "LVFO" and "MultiTask": `schedule`,
            "histogram" (default, as in the release: 8 rooms with always 8, 3, 2, 1, 1, 1, 1 and 1 visits) or "grid_walk" (as in the article: a walk
            over 3 x 3 rooms; what the task's strategy has lost is not asked, and if nothing is left the walk is drawn again).
            Of "MVFO" with "histogram": `rooms`, 4 to 12 (default 8).

    Raises:
        ValueError: There is no such task, or a setting is out of range.
        TypeError: A setting is unknown to the task.
    """
    if name not in _MAKERS:
        raise ValueError(f"unknown ballet {name!r}; {choices_for(name, BALLET_NAMES)}")
    known = list(inspect.signature(_MAKERS[name]).parameters)
    for setting in settings:
        if setting not in known:
            raise TypeError(f"unknown setting {setting!r} of ballet {name!r}; {choices_for(setting, known)}")
    return _MAKERS[name](**settings)
