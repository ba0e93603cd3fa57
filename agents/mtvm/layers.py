"""Layers of BERT and LXMERT: what reads a text, and what lets a text and a list of views look at each other."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

#: Epsilon of every layer normalisation, as in BERT.
EPS = 1e-12


class Dropout(nn.Module):
    """PyTorch's dropout; on a CPU with 16 random bits for a number, which takes less than half of the time.

    Args:
        rate: Chance that a number becomes 0, in [0, 1); the others are divided by 1 - rate.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """float, any shape, to the same; drawn from torch's global generator where the module is training."""
        if not self.training or self.rate == 0.0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        kept = words.view(torch.int16)[: x.numel()].view(x.shape) >= round(self.rate * 2**16) - 2**15
        return x * (kept.to(x.dtype) * (1.0 / (1.0 - self.rate)))


class Attention(nn.Module):
    """Multi-head attention with residual and normalisation after it.

    Dropout falls on weights too, which `memenvs.agents.memory.attention` does not offer. What is asked can be prepared once (`keys_values`) and then be heard often.

    Args:
        dim: Width D of what asks and of what is asked.
        heads: Divides it.
        dropout: Of attention weights and of the output; in [0, 1).
    """

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, Dropout(dropout)
        self.query, self.key, self.value, self.output = (nn.Linear(dim, dim) for _ in range(4))
        self.norm = nn.LayerNorm(dim, eps=EPS)

    def forward(self, x: Tensor, context: Tensor, keys: Tensor) -> Tensor:
        """What asks, with what it heard.

        Args:
            x: float, (B, Q, D); what asks.
            context: float, (B, K, D); what is asked.
            keys: bool, (B, K); what of it can be seen; at least one in each row.

        Returns:
            float, (B, Q, D).
        """
        return self.attend(x, *self.keys_values(context), keys)

    def keys_values(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values, float (B, heads, K, D / heads) each, of what is asked, float (B, K, D)."""
        return self._split(self.key(context)), self._split(self.value(context))

    def attend(self, x: Tensor, k: Tensor, v: Tensor, keys: Tensor) -> Tensor:
        """As `forward`, from what `keys_values` gave."""
        q, shown = self._split(self.query(x)), keys[:, None, None]
        if self.training and self.dropout.rate > 0.0:
            weights = (q * q.shape[-1] ** -0.5 @ k.transpose(2, 3)).masked_fill(~shown, -torch.inf).softmax(-1)
            heard = self.dropout(weights) @ v
        else:
            heard = F.scaled_dot_product_attention(q, k, v, attn_mask=shown)
        return self.norm(x + self.dropout(self.output(heard.transpose(1, 2).flatten(-2))))

    def attention_weights(self, x: Tensor, context: Tensor, keys: Tensor) -> Tensor:
        """How much each of what asks hears of each of what is asked, a mean over heads; float, (B, Q, K), 0 where it cannot be seen."""
        q, k = self._split(self.query(x)), self._split(self.key(context))
        scores = (q @ k.transpose(2, 3) * q.shape[-1] ** -0.5).masked_fill(~keys[:, None, None], -torch.inf)
        return scores.softmax(-1).mean(1)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class FeedForward(nn.Module):
    """Two layers with an exact GELU, residual and normalisation after them."""

    def __init__(self, dim: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(dim, inner), nn.Linear(inner, dim)
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(dim, eps=EPS)

    def forward(self, x: Tensor) -> Tensor:
        """float, (..., D) to the same."""
        return self.norm(x + self.dropout(self.outer(F.gelu(self.inner(x)))))


class TextLayer(nn.Module):
    """A layer of BERT."""

    def __init__(self, dim: int, inner: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(dim, heads, dropout)
        self.feed = FeedForward(dim, inner, dropout)

    def forward(self, x: Tensor, keys: Tensor) -> Tensor:
        """float, (B, L, D) to the same; `keys` as in `Attention`."""
        return self.feed(self.attention(x, x, keys))


class CrossLayer(nn.Module):
    """Text and views hear each other through one shared attention, then themselves, then think.

    Args:
        dim: Width D.
        inner: Width of the feed-forward layers.
        heads: Divides `dim`.
        dropout: As in `Attention`.
        two_way: Whether the text hears the views too; without it the text is only heard and stays as it is.

    Source:
        Tan and Bansal, "LXMERT", 2019; both directions from the inputs of the layer.
    """

    def __init__(self, dim: int, inner: int, heads: int, dropout: float, two_way: bool) -> None:
        super().__init__()
        self.cross = Attention(dim, heads, dropout)
        self.vision = TextLayer(dim, inner, heads, dropout)
        self.text = TextLayer(dim, inner, heads, dropout) if two_way else None

    def forward(
        self,
        text: Tensor,
        text_keys: Tensor,
        vision: Tensor,
        vision_keys: Tensor,
        text_keys_values: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Text float (B, L, D) and views float (B, V, D), with who can be seen in each, to the same; `keys_values` as `cross.keys_values(text)` if it is known."""
        k, v = self.cross.keys_values(text) if text_keys_values is None else text_keys_values
        seen = self.vision(self.cross.attend(vision, k, v, text_keys), vision_keys)
        if self.text is not None:
            text = self.text(self.cross(text, vision, vision_keys), text_keys)
        return text, seen
