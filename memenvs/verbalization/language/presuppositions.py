"""Questions about what need not have happened, whose answer may be "I did not do that"."""

from __future__ import annotations

from dataclasses import replace

from memenvs.verbalization.dates import DAY
from memenvs.verbalization.language.questions import Question, candidates, meant
from memenvs.verbalization.language.slot_sampling import VISITED, Draft, Draw, make_question
from memenvs.verbalization.language.times import HOUR, day_forms, draw_form, moment_forms
from memenvs.verbalization.language.wordings import Kind
from memenvs.verbalization.symbols import OBJECTS, PLACE_LOCATIONS


def deny(draw: Draw, draft: Draft) -> Draft | None:
    """Change a question so that it presupposes what did not happen; None if it cannot."""
    question = draft.question
    if question.family == "location.robot":
        return draft  # the robot is always somewhere
    query: Question | None
    for _ in range(8):
        if question.object:
            query = replace(question, object=str(draw.pick(tuple(OBJECTS))))
        elif question.location:
            query = replace(
                question, location=str(draw.pick(PLACE_LOCATIONS if question.family == "object.moved" else VISITED))
            )
        else:
            query = _other_time(draw, question)
            if query is None:
                continue
        if not meant(query, candidates(draw.log, query)):
            return Draft(query, ())
    return None


def _other_time(draw: Draw, question: Question) -> Question | None:
    """Name another time, as finely as the question does, so that its precision gives nothing away."""
    day = int(draw.pick(draw.log.active_days))
    moment = day * DAY + int(draw.rng.integers(8 * HOUR, 20 * HOUR))
    if moment > draw.log.now:
        return None
    precision = question.time.precision if question.time else None
    forms = [form for form in moment_forms(moment, draw.log.now) if precision in (None, form.precision)]
    return replace(question, time=draw_form(forms, draw.rng)) if forms else None


def any_question(draw: Draw, kind: Kind) -> Draft:
    """Make a question of a kind that every history allows, whatever its answer is."""
    question = make_question(draw, _FAMILIES[kind])
    if kind in ("past_time", "location", "duration", "how_often"):
        question = replace(question, object=draw.pick(tuple(OBJECTS)))
    if kind in ("past_time", "duration"):
        question = replace(question, verb="grasp")
    if kind == "object":
        question = replace(question, location=draw.pick(PLACE_LOCATIONS))
    if kind in ("object", "problems", "summary"):
        day = draw.log.oldest // DAY - 1  # nothing happened on it
        question = replace(question, time=draw_form(day_forms(day, draw.log.now), draw.rng))
    return Draft(question, meant(question, candidates(draw.log, question)))


_FAMILIES: dict[Kind, str] = {
    "clock": "clock.time",
    "action": "action.open",
    "problems": "problems.interval",
    "past_time": "past_time.action",
    "location": "location.object",
    "object": "object.moved",
    "duration": "duration.act",
    "summary": "summary.period",
    "how_often": "how_often.grasp",
}
