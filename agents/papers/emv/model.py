"""Model that answers questions in slots: a memory of key frames, then a head that reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory import Memory, StepInputs, make_memory
from memenvs.agents.papers.emv.config import AnswererConfig
from memenvs.agents.papers.emv.frames import COUNTED, NAMED, CodedInput, CodedOutput, Codes, DateEncoder, FrameEmbedding
from memenvs.agents.papers.emv.slots import ANSWER_SLOTS, EMIT, QUESTION_SLOTS
from memenvs.agents.policies.small_sizes import with_size
from memenvs.verbalization.language.facts import MAX_CLAUSES
from memenvs.verbalization.signals import LATENT_WIDTH, SUB_WIDTH


class HistoryEncoder(nn.Module):
    """Memory over key frames; a subclass answers questions from its vectors.

    The memory sees no question. All questions about a history share its vectors.

    Args:
        config: Settings.
        parts: Parts of a key frame that are given; see `memenvs.verbalization.key_frames.PARTS`.

    Raises:
        ValueError: The memory needs poses, places or moves, or a setting of it is not allowed.
    """

    def __init__(self, config: AnswererConfig, parts: Sequence[str]) -> None:
        super().__init__()
        self.config = config
        settings = with_size(config.memory, config.size, config.memory_kwargs, config.dim)
        self.memory: Memory = make_memory(config.memory, config.dim, **settings)
        self.is_text_only = config.memory == "none"
        if self.memory.required_inputs:
            raise ValueError(
                f"memory must be one that reads key frames alone, such as 'ct-lt', got {config.memory!r} with "
                f"{config.memory_kwargs}, which needs {', '.join(self.memory.required_inputs)}"
            )
        self.codes = Codes()
        if not self.is_text_only:
            self.frames = FrameEmbedding(parts, SUB_WIDTH, LATENT_WIDTH, config.dim)
        if config.freeze_memory:
            for part in self.memory_parts().values():
                part.requires_grad_(False)

    def memory_parts(self) -> dict[str, nn.Module]:
        """Return what makes the vectors of the memory: itself, shared vectors and embedding."""
        embedding = {} if self.is_text_only else {"frames": self.frames}
        return {"memory": self.memory, "codes": self.codes, **embedding}

    def encode(self, frames: Mapping[str, Tensor], mask: Tensor) -> tuple[Tensor, Tensor]:
        """Encode histories.

        Args:
            frames: Part -> (B, T, ...); each history ends with the last key frame.
            mask: bool, (B, T); True where there is a key frame.

        Returns:
            float, (B, M, dim), vectors of the memory, and their mask, bool, (B, M).
        """
        if self.is_text_only:
            vectors = next(self.parameters()).new_zeros(len(mask), 1, self.memory.output_dim)
            return vectors, torch.ones_like(vectors[..., 0], dtype=torch.bool)
        start = torch.zeros_like(mask)
        start[:, 1:] = mask[:, 1:] & ~mask[:, :-1]
        start[:, 0] = True
        last, state = self.memory(StepInputs(self.frames(self.codes, frames, mask), start, start), None, last=1)
        if not hasattr(self.memory, "vectors"):
            return last, mask[:, -1:]
        vectors, is_filled = self.memory.vectors(state)  # type: ignore[operator]
        return vectors, is_filled & mask[:, -1:]


class QuestionEncoder(nn.Module):
    """Sum of an embedding of each slot of a question, and of its times.

    Args:
        dim: Width of the encoding.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.slots = nn.ModuleList(
            CodedInput(name, dim) if name in NAMED else nn.Embedding(len(values) + 1, dim)
            for name, values in QUESTION_SLOTS.items()
        )
        for table in self.slots:
            if isinstance(table, nn.Embedding):
                nn.init.normal_(table.weight, std=0.5)  # together as large as the times
        self.times = nn.ModuleList(DateEncoder(dim) for _ in range(3))
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, codes: Codes, slots: Tensor, times: Tensor) -> Tensor:
        """Encode questions.

        Args:
            codes: Shared vectors.
            slots: int64, (..., 8); see `memenvs.agents.papers.emv.slots.question_slots`.
            times: int, (..., 3, 7); first and last second of its time, and the present.

        Returns:
            float, (..., dim).
        """
        first, last, now = (encode(codes, times[..., i, :]) for i, encode in enumerate(self.times))
        has_time = (slots[..., -1:] > 0).to(now.dtype)
        h = now + has_time * (first + last)
        for i, table in enumerate(self.slots):
            values = slots[..., i]
            h = h + (table(codes, values) if isinstance(table, CodedInput) else table(values))
        return h + self.mlp(h)


class ReadLayer(nn.Module):
    """Pre-norm attention of queries to the vectors of a memory, and an MLP.

    Args:
        dim: Width of the queries.
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

    def forward(self, h: Tensor, history: Tensor, vectors: Tensor, mask: Tensor) -> Tensor:
        """Read.

        Args:
            h: float, (N, D); queries, those about the same history side by side.
            history: int64, (N,); history of each, ascending.
            vectors: float, (B, M, D).
            mask: bool, (B, M).

        Returns:
            float, (N, D).
        """
        place, longest = places(history, len(vectors))
        q = self.query(self.norm(h))
        q = q.new_zeros(len(vectors), longest, q.shape[-1]).index_put((history, place), q)
        k, v = (self._split(projected) for projected in self.keys_values(vectors).chunk(2, -1))
        read = F.scaled_dot_product_attention(self._split(q), k, v, attn_mask=mask[:, None, None])
        h = h + self.out(read.transpose(1, 2).flatten(2)[history, place])
        return h + self.mlp(h)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)


def places(row: Tensor, batch: int) -> tuple[Tensor, int]:
    """Number the items of each row, such as the queries about each history.

    Args:
        row: int64, (N,); row of each item, ascending.
        batch: Number of rows.

    Returns:
        int64, (N,), and the most items of a row.
    """
    counts = torch.bincount(row, minlength=batch)
    first = counts.cumsum(0) - counts
    return torch.arange(len(row), device=row.device) - first[row], int(counts.max())


class Reading(NamedTuple):
    """Questions about B histories, and what there is to read.

    Attributes:
        questions: float, (B, Q, D); encoded questions.
        vectors: float, (B, M, D); vectors of the memory, and in front one that stands for nothing.
        mask: bool, (B, M).
    """

    questions: Tensor
    vectors: Tensor
    mask: Tensor


class AnswerHead(nn.Module):
    """Head that answers structured questions from the vectors of a memory.

    Clauses are decoded one after the other. Each is a query of its own, the question and the clauses before it, that
    reads the vectors of the memory by attention; from what it has read each slot is decoded by a softmax.

    Args:
        config: Settings.
        width: Width of a vector of the memory.
    """

    first_value: Tensor  # row in `given` of value 0 of each slot

    def __init__(self, config: AnswererConfig, width: int) -> None:
        super().__init__()
        dim = config.head_dim
        self.vector_norm = nn.LayerNorm(width)
        self.vector_width = nn.Linear(width, dim)
        self.nothing = nn.Parameter(torch.zeros(1, 1, dim))  # a vector to read where there is nothing else
        self.question = QuestionEncoder(dim)
        sizes = list(ANSWER_SLOTS.values())
        self.given = nn.Embedding(sum(sizes), dim)
        nn.init.normal_(self.given.weight, std=0.3)
        self.register_buffer("first_value", torch.tensor([0, *sizes[:-1]]).cumsum(0), persistent=False)
        self.before = nn.Linear(2 * dim, dim)
        self.clauses = nn.Parameter(0.3 * torch.randn(MAX_CLAUSES, dim))
        self.layers = nn.ModuleList(ReadLayer(dim, config.head_heads) for _ in range(config.head_layers))
        self.hidden = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU())
        self.coded = nn.ModuleDict({name: CodedOutput(name, 2 * dim) for name in (*NAMED, *COUNTED)})
        self.others = [name for name in ANSWER_SLOTS if name not in self.coded]
        self.slots = nn.Linear(2 * dim, sum(ANSWER_SLOTS[name] for name in self.others))

    def read(self, codes: Codes, vectors: Tensor, mask: Tensor, slots: Tensor, times: Tensor) -> Reading:
        """Prepare to answer questions.

        Args:
            codes: Shared vectors.
            vectors: float, (B, M, dim).
            mask: bool, (B, M).
            slots: int64, (B, Q, 8); see `QuestionEncoder`.
            times: int, (B, Q, 3, 7).
        """
        nothing = self.nothing.expand(len(vectors), -1, -1)
        keys = torch.cat([nothing, self.vector_width(self.vector_norm(vectors))], 1)
        return Reading(self.question(codes, slots, times), keys, F.pad(mask, (1, 0), value=True))

    def embed(self, clauses: Tensor) -> Tensor:
        """Embed clauses, int64 (N, slots); float (N, D)."""
        return F.embedding_bag(clauses + self.first_value, self.given.weight, mode="sum")

    def clause_logits(self, codes: Codes, reading: Reading, targets: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Decode every clause of answers, and their ends, each after the true clauses before it.

        Args:
            codes: Shared vectors.
            reading: See `read`.
            targets: int64, (B, Q, 8, slots).

        Returns:
            For each slot float, (N, size), and int64, (3, N): history, question and number of each clause.
        """
        is_clause = targets[..., EMIT] > 0
        clauses = reading.questions.new_zeros(*is_clause.shape, reading.questions.shape[-1])
        clauses[is_clause] = self.embed(targets[is_clause]).to(clauses.dtype)
        clauses = F.pad(clauses, (0, 0, 1, 0))[:, :, :MAX_CLAUSES]  # the clause before each
        is_decoded = F.pad(is_clause, (1, 0), value=True)[..., :MAX_CLAUSES]  # also the first one that is not there
        where = torch.stack(is_decoded.nonzero(as_tuple=True))
        is_before = clauses.new_ones(MAX_CLAUSES, MAX_CLAUSES).tril()  # a product with it is a fast `cumsum`
        before = torch.cat([clauses[is_decoded], (is_before @ clauses)[is_decoded]], -1)
        queries = reading.questions[where[0], where[1]] + self.before(before) + self.clauses[where[2]]
        for layer in self.layers:
            queries = layer(queries, where[0], reading.vectors, reading.mask)
        return self.slot_logits(codes, self.hidden(queries)), where

    def decode(self, codes: Codes, reading: Reading) -> tuple[Tensor, Tensor]:
        """Choose the likeliest values of one clause after the other.

        Args:
            codes: Shared vectors.
            reading: See `read`.

        Returns:
            int64, (B, Q, 8, slots), the values, and float, (B, Q, 8, 2 D), the hidden layer that they are decoded from;
            both are 0 from the first missing clause on.
        """
        batch, n_questions, _ = reading.questions.shape
        history = torch.arange(batch, device=reading.questions.device).repeat_interleave(n_questions)
        questions = reading.questions.flatten(0, 1)
        total, before = torch.zeros_like(questions), torch.zeros_like(questions)
        is_going = torch.ones_like(history, dtype=torch.bool)
        chosen = torch.zeros(len(history), MAX_CLAUSES, len(ANSWER_SLOTS), dtype=torch.int64, device=history.device)
        read = questions.new_zeros(len(history), MAX_CLAUSES, 2 * questions.shape[-1])
        for clause in range(MAX_CLAUSES):
            h = questions + self.before(torch.cat([before, total], -1)) + self.clauses[clause]
            for layer in self.layers:
                h = layer(h, history, reading.vectors, reading.mask)
            hidden = self.hidden(h)
            row = torch.stack([logits.argmax(-1) for logits in self.slot_logits(codes, hidden)], -1)
            is_going = is_going & (row[..., EMIT] > 0)
            if not is_going.any():
                break
            chosen[:, clause], read[:, clause] = row * is_going[:, None], hidden * is_going[:, None]
            before = self.embed(chosen[:, clause]) * is_going[:, None]
            total = total + before
        return chosen.unflatten(0, (batch, n_questions)), read.unflatten(0, (batch, n_questions))

    def slot_logits(self, codes: Codes, hidden: Tensor) -> tuple[Tensor, ...]:
        """Decode each slot, in the order of `ANSWER_SLOTS`, from the hidden layer."""
        others = iter(self.slots(hidden).split([ANSWER_SLOTS[name] for name in self.others], -1))
        return tuple(self.coded[name](codes, hidden) if name in self.coded else next(others) for name in ANSWER_SLOTS)


class SlotAnswerer(HistoryEncoder):
    """Memory over key frames, and a head that answers structured questions from its vectors.

    Args:
        config: Settings.
        parts: Parts of a key frame that are given; see `memenvs.verbalization.key_frames.PARTS`.

    Raises:
        ValueError: As `HistoryEncoder`.
    """

    def __init__(self, config: AnswererConfig, parts: Sequence[str]) -> None:
        super().__init__(config, parts)
        self.head = AnswerHead(config, self.memory.output_dim)
