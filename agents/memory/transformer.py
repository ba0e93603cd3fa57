"""Sizes and the pre-norm block that the transformers among the memories share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.attention import rotate
from memenvs.agents.sizes import check_sizes

Rotation = tuple[Tensor, Tensor]
"""Cosine and sine, float (B, T, width) each; from `rotation_factors`."""


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Sizes of a transformer; the defaults are those of ReLIC's main network.

    Attributes:
        layers: Transformer blocks; >= 1.
        heads: Attention heads; divides `dim` into even widths.
        dim: Width D of a token and of the features; >= 2.
        mlp_dim: Inner width of the gated MLP; >= 1.
    """

    layers: int = 4
    heads: int = 8
    dim: int = 256
    mlp_dim: int = 1024

    def __post_init__(self) -> None:
        check_sizes(self)
        if self.dim % (2 * self.heads):
            raise ValueError(f"dim must be an even multiple of heads ({self.heads}), got {self.dim}")

    @property
    def head_dim(self) -> int:
        """Width of one head."""
        return self.dim // self.heads


class TransformerBlock(nn.Module):
    """Pre-norm block of attention and a gated MLP, without biases.

        x <- x + W_o attention(norm(x))
        x <- x + W_d (GELU(g) * u),  [g, u] = W norm(x)

    Args:
        config: Sizes.

    Source:
        Elawady et al., ReLIC; block of LLaMA (Touvron et al., 2023) with a tanh-approximated GELU.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.head_dim = config.head_dim
        dim, mlp_dim = config.dim, config.mlp_dim
        self.attention_norm = nn.RMSNorm(dim, eps=1e-6)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.attention_out = nn.Linear(dim, dim, bias=False)
        self.mlp_norm = nn.RMSNorm(dim, eps=1e-6)
        self.gate_up = nn.Linear(dim, 2 * mlp_dim, bias=False)
        self.down = nn.Linear(mlp_dim, dim, bias=False)
        for layer in (self.qkv, self.attention_out, self.gate_up, self.down):
            nn.init.normal_(layer.weight, std=0.02)

    def project(self, x: Tensor, rotation: Rotation | None, queries: int) -> tuple[Tensor, Tensor]:
        """Project to queries of the last steps, and to keys and values of all.

        Args:
            x: float, (B, T, D); the residual stream.
            rotation: Rotary embedding of the T steps; None leaves keys and queries as they are.
            queries: Number of last steps that attend.

        Returns:
            float (B, heads, `queries`, width), and float (B, 2, heads, T, width).
        """
        heads, width = self.heads, self.head_dim
        batch, steps, dim = x.shape
        h = self.attention_norm(x)
        if queries == steps:
            qkv = self.qkv(h).view(batch, steps, 3, heads, width)
            qk, v = qkv[:, :, :2], qkv[:, :, 2]
            if rotation is not None:
                qk = rotate(qk, *rotation)
            q, k = qk.unbind(2)  # (B, T, heads, width) each
        else:  # no query for the other steps
            q = F.linear(h[:, steps - queries :], self.qkv.weight[:dim]).view(batch, queries, 1, heads, width)
            k, v = F.linear(h, self.qkv.weight[dim:]).view(batch, steps, 2, heads, width).split(1, dim=2)
            if rotation is not None:
                cos, sin = rotation
                q = rotate(q, cos[:, steps - queries :], sin[:, steps - queries :])
                k = rotate(k, cos, sin)
            q, k, v = (part.squeeze(2) for part in (q, k, v))
        return q.transpose(1, 2), torch.stack([k, v], dim=1).transpose(2, 3)

    def project_heads(self, attended: Tensor) -> Tensor:
        """Project the output of the heads, (B, heads, T, width), to the residual stream, (B, T, D)."""
        return self.attention_out(attended.transpose(1, 2).flatten(2))

    def mlp(self, x: Tensor) -> Tensor:
        """Apply norm and gated MLP, float (B, T, D)."""
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        return self.down(F.gelu(gate, approximate="tanh") * up)
