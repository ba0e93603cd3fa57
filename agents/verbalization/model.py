"""Model that answers questions: a memory of key frames, then a head that reads it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.verbalization.arrays import QUESTION_SLOTS
from memenvs.agents.verbalization.config import AnswererConfig, Dates
from memenvs.agents.verbalization.frames import DateEncoder
from memenvs.agents.verbalization.history_encoder import HistoryEncoder
from memenvs.verbalization.language.facts import MAX_CLAUSES
from memenvs.verbalization.language.structured import SLOT_SIZES

EMIT = 0
"""Index of the slot that says whether there is a clause."""


class QuestionEncoder(nn.Module):
    """Sum of an embedding of each slot of a question, and of its times.

    Args:
        dim: Width of the encoding.
        dates: How times are encoded; see `AnswererConfig`.
    """

    def __init__(self, dim: int, dates: Dates) -> None:
        super().__init__()
        self.slots = nn.ModuleList(nn.Embedding(len(values) + 1, dim) for values in QUESTION_SLOTS.values())
        for table in self.slots:
            nn.init.normal_(table.weight, std=0.5)  # type: ignore[arg-type]  # together as large as the times
        self.times = nn.ModuleList(DateEncoder(dim, dates) for _ in range(3))
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, slots: Tensor, times: Tensor) -> Tensor:
        """Encode questions.

        Args:
            slots: int64, (..., 8); see `memenvs.agents.verbalization.arrays.encode_question`.
            times: int, (..., 3, 7); first and last second of its time, and the present.

        Returns:
            float, (..., dim).
        """
        first, last, now = (encode(times[..., i, :]) for i, encode in enumerate(self.times))
        has_time = (slots[..., -1:] > 0).to(now.dtype)
        h = now + has_time * (first + last)
        for i, table in enumerate(self.slots):
            h = h + table(slots[..., i])
        return h + self.mlp(h)


class ReadLayer(nn.Module):
    """Pre-norm attention of registers to the vectors of a memory, and an MLP.

    Args:
        dim: Width of the registers.
        heads: Attention heads.
    """

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.query = nn.Linear(dim, dim)
        self.keys_values = nn.Linear(dim, 2 * dim)
        self.out = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, h: Tensor, vectors: Tensor, mask: Tensor) -> Tensor:
        """Read.

        Args:
            h: float, (B, R, D); registers of all questions about a history.
            vectors: float, (B, M, D).
            mask: bool, (B, M).

        Returns:
            float, (B, R, D).
        """
        q = self._split(self.query(self.norm(h)))
        k, v = (self._split(each) for each in self.keys_values(vectors).chunk(2, -1))
        read = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None])
        h = h + self.out(read.transpose(1, 2).flatten(2))
        return h + self.mlp(h)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)


class Answerer(HistoryEncoder):
    """Memory over key frames, and a head that answers structured questions from its vectors.

    Registers of a question read the vectors by attention; from what they have read each clause of the answer is decoded
    by a softmax for each slot.

    Args:
        config: Settings.
        parts: Parts of a key frame that are given; see `memenvs.verbalization.encoding.PARTS`.
        n_symbols: Numbers of symbols.

    Raises:
        ValueError: The memory has no method `vectors`, or a setting of it is not allowed.
    """

    def __init__(self, config: AnswererConfig, parts: Sequence[str], n_symbols: int) -> None:
        super().__init__(config, parts, n_symbols)
        dim = config.head_dim
        self.vector_norm = nn.LayerNorm(self.memory.output_dim)
        self.vector_width = nn.Linear(self.memory.output_dim, dim)
        self.nothing = nn.Parameter(torch.zeros(1, 1, dim))  # a vector to read where there is nothing else
        self.question = QuestionEncoder(dim, config.dates)
        self.registers = nn.Parameter(0.02 * torch.randn(config.registers, dim))
        self.layers = nn.ModuleList(ReadLayer(dim, config.head_heads) for _ in range(config.head_layers))
        width = 2 * dim
        self.read = nn.Sequential(nn.LayerNorm(config.registers * dim), nn.Linear(config.registers * dim, width))
        self.clauses = nn.Parameter(0.02 * torch.randn(MAX_CLAUSES, width))
        self.slots = nn.Linear(width, sum(SLOT_SIZES.values()))

    def answer(self, vectors: Tensor, mask: Tensor, slots: Tensor, times: Tensor) -> Tensor:
        """Read the memory for each question.

        Args:
            vectors: float, (B, M, dim).
            mask: bool, (B, M).
            slots: int64, (B, Q, 8); see `QuestionEncoder`.
            times: int, (B, Q, 3, 7).

        Returns:
            float, (B, Q, width); what `clause_logits` decodes.
        """
        batch = len(vectors)
        keys = torch.cat([self.nothing.expand(batch, -1, -1), self.vector_width(self.vector_norm(vectors))], 1)
        mask = F.pad(mask, (1, 0), value=True)
        question = self.question(slots, times)  # (B, Q, D)
        h = (question[:, :, None] + self.registers).flatten(1, 2)  # (B, Q R, D)
        for layer in self.layers:
            h = layer(h, keys, mask)
        return self.read(h.view(*question.shape[:2], -1))

    def clause_logits(self, read: Tensor, clause: Tensor) -> tuple[Tensor, ...]:
        """Decode clauses.

        Args:
            read: float, (..., width).
            clause: int64, (...); index of the clause of each.

        Returns:
            For each slot of `SLOT_SIZES` float, (..., size).
        """
        logits = self.slots(F.gelu(read + self.clauses[clause]))
        return logits.split(list(SLOT_SIZES.values()), -1)

    def tuples(self, read: Tensor) -> Tensor:
        """Choose the most likely values, int64, (..., 8, 10); 0 from the first missing clause on."""
        clause = torch.arange(MAX_CLAUSES, device=read.device)
        chosen = [
            logits.argmax(-1) for logits in self.clause_logits(read[..., None, :], clause.expand(*read.shape[:-1], -1))
        ]
        rows = torch.stack(chosen, -1)
        is_there = rows[..., EMIT].cumprod(-1)
        return rows * is_there[..., None]
