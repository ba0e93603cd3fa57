"""Numbers in words, up to twelve, and the names of months and weekdays."""

from __future__ import annotations

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
