"""A transformer layer over a block of steps and a memory of earlier blocks."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CompressiveLayer(nn.Module):
    """Attention of a block to [long-term; compressed; memory; block], and an MLP.

    A layer normalises its input, and that is what its memory holds. Scores have a learned term by distance, q r_d,
    where d counts slots: slots of older queues are farther away.

    Args:
        dim: Width D.
        heads: Attention heads.
        mlp_dim: Inner width of the MLP.
        block: Steps B of a block.
        slots: Vectors S of the memory; 0 without one.
    """

    distance: Tensor  # of each step of a block to each vector and step, as an index into `by_distance`

    def __init__(self, dim: int, heads: int, mlp_dim: int, block: int, slots: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(dim, dim, bias=False)
        self.keys_values = nn.Linear(dim, 2 * dim, bias=False)
        self.attention_out = nn.Linear(dim, dim)
        self.attention_norm = nn.LayerNorm(dim)
        self.mlp_norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, dim))
        place = torch.arange(slots + block)
        distance = (place[slots:, None] - place).clamp(min=0)  # (block, S + block)
        self.register_buffer("distance", distance, persistent=False)
        self.by_distance = nn.Parameter(torch.zeros(heads, block + slots, dim // heads))

    def source(self, h: Tensor) -> Tensor:
        """Return what the memory of this layer holds: the source of queries, keys and values."""
        return self.attention_norm(h)

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
        k, v = (self._split(part) for part in self.keys_values(context).chunk(2, -1))
        terms = q @ self.by_distance.transpose(1, 2) / q.shape[-1] ** 0.5  # (B, heads, C, distances)
        distance = self.distance[: h.shape[1], : context.shape[1]]
        terms = terms.gather(3, distance.expand(*q.shape[:3], -1))
        bias = terms.masked_fill(~visible, -torch.inf)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        h = h + self.attention_out(attended.transpose(1, 2).flatten(2))
        return h + self.mlp(self.mlp_norm(h))

    def reconstruction_loss(self, source: Tensor, compressed: Tensor, replaced: Tensor) -> Tensor:
        """Compare what a block reads from compressed vectors and from those they replace.

        It is the mean squared difference over the heads. No gradient reaches the layer.

        Args:
            source: float, (B, C, D); `source` of the block.
            compressed: float, (B, n, D).
            replaced: float, (B, n r, D).

        Returns:
            float, (B,).
        """
        query, keys_values = self.query.weight.detach(), self.keys_values.weight.detach()

        def read(vectors: Tensor) -> Tensor:
            q = self._split(F.linear(source.detach(), query))
            k, v = (self._split(part) for part in F.linear(vectors, keys_values).chunk(2, -1))
            return F.scaled_dot_product_attention(q, k, v)

        return (read(compressed) - read(replaced.detach())).flatten(1).square().mean(1)

    def _split(self, x: Tensor) -> Tensor:
        """Split into heads: (B, n, D) -> (B, heads, n, width)."""
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)
