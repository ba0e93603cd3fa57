"""Names and numbers of the language: words, regular expressions, symbols."""

from __future__ import annotations

import re

from memenvs.verbalization.symbols import HANDS, LOCATIONS, OBJECT_ALIASES, OBJECTS

UNITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
TENS = {20: "twenty", 30: "thirty", 40: "forty"}
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_VALUES = {word: value for value, word in enumerate(UNITS)} | {word: value for value, word in TENS.items()}
#: Regular expression of a number in words or digits, of lower-case text.
NUMBER = r"(?:\d{1,6}|" + "|".join(sorted(_VALUES, key=len, reverse=True)) + ")"
#: Symbol of each spoken name.
OBJECT_SYMBOLS = {name: symbol for symbol, name in OBJECTS.items()} | OBJECT_ALIASES
LOCATION_SYMBOLS = {location.spoken: symbol for symbol, location in LOCATIONS.items()}
HAND_SYMBOLS = {name: symbol for symbol, name in HANDS.items()}


def spell(number: int) -> str:
    """Return a number in words up to twelve, else in digits."""
    return UNITS[number] if number < len(UNITS) else str(number)


def spell_tens(number: int) -> str:
    """Return 20, 30 and 40 in words too."""
    return TENS.get(number) or spell(number)


def unspell(word: str) -> int:
    """Return the value of a number in words or digits; the inverse of both."""
    return _VALUES[word] if word in _VALUES else int(word)


def counted(number: int, noun: str) -> str:
    """Return such as "one day" or "three days"."""
    return f"{spell(number)} {noun}{'s' * (number != 1)}"


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
