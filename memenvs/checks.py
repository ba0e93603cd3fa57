"""Checks of settings. Each error names the setting, what is allowed and what was given."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

#: An error lists at most this many choices; of more it shows at most three, the most similar ones.
MAX_LISTED = 48


#: Largest number of steps of an episode: its poses are kept, so more would only fill the memory.
MAX_STEPS = 1_000_000
#: Largest number of threads.
MAX_THREADS = 1024


#: Largest number that a tensor can hold in single precision.
LARGEST_FLOAT = float(np.finfo(np.float32).max)
#: Largest integer that a tensor can hold.
LARGEST_INT = 2**63 - 1


def check_generator(name: str, value: object) -> None:
    """Raise a TypeError unless a value is a NumPy generator."""
    if not isinstance(value, np.random.Generator):
        raise TypeError(f"{name} must be a numpy Generator (np.random.default_rng(0)), got {value!r}")


def check_int(name: str, value: Any, at_least: int = 1, at_most: int | None = None, *, or_none: bool = False) -> None:
    """Check that a setting is an integer within bounds, or None where that is allowed.

    Raises:
        ValueError: It is anything else.
    """
    if value is None and or_none:
        return
    if not is_int(value) or value < at_least or (at_most is not None and value > at_most):
        bounds = f"at least {at_least}" if at_most is None else f"at least {at_least} and at most {at_most}"
        raise ValueError(f"{name} must be an integer of {bounds}{' or None' * or_none}, got {value!r}")


def plain(value: Any) -> Any:
    """Replace NumPy's numbers and arrays by Python's, also within lists, tuples and dicts."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return type(value)(plain(item) for item in value) if type(value) in (list, tuple) else value


def plain_fields(config: Any) -> None:
    """Replace NumPy's numbers and arrays in the fields of a config; see `plain`."""
    for name in (field.name for field in fields(config)):
        object.__setattr__(config, name, plain(getattr(config, name)))  # the dataclass may be frozen


def check_pair(name: str, value: Any, what: str) -> tuple[int, int]:
    """Convert a list, tuple or array of two integers to a tuple.

    Args:
        name: Name of the setting.
        value: Its value.
        what: Meaning of the two integers, for the error message.

    Raises:
        ValueError: It is anything else.
    """
    pair = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(is_int(item) for item in pair):
        raise ValueError(f"{name} must be two integers, {what}, got {value!r}")
    return int(pair[0]), int(pair[1])


def check_phases(value: Any) -> tuple[int, int, int]:
    """Convert the setting `phases` to three numbers of steps.

    Raises:
        ValueError: It is no list of three, or a number is out of range.
    """
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        raise ValueError(f"phases must be three numbers of steps, got {value!r}")
    for k, steps in enumerate(value):
        check_int(f"phases[{k}]", steps, at_most=MAX_STEPS)
    return value[0], value[1], value[2]


def as_names(name: str, value: Any) -> Any:
    """Convert a list of names to a tuple; return other values as they are.

    Raises:
        TypeError: It is a single text, whose letters would count as names.
    """
    if isinstance(value, str):
        raise TypeError(f"{name} must be a list of names, got {value!r}; for this one alone: [{json.dumps(value)}]")
    return tuple(value) if isinstance(value, list) else value


def check_start(value: Any) -> tuple[float, float, float]:
    """Convert the option `start` to x (m), y (m) and heading (rad).

    Raises:
        ValueError: It is not three finite numbers.
    """
    try:
        start = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        start = np.zeros(0)
    if start.shape != (3,) or not np.isfinite(start).all():
        raise ValueError(f"option 'start' must be three finite numbers (x m, y m, heading rad), got {value!r}")
    return float(start[0]), float(start[1]), float(start[2])


def option_number(option: str, value: Any, names: Sequence[str]) -> int:
    """Convert a reset option, the number or the name of a choice, to its number.

    Raises:
        ValueError: It is neither.
    """
    if isinstance(value, str) and value in names:
        return names.index(value)
    if is_int(value) and 0 <= value < len(names):
        return int(value)
    raise ValueError(f"option {option!r} must be 0 ... {len(names) - 1} or one of {list(names)}, got {value!r}")


def choices_for(name: object, choices: Iterable[str], cutoff: float = 0.6) -> str:
    """Format the end of a message about an unknown name: similar and possible choices.

    Args:
        name: The unknown name.
        choices: The names that are allowed.
        cutoff: Least similarity, 0 to 1.

    Returns:
        Such as "did you mean 'a'? Choose from ['a', 'b']"; of many choices "did you mean 'a' or 'b'?".
    """
    choices = list(choices)
    same = [choice for choice in choices if choice.casefold() == str(name).casefold()]
    begun = [choice for choice in choices if str(name) and choice.startswith(str(name))]
    near = same or begun or get_close_matches(str(name), choices, 3, cutoff)
    if len(choices) > MAX_LISTED:
        return f"did you mean {' or '.join(map(repr, near[:3]))}?" if near else f"none of {len(choices)} is similar"
    return f"did you mean {near[0]!r}? Choose from {choices}" if near else f"choose from {choices}"


def is_int(value: Any) -> bool:
    """Return True for integers of Python or NumPy; True and False are no integers."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_fields(config: Any) -> None:
    """Compare every field of a config dataclass with its declared type.

    An integer is allowed where a float is declared. True and False are no numbers. NumPy's numbers are replaced by
    those of Python, because settings are written as JSON.

    Raises:
        TypeError: A field has another type.
        ValueError: A number is NaN, infinite or too large for PyTorch, or a field is none of the choices of its
            `Literal`.
    """
    plain_fields(config)
    hints = _type_hints(type(config))  # type: ignore[arg-type]  # a class can be hashed
    for name in (field.name for field in fields(config)):
        value, hint = getattr(config, name), hints[name]
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
        if isinstance(value, int | float) and abs(value) > (LARGEST_FLOAT if isinstance(value, float) else LARGEST_INT):
            text = f"{value:g}" if isinstance(value, float) else f"an integer of {value.bit_length()} bits"
            raise ValueError(f"{name} must fit a single-precision number or 64-bit integer, got {text}")


_type_hints = cache(get_type_hints)  # evaluates the text of every annotation, which takes longer than all checks

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
