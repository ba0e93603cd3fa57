"""One task of Room Ballet, and its episodes in batches.

A task is a schedule of visits to rooms and a rule for the query at the end. Each episode follows from one number, its
key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from memenvs.episode_keys import KeyedEpisodes, check_keys
from memenvs.retention import retained
from memenvs.room_ballet import visit_schedules
from memenvs.room_ballet.dances import PERFORMANCE_CELLS
from memenvs.room_ballet.descriptions import STRATEGY_TASKS
from memenvs.room_ballet.episodes import CENTRE_CELL, NO_ACTION, NUM_CELLS, PERFORMANCE_STEPS, BalletEpisodes

#: Rule for query and answer. "own", "next" and "opposite" query a room: the answer is the dance of the room itself, of
#: the next room clockwise, or of the room opposite. The others query a visit: "fifo" one of the later half, "lifo" one
#: of the earlier half, "lvfo" one to the most visited room, "mvfo" the last one to some room, "initial" one before the
#: long stay.
QueryRule = Literal["own", "next", "opposite", "fifo", "lifo", "lvfo", "mvfo", "initial"]
#: Rooms of the strategy tasks in the release, which balances dances for this number only.
RELEASE_ROOMS = 8
#: Outer rooms of a 3 x 3 grid, clockwise.
_RING = (0, 1, 2, 5, 8, 7, 6, 3)


@dataclass(frozen=True, eq=False)
class _Draws:
    """Random parts of B episodes.

    Attributes:
        place: int16, (B, V); room of each visit.
        action: int8, (B, V); the move that led to each visit.
        dancer: int16, (B, V); dancer of each visit.
        dance: int8, (B, V); dance of each visit.
        room_dancer: int16, (B, rooms); as in `BalletEpisodes`.
        room_dance: int8, (B, rooms); as in `BalletEpisodes`.
        valid_queries: bool, (B, rooms) or (B, V); rooms or visits that the task may query.
    """

    place: np.ndarray
    action: np.ndarray
    dancer: np.ndarray
    dance: np.ndarray
    room_dancer: np.ndarray
    room_dance: np.ndarray
    valid_queries: np.ndarray


@dataclass(frozen=True, kw_only=True)
class BalletTask(KeyedEpisodes[BalletEpisodes]):
    """One task of Room Ballet.

    Attributes:
        schedule: Order of visits to rooms; see `memenvs.room_ballet.visit_schedules`.
        rooms: Number of places.
        visits: Visits of an episode (V); in Short Stay, where the agent may move at every step, the number of steps.
        visit_steps: Steps of a visit.
        query_rules: One rule for query and answer, or those of the four strategy tasks, in the order of
            `memenvs.room_ballet.descriptions.STRATEGY_TASKS`.
        capacity: Visits that the memory can store in the published protocol; None for all.

    Source:
        Spatially-Aware Transformer for Embodied Agents, 2024, sections 4.1, 4.2, D.1, D.2, D.5 and its release.
    """

    schedule: visit_schedules.Schedule
    rooms: int
    visits: int
    visit_steps: int = PERFORMANCE_STEPS
    query_rules: tuple[QueryRule, ...]
    capacity: int | None = None

    @property
    def steps(self) -> int:
        """Steps of an episode before the query, T."""
        return self.visits * self.visit_steps

    @property
    def queries_rooms(self) -> bool:
        """True if dancers stay in their rooms and queries are about rooms.

        Otherwise every visit has a new dancer, and queries are about visits.
        """
        return self.query_rules[0] in ("own", "next", "opposite")

    @cached_property
    def answer_room(self) -> np.ndarray:
        """Room of the answer by queried room, int64, (rooms,); -1 for rooms that cannot be queried."""
        answer = np.arange(self.rooms)
        if self.query_rules == ("next",):
            answer[:] = -1  # the middle room has no next one
            answer[list(_RING)] = np.roll(_RING, -1)
        elif self.query_rules == ("opposite",):
            answer = answer[::-1].copy()  # rooms of the ring are numbered row by row
        return answer

    @cached_property
    def positions(self) -> np.ndarray:
        """Column and row of each room on a map, int64, (rooms, 2).

        In schedules without moves between neighbours, rooms have numbers only; the map shows them row by row.
        """
        cells = np.arange(self.rooms)
        if self.schedule == "ring":
            cells += cells >= CENTRE_CELL  # skip the centre of 3 x 3
        return np.column_stack([cells % self.side, cells // self.side])

    @property
    def side(self) -> int:
        """Rooms along a side of the map."""
        return int(np.ceil(np.sqrt(self.rooms)))

    @property
    def num_keyed_tasks(self) -> int:  # type: ignore[override]
        """Number of tasks of which the remainder of a key chooses one."""
        return len(self.query_rules)

    def make_episodes(self, keys: np.ndarray) -> BalletEpisodes:
        """Make the episodes of these keys.

        Args:
            keys: int64, (B,), >= 0; the remainder by the number of query rules chooses the rule.

        Raises:
            ValueError: Keys have another type, shape or range.
        """
        keys = check_keys(keys)
        state = keys.astype(np.uint64)
        task_ids = [STRATEGY_TASKS.index(rule) if rule in STRATEGY_TASKS else 0 for rule in self.query_rules]
        task_id = np.array(task_ids, np.int8)[keys % len(self.query_rules)]

        draws = self._draw(state, task_id)
        # Where no query is valid, draw again from the same streams.
        while (is_invalid := ~draws.valid_queries.any(1)).any():
            state_again = state[is_invalid]
            for name, values in vars(self._draw(state_again, task_id[is_invalid])).items():
                getattr(draws, name)[is_invalid] = values
            state[is_invalid] = state_again
        query = visit_schedules.draw_index(state, draws.valid_queries)

        frame, place, visit = (np.zeros((len(keys), self.steps), np.int16) for _ in range(3))
        action = np.zeros((len(keys), self.steps), np.int8)
        visits = draws.place, draws.dancer, draws.dance, draws.action
        visit_schedules.expand_visits(*visits, PERFORMANCE_CELLS, frame, place, visit, action)
        blank = np.zeros(len(keys), np.int16)  # `_set_query` below fills these four in
        episodes = BalletEpisodes(
            frame=frame,
            place=place,
            visit=visit,
            action=action,
            query=blank,
            label=blank,
            task_id=task_id,
            query_place=blank,
            query_visit=blank,
            visit_place=draws.place,
            visit_dancer=draws.dancer,
            visit_dance=draws.dance,
            room_dancer=draws.room_dancer,
            room_dance=draws.room_dance,
            key=keys,
        )
        return self._set_query(episodes, query)

    def with_query(self, episodes: BalletEpisodes, query: np.ndarray) -> BalletEpisodes:
        """Return the same episodes with other queries.

        Args:
            episodes: B episodes of this task.
            query: int, (B,); the queried room, or the queried visit in tasks that query visits. It need not be a visit
                that the task itself would query.

        Raises:
            ValueError: There is no such visit or room, or (but in Short Stay) the room or that of the answer was never
                visited.
        """
        query = np.asarray(query)
        unit = "room" if self.queries_rooms else "visit"
        count = self.rooms if self.queries_rooms else self.visits
        is_index = query.dtype.kind in "iu" and not (query < 0).any() and not (query >= count).any()
        if query.shape != (len(episodes),) or not is_index:
            raise ValueError(
                f"query must be the number of a {unit}, 0 ... {count - 1}, "
                f"for each of {len(episodes)} episodes, got {query}"
            )
        if self.queries_rooms:
            is_valid = self._valid_query_rooms(episodes.visit_place)
            for b in np.flatnonzero(~is_valid[np.arange(len(is_valid)), query]).tolist():
                raise ValueError(
                    f"query must be a room that was visited and whose answer was, "
                    f"one of {np.flatnonzero(is_valid[b]).tolist()}, got {query[b]}"
                )
        return self._set_query(episodes, query)

    def _draw(self, state: np.ndarray, task_id: np.ndarray) -> _Draws:
        """Draw visits, dancers and valid queries.

        Args:
            state: uint64, (B,); see `memenvs.room_ballet.visit_schedules`.
            task_id: int8, (B,); as in `BalletEpisodes`.
        """
        place = np.zeros((len(state), self.visits), np.int16)
        action = np.full(place.shape, NO_ACTION, np.int8)
        slot = np.tile(np.arange(self.visits), (len(state), 1))
        if self.schedule == "histogram":
            visit_schedules.draw_histogram(state, self.rooms, place, slot)
        elif self.schedule == "short_stay":
            visit_schedules.draw_short_stay(state, self.side, place, action)
        elif self.schedule == "aba":
            visit_schedules.draw_aba(state, self.rooms, place)
        else:
            visit_schedules.draw_room_path(state, self.side, self.schedule == "ring", place, action)
        room_dancer = np.full((len(state), self.rooms), -1, np.int16)
        room_dance = room_dancer.astype(np.int8)
        if self.queries_rooms:
            visit_schedules.draw_dancers_of_rooms(state, room_dancer, room_dance)
            dancer = np.take_along_axis(room_dancer, place.astype(np.intp), 1)
            dance = np.take_along_axis(room_dance, place.astype(np.intp), 1)
            valid_queries = self._valid_query_rooms(place)
        else:
            dancer = np.zeros(place.shape, np.int16)
            dance = np.zeros(place.shape, np.int8)
            balance_dances = self.schedule == "histogram" and self.rooms == RELEASE_ROOMS
            visit_schedules.draw_dancers_of_visits(state, slot, balance_dances, dancer, dance)
            valid_queries = self._valid_query_visits(state, place, task_id)
        return _Draws(place, action, dancer, dance, room_dancer, room_dance, valid_queries)

    def _valid_query_visits(self, state: np.ndarray, place: np.ndarray, task_id: np.ndarray) -> np.ndarray:
        """Mark the visits that the task may query, bool, (B, V)."""
        v = np.arange(self.visits)
        if self.query_rules == ("initial",):
            return np.broadcast_to(v < self.rooms - 1, place.shape).copy()
        rows = np.arange(len(place))
        room = place.astype(np.intp)
        count_so_far = (place[:, :, None] == np.arange(self.rooms)).cumsum(1)  # (B, V, rooms); this visit included
        count = count_so_far[:, -1]  # (B, rooms)
        # Ties are broken at random.
        most_visited = visit_schedules.draw_index(state, count == count.max(1, keepdims=True))
        is_last = count_so_far[rows[:, None], v, room] == np.take_along_axis(count, room, 1)
        by_rule = {
            "fifo": np.broadcast_to(v >= self.visits // 2, place.shape),
            "lifo": np.broadcast_to(v < self.visits // 2, place.shape),
            "lvfo": place == most_visited[:, None],
            "mvfo": is_last,
        }
        valid = np.stack([by_rule[name] for name in STRATEGY_TASKS])[task_id, rows]
        if self.schedule == "grid_walk":
            # Rooms of a random walk have any number of visits, so even the strategy of the task may evict some of them.
            valid &= retained(place, task_id, self.capacity)
        return valid

    def _valid_query_rooms(self, place: np.ndarray) -> np.ndarray:
        """Mark the rooms that were visited and whose answer was, bool, (B, rooms); in Short Stay all rooms."""
        if self.schedule == "short_stay":
            return np.ones((len(place), self.rooms), bool)
        is_visited = np.zeros((len(place), self.rooms), bool)
        is_visited[np.arange(len(place))[:, None], place] = True
        return (self.answer_room >= 0) & is_visited & is_visited[:, self.answer_room]

    def _set_query(self, episodes: BalletEpisodes, query: np.ndarray) -> BalletEpisodes:
        """Return the episodes with queries, their answers, rooms and visits; `query` is int, (B,)."""
        rows = np.arange(len(query))
        if self.queries_rooms:
            place = query
            visit = np.full(len(query), -1)
            dancer = episodes.room_dancer[rows, query]
            dance = episodes.room_dance[rows, self.answer_room[query]]
        else:
            place = episodes.visit_place[rows, query]
            visit = query
            dancer = episodes.visit_dancer[rows, query]
            dance = episodes.visit_dance[rows, query]
        return replace(
            episodes,
            query=(dancer * NUM_CELLS + CENTRE_CELL).astype(np.int16),
            label=dance.astype(np.int8),
            query_place=place.astype(np.int16),
            query_visit=visit.astype(np.int16),
        )
