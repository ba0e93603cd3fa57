"""Questions and answers as slots, small integers for a neural network.

A date can be copied from the memory, while "three days ago" must be computed. So each moment that an answer names is
learned as month, day of the month, hour and minute. What is counted from it, such as days ago or hours later, follows
by the calendar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np

from memenvs.verbalization.dates import DAY, HOUR, as_datetime, as_seconds, date_fields
from memenvs.verbalization.language.facts import MAX_CLAUSES, Clause, Later
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.questions import Question, Speaker, answer_clauses, plain_time, referents
from memenvs.verbalization.language.sampler import QuestionAnswer
from memenvs.verbalization.language.score import CORRECT, score_clauses
from memenvs.verbalization.language.speech import later_than
from memenvs.verbalization.language.times import PRECISIONS, TimeReference
from memenvs.verbalization.language.times import Family as TimeFamily
from memenvs.verbalization.language.tuples import (
    LONGEST_AGO,
    SLOT_SIZES,
    clauses_to_tuples,
    fit_tuples,
    tuples_to_clauses,
)
from memenvs.verbalization.language.wordings import FAMILIES, KINDS
from memenvs.verbalization.symbols import LOCATIONS, OBJECTS

ANSWER_SLOTS = {
    **{name: SLOT_SIZES[name] for name in ("emit", "verb", "object", "location", "hand", "outcome")},
    "month": 13,
    "date": 32,
    **{name: SLOT_SIZES[name] for name in ("hour", "minute", "quantity")},
}
"""Slot -> number of its values; 0 says nothing. Months and days of the month count from 1."""
_CONTENT, _TIME = slice(0, 6), slice(6, 10)
EMIT = 0
"""Index of the slot of an answer that says whether there is a clause."""
ORDERED = ("summary",)
"""Kinds whose clauses have an order that means something."""
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


def clauses_to_learn(
    log: Log,
    qa: QuestionAnswer,
    hands: bool,
    name_time: Callable[[int, int], TimeReference],
    as_answered: Callable[[tuple[Clause, ...]], Sequence[Clause] | None],
) -> tuple[Clause, ...]:
    """Return the clauses of the answer to learn, with exact times where they are right.

    The gold answer names times by a phrase that is drawn. An exact time is right whatever the phrase, and can be known.

    Args:
        log: The history.
        qa: Question and gold answer.
        hands: Whether answers state with which hand an object was grasped.
        name_time: Names a moment, given the moment and now.
        as_answered: What clauses become when a model answers them: through slots, or through words.
    """
    question = qa.question
    moment = qa.reference if question.family == "location.robot" else None
    clauses = answer_clauses(log, question, referents(log, question), Speaker(name_time, hands), moment)
    if not fit_tuples(clauses, qa.now):
        return qa.answer.clauses
    is_right = score_clauses(as_answered(clauses), qa.answer.clauses, None).category == CORRECT
    return clauses if is_right else qa.answer.clauses


def answer_slots(log: Log, qa: QuestionAnswer, hands: bool) -> np.ndarray:
    """Encode the answer to learn, with clauses in a fixed order; see `clauses_to_learn`.

    Args:
        log: The history.
        qa: Question and gold answer.
        hands: Whether answers state with which hand an object was grasped.

    Returns:
        int16, (MAX_CLAUSES, len(ANSWER_SLOTS)).
    """
    question, now = qa.question, qa.now

    def through_tuples(clauses: tuple[Clause, ...]) -> tuple[Clause, ...] | None:
        return tuples_to_clauses(question, clauses_to_tuples(question, clauses, now), now)

    clauses = clauses_to_learn(log, qa, hands, plain_time, through_tuples)
    rows = _encode(question, clauses, [referent.time for referent in referents(log, question)], now)
    return rows if question.kind in ORDERED else sort_clauses(rows)


def sort_clauses(rows: np.ndarray) -> np.ndarray:
    """Sort clauses, int (..., 8, slots), by all slots but times, empty ones at last."""
    key = 1 - rows[..., 0].astype(np.int64)
    for column in range(1, 6):
        key = 32 * key + rows[..., column]
    return np.take_along_axis(rows, np.argsort(key, axis=-1, kind="stable")[..., None], -2)


def _encode(question: Question, clauses: Sequence[Clause], starts: Sequence[int], now: int) -> np.ndarray:
    """Encode clauses; `starts` are those of the episodes of a summary."""
    tuples = clauses_to_tuples(question, clauses, now)
    rows = np.zeros((MAX_CLAUSES, len(ANSWER_SLOTS)), np.int16)
    rows[:, _CONTENT], rows[:, -1] = tuples[:, :6], tuples[:, -1]
    if question.kind == "clock":
        if question.family == "clock.date":
            rows[0, 6:8] = tuples[0, 7:9] - 1
        elif question.family == "clock.time":
            rows[0, 8:10] = tuples[0, 7:9]
        return rows
    remaining = iter(starts)
    before: int | None = None
    for row, clause in zip(rows, clauses, strict=False):
        if clause.time is None and clause.later is None:
            continue
        is_summary = question.kind == "summary"
        before = moment = _whole_minute(next(remaining), before, clause.later) if is_summary else _moment(clause)
        _, month, day, _, hour, minute, _ = date_fields(np.array(moment)).tolist()
        row[_TIME] = month, day, hour + 1, minute + 1
    return rows


def _moment(clause: Clause) -> int:
    """Second in the middle of what the time of a clause denotes."""
    assert clause.time is not None
    return (clause.time.low + clause.time.high) // 2


def _whole_minute(start: int, before: int | None, later: Later | None) -> int:
    """Whole minute at or beside the start of an episode that is as much later than the one before as its clause says.

    Hours later are rounded, so the seconds that slots do not have can decide between two of them.
    """
    minute = start // 60 * 60
    beside = (minute, minute + 60, minute - 60)
    return next((candidate for candidate in beside if before is None or _later(before, candidate) == later), minute)


def _later(before: int, start: int) -> Later:
    """Words of a summary for the time from the start of the episode before to that of this one."""
    return later_than(max(0, start - before), max(0, start // DAY - before // DAY))


def slots_to_tuples(question: Question, rows: np.ndarray, now: int) -> np.ndarray:
    """Turn an answer of the head into tuples, which `tuples_to_clauses` reads.

    Args:
        question: The question.
        rows: int, (MAX_CLAUSES, len(ANSWER_SLOTS)).
        now: Second since 2020-01-01 00:00:00 at which the question is put.

    Returns:
        int16, (MAX_CLAUSES, 10).
    """
    tuples = np.zeros((len(rows), len(SLOT_SIZES)), np.int16)
    tuples[:, :6], tuples[:, -1] = rows[:, _CONTENT], rows[:, -1]
    before: int | None = None
    for slots, row in zip(rows.tolist(), tuples, strict=True):
        month, date, hour, minute = slots[_TIME]
        if question.kind == "clock":
            row[7:9] = (month + 1, date + 1) if question.family == "clock.date" and month else (hour, minute)
            continue
        if not month or not date:
            row[7:9] = hour, minute
            continue
        day = _latest(month, date, now)
        start = day * DAY + max(hour - 1, 0) * HOUR + 60 * max(minute - 1, 0)
        if question.kind == "summary" and before is not None:
            later = _later(before, start)
            row[6:8] = (later.number + 1, 0) if later.unit == "days" else (0, later.number + 1)
        else:
            row[6:9] = min(now // DAY - day, LONGEST_AGO) + 1, hour, minute
        before = start
    return tuples


def _latest(month: int, date: int, now: int) -> int:
    """Find the latest day of a month and date that is not after now, days since 2020-01-01."""
    today = as_datetime(now)
    for year in (today.year, today.year - 1):
        first = today.replace(year=year, month=month, day=1, hour=0, minute=0, second=0)
        day = as_seconds(first) // DAY + date - 1  # a date that the month has not runs on into the next
        if day <= now // DAY:
            break
    return day


def question_slots(question: Question) -> np.ndarray:
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
    return np.array([0 if value is None else choices.index(value) + 1 for value, choices in names])


def kinds_of(slots: np.ndarray) -> np.ndarray:
    """Return the kind of each question, int64, (...); index into `KINDS`.

    Args:
        slots: int64, (..., 8); see `question_slots`.
    """
    kinds = np.array([KINDS.index(FAMILIES[family].kind) for family in QUESTION_SLOTS["family"]])
    return kinds[slots[..., 0] - 1]
