"""Reading a memory of tokens with a few queries.

No key and no value is computed for a token m. The projection of keys is folded into the query q once:

    <A q + a, B m + b> = <B^T (A q + a), m> + constant      (a constant changes no softmax)

The projections of values and of the output apply to the weighted sum of tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from memenvs.agents.memory.attention import attend, masked_softmax
from memenvs.agents.memory.chunking import Chunks
from memenvs.agents.memory.tokens import SUMMARY_EPS, ChunkedTokens, Tokens
from memenvs.checks import check_int

NORM_EPS = 1e-5
"""Epsilon of the layer normalisations."""


class MemoryLayer(nn.Module):
    """Pre-norm layer: q <- q + self-attention(q), q <- q + read(q, memory), q <- q + MLP(q).

    A flat read weighs all tokens m by softmax(<A q, B m> / sqrt(D)). A hierarchical read first scores each chunk of
    tokens in the same manner, by its mean token, and keeps the k best chunks. It then attends to the tokens within each
    of these, and sums the k results with weights from the softmax over the k scores.

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
        # local_*: self-attention among queries; relevance_*: A and B; query, key, value: attention within a chunk;
        # local_mix and mix: output projections W_o of these attentions.
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
        """Apply the layer.

        Args:
            query: float, (B Q, D); flat, since linear layers are faster on two axes than on (B, Q, D).
            tokens: The memory, N tokens of each of B sequences.
            chunked: Chunks of the tokens; None reads all tokens at once.
            top_k: Number of chunks that each query reads.
            independent: If True, queries do not attend to each other.

        Returns:
            The updated queries, float (B Q, D).
            Attention weights of the S tokens that each query read, float (B, Q, S); the mean over heads.
            Indices of these tokens, int64 (B, Q, S); None if each query read all N.
        """
        shape = tokens.batch, len(query) // tokens.batch
        query = query + self.attend_to_queries(self.local_norm(query), shape, independent)
        if chunked is None:
            read, weights = self.read_all(self.read_norm(query), tokens)
            index = None
        else:
            normed = self.read_norm(query).unflatten(0, shape)  # (B, Q, D)
            read, weights, index = self.read_chunks(normed, tokens, chunked, top_k)
            read = read.flatten(0, 1)  # (B Q, D)
        query = query + read
        return query + self.mlp(self.mlp_norm(query)), weights, index

    def attend_to_queries(self, query: Tensor, shape: tuple[int, int], independent: bool) -> Tensor:
        """Self-attention among the queries of each sequence.

        Args:
            query: float, (B Q, D).
            shape: (B, Q).
            independent: If True, each query attends to itself alone.

        Returns:
            float, (B Q, D).
        """
        value = self.local_value(query)
        # A softmax over one key is 1. Only the projections of value and output remain.
        if shape[1] == 1 or independent:
            return self.local_mix(value)
        q, k, v = (
            x.view(*shape, self.heads, -1).transpose(1, 2)  # (B, heads, Q, width)
            for x in (self.local_query(query), self.local_key(query), value)
        )
        attended = attend(q, k, v, causal=False).transpose(1, 2).flatten(2)  # (B, Q, D)
        return self.local_mix(attended.flatten(0, 1))

    def folded_query(self, query: Tensor) -> Tensor:
        """Fold the projection of keys into queries: B^T (A q + a) / sqrt(D), float (..., D).

        The product with a token m is the relevance of the token, <A q + a, B m> / sqrt(D). The relevance of a chunk is
        the mean over its tokens. The bias of B adds the same number to all relevances, so that it changes no softmax.
        """
        scale = query.shape[-1] ** -0.5
        if self.are_many(query):
            keys = self.relevance_key.weight.T * scale
            return functional.linear(query, keys @ self.relevance_query.weight, keys @ self.relevance_query.bias)
        return self.relevance_query(query) @ self.relevance_key.weight * scale

    @staticmethod
    def are_many(vectors: Tensor) -> bool:
        """Say whether two square maps are multiplied before vectors, (..., D), as is faster."""
        return vectors.numel() > 2 * vectors.shape[-1] ** 2

    def read_all(self, query: Tensor, tokens: Tokens) -> tuple[Tensor, Tensor]:
        """Read all tokens, with one head, as if each were a chunk and all chunks were chosen.

        Args:
            query: float, (B Q, D).
            tokens: N tokens of each of B sequences.

        Returns:
            Read vectors, float (B Q, D), and attention weights, float (B, Q, N).
        """
        # The mean token of a chunk of one is m / (1 + eps), see `ChunkedTokens`.
        folded = self.folded_query(query) / (1.0 + SUMMARY_EPS)
        scores = tokens.scores(folded.unflatten(0, (tokens.batch, -1)))  # (B, Q, N)
        weights = masked_softmax(scores, tokens.query_mask())
        read = tokens.weighted_sum(weights).flatten(0, 1)
        if self.are_many(read):
            return functional.linear(read, self.mix.weight @ self.value.weight, self.mix.bias), weights
        return self.mix(self.value(read)), weights

    def read_chunks(
        self, query: Tensor, tokens: Tokens, chunked: ChunkedTokens, top_k: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Read the most relevant chunks of each query, by attention within each of them.

        A query q reads in two steps. With C = 3 chunks of n = 2 tokens and k = 2 of them chosen::

            relevance of a chunk    r_c = q' . mean(m_c)            (B, Q, C)      1.0  -2.0   0.5
            chosen, and weights     p = softmax(r of the best k)    (B, Q, k)      .62    -    .38
            within each of them     w_c = softmax(q'' . m_ci)       (B, Q, k, n)   .9 .1       .5 .5
            weight of a token       p_c w_ci                        (B, Q, k n)    .56 .06     .19 .19
            read                    mix(value(sum of weight m))     (B, Q, D)

        q' and q'' are the query with a projection of keys folded in, the second for each head.

        Args:
            query: float, (B, Q, D).
            tokens: N tokens of each of B sequences.
            chunked: Their chunks, C of at most n tokens each.
            top_k: Number of chunks that each query reads, k.

        Returns:
            Read vectors, float (B, Q, D).
            Attention weights of the tokens of the chosen chunks, float (B, Q, k n); the mean over heads.
            Indices of these tokens, int64 (B, Q, k n).
        """
        batch, queries, _ = query.shape
        count, size = chunked.index.shape[2:]  # C, n
        sizes = chunked.sizes  # (B, 1 or Q, C); 0 for a chunk without a token
        relevance = chunked.relevance(self.folded_query(query), tokens)  # (B, Q, C)
        best = relevance.masked_fill(sizes == 0, -torch.inf).topk(min(top_k, count), dim=-1).indices  # (B, Q, k)
        exists = (sizes > 0).expand_as(relevance).gather(2, best)
        chunk_weights = masked_softmax(relevance.gather(2, best), exists)  # (B, Q, k)

        def select_best(values: Tensor) -> Tensor:
            """Rows of the chosen chunks: (B, 1 or Q, C, n) -> (B, Q, k, n)."""
            return values.expand(-1, queries, -1, -1).gather(2, best[..., None].expand(-1, -1, -1, size))

        index = select_best(chunked.index).flatten(2)  # (B, Q, k n)
        chosen = tokens.take(index)  # k n tokens of each of B Q sequences
        folded = torch.einsum(  # keys are folded into the query of each head, (B, Q, heads, D)
            "bqhw,hwd->bqhd",
            self.query(query).unflatten(-1, (self.heads, -1)) * self.scale,
            self.key.weight.unflatten(0, (self.heads, -1)),
        )
        scores = chosen.scores(folded.flatten(0, 1)).unflatten(-1, (-1, size))  # (B Q, heads, k, n)
        weights = masked_softmax(scores, select_best(chunked.mask).flatten(0, 1)[:, None])  # within each chunk
        weights = (weights * chunk_weights.flatten(0, 1)[:, None, :, None]).flatten(2)  # (B Q, heads, k n)
        values = self.value.weight.unflatten(0, (self.heads, -1))  # (heads, width, D)
        read = torch.einsum("bhd,hwd->bhw", chosen.weighted_sum(weights), values)  # (B Q, heads, width)
        return self.mix(read.reshape(batch, queries, -1)), weights.mean(1).unflatten(0, (batch, queries)), index


class MemoryReader(nn.Module):
    """Stack of `MemoryLayer`s in which a few queries read the same memory.

    Args:
        dim: Width D.
        layers: Number of layers.
        heads: Attention heads; divides D.
        mlp_dim: Hidden width of each layer's MLP.

    Raises:
        ValueError: A size is too small, or the heads do not divide the width.

    Source:
        Spatially-Aware Transformer, section 3.1; each of its four layers (width 128, 2 heads, MLPs of 128) has 198,144
        parameters.
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
    def sharpen(self, factor: float, keys_like_queries: bool = False, within_chunks: bool = False) -> None:
        """Scale the initial relevances in all layers, so that attention is not uniform at the start.

        With PyTorch's initial weights, relevances hardly differ and all tokens get about the same weight. Attention is
        then learned late or, for some seeds, not at all.

        Args:
            factor: Factor on relevances; > 0.
            keys_like_queries: Whether B starts as a copy of A, so that the tokens most similar to the query are the
                most relevant. If False, A and B are unrelated random maps. True suits memories in which the answer is
                stored beside what resembles the query, for instance in the same chunk.
            within_chunks: Whether attention within a chunk starts like that too. It suits memories in which the
                answer is a single token of a chunk.
        """
        names = [("relevance_query.weight", "relevance_key.weight")]
        if within_chunks:
            names.append(("query.weight", "key.weight"))
        for layer in self.layers:
            for query, key in names:
                weight = layer.get_parameter(key)
                if keys_like_queries:
                    weight.copy_(layer.get_parameter(query))
                weight.mul_(factor)

    @torch.no_grad()
    def start_by_copying(self, layers: slice) -> None:
        """Let layers start by adding the mean of what they read to the query, and nothing else.

        What is read is then a weighted mean of tokens, which a decoder of tokens understands at once.

        Args:
            layers: Layers to change.
        """
        changed = self.layers[layers]
        for layer in changed:
            nn.init.eye_(layer.get_parameter("value.weight"))
            nn.init.eye_(layer.get_parameter("mix.weight")).div_(len(changed))
            for name in ("mix.bias", "local_mix.weight", "local_mix.bias", "mlp.2.weight", "mlp.2.bias"):
                nn.init.zeros_(layer.get_parameter(name))

    @torch.no_grad()
    def start_by_comparing(self, layers: slice, directions: Tensor, relevance: float, chunk: int = 1) -> None:
        """Let layers start with attention to tokens that are like the query in some directions.

        Args:
            layers: Layers to change.
            directions: float, (K, D); orthogonal unit vectors, the most important ones first. Attention within a chunk
                takes the first D / heads.
            relevance: Logit of a token that equals the query, if their mean square is 1 and they lie in the span of
                `directions`; > 0.
            chunk: Tokens in a full chunk. A full one with such a token has this logit, if its other tokens have nothing
                in common with the query; one with fewer tokens has more.
        """
        for layer in self.layers[layers]:
            assert isinstance(layer, MemoryLayer)
            for names, heads in ((("relevance_query", "relevance_key"), 1), (("query", "key"), layer.heads)):
                width = self.dim // heads
                logit = relevance * (chunk if heads == 1 else 1)
                scale = (logit * width**0.5 / self.dim) ** 0.5
                compared = directions.new_zeros(heads, width, self.dim)
                compared[:, : len(directions)] = scale * directions[:width]
                for name in names:
                    layer.get_parameter(f"{name}.weight").copy_(compared.flatten(0, 1))
            nn.init.zeros_(layer.get_parameter("relevance_query.bias"))

    @torch.no_grad()
    def amplify(self, factor: float) -> None:
        """Scale the initial projections of values and outputs, so that reads are large.

        Args:
            factor: Factor on each of the two; > 0.
        """
        for layer in self.layers:
            for name in ("value.weight", "mix.weight"):
                layer.get_parameter(name).mul_(factor)

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
            tokens: The memory. A query without any token in memory reads only the bias of the output projection.
            chunks: Tokens that belong together, for a hierarchical read; None reads all tokens at once.
            top_k: Number of chunks that each query reads; all if there are fewer.
            independent: If True, queries do not attend to each other.
            layers: Slice of the layers that are applied.

        Returns:
            float, (B, Q, D); the queries after the layers.
        """
        used = self.layers[layers]
        # With many queries it is faster to add up each token once than to read tables for each token, query and layer.
        if tokens.values is not None and not tokens.has_own_rows and query.shape[1] * len(used) > self.dim:
            tokens = tokens.as_vectors()
        chunked = None if chunks is None else ChunkedTokens.of(tokens, chunks)
        flat = query.flatten(0, 1)  # (B Q, D)
        for layer in used:
            flat, _, _ = layer(flat, tokens, chunked, top_k, independent)
        return flat.view_as(query)

    @torch.no_grad()
    def attention(
        self, query: Tensor, tokens: Tokens, chunks: Chunks | None = None, top_k: int = 4, independent: bool = False
    ) -> Tensor:
        """Return the attention weights of each layer; args as in `forward`.

        Returns:
            float, (layers, B, Q, N); the mean over heads. A row sums to 1; tokens of chunks that are not read get 0.
        """
        chunked = None if chunks is None else ChunkedTokens.of(tokens, chunks)
        layer_weights = []
        flat = query.flatten(0, 1)  # (B Q, D)
        for layer in self.layers:
            flat, weights, index = layer(flat, tokens, chunked, top_k, independent)
            if index is not None:
                weights = weights.new_zeros(*query.shape[:2], tokens.count).scatter_add(2, index, weights)
            layer_weights.append(weights)
        return torch.stack(layer_weights)
