"""Dates as seconds since 2020-01-01 00:00:00, and as the seven fields that agents see."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np

DAY = 86400
EPOCH = datetime(2020, 1, 1)
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
        seconds: int, (...); seconds since 2020-01-01 00:00:00.

    Returns:
        int16, (..., 7); see `DATE_FIELDS`.
    """
    seconds = np.asarray(seconds, np.int64)
    day, second = np.divmod(seconds, DAY)
    date = np.datetime64("2020-01-01", "D") + day
    month_start = date.astype("datetime64[M]")
    month = month_start.astype(np.int64)  # since 1970-01
    fields = [
        month // 12 + 1970 - 2020,
        month % 12 + 1,
        (date - month_start.astype("datetime64[D]")).astype(np.int64) + 1,
        (day + 2) % 7 + 1,  # 2020-01-01 was a Wednesday
        second // 3600,
        second // 60 % 60,
        second % 60,
    ]
    return np.stack(fields, -1).astype(np.int16)
