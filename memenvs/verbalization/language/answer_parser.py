"""Parse answers into clauses: the inverse of `speech.say`.

Names are those of the closed lists, longest first, as whole words. Every clause is one tuple with its own verb, place
and outcome.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from memenvs.verbalization.language.facts import DENIAL, NO_PROBLEM, Clause, ClauseVerb, Duration, Later, Outcome
from memenvs.verbalization.language.names import (
    HAND,
    LOCATION,
    OBJECT,
    hand_symbol,
    location_symbol,
    normalise,
    object_symbol,
)
from memenvs.verbalization.language.numbers import NUMBER, WEEKDAYS, unspell
from memenvs.verbalization.language.speech import DENIAL_TEXTS, NO_PROBLEM_TEXTS, NOTHING_TEXTS, WENT_WELL_TEXTS
from memenvs.verbalization.language.times import FutureTimeError, TimeReference, date_reference, parse_time
from memenvs.verbalization.language.wordings import Kind

Clauses = tuple[Clause, ...]
_DENIALS = {normalise(text) for text in (*DENIAL_TEXTS, *NOTHING_TEXTS)}
_NO_PROBLEMS = {normalise(text) for text in (*NO_PROBLEM_TEXTS, *WENT_WELL_TEXTS)}
_ON_THE_MOVE = "on the way to"  # word: ok

_CLAUSE = re.compile(
    r"(?:i )?(?P<failed>tried to but failed to |failed to )?(?:"
    rf"(?P<verb>moved?|grasp(?:ed)?|put(?: down)?|released?) (?:(?P<object>{OBJECT})|it)"
    rf"(?: (?:to|on|at) (?P<location>{LOCATION}))?(?: with (?P<hand>{HAND}))?"
    rf"|(?P<robot>went to|go to|just arrived at|arrived? at|was at|was {_ON_THE_MOVE}) (?P<place>{LOCATION})"
    rf"|(?P<same_object>{OBJECT})|(?P<same_place>{LOCATION}))"
    r"(?:(?! and ) (?P<time>(?:(?!, | and ).)+))?(?:$|, and |, | and )"
)
_VERBS: dict[str, ClauseVerb] = {"mo": "move", "gr": "grasp", "pu": "putdown", "re": "putdown"}
_ROBOT_VERBS: dict[str, ClauseVerb | None] = {
    "went to": "go",
    "go to": "go",
    f"was {_ON_THE_MOVE}": "go",
    "was at": None,
}
_OPENING = re.compile(rf"(?:(?P<then>then)|(?P<number>{NUMBER}) (?P<unit>hour|day)s? later|(?P<time>.*?)),? (?=i )")
_OBJECTS = re.compile(r"i think you are talking about (?P<names>.+?) (?:that|which) i (?P<verb>moved|grasped)")
_DURATION = re.compile(rf"(?:it took (?:me )?)?(?P<about>about )?(?P<number>{NUMBER}) (?P<unit>second|minute)s?")
_TIMES = re.compile(rf"(?P<number>{NUMBER}) times?")


class _NoAnswerError(ValueError):
    """The text is no answer to a question of this kind."""


def parse_answer(kind: Kind, text: str, now: int) -> Clauses | None:
    """Parse an answer.

    Args:
        kind: Kind of the question.
        text: The answer; upper and lower case are the same.
        now: Second at which the question was put, since 2020-01-01 00:00:00.

    Returns:
        Its clauses; None if it is no answer to a question of this kind.
    """
    text = normalise(text)
    if text in _DENIALS and kind not in ("clock", "how_often"):
        return DENIAL
    try:
        return _PARSERS[kind](text, now)
    except _NoAnswerError:
        return None


def _parse_time(text: str, now: int) -> TimeReference:
    try:
        return parse_time(text, now)
    except FutureTimeError:
        # A wrong answer, but one of the right kind: it names a time, so it is no `_NoAnswerError`.
        return TimeReference(text, now + 1, now + 2, "minute", "today")
    except ValueError as error:
        raise _NoAnswerError from error


def parse_clauses(text: str, now: int, *allowed: ClauseVerb | None) -> Clauses:
    """Parse "i moved A to X, grasped B and ...".

    Args:
        text: Normalised text.
        now: Second at which the question was put.
        *allowed: Verbs that clauses may have.
    """
    clauses: list[Clause] = []
    position = 0
    while position < len(text):
        found = _CLAUSE.match(text, position)
        if not found:
            raise _NoAnswerError
        clause = _parse_clause(found, clauses, now)
        if clause.verb not in allowed:
            raise _NoAnswerError
        clauses.append(clause)
        position = found.end()
    if not clauses:
        raise _NoAnswerError
    return tuple(clauses)


def _parse_clause(found: re.Match[str], before: list[Clause], now: int) -> Clause:
    failed: Outcome | None = "failure" if found["failed"] else None
    time = _parse_time(found["time"], now) if found["time"] else None
    if found["same_object"] or found["same_place"]:
        if not before or failed:
            raise _NoAnswerError
        object, place = object_symbol(found["same_object"]), location_symbol(found["same_place"])
        return Clause(before[-1].verb, object, place, outcome=before[-1].outcome, time=time)
    if found["robot"]:
        return Clause(
            _ROBOT_VERBS.get(found["robot"], "arrive"), None, location_symbol(found["place"]), None, failed, time
        )
    return Clause(
        _VERBS[found["verb"][:2]],
        object_symbol(found["object"]),
        location_symbol(found["location"]),
        hand_symbol(found["hand"]),
        failed,
        time,
    )


def _action(text: str, now: int) -> Clauses:
    return parse_clauses(text, now, "move", "grasp", "putdown", "go")


def _summary(text: str, now: int) -> Clauses:
    clauses: list[Clause] = []
    for sentence in text.split(". "):
        opening = _OPENING.match(sentence)
        if not opening:
            raise _NoAnswerError
        first, *others = _action(sentence[opening.end() :], now)
        if opening["time"] is not None:
            first = first._replace(time=_parse_time(opening["time"], now))
        elif opening["then"]:
            first = first._replace(later=Later("hours", 0))
        else:
            first = first._replace(
                later=Later("hours" if opening["unit"] == "hour" else "days", unspell(opening["number"]))
            )
        clauses += [first, *others]
    return tuple(clauses)


def _problems(text: str, now: int) -> Clauses:
    if text in _NO_PROBLEMS:
        return NO_PROBLEM
    clauses = parse_clauses(text.removeprefix("yes, "), now, "move", "grasp", "putdown", "go")
    if any(clause.outcome != "failure" for clause in clauses):
        raise _NoAnswerError
    return clauses


def _location(text: str, now: int) -> Clauses:
    clauses = parse_clauses(text, now, "putdown", "go", "arrive", None)
    if not all(clause.location for clause in clauses):
        raise _NoAnswerError
    return clauses


def _object(text: str, now: int) -> Clauses:
    found = _OBJECTS.fullmatch(text)
    clauses = parse_clauses(f"i {found['verb']} {found['names']}" if found else text, now, "move", "grasp", "putdown")
    if not all(clause.object for clause in clauses):
        raise _NoAnswerError
    return clauses


def _clock(text: str, now: int) -> Clauses:
    text = text.removeprefix("it is ").removeprefix("it's ")
    for number, name in enumerate(WEEKDAYS):
        if text == name.lower():
            today = now // 86400
            day = today - (today + 2 - number) % 7  # 2020-01-01 was a Wednesday
            return (Clause(time=date_reference(day * 86400, weekday=True)),)
    return (Clause(time=_parse_time(text, now)),)


def _past_time(text: str, now: int) -> Clauses:
    for start in ("i did it ", "it was "):
        text = text.removeprefix(start)
    return (Clause(time=_parse_time(text, now)),)


def _duration(text: str, now: int) -> Clauses:
    found = _DURATION.fullmatch(text)
    if not found:
        raise _NoAnswerError
    seconds = unspell(found["number"]) * (60 if found["unit"] == "minute" else 1)
    return (Clause(duration=Duration(seconds, not found["about"])),)


def _how_often(text: str, now: int) -> Clauses:
    text = text.removeprefix("i did it ")
    named = {"never": 0, "once": 1, "only once": 1, "twice": 2}
    if text in named:
        return (Clause(number=named[text]),)
    found = _TIMES.fullmatch(text)
    if not found:
        raise _NoAnswerError
    return (Clause(number=unspell(found["number"])),)


_PARSERS: dict[Kind, Callable[[str, int], Clauses]] = {
    "clock": _clock,
    "action": _action,
    "problems": _problems,
    "past_time": _past_time,
    "location": _location,
    "object": _object,
    "duration": _duration,
    "summary": _summary,
    "how_often": _how_often,
}
