"""A small tokenizer: whole words, punctuation marks and digits of what the grammar can say.

Its vocabulary is a function of the grammar alone, so that `GRAMMAR_VERSION` names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha256

from memenvs.verbalization.dates import as_datetime
from memenvs.verbalization.language import speech
from memenvs.verbalization.language.names import MONTHS, TENS, UNITS, WEEKDAYS
from memenvs.verbalization.language.times import DAY_TIMES
from memenvs.verbalization.language.wordings import FAMILIES
from memenvs.verbalization.symbols import HANDS, LOCATIONS, OBJECT_ALIASES, OBJECTS

PAD, END, UNKNOWN = 0, 1, 2
SPECIAL = ("<pad>", "</s>", "<unk>")
#: A digit right after a digit or a colon.
INNER = "##"
#: Most tokens of a question with its time, and of an answer.
QUERY_TOKENS, ANSWER_TOKENS = 64, 128
_PIECE = re.compile(r"[a-z]+|\d|[^\w\s]")


def query_text(now: int, question: str) -> str:
    """Put the time of a question, seven integers, before it.

    Args:
        now: Second since 2020-01-01 00:00:00.
        question: Its words.

    Returns:
        Such as "2020 07 29 3 14 56 07 where were you at noon?"; 3 is Wednesday.
    """
    date = as_datetime(now)
    return f"{date:%Y %m %d} {date.isoweekday()} {date:%H %M %S} {question}"


def grammar_texts() -> Iterator[str]:
    """Yield texts that have every word of the grammar."""
    for family in FAMILIES.values():
        yield from (re.sub(r"{\w+}", " ", wording) for wording in family.wordings)
    yield from (location.spoken for location in LOCATIONS.values())
    yield from (*OBJECTS.values(), *OBJECT_ALIASES, *HANDS.values())
    yield from (*UNITS, *TENS.values(), *MONTHS, *(month[:3] for month in MONTHS), *WEEKDAYS)
    yield from (text for _, text in DAY_TIMES)
    yield "today yesterday days ago at about o clock am pm on in the last hours minutes hour minute seconds second day"
    yield "this week month first last see touch exactly times only once never later then and, : ? ."
    yield from (word for forms in speech.FORMS.values() for word in forms)
    yield from (*speech.NO_PROBLEM_TEXTS, *speech.WENT_WELL_TEXTS, *speech.NOTHING_TEXTS, *speech.DENIAL_TEXTS)
    yield speech.FAILED + " yes i just arrived was on the way to put down it with is did took"  # word: ok
    yield "i think you are talking about the that"


class GrammarTokenizer:
    """Encodes texts of the grammar as numbers.

    Attributes:
        tokens: The vocabulary; the number of a token is its index.
    """

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The vocabulary, in alphabetical order after the special tokens."""
        words = {piece for text in grammar_texts() for piece in _PIECE.findall(text.lower()) if not piece.isdigit()}
        return (*SPECIAL, *"0123456789", *(INNER + digit for digit in "0123456789"), *sorted(words))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def pieces(self, text: str) -> list[str]:
        """Split a text into tokens, known or not."""
        text, pieces = text.lower(), []
        for match in _PIECE.finditer(text):
            before = text[match.start() - 1] if match.start() else " "
            inner = match[0].isdigit() and (before.isdigit() or before == ":")
            pieces.append(INNER * inner + match[0])
        return pieces

    def encode(self, text: str) -> list[int]:
        """Encode a text; `END` is its last number."""
        return [self._ids.get(piece, UNKNOWN) for piece in self.pieces(text)] + [END]

    def decode(self, numbers: Iterable[int]) -> str:
        """Decode the numbers before the first `END`, in lower case; `PAD` says nothing."""
        text = ""
        for number in numbers:
            if number == END:
                break
            if number == PAD:
                continue
            token = self.tokens[number]
            attached = token.startswith(INNER) or (not token[0].isalnum() and number != UNKNOWN)
            text += f"{' ' * (not attached and bool(text))}{token.removeprefix(INNER)}"
        return text

    @cached_property
    def fingerprint(self) -> str:
        """First 16 digits of the SHA-256 of the vocabulary."""
        return sha256(repr(self.tokens).encode()).hexdigest()[:16]

    def unknown_words(self, text: str) -> list[str]:
        """List the words of a text that the vocabulary does not have, in order."""
        return list(dict.fromkeys(piece for piece in self.pieces(text) if piece not in self._ids))


TOKENIZER = GrammarTokenizer()
