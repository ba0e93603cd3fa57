"""Time references: phrases for a moment or a period, and the seconds that they denote.

A phrase denotes all seconds that it could have been made for: "at 10 o clock" is 9:30 to 10:30, as it is the nearest
full hour, and "in the afternoon" is 14:00 to 18:00.

Source:
    Bärmann, hierarchical-emv (2024), time references of its question grammar.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from memenvs.verbalization.dates import DAY, as_datetime, as_seconds
from memenvs.verbalization.language.names import MONTHS, NUMBER, WEEKDAYS, spell, unspell

HOUR, MINUTE = 3600, 60
#: "About" with minutes, which are multiples of five, means this many minutes around.
ABOUT_MINUTES = 2
#: First hour of each phrase for a time of the day.
DAY_TIMES = (
    (0, "in the morning"),
    (10, "before noon"),
    (12, "at noon"),
    (14, "in the afternoon"),
    (18, "in the evening"),
)
#: A date this many days before the first episode may still be one of last year.
BEFORE_OLDEST = 30
#: From this many days on, a date without its year would be that of another year.
LONGEST_ABSOLUTE = 365

#: How finely a phrase names a moment, from coarse to fine; "span" is an interval that ends now.
Precision = Literal["span", "day", "part", "hour", "minute"]
PRECISIONS: tuple[Precision, ...] = ("span", "day", "part", "hour", "minute")
Family = Literal["absolute", "today", "yesterday", "days", "hours", "minutes", "week", "month", "period"]


class TimeReference(NamedTuple):
    """A phrase for a time and its meaning.

    Attributes:
        text: The phrase, such as "yesterday before noon".
        low: First second that it denotes, since 2020-01-01 00:00:00.
        high: The second after the last one.
        precision: How finely it names a moment.
        family: Which words name the day; "minutes", "hours" and "period" count back from now.
    """

    text: str
    low: int
    high: int
    precision: Precision
    family: Family

    def contains(self, second: int) -> bool:
        """Return True if the phrase denotes this second."""
        return self.low <= second < self.high

    def within(self, other: TimeReference) -> bool:
        """Return True if all that it denotes is denoted by the other one."""
        return other.low <= self.low and self.high <= other.high


class TimeForm(NamedTuple):
    """All phrases of one precision and family for a moment; each is equally likely."""

    phrases: tuple[str, ...]
    low: int
    high: int
    precision: Precision
    family: Family

    def phrase(self, number: int) -> TimeReference:
        """Make the reference with phrase `number`."""
        return TimeReference(self.phrases[number], *self[1:])


class FutureTimeError(ValueError):
    """A phrase denotes a time after the question."""


@cache
def day_time(hour: int) -> tuple[str, int, int]:
    """Return the phrase for the time of day of an hour, its first hour, the hour after its last."""
    ends = [start for start, _ in DAY_TIMES[1:]] + [24]
    return next((text, start, end) for (start, text), end in zip(DAY_TIMES, ends, strict=True) if hour < end)


def concatenations(*parts: tuple[str, ...]) -> tuple[str, ...]:
    """Concatenate one text of each part in every combination; the last part changes fastest."""
    return tuple(map("".join, product(*parts)))


@cache
def full_hour(hour: int) -> tuple[str, ...]:
    """List the phrases for a full hour, 0 ... 23."""
    digits = (f"{hour:02}", str(hour)) if hour < 10 else (str(hour),)
    clocks = (*(f"{number} o clock" for number in digits), f"{(hour - 1) % 12 + 1:02} {'AM' if hour < 12 else 'PM'}")
    return concatenations(("at ",), ("", "about "), clocks)


@cache
def _absolute_day(month: int, day: int) -> tuple[str, ...]:
    name = MONTHS[month - 1]
    names = (name,) if len(name) == 3 else (name, name[:3])
    return concatenations(("on ",), names, (f" {day} ",))


@cache
def _relative_day(days: int) -> tuple[str, ...]:
    if days < 2:
        return ("yesterday ",) if days else ("", "today ")
    return (f"{spell(days)} days ago ",)


def day_family(days: int) -> Family:
    """Return the family of relative phrases for a day this many days ago."""
    return ("today", "yesterday")[days] if days < 2 else "days"


def moment_forms(moment: int, now: int, *, relative_only: bool = False) -> list[TimeForm]:
    """List the phrases for a moment, by precision and family.

    Args:
        moment: Second since 2020-01-01 00:00:00; at most the last one of the day of `now`.
        now: Second at which the phrase is used.
        relative_only: Leave out phrases with a month.

    Returns:
        The forms; each denotes `moment`.
    """
    day_start = moment - moment % DAY
    days = now // DAY - moment // DAY
    hour, minute = divmod(moment % DAY // MINUTE, 60)
    rounded = hour + (minute >= 30)
    low = moment - moment % MINUTE
    clocks: list[tuple[tuple[str, ...], int, int, Precision]] = [
        ((f"at {hour:02}:{minute:02}",), low, low + MINUTE, "minute")
    ]
    if rounded < 24:
        middle = day_start + rounded * HOUR
        clocks.append((full_hour(rounded), max(day_start, middle - 1800), middle + 1800, "hour"))
    forms = []
    if not relative_only and 0 < days < LONGEST_ABSOLUTE:
        date = as_datetime(moment)
        prefix = _absolute_day(date.month, date.day)
        forms += [TimeForm(concatenations(prefix, clock[0]), *clock[1:], "absolute") for clock in clocks]
    text, first, end = day_time(hour)
    clocks.append(((text,), day_start + first * HOUR, day_start + end * HOUR, "part"))
    prefix, family = _relative_day(days), day_family(days)
    forms += [TimeForm(concatenations(prefix, clock[0]), *clock[1:], family) for clock in clocks]
    is_past_today = days == 0 and moment <= now
    return forms + _span_forms(moment, now) if is_past_today else forms


def _span_forms(moment: int, now: int) -> list[TimeForm]:
    """Phrases that count back from now, for a moment of the same day. They count minutes of the clock."""
    minutes = now // MINUTE - moment // MINUTE
    if minutes >= 30:
        hours = minutes // 60 + 1
        text = "in the last hour" if hours == 1 else f"in the last {spell(hours)} hours"
        return [TimeForm((text,), *_last_hours(hours, now), "span", "hours")]
    roundings = [(minutes, 0, "")]
    rounded = 5 * round(minutes / 5)
    roundings += [(rounded, ABOUT_MINUTES, "about ")] if rounded else []
    return [
        TimeForm(
            (f"{about}{spell(n)} minute{'s' * (n != 1)} ago",),
            *_minutes_ago(n, around, now),
            "minute",
            "minutes",
        )
        for n, around, about in roundings
    ]


def _minutes_ago(minutes: int, around: int, now: int) -> tuple[int, int]:
    """Bounds of a minute of the clock, give or take a few."""
    low = (now // MINUTE - minutes - around) * MINUTE
    return low, low + (2 * around + 1) * MINUTE


def _last_hours(hours: int, now: int) -> tuple[int, int]:
    return (now // MINUTE - 60 * hours + 1) * MINUTE, now + 1


def draw_form(forms: list[TimeForm], rng: np.random.Generator) -> TimeReference:
    """Draw a phrase; each phrase of all forms is equally likely."""
    number = int(rng.integers(sum(len(form.phrases) for form in forms)))
    for form in forms:
        if number < len(form.phrases):
            break
        number -= len(form.phrases)
    return form.phrase(number)


def day_forms(day: int, now: int) -> list[TimeForm]:
    """List the phrases for a whole day, by its number since 2020-01-01."""
    days, bounds = now // DAY - day, (day * DAY, (day + 1) * DAY)
    text = ("today", "yesterday")[days] if days < 2 else f"{spell(days)} days ago"
    forms = [TimeForm((text,), *bounds, "day", day_family(days))]
    if 0 < days < LONGEST_ABSOLUTE:
        date = as_datetime(day * DAY)
        names = _absolute_day(date.month, date.day)
        forms.append(TimeForm(tuple(name.strip() for name in names), *bounds, "day", "absolute"))
    return forms


def period_forms(now: int, last_days: int) -> list[TimeForm]:
    """List the phrases for the periods that end now: this week, this month, the last days.

    Args:
        now: Second since 2020-01-01 00:00:00.
        last_days: Number of days of the last phrase, at least 2; today is the last of them.
    """
    today, date = now // DAY, as_datetime(now)
    starts = (
        ("this week", today - date.weekday(), "week"),
        ("this month", today - date.day + 1, "month"),
        (f"in the last {spell(last_days)} days", today - last_days + 1, "period"),
    )
    return [TimeForm((text,), max(0, day) * DAY, now + 1, "span", family) for text, day, family in starts]  # type: ignore[arg-type]


def clock_reference(now: int) -> TimeReference:
    """Name the time of day of a moment: "14:56"."""
    low = now - now % MINUTE
    return TimeReference(f"{now % DAY // HOUR:02}:{now % HOUR // MINUTE:02}", low, low + MINUTE, "minute", "today")


def date_reference(now: int, *, weekday: bool = False) -> TimeReference:
    """Name the day of a moment: "July 29", or "Wednesday"."""
    date, low = as_datetime(now), now - now % DAY
    text = WEEKDAYS[date.weekday()] if weekday else f"{MONTHS[date.month - 1]} {date.day}"
    return TimeReference(text, low, low + DAY, "day", "absolute")


_MONTH = "|".join(f"{name[:3].lower()}(?:{name[3:].lower()})?" for name in MONTHS)
_PART = "|".join(text for _, text in DAY_TIMES)
_DAY = (
    rf"(?:on )?(?P<month>{_MONTH}) (?P<date>\d\d?)"
    rf"|(?P<today>today)|(?P<yesterday>yesterday)|(?P<days>{NUMBER}) days? ago"
)
_CLOCK = (
    r"(?:at )?(?:(?P<hour>\d\d?):(?P<minute>\d\d)"
    r"|(?:about )?(?:(?P<oclock>\d\d?) o ?'?clock|(?P<half>\d\d?) ?(?P<m>[ap]m)))"
)
#: Regular expression of every time reference, for lower-case text; its groups are those of `_resolve`.
MOMENT = re.compile(rf"(?:(?:{_DAY})(?: (?=\S)|$))?(?:{_CLOCK}|(?P<part>{_PART}))?")
_SPAN = re.compile(
    rf"(?P<about>about )?(?P<minutes>{NUMBER}) minutes? ago|in the last (?:(?P<n>{NUMBER}) )?(?P<unit>hours?|days?)"
    r"|(?P<this>this) (?P<which>week|month)"
)
#: What names a time after the question, whatever it is.
_FUTURE = re.compile(
    rf"\b(?:tomorrow|next (?:hour|day|week|month|year)|in (?:a|an|{NUMBER}) (?:minute|hour|day|week|month)s?)\b"
)


def parse_time(text: str, now: int, *, oldest: int = 0) -> TimeReference:
    """Resolve a time reference.

    Args:
        text: The phrase; upper and lower case are the same.
        now: Second at which it is used.
        oldest: Second before which nothing happened; a date without its year that would be much older is a future one.

    Returns:
        The reference; `text` is the phrase as given.

    Raises:
        FutureTimeError: It denotes a time after `now`.
        ValueError: It is no time reference.
    """
    lower = " ".join(text.lower().split())
    if _FUTURE.search(lower):
        raise FutureTimeError(f"{text!r} lies in the future")
    span = _SPAN.fullmatch(lower)
    if span:
        return _resolve_span(text, span, now)
    match = MOMENT.fullmatch(lower)
    if not lower or not match:
        raise ValueError(f"{text!r} is no time reference")
    reference = _resolve(text, match, now, oldest)
    if reference.low > now:
        raise FutureTimeError(f"{text!r} lies in the future")
    return reference


def _resolve_span(text: str, match: re.Match[str], now: int) -> TimeReference:
    if match["minutes"]:
        n, around = unspell(match["minutes"]), ABOUT_MINUTES * bool(match["about"])
        return TimeReference(text, *_minutes_ago(n, around, now), "minute", "minutes")
    today, date = now // DAY, as_datetime(now)
    if match["this"]:
        first = today - (date.weekday() if match["which"] == "week" else date.day - 1)
        return TimeReference(text, max(0, first) * DAY, now + 1, "span", match["which"])  # type: ignore[arg-type]
    n = unspell(match["n"] or "one")
    if match["unit"].startswith("hour"):
        return TimeReference(text, *_last_hours(n, now), "span", "hours")
    return TimeReference(text, max(0, today - n + 1) * DAY, now + 1, "span", "period")


def _resolve(text: str, match: re.Match[str], now: int, oldest: int) -> TimeReference:
    family: Family = "today"
    day = now // DAY
    if match["month"]:
        family, day = "absolute", _day_of(text, match, now, oldest)
    elif match["yesterday"] or match["days"]:
        days = 1 if match["yesterday"] else unspell(match["days"])
        family, day = day_family(days), day - days
    start = day * DAY
    if match["part"]:
        first = next(hour for hour, phrase in DAY_TIMES if phrase == match["part"])
        _, first, end = day_time(first)
        return TimeReference(text, start + first * HOUR, start + end * HOUR, "part", family)
    if match["hour"]:
        hour, minute = int(match["hour"]), int(match["minute"])
        if hour > 23 or minute > 59:
            raise ValueError(f"{text!r} is no time of day")
        low = start + hour * HOUR + minute * MINUTE
        return TimeReference(text, low, low + MINUTE, "minute", family)
    if match["oclock"] or match["half"]:
        hour = int(match["oclock"] or match["half"])
        if hour > 24 or (match["half"] and not 1 <= hour <= 12):
            raise ValueError(f"{text!r} is no time of day")
        hour = hour % 12 + 12 * (match["m"] == "pm") if match["half"] else hour % 24
        middle = start + hour * HOUR
        return TimeReference(text, max(start, middle - 1800), middle + 1800, "hour", family)
    return TimeReference(text, start, start + DAY, "day", family)


def _day_of(text: str, match: re.Match[str], now: int, oldest: int) -> int:
    """Number of the newest day with this month and date that is not after `now`."""
    date = as_datetime(now)
    month = next(k for k, name in enumerate(MONTHS, 1) if name.lower().startswith(match["month"][:3]))
    for year in range(date.year, date.year - 9, -1):  # a February 29 is at most eight years ago
        try:
            day = as_seconds(date.replace(year=year, month=month, day=int(match["date"]))) // DAY
        except ValueError:
            continue
        if day <= now // DAY:
            break
    else:
        raise ValueError(f"{text!r} is no date")
    later_this_year = (month, int(match["date"])) > (date.month, date.day)
    if later_this_year and day < oldest // DAY - BEFORE_OLDEST:
        raise FutureTimeError(f"{text!r} lies in the future")
    return day
