"""A model without memory: the most frequent answer to each delexicalised question.

It shows how much of a kind of question the words of the question give away. It may copy names from the question into
its answer, and knows the kind of time that the question has.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, cast

from memenvs.verbalization.dates import DAY
from memenvs.verbalization.language.facts import Clause, Duration
from memenvs.verbalization.language.questions import Question, plain_time
from memenvs.verbalization.language.sampler import QuestionAnswer
from memenvs.verbalization.language.times import TimeReference

#: Parts of a question that remain when it is delexicalised, from coarse to fine.
LEVELS = ("words", "times", "names", "names and times")
#: Fewest training questions with the same key; others get the answer of the coarsest level.
_LEAST = 4
_Key = tuple[Hashable, ...]


def delexicalise(question: Question, level: str) -> _Key:
    """Reduce a question to what a model without memory may use.

    Paraphrases count as the same question, because they are drawn whatever the answer is.

    Args:
        question: The question.
        level: One of `LEVELS`: the words without names and times; with the kind of time; with names; with both.

    Returns:
        A key that questions share which are the same at this level.
    """
    key: _Key = (question.family, question.verb, question.order, question.exact)
    if "names" in level:
        key += (question.object, question.location)
    if "times" in level:
        key += (question.time and question.time.family, question.time and question.time.precision)
    return key


def delexicalise_answer(qa: QuestionAnswer) -> Hashable:
    """Return an answer with names of the question as copies, and times counted from now."""
    question = qa.question
    return tuple(
        clause._replace(
            object="copy" if clause.object and clause.object == question.object else clause.object,
            location="copy" if clause.location and clause.location == question.location else clause.location,
            time=_relative(clause.time, qa.now),  # type: ignore[arg-type]
        )
        for clause in sorted(qa.answer.clauses, key=_order)
    )


def _order(clause: Clause) -> tuple[str, str]:
    return str(clause.object), str(clause.location)


def _relative(time: TimeReference | None, now: int) -> Hashable:
    return None if time is None else (now // DAY - time.low // DAY, time.low % DAY, time.precision)


class MajorityAnswers:
    """The most frequent answer of each key.

    Args:
        level: One of `LEVELS`.
        training: Questions from which it takes its answers.
    """

    def __init__(self, level: str, training: Iterable[QuestionAnswer]) -> None:
        self.level = level
        counts: dict[_Key, Counter[Hashable]] = defaultdict(Counter)
        for qa in training:
            answer = delexicalise_answer(qa)
            counts[delexicalise(qa.question, level)][answer] += 1
            counts[(qa.question.family, qa.question.exact)][answer] += 1
        self._answers = {
            key: best_answer(answers) for key, answers in counts.items() if answers.total() >= _LEAST or len(key) == 2
        }

    def answer(self, question: Question) -> Hashable | None:
        """Return the answer, delexicalised; None for a form that was not in training."""
        coarse = (question.family, question.exact)
        return self._answers.get(delexicalise(question, self.level), self._answers.get(coarse))

    def is_right(self, qa: QuestionAnswer) -> bool:
        """Return True if its answer to a question is the gold one."""
        answer = self.answer(qa.question)
        return answer is not None and answers_match(answer, delexicalise_answer(qa))


class TextOnly:
    """The model without memory, to answer questions.

    Of each form it uses the level that is best.

    Args:
        training: Questions from which it takes its answers. To choose the level, it learns from the first half and is
            tested with the second one.
    """

    def __init__(self, training: Sequence[QuestionAnswer]) -> None:
        half = len(training) // 2
        right: dict[str, Counter[str]] = defaultdict(Counter)
        for model in (MajorityAnswers(level, training[:half]) for level in LEVELS):
            for qa in training[half:]:
                right[qa.question.family][model.level] += model.is_right(qa)
        self._levels = {family: counts.most_common(1)[0][0] for family, counts in right.items()}
        self._models = {level: MajorityAnswers(level, training) for level in LEVELS}

    def answer(self, question: Question, now: int) -> tuple[Clause, ...] | None:
        """Answer a question; None for a form that was not in training.

        Args:
            question: The question.
            now: Second since 2020-01-01 00:00:00 at which it is put.
        """
        answer: Any = self._models[self._levels.get(question.family, LEVELS[0])].answer(question)
        return None if answer is None else tuple(_lexicalise(clause, question, now) for clause in answer)


def _lexicalise(clause: Clause, question: Question, now: int) -> Clause:
    """Put names of the question and a time into a delexicalised clause."""
    if clause.time is not None:
        days, second, _ = cast(tuple[int, int, str], clause.time)
        clause = clause._replace(time=plain_time((now // DAY - days) * DAY + second, now))
    return clause._replace(
        object=question.object if clause.object == "copy" else clause.object,
        location=question.location if clause.location == "copy" else clause.location,
    )


def answers_match(answer: Hashable, gold: Hashable) -> bool:
    """Return True if a delexicalised answer is right; durations have a tolerance."""
    duration, expected = _duration(answer), _duration(gold)
    return duration.matches(expected) if duration and expected else answer == gold


def _duration(answer: Hashable) -> Duration | None:
    return answer[0].duration if isinstance(answer, tuple) else None


def best_answer(counts: Counter[Hashable]) -> Hashable:
    """Return the answer that is right most often."""
    if not any(map(_duration, counts)):
        return counts.most_common(1)[0][0]
    frequent = [answer for answer, _ in counts.most_common(100)]
    return max(frequent, key=lambda a: sum(n for other, n in counts.items() if answers_match(a, other)))
