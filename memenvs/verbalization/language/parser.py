"""Parse answers into clauses, and typed questions.

Both are inverses: of `speech.say`, and of the grammar of questions.

Names are those of the closed lists, longest first, as whole words. Every clause of an answer is one tuple with its own
verb, place and outcome.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import Any

from memenvs.verbalization.language.facts import DENIAL, NO_PROBLEM, Clause, ClauseVerb, Duration, Later, Outcome
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.names import (
    HAND,
    LOCATION,
    NUMBER,
    OBJECT,
    WEEKDAYS,
    hand_symbol,
    location_symbol,
    normalise,
    object_symbol,
    unspell,
)
from memenvs.verbalization.language.questions import Question
from memenvs.verbalization.language.speech import DENIAL_TEXTS, NO_PROBLEM_TEXTS, NOTHING_TEXTS, WENT_WELL_TEXTS
from memenvs.verbalization.language.times import FutureTimeError, TimeReference, date_reference, parse_time
from memenvs.verbalization.language.tokenizer import TOKENIZER
from memenvs.verbalization.language.wordings import FAMILIES, Kind

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
_QUESTION_VERBS = {"gr": "grasp", "mo": "move", "pu": "putdown", "go": "go"}
_ACT = (
    r"(?P<verb>{})(?: (?P<object>"
    + OBJECT.replace("{", "{{").replace("}", "}}")
    + r"))?(?: (?:to|on) (?P<location>"
    + LOCATION.replace("{", "{{").replace("}", "}}")
    + r"))?"
)
_SLOTS = {
    "object": rf"(?P<object>{OBJECT})",
    "location": rf"(?P<location>{LOCATION})",
    "order": r"(?P<order>first|last)",
    "see": r"(?P<verb>see|touch)",
    "exactly": r"(?P<exactly>exactly )?",
    "act": _ACT.format(r"grasp|move|put(?: down)?|go"),
    "acting": _ACT.format(r"grasping|moving|putting(?: down)?|going"),
}
#: Which slots each verb takes: object and location; None where it may be left out.
_TAKES: dict[str, tuple[bool, bool | None]] = {
    "grasp": (True, False),
    "move": (True, None),
    "putdown": (True, None),
    "go": (False, True),
}


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
        match = _CLAUSE.match(text, position)
        if not match:
            raise _NoAnswerError
        clause = _parse_clause(match, clauses, now)
        if clause.verb not in allowed:
            raise _NoAnswerError
        clauses.append(clause)
        position = match.end()
    if not clauses:
        raise _NoAnswerError
    return tuple(clauses)


def _parse_clause(match: re.Match[str], before: list[Clause], now: int) -> Clause:
    failed: Outcome | None = "failure" if match["failed"] else None
    time = _parse_time(match["time"], now) if match["time"] else None
    if match["same_object"] or match["same_place"]:
        if not before or failed:
            raise _NoAnswerError
        object, place = object_symbol(match["same_object"]), location_symbol(match["same_place"])
        return Clause(before[-1].verb, object, place, outcome=before[-1].outcome, time=time)
    if match["robot"]:
        return Clause(
            _ROBOT_VERBS.get(match["robot"], "arrive"), None, location_symbol(match["place"]), None, failed, time
        )
    return Clause(
        _VERBS[match["verb"][:2]],
        object_symbol(match["object"]),
        location_symbol(match["location"]),
        hand_symbol(match["hand"]),
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
    match = _OBJECTS.fullmatch(text)
    clauses = parse_clauses(f"i {match['verb']} {match['names']}" if match else text, now, "move", "grasp", "putdown")
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
    match = _DURATION.fullmatch(text)
    if not match:
        raise _NoAnswerError
    seconds = unspell(match["number"]) * (60 if match["unit"] == "minute" else 1)
    return (Clause(duration=Duration(seconds, not match["about"])),)


def _how_often(text: str, now: int) -> Clauses:
    text = text.removeprefix("i did it ")
    named = {"never": 0, "once": 1, "only once": 1, "twice": 2}
    if text in named:
        return (Clause(number=named[text]),)
    match = _TIMES.fullmatch(text)
    if not match:
        raise _NoAnswerError
    return (Clause(number=unspell(match["number"])),)


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


class QuestionError(ValueError):
    """A question is none of the grammar.

    Attributes:
        words: Its words that the grammar does not have.
    """

    def __init__(self, message: str, words: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.words = words


@cache
def _patterns() -> list[tuple[str, int, re.Pattern[str]]]:
    patterns = []
    for family in FAMILIES.values():
        for number, wording in enumerate(family.wordings):
            parts = re.split(r"( ?{\w+})", normalise(wording.replace("}?", "} ?").replace("}.", "} .")).rstrip())
            pattern = "".join(_pattern_of(part) for part in parts)
            patterns.append((family.name, number, re.compile(pattern)))
    return patterns


def _pattern_of(part: str) -> str:
    name = part.strip(" {}")
    if name in ("time", "period") and part.endswith("}"):
        return r"(?: (?P<time>.+))?"
    if not part.endswith("}"):
        return re.escape(part)
    return " " * part.startswith(" ") + _SLOTS[name]


def parse_question(text: str, log: Log) -> Question:
    """Parse a question about a history.

    Args:
        text: The question; upper and lower case, and the mark at its end, do not matter.
        log: The history.

    Returns:
        The question in its structured form.

    Raises:
        QuestionError: It is none of the grammar; `words` are those that the grammar does not have.
        FutureTimeError: It is about a time after the question.
    """
    plain = normalise(text)
    if not re.search(r"\w", plain):
        raise QuestionError(f"question must have words, got {text!r}")
    problem: ValueError | None = None
    for family, number, pattern in _patterns():
        match = pattern.fullmatch(plain)
        if not match:
            continue
        try:
            question = _question(family, number, match.groupdict(), log)
        except ValueError as error:
            # The time of one wording may hold words of a longer one, so the search goes on.
            problem = error if problem is None or isinstance(error, FutureTimeError) else problem
            continue
        if question is not None:
            return question
    if isinstance(problem, FutureTimeError):
        raise problem
    words = tuple(TOKENIZER.unknown_words(plain))
    if words:
        raise QuestionError(f"question {text!r}: the grammar does not have {', '.join(map(repr, words))}", words)
    if problem is not None:
        raise QuestionError(f"question {text!r}: {problem}") from problem
    near = ", ".join(map(repr, get_close_matches(plain, _examples(), 3, cutoff=0.5)))
    similar = f"; similar: {near}" if near else ""
    raise QuestionError(f"question {text!r} has known words, but is none of the grammar{similar}")


@cache
def _examples() -> tuple[str, ...]:
    """Every wording, with the names of its slots."""
    return tuple(wording.replace("{exactly}", "") for family in FAMILIES.values() for wording in family.wordings)


def _question(family: str, number: int, slots: dict[str, Any], log: Log) -> Question | None:
    """Make the question of a match; None if the verb does not go with the rest."""
    verb, object, location = slots.get("verb"), slots.get("object"), slots.get("location")
    verb = _QUESTION_VERBS.get(verb[:2], verb) if verb else None
    if verb in _TAKES:
        for taken, name in zip(_TAKES[verb], (object, location), strict=True):
            if taken is not None and taken != (name is not None):
                return None
    if family == "problems.specific" and verb == "putdown":
        return None
    time = slots.get("time")
    if time is None and family == "location.robot":
        raise ValueError("the position of the robot needs a time, such as 'yesterday at 10:36'")
    return Question(
        family,
        number,
        verb,
        object_symbol(object),
        location_symbol(location),
        slots.get("order"),
        slots.get("exactly") is not None,
        None if time is None else parse_time(time, log.now, oldest=log.oldest),
    )
