"""Questions and answers as numbers of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np

from memenvs.agents.papers.emv.slots import ORDERED, clauses_to_learn
from memenvs.agents.papers.emv.t5 import EOS, PAD
from memenvs.verbalization.dialogs import Dialogs
from memenvs.verbalization.language.facts import Clause
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.parser import parse_answer
from memenvs.verbalization.language.sampler import QuestionAnswer
from memenvs.verbalization.language.speech import make_answer
from memenvs.verbalization.language.times import TimeReference, moment_forms
from memenvs.verbalization.language.tokenizer import TOKENIZER, query_text, vocabulary_fingerprint

#: Texts that are kept once they were encoded, and histories whose logs are.
_KEPT_TEXTS, _KEPT_LOGS = 131_072, 256


class TextTokenizer(Protocol):
    """Encodes texts as numbers; 1 ends a text, and 0 is padding."""

    def __len__(self) -> int: ...

    def encode(self, text: str) -> list[int]:
        """Encode a text; its last number is 1."""

    def decode(self, numbers: Iterable[int]) -> str:
        """Decode the numbers before the first 1."""

    @property
    def fingerprint(self) -> str:
        """Name that differs between vocabularies."""


class PublishedTokenizer:
    """Tokenizer of a published T5, through `transformers`.

    Nothing is downloaded, and no code of the folder is executed.

    Args:
        folder: Folder with the files of the tokenizer.

    Raises:
        ImportError: The extra `text` is not installed.
        FileNotFoundError: There is no such folder.
        ValueError: It holds no tokenizer, or one that does not pad with 0 and end with 1.
    """

    def __init__(self, folder: str | Path) -> None:
        if not Path(folder).is_dir():
            raise FileNotFoundError(f"no folder of a T5 at {folder}")
        try:
            from transformers import AutoTokenizer
        except ImportError as error:
            raise ImportError('weights of a T5 need transformers: pip install "memenvs[text]"') from error
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = str(error).strip().splitlines()
            raise ValueError(f"{folder}: must have a tokenizer ({reason[0] if reason else error!r})") from None
        found = (self._tokenizer.pad_token_id, self._tokenizer.eos_token_id)
        if found != (PAD, EOS):
            raise ValueError(f"{folder}: the tokenizer must pad with {PAD} and end with {EOS}, got {found}")

    def __len__(self) -> int:
        return len(self._tokenizer)

    def encode(self, text: str) -> list[int]:
        """See `TextTokenizer`."""
        numbers = list(self._tokenizer.encode(text, add_special_tokens=False))
        return [*numbers, EOS]

    def decode(self, numbers: Iterable[int]) -> str:
        """See `TextTokenizer`."""
        numbers = list(numbers)
        end = numbers.index(EOS) if EOS in numbers else len(numbers)
        return str(self._tokenizer.decode(numbers[:end], skip_special_tokens=True))

    @cached_property
    def fingerprint(self) -> str:
        """First 16 digits of the SHA-256 of the vocabulary."""
        return vocabulary_fingerprint(sorted(self._tokenizer.get_vocab().items()))


def make_tokenizer(weights: str | None) -> TextTokenizer:
    """Make the tokenizer of a folder of weights, or that of the grammar; see `TextConfig`."""
    return TOKENIZER if weights is None else PublishedTokenizer(weights)


def dated_time(moment: int, now: int) -> TimeReference:
    """Name a moment by its minute and, before today, by its date, which a memory holds."""
    forms = moment_forms(moment, now)
    form = next(form for form in forms if form.precision == "minute" and form.family != "minutes")
    return form.phrase(len(form.phrases) - 1)


def target_text(log: Log, qa: QuestionAnswer, hands: bool) -> str:
    """Return the words to learn: the first wording of `clauses_to_learn`, in a fixed order.

    Args:
        log: The history.
        qa: Question and gold answer.
        hands: Whether answers state with which hand an object was grasped.
    """

    def say(clauses: tuple[Clause, ...]) -> str:
        in_order = clauses if qa.kind in ORDERED else tuple(sorted(clauses, key=_names))
        return make_answer(qa.kind, qa.question.family, in_order, 0).text

    def through_words(clauses: tuple[Clause, ...]) -> tuple[Clause, ...] | None:
        return parse_answer(qa.kind, say(clauses), qa.now)

    return say(clauses_to_learn(log, qa, hands, dated_time, through_words))


def _names(clause: Clause) -> list[str]:
    return [str(value or "") for value in clause]


class Texts:
    """Questions and answers about histories, encoded when they are first needed.

    Args:
        dialogs: Histories and questions.
        tokenizer: Encodes them.
    """

    def __init__(self, dialogs: Dialogs, tokenizer: TextTokenizer) -> None:
        self._dialogs, self._tokenizer = dialogs, tokenizer
        self._hands = dialogs.config.language().hands
        self._log = lru_cache(_KEPT_LOGS)(lambda number: Log(dialogs.history(number)))
        self.pair = lru_cache(_KEPT_TEXTS)(self._encode)

    def _encode(self, number: int, question: int) -> tuple[np.ndarray, np.ndarray]:
        """Encode a question with its time, and its answer to learn, int64 each."""
        qa = self._dialogs.question(number, question).qa
        texts = query_text(qa.now, qa.question.text), target_text(self._log(number), qa, self._hands)
        query, answer = (np.array(self._tokenizer.encode(text)) for text in texts)
        return query, answer


def pad(rows: list[np.ndarray]) -> np.ndarray:
    """Stack rows of numbers, int64, (B, longest); padded with 0."""
    stacked = np.full((len(rows), max(map(len, rows))), PAD, np.int64)
    for i, row in enumerate(rows):
        stacked[i, : len(row)] = row
    return stacked
