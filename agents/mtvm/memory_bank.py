"""What an agent remembers of its moves: one token for each, as many as there were, or the newest of them."""

from __future__ import annotations

import torch
from torch import Tensor

from memenvs.agents.memory import State


class MemoryBank:
    """Tokens of the moves of each of B episodes, the oldest first.

    The state holds `tokens`, float (B, M, D), zeros beyond a row's own, and `count`, int64 (B,). M is what the longest row needs. Nothing is
    written in place: gradients flow through all tokens, and an earlier state stays what it was. It is called as memories are
    (`memenvs.agents.memory.Memory`), but for what it gives: all tokens instead of features of one width.

    Args:
        width: Numbers of a token, D.
        size: Tokens that are kept, the newest ones; None for all, 0 for none.
    """

    def __init__(self, width: int, size: int | None) -> None:
        self.width, self.size = width, size

    def initial_state(self, batch_size: int, like: Tensor) -> State:
        """No tokens; on the device and in the dtype of `like`."""
        count = torch.zeros(batch_size, dtype=torch.int64, device=like.device)
        return {"tokens": like.new_zeros(batch_size, 0, self.width), "count": count}

    def step(self, token: Tensor, episode_start: Tensor, state: State) -> State:
        """Writes the token of the move before, or forgets everything where an episode starts.

        Args:
            token: float, (B, D); anything where an episode starts.
            episode_start: bool, (B,).
            state: From `initial_state` or the call before.
        """
        if self.size == 0:
            return state
        count = torch.where(episode_start, 0, state["count"])
        known = torch.arange(state["tokens"].shape[1], device=count.device) < count[:, None]
        tokens = torch.where(known[..., None], state["tokens"], 0.0)
        blank = tokens.new_zeros(len(tokens), 1, self.width)
        if self.size is not None:
            full = ~episode_start & (count == self.size)
            if bool(full.any()):
                tokens = torch.where(full[:, None, None], torch.cat([tokens[:, 1:], blank], 1), tokens)
                count = count - full.long()
        room = torch.cat([tokens, blank], 1)
        here = torch.arange(room.shape[1], device=count.device) == count[:, None]
        here = here & ~episode_start[:, None]
        count = count + (~episode_start).long()
        longest = int(count.max()) if len(count) else 0
        return {"tokens": torch.where(here[..., None], token[:, None], room)[:, :longest], "count": count}
