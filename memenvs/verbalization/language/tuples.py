"""Answers as tuples of small integers, and the actions that spell them fact by fact.

A tuple is one clause. A number 0 says nothing, and n stands for value n - 1 of its slot; `emit` is 1 for a clause and 0
for the end of the answer. A time is a day, counted back from the question, an hour and a minute; without a minute it is
the hour. `quantity` is a count, or a duration in units of five seconds. Answers about the date have the month as their
hour and the date as their minute; the weekday is their quantity, Monday 1. In a summary, a later clause says with its
day or hour how much later its episode began.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from memenvs.verbalization.dates import DAY, as_datetime
from memenvs.verbalization.language.facts import MAX_CLAUSES, OUTCOMES, VERBS, Clause, Duration, Later
from memenvs.verbalization.language.names import MONTHS, WEEKDAYS
from memenvs.verbalization.language.parser import parse_answer
from memenvs.verbalization.language.questions import Question
from memenvs.verbalization.language.times import HOUR, MINUTE, TimeReference
from memenvs.verbalization.language.wordings import Kind
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
STOP, NEXT = 0, 1
SLOTS = tuple(SLOT_SIZES)
EMIT = SLOTS.index("emit")
#: Kinds of questions whose answers have a slot; the other slots are in answers of every kind.
_KINDS_OF_SLOT: dict[str, tuple[Kind, ...]] = {
    "hand": ("action", "summary"),
    "day": ("clock", "problems", "past_time", "summary"),
    "hour": ("clock", "problems", "past_time", "summary"),
    "minute": ("clock", "problems", "past_time", "summary"),
    "quantity": ("clock", "duration", "how_often"),
}
#: Values of the slots that have names.
_NAMED: dict[str, tuple[str, ...]] = {
    "verb": VERBS,
    "object": tuple(OBJECTS),
    "location": tuple(LOCATIONS),
    "hand": tuple(HANDS),
    "outcome": OUTCOMES,
}
_VALUES = tuple(_NAMED.values())


def fit_tuples(clauses: Sequence[Clause], now: int) -> bool:
    """Return True for clauses that tuples can say: not too many, and no time too long ago."""
    times = (clause.time for clause in clauses if clause.time)
    return len(clauses) <= MAX_CLAUSES and all(now // DAY - time.low // DAY <= LONGEST_AGO for time in times)


def clauses_to_tuples(question: Question, clauses: Sequence[Clause], now: int) -> np.ndarray:
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


def tuples_to_clauses(question: Question, rows: np.ndarray, now: int) -> tuple[Clause, ...] | None:
    """Decode the tuples that answer a question; the inverse of `clauses_to_tuples`.

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


class FactActions:
    """Actions that set the slots of an answer's tuples one by one.

    Action 0 ends the answer, action 1 starts its next clause. Every other action sets one slot of the present clause to
    one value; a slot that is set again has the new value.

    Args:
        kinds: Kinds of questions; slots that their answers never have get no action.
        objects: Symbols of the objects that get an action.
        locations: The same of locations.
        denials: There is an action for "I did not do that".

    Attributes:
        names: Name of each action.
        slot: int64, (A,); index of the slot that it sets, in the order of `SLOT_SIZES`.
        value: int16, (A,); number that it sets.
    """

    def __init__(
        self, kinds: Collection[Kind], objects: Collection[str], locations: Collection[str], *, denials: bool = True
    ) -> None:
        outcomes = [name for name in OUTCOMES if denials or name != "denial"]
        allowed: dict[str, Collection[str]] = {"object": objects, "location": locations, "outcome": outcomes}
        rows: list[tuple[str, int, int]] = [("stop", EMIT, 0), ("next clause", EMIT, 0)]
        for number, (slot, size) in enumerate(SLOT_SIZES.items()):
            if slot == "emit" or (slot in _KINDS_OF_SLOT and not set(kinds) & set(_KINDS_OF_SLOT[slot])):
                continue
            values: Sequence[object] = _NAMED.get(slot, range(size - 1))
            for value, name in enumerate(values, 1):
                if name in allowed.get(slot, values):
                    rows.append((f"{slot} {name}", number, value))
        self.names = tuple(name for name, _, _ in rows)
        self.slot = np.array([slot for _, slot, _ in rows], np.int64)
        self.value = np.array([value for _, _, value in rows], np.int16)
        self._numbers = {(slot, value): number for number, (_, slot, value) in enumerate(rows) if number > NEXT}

    def __len__(self) -> int:
        return len(self.names)

    def spell(self, tuples: np.ndarray) -> tuple[int, ...] | None:
        """List the actions that give an answer; None if a fact of it has no action.

        Args:
            tuples: int16, (8, 10); see `memenvs.verbalization.language.tuples`.
        """
        actions: list[int] = []
        for number, row in enumerate(tuples[tuples[:, EMIT] > 0].tolist()):
            facts = [self._numbers.get((slot, value)) for slot, value in enumerate(row) if slot != EMIT and value]
            if None in facts:
                return None
            actions += [NEXT] * (number > 0) + facts  # type: ignore[operator]
        return (*actions, STOP)


#: Most actions of an answer: every slot of every clause, the steps between them and the end.
MAX_FACTS = MAX_CLAUSES * len(SLOTS)


class TupleAnswers:
    """Structured answers of N environments, as they are spelled.

    Args:
        num_envs: N.
        actions: The actions.

    Attributes:
        rows: int16, (N, 8, 10); tuples so far.
    """

    def __init__(self, num_envs: int, actions: FactActions) -> None:
        self._actions = actions
        self.rows = np.zeros((num_envs, MAX_CLAUSES, len(SLOTS)), np.int16)
        self._clause = np.zeros(num_envs, np.int64)
        self._count = np.zeros(num_envs, np.int64)

    def clear(self, envs: int | np.ndarray) -> None:
        """Empty the answers of some environments."""
        self.rows[envs] = 0
        self._clause[envs] = 0
        self._count[envs] = 0

    def add(self, actions: np.ndarray, envs: np.ndarray) -> np.ndarray:
        """Add an action to some answers.

        Args:
            actions: int64, (E,).
            envs: int64, (E,); indices of the environments.

        Returns:
            bool, (E,); True where the answer has ended.
        """
        self._count[envs] += 1
        sets = actions > NEXT
        chosen, which = actions[sets], envs[sets]
        clause = self._clause[which]
        self.rows[which, clause, self._actions.slot[chosen]] = self._actions.value[chosen]
        self.rows[which, clause, EMIT] = 1
        has_fact = self.rows[envs, self._clause[envs], EMIT] > 0  # an empty clause would end the answer
        self._clause[envs] += (actions == NEXT) & has_fact
        full = self._clause[envs] >= MAX_CLAUSES
        self._clause[envs] = np.minimum(self._clause[envs], MAX_CLAUSES - 1)
        return (actions == STOP) | full | (self._count[envs] >= MAX_FACTS)


def describe_tuples(rows: np.ndarray) -> str:
    """Describe tuples for people, such as "verb move, object corn; verb grasp, object oil".

    Args:
        rows: int, (8, slots); one row a clause, unused ones with 0 in the slot `EMIT`.
    """
    clauses = []
    for row in rows[rows[:, EMIT] > 0].tolist():
        facts = [
            f"{slot} {_NAMED[slot][value - 1] if slot in _NAMED else value - 1}"
            for slot, value in zip(SLOTS, row, strict=True)
            if value and slot != "emit"
        ]
        clauses.append(", ".join(facts))
    return "; ".join(clauses)


def pad_tokens(tokens: Sequence[int], length: int) -> np.ndarray:
    """Fill a row of token numbers with 0 to a length; int32, (length,).

    Raises:
        ValueError: There are more tokens.
    """
    if len(tokens) > length:
        raise ValueError(f"a text must have at most {length} tokens, got {len(tokens)}")
    row = np.zeros(length, np.int32)
    row[: len(tokens)] = tokens
    return row
