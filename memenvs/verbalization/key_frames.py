"""Key frames as agents see them, and the history that an observer reads off them.

Symbols are numbers, signals are scaled, and dates are those of the history.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

import numpy as np

from memenvs.verbalization.dates import EPOCH, as_seconds, date_fields
from memenvs.verbalization.episodes import Action, Episode, Frames, History, StartState, TaskStatus
from memenvs.verbalization.histories import EpisodePool
from memenvs.verbalization.signals import LATENT_WIDTH, SUB_WIDTH
from memenvs.verbalization.symbols import (
    ACTION_STATUSES,
    GOALS,
    NO_STATUS,
    PAD,
    SYMBOL_IDS,
    TASK_STATUSES,
    Dictionary,
    Goal,
)

#: Width and type of each part of a key frame; () is one number.
PARTS: dict[str, tuple[tuple[int, ...], type]] = {
    "dt": ((7,), np.int16),
    "goal": ((5,), np.int16),
    "action": ((), np.int16),
    "args": ((5,), np.int16),
    "objects": ((2,), np.int16),
    "state": ((4,), np.int8),
    "sub": ((SUB_WIDTH,), np.float32),
    "latent": ((LATENT_WIDTH,), np.float32),
}
#: Parts of a key frame that are read, and their place in a row of numbers.
COLUMNS = {
    "dt": slice(0, 7),
    "goal": slice(7, 12),
    "action": slice(12, 13),
    "args": slice(13, 18),
    "objects": slice(18, 20),
    "state": slice(20, 24),
}
ROW_WIDTH = 24


class Scaling(NamedTuple):
    """Mean and standard deviation of each signal over the training split, float32, (U,) each."""

    mean: np.ndarray
    std: np.ndarray


def measure_scaling(frames: Frames) -> Scaling:
    """Measure the scaling of signals; positions count only where their object slot is filled."""
    filled = np.ones(frames.sub.shape, bool)
    filled[:, :6] = np.repeat(frames.objects > 0, 3, axis=1)
    values = frames.sub.astype(np.float64)
    count = np.maximum(filled.sum(0), 1)
    mean = np.where(filled, values, 0.0).sum(0) / count
    std = np.sqrt(np.where(filled, (values - mean) ** 2, 0.0).sum(0) / count)
    return Scaling(mean.astype(np.float32), np.maximum(std, 1e-6).astype(np.float32))


@dataclass(frozen=True)
class EncodedPool:
    """Key frames of a pool, but for their dates.

    Attributes:
        parts: Part -> array, (T, ...), of all episodes, one after the other: `PARTS` without "dt" and "latent".
        time: int32, (T,); seconds since the start of the episode.
        first: int64, (E + 1,); index of the first key frame of each episode, and at last the number of all.
        pool: The pool.
    """

    parts: dict[str, np.ndarray]
    time: np.ndarray
    first: np.ndarray
    pool: EpisodePool

    def rows(self, history: History) -> np.ndarray:
        """List the indices of a history's key frames in the arrays, int64, (T,)."""
        numbers = [episode.number for episode in history.episodes]
        spans = [np.arange(self.first[number], self.first[number + 1]) for number in numbers]
        return np.concatenate(spans) if spans else np.zeros(0, np.int64)

    def dates(self, history: History) -> np.ndarray:
        """Write the dates of a history's key frames, int16, (T, 7)."""
        spans = [start + episode.frames.time for start, episode in zip(history.starts, history.episodes, strict=True)]
        return date_fields(np.concatenate(spans)) if spans else np.zeros((0, 7), np.int16)

    @cached_property
    def latents(self) -> np.ndarray:
        """Image latents of all key frames, float16, (T, 2048); computed at the first use."""
        return np.concatenate([self.pool.latents(number).astype(np.float16) for number in range(len(self.pool))])

    def array(self, part: str) -> np.ndarray:
        """Return a part of all key frames but "dt"; (T, ...)."""
        return self.latents if part == "latent" else self.parts[part]


def encode_pool(pool: EpisodePool, dictionary: Dictionary, scaling: Scaling) -> EncodedPool:
    """Encode the key frames of a pool.

    Args:
        pool: Episodes.
        dictionary: Numbers of symbols; a symbol that it has not becomes "<unk>".
        scaling: Signals become (signal - mean) / std; the positions of empty object slots become 0.
    """
    frames = pool.frames
    number = dictionary.table()
    sub = (frames.sub - scaling.mean) / scaling.std
    sub[:, :6] *= np.repeat(frames.objects > 0, 3, axis=1)
    parts = {name: number[getattr(frames, name)] for name in ("goal", "action", "args", "objects")}
    return EncodedPool({**parts, "state": frames.state, "sub": sub}, frames.time, pool.first, pool)


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
        rows: int, (T, ROW_WIDTH); key frames in the order of time, with the parts at `COLUMNS`.
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
    goals = [GOALS[symbol] for symbol in named if symbol in GOALS]
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
