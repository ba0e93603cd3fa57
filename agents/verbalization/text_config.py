"""Settings of answers in words."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from memenvs.agents.verbalization.t5 import T5Config
from memenvs.checks import check_fields, choices_for


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    """Settings of `TextAnswerer`.

    Attributes:
        weights: Folder of a published T5 and its tokenizer, as Hugging Face writes them; it needs the extra `text`.
            None: a T5 with new weights, and the small tokenizer of the grammar.
        sizes: Fields of `T5Config` but for the number of tokens; only without `weights`, which have sizes of their own.
        resolved_times: If True, the decoder also attends to vectors of the time that a question names and of the
            present. If False, it has the words of the question alone, as in the thesis.
        retrieval: If True, the head of the run that `RunConfig.encoder_from` names, whose answers are structured, reads
            the memory first, and the decoder also attends to the slots that it fills; see `Retrieval`. It needs
            `resolved_times` and `AnswererConfig.freeze_memory`.

    Raises:
        TypeError: A value of another type, or an unknown size.
        ValueError: A value out of range, sizes beside weights, or retrieval without resolved times.
    """

    weights: str | None = None
    sizes: dict[str, Any] = field(default_factory=dict)
    resolved_times: bool = True
    retrieval: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if self.weights is not None and self.sizes:
            raise ValueError(f"sizes must be empty with weights, which have their own, got {self.sizes!r}")
        if self.retrieval and not self.resolved_times:
            raise ValueError("retrieval needs resolved_times=True, since its head reads them, got False")
        known = [each.name for each in fields(T5Config) if each.name != "vocab_size"]
        for name in self.sizes:
            if name not in known:
                raise TypeError(f"unknown size {name!r} of T5; {choices_for(name, known)}")

    def t5_config(self, vocab_size: int) -> T5Config:
        """Return the sizes of the T5; `vocab_size` is the number of tokens of the tokenizer.

        Raises:
            FileNotFoundError: The folder of the weights has no config.json.
            ValueError: A size is out of range, or the tokenizer has more tokens than the weights.
        """
        if self.weights is None:
            return T5Config(vocab_size=vocab_size, **self.sizes)
        config = T5Config.read(self.weights)
        if vocab_size > config.vocab_size:
            raise ValueError(
                f"{self.weights}: the tokenizer must have at most the {config.vocab_size} tokens of the weights, "
                f"got {vocab_size}"
            )
        return config
