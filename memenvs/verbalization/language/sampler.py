"""Questions and answers about a history, drawn one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from memenvs.verbalization.dates import DAY
from memenvs.verbalization.episodes import History
from memenvs.verbalization.language.balance import KIND_WEIGHTS, by_length
from memenvs.verbalization.language.facts import Answer
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.presets import LanguageConfig
from memenvs.verbalization.language.questions import (
    Question,
    Speaker,
    answer_clauses,
    candidates,
    last_change,
    meant,
    plain_time,
    random_time,
    referents,
)
from memenvs.verbalization.language.slot_sampling import DRAW, VISITED, Draft, Draw, make_question
from memenvs.verbalization.language.speech import make_answer
from memenvs.verbalization.language.times import HOUR, day_forms, draw_form, moment_forms
from memenvs.verbalization.language.tuples import fit_tuples
from memenvs.verbalization.language.wordings import KINDS, Kind
from memenvs.verbalization.symbols import OBJECTS, PLACE_LOCATIONS

#: Kinds whose questions presuppose something.
PRESUPPOSING: tuple[Kind, ...] = ("action", "past_time", "location", "object", "duration")
Recency = Literal["newest", "recent", "old"]
#: Fewest and most of `QuestionAnswer.last_change` by how recently an answer was overwritten.
RECENCIES: dict[Recency, tuple[int, float]] = {"newest": (1, 1), "recent": (2, 4), "old": (5, math.inf)}
_TRIES = 12
#: Kinds whose balance would be lost if what was rejected were drawn again; another kind is drawn instead.
_ONCE: tuple[Kind, ...] = ("problems", "location")


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """A question about a history with its answer.

    Attributes:
        question: The question; `question.text` are its words.
        answer: The gold answer.
        now: Second since 2020-01-01 00:00:00 at which it is put.
        episodes: Indices of the episodes that it means.
        reference: Second that its time names; None for kinds without a referent, and for false presuppositions.
        distance: Number of episodes from the newest one that it means to the end of the history, which has 1; None
            where `reference` is None.
        last_change: The same of the newest episode that has overwritten the answer, without counting distractor days;
            None if none has.
    """

    question: Question
    answer: Answer
    now: int
    episodes: tuple[int, ...]
    reference: int | None
    distance: int | None
    last_change: int | None = None

    @property
    def kind(self) -> Kind:
        """Kind of the question."""
        return self.question.kind

    @property
    def recency(self) -> Recency | None:
        """Recency of the change that overwrote its answer; None if it is still true."""
        if self.last_change is None:
            return None
        return next(name for name, (low, high) in RECENCIES.items() if low <= self.last_change <= high)


class QASampler:
    """Draws questions about histories.

    Question number i about a history follows from the history, the settings and i alone. It is about the own days of
    the history, wherever these allow one: distractor days change no answer.

    Args:
        config: Settings of the questions.
    """

    def __init__(self, config: LanguageConfig) -> None:
        self.config = config

    def draw(self, history: History | Log, number: int, kind: Kind | None = None) -> QuestionAnswer:
        """Draw question `number` about a history.

        Args:
            history: The history, or its log, which saves time where several questions are drawn.
            number: Number of the question, from 0.
            kind: Kind of the question; another one is drawn if the history allows none. None draws it.
        """
        whole = history if isinstance(history, Log) else Log(history)
        log, rng = whole.own, whole.generator(number)
        draw = Draw(log, self.config, rng)
        # What must not depend on how many tries it takes: the false presupposition and the kind.
        false = draw.coin(self.config.false_presupposition)
        weights = dict(_weights(self.config, len(log)))
        if kind not in weights:
            kind = _choose(weights, rng) if weights else self.config.kinds[0]
        first = kind
        while weights:
            drawn = self._try_kind(draw, whole, kind, false and kind in PRESUPPOSING)
            if drawn is not None:
                return drawn
            del weights[kind]
            kind = _choose(weights, rng) if weights else first
        # A history in which nothing of these kinds happened still allows a question.
        draw = draw._replace(log=whole)
        drawn = self._answer(draw, whole, any_question(draw, first))
        assert drawn is not None, "these answers have one clause, or few"
        return drawn

    def _try_kind(self, draw: Draw, whole: Log, kind: Kind, false: bool) -> QuestionAnswer | None:
        once = self.config.balanced and kind in _ONCE and self.config.kinds != (kind,)
        for _ in range(1 if once else _TRIES):
            draft = DRAW[kind](draw)
            if draft is not None and false and len(draw.log):
                draft = deny(draw, draft)
            if draft is None:
                continue
            drawn = self._answer(draw, whole, draft)
            if drawn is not None:
                return drawn
        return None

    def _answer(self, draw: Draw, whole: Log, draft: Draft) -> QuestionAnswer | None:
        """Answer a draft; None if the answer is too long, or differs on distractor days."""
        question, log = draft.question, draw.log
        if whole is not log and referents(whole, question) != referents(log, question):
            return None
        target = draft.target
        meant = draft.meant if self.config.unique or target is None else [target]
        speaker = Speaker(random_time(draw.rng), self.config.hands)
        clauses = answer_clauses(log, question, meant, speaker, draft.moment)
        if not fit_tuples(clauses, log.now):
            return None
        answer = make_answer(question.kind, question.family, clauses, int(draw.rng.integers(4)))
        changed = None if target is None else last_change(log, question, target)
        return QuestionAnswer(
            question=question,
            answer=answer,
            now=log.now,
            episodes=tuple(dict.fromkeys(referent.episode for referent in meant)),
            reference=None if target is None else draft.moment or target.time,
            distance=None if target is None else len(whole) - target.episode,
            last_change=None if changed is None else len(log) - changed,
        )


@lru_cache(maxsize=256)
def _weights(config: LanguageConfig, length: int) -> Mapping[Kind, float]:
    """Weight of each kind for histories of a length."""
    weights = dict(zip(KINDS, config.weights, strict=True))
    if length < config.how_often_from:
        weights["how_often"] = 0.0
    if config.balanced:
        for kind, table in KIND_WEIGHTS.items():
            weights[kind] *= by_length(table, length)
    return {kind: weights[kind] for kind in config.kinds if weights[kind]}


def _choose(weights: dict[Kind, float], rng: np.random.Generator) -> Kind:
    number = rng.random() * sum(weights.values())
    for kind, weight in weights.items():
        number -= weight
        if number < 0:
            return kind
    return kind


def answer_question(history: History | Log, question: Question, *, hands: bool = False) -> Answer:
    """Answer a question from what happened.

    Args:
        history: The history, or its log.
        question: The question, such as one that a person typed. If it means several events, the answer is about all.
        hands: Say with which hand objects of a goal were grasped.
    """
    log = history if isinstance(history, Log) else Log(history)
    clauses = answer_clauses(log, question, referents(log, question), Speaker(plain_time, hands))
    return make_answer(question.kind, question.family, clauses, 0)


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
