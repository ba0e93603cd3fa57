"""Questions that are given, not drawn, and a model's answers to them in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch

from memenvs.agents.verbalization.prediction import AnsweringModel, QuestionBatch
from memenvs.agents.verbalization.text_prediction import TextAnswering
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dialogs import Dialogs, EncodedQuestion
from memenvs.verbalization.language.answer_parser import parse_answer
from memenvs.verbalization.language.facts import Clause
from memenvs.verbalization.language.sampler import QuestionAnswer
from memenvs.verbalization.language.spoken import NO_ANSWER, spoken_answer
from memenvs.verbalization.splits import Data


class Given(NamedTuple):
    """A question that was given; it takes the place of the `EncodedQuestion` of a drawn one."""

    qa: QuestionAnswer


class GivenQuestions(Dialogs):
    """Histories with given questions about each, as a model's data.

    Args:
        config: Settings of the histories.
        data: The histories.
        given: Number of a history -> questions about it, equally many for each; there may be no questions about some.
    """

    def __init__(self, config: EpisodicQAConfig, data: Data, given: Mapping[int, Sequence[QuestionAnswer]]) -> None:
        super().__init__(replace(config, questions=len(next(iter(given.values())))), data)
        self.given = given

    def usable(self, number: int) -> int:
        """Return the number if there are questions about this history, else another one."""
        return number if number in self.given else next(iter(self.given))

    def question(self, number: int, question: int, after: int | None = None) -> EncodedQuestion:
        """Return a question that was given."""
        return Given(self.given[number][question])  # type: ignore[return-value]


@torch.no_grad()
def answer_in_words(model: AnsweringModel, batch: QuestionBatch) -> list[list[tuple[str, tuple[Clause, ...] | None]]]:
    """Answer the questions of a batch.

    Returns:
        B lists of Q answers. Each has the words, and the clauses that they state, None if they state nothing.
    """
    gold = model.gold(batch)
    if isinstance(model, TextAnswering):
        return [
            [(text or NO_ANSWER, parse_answer(qa.kind, text, qa.now)) for qa, text in zip(row, texts, strict=True)]
            for row, texts in zip(gold, model.answer_texts(batch), strict=True)
        ]
    return [
        [(spoken_answer(qa.question, clauses, qa.now), clauses) for qa, clauses in zip(row, found, strict=True)]
        for row, found in zip(gold, model.answers(batch), strict=True)
    ]
