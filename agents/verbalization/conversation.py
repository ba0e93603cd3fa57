"""Questions of a person about a generated life, answered by a trained model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memenvs.agents.verbalization.answering import answer_sources
from memenvs.agents.verbalization.arrays import make_arrays
from memenvs.agents.verbalization.given_questions import GivenQuestions, answer_in_words
from memenvs.agents.verbalization.prediction import AnsweringModel, QuestionBatch
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.question_parser import parse_question
from memenvs.verbalization.language.questions import Question, referents
from memenvs.verbalization.language.sampler import QASampler, QuestionAnswer, answer_question
from memenvs.verbalization.language.score import CATEGORIES, score_clauses
from memenvs.verbalization.language.wordings import FAMILIES, Family
from memenvs.verbalization.splits import life_data


@dataclass(frozen=True)
class Reply:
    """A question of a person with its answers.

    Attributes:
        question: The question, in the words of the grammar.
        answer: Answer of the model.
        gold: Answer by what happened.
        category: Category of the answer; see `memenvs.verbalization.language.score.CATEGORIES`.
        episodes: Indices of the episodes that the question means.
        is_outside: True if the time in the question is before or after all episodes.
        shares: float64, (T,); how much the answer depends on each key frame; see `AnswerSources.frames`. None for a
            model without a memory.
        vectors: float64, (M,); attention to each vector of the memory; see `AnswerSources.vectors`. None as above.
    """

    question: str
    answer: str
    gold: str
    category: str
    episodes: tuple[int, ...]
    is_outside: bool
    shares: np.ndarray | None
    vectors: np.ndarray | None


class Conversation:
    """A generated life of a robot, about which a model answers questions.

    Args:
        model: The model.
        seed: Seed of the life; >= 0. The same seed and number of episodes give the same life.
        episodes: Its episodes, 1 to 1000.

    Raises:
        ValueError: A number is out of range.

    Attributes:
        history: The life.
        log: What happened in it.
    """

    def __init__(self, model: AnsweringModel, seed: int = 0, episodes: int = 3) -> None:
        config = model.config
        self.model = model.eval()
        data = life_data(config.household(), episodes, seed, config.scale, config.data_seed)
        self._config, self._data = config, data
        self.history = data.histories.history(0)
        self.log = Log(self.history)
        self._sampler = QASampler(config.language())

    def ask(self, text: str) -> Reply:
        """Answer a question.

        Args:
            text: A question of the grammar.

        Raises:
            QuestionError: It is none of the grammar; `words` are those that the grammar does not have.
            FutureTimeError: It is about a time after the question.
        """
        return self._answer(parse_question(text, self.log))

    def _answer(self, question: Question) -> Reply:
        now, hands = self.log.now, self.model.config.language().hands
        meant = [] if question.kind == "clock" else referents(self.log, question)
        gold = answer_question(self.log, question, hands=hands)
        qa = QuestionAnswer(
            question=question,
            answer=gold,
            now=now,
            episodes=tuple(dict.fromkeys(each.episode for each in meant)),
            reference=None,
            distance=None,
            ambiguous=len(meant) > 1,
            false_presupposition=False,
        )
        time, history = question.time, self.history
        arrays = make_arrays(GivenQuestions(self._config, self._data, {0: [qa]}))
        batch = QuestionBatch(arrays, np.array([0]), np.array([[0]]))
        (((answer, clauses),),) = answer_in_words(self.model, batch)
        score = score_clauses(clauses, gold.clauses, self.log)
        sources = answer_sources(self.model, batch)
        return Reply(
            question=question.text,
            answer=answer,
            gold=gold.text,
            category=CATEGORIES[score.category - 1],
            episodes=qa.episodes,
            is_outside=time is not None and (time.high < history.starts[0] or time.low > history.ends[-1]),
            shares=None if sources is None else sources.frames,
            vectors=None if sources is None else sources.vectors,
        )

    def examples(self, count: int, start: int = 0) -> list[str]:
        """Return questions about this life, of different kinds.

        Args:
            count: How many.
            start: Number of the first; other numbers give other questions.
        """
        kinds = self.model.config.kinds
        return [
            self._sampler.draw(self.log, number, kinds[number % len(kinds)]).question.text
            for number in range(start, start + count)
        ]


def grammar_forms() -> list[tuple[Family, str]]:
    """List every form of question with its first wording; braces are what a person fills in."""
    return [(family, family.wordings[0].replace("{exactly}", "")) for family in FAMILIES.values()]
