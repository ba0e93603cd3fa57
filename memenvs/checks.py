"""Checks of settings; their errors name the setting, what is allowed and what came."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

MOST_LISTED = 48
"""Of more choices than that an error shows the nearest only."""


def check_int(name: str, value: Any, at_least: int = 1, *, or_none: bool = False) -> None:
    """Raises a ValueError if `value` is no integer (nor None, where that is allowed) or too small."""
    if value is None and or_none:
        return
    if not is_int(value) or value < at_least:
        raise ValueError(f"{name} must be an integer of at least {at_least}{' or None' * or_none}, got {value!r}")


def check_pair(name: str, value: Any, what: str) -> tuple[int, int]:
    """Two integers of a list, tuple or array as a tuple; a ValueError says that they must be `what`."""
    if not isinstance(value, (list, tuple, np.ndarray)) or len(value) != 2 or not all(is_int(each) for each in value):
        raise ValueError(f"{name} must be two integers, {what}, got {value!r}")
    return int(value[0]), int(value[1])


def as_names(name: str, value: Any) -> Any:
    """A list of names as a tuple, other things as they are; a TypeError if it is a single text, whose letters would be taken for names."""
    if isinstance(value, str):
        raise TypeError(f"{name} must be a list of names, got {value!r}; for this one alone: [{json.dumps(value)}]")
    return tuple(value) if isinstance(value, list) else value


def check_start(value: Any) -> tuple[float, float, float]:
    """A start pose given as option, as numbers; a ValueError says what it must be."""
    try:
        start = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        start = np.zeros(0)
    if start.shape != (3,) or not np.isfinite(start).all():
        raise ValueError(f"option 'start' must be three finite numbers (x m, y m, heading rad), got {value!r}")
    return float(start[0]), float(start[1]), float(start[2])


def choices_for(name: object, choices: Iterable[str]) -> str:
    """The end of a message about an unknown name: "choose from [...]", and the choice that it may have been meant to be; of many the nearest."""
    choices = list(choices)
    same = [choice for choice in choices if choice.casefold() == str(name).casefold()]
    begun = [choice for choice in choices if str(name) and choice.startswith(str(name))]
    near = same or begun or get_close_matches(str(name), choices, 1)
    if len(choices) > MOST_LISTED:
        shown = (begun or get_close_matches(str(name), choices, 8, 0.3) or choices)[:8]
        return f"the nearest of {len(choices)} are {shown}"
    return f"choose from {choices}" + (f". Did you mean {near[0]!r}?" if near else "")


def is_int(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy; True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_fields(settings: Any) -> None:
    """Compares every field of a dataclass with the type that it is declared to have.

    Whole numbers are numbers too; True and False are neither, and NumPy's integers are no `int`: settings are written as JSON.

    Raises:
        TypeError: A field has another type.
        ValueError: A number is NaN or infinite, or a field is none of the choices of its `Literal`.
    """
    hints = get_type_hints(type(settings))
    for name in (each.name for each in fields(settings)):
        value, hint = getattr(settings, name), hints[name]
        if get_origin(hint) is Literal:
            if value not in get_args(hint):
                raise ValueError(f"unknown {name} {value!r}; {choices_for(value, get_args(hint))}")
            continue
        kinds = [get_origin(kind) or kind for kind in (get_args(hint) if isinstance(hint, UnionType) else (hint,))]
        if not any(_has_type(value, kind) for kind in kinds):
            allowed = " or ".join(_TYPE_NAMES.get(kind, kind.__name__) for kind in kinds)
            raise TypeError(f"{name} must be {allowed}, got {value!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value}")


_TYPE_NAMES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    dict: "a dict",
    NoneType: "None",
}


def _has_type(value: Any, kind: type) -> bool:
    if kind is Any:
        return True
    if kind in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if kind is float else kind)
