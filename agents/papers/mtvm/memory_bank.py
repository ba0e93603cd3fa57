"""MTVM's memory bank: one token for each past action, all of them or the newest ones."""

from __future__ import annotations

import torch
from torch import Tensor

from memenvs.agents.memory import State


class MemoryBank:
    """Tokens of the actions of B episodes, the oldest first.

    The state has `count`, int64, (B,), the number of each episode's tokens, and `tokens`, float, (B, M, D), where M is
    the largest count; zeros fill shorter episodes. No tensor is changed in place, so gradients flow through all tokens
    and earlier states stay valid. It is no `memenvs.agents.memory.Memory`: it computes no features, and the network
    reads the tokens from the state.

    Args:
        width: Width D of a token.
        size: Largest number of tokens, the newest ones; None for no limit, 0 for no memory.

    Source:
        MTVM, section 3: memory of variable length.
    """

    def __init__(self, width: int, size: int | None) -> None:
        self.width = width
        self.size = size

    def initial_state(self, batch_size: int, like: Tensor) -> State:
        """Make a state without tokens, on the device and in the dtype of `like`."""
        count = torch.zeros(batch_size, dtype=torch.int64, device=like.device)
        return {"tokens": like.new_zeros(batch_size, 0, self.width), "count": count}

    def step(self, token: Tensor, episode_start: Tensor, state: State) -> State:
        """Append the token of the last action, or empty the bank where an episode starts.

        Args:
            token: float, (B, D); ignored where an episode starts.
            episode_start: bool, (B,).
            state: State from `initial_state` or from the call before.

        Returns:
            The new state.
        """
        if self.size == 0:
            return state
        count = torch.where(episode_start, 0, state["count"])
        valid = torch.arange(state["tokens"].shape[1], device=count.device) < count[:, None]  # (B, M)
        tokens = torch.where(valid[..., None], state["tokens"], 0.0)
        blank = tokens.new_zeros(len(tokens), 1, self.width)
        if self.size is not None:
            is_full = ~episode_start & (count == self.size)
            if bool(is_full.any()):  # the oldest token leaves
                tokens = torch.where(is_full[:, None, None], torch.cat([tokens[:, 1:], blank], 1), tokens)
                count = count - is_full.long()
        extended = torch.cat([tokens, blank], 1)  # (B, M + 1, D)
        is_new = torch.arange(extended.shape[1], device=count.device) == count[:, None]
        is_new = is_new & ~episode_start[:, None]
        count = count + (~episode_start).long()
        longest = int(count.max()) if len(count) else 0
        return {"tokens": torch.where(is_new[..., None], token[:, None], extended)[:, :longest], "count": count}
