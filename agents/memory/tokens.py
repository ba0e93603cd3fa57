"""Memory tokens: vectors of their own, sums of table rows, or both.

A token of frame + time + place is a sum of three table rows. Its score is then the sum of three gathered scores, and a
weighted sum of tokens is a product of summed weights with the tables. So no token is ever computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from memenvs.agents.memory.chunking import Chunks

SUMMARY_EPS = 1e-5
"""Added to the number of tokens of which a chunk's summary is the mean."""


@dataclass(frozen=True)
class Tokens:
    """N memory tokens of each of B sequences.

    Attributes:
        values: float, (B, N, D); vectors of their own; None if there are tables only.
        tables: float, (K_i, D) each; shared by all sequences.
        rows: int64, (B, N) each, or (B, Q, N) where they depend on the query; row of each table that a token adds.
        mask: bool, (B, N) or (B, Q, N); True for tokens in memory; None for all.
    """

    values: Tensor | None = None
    tables: tuple[Tensor, ...] = ()
    rows: tuple[Tensor, ...] = ()
    mask: Tensor | None = None

    def __post_init__(self) -> None:
        if len(self.tables) != len(self.rows) or (self.values is None and not self.tables):
            raise ValueError(
                "tokens must have values or tables, and rows for each table, got "
                f"{'no' if self.values is None else ''} values, {len(self.tables)} tables and {len(self.rows)} rows"
            )

    @property
    def count(self) -> int:
        """N."""
        return (self.rows[0] if self.values is None else self.values[..., 0]).shape[-1]

    @property
    def has_own_rows(self) -> bool:
        """True if rows depend on the query, so that tokens are no vectors."""
        return any(rows.ndim == 3 for rows in self.rows)

    @property
    def batch(self) -> int:
        """B."""
        return len(self.rows[0] if self.values is None else self.values)

    def query_mask(self) -> Tensor | None:
        """The mask with an axis for queries, bool (B, 1 or Q, N); None for all."""
        return None if self.mask is None else per_query(self.mask, 1)

    def scores(self, query: Tensor) -> Tensor:
        """Products of queries with all tokens.

        Args:
            query: float, (B, Q, D).

        Returns:
            float, (B, Q, N).
        """
        total = None if self.values is None else query @ self.values.transpose(1, 2)  # (B, Q, N)
        flat = query.flatten(0, 1)  # (B Q, D): one product for all sequences is four times as fast as a batch of them
        for table, rows in zip(self.tables, self.rows, strict=True):
            by_row = (flat @ table.T).view(*query.shape[:2], -1)  # (B, Q, K)
            part = by_row.gather(2, per_query(rows, query.shape[1]))  # (B, Q, N)
            total = part if total is None else total + part
        assert total is not None
        return total

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Weighted sums of tokens.

        Args:
            weights: float, (B, Q, N).

        Returns:
            float, (B, Q, D).
        """
        total = None if self.values is None else weights @ self.values  # (B, Q, D)
        for table, rows in zip(self.tables, self.rows, strict=True):
            by_row = weights.new_zeros(*weights.shape[:2], len(table))
            by_row = by_row.scatter_add(2, per_query(rows, weights.shape[1]), weights)  # (B, Q, K)
            part = (by_row.flatten(0, 1) @ table).view(*weights.shape[:2], -1)
            total = part if total is None else total + part
        assert total is not None
        return total

    def as_vectors(self) -> Tokens:
        """Return the same tokens as vectors, without tables; rows must not depend on the query."""
        total = self.values
        for table, rows in zip(self.tables, self.rows, strict=True):
            part = F.embedding(rows, table)
            total = part if total is None else total + part
        return Tokens(total, mask=self.mask)

    def take(self, index: Tensor) -> Tokens:
        """Select tokens for each query.

        Args:
            index: int64, (B, Q, S).

        Returns:
            S tokens of B Q sequences, without a mask.
        """
        batch, queries, chosen = index.shape
        values = None
        if self.values is not None:
            first = torch.arange(batch, device=index.device)[:, None, None] * self.count
            values = self.values.flatten(0, 1).index_select(0, (index + first).flatten())
            values = values.unflatten(0, (-1, chosen))  # (B Q, S, D)
        rows = tuple(per_query(row, queries).gather(2, index).flatten(0, 1) for row in self.rows)
        return Tokens(values, self.tables, rows)


@dataclass(frozen=True)
class ChunkedTokens:
    """Chunks of the tokens of B memories, made once for all layers.

    Attributes:
        index: int64, (B, 1, C, n); tokens of each chunk.
        mask: bool, (B, 1 or Q, C, n); True where a chunk has a token, for each query if that depends on it.
        sizes: int64, (B, 1 or Q, C); tokens of each chunk.
        means: float, (B, C, D); mean token of each chunk. None where scores of all tokens are faster (tables) or where
            the mean depends on the query.
    """

    index: Tensor
    mask: Tensor
    sizes: Tensor
    means: Tensor | None

    @classmethod
    def of(cls, tokens: Tokens, chunks: Chunks) -> ChunkedTokens:
        """Return the chunks without the tokens that the memory does not hold."""
        index, mask = chunks.index[:, None], chunks.mask[:, None]
        in_memory = tokens.query_mask()
        if in_memory is not None:
            slots = index.flatten(2).expand(-1, in_memory.shape[1], -1)  # (B, 1 or Q, C n)
            mask = mask & in_memory.gather(2, slots).unflatten(2, index.shape[2:])
        sizes = mask.sum(-1)
        means = None
        if tokens.values is not None and not tokens.tables and mask.shape[1] == 1:
            counts = sizes[:, 0, :, None].to(tokens.values.dtype)
            means = _chunk_sums(tokens.values, index[:, 0], mask[:, 0]) / (counts + SUMMARY_EPS)
        return cls(index, mask, sizes, means)

    def relevance(self, query: Tensor, tokens: Tokens) -> Tensor:
        """Products of queries with the mean token of each chunk.

        Args:
            query: float, (B, Q, D).
            tokens: The tokens.

        Returns:
            float, (B, Q, C).
        """
        if self.means is not None:
            return query @ self.means.transpose(1, 2)
        slots = self.index.flatten(2).expand(-1, query.shape[1], -1)  # (B, Q, C n)
        scores = tokens.scores(query).gather(2, slots).unflatten(2, self.index.shape[2:])  # (B, Q, C, n)
        return (scores * self.mask).sum(-1) / (self.sizes.to(scores.dtype) + SUMMARY_EPS)


def _chunk_sums(values: Tensor, index: Tensor, mask: Tensor) -> Tensor:
    """Sum the tokens of each chunk; a token is in one chunk at most.

    Args:
        values: float, (B, N, D).
        index: int64, (B, C, n).
        mask: bool, (B, C, n).

    Returns:
        float, (B, C, D).
    """
    batch, count, dim = values.shape
    chunks = index.shape[1]
    number = torch.arange(chunks, device=index.device)[None, :, None].expand_as(index)
    # chunk of each token; one more token collects the empty slots, and one more chunk the tokens without a chunk
    of_token = number.new_full((batch, count + 1), chunks)
    of_token = of_token.scatter(1, torch.where(mask, index, count).flatten(1), number.flatten(1))[:, :-1]  # (B, N)
    rows = of_token + torch.arange(batch, device=index.device)[:, None] * (chunks + 1)
    sums = values.new_zeros(batch * (chunks + 1), dim).index_add(0, rows.flatten(), values.flatten(0, 1))
    return sums.view(batch, chunks + 1, dim)[:, :-1]


def per_query(rows: Tensor, queries: int) -> Tensor:
    """Repeat (B, N) for each query, (B, Q, N); what has an axis for queries stays as it is."""
    return rows[:, None].expand(-1, queries, -1) if rows.ndim == 2 else rows
