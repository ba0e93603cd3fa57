"""Episode auto-encoder: key frames are decoded from the vectors of a memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.verbalization.signals import LATENT_WIDTH, SUB_WIDTH

DATE_FIELDS, FIELD_VALUES = 7, 60
"""Fields of a date, and values that each can have."""
SYMBOL_PARTS = {"goal": 5, "action": 1, "args": 5, "objects": 2}
"""Part with symbols -> their number in a key frame."""
STATUSES, STATUS_VALUES = 4, 4
"""Statuses of a key frame, and values of each: none, 0, 1, 2."""
WEIGHTS = {"dt": 0.25, "symbols": 0.5, "sub": 0.25}
"""Weight of the loss of each part."""
WEIGHTS_WITH_IMAGES = {"dt": 0.25, "symbols": 0.45, "sub": 0.2, "latent": 0.1}
"""The same where image latents are decoded."""
DROPPED = 0.5
"""Share of earlier key frames that the decoder does not see; else it would copy neighbours and not read the memory."""
LAYERS, HEADS = 2, 4
LONGEST_PERIOD = 10_000.0
"""Longest period of the features of positions, key frames."""


class FrameHeads(nn.Module):
    """Predict the parts of a key frame from a vector.

    Args:
        dim: Width of the vector.
        parts: Parts of a key frame that are given; see `memenvs.verbalization.key_frames.PARTS`.
        n_symbols: Numbers of symbols.
    """

    def __init__(self, dim: int, parts: Sequence[str], n_symbols: int) -> None:
        super().__init__()
        self.parts, self.n_symbols = tuple(parts), n_symbols
        sizes = {
            "dt": DATE_FIELDS * FIELD_VALUES,
            **{part: count * n_symbols for part, count in SYMBOL_PARTS.items()},
            "state": STATUSES * STATUS_VALUES,
            "sub": SUB_WIDTH,
            "latent": LATENT_WIDTH,
        }
        self.heads = nn.ModuleDict({part: nn.Linear(dim, sizes[part]) for part in parts})

    def forward(self, h: Tensor, frames: Mapping[str, Tensor]) -> Tensor:
        """Compute the loss of N key frames.

        Args:
            h: float, (N, dim).
            frames: Part -> (N, ...).

        Returns:
            float, (); the weighted mean over dates, symbols with statuses, signals and image latents.
        """
        losses: dict[str, Tensor] = {}
        if "dt" in self.parts:
            losses["dt"] = self._cross_entropy("dt", h, frames["dt"], FIELD_VALUES)
        named = [part for part in SYMBOL_PARTS if part in self.parts]
        symbols = [(self._cross_entropy(part, h, frames[part], self.n_symbols), SYMBOL_PARTS[part]) for part in named]
        if "state" in self.parts:
            symbols.append((self._cross_entropy("state", h, frames["state"].long() + 1, STATUS_VALUES), STATUSES))
        if symbols:
            losses["symbols"] = sum(loss * count for loss, count in symbols) / sum(count for _, count in symbols)  # type: ignore[assignment]
        if "sub" in self.parts:
            losses["sub"] = F.mse_loss(self.heads["sub"](h).float(), frames["sub"].float())
        if "latent" in self.parts:
            losses["latent"] = F.l1_loss(self.heads["latent"](h).float(), frames["latent"].float())
        weights = WEIGHTS_WITH_IMAGES if "latent" in self.parts else WEIGHTS
        total = sum(weights[name] for name in losses)
        return torch.stack([weights[name] / total * loss for name, loss in losses.items()]).sum()

    def _cross_entropy(self, part: str, h: Tensor, target: Tensor, values: int) -> Tensor:
        logits = self.heads[part](h).float().view(-1, values)
        return F.cross_entropy(logits, target.long().reshape(-1))


class EpisodeDecoder(nn.Module):
    """Decoder of the episode auto-encoder, from which a memory learns to hold key frames.

    With a memory of constant size, a causal transformer decodes the key frames one after the other from its vectors and
    from half of the key frames before. With a memory that keeps a vector of each key frame, each is decoded from its
    own.

    Args:
        dim: Width of an embedded key frame.
        width: Width of the vectors of the memory.
        parts: Parts of a key frame that are given; see `memenvs.verbalization.key_frames.PARTS`.
        n_symbols: Numbers of symbols.
        per_vector: Whether the memory keeps a vector of each key frame.

    Source:
        Bärmann, KIT 2021, episode auto-encoder; layers, dropped key frames and weights are ours.
    """

    def __init__(self, dim: int, width: int, parts: Sequence[str], n_symbols: int, per_vector: bool) -> None:
        super().__init__()
        self.per_vector = per_vector
        self.heads = FrameHeads(width, parts, n_symbols)
        if not per_vector:
            self.frame_width = nn.Linear(dim, width)
            self.start = nn.Parameter(0.02 * torch.randn(width))
            self.dropped = nn.Parameter(0.02 * torch.randn(width))
            heads = HEADS if width % HEADS == 0 else 1
            layer = nn.TransformerDecoderLayer(
                width, heads, 2 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            self.decoder = nn.TransformerDecoder(layer, LAYERS, nn.LayerNorm(width))

    def loss(
        self,
        vectors: Tensor,
        is_there: Tensor,
        embedded: Tensor,
        frames: Mapping[str, Tensor],
        mask: Tensor,
        generator: torch.Generator,
    ) -> Tensor:
        """Compute the loss of all key frames of histories.

        Args:
            vectors: float, (B, M, width); vectors of the memory.
            is_there: bool, (B, M).
            embedded: float, (B, T, dim); embedded key frames, filled up in front.
            frames: Part -> (B, T, ...).
            mask: bool, (B, T); True where there is a key frame.
            generator: Draws which earlier key frames the decoder does not see; on the CPU.

        Returns:
            float, (); 0 without any key frame.
        """
        rows = mask & is_there.any(1, keepdim=True)
        if not rows.any():
            return vectors.sum() * 0.0
        target = {part: frames[part][rows] for part in self.heads.parts}
        if self.per_vector:
            return self.heads(vectors[is_there], target)
        batch, steps = mask.shape
        seen = (torch.rand(batch, steps, generator=generator) >= DROPPED).to(mask.device)
        x = torch.where(seen[..., None], self.frame_width(embedded), self.dropped)
        x = torch.cat([self.start.expand(batch, 1, -1), x[:, :-1]], 1)
        is_first = mask & ~F.pad(mask[:, :-1], (1, 0), value=False)
        x = torch.where(is_first[..., None], self.start, x)
        number = (mask.cumsum(1) - 1).clamp(min=0)  # of each key frame in its history
        x = x + _positions(number, x.shape[-1], x.dtype)
        steps_range = torch.arange(steps, device=mask.device)
        later = steps_range > steps_range[:, None]
        # Padding attends to itself, so that no row is without a key.
        hidden = (later | ~mask[:, None]) & (steps_range != steps_range[:, None])
        some = is_there.clone()
        some[:, 0] |= ~is_there.any(1)  # histories without a key frame do not count, but need a key
        heads = self.decoder.layers[0].self_attn.num_heads
        h = self.decoder(x, vectors, tgt_mask=hidden.repeat_interleave(int(heads), 0), memory_key_padding_mask=~some)
        return self.heads(h[rows], target)


def _positions(number: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """Sines and cosines of positions, (..., width)."""
    half = (width + 1) // 2
    rate = torch.exp(-math.log(LONGEST_PERIOD) * torch.arange(half, device=number.device) / half)
    angles = number[..., None] * rate
    return torch.cat([angles.sin(), angles.cos()], -1)[..., :width].to(dtype)
