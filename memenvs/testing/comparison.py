"""Comparison of observations and infos to the bit, with words for what differs."""

from __future__ import annotations

from typing import Any

import numpy as np


class ContractError(AssertionError):
    """A task or memory breaks a rule; the message names it, the step and the difference."""


def difference(found: Any, expected: Any) -> str | None:
    """Describe how two values differ, types and NaN included; None if they are equal to the bit.

    Args:
        found: A number, an array, a text, or a dict of such.
        expected: The same.
    """
    if isinstance(expected, dict) or isinstance(found, dict):
        if not isinstance(found, dict) or not isinstance(expected, dict) or found.keys() != expected.keys():
            return f"keys are {_keys(found)} and not {_keys(expected)}"
        for key in expected:
            inner = difference(found[key], expected[key])
            if inner is not None:
                return f"{key!r} {inner}"
        return None
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"is {found.dtype} {found.shape} and not {expected.dtype} {expected.shape}"
    if expected.dtype == object:  # texts
        return None if found.tolist() == expected.tolist() else f"is {found.tolist()!r} and not {expected.tolist()!r}"
    if found.tobytes() == expected.tobytes():
        return None
    if expected.dtype.kind not in "biufc":
        return f"is {found.tolist()!r} and not {expected.tolist()!r}"
    differs = np.atleast_1d((found != expected) & ~(np.isnan(found.astype(float)) & np.isnan(expected.astype(float))))
    if not differs.any():
        return "differs in the sign of a zero or the bits of a NaN"
    first = tuple(int(each[0]) for each in np.nonzero(differs))
    left, right = np.atleast_1d(found)[first], np.atleast_1d(expected)[first]
    largest = float(np.abs(np.atleast_1d(found).astype(float) - np.atleast_1d(expected).astype(float))[differs].max())
    place = f" at {list(first)}" if found.ndim > 0 else ""
    more = f", by at most {largest:g} in {int(differs.sum())} of {differs.size} numbers" if differs.size > 1 else ""
    return f"is {left} and not {right}{place}{more}"


def _keys(value: Any) -> str:
    return str(sorted(value)) if isinstance(value, dict) else f"of a {type(value).__name__}"


def same(found: Any, expected: Any) -> bool:
    """Return True if two observations or infos are equal to the bit, types and NaN included."""
    return difference(found, expected) is None


def check_same(what: str, found: Any, expected: Any) -> None:
    """Raise a `ContractError` that begins with `what` if two values differ."""
    how = difference(found, expected)
    if how is not None:
        raise ContractError(f"{what}: {how}")


def check_true(holds: Any, message: str) -> None:
    """Raise a `ContractError` unless a condition holds."""
    if not holds:
        raise ContractError(message)
