"""Settings of the models that answer questions about a robot's days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from memenvs.agents.algorithms.supervised_config import SupervisedConfig
from memenvs.checks import check_fields, check_int, is_int

Dates = Literal["periodic", "integers"]
SymbolEncoding = Literal["embedding", "index_linear"]
Answers = Literal["structured", "text"]


@dataclass(frozen=True, kw_only=True)
class QuestionConfig(SupervisedConfig):
    """Settings of the learner of question answering, with the defaults of the study.

    They are those of `SupervisedConfig`. A batch is of histories, with `AnswererConfig.questions` questions about each.
    """

    learning_rate: float = 2e-3
    final_learning_rate: float | None = 0.0
    warmup_steps: int = 150
    max_grad_norm: float = 1.0
    validation_episodes: int = 100


@dataclass(frozen=True, kw_only=True)
class AnswererConfig:
    """Settings of `Answerer` and `TextAnswerer`.

    Attributes:
        answers: "structured": a head that answers in slots. "text": a T5 that answers in words.
        text: Fields of `TextConfig`; for answers in words alone.
        memory: Memory that reads the key frames and gives its vectors: "lstm-on", "lstm-o1", "ct" and its relatives;
            or "none", one vector of zeros, so that only the question is known (text-only).
        memory_kwargs: Its settings.
        dim: Width of an embedded key frame; >= 1.
        symbol_encoding: "embedding": a table of vectors, and the mean of them over the goal. "index_linear": a linear
            layer over the numbers of the symbols, as in the work before the thesis.
        dates: "periodic": sines and cosines of day and time of day. "integers": a linear layer over the seven fields.
        head_dim: Width of the head of structured answers; divisible by `head_heads`.
        head_heads: Attention heads of the head; >= 1.
        head_layers: Layers of the head that attend to the memory; >= 1.
        questions: Questions about each history of a batch, which share its memory; >= 1.
        curriculum: Numbers of the batches from which on the next longer histories take part; empty: all from the start.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.
    """

    answers: Answers = "structured"
    text: dict[str, Any] = field(default_factory=dict)
    memory: str = "ct-lt"
    memory_kwargs: dict[str, Any] = field(default_factory=dict)
    dim: int = 64
    symbol_encoding: SymbolEncoding = "embedding"
    dates: Dates = "periodic"
    head_dim: int = 96
    head_heads: int = 4
    head_layers: int = 3
    questions: int = 16
    curriculum: Sequence[int] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("dim", "head_dim", "head_heads", "head_layers", "questions"):
            check_int(name, getattr(self, name), at_most=2**16)
        if self.head_dim % self.head_heads:
            raise ValueError(f"head_heads must divide head_dim ({self.head_dim}), got {self.head_heads}")
        if self.text and self.answers != "text":
            raise ValueError(f"text must be empty unless answers is 'text', got {self.text!r}")
        steps = list(self.curriculum) if not isinstance(self.curriculum, str) else [None]
        if not all(is_int(step) and step >= 0 for step in steps) or steps != sorted(steps):
            raise ValueError(f"curriculum must be ascending numbers of batches, got {self.curriculum!r}")
