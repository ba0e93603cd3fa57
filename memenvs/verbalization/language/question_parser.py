"""Parse typed questions: the inverse of the question grammar."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from typing import Any

from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.names import LOCATION, OBJECT, location_symbol, normalise, object_symbol
from memenvs.verbalization.language.questions import Question
from memenvs.verbalization.language.times import FutureTimeError, parse_time
from memenvs.verbalization.language.tokenizer import TOKENIZER
from memenvs.verbalization.language.wordings import FAMILIES

_VERBS = {"gr": "grasp", "mo": "move", "pu": "putdown", "go": "go"}
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
    found = []
    for family in FAMILIES.values():
        for number, wording in enumerate(family.wordings):
            parts = re.split(r"( ?{\w+})", normalise(wording.replace("}?", "} ?").replace("}.", "} .")).rstrip())
            pattern = "".join(_pattern_of(part) for part in parts)
            found.append((family.name, number, re.compile(pattern)))
    return found


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
        found = pattern.fullmatch(plain)
        if not found:
            continue
        try:
            question = _question(family, number, found.groupdict(), log)
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
    verb = _VERBS.get(verb[:2], verb) if verb else None
    if verb in _TAKES:
        for taken, given in zip(_TAKES[verb], (object, location), strict=True):
            if taken is not None and taken != (given is not None):
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
