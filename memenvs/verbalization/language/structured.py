"""Answers as tuples of small integers, for agents without a text decoder.

A tuple is one clause. A number 0 says nothing, and n stands for value n - 1 of its slot; `emit` is 1 for a clause and 0
for the end of the answer. A time is a day, counted back from the question, an hour and a minute; without a minute it is
the hour. `quantity` is a count, or a duration in units of five seconds. Answers about the date have the month as their
hour and the date as their minute; the weekday is their quantity, Monday 1. In a summary, a later clause says with its
day or hour how much later its episode began.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memenvs.verbalization.dates import DAY, as_datetime
from memenvs.verbalization.language.answer_parser import parse_answer
from memenvs.verbalization.language.facts import MAX_CLAUSES, OUTCOMES, VERBS, Clause, Duration, Later
from memenvs.verbalization.language.numbers import MONTHS, WEEKDAYS
from memenvs.verbalization.language.questions import Question
from memenvs.verbalization.language.times import HOUR, MINUTE, TimeReference
from memenvs.verbalization.symbols import HANDS, LOCATIONS, OBJECTS

#: No answer names a day that is longer ago.
LONGEST_AGO = 511
#: Unit of durations, s, and the most units of a duration; a count is at most as large.
UNIT_SECONDS = 5
MOST_UNITS = 120
#: Number of choices of each slot of a tuple.
SLOT_SIZES = {
    "emit": 2,
    "verb": len(VERBS) + 1,
    "object": len(OBJECTS) + 1,
    "location": len(LOCATIONS) + 1,
    "hand": len(HANDS) + 1,
    "outcome": len(OUTCOMES) + 1,
    "day": LONGEST_AGO + 2,
    "hour": 24 + 1,
    "minute": 60 + 1,
    "quantity": MOST_UNITS + 2,
}
_VALUES = (VERBS, tuple(OBJECTS), tuple(LOCATIONS), tuple(HANDS), OUTCOMES)


def too_old(time: TimeReference, now: int) -> bool:
    """Return True for times that tuples cannot say."""
    return now // DAY - time.low // DAY > LONGEST_AGO


def encode_answer(question: Question, clauses: Sequence[Clause], now: int) -> np.ndarray:
    """Encode an answer.

    Args:
        question: The question.
        clauses: Its answer, at most `MAX_CLAUSES` clauses.
        now: Second since 2020-01-01 00:00:00 at which the question is put.

    Returns:
        int16, (MAX_CLAUSES, 10); rows after the last clause are 0.

    Raises:
        ValueError: There are too many clauses.
    """
    if len(clauses) > MAX_CLAUSES:
        raise ValueError(f"clauses must be at most {MAX_CLAUSES}, got {len(clauses)}")
    rows = np.zeros((MAX_CLAUSES, len(SLOT_SIZES)), np.int16)
    for row, clause in zip(rows, clauses, strict=False):
        names = (clause.verb, clause.object, clause.location, clause.hand, clause.outcome)
        row[0] = 1
        row[1:6] = [0 if name is None else values.index(name) + 1 for name, values in zip(names, _VALUES, strict=True)]
        row[6:9] = _encode_time(question, clause, now)
        row[9] = _encode_quantity(question, clause)
    return rows


def _encode_time(question: Question, clause: Clause, now: int) -> tuple[int, int, int]:
    if clause.later is not None:
        days = clause.later.unit == "days"
        return (min(clause.later.number, LONGEST_AGO) + 1, 0, 0) if days else (0, clause.later.number + 1, 0)
    time = clause.time
    if time is None or question.family == "clock.weekday":
        return 0, 0, 0
    if question.family == "clock.date":
        date = as_datetime(time.low)
        return 0, date.month + 1, date.day + 1
    # The middle lies in what the phrase denotes, and so do the minute and, of coarser phrases, the hour that it is in.
    middle = (time.low + time.high) // 2
    hour, minute = divmod(middle % DAY // MINUTE, 60)
    fine = time.precision in ("minute", "span")
    return now // DAY - middle // DAY + 1, hour + 1, minute + 1 if fine else 0


def _encode_quantity(question: Question, clause: Clause) -> int:
    if question.family == "clock.weekday" and clause.time is not None:
        return as_datetime(clause.time.low).weekday() + 2
    if clause.number is not None:
        return min(clause.number, MOST_UNITS) + 1
    if clause.duration is None:
        return 0
    seconds = clause.duration.seconds if clause.duration.exact else clause.duration.rounded
    return min(round(seconds / UNIT_SECONDS), MOST_UNITS) + 1


def decode_answer(question: Question, rows: np.ndarray, now: int) -> tuple[Clause, ...] | None:
    """Decode the tuples that answer a question; the inverse of `encode_answer`.

    Args:
        question: The question.
        rows: int, (R, 10); rows from the first without `emit` on are ignored.
        now: Second since 2020-01-01 00:00:00 at which the question is put.

    Returns:
        Its clauses; None if it says nothing.
    """
    clauses: list[Clause] = []
    for row in np.asarray(rows).tolist():
        if not row[0]:
            break
        names = [values[number - 1] if number else None for number, values in zip(row[1:6], _VALUES, strict=True)]
        clause = Clause(*names)
        day, hour, minute, quantity = (number - 1 for number in row[6:])
        if question.kind == "clock":
            clause = clause._replace(time=_decode_clock(question, hour, minute, quantity, now))
        elif question.kind == "summary" and clauses:
            clause = clause._replace(later=_decode_later(day, hour))
        else:
            clause = clause._replace(time=_decode_time(day, hour, minute, now))
        if quantity >= 0 and question.kind == "duration":
            clause = clause._replace(duration=Duration(UNIT_SECONDS * quantity, question.exact))
        elif quantity >= 0 and question.kind != "clock":
            clause = clause._replace(number=quantity)
        if any(value is not None for value in clause):
            clauses.append(clause)
    return tuple(clauses) or None


def _decode_later(day: int, hour: int) -> Later | None:
    if day >= 0:
        return Later("days", day)
    return Later("hours", hour) if hour >= 0 else None


def _decode_time(day: int, hour: int, minute: int, now: int) -> TimeReference | None:
    if max(day, hour, minute) < 0:
        return None
    start = (now // DAY - max(day, 0)) * DAY
    if hour < 0:
        return TimeReference("", start, start + DAY, "day", "days")
    low = start + hour * HOUR + max(minute, 0) * MINUTE
    # An hour alone is right wherever its first second is.
    return (
        TimeReference("", low, low + MINUTE, "minute", "days")
        if minute >= 0
        else TimeReference("", low, low + 1, "hour", "days")
    )


def _decode_clock(question: Question, hour: int, minute: int, quantity: int, now: int) -> TimeReference | None:
    """Read the answer as its text would be read."""
    if question.family == "clock.time":
        return _decode_time(0, hour, minute, now) if minute >= 0 else None
    if question.family == "clock.weekday":
        text = WEEKDAYS[quantity - 1] if 1 <= quantity <= 7 else ""
    else:
        text = f"{MONTHS[hour - 1]} {minute}" if 1 <= hour <= 12 and minute >= 1 else ""
    clauses = parse_answer("clock", text, now) if text else None
    return clauses[0].time if clauses else None
