"""Reading a memory of tokens with a few queries.

No key and no value is computed for a token. The projection of keys is folded into the query once: <A q + a, B m + b>
= <B^T (A q + a), m> + a number that all tokens share. The projections of values and output apply to the weighted sum
of tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from memenvs.agents.memory.attention import attend, masked_softmax
from memenvs.agents.memory.chunking import Chunks
from memenvs.agents.memory.tokens import SUMMARY_EPS, ChunkedTokens, Tokens
from memenvs.checks import check_int

NORM_EPS = 1e-5
"""Of the layer normalisations."""


class MemoryLayer(nn.Module):
    """Pre-norm layer: q <- q + self-attention(q), q <- q + read(q, memory), q <- q + MLP(q).

    A flat read is softmax(q^T A^T B m / sqrt(D)) over all tokens m. A hierarchical read scores chunks by their mean
    tokens likewise, takes the top k, and attends within each of them; its result is weighted by the softmax
    over the k.

    Args:
        dim: Width D.
        heads: Heads of self-attention and of attention within a chunk; divides D.
        mlp_dim: Hidden width of the MLP.

    Source:
        Spatially-Aware Transformer, section 3.1, with the hierarchical attention of Lampinen et al., "Towards mental
        time travel", 2021. As in the release, the softmax over chunks is over the chosen ones only, and tokens are
        neither normalised nor detached.
    """

    def __init__(self, dim: int, heads: int, mlp_dim: int) -> None:
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.local_norm, self.read_norm, self.mlp_norm = (nn.LayerNorm(dim, NORM_EPS) for _ in range(3))
        self.local_query, self.local_key, self.local_value = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.local_mix = nn.Linear(dim, dim)
        self.relevance_query, self.relevance_key = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.query, self.key, self.value = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.mix = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, mlp_dim), nn.ReLU(), nn.Linear(mlp_dim, dim))

    def forward(
        self, query: Tensor, tokens: Tokens, chunked: ChunkedTokens | None, top_k: int, independent: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Apply the layer; args as in `MemoryReader.forward`, except for the queries.

        Args:
            query: float, (B Q, D). A linear map would flatten (B, Q, D) and unflatten it again, at a cost.
            tokens: The memory.
            chunked: Its chunks; None reads all tokens at once.
            top_k: Chunks that each query reads.
            independent: Whether no query attends to another.

        Returns:
            Queries, float (B Q, D); weights of tokens, float (B, Q, S), the mean over heads; and the tokens that these
            weigh, int64 (B, Q, S), or None for all.
        """
        shape = tokens.batch, len(query) // tokens.batch
        query = query + self.attend_to_queries(self.local_norm(query), shape, independent)
        if chunked is None:
            read, weights = self.read_all(self.read_norm(query), tokens)
            index = None
        else:
            found, weights, index = self.read_chunks(self.read_norm(query).unflatten(0, shape), tokens, chunked, top_k)
            read = found.flatten(0, 1)
        query = query + read
        return query + self.mlp(self.mlp_norm(query)), weights, index

    def attend_to_queries(self, query: Tensor, shape: tuple[int, int], independent: bool) -> Tensor:
        """Self-attention of B x Q (`shape`) queries, float (B Q, D).

        A query that attends to itself alone has the one weight 1, so that attention is a linear map.
        """
        value = self.local_value(query)
        if shape[1] == 1 or independent:
            return self.local_mix(value)
        q, k, v = (
            each.view(*shape, self.heads, -1).transpose(1, 2)  # (B, heads, Q, width)
            for each in (self.local_query(query), self.local_key(query), value)
        )
        attended = attend(q, k, v, causal=False).transpose(1, 2).flatten(2)  # (B, Q, D)
        return self.local_mix(attended.flatten(0, 1))

    def folded_query(self, query: Tensor) -> Tensor:
        """Fold the keys into the query.

        Its product with a token m is the token's relevance, <A q + a, B m> / sqrt(D). The relevance of a chunk is the
        mean of its tokens'. The bias of B adds the same number to all, which changes no softmax.
        """
        return self.relevance_query(query) @ self.relevance_key.weight * query.shape[-1] ** -0.5

    def read_all(self, query: Tensor, tokens: Tokens) -> tuple[Tensor, Tensor]:
        """Read with one head where each token is a chunk and all chunks are chosen.

        Args:
            query: float, (B Q, D).
            tokens: Of B sequences.

        Returns:
            float, (B Q, D), and weights, (B, Q, N).
        """
        folded = self.folded_query(query) / (1.0 + SUMMARY_EPS)
        scores = tokens.scores(folded.unflatten(0, (tokens.batch, -1)))  # (B, Q, N)
        weights = masked_softmax(scores, tokens.query_mask())
        return self.mix(self.value(tokens.mix(weights).flatten(0, 1))), weights

    def read_chunks(
        self, query: Tensor, tokens: Tokens, chunked: ChunkedTokens, top_k: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Read the most relevant chunks of each query, by attention within each of them.

        Args:
            query: float, (B, Q, D).
            tokens: Of B sequences.
            chunked: Their chunks.
            top_k: k.

        Returns:
            float (B, Q, D); weights (B, Q, k n), the mean over heads; and the tokens that these weigh, int64 (B, Q, k
            n).
        """
        batch, queries, _ = query.shape
        count, size = chunked.index.shape[2:]
        sizes = chunked.sizes
        relevance = chunked.relevance(self.folded_query(query), tokens)  # (B, Q, C)
        best = relevance.masked_fill(sizes == 0, -torch.inf).topk(min(top_k, count), dim=-1).indices  # (B, Q, k)
        exists = (sizes > 0).expand_as(relevance).gather(2, best)
        chunk_weights = masked_softmax(relevance.gather(2, best), exists)  # (B, Q, k)

        def of_best(each: Tensor) -> Tensor:
            """(B, 1 or Q, C, n) -> (B, Q, k, n)."""
            return each.expand(-1, queries, -1, -1).gather(2, best[..., None].expand(-1, -1, -1, size))

        index = of_best(chunked.index).flatten(2)  # (B, Q, k n)
        chosen = tokens.take(index)  # of B Q sequences
        folded = torch.einsum(  # keys are folded into the query of each head, (B, Q, heads, D)
            "bqhw,hwd->bqhd",
            self.query(query).unflatten(-1, (self.heads, -1)) * self.scale,
            self.key.weight.unflatten(0, (self.heads, -1)),
        )
        scores = chosen.scores(folded.flatten(0, 1)).unflatten(-1, (-1, size))  # (B Q, heads, k, n)
        weights = masked_softmax(scores, of_best(chunked.mask).flatten(0, 1)[:, None])
        weights = (weights * chunk_weights.flatten(0, 1)[:, None, :, None]).flatten(2)  # (B Q, heads, k n)
        values = self.value.weight.unflatten(0, (self.heads, -1))  # (heads, width, D)
        read = torch.einsum("bhd,hwd->bhw", chosen.mix(weights), values)  # (B Q, heads, width)
        return self.mix(read.reshape(batch, queries, -1)), weights.mean(1).unflatten(0, (batch, queries)), index


class MemoryReader(nn.Module):
    """Layers through which a few queries go, each reading the same memory.

    Args:
        dim: Width D.
        layers: Number of layers.
        heads: Attention heads; divides D.
        mlp_dim: Hidden width of each layer's MLP.

    Raises:
        ValueError: A size is too small, or the heads do not divide the width.

    Source:
        Spatially-Aware Transformer, section 3.1; four layers of width 128 with 2 heads and MLPs of 128 have 198,144
        parameters each.
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
    def sharpen(self, factor: float, keys_like_queries: bool = False) -> None:
        """Scale relevances in all layers, so that some tokens matter more from the start.

        With PyTorch's initial weights relevances hardly differ. All tokens are then read alike, and attention is
        learned late or, for some seeds, not at all.

        Args:
            factor: Factor on relevances; > 0.
            keys_like_queries: Whether keys start with the weights of queries, so that the token most like the query is the most
                relevant; otherwise two unrelated random maps decide. For memories in which the answer is stored beside
                what resembles the query, for instance in its chunk.
        """
        for layer in self.layers:
            key = layer.get_parameter("relevance_key.weight")
            if keys_like_queries:
                key.copy_(layer.get_parameter("relevance_query.weight"))
            key.mul_(factor)

    def forward(
        self,
        query: Tensor,
        tokens: Tokens,
        chunks: Chunks | None = None,
        top_k: int = 4,
        independent: bool = False,
        layers: slice = slice(None),
    ) -> Tensor:
        """Read the memory with each query.

        Args:
            query: float, (B, Q, D).
            tokens: The memory. A query for which it holds no token gets the bias of the output projection only.
            chunks: Tokens that belong together; None reads all tokens at once.
            top_k: Chunks that each query reads; all if there are fewer.
            independent: Whether no query attends to another.
            layers: Layers that are applied.

        Returns:
            float, (B, Q, D).
        """
        chunked = None if chunks is None else ChunkedTokens.of(tokens, chunks)
        found = query.flatten(0, 1)  # (B Q, D)
        for layer in self.layers[layers]:
            found, _, _ = layer(found, tokens, chunked, top_k, independent)
        return found.view_as(query)

    @torch.no_grad()
    def attention(
        self, query: Tensor, tokens: Tokens, chunks: Chunks | None = None, top_k: int = 4, independent: bool = False
    ) -> Tensor:
        """Return the attention weights of each layer; args as in `forward`.

        Returns:
            float, (layers, B, Q, N); the mean over heads. A row sums to 1 and is 0 where a chunk is not read.
        """
        chunked = None if chunks is None else ChunkedTokens.of(tokens, chunks)
        of_layers = []
        found = query.flatten(0, 1)
        for layer in self.layers:
            found, weights, index = layer(found, tokens, chunked, top_k, independent)
            if index is not None:
                weights = weights.new_zeros(*query.shape[:2], tokens.count).scatter_add(2, index, weights)
            of_layers.append(weights)
        return torch.stack(of_layers)
