"""Histories and questions of a split as arrays, from which batches are slices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

import numpy as np

from memenvs.agents.verbalization.answer_slots import ANSWER_SLOTS, encode_slots
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dates import date_fields
from memenvs.verbalization.dialogs import Dialogs, load_dialogs
from memenvs.verbalization.encoding import PARTS
from memenvs.verbalization.language.facts import MAX_CLAUSES
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.questions import Question
from memenvs.verbalization.language.times import PRECISIONS
from memenvs.verbalization.language.times import Family as TimeFamily
from memenvs.verbalization.language.wordings import FAMILIES, KINDS
from memenvs.verbalization.symbols import LOCATIONS, OBJECTS, SYMBOL_IDS

QUESTION_SLOTS: dict[str, tuple[str, ...]] = {
    "family": tuple(FAMILIES),
    "verb": ("move", "grasp", "putdown", "go", "arrive", "see", "touch"),
    "object": tuple(OBJECTS),
    "location": tuple(LOCATIONS),
    "order": ("first", "last"),
    "exact": ("exact",),
    "precision": PRECISIONS,
    "time_family": get_args(TimeFamily),
}
"""Slot of a structured question -> its values; number 0 says that it has none."""


def encode_question(question: Question) -> np.ndarray:
    """Encode the slots of a question, int64, (len(QUESTION_SLOTS),); 0 is none, n value n - 1."""
    time = question.time
    values = (
        question.family,
        question.verb,
        question.object,
        question.location,
        question.order,
        "exact" if question.exact else None,
        time and time.precision,
        time and time.family,
    )
    names = zip(values, QUESTION_SLOTS.values(), strict=True)
    return np.array([0 if value is None else known.index(value) + 1 for value, known in names])


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
        slots: int64, (N, Q, 8); questions, see `encode_question`.
        times: int16, (N, Q, 3, 7); first and last second that the question's time denotes, and the present.
        target: int16, (N, Q, 8, 11); see `encode_slots`.
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
            slots[i, q] = encode_question(qa.question)
            times[i, q] = date_fields(np.array([*np.maximum(bounds, 0), qa.now]))
            target[i, q] = encode_slots(log, qa, hands)
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


def kinds_of(slots: np.ndarray) -> np.ndarray:
    """Return the kind of each question, int64, (...); index into `KINDS`.

    Args:
        slots: int64, (..., 8); see `encode_question`.
    """
    kinds = np.array([KINDS.index(FAMILIES[family].kind) for family in QUESTION_SLOTS["family"]])
    return kinds[slots[..., 0] - 1]
