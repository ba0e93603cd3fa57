"""Questions of a split as arrays, and renamed objects and places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from memenvs.agents.papers.emv.slots import ANSWER_SLOTS, QUESTION_SLOTS, answer_slots, question_slots
from memenvs.query_task import Episodes
from memenvs.verbalization.dates import date_fields
from memenvs.verbalization.dialogs import Dialogs
from memenvs.verbalization.language.facts import MAX_CLAUSES
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.symbols import HANDS, LOCATIONS, OBJECTS, SYMBOL_IDS, SYMBOLS, Goal

_OBJECT_IDS = np.array([SYMBOL_IDS[name] for name in OBJECTS])
_LOCATION_IDS = np.array([SYMBOL_IDS[name] for name in LOCATIONS])
_AT_IDS = np.array([[SYMBOL_IDS[Goal("objectAt", name, place).symbol] for place in LOCATIONS] for name in OBJECTS])
_GRASPED_IDS = np.array([[SYMBOL_IDS[Goal("grasped", name, hand).symbol] for hand in HANDS] for name in OBJECTS])

SYMBOLIC = {"goal", "action", "args", "objects"}
"""Parts of a key frame that hold numbers of symbols."""


@dataclass(frozen=True)
class QuestionArrays:
    """Q questions about each of H histories for a model, and the answers that it learns.

    What belongs to histories about which there is no question is 0.

    Attributes:
        dialogs: Histories and questions.
        symbols: int16, (S,); index in `SYMBOLS` of each number of a symbol in key frames. Those that the training split
            has not are "<unk>".
        slots: int64, (H, Q, 8); questions, see `question_slots`.
        times: int16, (H, Q, 3, 7); first and last second that the question's time denotes, and the present.
        target: int16, (H, Q, 8, 11); see `answer_slots`.
    """

    dialogs: Dialogs
    symbols: np.ndarray
    slots: np.ndarray
    times: np.ndarray
    target: np.ndarray


def make_arrays(dialogs: Dialogs, progress: Callable[[float], None] = lambda share: None) -> QuestionArrays:
    """Encode all questions about all histories.

    Args:
        dialogs: Histories and questions.
        progress: Called with the share that is done.
    """
    config = dialogs.config
    hands = config.language().hands
    shape = (len(dialogs), config.questions)
    slots = np.zeros((*shape, len(QUESTION_SLOTS)), np.int64)
    times = np.zeros((*shape, 3, 7), np.int16)
    target = np.zeros((*shape, MAX_CLAUSES, len(ANSWER_SLOTS)), np.int16)
    for number in range(len(dialogs)):
        if dialogs.usable(number) == number:
            log = Log(dialogs.history(number))
            for q in range(config.questions):
                qa = dialogs.question(number, q).qa
                time = qa.question.time
                bounds = (0, 0) if time is None else (time.low, time.high)
                slots[number, q] = question_slots(qa.question)
                times[number, q] = date_fields(np.array([*np.maximum(bounds, 0), qa.now]))
                target[number, q] = answer_slots(log, qa, hands)
        progress((number + 1) / len(dialogs))
    symbols = np.array([SYMBOL_IDS[symbol] for symbol in dialogs.data.dictionary.symbols], np.int16)
    return QuestionArrays(dialogs, symbols, slots, times, target)


@lru_cache(maxsize=4)
def load_arrays(dialogs: Dialogs) -> QuestionArrays:
    """Encode all questions of some dialogs, or return what was encoded before."""
    return make_arrays(dialogs)


@dataclass(frozen=True, eq=False)
class Renaming(Episodes):
    """New names in each of B histories.

    Attributes:
        symbols: int64, (B, len(SYMBOLS)); number of the symbol that takes the place of each.
        objects: int64, (B, len(OBJECTS) + 1); the same for values of the slot "object", where 0 is none.
        locations: int64, (B, len(LOCATIONS) + 1); the same for the slot "location".
    """

    symbols: np.ndarray
    objects: np.ndarray
    locations: np.ndarray

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
    roles = [(location.pick, location.place) for location in LOCATIONS.values()]
    for role in sorted(set(roles)):
        members = np.array([number for number, location in enumerate(roles) if location == role])
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
