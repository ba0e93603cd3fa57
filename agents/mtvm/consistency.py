"""MTVM's consistency loss: with half of the words the agent should see what it sees with all of them."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Axis = Literal["token", "channel"]


def drop_words(words: Tensor, rate: float) -> Tensor:
    """Which tokens are left when each is dropped with a chance; a text of which none would be left stays whole.

    Args:
        words: bool, (B, L); tokens of each text, the separator included.
        rate: Chance to be dropped, in [0, 1); drawn from torch's global generator.

    Returns:
        bool, (B, L).
    """
    kept = words & (torch.rand(words.shape, device=words.device) >= rate)
    return torch.where(kept.any(1, keepdim=True), kept, words)


def inconsistency(y: Tensor, other: Tensor, valid: Tensor, axis: Axis = "token") -> Tensor:
    """How far two passes are apart, each row by itself: KL(p | q) + KL(q | p) of their softmaxes, the left side without gradient.

    Terms of the sums are averaged, not added up, over valid tokens and channels: the weights 6 and 2 of the loss are for this scale.

    Args:
        y: float, (B, L, D).
        other: float, (B, L, D); the same tokens in the other pass.
        valid: bool, (B, L); tokens that count; at least one in each row.
        axis: Whether the softmax is taken over the valid tokens, for each channel (as in MTVM's release), or over channels.

    Returns:
        float, (B,); >= 0 and, where the passes are equal, 0.
    """
    shown = valid[..., None]
    if axis == "token":
        y, other = (each.masked_fill(~shown, -torch.inf) for each in (y, other))
    dim = 1 if axis == "token" else 2
    p, q = (each.float().log_softmax(dim).masked_fill(~shown, 0.0) for each in (y, other))
    terms = _terms(p.detach(), q) + _terms(q.detach(), p)
    return terms.masked_fill(~shown, 0.0).sum((1, 2)) / (valid.sum(1) * y.shape[2])


def _terms(target: Tensor, log_probs: Tensor) -> Tensor:
    """Terms of KL(target | log_probs); both are logarithms of probabilities."""
    return target.exp() * (target - log_probs)
