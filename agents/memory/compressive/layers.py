"""A transformer layer over a block of steps and a memory of earlier blocks."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Style = Literal["modern", "faithful"]
"""Form of a layer: normalisation before, GELU and positions, or after, ReLU and none."""


class CompressiveLayer(nn.Module):
    """Attention of a block to [long-term; compressed; memory; block], and an MLP.

    In the style "modern" a layer normalises its input, and that is what its memory holds. Scores have a learned term
    by distance, q r_d, where d counts slots: slots of older queues are farther away. In the style "faithful" outputs
    are normalised, and the memory holds the layer's input as it is.

    Args:
        dim: Width D.
        heads: Attention heads.
        mlp_dim: Inner width of the MLP.
        block: Steps B of a block.
        slots: Vectors S of the memory; 0 without one.
        causal: Whether a step attends to no later step of its block.
        style: See above.
    """

    distance: Tensor  # of each step of a block to each vector and step, as an index into `by_distance`

    def __init__(self, dim: int, heads: int, mlp_dim: int, block: int, slots: int, causal: bool, style: Style) -> None:
        super().__init__()
        self.heads = heads
        self.is_modern = style == "modern"
        self.query = nn.Linear(dim, dim, bias=False)
        self.keys_values = nn.Linear(dim, 2 * dim, bias=False)
        self.attention_out = nn.Linear(dim, dim)
        self.attention_norm = nn.LayerNorm(dim)
        self.mlp_norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, mlp_dim), nn.GELU() if self.is_modern else nn.ReLU(), nn.Linear(mlp_dim, dim)
        )
        if self.is_modern:
            later = 0 if causal else block - 1  # steps of the block that may be behind a query
            place = torch.arange(slots + block)
            distance = (place[slots:, None] - place + later).clamp(min=0)  # (block, S + block)
            self.register_buffer("distance", distance, persistent=False)
            self.by_distance = nn.Parameter(torch.zeros(heads, later + block + slots, dim // heads))

    def source(self, h: Tensor) -> Tensor:
        """Return what the memory of this layer holds: the source of queries, keys and values."""
        return self.attention_norm(h) if self.is_modern else h

    def forward(self, h: Tensor, source: Tensor, memory: Tensor | None, visible: Tensor) -> Tensor:
        """Process the steps of a block.

        Args:
            h: float, (B, C, D); the steps of a block so far.
            source: float, (B, C, D); `source` of h.
            memory: float, (B, S, D); None without a memory.
            visible: bool, (B, 1, C, S + C); which vectors and steps each step attends to, at least one.

        Returns:
            float, (B, C, D).
        """
        context = source if memory is None else torch.cat([memory, source], 1)
        q = self._split(self.query(source))
        k, v = (self._split(each) for each in self.keys_values(context).chunk(2, -1))
        bias = visible
        if self.is_modern:
            terms = q @ self.by_distance.transpose(1, 2) / q.shape[-1] ** 0.5  # (B, heads, C, distances)
            distance = self.distance[: h.shape[1], : context.shape[1]]
            terms = terms.gather(3, distance.expand(*q.shape[:3], -1))
            bias = terms.masked_fill(~visible, -torch.inf)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        added = self.attention_out(attended.transpose(1, 2).flatten(2))
        if self.is_modern:
            h = h + added
            return h + self.mlp(self.mlp_norm(h))
        h = self.attention_norm(h + added)
        return self.mlp_norm(h + self.mlp(h))

    def reconstruction_loss(self, source: Tensor, compressed: Tensor, replaced: Tensor) -> Tensor:
        """Compare what a block reads from compressed vectors and from those they replace.

        No gradient reaches the layer. In the style "modern" it is the mean squared difference over the heads; in the
        style "faithful" the norm of the difference, with one head of the full width.

        Args:
            source: float, (B, C, D); `source` of the block.
            compressed: float, (B, n, D).
            replaced: float, (B, n r, D).

        Returns:
            float, (B,).
        """
        query, keys_values = self.query.weight.detach(), self.keys_values.weight.detach()
        heads = self.heads if self.is_modern else 1

        def read(vectors: Tensor) -> Tensor:
            q = self._split(F.linear(source.detach(), query), heads)
            k, v = (self._split(each, heads) for each in F.linear(vectors, keys_values).chunk(2, -1))
            return F.scaled_dot_product_attention(q, k, v)

        difference = (read(compressed) - read(replaced.detach())).flatten(1)
        return difference.square().mean(1) if self.is_modern else difference.norm(dim=1)

    def _split(self, x: Tensor, heads: int | None = None) -> Tensor:
        """Split into heads: (B, n, D) -> (B, heads, n, width)."""
        return x.unflatten(2, (heads or self.heads, -1)).transpose(1, 2)
