"""The closed lists of names as regular expressions, longest first, and their symbols."""

from __future__ import annotations

import re

from memenvs.verbalization.symbols import HANDS, LOCATIONS, OBJECT_ALIASES, OBJECTS

#: Symbol of each spoken name.
OBJECT_SYMBOLS = {name: symbol for symbol, name in OBJECTS.items()} | OBJECT_ALIASES
LOCATION_SYMBOLS = {location.spoken: symbol for symbol, location in LOCATIONS.items()}
HAND_SYMBOLS = {name: symbol for symbol, name in HANDS.items()}


def _alternatives(names: dict[str, str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True)).replace("\\ ", " ")


#: Regular expressions without groups, for lower-case text. Names are whole words, so that "oil" is not in "oils".
OBJECT = rf"(?:the )?\b(?:{_alternatives(OBJECT_SYMBOLS)})\b"
LOCATION = rf"(?:the )?\b(?:{_alternatives(LOCATION_SYMBOLS)})\b"
HAND = rf"(?:the |my )?\b(?:{_alternatives(HAND_SYMBOLS)})\b"


def object_symbol(name: str | None) -> str | None:
    """Return the symbol of an object's name, with or without "the"; None of None."""
    return None if name is None else OBJECT_SYMBOLS[name.removeprefix("the ")]


def location_symbol(name: str | None) -> str | None:
    """Return the symbol of a location's name, with or without "the"; None of None."""
    return None if name is None else LOCATION_SYMBOLS[name.removeprefix("the ")]


def hand_symbol(name: str | None) -> str | None:
    """Return the symbol of a hand's name, with or without "the"; None of None."""
    return None if name is None else HAND_SYMBOLS[name.removeprefix("the ").removeprefix("my ")]


def normalise(text: str) -> str:
    """Return lower-case text with single spaces and without a full stop at the end."""
    text = " ".join(text.lower().split())
    return re.sub(r" +([.,:?!])", r"\1", text).rstrip(".!? ")
