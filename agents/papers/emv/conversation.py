"""Questions that a person or a file gives, and a model's answers to them in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from memenvs.agents.papers.emv.data import make_arrays
from memenvs.agents.papers.emv.learner import AnsweringModel, QuestionBatch, TextAnswering
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dialogs import Dialogs, EncodedQuestion
from memenvs.verbalization.diary import date_text, describe_episode
from memenvs.verbalization.key_frames import encode_pool
from memenvs.verbalization.language.facts import Clause
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.parser import parse_answer, parse_question
from memenvs.verbalization.language.question_sets import QuestionSet, read_questions, write_questions
from memenvs.verbalization.language.questions import Question, referents
from memenvs.verbalization.language.sampler import QASampler, QuestionAnswer, answer_question
from memenvs.verbalization.language.score import CATEGORIES, score_clauses
from memenvs.verbalization.language.speech import NO_ANSWER, spoken_answer
from memenvs.verbalization.language.wordings import KINDS
from memenvs.verbalization.splits import Data, life_data, load_data

HISTORIES = 50
"""Histories that are answered together."""


class Given(NamedTuple):
    """A question that was given; it takes the place of the `EncodedQuestion` of a drawn one."""

    qa: QuestionAnswer


class GivenQuestions(Dialogs):
    """Histories with given questions about each, as a model's data.

    Args:
        config: Settings of the histories.
        data: The histories.
        question_lists: Questions about each history, equally many.
    """

    def __init__(
        self, config: EpisodicQAConfig, data: Data, question_lists: Sequence[Sequence[QuestionAnswer]]
    ) -> None:
        super().__init__(replace(config, questions=len(question_lists[0])), data)
        self.question_lists = question_lists

    def usable(self, number: int) -> int:
        """Return the number, as there are questions about every history."""
        return number

    def question(self, number: int, question: int, after: int | None = None) -> EncodedQuestion:
        """Return a question that was given."""
        return Given(self.question_lists[number][question])  # type: ignore[return-value]


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
        [(spoken_answer(qa.question.family, answer, qa.now), answer) for qa, answer in zip(row, answers, strict=True)]
        for row, answers in zip(gold, model.answers(batch), strict=True)
    ]


def frame_shares(model: AnsweringModel, batch: QuestionBatch) -> np.ndarray | None:
    """Compute how much a model's answer to one question depends on each key frame.

    Args:
        model: The model.
        batch: One history of T key frames with one question.

    Returns:
        float64, (T,), of sum 1: how much the answer would change with each key frame, the norm of the gradient of its
        log-likelihood. None if the model has no memory.

    Raises:
        ValueError: There are several questions.
    """
    if batch.questions.shape != (1, 1):
        raise ValueError(f"batch must be of one question about one history, got {batch.questions.shape}")
    if model.model.is_text_only:
        return None
    embedded: list[Tensor] = []

    def keep(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        embedded.append(output.detach().requires_grad_())  # there is no gradient of its own in a frozen model
        return embedded[-1]

    hook = model.model.frames.register_forward_hook(keep)
    was_training = model.training
    model.eval()
    try:
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(model.own_answer_loss(batch).sum(), embedded[:1])
    finally:
        hook.remove()
        model.train(was_training)
    norm = gradient[0].double().norm(dim=-1).cpu().numpy()
    total = norm.sum()
    return norm / total if total else norm


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
        shares: float64, (T,); how much the answer depends on each key frame; see `frame_shares`. None for a model
            without a memory.
    """

    question: str
    answer: str
    gold: str
    category: str
    episodes: tuple[int, ...]
    is_outside: bool
    shares: np.ndarray | None


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

    @property
    def dates(self) -> str:
        """Its dates, such as "from Sat 05 Sep 2020 10:26 to Sun 06 Sep 2020 18:40"."""
        return f"from {date_text(self.history.starts[0])} to {date_text(self.history.ends[-1])}"

    def describe(self) -> dict[str, Any]:
        """Describe the life: "now", number of "key_frames", "episodes" with "start" and "goals"."""
        history = self.history
        return {
            "now": date_text(history.question_time),
            "key_frames": history.num_frames,
            "episodes": [
                {"start": date_text(start), "goals": describe_episode(episode)}
                for start, episode in zip(history.starts, history.episodes, strict=True)
            ],
        }

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
            episodes=tuple(dict.fromkeys(referent.episode for referent in meant)),
            reference=None,
            distance=None,
        )
        time, history = question.time, self.history
        arrays = make_arrays(GivenQuestions(self._config, self._data, [[qa]]))
        batch = QuestionBatch(arrays, np.array([0]), np.array([[0]]))
        (((answer, clauses),),) = answer_in_words(self.model, batch)
        score = score_clauses(clauses, gold.clauses, self.log)
        return Reply(
            question=question.text,
            answer=answer,
            gold=gold.text,
            category=CATEGORIES[score.category - 1],
            episodes=qa.episodes,
            is_outside=time is not None and (time.high < history.starts[0] or time.low > history.ends[-1]),
            shares=frame_shares(self.model, batch),
        )

    def examples(self, count: int) -> list[str]:
        """Return questions about this life, of different kinds."""
        kinds = self.model.config.kinds
        return [
            self._sampler.draw(self.log, number, kinds[number % len(kinds)]).question.text for number in range(count)
        ]


def fill_in_answers(model: AnsweringModel, path: Path, progress: Callable[[float], None] = lambda share: None) -> int:
    """Fill a model's answers into a file of questions; answers that are there are replaced.

    Args:
        model: The model; it reads the key frames as in its training, whatever the scale of the file's data.
        path: A file that `memenvs.verbalization.language.question_sets.write_questions` has written.
        progress: Called with the share that is done.

    Returns:
        Number of answers.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is of another grammar version, or a setting is wrong; the message names it.
    """
    questions = read_questions(path)
    by_history = groupby(questions.items(), key=lambda item: item.id.partition("-")[0])
    question_lists = [[item.gold for item in items] for _, items in by_history]
    config = _config(model.config, questions)
    arrays = make_arrays(
        GivenQuestions(config, _data(model.config, config), question_lists), lambda share: progress(share / 2)
    )
    model.eval()
    answers: dict[str, str] = {}
    everything = np.arange(len(question_lists))
    for histories in np.split(everything, range(HISTORIES, len(everything), HISTORIES)):
        batch = QuestionBatch(arrays, histories, np.tile(np.arange(questions.questions), (len(histories), 1)))
        for history, texts in zip(histories.tolist(), answer_in_words(model, batch), strict=True):
            answers |= {f"{history}-{number}": text for number, (text, _) in enumerate(texts)}
        progress((1 + (histories[-1] + 1) / len(everything)) / 2)
    return write_questions(path, questions, answers)


def _config(own: EpisodicQAConfig, questions: QuestionSet) -> EpisodicQAConfig:
    """Return the settings of a file's histories, with key frames as the model knows them."""
    return EpisodicQAConfig(
        preset=questions.preset,  # type: ignore[arg-type]
        lengths=questions.lengths,
        split=questions.split,
        scale=questions.scale,
        data_seed=questions.data_seed,
        paraphrases=questions.paraphrases,
        kinds=KINDS,
        key_frames=own.key_frames,
        modalities=own.modalities,
    )


def _data(own: EpisodicQAConfig, config: EpisodicQAConfig) -> Data:
    """Load histories, with symbols numbered and signals scaled by the split on which the model was trained."""
    data = load_data(config.household(), config.split, config.lengths, config.scale, config.data_seed)
    trained = load_data(own.household(), "train", scale=own.scale, data_seed=own.data_seed)
    frames = encode_pool(data.histories.pool, trained.dictionary, trained.scaling)
    return replace(data, frames=frames, dictionary=trained.dictionary, scaling=trained.scaling)
