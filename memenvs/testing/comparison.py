"""Comparison of observations and infos to the bit, with words for what differs."""

from __future__ import annotations

from typing import Any

import numpy as np


class ContractError(AssertionError):
    """A task or memory breaks a rule; the message names it, the step and the difference."""


def difference(value: Any, expected: Any) -> str | None:
    """Describe how two values differ, types and NaN included; None if they are equal to the bit.

    Args:
        value: A number, an array, a text, or a dict of such.
        expected: The same.
    """
    if isinstance(expected, dict) or isinstance(value, dict):
        if not isinstance(value, dict) or not isinstance(expected, dict) or value.keys() != expected.keys():
            return f"keys are {_keys(value)} and not {_keys(expected)}"
        for key in expected:
            inner = difference(value[key], expected[key])
            if inner is not None:
                return f"{key!r} {inner}"
        return None
    value, expected = np.asarray(value), np.asarray(expected)
    if value.dtype != expected.dtype or value.shape != expected.shape:
        return f"is {value.dtype} {value.shape} and not {expected.dtype} {expected.shape}"
    if expected.dtype == object:  # texts
        return None if value.tolist() == expected.tolist() else f"is {value.tolist()!r} and not {expected.tolist()!r}"
    if value.tobytes() == expected.tobytes():
        return None
    if expected.dtype.kind not in "biufc":
        return f"is {value.tolist()!r} and not {expected.tolist()!r}"
    differs = np.atleast_1d((value != expected) & ~(np.isnan(value.astype(float)) & np.isnan(expected.astype(float))))
    if not differs.any():
        return "differs in the sign of a zero or the bits of a NaN"
    first = tuple(int(axis[0]) for axis in np.nonzero(differs))
    left, right = np.atleast_1d(value)[first], np.atleast_1d(expected)[first]
    largest = float(np.abs(np.atleast_1d(value).astype(float) - np.atleast_1d(expected).astype(float))[differs].max())
    place = f" at {list(first)}" if value.ndim > 0 else ""
    more = f", by at most {largest:g} in {int(differs.sum())} of {differs.size} numbers" if differs.size > 1 else ""
    return f"is {left} and not {right}{place}{more}"


def _keys(value: Any) -> str:
    return str(sorted(value)) if isinstance(value, dict) else f"of a {type(value).__name__}"


def same(value: Any, expected: Any) -> bool:
    """Return True if two observations or infos are equal to the bit, types and NaN included."""
    return difference(value, expected) is None


def check_same(what: str, value: Any, expected: Any) -> None:
    """Raise a `ContractError` that begins with `what` if two values differ."""
    how = difference(value, expected)
    if how is not None:
        raise ContractError(f"{what}: {how}")


def check_true(holds: Any, message: str) -> None:
    """Raise a `ContractError` unless a condition holds."""
    if not holds:
        raise ContractError(message)
