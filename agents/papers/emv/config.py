"""Settings of the models that answer questions about a robot's days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from memenvs.agents.algorithms.supervised_config import SupervisedConfig
from memenvs.agents.sizes import check_largest
from memenvs.checks import check_fields, check_int, choices_for, is_int

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
    """Settings of `SlotAnswerer` and `TextAnswerer`.

    Attributes:
        answers: "structured": a head that answers in slots. "text": a T5 that answers in words.
        text: Fields of `TextConfig`; for answers in words alone.
        memory: Memory that reads the key frames. "lstm-on", "lstm-o1", "ct" and its relatives give their vectors; any
            other one that needs no poses, places or moves gives a single vector, its features after the last key frame.
            "none" is one vector of zeros, so that only the question is known (text-only).
        memory_kwargs: Its settings.
        size: "small", or the number of its weights, about; see `memenvs.agents.policies.small_sizes`. None: its
            defaults.
        dim: Width of an embedded key frame; >= 1.
        head_dim: Width of the head of structured answers, which `TextConfig.retrieval` has, too; divisible by
            `head_heads`.
        head_heads: Attention heads of the head; >= 1.
        head_layers: Layers of the head that attend to the memory; >= 1.
        freeze_memory: If True, memory, embedding of key frames and shared vectors keep the weights of the run that
            `RunConfig.encoder_from` names. With `TextConfig.retrieval` so does the head.
        questions: Questions about each history of a batch, which share its memory; >= 1.
        curriculum: Numbers of the batches from which on the next longer histories take part; empty: all from the start.
        rename: If True, objects and places of a history get other names in each batch of training, so that nothing is
            learned of one by its name, such as how long the robot takes to put it down. Answers in words never have
            other names.
        weight_by_length: If True, histories of n episodes are drawn n times as often in training as those of one, so
            that long ones, in which old content must be kept, are not rare. If False, each length is drawn alike.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.
    """

    answers: Answers = "structured"
    text: dict[str, Any] = field(default_factory=dict)
    memory: str = "ct-lt"
    memory_kwargs: dict[str, Any] = field(default_factory=dict)
    size: str | int | None = None
    dim: int = 64
    head_dim: int = 96
    head_heads: int = 4
    head_layers: int = 2
    freeze_memory: bool = False
    questions: int = 16
    curriculum: Sequence[int] = ()
    rename: bool = True
    weight_by_length: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("dim", "head_dim", "head_heads", "head_layers", "questions"):
            check_int(name, getattr(self, name))
        check_largest(vars(self))
        if self.head_dim % self.head_heads:
            raise ValueError(f"head_heads must divide head_dim ({self.head_dim}), got {self.head_heads}")
        if self.freeze_memory and self.memory == "none":
            raise ValueError("freeze_memory must be False without a memory ('none'), got True")
        if self.text and self.answers != "text":
            raise ValueError(f"text must be empty unless answers is 'text', got {self.text!r}")
        if not self.rename and self.answers == "text":
            raise ValueError("rename must be left out with answers 'text', which have no other names, got False")
        steps = list(self.curriculum) if not isinstance(self.curriculum, str) else [None]
        if not all(is_int(step) and step >= 0 for step in steps) or steps != sorted(steps):
            raise ValueError(f"curriculum must be ascending numbers of batches, got {self.curriculum!r}")


@dataclass(frozen=True, kw_only=True)
class T5Sizes:
    """Sizes of a T5 with new weights.

    Attributes:
        d_model: Width of token embeddings; >= 1.
        d_ff: Width of the hidden layer of a feed-forward block; >= 1.
        d_kv: Width of an attention head; >= 1.
        num_layers: Layers of the encoder, and of the decoder; >= 1.
        num_heads: Attention heads; >= 1.
        dropout_rate: Probability of dropout in learning, 0 to below 1.
    """

    d_model: int = 128
    d_ff: int = 512
    d_kv: int = 32
    num_layers: int = 2
    num_heads: int = 4
    dropout_rate: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("d_model", "d_ff", "d_kv", "num_layers", "num_heads"):
            check_int(name, getattr(self, name))
        check_largest(vars(self))
        if not 0.0 <= self.dropout_rate < 1.0:
            raise ValueError(f"dropout_rate must be 0 to below 1, got {self.dropout_rate}")


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """Settings of `TextAnswerer`.

    Attributes:
        sizes: Fields of `T5Sizes`.
        retrieval: If True, the head of the run that `RunConfig.encoder_from` names, whose answers are structured, reads
            the memory first, and the decoder also attends to the slots that it fills; see `Retrieval`. It needs
            `AnswererConfig.freeze_memory`.

    Raises:
        TypeError: A value of another type, or an unknown size.
        ValueError: A value out of range.
    """

    sizes: dict[str, Any] = field(default_factory=dict)
    retrieval: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        choices = [size.name for size in fields(T5Sizes)]
        for name in self.sizes:
            if name not in choices:
                raise TypeError(f"unknown size {name!r} of T5; {choices_for(name, choices)}")
        T5Sizes(**self.sizes)
