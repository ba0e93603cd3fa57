"""Queues of blocks: memory, levels of compressed vectors, long-term state.

The state of a layer's queues is named tensors. `memory`, float (B, layers, K, D), holds steps. `compressed1`, ...,
hold vectors of r_1, r_1 r_2, ... steps each. `long_term` is what received the vectors that left the last of them. Each
has a mask, bool (B, vectors), which all layers share. The newest vector is the last one, and empty slots come first.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.base import State
from memenvs.agents.memory.compressive.layers import CompressiveLayer
from memenvs.agents.memory.compressive.long_term import LongTerm


class Queues(nn.Module):
    """The queues of all layers that have a memory.

    A full block enters `memory`, whose oldest block is compressed by a convolution with kernel and stride r_1 and
    enters `compressed1`, whose oldest vectors enter the next level, and so on. All of them are those from before the
    block.

    Two gradients are kept apart. The task's reaches everything but the convolutions, also through compressed vectors.
    The reconstruction loss reaches the convolutions alone.

    Args:
        dim: Width D.
        block: Steps B of a block.
        memory_length: K.
        lengths: C of each level.
        ratios: r of each level.
        long_term: For each layer, the state behind the last level; empty without one.
        layers: Number of layers with a memory.
    """

    def __init__(
        self,
        dim: int,
        block: int,
        memory_length: int,
        lengths: Sequence[int],
        ratios: Sequence[int],
        long_term: Sequence[LongTerm],
        layers: int,
    ) -> None:
        super().__init__()
        self.dim, self.layers = dim, layers
        levels = [f"compressed{level + 1}" for level in range(len(lengths))]
        self.lengths = dict(zip(["memory", *levels], [memory_length, *lengths], strict=True))
        self.moving = {"memory": block}  # vectors that leave a queue at once
        for name, ratio in zip(levels, ratios, strict=True):
            self.moving[name] = list(self.moving.values())[-1] // ratio
        self.compress = nn.ModuleList(
            nn.ModuleDict({name: nn.Conv1d(dim, dim, ratio, ratio) for name, ratio in zip(levels, ratios, strict=True)})
            for _ in range(layers)
        )
        self.long_term = nn.ModuleList(long_term)
        self.names = list(self.lengths)[::-1]  # in the order of age, the oldest first
        if long_term:
            self.lengths["long_term"] = long_term[0].length
            self.names.insert(0, "long_term")

    @property
    def slots(self) -> int:
        """Vectors of a layer, full or empty."""
        return sum(self.lengths.values())

    def initial_state(self, batch: int) -> State:
        """Return empty queues."""
        like = next(self.parameters())
        state: State = {}
        for name in self.names:
            state[name] = like.new_zeros(batch, self.layers, self.lengths[name], self.dim)
            state[f"{name}_mask"] = torch.zeros(batch, self.lengths[name], dtype=torch.bool, device=like.device)
        return state

    def join(self, state: State) -> tuple[Tensor, Tensor]:
        """Join all vectors, the oldest first: float (B, layers, S, D); and their mask."""
        vectors = torch.cat([state[name] for name in self.names], 2)
        return vectors, torch.cat([state[f"{name}_mask"] for name in self.names], 1)

    def push(
        self, state: State, sources: Tensor, layers: Sequence[CompressiveLayer], with_loss: bool
    ) -> tuple[State, Tensor]:
        """Let a full block enter.

        Args:
            state: State of the queues.
            sources: float, (B, layers, block, D); what the memory of each layer holds of it.
            layers: The layers that read the memories.
            with_loss: Whether to compute the reconstruction loss.

        Returns:
            The state after it, and the sum of the reconstruction losses over sequences, layers and levels; 0 without.
        """
        after = dict(state)
        loss = sources.new_zeros(())
        entering, enters = sources, torch.ones(len(sources), dtype=torch.bool, device=sources.device)
        for name in self.lengths:
            vectors, mask = state[name], state[f"{name}_mask"]
            if name == "long_term":
                written = [
                    self._write_long_term(layer, vectors[:, layer], mask, entering[:, layer])
                    for layer in range(self.layers)
                ]
                new, new_mask = torch.stack([vector for vector, _ in written], 1), written[0][1]
            else:
                if name != "memory":
                    if with_loss:
                        loss = loss + self._losses(name, sources, entering, layers)[:, enters].sum()
                    entering = self._compressed(name, entering)
                count = self.moving[name]
                new = torch.cat([vectors[:, :, count:], entering], 2)
                new_mask = torch.cat([mask[:, count:], enters[:, None].expand(-1, count)], 1)
            after[name] = torch.where(enters[:, None, None, None], new, vectors)
            after[f"{name}_mask"] = torch.where(enters[:, None], new_mask, mask)
            if name != "long_term":
                entering, enters = vectors[:, :, : self.moving[name]], enters & mask[:, 0]
                if not enters.any():
                    break
        return after, loss

    def _convolution(self, layer: int, name: str) -> nn.Conv1d:
        convolution = self.get_submodule(f"compress.{layer}.{name}")
        assert isinstance(convolution, nn.Conv1d)
        return convolution

    def _compressed(self, name: str, vectors: Tensor) -> Tensor:
        """Compress vectors of all layers, with gradients to the vectors alone; (B, layers, n, D)."""
        parts = []
        for layer in range(self.layers):
            conv = self._convolution(layer, name)
            assert conv.bias is not None
            weight, bias = conv.weight.detach(), conv.bias.detach()
            parts.append(F.conv1d(vectors[:, layer].transpose(1, 2), weight, bias, conv.stride).transpose(1, 2))
        return torch.stack(parts, 1).to(vectors.dtype)

    def _losses(self, name: str, sources: Tensor, replaced: Tensor, layers: Sequence[CompressiveLayer]) -> Tensor:
        """Reconstruction loss of each layer and sequence, float (layers, B), with gradients to convolutions alone."""
        losses = []
        for layer in range(self.layers):
            old = replaced[:, layer].detach()
            compressed = self._convolution(layer, name)(old.transpose(1, 2)).transpose(1, 2)
            losses.append(layers[layer].reconstruction_loss(sources[:, layer], compressed, old))
        return torch.stack(losses)

    def _write_long_term(self, layer: int, state: Tensor, mask: Tensor, leaving: Tensor) -> tuple[Tensor, Tensor]:
        """Write to the long-term state of a layer, in full precision: it is rewritten without end."""
        long_term = self.long_term[layer]
        assert isinstance(long_term, LongTerm)
        with torch.autocast(state.device.type, enabled=False):
            return long_term.write(state, mask, leaving)
