"""Reading a memory of tokens with a few queries: layers of self-attention among the queries, attention to the memory, and an MLP.

No key and no value is computed for a token. The projection of keys is folded into the query once, <A q + a, B m + b> = <B^T (A q + a), m> + a
number that all tokens share, and the projections of values and output are applied to the weighted sum. Where tokens are sums of rows of tables
(frame + time + place), not even the tokens are built: their scores are sums of gathered scores of rows, and weights are summed for each row.
`flat_read.py` does this with a backward pass by hand where queries are independent and read everything at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from memenvs.agents.memory.attention import attend
from memenvs.agents.memory.chunking import Chunks
from memenvs.agents.memory.kernels.flat_read import WEIGHTS, FlatRead
from memenvs.checks import check_int

SUMMARY_EPS = 1e-5
"""Added to the number of tokens of which a chunk's summary is the mean."""
NORM_EPS = 1e-5
"""Of the layer normalisations."""


@dataclass(frozen=True)
class Tokens:
    """N memory tokens of each of B sequences: sums of vectors of their own and of rows of tables that all share.

    Attributes:
        values: float, (B, N, D); None if there are tables only.
        tables: float, (K_i, D) each.
        rows: int64, (B, N) each, or (B, Q, N) where they depend on the query; which row of each table.
        mask: bool, (B, N) or (B, Q, N); which tokens are in memory; None: all.
    """

    values: Tensor | None = None
    tables: tuple[Tensor, ...] = ()
    rows: tuple[Tensor, ...] = ()
    mask: Tensor | None = None

    def __post_init__(self) -> None:
        if len(self.tables) != len(self.rows) or (self.values is None and not self.tables):
            raise ValueError(
                f"tokens must have values or tables, and rows for each table, got {'no' if self.values is None else ''} values, "
                f"{len(self.tables)} tables and {len(self.rows)} rows"
            )

    @property
    def count(self) -> int:
        """N."""
        return (self.rows[0] if self.values is None else self.values[..., 0]).shape[-1]

    @property
    def batch(self) -> int:
        """B."""
        return len(self.rows[0] if self.values is None else self.values)

    @cached_property
    def joined(self) -> tuple[Tensor, Tensor]:
        """All tables below each other, (K, D) and without a gradient, and each token's rows in there, one table after the other.

        Rows are int64, (B, 1, J N), or (B, Q, J N) where some depend on the query.
        """
        table = torch.cat([each.detach() for each in self.tables])
        queries = max(1 if each.ndim == 2 else each.shape[1] for each in self.rows)
        index, first = [], 0
        for each, rows in zip(self.tables, self.rows, strict=True):
            index.append(_for_queries(rows, queries) + first)
            first += len(each)
        return table, torch.cat(index, -1)

    def scores(self, query: Tensor) -> Tensor:
        """Products of queries, float (B, Q, D), with all tokens, (B, Q, N)."""
        total = None if self.values is None else query @ self.values.transpose(1, 2)
        for table, rows in zip(self.tables, self.rows, strict=True):
            # one product for all sequences: as a batch of them, which matmul may choose, it takes four times as long
            part = (
                (query.flatten(0, 1) @ table.T).view(*query.shape[:2], -1).gather(2, _for_queries(rows, query.shape[1]))
            )
            total = part if total is None else total + part
        assert total is not None
        return total

    def mix(self, weights: Tensor) -> Tensor:
        """Sums of tokens, float (B, Q, D), weighted by (B, Q, N)."""
        total = None if self.values is None else weights @ self.values
        for table, rows in zip(self.tables, self.rows, strict=True):
            by_row = weights.new_zeros(*weights.shape[:2], len(table))
            by_row = by_row.scatter_add(2, _for_queries(rows, weights.shape[1]), weights)
            part = (by_row.flatten(0, 1) @ table).view(*weights.shape[:2], -1)
            total = part if total is None else total + part
        assert total is not None
        return total

    def built(self) -> Tokens:
        """The same tokens with a vector for each and no table; for rows that do not depend on the query."""
        parts = [table[rows] for table, rows in zip(self.tables, self.rows, strict=True)]
        values = torch.stack(parts if self.values is None else [self.values, *parts]).sum(0)
        return Tokens(values, mask=self.mask)

    def take(self, index: Tensor) -> Tokens:
        """Some tokens for each query, as sequences of their own and without a mask.

        Args:
            index: int64, (B, Q, S).

        Returns:
            Tokens of B * Q sequences.
        """
        batch, queries, chosen = index.shape
        values = None
        if self.values is not None:
            first = torch.arange(batch, device=index.device)[:, None, None] * self.count
            values = self.values.flatten(0, 1).index_select(0, (index + first).flatten()).unflatten(0, (-1, chosen))
        rows = tuple(_for_queries(each, queries).gather(2, index).flatten(0, 1) for each in self.rows)
        return Tokens(values, self.tables, rows)


@dataclass(frozen=True)
class _Chunked:
    """What all layers need to know of the chunks of B memories.

    Attributes:
        index: int64, (B, 1, C, n); tokens of each chunk.
        there: bool, (B, 1 or Q, C, n); whether there is a token, for each query if that depends on it.
        held: int64, (B, 1 or Q, C); how many there are.
        means: float, (B, C, D); the mean token of each chunk, None where scores of all tokens are faster: of tables, or if it depends on the query.
    """

    index: Tensor
    there: Tensor
    held: Tensor
    means: Tensor | None

    @classmethod
    def of(cls, tokens: Tokens, chunks: Chunks) -> _Chunked:
        """The chunks of these tokens, without those that the memory does not hold."""
        index, there = chunks.index[:, None], chunks.mask[:, None]
        if tokens.mask is not None:
            mask = _for_queries(tokens.mask, 1)
            slots = index.flatten(2).expand(-1, mask.shape[1], -1)
            there = there & mask.gather(2, slots).unflatten(2, index.shape[2:])
        held, means = there.sum(-1), None
        if tokens.values is not None and not tokens.tables and there.shape[1] == 1:
            means = _sums(tokens.values, index[:, 0], there[:, 0]) / (
                held[:, 0, :, None].to(tokens.values.dtype) + SUMMARY_EPS
            )
        return cls(index, there, held, means)

    def relevance(self, asking: Tensor, tokens: Tokens) -> Tensor:
        """Product of what is asked for, float (B, Q, D), with the mean token of each chunk, (B, Q, C)."""
        if self.means is not None:
            return asking @ self.means.transpose(1, 2)
        slots = self.index.flatten(2).expand(-1, asking.shape[1], -1)
        scores = tokens.scores(asking).gather(2, slots).unflatten(2, self.index.shape[2:])
        return (scores * self.there).sum(-1) / (self.held.to(scores.dtype) + SUMMARY_EPS)


class MemoryLayer(nn.Module):
    """Self-attention among the queries, a read of the memory and an MLP, each with layer normalisation before it and a residual connection.

    Args:
        dim: Width D.
        heads: Of self-attention and of attention within a chunk; divides D.
        mlp_dim: Hidden width of the MLP.

    Source:
        Spatially-Aware Transformer, section 3.1, with the hierarchical attention of Lampinen et al., "Towards mental time travel", 2021. As in the
        release, the softmax over chunks is over the chosen ones only, and tokens are neither normalised nor detached.
    """

    def __init__(self, dim: int, heads: int, mlp_dim: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.local_norm, self.read_norm, self.mlp_norm = (nn.LayerNorm(dim, NORM_EPS) for _ in range(3))
        self.local_query, self.local_key, self.local_value = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.local_mix = nn.Linear(dim, dim)
        self.relevance_query, self.relevance_key = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.query, self.key, self.value = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.mix = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, mlp_dim), nn.ReLU(), nn.Linear(mlp_dim, dim))

    def forward(
        self, query: Tensor, tokens: Tokens, memory: _Chunked | None, top_k: int, alone: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """One layer; args as in `MemoryReader.forward`, but for the queries.

        Args:
            query: float, (B Q, D): without an axis for sequences, which a linear map would take away and put back at a cost.
            tokens: See there.
            memory: Its chunks.
            top_k: See there.
            alone: See there.

        Returns:
            Queries, float (B Q, D); weights of tokens, float (B, Q, S), the mean over heads; and which tokens these are, int64 (B, Q, S), or
            None for all.
        """
        shape = tokens.batch, len(query) // tokens.batch
        query = query + self._local(self.local_norm(query), shape, alone)
        if memory is None:
            heard, weights, index = *self._read_flat(self.read_norm(query), tokens), None
        else:
            found, weights, index = self._read_chunks(self.read_norm(query).unflatten(0, shape), tokens, memory, top_k)
            heard = found.flatten(0, 1)
        query = query + heard
        return query + self.mlp(self.mlp_norm(query)), weights, index

    def _local(self, query: Tensor, shape: tuple[int, int], alone: bool) -> Tensor:
        """Self-attention of B x Q (`shape`) queries; to one that sees itself only it is a linear map, as its one weight is 1."""
        value = self.local_value(query)
        if shape[1] == 1 or alone:
            return self.local_mix(value)
        q, k, v = (
            each.view(*shape, self.heads, -1).transpose(1, 2)
            for each in (self.local_query(query), self.local_key(query), value)
        )
        return self.local_mix(attend(q, k, v, causal=False).transpose(1, 2).flatten(2).flatten(0, 1))

    def _asking(self, query: Tensor) -> Tensor:
        """Queries, float (..., D), whose product with a token m is its relevance, <A q + a, B m> / sqrt(D).

        That of a chunk is the mean of its tokens'. The bias of B adds the same number to all, which changes no softmax.
        """
        return self.relevance_query(query) @ self.relevance_key.weight * query.shape[-1] ** -0.5

    def _read_flat(self, query: Tensor, tokens: Tokens) -> tuple[Tensor, Tensor]:
        """The read where every token is a chunk and all chunks are chosen: attention with a single head.

        Args:
            query: float, (B Q, D).
            tokens: Of B sequences.

        Returns:
            float, (B Q, D), and weights, (B, Q, N).
        """
        asking = self._asking(query) / (1.0 + SUMMARY_EPS)
        mask = None if tokens.mask is None else _for_queries(tokens.mask, 1)
        weights = masked_softmax(tokens.scores(asking.unflatten(0, (tokens.batch, -1))), mask)
        return self.mix(self.value(tokens.mix(weights).flatten(0, 1))), weights

    def _read_chunks(
        self, query: Tensor, tokens: Tokens, memory: _Chunked, top_k: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The most relevant chunks of each query, and attention within each of them."""
        (batch, queries, _), (count, size) = query.shape, memory.index.shape[2:]
        there, held = memory.there.expand(-1, queries, -1, -1), memory.held
        relevance = memory.relevance(self._asking(query), tokens)
        best = relevance.masked_fill(held == 0, -torch.inf).topk(min(top_k, count), dim=-1).indices
        weights = masked_softmax(relevance.gather(2, best), (held > 0).expand_as(relevance).gather(2, best))

        def of_best(each: Tensor) -> Tensor:
            return each.gather(2, best[..., None].expand(-1, -1, -1, size))

        index = of_best(memory.index.expand(-1, queries, -1, -1)).flatten(2)
        chosen = tokens.take(index)
        folded = torch.einsum(
            "bqhw,hwd->bqhd",
            self.query(query).unflatten(-1, (self.heads, -1)) * self.scale,
            self.key.weight.unflatten(0, (self.heads, -1)),
        )
        inner = chosen.scores(folded.flatten(0, 1)).unflatten(-1, (-1, size))  # (B * Q, heads, k, n)
        inner = masked_softmax(inner, of_best(there).flatten(0, 1)[:, None])
        inner = (inner * weights.flatten(0, 1)[:, None, :, None]).flatten(2)
        heard = torch.einsum("bhd,hwd->bhw", chosen.mix(inner), self.value.weight.unflatten(0, (self.heads, -1)))
        return self.mix(heard.reshape(batch, queries, -1)), inner.mean(1).unflatten(0, (batch, queries)), index


class MemoryReader(nn.Module):
    """Layers that a few queries go through, each reading the same memory.

    Args:
        dim: Width D.
        layers: How many.
        heads: Attention heads; divides D.
        mlp_dim: Hidden width of each layer's MLP.

    Raises:
        ValueError: A size is too small, or the heads do not divide the width.

    Source:
        Spatially-Aware Transformer, section 3.1; four layers of width 128 with 2 heads and MLPs of 128 have 198,144 parameters each.
    """

    def __init__(self, dim: int = 128, layers: int = 4, heads: int = 2, mlp_dim: int = 128) -> None:
        super().__init__()
        for name, value in (("dim", dim), ("layers", layers), ("heads", heads), ("mlp_dim", mlp_dim)):
            check_int(name, value)
        if dim % heads:
            raise ValueError(f"heads must divide dim ({dim}), got {heads}")
        self.dim = dim
        self.layers = nn.ModuleList(MemoryLayer(dim, heads, mlp_dim) for _ in range(layers))

    @torch.no_grad()
    def sharpen(self, factor: float, alike: bool = False) -> None:
        """Makes some tokens more relevant to a query than others from the start, in all layers.

        With PyTorch's initial weights relevances hardly differ, so that all tokens are read alike, and what a query should look for is learned
        late or, for some seeds, not at all.

        Args:
            factor: What relevances are multiplied with; > 0.
            alike: Keys are made by the weights that make queries, so that the most relevant is what resembles the query; else it is what two
                unrelated random maps say. For memories where what is asked for is beside what is resembled, such as in its chunk.
        """
        for layer in self.layers:
            key = layer.get_parameter("relevance_key.weight")
            if alike:
                key.copy_(layer.get_parameter("relevance_query.weight"))
            key.mul_(factor)

    def forward(
        self,
        query: Tensor,
        tokens: Tokens,
        chunks: Chunks | None = None,
        top_k: int = 4,
        alone: bool = False,
        layers: slice = slice(None),
    ) -> Tensor:
        """Queries after having read the memory.

        Args:
            query: float, (B, Q, D).
            tokens: The memory. A query for which it holds no token gets the bias of the output projection only.
            chunks: Which tokens belong together; None reads all tokens at once.
            top_k: Chunks that each query reads; all if there are fewer.
            alone: Whether queries are independent: none attends to the others.
            layers: Which ones they go through.

        Returns:
            float, (B, Q, D).
        """
        found = query.flatten(0, 1)
        is_autocast = torch.is_autocast_enabled(query.device.type)
        if chunks is None and tokens.values is None and (alone or query.shape[1] == 1) and not is_autocast:
            found = self._read_tables(found, tokens, layers)
        else:
            memory = None if chunks is None else _Chunked.of(tokens, chunks)
            for layer in self.layers[layers]:
                found, _, _ = layer(found, tokens, memory, top_k, alone)
        return found.view_as(query)

    def _read_tables(self, query: Tensor, tokens: Tokens, layers: slice) -> Tensor:
        """Some layers for independent queries, float (B Q, D), of tokens that are sums of rows of tables."""
        weights = [layer.get_parameter(name) for layer in self.layers[layers] for name in WEIGHTS]
        mask = None if tokens.mask is None else _for_queries(tokens.mask, 1)
        scale = self.dim**-0.5 / (1.0 + SUMMARY_EPS)
        sizes = [len(each) for each in tokens.tables]
        return FlatRead.apply(query, *tokens.joined, mask, scale, NORM_EPS, sizes, *tokens.tables, *weights)

    @torch.no_grad()
    def attention(
        self, query: Tensor, tokens: Tokens, chunks: Chunks | None = None, top_k: int = 4, alone: bool = False
    ) -> Tensor:
        """What each layer attends to; args as in `forward`.

        Returns:
            float, (layers, B, Q, N); weights of tokens, which add up to 1 (mean over heads); 0 where a chunk is not read.
        """
        seen, found = [], query.flatten(0, 1)
        memory = None if chunks is None else _Chunked.of(tokens, chunks)
        for layer in self.layers:
            found, weights, index = layer(found, tokens, memory, top_k, alone)
            if index is not None:
                weights = weights.new_zeros(*query.shape[:2], tokens.count).scatter_add(2, index, weights)
            seen.append(weights)
        return torch.stack(seen)


def _sums(values: Tensor, index: Tensor, there: Tensor) -> Tensor:
    """Sums of the tokens, float (B, N, D), of each chunk, int64 and bool (B, C, n), each of which is in one at most; (B, C, D)."""
    (batch, count, dim), chunks = values.shape, index.shape[1]
    number = torch.arange(chunks, device=index.device)[None, :, None].expand_as(index)
    of_token = number.new_full((batch, count + 1), chunks)  # the last one takes what is not there, as the last sum does
    of_token = of_token.scatter(1, torch.where(there, index, count).flatten(1), number.flatten(1))[:, :-1]
    rows = of_token + torch.arange(batch, device=index.device)[:, None] * (chunks + 1)
    sums = values.new_zeros(batch * (chunks + 1), dim).index_add(0, rows.flatten(), values.flatten(0, 1))
    return sums.view(batch, chunks + 1, dim)[:, :-1]


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the last axis of those that the mask (bool, broadcast) lets through; 0 for others, also where there are no others."""
    if mask is None:
        return scores.softmax(-1)
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1) * mask


def _for_queries(each: Tensor, queries: int) -> Tensor:
    """(B, N), or (B, Q, N) as it is, for Q queries."""
    return each[:, None].expand(-1, queries, -1) if each.ndim == 2 else each
