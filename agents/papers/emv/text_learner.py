"""Answers in words as a prediction task: batches of tokens, loss and scores."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from memenvs.agents.papers.emv.config import AnswererConfig, TextConfig
from memenvs.agents.papers.emv.learner import AnsweringModel, QuestionBatch
from memenvs.agents.papers.emv.text_model import TextAnswerer
from memenvs.agents.papers.emv.texts import Texts, pad
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.language.facts import Clause
from memenvs.verbalization.language.parser import parse_answer
from memenvs.verbalization.language.tokenizer import ANSWER_TOKENS, PAD, TOKENIZER

PARTS = 4
"""Parts of a batch, by length of the answer, each as long as its longest answer alone."""
WRITTEN = 256
"""Answers that are written together."""
SHORT_ANSWER = 96
"""Most tokens of an answer that is no summary; right ones about problems in histories of 50 have up to 74."""


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
        Bärmann, "Episodic Memory Verbalization with a Long-Term Compressive Memory Transformer", master's thesis, KIT
        2021; after Bärmann et al., "Deep Episodic Memory for Verbalization of Robot Experience", IEEE RA-L 6(3), 2021.
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
