"""Score answers by their facts: seven categories, and precision and recall of information.

Source:
    Bärmann (2021), evaluation of verbalized episodic memories.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memenvs.verbalization.language.facts import SLOTS, Clause, facts_of, slot_matches
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.parser import parse_answer
from memenvs.verbalization.language.sampler import QuestionAnswer

#: Categories by number, from 1; the first that fits counts. TMI is "too much information".
CATEGORIES = (
    "inappropriate",
    "correct",
    "TMI, correct",
    "TMI, wrong",
    "partially correct, only the action",
    "partially correct",
    "wrong",
)
INAPPROPRIATE, CORRECT, TMI_CORRECT, TMI_WRONG, ONLY_ACTION, PARTIAL, WRONG = range(1, 8)


class Score(NamedTuple):
    """Score of one answer.

    Attributes:
        category: 1 ... 7; see `CATEGORIES`.
        correct: Number of its facts that are expected.
        incorrect: Number of its other facts.
        expected: Number of expected facts.
    """

    category: int
    correct: int
    incorrect: int
    expected: int

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall of its facts, 0 ... 1."""
        return 2 * self.correct / (2 * self.correct + self.incorrect + (self.expected - self.correct))


class Pooled(NamedTuple):
    """Precision, recall and their harmonic mean over facts; None without any fact."""

    precision: float | None
    recall: float | None
    f1: float | None


def pool(scores: Iterable[Score]) -> Pooled:
    """Compute precision and recall over all facts of all answers."""
    correct = incorrect = expected = 0
    for score in scores:
        correct += score.correct
        incorrect += score.incorrect
        expected += score.expected
    if not expected:
        return Pooled(None, None, None)
    precision = correct / (correct + incorrect) if correct + incorrect else None
    return Pooled(precision, correct / expected, 2 * correct / (correct + incorrect + expected))


def pair_clauses(clauses: Sequence[Clause], expected: Sequence[Clause]) -> list[int | None]:
    """Pair clauses so that as many facts as possible match.

    Args:
        clauses: Clauses of an answer.
        expected: Clauses of the gold answer.

    Returns:
        For each clause of `clauses` the index of its partner; None without one.
    """
    # For each set of partners that are taken (as bits), the most matches so far and the partners that reach it.
    best: dict[int, tuple[int, list[int | None]]] = {0: (0, [])}
    for clause in clauses:
        gains = [_count(clause, other) for other in expected]
        extended: dict[int, tuple[int, list[int | None]]] = {}
        for taken, (total, partners) in best.items():
            options: list[int | None] = [k for k, gain in enumerate(gains) if gain and not taken >> k & 1]
            for partner in (*options, None):
                key = taken if partner is None else taken | 1 << partner
                reached = total if partner is None else total + gains[partner]
                if key not in extended or reached > extended[key][0]:
                    extended[key] = (reached, [*partners, partner])
        best = extended
    return max(best.values(), key=lambda option: option[0])[1]


def _count(clause: Clause, expected: Clause) -> int:
    return sum(slot_matches(a, b) for a, b in zip(clause, expected, strict=True))


def score_clauses(clauses: Sequence[Clause] | None, expected: Sequence[Clause], log: Log | None) -> Score:
    """Score the clauses of an answer.

    Args:
        clauses: Clauses of the answer; None if it is no answer to the question.
        expected: Clauses of the gold answer.
        log: The history, which decides whether more than what is expected is true; None: it never is.

    Returns:
        Category and counts of facts.
    """
    total = len(facts_of(expected))
    if clauses is None:
        return Score(INAPPROPRIATE, 0, 0, total)
    matched: set[str] = set()
    correct = incorrect = 0
    extras_hold = True
    for clause, partner in zip(clauses, pair_clauses(clauses, expected), strict=True):
        gold = expected[partner] if partner is not None else Clause()
        right = [slot for slot, a, b in zip(SLOTS, clause, gold, strict=True) if slot_matches(a, b)]
        wrong = sum(value is not None for value in clause) - len(right)
        matched |= set(right)
        correct, incorrect = correct + len(right), incorrect + wrong
        if wrong and extras_hold:
            extras_hold = log is not None and log.holds(clause)
    return Score(_category(matched, correct, incorrect, total, extras_hold), correct, incorrect, total)


def _category(matched: set[str], correct: int, incorrect: int, total: int, extras_hold: bool) -> int:
    if correct == total:
        return CORRECT if not incorrect else TMI_CORRECT if extras_hold else TMI_WRONG
    if not correct:
        return WRONG
    return ONLY_ACTION if matched == {"verb"} else PARTIAL


def score_answer(text: str, gold: QuestionAnswer, log: Log | None) -> Score:
    """Score an answer in words.

    Args:
        text: The answer.
        gold: The question with its gold answer.
        log: The history; see `score_clauses`.
    """
    return score_clauses(parse_answer(gold.kind, text, gold.now), gold.answer.clauses, log)
