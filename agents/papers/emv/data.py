"""Histories and questions of a split as arrays, and renamed objects and places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from memenvs.agents.papers.emv.slots import ANSWER_SLOTS, QUESTION_SLOTS, answer_slots, question_slots
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dates import date_fields
from memenvs.verbalization.dialogs import Dialogs, load_dialogs
from memenvs.verbalization.key_frames import PARTS
from memenvs.verbalization.language.facts import MAX_CLAUSES
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.symbols import HANDS, LOCATIONS, OBJECTS, SYMBOL_IDS, SYMBOLS, Goal

_OBJECT_IDS = np.array([SYMBOL_IDS[name] for name in OBJECTS])
_LOCATION_IDS = np.array([SYMBOL_IDS[name] for name in LOCATIONS])
_AT_IDS = np.array([[SYMBOL_IDS[Goal("objectAt", each, place).symbol] for place in LOCATIONS] for each in OBJECTS])
_GRASPED_IDS = np.array([[SYMBOL_IDS[Goal("grasped", each, hand).symbol] for hand in HANDS] for each in OBJECTS])

SYMBOLIC = ("goal", "action", "args", "objects")
"""Parts of a key frame that hold numbers of symbols."""


@dataclass(frozen=True)
class DialogArrays:
    """N histories of at most T key frames, and Q questions about each.

    Attributes:
        dialogs: Where they come from.
        numbers: int64, (N,); number of each history in `dialogs`.
        length: int64, (N,); episodes.
        count: int64, (N,); key frames.
        index: int32, (N, T); rows of `tables`; the last ones of each history, and a blank row before.
        dates: int16, (N, T, 7); dates of the key frames.
        tables: Part -> (rows, ...), key frames of the pool and at last a blank one. Symbols are numbered as in
            `SYMBOLS`, but those that the training split has not are "<unk>".
        slots: int64, (N, Q, 8); questions, see `question_slots`.
        times: int16, (N, Q, 3, 7); first and last second that the question's time denotes, and the present.
        target: int16, (N, Q, 8, 11); see `answer_slots`.
    """

    dialogs: Dialogs
    numbers: np.ndarray
    length: np.ndarray
    count: np.ndarray
    index: np.ndarray
    dates: np.ndarray
    tables: dict[str, np.ndarray]
    slots: np.ndarray
    times: np.ndarray
    target: np.ndarray

    def frames(self, rows: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Assemble the key frames of histories.

        Args:
            rows: int64, (B,); histories.

        Returns:
            Part -> array, (B, T', ...), filled up in front; and a mask of the key frames, bool, (B, T').
        """
        longest = max(1, int(self.count[rows].max()))
        index = self.index[rows, -longest:]
        mask = np.arange(longest) >= longest - self.count[rows, None]
        frames = {part: table[index] for part, table in self.tables.items()}
        if "dt" in self.dialogs.config.parts:
            frames["dt"] = self.dates[rows, -longest:]
        return frames, mask


def make_arrays(dialogs: Dialogs, progress: Callable[[float], None] = lambda share: None) -> DialogArrays:
    """Make the arrays of all histories about which there is a question.

    Args:
        dialogs: Histories and questions.
        progress: Called with the share that is done.
    """
    config = dialogs.config
    hands = config.language().hands
    numbers = [number for number in range(len(dialogs)) if dialogs.usable(number) == number]
    lives = [dialogs.history(number) for number in numbers]
    counts = np.array([life.num_frames for life in lives])
    pool, longest = dialogs.data.frames, max(1, int(counts.max()))
    shape = (len(lives), config.questions)
    index = np.full((len(lives), longest), len(pool.time), np.int32)
    dates = np.zeros((len(lives), longest, 7), np.int16)
    slots = np.zeros((*shape, len(QUESTION_SLOTS)), np.int64)
    times = np.zeros((*shape, 3, 7), np.int16)
    target = np.zeros((*shape, MAX_CLAUSES, len(ANSWER_SLOTS)), np.int16)
    for i, (number, life) in enumerate(zip(numbers, lives, strict=True)):
        log = Log(life)
        index[i, longest - counts[i] :] = pool.rows(life)
        dates[i, longest - counts[i] :] = pool.dates(life)
        for q in range(config.questions):
            qa = dialogs.question(number, q).qa
            time = qa.question.time
            bounds = (0, 0) if time is None else (time.low, time.high)
            slots[i, q] = question_slots(qa.question)
            times[i, q] = date_fields(np.array([*np.maximum(bounds, 0), qa.now]))
            target[i, q] = answer_slots(log, qa, hands)
        progress((i + 1) / len(lives))
    tables = {}
    symbols = np.array([SYMBOL_IDS[each] for each in dialogs.data.dictionary.symbols], np.int16)
    for part in config.parts:
        if part != "dt":
            values = pool.array(part)
            if part in SYMBOLIC:
                values = symbols[values]
            blank = np.zeros((1, *PARTS[part][0]), values.dtype)
            tables[part] = np.concatenate([values, blank])
    length = np.array([len(life) for life in lives])
    return DialogArrays(dialogs, np.array(numbers), length, counts, index, dates, tables, slots, times, target)


@lru_cache(maxsize=4)
def load_arrays(config: EpisodicQAConfig) -> DialogArrays:
    """Make the arrays of some settings, or return those that were made before."""
    return make_arrays(load_dialogs(config))


@dataclass(frozen=True)
class Renaming:
    """New names in each of B histories.

    Attributes:
        symbols: int64, (B, len(SYMBOLS)); number of the symbol that takes the place of each.
        objects: int64, (B, len(OBJECTS) + 1); the same for values of the slot "object", where 0 is none.
        locations: int64, (B, len(LOCATIONS) + 1); the same for the slot "location".
    """

    symbols: np.ndarray
    objects: np.ndarray
    locations: np.ndarray

    def shard(self, part: slice) -> Renaming:
        """Select histories."""
        return Renaming(self.symbols[part], self.objects[part], self.locations[part])

    def of_frames(self, values: np.ndarray) -> np.ndarray:
        """Rename numbers of symbols, int (B, ...)."""
        return _look_up(self.symbols, values)

    def of_slots(self, rows: np.ndarray, object_column: int, location_column: int) -> np.ndarray:
        """Rename objects and locations of questions or answers, int (B, ..., slots)."""
        rows = rows.copy()
        rows[..., object_column] = _look_up(self.objects, rows[..., object_column])
        rows[..., location_column] = _look_up(self.locations, rows[..., location_column])
        return rows


def draw_renaming(count: int, rng: np.random.Generator) -> Renaming:
    """Draw new names for objects, and for locations among those with the same role.

    Args:
        count: Number of histories.
        rng: Source of randomness.
    """
    objects = np.argsort(rng.random((count, len(OBJECTS))), axis=1)
    locations = np.tile(np.arange(len(LOCATIONS)), (count, 1))
    roles = [(each.pick, each.place) for each in LOCATIONS.values()]
    for role in sorted(set(roles)):
        members = np.array([number for number, each in enumerate(roles) if each == role])
        locations[:, members] = members[np.argsort(rng.random((count, len(members))), axis=1)]
    symbols = np.tile(np.arange(len(SYMBOLS)), (count, 1))
    symbols[:, _OBJECT_IDS] = _OBJECT_IDS[objects]
    symbols[:, _LOCATION_IDS] = _LOCATION_IDS[locations]
    symbols[:, _AT_IDS] = _AT_IDS[objects[:, :, None], locations[:, None]]
    symbols[:, _GRASPED_IDS] = _GRASPED_IDS[objects]
    none = np.zeros((count, 1), np.int64)
    return Renaming(symbols, np.concatenate([none, objects + 1], 1), np.concatenate([none, locations + 1], 1))


def _look_up(tables: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Look up values, int (B, ...), in one table for each history, (B, entries)."""
    row = np.arange(len(tables)).reshape(-1, *[1] * (values.ndim - 1))
    return tables[row, values].astype(values.dtype)
