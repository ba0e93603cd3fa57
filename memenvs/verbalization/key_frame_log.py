"""Log of key frames: the history that an observer reads off them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np

from memenvs.verbalization.dates import EPOCH, as_seconds
from memenvs.verbalization.episodes import Action, Episode, Frames, History, StartState, TaskStatus
from memenvs.verbalization.symbols import (
    ACTION_STATUSES,
    HANDS,
    LOCATIONS,
    NO_STATUS,
    OBJECTS,
    PAD,
    SYMBOL_IDS,
    TASK_STATUSES,
    Goal,
)

#: Parts of a key frame that are read, and their place in a row of numbers.
COLUMNS = {
    "dt": slice(0, 7),
    "goal": slice(7, 12),
    "action": slice(12, 13),
    "args": slice(13, 18),
    "objects": slice(18, 20),
    "state": slice(20, 24),
}
WIDTH = 24
_GOALS = {
    goal.symbol: goal
    for goal in (
        *(Goal("objectAt", symbol, place) for symbol in OBJECTS for place in LOCATIONS),
        *(Goal("grasped", symbol, hand) for symbol in OBJECTS for hand in HANDS),
    )
}


class ReadHistory(NamedTuple):
    """A history as key frames say it.

    Attributes:
        history: Its episodes; of the first one perhaps only the end.
        last_row: Row of the newest key frame of each episode.
    """

    history: History
    last_row: tuple[int, ...]


def read_history(rows: np.ndarray, symbols: Sequence[str], question_time: int) -> ReadHistory:
    """Read episodes off their key frames.

    An episode ends with the key frame that has the status of its task. Where its first key frames are missing, it is
    taken to start with the first one that is there, and what they may have reached counts as reached only if the task
    succeeded. A goal without a number, as the training split does not have it, is read off what was reached.

    Args:
        rows: int, (T, WIDTH); key frames in the order of time, with the parts at `COLUMNS`.
        symbols: Symbol of each number.
        question_time: Second since 2020-01-01 00:00:00 at which a question is put.
    """
    seconds = [as_seconds(datetime(EPOCH.year + row[0], *row[1:3], *row[4:7])) for row in rows[:, :7].tolist()]
    ends = np.flatnonzero(rows[:, COLUMNS["state"].start] != NO_STATUS).tolist()
    episodes, starts, last_row = [], [], []
    begin = 0
    for end in ends:
        episode = _read_episode(rows[begin : end + 1], seconds[begin : end + 1], symbols)
        if episode.actions:
            episodes.append(episode)
            starts.append(seconds[begin])
            last_row.append(end)
        begin = end + 1
    return ReadHistory(History(tuple(episodes), tuple(starts), question_time), tuple(last_row))


def _read_episode(rows: np.ndarray, seconds: Sequence[int], symbols: Sequence[str]) -> Episode:
    time = np.array(seconds) - seconds[0]
    actions: list[Action] = []
    reached: set[tuple[str, str]] = set()
    started: int | None = None
    for now, row in zip(time.tolist(), rows.tolist(), strict=True):
        status = row[COLUMNS["state"]][1]
        if status == NO_STATUS:
            continue
        if ACTION_STATUSES[status] == "started":
            started = now
            continue
        verb = symbols[row[COLUMNS["action"].start]]
        arguments = tuple(symbols[number] for number in row[COLUMNS["args"]] if number != PAD)
        outcome = "success" if ACTION_STATUSES[status] == "success" else "failure"
        action = Action(verb, arguments, now - 1 if started is None else started, now, outcome)  # type: ignore[arg-type]
        actions.append(action)
        started = None
        if outcome == "success" and action.object:
            reached.add((action.object, str(action.hand) if verb == "grasp" else action.location))
    end: TaskStatus = TASK_STATUSES[rows[-1, COLUMNS["state"]][0]]  # type: ignore[assignment]
    named = [symbols[number] for number in rows[-1, COLUMNS["goal"]].tolist() if number != PAD]
    goals = [_GOALS[symbol] for symbol in named if symbol in _GOALS]
    goals += _likely_goals(actions, {goal.object for goal in goals})[: len(named) - len(goals)]
    objects = np.array([[SYMBOL_IDS[symbols[number]] for number in row] for row in rows[:, COLUMNS["objects"]]])
    none = np.zeros((len(rows), 0), np.int16)
    return Episode(
        goals=tuple(goals),
        outcomes=tuple(end == "success" or (goal.object, goal.place) in reached for goal in goals),
        scene=StartState((actions[0].origin or actions[0].location) if actions else "", {}),
        actions=tuple(actions),
        status=end,
        duration=int(time[-1]),
        frames=Frames(time.astype(np.int32), none, none, none, objects.astype(np.int16), none, none),
    )


def _likely_goals(actions: Sequence[Action], others: Collection[str]) -> list[Goal]:
    """List goals that successful actions reached and whose symbol the training split does not have."""
    goals: dict[str, Goal] = {}
    for action in actions:
        if action.object and action.object not in others and action.status == "success":
            place = action.hand if action.verb == "grasp" else action.location
            goals[action.object] = Goal("grasped" if action.verb == "grasp" else "objectAt", action.object, str(place))
    return list(goals.values())
