"""MTVM's consistency loss between a pass with all words and one with dropped words."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Axis = Literal["token", "channel"]


def drop_words(words: Tensor, rate: float) -> Tensor:
    """Drop each token with a probability; a text that would lose all its tokens keeps them.

    Args:
        words: bool, (B, L); tokens of each text, the separator included.
        rate: Probability that a token is dropped, in [0, 1); drawn from torch's global generator.

    Returns:
        bool, (B, L); tokens that are left.
    """
    kept = words & (torch.rand(words.shape, device=words.device) >= rate)
    return torch.where(kept.any(1, keepdim=True), kept, words)


def inconsistency(y: Tensor, other: Tensor, valid: Tensor, axis: Axis = "token") -> Tensor:
    """Compute KL(p | q) + KL(q | p) of the softmaxes of two passes, for each row.

    The first argument of each KL has no gradient. The terms are averaged over valid tokens and channels, not summed.
    The weights of `ImitationConfig` (6 and 2) are for this scale.

    Args:
        y: float, (B, L, D); one pass.
        other: float, (B, L, D); the same tokens in the other pass.
        valid: bool, (B, L); tokens that count; at least one in each row.
        axis: "token" takes the softmax over the valid tokens of each channel, as MTVM's release; "channel" over the
            channels of each token.

    Returns:
        float, (B,); >= 0, and 0 if the passes are equal.

    Source:
        MTVM, section 3, memory-aware consistency loss, and its release.
    """
    valid_entries = valid[..., None]  # (B, L, 1)
    if axis == "token":
        y, other = (x.masked_fill(~valid_entries, -torch.inf) for x in (y, other))
    dim = 1 if axis == "token" else 2
    log_p, log_q = (x.float().log_softmax(dim).masked_fill(~valid_entries, 0.0) for x in (y, other))
    terms = _kl_terms(log_p.detach(), log_q) + _kl_terms(log_q.detach(), log_p)  # (B, L, D)
    return terms.masked_fill(~valid_entries, 0.0).sum((1, 2)) / (valid.sum(1) * y.shape[2])


def _kl_terms(target: Tensor, log_probs: Tensor) -> Tensor:
    """Compute the terms of KL(target | log_probs); both are log probabilities."""
    return target.exp() * (target - log_probs)
