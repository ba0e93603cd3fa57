"""Answers as facts: clauses with slots, for texts and for scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from memenvs.verbalization.language.times import TimeReference
from memenvs.verbalization.language.wordings import Kind

#: Verbs of clauses. "move" is a whole goal (an object to a place), "go" a move of the robot, "arrive" its end.
ClauseVerb = Literal["move", "grasp", "putdown", "go", "arrive"]
VERBS: tuple[ClauseVerb, ...] = ("move", "grasp", "putdown", "go", "arrive")
#: "denial" is "I did not do that"; "success" is the answer "no" to a question about problems.
Outcome = Literal["success", "failure", "denial"]
OUTCOMES: tuple[Outcome, ...] = ("success", "failure", "denial")
#: Most clauses of an answer.
MAX_CLAUSES = 8
#: An exact duration is right within this share, and within these seconds.
DURATION_SHARE, DURATION_SECONDS = 0.1, 2.5
#: Seconds from which a duration is named in minutes.
MINUTES_FROM = 45


class Duration(NamedTuple):
    """A duration: seconds, and whether they are meant exactly."""

    seconds: int
    exact: bool

    @property
    def rounded(self) -> int:
        """Seconds as they are named if not exact: tens below 45 s, at least one, then minutes."""
        if self.seconds < MINUTES_FROM:
            return max(10, 10 * ((self.seconds + 5) // 10))
        return 60 * max(1, (self.seconds + 30) // 60)

    def matches(self, expected: Duration) -> bool:
        """Return True if this is a right answer where `expected` is the gold one."""
        if expected.exact:
            tolerance = max(DURATION_SECONDS, DURATION_SHARE * expected.seconds)
            return abs(self.seconds - expected.seconds) <= tolerance
        return self.rounded == expected.rounded


class Later(NamedTuple):
    """Time from the episode of the clause before: hours or days."""

    unit: Literal["hours", "days"]
    number: int


class Clause(NamedTuple):
    """Content of one clause of an answer; None for what it does not say.

    Attributes:
        verb: What was done.
        object: Symbol of an object.
        location: Symbol of a location.
        hand: Symbol of a hand.
        outcome: "failure" if it failed; see `OUTCOMES`.
        time: When.
        number: How often.
        duration: How long.
        later: How much later than the clause before.
    """

    verb: ClauseVerb | None = None
    object: str | None = None
    location: str | None = None
    hand: str | None = None
    outcome: Outcome | None = None
    time: TimeReference | None = None
    number: int | None = None
    duration: Duration | None = None
    later: Later | None = None


SLOTS = Clause._fields
DENIAL = (Clause(outcome="denial"),)
NO_PROBLEM = (Clause(outcome="success"),)


class Fact(NamedTuple):
    """One fact of an answer.

    Attributes:
        slot: Field of `Clause`.
        value: Its value.
        clause: Index of the clause that says it.
    """

    slot: str
    value: object
    clause: int


class Answer(NamedTuple):
    """An answer.

    Attributes:
        kind: Kind of the question.
        clauses: Its content.
        text: Its words.
    """

    kind: Kind
    clauses: tuple[Clause, ...]
    text: str

    @property
    def facts(self) -> list[Fact]:
        """Its facts."""
        return facts_of(self.clauses)


def facts_of(clauses: Sequence[Clause]) -> list[Fact]:
    """List the facts of clauses: every slot that says something."""
    return [
        Fact(slot, value, number)
        for number, clause in enumerate(clauses)
        for slot, value in zip(SLOTS, clause, strict=True)
        if value is not None
    ]


def slot_matches(value: object, expected: object) -> bool:
    """Return True if a fact is the expected one, at the precision of the expected one."""
    if value is None or expected is None:
        return False
    if isinstance(value, TimeReference) and isinstance(expected, TimeReference):
        return value.within(expected)
    if isinstance(value, Duration) and isinstance(expected, Duration):
        return value.matches(expected)
    return value == expected
