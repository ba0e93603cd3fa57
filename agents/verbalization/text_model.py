"""Model that answers in words: a memory of key frames, then a T5 that reads it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from memenvs.agents.verbalization.config import AnswererConfig
from memenvs.agents.verbalization.frame_embedding import DateEncoder
from memenvs.agents.verbalization.history_encoder import HistoryEncoder
from memenvs.agents.verbalization.reconstruction import TimeDecoder
from memenvs.agents.verbalization.t5 import PAD, T5, check_tiles
from memenvs.agents.verbalization.text_config import TextConfig


class TextAnswerer(HistoryEncoder):
    """Memory over key frames, and a T5 that answers from its vectors and the question.

    The encoder of the T5 reads the question; its decoder attends to the question and to the vectors of the memory, each
    repeated until it is as wide as a token.

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
        width = self.memory.output_dim
        self.vector_norm = nn.LayerNorm(width)
        self.times = nn.ModuleList(DateEncoder(width, config.dates) for _ in range(3 * text.resolved_times))
        sizes = text.t5_config(vocab_size)
        check_tiles(sizes.d_model, width)
        self.t5 = T5(sizes)
        if text.weights is not None:
            self.t5.load_published(text.weights)
        if config.time_weight:
            self.named_time = TimeDecoder(sizes.d_model)

    def context(
        self, vectors: Tensor, mask: Tensor, query: Tensor, has_time: Tensor, times: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Put together what the decoder attends to.

        Args:
            vectors: float, (B, M, H); see `encode`.
            mask: bool, (B, M).
            query: int64, (B, Q, W); tokens of Q questions about each history, padded with 0.
            has_time: bool, (B, Q); which questions name a time.
            times: int, (B, Q, 3, 7); first and last second of that time, and the present.

        Returns:
            float, (B Q, C, d_model), and bool, (B Q, C); the words of the question are the last W.
        """
        count = query.shape[1]
        vectors = self.vector_norm(vectors).repeat_interleave(count, 0)
        mask = mask.repeat_interleave(count, 0)
        if len(self.times):
            encoded = torch.stack([encode(self.codes, times[..., i, :]) for i, encode in enumerate(self.times)], 2)
            known = torch.stack([has_time, has_time, torch.ones_like(has_time)], 2)
            vectors = torch.cat([vectors, encoded.flatten(0, 1)], 1)
            mask = torch.cat([mask, known.flatten(0, 1)], 1)
        tokens = query.flatten(0, 1)
        return self.t5.join(self.t5.encode(tokens), tokens != PAD, vectors, mask)
