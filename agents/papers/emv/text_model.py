"""Model that answers in words: a memory of key frames, then a T5 that reads it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.papers.emv.config import AnswererConfig, T5Sizes, TextConfig
from memenvs.agents.papers.emv.frames import Codes, DateEncoder
from memenvs.agents.papers.emv.model import AnswerHead, HistoryEncoder, places
from memenvs.agents.papers.emv.slots import ANSWER_SLOTS, EMIT, QUESTION_SLOTS
from memenvs.agents.papers.emv.t5 import T5Writer, check_tiles
from memenvs.verbalization.language.facts import MAX_CLAUSES
from memenvs.verbalization.language.tokenizer import PAD, TOKENIZER

FILLED = [size for name, size in ANSWER_SLOTS.items() if name != "emit"]
"""Number of values of each slot of an answer but the first one, `EMIT`."""


class Retrieval(nn.Module):
    """Attention to a memory by a trained head of structured answers, for the decoder of a T5.

    The slots of a question are predicted from its encoded words; in training the true ones are given. With them the
    head reads the memory, one clause after the other. The decoder gets one vector for each slot that the head fills:
    the mean of the embeddings of its values, by their probabilities, and embeddings of the slot and of the number of
    the clause. The head stays as it is.

    Args:
        config: Settings of the head.
        width: Width of a vector of the memory.
        d_model: Width of a token of the T5.
    """

    def __init__(self, config: AnswererConfig, width: int, d_model: int) -> None:
        super().__init__()
        self.head = AnswerHead(config, width).requires_grad_(False)
        self.word_queries = nn.Parameter(d_model**-0.5 * torch.randn(len(QUESTION_SLOTS), d_model))
        self.question_slots = nn.ModuleList(nn.Linear(d_model, len(values) + 1) for values in QUESTION_SLOTS.values())
        self.values = nn.ModuleList(nn.Embedding(size, d_model) for size in FILLED)
        self.answer_slots = nn.Parameter(torch.randn(len(FILLED), d_model))
        self.clauses = nn.Parameter(torch.randn(MAX_CLAUSES, d_model))

    def question_logits(self, words: Tensor, valid: Tensor) -> list[Tensor]:
        """Score the values of the slots of questions.

        Args:
            words: float, (N, W, d_model); encoded words.
            valid: bool, (N, W); False where they are padded.

        Returns:
            For each of `QUESTION_SLOTS` float, (N, values + 1); the first one for none.
        """
        scores = (words @ self.word_queries.T).masked_fill(~valid[..., None], -torch.inf)
        read = scores.softmax(1).transpose(1, 2) @ words  # (N, slots, d_model)
        return [linear(read[:, i]).float() for i, linear in enumerate(self.question_slots)]

    def question_loss(self, words: Tensor, valid: Tensor, slots: Tensor) -> Tensor:
        """Compute the cross-entropy of the slots, int64 (N, 8), of questions, summed over slots."""
        losses = [F.cross_entropy(logits, slots[:, i]) for i, logits in enumerate(self.question_logits(words, valid))]
        return torch.stack(losses).sum()

    def choose_slots(self, words: Tensor, valid: Tensor, has_time: Tensor) -> Tensor:
        """Choose the likeliest slots of questions.

        Args:
            words: float, (N, W, d_model); encoded words.
            valid: bool, (N, W); False where they are padded.
            has_time: bool, (N,); which questions name a time, which is given with it: they alone have a kind of time.

        Returns:
            int64, (N, 8).
        """
        *others, time = self.question_logits(words, valid)
        kind_of_time = has_time * (1 + time[:, 1:].argmax(-1))
        return torch.stack([*(logits.argmax(-1) for logits in others), kind_of_time], -1)

    def forward(
        self, codes: Codes, vectors: Tensor, mask: Tensor, slots: Tensor, times: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Read the memory.

        Args:
            codes: Shared vectors.
            vectors: float, (B, M, width); the memory.
            mask: bool, (B, M).
            slots: int64, (B, Q, 8); see `AnswerHead.read`.
            times: int, (B, Q, 3, 7).

        Returns:
            float, (B Q, C, d_model), and bool, (B Q, C): a vector for each filled slot, and which there are.
        """
        chosen, hidden = self.head.decode(codes, self.head.read(codes, vectors, mask, slots, times))
        chosen, hidden = chosen.flatten(0, 1), hidden.flatten(0, 1)  # (N, 8, ...)
        is_clause = chosen[..., EMIT] > 0
        _, *logits = self.head.slot_logits(codes, hidden[is_clause])
        tables = (table.get_parameter("weight") for table in self.values)
        means = [scores.softmax(-1) @ table for scores, table in zip(logits, tables, strict=True)]
        question, clause = is_clause.nonzero(as_tuple=True)
        read = torch.stack(means, 1) + self.answer_slots + self.clauses[clause][:, None]  # (clauses, slots, d_model)
        is_filled = chosen[is_clause][:, 1:] > 0
        row = question[:, None].expand_as(is_filled)[is_filled]
        place, most = places(row, len(chosen))
        out = read.new_zeros(len(chosen), max(1, most), read.shape[-1]).index_put((row, place), read[is_filled])
        is_read = torch.zeros_like(out[..., 0], dtype=torch.bool)
        is_read[row, place] = True
        return out, is_read


class TextAnswerer(HistoryEncoder):
    """Memory over key frames, and a T5 that answers from its vectors and the question.

    The encoder of the T5 reads the question; its decoder attends to the question and to the vectors of the memory, each
    repeated until it is as wide as a token. With `TextConfig.retrieval` a trained head reads the memory first, and the
    decoder attends to what it has read as well.

    Args:
        config: Settings of the memory.
        text: Settings of the T5.
        parts: Parts of a key frame that are given; see `memenvs.verbalization.key_frames.PARTS`.

    Raises:
        ValueError: A setting is not allowed.
    """

    def __init__(self, config: AnswererConfig, text: TextConfig, parts: Sequence[str]) -> None:
        super().__init__(config, parts)
        if text.retrieval and not config.freeze_memory:
            raise ValueError("text.retrieval needs freeze_memory=True, so that its head fits the memory, got False")
        width = self.memory.output_dim
        self.vector_norm = nn.LayerNorm(width)
        self.times = nn.ModuleList(DateEncoder(width) for _ in range(3))
        self.t5 = T5Writer(T5Sizes(**text.sizes), len(TOKENIZER))
        check_tiles(self.t5.d_model, width)
        self.retrieval = Retrieval(config, width, self.t5.d_model) if text.retrieval else None

    def context(
        self,
        vectors: Tensor,
        mask: Tensor,
        query: Tensor,
        has_time: Tensor,
        times: Tensor,
        slots: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Put together what the decoder attends to.

        Args:
            vectors: float, (B, M, H); see `encode`.
            mask: bool, (B, M).
            query: int64, (B, Q, W); tokens of Q questions about each history, padded with 0.
            has_time: bool, (B, Q); which questions name a time.
            times: int, (B, Q, 3, 7); first and last second of that time, and the present.
            slots: int64, (B, Q, 8); slots of the questions, known in training. None: predicted from the words.

        Returns:
            float, (B Q, C, d_model), and bool, (B Q, C); the words of the question are the last W.
        """
        count = query.shape[1]
        tokens = query.flatten(0, 1)
        words, is_word = self.t5.encode(tokens), tokens != PAD
        memory, is_vector = vectors, mask
        vectors = self.vector_norm(vectors).repeat_interleave(count, 0)
        mask = mask.repeat_interleave(count, 0)
        encoded = torch.stack([encode(self.codes, times[..., i, :]) for i, encode in enumerate(self.times)], 2)
        is_named = torch.stack([has_time, has_time, torch.ones_like(has_time)], 2)
        vectors = torch.cat([vectors, encoded.flatten(0, 1)], 1)
        mask = torch.cat([mask, is_named.flatten(0, 1)], 1)
        tiled = vectors.repeat(1, 1, self.t5.d_model // vectors.shape[-1]).to(words.dtype)
        context, valid = torch.cat([tiled, words], 1), torch.cat([mask, is_word], 1)
        if self.retrieval is None:
            return context, valid
        if slots is None:
            slots = self.retrieval.choose_slots(words, is_word, has_time.flatten()).unflatten(0, query.shape[:2])
        filled, is_filled = self.retrieval(self.codes, memory, is_vector, slots, times)
        return torch.cat([filled, context], 1), torch.cat([is_filled, valid], 1)
