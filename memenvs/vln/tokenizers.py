"""Tokenizers: whole words, or BERT's word pieces from its vocabulary file."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from memenvs.json_records import read_lines
from memenvs.vln.worlds.base import NAVIGATOR, ORACLE, TARGET

PAD, UNKNOWN, SEPARATOR = "[PAD]", "[UNK]", "[SEP]"
MARKERS = (NAVIGATOR, ORACLE, TARGET)
TOKENIZERS = ("words", "wordpiece")
_WORD = re.compile(r"\[(?:NAV|ORA|TAR)\]|\w+|[^\w\s]")
_LONGEST_WORD = 100  # characters; longer words are unknown to BERT


def split_words(text: str) -> list[str]:
    """Split into lower-case words and punctuation marks, without accents; markers stay."""
    if not text.isascii():
        text = "".join(mark for mark in unicodedata.normalize("NFD", text) if unicodedata.category(mark) != "Mn")
    spaced = text.replace("_", " _ ")  # a punctuation mark to BERT, though the regular expression's \w includes it
    return [word if word in MARKERS else word.lower() for word in _WORD.findall(spaced)]


def frequent_words(texts: Iterable[str], at_least: int = 5) -> tuple[str, ...]:
    """Words that occur `at_least` times, by falling frequency, then alphabetically."""
    counts = Counter(word for text in texts for word in split_words(text) if word not in MARKERS)
    kept = [word for word, count in counts.items() if count >= at_least]
    return tuple(sorted(kept, key=lambda word: (-counts[word], word)))


class Tokenizer(ABC):
    """Encode texts as token ids: 0 is padding, the last token of a text is the separator.

    Attributes:
        tokens: The vocabulary; a token's id is its index.
    """

    tokens: tuple[str, ...]

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tuple(tokens)
        self._ids = {token: k for k, token in enumerate(tokens)}

    @property
    def fingerprint(self) -> str:
        """Hash of the vocabulary and its order, 16 hexadecimal digits."""
        return hashlib.sha256("\n".join(self.tokens).encode()).hexdigest()[:16]

    @abstractmethod
    def pieces(self, text: str) -> list[str]:
        """Split a text into tokens, without the separator."""

    def encode(self, text: str, length: int, *, too_long: str = "cut_end") -> np.ndarray:
        """Encode a text.

        Args:
            text: The text.
            length: Size of the result, separator included; >= 2.
            too_long: For longer texts: "cut_end" drops the last tokens, "cut_start" the first ones, "error" raises.

        Returns:
            Token ids, int64, (length,); padded with 0.

        Raises:
            ValueError: The text is too long.
        """
        pieces = self.pieces(text)
        if len(pieces) >= length:
            if too_long == "error":
                raise ValueError(
                    f"the text has {len(pieces) + 1} tokens with the separator, max_tokens is {length}: {text!r}"
                )
            pieces = pieces[: length - 1] if too_long == "cut_end" else pieces[len(pieces) - length + 1 :]
        unknown = self._ids[UNKNOWN]
        ids = np.zeros(length, np.int64)
        ids[: len(pieces) + 1] = [self._ids.get(piece, unknown) for piece in (*pieces, SEPARATOR)]
        return ids

    def decode(self, ids: np.ndarray) -> str:
        """Join the tokens of these ids by spaces, without padding."""
        return " ".join(self.tokens[id] for id in ids.tolist() if id)


class WordTokenizer(Tokenizer):
    """Whole words; words outside the vocabulary are [UNK].

    Args:
        words: The vocabulary, as `split_words` returns words.
    """

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__((PAD, UNKNOWN, SEPARATOR, *MARKERS, *words))

    def pieces(self, text: str) -> list[str]:
        """Words and punctuation marks."""
        return split_words(text)


class WordPieceTokenizer(Tokenizer):
    """BERT's word pieces (uncased).

    Each word is split from left to right into the longest pieces of the vocabulary; later pieces begin with "##".
    The three markers of dialogues are added at the end of the vocabulary.

    Args:
        tokens: BERT's vocabulary in its order.

    Raises:
        ValueError: [PAD] is not the first token, or [UNK] or [SEP] is not there.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        if not tokens or tokens[0] != PAD or not {UNKNOWN, SEPARATOR} <= set(tokens):
            raise ValueError(f"a WordPiece vocabulary begins with {PAD} and has {UNKNOWN} and {SEPARATOR}")
        super().__init__((*tokens, *(marker for marker in MARKERS if marker not in tokens)))

    @classmethod
    def from_file(cls, path: Path) -> WordPieceTokenizer:
        """Read a vocabulary with one token per line; may be gzipped.

        Raises:
            FileNotFoundError: The file is not there.
            ValueError: It is no vocabulary.
        """
        if not path.is_file():
            raise FileNotFoundError(
                f"no file {str(path)!r}: tokenizer 'wordpiece' needs the vocabulary of bert-base-uncased there; "
                "tokenizer 'words' needs nothing"
            )
        tokens = [line.rstrip("\n") for _, line in read_lines(path)]
        try:
            return cls(tokens)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def pieces(self, text: str) -> list[str]:
        """Pieces of each word, or [UNK] where no piece fits."""
        return [piece for word in split_words(text) for piece in self._pieces_of(word)]

    def _pieces_of(self, word: str) -> list[str]:
        if word in self._ids:
            return [word]
        if len(word) > _LONGEST_WORD:
            return [UNKNOWN]
        pieces, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end] if start == 0 else "##" + word[start:end]
                if piece in self._ids:
                    pieces.append(piece)
                    start = end
                    break
            else:
                return [UNKNOWN]
        return pieces
