"""Questions and answers as numbers of tokens."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from memenvs.agents.papers.emv.slots import ORDERED, clauses_to_learn
from memenvs.verbalization.dialogs import Dialogs
from memenvs.verbalization.language.facts import Clause
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.parser import parse_answer
from memenvs.verbalization.language.questions import plain_time
from memenvs.verbalization.language.sampler import QuestionAnswer
from memenvs.verbalization.language.speech import make_answer
from memenvs.verbalization.language.tokenizer import PAD, TOKENIZER, query_text

#: Texts that are kept once they were encoded, and histories whose logs are.
_KEPT_TEXTS, _KEPT_LOGS = 131_072, 256


def target_text(log: Log, qa: QuestionAnswer, hands: bool) -> str:
    """Return the words to learn: the first wording of `clauses_to_learn`, in a fixed order.

    Args:
        log: The history.
        qa: Question and gold answer.
        hands: Whether answers state with which hand an object was grasped.
    """

    def say(clauses: tuple[Clause, ...]) -> str:
        in_order = clauses if qa.kind in ORDERED else tuple(sorted(clauses, key=_names))
        return make_answer(qa.kind, qa.question.family, in_order, 0).text

    def through_words(clauses: tuple[Clause, ...]) -> tuple[Clause, ...] | None:
        return parse_answer(qa.kind, say(clauses), qa.now)

    return say(clauses_to_learn(log, qa, hands, partial(plain_time, by_date=True), through_words))


def _names(clause: Clause) -> list[str]:
    return [str(value or "") for value in clause]


class Texts:
    """Questions and answers about histories, encoded when they are first needed.

    Args:
        dialogs: Histories and questions.
    """

    def __init__(self, dialogs: Dialogs) -> None:
        self._dialogs = dialogs
        self._hands = dialogs.config.language().hands
        self._log = lru_cache(_KEPT_LOGS)(lambda number: Log(dialogs.history(number)))
        self.pair = lru_cache(_KEPT_TEXTS)(self._encode)

    def _encode(self, number: int, question: int) -> tuple[np.ndarray, np.ndarray]:
        """Encode a question with its time, and its answer to learn, int64 each."""
        qa = self._dialogs.question(number, question).qa
        texts = query_text(qa.now, qa.question.text), target_text(self._log(number), qa, self._hands)
        query, answer = (np.array(TOKENIZER.encode(text)) for text in texts)
        return query, answer


def pad(rows: list[np.ndarray]) -> np.ndarray:
    """Stack rows of numbers, int64, (B, longest); padded with 0."""
    stacked = np.full((len(rows), max(map(len, rows))), PAD, np.int64)
    for i, row in enumerate(rows):
        stacked[i, : len(row)] = row
    return stacked
