"""Grammars made of terminals, concatenations and alternatives, whose strings are numbered.

A string is drawn by its number, so each string of a grammar is equally likely: an alternative is chosen in proportion
to the number of strings below it. A string that two branches share is counted once for each.

Source:
    Bärmann (2021), "Episodic memory verbalization", question grammar.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from math import prod

import numpy as np


class Grammar(ABC):
    """A finite set of numbered strings.

    Attributes:
        count: Number of strings.
    """

    __slots__ = ("count",)
    count: int

    @abstractmethod
    def string(self, number: int) -> str:
        """Return string `number`, 0 ... count - 1."""

    def sample(self, rng: np.random.Generator) -> str:
        """Draw a string; each is equally likely."""
        return self.string(int(rng.integers(self.count)))

    def enumerate(self) -> Iterator[str]:
        """Yield all strings in the order of their numbers."""
        return (self.string(number) for number in range(self.count))


class Terminal(Grammar):
    """A grammar of one string.

    Args:
        text: The string.
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text
        self.count = 1

    def string(self, number: int) -> str:
        """Return the text."""
        return self.text


class Alternative(Grammar):
    """The strings of one grammar after those of the other.

    Args:
        *options: Grammars, or texts; at least one.
    """

    __slots__ = ("options",)

    def __init__(self, *options: Grammar | str) -> None:
        self.options = as_grammars(options)
        self.count = sum(option.count for option in self.options)

    def string(self, number: int) -> str:
        """Return string `number`, 0 ... count - 1."""
        for option in self.options:
            if number < option.count:
                return option.string(number)
            number -= option.count
        raise IndexError(f"number must be below {self.count}")


class Concatenation(Grammar):
    """Every combination of one string of each part; the last part changes fastest.

    Args:
        *parts: Grammars, or texts.
    """

    __slots__ = ("parts",)

    def __init__(self, *parts: Grammar | str) -> None:
        self.parts = as_grammars(parts)
        self.count = prod(part.count for part in self.parts)

    def string(self, number: int) -> str:
        """Return string `number`, 0 ... count - 1."""
        texts = []
        for part in reversed(self.parts):
            number, own = divmod(number, part.count)
            texts.append(part.string(own))
        return "".join(reversed(texts))


def as_grammars(parts: Sequence[Grammar | str]) -> tuple[Grammar, ...]:
    """Replace texts by terminals."""
    return tuple(Terminal(part) if isinstance(part, str) else part for part in parts)


def optional(part: Grammar | str) -> Alternative:
    """Make the grammar of the strings of `part` and the empty string."""
    return Alternative("", part)
