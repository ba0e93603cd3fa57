"""Model that answers in words: a memory of key frames, then a T5 that reads it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from memenvs.agents.verbalization.config import AnswererConfig
from memenvs.agents.verbalization.frame_embedding import DateEncoder
from memenvs.agents.verbalization.history_encoder import HistoryEncoder
from memenvs.agents.verbalization.reconstruction import TimeDecoder
from memenvs.agents.verbalization.retrieval import Retrieval
from memenvs.agents.verbalization.t5 import PAD, T5, check_tiles
from memenvs.agents.verbalization.text_config import TextConfig


class TextAnswerer(HistoryEncoder):
    """Memory over key frames, and a T5 that answers from its vectors and the question.

    The encoder of the T5 reads the question; its decoder attends to the question and to the vectors of the memory, each
    repeated until it is as wide as a token. With `TextConfig.retrieval` a trained head reads the memory first, and the
    decoder attends to what it has read as well.

    Args:
        config: Settings of the memory.
        text: Settings of the T5.
        parts: Parts of a key frame that are given; see `memenvs.verbalization.encoding.PARTS`.
        vocab_size: Number of tokens of the tokenizer.

    Raises:
        FileNotFoundError: A file of the weights is missing.
        ValueError: A setting is not allowed, or weights do not fit it.
    """

    def __init__(self, config: AnswererConfig, text: TextConfig, parts: Sequence[str], vocab_size: int) -> None:
        super().__init__(config, parts)
        if text.retrieval and not config.freeze_memory:
            raise ValueError("text.retrieval needs freeze_memory=True, so that its head fits the memory, got False")
        width = self.memory.output_dim
        self.vector_norm = nn.LayerNorm(width)
        self.times = nn.ModuleList(DateEncoder(width, config.dates) for _ in range(3 * text.resolved_times))
        sizes = text.t5_config(vocab_size)
        check_tiles(sizes.d_model, width)
        self.t5 = T5(sizes)
        if text.weights is not None:
            self.t5.load_published(text.weights)
        self.retrieval = Retrieval(config, width, sizes.d_model) if text.retrieval else None
        if config.time_weight:
            self.named_time = TimeDecoder(sizes.d_model)

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
        memory, is_there = vectors, mask
        vectors = self.vector_norm(vectors).repeat_interleave(count, 0)
        mask = mask.repeat_interleave(count, 0)
        if len(self.times):
            encoded = torch.stack([encode(self.codes, times[..., i, :]) for i, encode in enumerate(self.times)], 2)
            known = torch.stack([has_time, has_time, torch.ones_like(has_time)], 2)
            vectors = torch.cat([vectors, encoded.flatten(0, 1)], 1)
            mask = torch.cat([mask, known.flatten(0, 1)], 1)
        context, valid = self.t5.join(words, is_word, vectors, mask)
        if self.retrieval is None:
            return context, valid
        if slots is None:
            slots = self.retrieval.choose_slots(words, is_word, has_time.flatten()).unflatten(0, query.shape[:2])
        filled, is_filled = self.retrieval(self.codes, memory, is_there, slots, times)
        return torch.cat([filled, context], 1), torch.cat([is_filled, valid], 1)
