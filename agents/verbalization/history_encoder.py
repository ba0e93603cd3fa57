"""Memory over the key frames of a history, for a head that reads its vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from memenvs.agents.memory import Memory, StepInputs, make_memory
from memenvs.agents.verbalization.codes import Codes
from memenvs.agents.verbalization.config import AnswererConfig
from memenvs.agents.verbalization.frame_embedding import FrameEmbedding
from memenvs.agents.verbalization.reconstruction import EpisodeDecoder
from memenvs.verbalization.signals import LATENT_WIDTH, SUB_WIDTH
from memenvs.verbalization.symbols import SYMBOLS


class HistoryEncoder(nn.Module):
    """Memory over key frames; a subclass answers questions from its vectors.

    The memory sees no question. All questions about a history share its vectors.

    Args:
        config: Settings.
        parts: Parts of a key frame that are given; see `memenvs.verbalization.encoding.PARTS`.

    Raises:
        ValueError: The memory has no method `vectors`, or a setting of it is not allowed.
    """

    def __init__(self, config: AnswererConfig, parts: Sequence[str]) -> None:
        super().__init__()
        self.config = config
        self.memory: Memory = make_memory(config.memory, config.dim, **config.memory_kwargs)
        self.is_text_only = config.memory == "none"
        if not self.is_text_only and not hasattr(self.memory, "vectors"):
            raise ValueError(
                f"memory must be 'none' or one that has the method `vectors`, such as 'ct-lt', got {config.memory!r}"
            )
        self.codes = Codes()
        if not self.is_text_only:
            self.frames = FrameEmbedding(
                parts, SUB_WIDTH, LATENT_WIDTH, config.dim, config.symbol_encoding, config.dates
            )
        if config.reconstructs:
            self.episodes = EpisodeDecoder(
                config.dim, self.memory.output_dim, parts, len(SYMBOLS), per_vector=not self.memory.bounded
            )
        if config.freeze_memory:
            for part in self.memory_parts().values():
                part.requires_grad_(False)

    def memory_parts(self) -> dict[str, nn.Module]:
        """Return what makes the vectors of the memory: itself, shared vectors and embedding."""
        embedding = {} if self.is_text_only else {"frames": self.frames}
        return {"memory": self.memory, "codes": self.codes, **embedding}

    def encode(self, frames: Mapping[str, Tensor], mask: Tensor) -> tuple[Tensor, Tensor]:
        """Encode histories.

        Args:
            frames: Part -> (B, T, ...); each history ends with the last key frame.
            mask: bool, (B, T); True where there is a key frame.

        Returns:
            float, (B, M, dim), vectors of the memory, and their mask, bool, (B, M).
        """
        if self.is_text_only:
            vectors = next(self.parameters()).new_zeros(len(mask), 1, self.memory.output_dim)
            return vectors, torch.ones_like(vectors[..., 0], dtype=torch.bool)
        start = torch.zeros_like(mask)
        start[:, 1:] = mask[:, 1:] & ~mask[:, :-1]
        start[:, 0] = True
        _, state = self.memory(StepInputs(self.frames(self.codes, frames, mask), start, start), None, last=1)
        vectors, is_there = self.memory.vectors(state)  # type: ignore[operator]
        return vectors, is_there & mask[:, -1:]

    def reconstruction_loss(
        self, vectors: Tensor, is_there: Tensor, frames: Mapping[str, Tensor], mask: Tensor, seed: int
    ) -> Tensor:
        """Compute the loss of the auto-encoder; see `EpisodeDecoder.loss`.

        Args:
            vectors: float, (B, M, dim); vectors of the memory, from `encode`.
            is_there: bool, (B, M); their mask.
            frames: Part -> (B, T, ...); as in `encode`.
            mask: bool, (B, T); True where there is a key frame.
            seed: Seed of the key frames that the decoder does not see.
        """
        generator = torch.Generator().manual_seed(seed)
        return self.episodes.loss(vectors, is_there, self.frames(self.codes, frames, mask), frames, mask, generator)
