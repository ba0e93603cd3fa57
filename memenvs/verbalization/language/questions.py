"""Questions: their slots and words, to what they refer, and the facts of their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from memenvs.verbalization.dates import DAY
from memenvs.verbalization.language.facts import (
    DENIAL,
    NO_PROBLEM,
    Clause,
    ClauseVerb,
    Duration,
)
from memenvs.verbalization.language.log import Event, Log, Stay
from memenvs.verbalization.language.speech import GERUND, INFINITIVE, later_than, name_location, name_object, say_action
from memenvs.verbalization.language.times import (
    TimeReference,
    clock_reference,
    date_reference,
    draw_form,
    moment_forms,
)
from memenvs.verbalization.language.wordings import FAMILIES, Kind
from memenvs.verbalization.symbols import Goal

#: Families of questions about what can change, and the kinds that have them.
OVERWRITABLE = ("location.object", "object.moved")
OVERWRITABLE_KINDS: tuple[Kind, ...] = ("location", "object")
#: The robot has "just" arrived for this long, seconds.
JUST_ARRIVED = 60
QuestionVerb = ClauseVerb | Literal["see", "touch"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question in its structured form.

    Attributes:
        family: Name of its family, such as "duration.act".
        wording: Index of its paraphrase.
        verb: Action that it is about, where the family leaves it open; "see" or "touch" of `past_time.see`.
        object: Symbol of its object.
        location: Symbol of its location.
        order: "first" or "last".
        exact: True if a duration must be exact.
        time: The moment or the period that it names.
    """

    family: str
    wording: int = 0
    verb: QuestionVerb | None = None
    object: str | None = None
    location: str | None = None
    order: Literal["first", "last"] | None = None
    exact: bool = False
    time: TimeReference | None = None

    @property
    def kind(self) -> Kind:
        """Its kind, one of nine."""
        return FAMILIES[self.family].kind

    @property
    def text(self) -> str:
        """Its words."""
        return fill(FAMILIES[self.family].wordings[self.wording], self)


def fill(wording: str, question: Question) -> str:
    """Put the slots of a question into a wording."""
    slots = {
        "time": question.time.text if question.time else "",
        "order": question.order or "",
        "exactly": "exactly " * question.exact,
        "see": question.verb or "",
    }
    if question.object:
        slots["object"] = name_object(question.object)
    if question.location:
        slots["location"] = name_location(question.location)
    if "{act" in wording:
        act = Clause(question.verb, question.object, question.location)  # type: ignore[arg-type]
        slots["act"], slots["acting"] = say_action(act, INFINITIVE), say_action(act, GERUND)
    slots["period"] = slots["time"]
    text = wording.format_map(slots)
    return text if question.time else text.replace(" ?", "?").replace(" .", ".")


class Referent(NamedTuple):
    """One item of the history that a question can mean.

    Attributes:
        episode: Index of its episode.
        time: Second that time references of the question name.
        event: The action, or the sighting.
        stay: The stay of the robot.
        goals: Goals of the episode, and whether each was reached.
    """

    episode: int
    time: int
    event: Event | None = None
    stay: Stay | None = None
    goals: tuple[tuple[Goal, bool], ...] = ()

    @property
    def succeeded(self) -> bool:
        """True if the action succeeded, or all goals were reached."""
        return self.event.success if self.event else all(reached for _, reached in self.goals)


def candidates(log: Log, question: Question) -> list[Referent]:
    """List everything that a question could mean without its time, in the order of time."""
    return _CANDIDATES[question.family](log, question)


def referents(log: Log, question: Question) -> list[Referent]:
    """List what a question can mean; nothing if it presupposes what did not happen."""
    return meant(question, candidates(log, question))


def meant(question: Question, items: Sequence[Referent]) -> list[Referent]:
    """Select the candidates that a question can mean."""
    time = question.time
    if question.family == "location.robot":
        return [item for item in items if item.stay and time and item.stay.overlaps(time)]
    if time is not None:
        return [item for item in items if time.low <= item.time < time.high]
    if question.order == "first":
        return list(items[:1])
    if question.kind in ("how_often", "summary") or question.family == "problems.interval":
        return list(items)
    return list(items[-1:])


def _event_referents(events: Sequence[Event]) -> list[Referent]:
    return [Referent(event.episode, event.start, event) for event in events]


def _episodes(log: Log, question: Question) -> list[Referent]:
    return [Referent(number, start, goals=tuple(log.goals(number))) for number, start in enumerate(log.starts)]


def _episodes_with(log: Log, question: Question) -> list[Referent]:
    """Episodes with goals that were reached and that the question names."""
    predicate = "objectAt" if question.family == "object.moved" else "grasped"
    episodes = []
    for number, start in enumerate(log.starts):
        goals = tuple(
            (goal, reached)
            for goal, reached in log.goals(number)
            if reached and goal.predicate == predicate and (question.location in (None, goal.place))
        )
        if goals:
            episodes.append(Referent(number, start, goals=goals))
    return episodes


def _attempts(log: Log, question: Question) -> list[Referent]:
    """Attempts to grasp an object, to go somewhere, or to move an object to the place of a goal."""
    if question.verb != "move":
        verb = question.verb or ""
        return _event_referents(log.select(verb, question.object, question.location, success=None))
    attempts = []
    for number in range(len(log)):
        for goal, reached in log.goals(number):
            if goal.predicate != "objectAt" or question.object not in (None, goal.object):
                continue
            start = next((e.start for e in log.events if e.episode == number and e.object == goal.object), None)
            if start is not None:
                attempts.append(Referent(number, start, goals=((goal, reached),)))
    return sorted(attempts, key=lambda attempt: attempt.time)


def _done(log: Log, question: Question) -> list[Referent]:
    verb = "putdown" if question.verb == "move" else question.verb or ""
    return _event_referents(log.select(verb, question.object, question.location))


def _seen(log: Log, question: Question) -> list[Referent]:
    if question.verb == "see":
        return _event_referents(log.sightings(question.object or ""))
    return _event_referents([event for event in log.events if event.object == question.object and event.success])


_CANDIDATES: dict[str, Callable[[Log, Question], list[Referent]]] = {
    "clock.time": lambda log, question: [],
    "clock.date": lambda log, question: [],
    "clock.weekday": lambda log, question: [],
    "action.open": _episodes,
    "action.task": _episodes,
    "problems.interval": lambda log, question: [Referent(e.episode, e.end, e) for e in log.failures],
    "problems.specific": _attempts,
    "past_time.action": _done,
    "past_time.see": _seen,
    "location.robot": lambda log, question: [Referent(stay.episode, stay.start, stay=stay) for stay in log.stays],
    "location.object": lambda log, question: _event_referents(log.select("putdown", question.object)),
    "object.moved": _episodes_with,
    "object.grasped": _episodes_with,
    "duration.act": _done,
    "summary.period": _episodes,
    "how_often.grasp": lambda log, question: _event_referents(log.select("grasp", question.object)),
    "how_often.visit": lambda log, question: _event_referents(log.select("go", location=question.location)),
    "how_often.moved": lambda log, question: _event_referents(log.select("putdown", location=question.location)),
}


def last_change(log: Log, question: Question, target: Referent) -> int | None:
    """Find the newest episode that has overwritten what a question is about.

    Only where an object was put and what was brought to a location can be overwritten: if the newest candidate of the
    question without its time has another answer than the target.

    Args:
        log: The history.
        question: The question.
        target: What it means.

    Returns:
        Index of the episode; None if the answer is still true, or of another kind.
    """
    if question.family not in OVERWRITABLE:
        return None
    newest = candidates(log, question)[-1]
    say = Speaker(plain_time)
    is_same = set(answer_clauses(log, question, [newest], say)) == set(answer_clauses(log, question, [target], say))
    return None if is_same else newest.episode


def unique(values: Sequence[Clause]) -> tuple[Clause, ...]:
    """Drop repeated clauses; the order stays."""
    return tuple(dict.fromkeys(values))


class Speaker(NamedTuple):
    """Choices that an answer leaves open.

    Attributes:
        draw: Draws one phrase for a moment, given the moment and now.
        hands: Say with which hand objects of a goal were grasped.
    """

    draw: Callable[[int, int], TimeReference]
    hands: bool = False


def plain_time(moment: int, now: int, *, by_date: bool = False) -> TimeReference:
    """Name a moment by its minute and its day.

    Args:
        moment: Second since 2020-01-01 00:00:00.
        now: Second at which the phrase is used.
        by_date: If True, a day before today is named by its date where that is unique, and not counted from now.
    """
    forms = moment_forms(moment, now, relative_only=not by_date)
    form = next(form for form in forms if form.precision == "minute" and form.family != "minutes")
    return form.phrase(len(form.phrases) - 1)  # "today at", and not "at" alone


def random_time(rng: np.random.Generator) -> Callable[[int, int], TimeReference]:
    """Make a function that draws a phrase for a moment; each phrase is equally likely."""
    return lambda moment, now: draw_form(moment_forms(moment, now), rng)


def goal_clause(goal: Goal, reached: bool, hands: bool) -> Clause:
    """Make the clause that says what became of a predicate of a goal."""
    outcome = None if reached else "failure"
    if goal.predicate == "objectAt":
        return Clause("move", goal.object, goal.place, None, outcome)  # type: ignore[arg-type]
    return Clause("grasp", goal.object, None, goal.place if hands else None, outcome)  # type: ignore[arg-type]


def answer_clauses(
    log: Log, question: Question, items: Sequence[Referent], speaker: Speaker, moment: int | None = None
) -> tuple[Clause, ...]:
    """Compute the facts of an answer.

    Args:
        log: The history.
        question: The question.
        items: What it means; see `referents`. Of several, the answer is about all.
        speaker: Choices that are left open.
        moment: Second that a question about the robot's position means; None for the last one of each stay.

    Returns:
        Clauses, at least one.
    """
    kind = question.kind
    if kind == "clock":
        form = question.family.partition(".")[2]
        time = clock_reference(log.now) if form == "time" else date_reference(log.now, weekday=form == "weekday")
        return (Clause(time=time),)
    if kind == "how_often":
        return (Clause(number=len(items)),)
    if question.family == "problems.interval":
        return tuple(_failure_clause(log, item, speaker) for item in items) or NO_PROBLEM
    if not items:
        return DENIAL
    if kind == "problems":
        failed = [item for item in items if not item.succeeded]
        return tuple(_attempt_clause(log, item, speaker) for item in failed) or NO_PROBLEM
    if kind == "action":
        return unique([goal_clause(goal, reached, speaker.hands) for item in items for goal, reached in item.goals])
    if kind == "summary":
        return _summary(log, items, speaker)
    if kind == "object":
        verb: ClauseVerb = "move" if question.family == "object.moved" else "grasp"
        return unique([Clause(verb, goal.object) for item in items for goal, _ in item.goals])
    if question.family == "location.robot":
        return unique([_position(item, question.time, moment) for item in items])
    # What is left means single events; of several, the newest but for "first".
    if kind == "location":
        return unique([Clause("putdown", None, item.event.location) for item in items if item.event])
    event = items[0 if question.order == "first" else -1].event
    assert event is not None, "these families mean events"
    if kind == "past_time":
        return (Clause(time=speaker.draw(event.start, log.now)),)
    return (Clause(duration=Duration(event.end - event.start, question.exact)),)


def _position(referent: Referent, time: TimeReference | None, moment: int | None) -> Clause:
    stay = referent.stay
    assert stay is not None, "positions are stays"
    if stay.moving:
        return Clause("go", None, stay.location)
    if moment is None:
        moment = min(stay.end, time.high if time else stay.end) - 1
    return Clause("arrive" if stay.arrived and moment - stay.start <= JUST_ARRIVED else None, None, stay.location)


def _attempt_clause(log: Log, attempt: Referent, speaker: Speaker) -> Clause:
    if attempt.event:
        return _failure_clause(log, attempt, speaker)
    ((goal, reached),) = attempt.goals
    return goal_clause(goal, reached, False)._replace(time=speaker.draw(attempt.time, log.now))


def _failure_clause(log: Log, referent: Referent, speaker: Speaker) -> Clause:
    event = referent.event
    assert event is not None, "failures are events"
    place = None if event.verb == "grasp" else event.location
    return Clause(event.verb, event.object, place, None, "failure", speaker.draw(event.end, log.now))  # type: ignore[arg-type]


def _summary(log: Log, episodes: Sequence[Referent], speaker: Speaker) -> tuple[Clause, ...]:
    clauses: list[Clause] = []
    for number, episode in enumerate(episodes):
        first, *others = (goal_clause(goal, reached, speaker.hands) for goal, reached in episode.goals)
        if number:
            before = episodes[number - 1].time
            first = first._replace(later=later_than(episode.time - before, episode.time // DAY - before // DAY))
        else:
            first = first._replace(time=speaker.draw(episode.time, log.now))
        clauses += [first, *others]
    return tuple(clauses)
