"""Draw the slots of questions about a history, family by family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from memenvs.verbalization.dates import DAY
from memenvs.verbalization.language.balance import (
    COUNT_FORMS,
    COUNTS,
    DURATION_VERBS,
    DURATIONS,
    LEAST_COUNT,
    PROBLEMS,
    STAYS,
    acceptance,
)
from memenvs.verbalization.language.facts import Duration
from memenvs.verbalization.language.log import Log, Stay
from memenvs.verbalization.language.presets import LanguageConfig
from memenvs.verbalization.language.questions import JUST_ARRIVED, Question, Referent, candidates, meant
from memenvs.verbalization.language.times import (
    PRECISIONS,
    TimeForm,
    TimeReference,
    day_forms,
    draw_form,
    moment_forms,
    period_forms,
)
from memenvs.verbalization.language.wordings import FAMILIES
from memenvs.verbalization.symbols import LOCATIONS, OBJECTS, PICK_LOCATIONS, PLACE_LOCATIONS

_OBJECTS = tuple(OBJECTS)
#: Locations to which a move can lead.
VISITED = tuple(name for name in LOCATIONS if name in PICK_LOCATIONS or name in PLACE_LOCATIONS)
#: Days of the last phrase of `period_forms`.
_LAST_DAYS = (2, 3, 4, 5, 7, 10, 14)
#: Exact durations have at most this many seconds, so that structured answers can say them.
LONGEST_DURATION = 600


T = TypeVar("T")


class Draft(NamedTuple):
    """A question and its meaning.

    Attributes:
        question: The question.
        meant: Everything that it can mean.
        target: What it was made from; None if it presupposes what did not happen, or means nothing single.
        moment: Second that a question about the robot's position means.
    """

    question: Question
    meant: Sequence[Referent]
    target: Referent | None = None
    moment: int | None = None


class Draw(NamedTuple):
    """The source of a question: the history, the settings, a generator."""

    log: Log
    config: LanguageConfig
    rng: np.random.Generator

    def coin(self, share: float) -> bool:
        """Draw True with this probability."""
        return self.rng.random() < share

    def pick(self, values: Sequence[T]) -> T:
        """Draw one value, each equally likely."""
        return values[int(self.rng.integers(len(values)))]


def draw_weighted(draw: Draw, weights: Mapping[str, float]) -> str:
    """Draw a name by weights that sum to 1."""
    place = int(np.searchsorted(np.cumsum(list(weights.values())), draw.rng.random()))
    return list(weights)[min(place, len(weights) - 1)]


def make_question(draw: Draw, family: str, **slots: object) -> Question:
    """Make a question without a time, with a paraphrase that the settings allow."""
    wordings, held_out = FAMILIES[family].wordings, FAMILIES[family].num_held_out
    which = draw.config.paraphrases
    first = len(wordings) - held_out if which == "held_out" else 0
    last = len(wordings) - held_out if which == "seen" else len(wordings)
    return Question(family, int(draw.rng.integers(first, last)), **slots)  # type: ignore[arg-type]


def name_time(draw: Draw, question: Question, items: Sequence[Referent], target: Referent, moment: int) -> Draft | None:
    """Name the moment of a target, more finely where the phrase would mean other candidates too.

    Returns:
        The draft; None if the settings want a unique meaning and no phrase has it.
    """
    forms = moment_forms(moment, draw.log.now)
    time = draw_form(forms, draw.rng)
    query = replace(question, time=time)
    selected = meant(query, items)
    if not draw.config.unique:
        return Draft(query, selected, target, moment)
    if len(selected) != 1:
        for finer in _finer(forms, time):
            query = replace(question, time=draw_form([finer], draw.rng))
            selected = meant(query, items)
            if len(selected) == 1:
                break
    return Draft(query, selected, target, moment) if len(selected) == 1 else None


def _finer(forms: Sequence[TimeForm], time: TimeReference) -> list[TimeForm]:
    """Forms that name the same moment more finely, by precision."""
    family = time.family if time.family in ("absolute", "yesterday", "days") else "today"
    level = PRECISIONS.index(time.precision) if time.family == family else 0
    finer = [form for form in forms if form.family == family and PRECISIONS.index(form.precision) > level]
    return sorted(finer, key=lambda form: PRECISIONS.index(form.precision))


def _about(draw: Draw, question: Question, target: Referent, items: Sequence[Referent] | None = None) -> Draft | None:
    """Make a draft about a target, with a time or, in some cases, without."""
    items = candidates(draw.log, question) if items is None else items
    is_timeless = FAMILIES[question.family].timeless and draw.coin(draw.config.timeless)
    if is_timeless and (items[-1] == target or not draw.config.even):
        return Draft(question, items[-1:], items[-1], items[-1].time) if items[-1] == target else None
    return name_time(draw, question, items, target, target.time)


def draw_clock(draw: Draw) -> Draft:
    """Draw a question about now."""
    forms = ("clock.time", "clock.date", "clock.weekday")
    return Draft(make_question(draw, forms[int(draw.rng.integers(2 + draw.config.weekdays))]), ())


def draw_action(draw: Draw) -> Draft | None:
    """Draw a question about what was done in an episode; without episodes, about the last one."""
    question = make_question(draw, ("action.open", "action.task")[int(draw.rng.integers(2))])
    items = candidates(draw.log, question)
    if not items:
        return Draft(question, ())
    is_timeless = draw.coin(draw.config.timeless)
    if is_timeless and not draw.config.even:
        return Draft(question, items[-1:], items[-1])
    target = draw.pick(items)
    if is_timeless and target == items[-1]:
        return Draft(question, items[-1:], target)
    return name_time(draw, question, items, target, target.time)


def draw_problems(draw: Draw) -> Draft | None:
    """Draw a question about problems, in a period or with one action."""
    if not draw.config.balanced:
        return _problem_in_period(draw, None) if draw.coin(draw.config.intervals) else _any_action(draw)
    positive = draw.coin(0.5)
    form = "interval" if draw.coin(draw.config.intervals) else str(draw.pick(("grasp", "move", "go")))
    if not draw.coin(acceptance(PROBLEMS[form], len(draw.log), positive)):
        return None
    if form == "interval":
        return _problem_in_period(draw, positive)
    question = make_question(draw, "problems.specific", verb=form)
    right = [item for item in candidates(draw.log, question) if item.succeeded != positive]
    if not right:
        return None
    target = draw.pick(right)
    question = replace(question, object=_object_of(target), location=_location_of(target))
    return _about(draw, question, target)


def _object_of(target: Referent) -> str | None:
    return target.event.object if target.event else target.goals[0][0].object


def _location_of(target: Referent) -> str | None:
    return target.event.location if target.event and target.event.verb == "go" else None


def _any_action(draw: Draw) -> Draft | None:
    """Ask about any action, which hardly ever failed."""
    if not draw.log.events:
        return None
    event = draw.pick(draw.log.events)
    verb = "move" if event.verb == "putdown" else event.verb
    place = event.location if verb == "go" else None
    question = make_question(draw, "problems.specific", verb=verb, object=event.object, location=place)
    items = candidates(draw.log, question)
    # The attempt to move an object begins when it is grasped.
    target = next((item for item in reversed(items) if item.time <= event.start), None)
    return None if target is None else _about(draw, question, target, items)


def _problem_in_period(draw: Draw, positive: bool | None) -> Draft | None:
    """Ask about problems in a period; if `positive` is given, on a day with or without a failure."""
    log = draw.log
    question = make_question(draw, "problems.interval")
    if positive is None:
        forms = _any_period(draw)
    else:
        days = log.failure_days if positive else [day for day in log.active_days if day not in log.failure_days]
        if not days:
            return None
        forms = day_forms(draw.pick(days), log.now)
    query = replace(question, time=draw_form(forms, draw.rng))
    return Draft(query, meant(query, candidates(log, query)))


def _any_period(draw: Draw) -> list[TimeForm]:
    """Forms of one period: a day of the history or shortly before now, or one that ends now."""
    today = draw.log.now // DAY
    if draw.coin(0.5):
        return period_forms(draw.log.now, draw.pick(_LAST_DAYS))
    return day_forms(today - int(draw.rng.integers(8)), draw.log.now)


def draw_past_time(draw: Draw) -> Draft | None:
    """Draw a question about when an object was seen, or an action done."""
    log = draw.log
    if draw.coin(0.5):
        verb, order = ("see", "touch")[int(draw.rng.integers(2))], ("first", "last")[int(draw.rng.integers(2))]
        touched = {event.object for event in log.events if event.object and event.success}
        objects = log.seen if verb == "see" else sorted(touched)
        if not objects:
            return None
        question = make_question(draw, "past_time.see", verb=verb, object=draw.pick(objects), order=order)
    else:
        events = [event for event in log.events if event.success and event.object]
        if not events:
            return None
        event = draw.pick(events)
        grasp = event.verb == "grasp"
        verb = event.verb if grasp or draw.coin(0.5) else "move"
        place = None if grasp else event.location
        question = make_question(draw, "past_time.action", verb=verb, object=event.object, location=place)
    items = candidates(log, question)
    target = items[0 if question.order == "first" else -1]
    return Draft(question, [target], target)


def draw_location(draw: Draw) -> Draft | None:
    """Draw a question about where the robot was, or where it put an object."""
    if not draw.coin(draw.config.positions):
        events = draw.log.select("putdown")
        if not events:
            return None
        event = draw.pick(events)
        question = make_question(draw, "location.object", object=event.object)
        return _about(draw, question, Referent(event.episode, event.start, event))
    question = make_question(draw, "location.robot")
    least = draw.config.shortest_stay
    items = candidates(draw.log, question)
    usable = [item for item in items if _is_stay(item.stay, least)] if least else items
    if not usable:
        return None
    target = draw.pick(usable)
    stay = target.stay
    assert stay is not None, "positions are stays"
    if draw.config.balanced and not draw.coin(STAYS.get(stay.location, 1.0)):
        return None
    # A minute of the clock that begins here lies within the stay, and none of it is just after the arrival.
    first, last = (stay.start + JUST_ARRIVED + 60, stay.end - 60) if least else (stay.start, stay.end - 1)
    moment = int(draw.rng.integers(first, max(first, last) + 1))
    return name_time(draw, question, items, target, moment - moment % 60 if least else moment)


def _is_stay(stay: Stay | None, least: int) -> bool:
    return stay is not None and not stay.moving and stay.end - stay.start >= least + JUST_ARRIVED


def draw_object(draw: Draw) -> Draft | None:
    """Draw a question about which object was moved or grasped."""
    predicate, family = ("objectAt", "object.moved") if draw.coin(0.6) else ("grasped", "object.grasped")
    goals = [
        (number, goal)
        for number in range(len(draw.log))
        for goal, reached in draw.log.goals(number)
        if reached and goal.predicate == predicate
    ]
    if not goals:
        return None
    number, goal = draw.pick(goals)
    question = make_question(draw, family, location=goal.place if predicate == "objectAt" else None)
    items = candidates(draw.log, question)
    target = next(item for item in items if item.episode == number)
    return name_time(draw, question, items, target, target.time)


def draw_duration(draw: Draw) -> Draft | None:
    """Draw a question about how long an action took."""
    verb = draw_weighted(draw, DURATION_VERBS) if draw.config.balanced else str(draw.pick(tuple(DURATION_VERBS)))
    events = [event for event in draw.log.select(verb) if event.end - event.start <= LONGEST_DURATION]
    if not events:
        return None
    event = draw.pick(events)
    rounded = Duration(event.end - event.start, False).rounded
    exact = draw.coin(draw.config.exact) or (draw.config.balanced and not draw.coin(DURATIONS[verb].get(rounded, 1.0)))
    place = event.location if verb == "go" else None
    question = make_question(draw, "duration.act", verb=verb, object=event.object, location=place, exact=exact)
    return _about(draw, question, Referent(event.episode, event.start, event))


def draw_summary(draw: Draw) -> Draft | None:
    """Draw a question about everything in a period, with or without an episode in it."""
    log = draw.log
    empty = draw.coin(draw.config.empty_summaries)
    question = make_question(draw, "summary.period")
    if draw.coin(0.5):
        forms = period_forms(log.now, draw.pick(_LAST_DAYS))
    else:
        oldest, today = log.oldest // DAY, log.now // DAY
        days = range(max(oldest - 3, today - 40), today + 1)
        days = [day for day in days if day not in log.active_days] if empty else log.active_days  # type: ignore[assignment]
        if not days:
            return None
        forms = day_forms(draw.pick(days), log.now)
    query = replace(question, time=draw_form(forms, draw.rng))
    episodes = meant(query, candidates(log, query))
    return Draft(query, episodes) if bool(episodes) != empty or not len(log) else None


def draw_how_often(draw: Draw) -> Draft | None:
    """Draw a question about how often something happened."""
    form = draw_weighted(draw, COUNT_FORMS) if draw.config.balanced else str(draw.pick(tuple(COUNT_FORMS)))
    slot = "object" if form == "grasp" else "location"
    values = {"grasp": _OBJECTS, "visit": VISITED, "moved": PLACE_LOCATIONS}[form]
    counts = dict.fromkeys(values, 0)
    verb = {"grasp": "grasp", "visit": "go", "moved": "putdown"}[form]
    for event in draw.log.select(verb):
        counts[getattr(event, slot)] += 1
    if draw.config.balanced:
        if max(counts.values()) < LEAST_COUNT[form]:
            return None
        number = int(np.searchsorted(np.cumsum(COUNTS[form]), draw.rng.random()))
        usable = [value for value, count in counts.items() if min(count, len(COUNTS[form]) - 1) == number]
    else:
        usable = list(values) if draw.coin(draw.config.never) else [value for value, count in counts.items() if count]
    if not usable:
        return None
    question = make_question(draw, f"how_often.{form}", **{slot: draw.pick(usable)})
    return Draft(question, candidates(draw.log, question))


DRAW: dict[str, Callable[[Draw], Draft | None]] = {
    "clock": draw_clock,
    "action": draw_action,
    "problems": draw_problems,
    "past_time": draw_past_time,
    "location": draw_location,
    "object": draw_object,
    "duration": draw_duration,
    "summary": draw_summary,
    "how_often": draw_how_often,
}
