"""Dates: seconds since 2020, the fields that agents see, times of episodes and questions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np

DAY, HOUR = 86400, 3600
EPOCH = datetime(2020, 1, 1)
#: Episodes start from 8 to 20 o'clock.
FIRST_HOUR, LAST_HOUR = 8, 20
#: The first episode starts up to this many days before or after the base date.
BASE_DATE, BASE_DAYS = datetime(2021, 1, 1), 304
#: Most episodes of a day.
MAX_PER_DAY = 5
#: Probability of a short gap between two days with episodes, and its most days.
SKIP, MAX_SKIP = 0.1, 3
#: Probability of a long gap, and its fewest and most days.
LONG_SKIP, LONG_SKIP_DAYS = 0.01, (5, 200)
#: A question comes on the day of the last episode (probability), or weeks later (probability, fewest and most days);
#: else on one of the next days.
SAME_DAY, LATE, LATE_DAYS = 0.9, 0.1, (7, 60)
#: Names of the seven fields; Monday is weekday 1.
DATE_FIELDS = ("year - 2020", "month", "day", "weekday", "hour", "minute", "second")


def as_datetime(seconds: int) -> datetime:
    """Return the date of a second since 2020-01-01 00:00:00."""
    return EPOCH + timedelta(seconds=int(seconds))


def as_seconds(date: datetime) -> int:
    """Return the seconds since 2020-01-01 00:00:00 of a date; the inverse of `as_datetime`."""
    return int((date - EPOCH).total_seconds())


def date_fields(seconds: np.ndarray) -> np.ndarray:
    """Compute the seven fields of dates.

    Args:
        seconds: int, (...); seconds since 2020-01-01 00:00:00, before 2050.

    Returns:
        int16, (..., 7); see `DATE_FIELDS`.
    """
    day, second = np.divmod(np.asarray(seconds, np.int64), DAY)
    fields = np.empty((*day.shape, 7), np.int16)
    fields[..., :4] = _DAYS[day]
    minute, fields[..., 6] = np.divmod(second, 60)
    fields[..., 4], fields[..., 5] = np.divmod(minute, 60)
    return fields


def _table_of_days(years: int = 30) -> np.ndarray:
    """Year - 2020, month, day and weekday of each day since 2020-01-01; int16, (D, 4)."""
    day = np.arange(np.datetime64("2020-01-01"), np.datetime64(f"{2020 + years}-01-01"))
    month_start = day.astype("datetime64[M]")
    month = month_start.astype(np.int64)  # since 1970-01
    number = (day - month_start).astype(np.int64) + 1
    weekday = (np.arange(len(day)) + 2) % 7 + 1  # 2020-01-01 was a Wednesday
    return np.stack([month // 12 - 50, month % 12 + 1, number, weekday], -1).astype(np.int16)


_DAYS = _table_of_days()


def draw_starts(durations: Sequence[int], rng: np.random.Generator) -> list[int]:
    """Draw when the episodes of a history start.

    A day has 1 to 5 episodes. Then comes the next day, or one after a few days or, rarely, after up to 200 days.

    Args:
        durations: Seconds that each episode takes.
        rng: Source of randomness.

    Returns:
        Seconds since 2020-01-01 00:00:00, increasing; no episode starts before the one before it has ended.

    Source:
        The date sampler of the hierarchical-emv release. Its skips of days have no effect there; here they have.
    """
    day = (BASE_DATE - EPOCH).days + int(rng.integers(-BASE_DAYS, BASE_DAYS + 1))
    starts: list[int] = []
    earliest = 0
    while len(starts) < len(durations):
        count = min(int(rng.integers(1, MAX_PER_DAY + 1)), len(durations) - len(starts))
        for second in sorted(rng.integers(FIRST_HOUR * HOUR, LAST_HOUR * HOUR, count).tolist()):
            starts.append(max(day * DAY + second, earliest))
            earliest = starts[-1] + durations[len(starts) - 1] + 1
        day = max(day, earliest // DAY) + 1 + _draw_skip(rng)
    return starts


def draw_days_after(end: int, durations: Sequence[int], per_day: int, rng: np.random.Generator) -> list[int]:
    """Draw when episodes start that follow a history, on one day after the other.

    Args:
        end: When the last episode ended, seconds since 2020-01-01 00:00:00.
        durations: Seconds that each of the episodes takes.
        per_day: Episodes of a day.
        rng: Source of randomness.

    Returns:
        As `draw_starts`.
    """
    starts: list[int] = []
    while len(starts) < len(durations):
        day = end // DAY + 1
        for second in sorted(rng.integers(FIRST_HOUR * HOUR, LAST_HOUR * HOUR, per_day).tolist()):
            starts.append(max(day * DAY + second, end + 1))
            end = starts[-1] + durations[len(starts) - 1]
    return starts


def draw_question_time(end: int, rng: np.random.Generator) -> int:
    """Draw the time of a question, seconds since 2020-01-01 00:00:00.

    Args:
        end: When the last episode ended, in the same unit.
        rng: Source of randomness.
    """
    day, second = divmod(end, DAY)
    later, same_day = rng.random(2).tolist()
    first = max(second + 1, FIRST_HOUR * HOUR)
    if later < LATE:
        day += int(rng.integers(LATE_DAYS[0], LATE_DAYS[1] + 1))
    elif same_day < SAME_DAY and first < LAST_HOUR * HOUR:
        return day * DAY + int(rng.integers(first, LAST_HOUR * HOUR))
    else:
        day += 1 + _draw_skip(rng)
    return day * DAY + int(rng.integers(FIRST_HOUR * HOUR, LAST_HOUR * HOUR))


def _draw_skip(rng: np.random.Generator) -> int:
    """Draw how many days without an episode come between two with one."""
    drawn = rng.random()
    if drawn < LONG_SKIP:
        return int(rng.integers(LONG_SKIP_DAYS[0], LONG_SKIP_DAYS[1] + 1))
    return int(rng.integers(1, MAX_SKIP + 1)) if drawn < LONG_SKIP + SKIP else 0
