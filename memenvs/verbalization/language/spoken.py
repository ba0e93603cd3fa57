"""Words for the clauses of an answer that a model gave, also where facts are missing."""

from __future__ import annotations

from collections.abc import Sequence

from memenvs.verbalization.dates import DAY, as_datetime
from memenvs.verbalization.language.facts import SLOTS, Clause, Duration, Later
from memenvs.verbalization.language.numbers import MONTHS, spell
from memenvs.verbalization.language.questions import Question
from memenvs.verbalization.language.speech import say, say_duration
from memenvs.verbalization.language.times import TimeReference
from memenvs.verbalization.symbols import HANDS, LOCATIONS, OBJECTS

NO_ANSWER = "I do not know."
"""Words for an answer without any fact."""
#: Kind of question -> facts without which its sentence cannot be made.
_NEEDED = {
    "clock": ("time",),
    "past_time": ("time",),
    "location": ("location",),
    "object": ("object",),
    "duration": ("duration",),
    "how_often": ("number",),
}


def spoken_answer(question: Question, clauses: Sequence[Clause] | None, now: int) -> str:
    """Put an answer into words.

    Args:
        question: The question.
        clauses: What the answer states; None if it states nothing.
        now: Second since 2020-01-01 00:00:00 at which the question is put.

    Returns:
        A sentence of the grammar; where facts for it are missing, a list of those that are there.
    """
    if not clauses:
        return NO_ANSWER
    named = [clause._replace(time=_name_time(question, clause.time, now)) for clause in clauses]
    if _makes_a_sentence(question, named):
        return say(question.family, named, 0)
    return f"{'; '.join(filter(None, map(_list_facts, named)))}."


def _name_time(question: Question, time: TimeReference | None, now: int) -> TimeReference | None:
    """Give a time without words its words, and a date its capital letter."""
    if time is None or (time.text and question.family != "clock.date"):
        return time
    date = as_datetime(time.low)
    if question.family == "clock.date":
        return time._replace(text=f"{MONTHS[date.month - 1]} {date.day}")
    if question.family == "clock.time":
        return time._replace(text=f"{date:%H:%M}")
    if time.precision == "day":
        return time._replace(text=f"on {MONTHS[date.month - 1]} {date.day}")
    days = now // DAY - time.low // DAY
    day = ("today", "yesterday")[days] if 0 <= days < 2 else f"{spell(days)} days ago"
    clock = f"at {date:%H:%M}" if time.precision == "minute" else f"at about {date.hour} o clock"
    return time._replace(text=f"{day} {clock}")


def _makes_a_sentence(question: Question, clauses: Sequence[Clause]) -> bool:
    kind = question.kind
    if clauses[0].outcome == "denial" or (kind == "problems" and clauses[0].outcome == "success"):
        return True
    if kind in _NEEDED:
        counted = clauses[:1] if kind in ("clock", "past_time", "duration", "how_often") else clauses
        return all(getattr(clause, name) is not None for clause in counted for name in _NEEDED[kind])
    if kind == "summary" and clauses[0].time is None:
        return False
    return all(clause.verb is not None for clause in clauses)


def _list_facts(clause: Clause) -> str:
    facts = [f"{slot} {_fact(value)}" for slot, value in zip(SLOTS, clause, strict=True) if value is not None]
    return ", ".join(facts)


def _fact(value: object) -> str:
    if isinstance(value, TimeReference):
        return value.text
    if isinstance(value, Duration):
        return say_duration(value)
    if isinstance(value, Later):
        return f"{value.number} {value.unit}"
    name = str(value)
    place = LOCATIONS[name].spoken if name in LOCATIONS else None
    return place or OBJECTS.get(name) or HANDS.get(name) or name
