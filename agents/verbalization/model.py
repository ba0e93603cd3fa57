"""Model that answers questions in slots: a memory of key frames, then a head that reads it."""

from __future__ import annotations

from collections.abc import Sequence

from memenvs.agents.verbalization.answer_head import AnswerHead
from memenvs.agents.verbalization.config import AnswererConfig
from memenvs.agents.verbalization.history_encoder import HistoryEncoder


class Answerer(HistoryEncoder):
    """Memory over key frames, and a head that answers structured questions from its vectors.

    Args:
        config: Settings.
        parts: Parts of a key frame that are given; see `memenvs.verbalization.encoding.PARTS`.

    Raises:
        ValueError: As `HistoryEncoder`.
    """

    def __init__(self, config: AnswererConfig, parts: Sequence[str]) -> None:
        super().__init__(config, parts)
        self.head = AnswerHead(config, self.memory.output_dim)
