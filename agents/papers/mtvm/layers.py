"""Layers of BERT and LXMERT: attention within a text, and between a text and views."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

#: Epsilon of every layer normalisation, as in BERT.
EPS = 1e-12


class Dropout(nn.Module):
    """Dropout with 16 random bits per element on a CPU, in less than half of PyTorch's time.

    Args:
        rate: Probability that an element becomes 0, in [0, 1); the others are divided by 1 - rate.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements, float, of any shape; random numbers are of torch's global generator."""
        if not self.training or self.rate == 0.0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)  # four int16 each
        # an int16 is uniform over -2^15 to 2^15 - 1, so a share `rate` of them is below this threshold
        kept = bits.view(torch.int16)[: x.numel()].view(x.shape) >= round(self.rate * 2**16) - 2**15
        return x * (kept.to(x.dtype) * (1.0 / (1.0 - self.rate)))


class Attention(nn.Module):
    """Multi-head attention followed by a residual connection and layer normalisation.

    Unlike `memenvs.agents.memory.attention`, it drops attention weights. Keys and values can be computed once
    (`keys_values`) and then be attended to many times.

    Args:
        dim: Width D of queries and context.
        heads: Number of heads; divides `dim`.
        dropout: Dropout rate of attention weights and of the output, in [0, 1).
    """

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = Dropout(dropout)
        self.query, self.key, self.value, self.output = (nn.Linear(dim, dim) for _ in range(4))
        self.norm = nn.LayerNorm(dim, eps=EPS)

    def forward(self, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        """Attend from `x` to `context`.

        Args:
            x: float, (B, Q, D); makes the queries.
            context: float, (B, K, D); makes keys and values.
            mask: bool, (B, K); True where the context can be attended to, at least once in each row.

        Returns:
            float, (B, Q, D).
        """
        return self.attend(x, *self.keys_values(context), mask)

    def keys_values(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Project a context, float, (B, K, D), to keys and values, (B, heads, K, D / heads) each."""
        return self._split_heads(self.key(context)), self._split_heads(self.value(context))

    def attend(self, x: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """As `forward`, from the keys and values of `keys_values`."""
        q = self._split_heads(self.query(x))  # (B, heads, Q, D / heads)
        mask = mask[:, None, None]  # (B, 1, 1, K)
        if self.training and self.dropout.rate > 0.0:
            scores = (q * q.shape[-1] ** -0.5 @ k.transpose(2, 3)).masked_fill(~mask, -torch.inf)
            attended = self.dropout(scores.softmax(-1)) @ v  # (B, heads, Q, D / heads)
        else:
            attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        attended = attended.transpose(1, 2).flatten(-2)  # (B, Q, D)
        return self.norm(x + self.dropout(self.output(attended)))

    def attention_weights(self, x: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        """Compute attention weights, averaged over heads; args as in `forward`.

        Returns:
            float, (B, Q, K); each row sums to 1, masked entries are 0.
        """
        q, k = self._split_heads(self.query(x)), self._split_heads(self.key(context))
        scores = (q @ k.transpose(2, 3) * q.shape[-1] ** -0.5).masked_fill(~mask[:, None, None], -torch.inf)
        return scores.softmax(-1).mean(1)

    def _split_heads(self, x: Tensor) -> Tensor:
        """Split the channels over the heads, float, (B, L, D) -> (B, heads, L, D / heads)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class FeedForward(nn.Module):
    """Two layers with an exact GELU, followed by a residual connection and layer normalisation.

    Args:
        dim: Width D of input and output.
        inner: Hidden width.
        dropout: Dropout rate of the output, in [0, 1).
    """

    def __init__(self, dim: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(dim, inner), nn.Linear(inner, dim)
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(dim, eps=EPS)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block, float, (..., D) -> (..., D)."""
        return self.norm(x + self.dropout(self.outer(F.gelu(self.inner(x)))))


class TextLayer(nn.Module):
    """Layer of BERT: self-attention and feed-forward.

    Args:
        dim: Width D.
        inner: Hidden width of the feed-forward layers.
        heads: Number of heads; divides `dim`.
        dropout: Dropout rate, in [0, 1).
    """

    def __init__(self, dim: int, inner: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(dim, heads, dropout)
        self.feed = FeedForward(dim, inner, dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Apply the layer, float, (B, L, D) -> (B, L, D); `mask` as in `Attention.forward`."""
        return self.feed(self.attention(x, x, mask))


class CrossLayer(nn.Module):
    """Layer of LXMERT: text and views attend to each other, then each to itself.

    Both directions share one attention and start from the inputs of the layer.

    Args:
        dim: Width D.
        inner: Hidden width of the feed-forward layers.
        heads: Number of heads; divides `dim`.
        dropout: Dropout rate, in [0, 1).
        two_way: Whether the text attends to the views too; otherwise it stays unchanged.

    Source:
        Tan and Bansal, "LXMERT", 2019.
    """

    def __init__(self, dim: int, inner: int, heads: int, dropout: float, two_way: bool) -> None:
        super().__init__()
        self.cross = Attention(dim, heads, dropout)
        self.vision = TextLayer(dim, inner, heads, dropout)
        self.text = TextLayer(dim, inner, heads, dropout) if two_way else None

    def forward(
        self,
        text: Tensor,
        text_mask: Tensor,
        vision: Tensor,
        vision_mask: Tensor,
        text_keys_values: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Update text and views.

        Args:
            text: float, (B, L, D).
            text_mask: bool, (B, L); words that can be attended to.
            vision: float, (B, V, D).
            vision_mask: bool, (B, V); views that can be attended to.
            text_keys_values: `cross.keys_values(text)`, if it is known.

        Returns:
            Text and views, of the same shapes.
        """
        k, v = self.cross.keys_values(text) if text_keys_values is None else text_keys_values
        new_vision = self.vision(self.cross.attend(vision, k, v, text_mask), vision_mask)
        if self.text is not None:
            text = self.text(self.cross(text, vision, vision_mask), text_mask)
        return text, new_vision
