"""Checks of settings; their errors name the setting, what is allowed and what came."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_whole(name: str, value: Any, at_least: int = 1, *, or_none: bool = False) -> None:
    """Raises a ValueError if `value` is no integer (nor None, where that is allowed) or too small."""
    if value is None and or_none:
        return
    if not is_whole(value) or value < at_least:
        raise ValueError(f"{name} must be an integer of at least {at_least}{' or None' * or_none}, got {value!r}")


def check_pair(name: str, value: Any, what: str) -> tuple[int, int]:
    """Two integers of a list, tuple or array as a tuple; a ValueError says that they must be `what`."""
    if not isinstance(value, (list, tuple, np.ndarray)) or len(value) != 2 or not all(is_whole(each) for each in value):
        raise ValueError(f"{name} must be two integers, {what}, got {value!r}")
    return int(value[0]), int(value[1])


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy; True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
