"""Question answering as a prediction task: batches, loss and scores."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from memenvs.agents.algorithms.supervised import PredictionModel, seed_memory
from memenvs.agents.papers.emv.config import AnswererConfig, TextConfig
from memenvs.agents.papers.emv.data import SYMBOLIC, QuestionArrays, Renaming, draw_renaming, load_arrays
from memenvs.agents.papers.emv.model import HistoryEncoder, Reading, SlotAnswerer
from memenvs.agents.papers.emv.slots import (
    ANSWER_SLOTS,
    EMIT,
    ORDERED,
    QUESTION_SLOTS,
    kinds_of,
    slots_to_tuples,
    sort_clauses,
)
from memenvs.agents.papers.emv.text_model import TextAnswerer
from memenvs.agents.papers.emv.texts import Texts, pad
from memenvs.query_task import Episodes, Split
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.language.facts import MAX_CLAUSES, Clause
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.parser import parse_answer
from memenvs.verbalization.language.sampler import QuestionAnswer
from memenvs.verbalization.language.score import CORRECT, Score, score_clauses
from memenvs.verbalization.language.tokenizer import ANSWER_TOKENS, PAD, TOKENIZER
from memenvs.verbalization.language.tuples import STOP, clauses_to_tuples, tuples_to_clauses
from memenvs.verbalization.language.wordings import GRAMMAR_VERSION, KINDS
from memenvs.verbalization.queries import DialogBatch, DialogQueries

PARTS = 4
"""Parts of a batch, by length of the answer, each as long as its longest answer alone."""
WRITTEN = 256
"""Answers that are written together."""
SHORT_ANSWER = 96
"""Most tokens of an answer that is no summary; right ones about problems in histories of 50 have up to 74."""


@dataclass(frozen=True, eq=False)
class QuestionBatch(Episodes):
    """B histories with Q questions each.

    Attributes:
        arrays: Questions of which these are some.
        histories: int64, (B,); numbers of the histories.
        questions: int64, (B, Q); numbers of the questions.
        seed: Seed of what a loss draws, such as dropout.
        renaming: Other names for objects and places; None for none.
    """

    shared = ("arrays", "seed")

    arrays: QuestionArrays
    histories: np.ndarray
    questions: np.ndarray
    seed: int = 0
    renaming: Renaming | None = None

    @property
    def dialogs(self) -> DialogBatch:
        """The histories, and the questions with their gold answers."""
        return DialogBatch(self.arrays.dialogs, self.histories, self.questions)

    def of_questions(self, values: np.ndarray) -> np.ndarray:
        """Select values of the questions, (B, Q, ...), from those of all, (H, questions, ...)."""
        return values[self.histories[:, None], self.questions]


class AnsweringModel(PredictionModel):
    """Base of models that answer questions about histories, to be trained.

    A batch is of histories with several questions about each, which share what the memory holds; see `DialogQueries`.

    Args:
        config: Settings of histories and questions.
        settings: Settings of the model.

    Attributes:
        model: Encodes the histories.
    """

    model: HistoryEncoder

    def __init__(self, config: EpisodicQAConfig, settings: AnswererConfig) -> None:
        super().__init__()
        self.settings = settings
        self.task = DialogQueries(config)

    @property
    def config(self) -> EpisodicQAConfig:
        """Settings of histories and questions."""
        return self.task.config

    def sample(self, count: int, rng: np.random.Generator, split: Split = "train", step: int = 0) -> QuestionBatch:
        """Draw histories, by `weight_by_length`, and questions; see `PredictionModel.sample`."""
        settings = self.settings
        num_lengths = None
        if split == "train" and settings.curriculum:
            num_lengths = 1 + sum(step >= begin for begin in settings.curriculum)
        drawn = self.task.sample_batch(
            count,
            rng,
            split,
            questions=settings.questions,
            num_lengths=num_lengths,
            weight_by_length=split == "train" and settings.weight_by_length,
        )
        seed = int(rng.integers(2**31))
        return QuestionBatch(load_arrays(drawn.dialogs), drawn.histories, drawn.questions, seed)

    def shard(self, batch: QuestionBatch, rank: int, count: int) -> QuestionBatch:
        """Take every `count`-th history; see `PredictionModel.shard`."""
        return batch.select(slice(rank, None, count))

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.parameters()).device

    def frames(self, batch: QuestionBatch) -> tuple[dict[str, Tensor], Tensor]:
        """Assemble the key frames, with symbols as in `SYMBOLS`; see `DialogBatch.frames`."""
        frames, mask = batch.dialogs.frames()
        for part in SYMBOLIC & frames.keys():
            symbols = batch.arrays.symbols[frames[part]]
            frames[part] = symbols if batch.renaming is None else batch.renaming.of_frames(symbols)
        tensors = {part: torch.from_numpy(values).to(self.device) for part, values in frames.items()}
        return tensors, torch.from_numpy(mask).to(self.device)

    def encode(self, batch: QuestionBatch) -> tuple[Tensor, Tensor]:
        """Encode the histories; see `HistoryEncoder.encode`."""
        return self.model.encode(*self.frames(batch))

    def loss(self, batch: QuestionBatch) -> tuple[Tensor, dict[str, float]]:
        """Compute the losses of answers and memory; see `PredictionModel.loss`."""
        seed_memory(self.model.memory, batch.seed)
        # of a frozen memory nothing learns from its own loss, which it computes where there are gradients
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.settings.freeze_memory):
            vectors, mask = self.encode(batch)
        auxiliary_loss = self.model.memory.auxiliary_loss()
        total, log = self.answer_loss(batch, vectors, mask)
        if auxiliary_loss is not None:
            total = total + auxiliary_loss
            log["auxiliary_loss"] = auxiliary_loss.item()
        return total, log

    @abstractmethod
    def answer_loss(self, batch: QuestionBatch, vectors: Tensor, mask: Tensor) -> tuple[Tensor, dict[str, float]]:
        """Compute the loss of the answers, and numbers for the log.

        Args:
            batch: Histories and questions.
            vectors: float, (B, M, dim); see `encode`.
            mask: bool, (B, M).
        """

    def select(self, values: np.ndarray, batch: QuestionBatch) -> Tensor:
        """Select what belongs to the questions of a batch: (B, Q, ...) of (N, questions, ...)."""
        return torch.from_numpy(batch.of_questions(values)).to(self.device)

    def scores(self, batch: QuestionBatch) -> dict[str, np.ndarray]:
        """Score each answer, float64, (B, Q); see `PredictionModel.scores`.

        Metrics are "accuracy" (all facts right and no other one given), "f1" of the facts, and the accuracy of each
        kind of question and length of history.
        """
        scored = self.score_answers(batch)
        correct = np.array([[score.category == CORRECT for score in row] for row in scored], float)
        kinds = kinds_of(batch.of_questions(batch.arrays.slots))
        length = np.array([len(batch.arrays.dialogs.history(number)) for number in batch.histories.tolist()])
        metrics = {"accuracy": correct, "f1": np.array([[score.f1 for score in row] for row in scored])}
        metrics |= {f"accuracy_{kind}": np.where(kinds == number, correct, np.nan) for number, kind in enumerate(KINDS)}
        return metrics | {f"accuracy_length_{n}": correct[length == n] for n in np.unique(length).tolist()}

    def score_answers(self, batch: QuestionBatch) -> list[list[Score]]:
        """Answer and score: B lists of Q scores."""
        scored = []
        for row, gold, answers in zip(batch.histories.tolist(), self.gold(batch), self.answers(batch), strict=True):
            log = Log(batch.arrays.dialogs.history(row))
            scores = [score_clauses(clauses, qa.answer.clauses, log) for qa, clauses in zip(gold, answers, strict=True)]
            scored.append(scores)
        return scored

    def gold(self, batch: QuestionBatch) -> list[list[QuestionAnswer]]:
        """Return the questions of a batch with their gold answers: B lists of Q."""
        return [[encoded.qa for encoded in row] for row in batch.dialogs.encoded()]

    @abstractmethod
    def answers(self, batch: QuestionBatch) -> list[list[tuple[Clause, ...] | None]]:
        """Answer: B lists of the clauses of Q answers; None where an answer says nothing."""

    def query_actions(self, episodes: Episodes, rng: np.random.Generator) -> list[np.ndarray]:
        """Spell the answers; see `PredictionModel.query_actions`.

        An answer that the actions cannot spell says nothing.
        """
        assert isinstance(episodes, DialogBatch)
        dialogs = episodes.dialogs
        batch = QuestionBatch(load_arrays(dialogs), episodes.histories, episodes.questions)
        spelled = []
        for (qa,), (clauses,) in zip(self.gold(batch), self.answers(batch), strict=True):
            tuples = clauses_to_tuples(qa.question, (clauses or ())[:MAX_CLAUSES], qa.now)
            spelled.append(np.array(dialogs.fact_actions.spell(tuples) or (STOP,), np.int64))
        return spelled

    @abstractmethod
    def own_answer_loss(self, batch: QuestionBatch) -> Tensor:
        """Compute the cross-entropy of the answers that the model itself gives, float (B, Q)."""

    def inputs(self) -> dict[str, Any]:
        """Return the version of the grammar; see `PredictionModel.inputs`."""
        return {"grammar": GRAMMAR_VERSION}

    def check_inputs(self, saved: dict[str, Any], where: str) -> None:
        """Refuse a checkpoint of another grammar or tokenizer; see `PredictionModel.check_inputs`."""
        for name, own in self.inputs().items():
            if saved.get(name, own) != own:
                raise ValueError(f"{where}: must be of the {name} {own}, got {saved[name]}")


class SlotAnswering(AnsweringModel):
    """A memory of key frames and a head that answers structured questions, to be trained.

    The model is a `SlotAnswerer`. The loss is the sum of cross-entropies over the slots of all clauses of an answer,
    and the memory's own loss, such as that of compression. The learner is `SupervisedLearner`.

    Difference from the paper:
        The thesis answers in words, by a T5 decoder over the vectors of the memory and the words of the question. Here
        question and answer have slots, and the question's time is the span of seconds that it denotes. That is much
        faster and measures the memory alone. To learn, times in answers are exact, since the phrase of the
        gold answer is drawn; answers are scored against the phrase. Moments are named by their date, and what is
        counted from it ("three days ago") follows by the calendar. Key frames, questions and answers share the vectors
        of symbols and of parts of dates. With `rename` objects and places of a history get other names in each batch of
        training; the signals of the robot keep what belongs to the true ones. Adam with a linear decay is ours.

    Args:
        config: Settings of histories and questions.
        settings: Settings of the model.

    Source:
        Bärmann, "Episodic Memory Verbalization with a Long-Term Compressive Memory Transformer", master's thesis, KIT
        2021; after Bärmann et al., "Deep Episodic Memory for Verbalization of Robot Experience", IEEE RA-L 6(3), 2021.
    """

    model: SlotAnswerer

    def __init__(self, config: EpisodicQAConfig, settings: AnswererConfig) -> None:
        super().__init__(config, settings)
        self.model = SlotAnswerer(settings, config.parts)

    def read(self, batch: QuestionBatch, vectors: Tensor, mask: Tensor) -> Reading:
        """Encode the questions; see `AnswerHead.read`."""
        slots = batch.of_questions(batch.arrays.slots)
        if batch.renaming is not None:
            slots = batch.renaming.of_slots(
                slots, *(list(QUESTION_SLOTS).index(name) for name in ("object", "location"))
            )
        times = self.select(batch.arrays.times, batch)
        return self.model.head.read(self.model.codes, vectors, mask, torch.from_numpy(slots).to(self.device), times)

    def sample(self, count: int, rng: np.random.Generator, split: Split = "train", step: int = 0) -> QuestionBatch:
        """Draw histories and questions, and for training other names; see `AnsweringModel.sample`.

        Nothing is renamed without `rename`. Nor is it without symbols: images and signals of the robot show what an
        object is, not its new name.
        """
        batch = super().sample(count, rng, split, step)
        shows_names = any(part in SYMBOLIC for part in self.config.parts)
        if split != "train" or not shows_names or not self.settings.rename:
            return batch
        return replace(batch, renaming=draw_renaming(count, rng))

    def targets(self, batch: QuestionBatch) -> Tensor:
        """Return the answers to learn, int64, (B, Q, 8, slots)."""
        rows = batch.of_questions(batch.arrays.target)
        if batch.renaming is not None:
            renamed = batch.renaming.of_slots(
                rows, *(list(ANSWER_SLOTS).index(name) for name in ("object", "location"))
            )
            kinds = kinds_of(batch.of_questions(batch.arrays.slots))
            is_ordered = np.isin(kinds, [KINDS.index(kind) for kind in ORDERED])
            rows = np.where(is_ordered[..., None, None], renamed, sort_clauses(renamed))
        return torch.from_numpy(rows).to(self.device).long()

    def answer_loss(self, batch: QuestionBatch, vectors: Tensor, mask: Tensor) -> tuple[Tensor, dict[str, float]]:
        """Compute the cross-entropy of all slots; see `AnsweringModel.answer_loss`.

        Each clause of the answer counts, and the end after it.
        """
        losses, is_right = self._cross_entropy(self.read(batch, vectors, mask), self.targets(batch))
        answer_loss = losses.mean()
        log = {"accuracy": float(is_right.float().mean()), "answer_loss": answer_loss.item()}
        return answer_loss, log

    def _cross_entropy(self, reading: Reading, target: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the loss of answers, float (B, Q), and whether all slots are right, bool (B, Q)."""
        logits, (row, question, clause) = self.model.head.clause_logits(self.model.codes, reading, target)
        values = target[row, question, clause]  # (N, slots)
        is_clause = values[:, EMIT] > 0
        losses, is_right = logits[EMIT].new_zeros(len(row), dtype=torch.float32), torch.ones_like(is_clause)
        for slot, scores in enumerate(logits):
            counts = torch.ones_like(is_clause) if slot == EMIT else is_clause
            losses = losses + counts * F.cross_entropy(scores.float(), values[:, slot], reduction="none")
            is_right &= (scores.argmax(-1) == values[:, slot]) | ~counts
        of_question = losses.new_zeros(target.shape[:2]).index_put((row, question), losses, accumulate=True)
        wrong = torch.zeros_like(of_question).index_put((row, question), (~is_right).float(), accumulate=True)
        return of_question, wrong == 0

    def own_answer_loss(self, batch: QuestionBatch) -> Tensor:
        """Compute the cross-entropy of the model's answers; see `AnsweringModel.own_answer_loss`."""
        reading = self.read(batch, *self.encode(batch))
        return self._cross_entropy(reading, self.choose(reading).detach())[0]

    def choose(self, reading: Reading) -> Tensor:
        """Choose the answers, int64, (B, Q, 8, slots); see `AnswerHead.decode`."""
        return self.model.head.decode(self.model.codes, reading)[0]

    def answers(self, batch: QuestionBatch) -> list[list[tuple[Clause, ...] | None]]:
        """Answer in slots; see `AnsweringModel.answers`."""
        tuples = self.choose(self.read(batch, *self.encode(batch))).cpu().numpy()
        return [
            [
                tuples_to_clauses(qa.question, slots_to_tuples(qa.question, rows, qa.now), qa.now)
                for qa, rows in zip(gold, answers, strict=True)
            ]
            for gold, answers in zip(self.gold(batch), tuples, strict=True)
        ]


class TextAnswering(AnsweringModel):
    """A memory of key frames and a T5 that answers in words, to be trained.

    The model is a `TextAnswerer`. The loss is the cross-entropy of the tokens of the answers, and the memory's own
    loss, such as that of compression; with retrieval also that of the slots of questions, summed over slots. Answers
    are written greedily and scored by the facts that they state.

    Difference from the paper:
        The answer to learn has exact times, the first wording and clauses in a fixed order, since phrases and wordings
        of the gold answer are drawn; answers are scored against the gold one. Vectors of the resolved time of a
        question and of the present are added to the words. With `TextConfig.retrieval`
        a head of structured answers, which the thesis has not, reads the memory before the T5 does.

    Args:
        config: Settings of histories and questions.
        settings: Settings of the model.

    Source:
        As of `SlotAnswering`.
    """

    model: TextAnswerer

    def __init__(self, config: EpisodicQAConfig, settings: AnswererConfig) -> None:
        super().__init__(config, settings)
        self.model = TextAnswerer(settings, TextConfig(**settings.text), config.parts)
        self.texts = lru_cache(4)(Texts)

    def inputs(self) -> dict[str, Any]:
        """Return the versions of grammar and tokenizer; see `PredictionModel.inputs`."""
        return {**super().inputs(), "tokenizer": TOKENIZER.fingerprint}

    def _pairs(self, batch: QuestionBatch) -> list[tuple[np.ndarray, np.ndarray]]:
        """Encode the questions and answers of a batch: B Q pairs."""
        texts = self.texts(batch.arrays.dialogs)
        return [
            texts.pair(history, question)
            for history, questions in zip(batch.histories.tolist(), batch.questions.tolist(), strict=True)
            for question in questions
        ]

    def read(
        self,
        batch: QuestionBatch,
        queries: list[np.ndarray],
        vectors: Tensor,
        mask: Tensor,
        slots: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Put together what the decoder attends to, B Q rows; see `TextAnswerer.context`."""
        query = torch.from_numpy(pad(queries)).to(self.device).unflatten(0, batch.questions.shape)
        has_time = self.select(batch.arrays.slots, batch)[..., -1] > 0
        return self.model.context(vectors, mask, query, has_time, self.select(batch.arrays.times, batch), slots)

    def answer_loss(self, batch: QuestionBatch, vectors: Tensor, mask: Tensor) -> tuple[Tensor, dict[str, float]]:
        """Compute the loss of tokens and slots; see `AnsweringModel.answer_loss`."""
        if not self.model.t5.dropout_rate:
            return self._answer_loss(batch, vectors, mask)
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(batch.seed)  # dropout draws from PyTorch's global generator
            return self._answer_loss(batch, vectors, mask)

    def _answer_loss(self, batch: QuestionBatch, vectors: Tensor, mask: Tensor) -> tuple[Tensor, dict[str, float]]:
        pairs = self._pairs(batch)
        slots = self.select(batch.arrays.slots, batch)
        context, valid = self.read(batch, [query for query, _ in pairs], vectors, mask, slots)
        length = np.array([len(answer) for _, answer in pairs])
        loss, n_right = context.new_zeros(()), 0
        for rows in np.array_split(np.argsort(length, kind="stable"), PARTS):
            if not len(rows):
                continue
            answer = torch.from_numpy(pad([pairs[row][1] for row in rows])).to(self.device)
            logits = self.model.t5.decode(answer, context[rows], valid[rows]).float()
            loss = loss + F.cross_entropy(logits.flatten(0, 1), answer.flatten(), ignore_index=PAD, reduction="sum")
            n_right += int(((logits.argmax(-1) == answer) | (answer == PAD)).all(1).sum())
        answer_loss = loss / int(length.sum())
        log = {"accuracy": n_right / len(pairs), "answer_loss": answer_loss.item()}
        total = answer_loss
        n_words = max(len(query) for query, _ in pairs)
        if self.model.retrieval is not None:
            question_loss = self.model.retrieval.question_loss(
                context[:, -n_words:], valid[:, -n_words:], slots.flatten(0, 1)
            )
            total, log["question_loss"] = total + question_loss, question_loss.item()
        return total, log

    def answers(self, batch: QuestionBatch) -> list[list[tuple[Clause, ...] | None]]:
        """Answer in words and parse them; see `AnsweringModel.answers`."""
        return [
            [parse_answer(qa.kind, text, qa.now) for qa, text in zip(gold, texts, strict=True)]
            for gold, texts in zip(self.gold(batch), self.answer_texts(batch), strict=True)
        ]

    def own_answer_loss(self, batch: QuestionBatch) -> Tensor:
        """Compute the cross-entropy of the model's answers; see `AnsweringModel.own_answer_loss`."""
        context, valid = self.read(batch, [query for query, _ in self._pairs(batch)], *self.encode(batch))
        with torch.no_grad():
            answer = self.model.t5.write(context, valid, ANSWER_TOKENS)
        logits = self.model.t5.decode(answer, context, valid).float()
        losses = F.cross_entropy(logits.flatten(0, 1), answer.flatten(), ignore_index=PAD, reduction="none")
        return losses.view_as(answer).sum(1).unflatten(0, batch.questions.shape)

    @torch.no_grad()
    def answer_texts(self, batch: QuestionBatch) -> list[list[str]]:
        """Write the answers: B lists of Q texts."""
        context, valid = self.read(batch, [query for query, _ in self._pairs(batch)], *self.encode(batch))
        is_summary = np.array([qa.kind == "summary" for row in self.gold(batch) for qa in row])
        texts = [""] * len(is_summary)
        for alike, most_tokens in ((~is_summary, SHORT_ANSWER), (is_summary, ANSWER_TOKENS)):
            rows = np.flatnonzero(alike)
            for part in np.split(rows, range(WRITTEN, len(rows), WRITTEN)) if len(rows) else []:
                for row, tokens in zip(part, self.model.t5.write(context[part], valid[part], most_tokens), strict=True):
                    texts[row] = TOKENIZER.decode(tokens.tolist())
        count = batch.questions.shape[1]
        return [texts[begin : begin + count] for begin in range(0, len(texts), count)]
