"""Odd values of settings and options: each must be right, or refused by name."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from tests import damage

VALUES: tuple[Any, ...] = (
    *damage.VALUES,
    2,
    4,
    7,
    10**400,
    1.0,
    -0.5,
    np.int64(2),
    np.int8(-3),
    np.float64(0.25),
    np.float32(0.25),
    np.bool_(True),
    np.array(2),
    np.array([1.0, 2.0]),
    np.array(["a"]),
    "2",
    (1, 2),
    [1, 2],
    [1, 2, 3],
    {1},
    object(),
)
"""Values that a setting or an option may be given: those of JSON, of Python and of NumPy."""
LONGEST = 20.0
"""Seconds of CPU time after which a case has not been bounded."""


def attempt(where: str, names: Iterable[str], call: Callable[[], object]) -> Iterator[str]:
    """Call; yield a line if it neither works nor is refused by a name, or takes too long."""
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except (ValueError, TypeError, OSError) as error:
        if not any(name in str(error) for name in names):
            yield f"{where} is refused without a name: {error!r}"
    except Exception as error:
        yield f"{where}: {error!r}"
    if time.process_time() - begin > LONGEST:
        yield f"{where} took {time.process_time() - begin:.0f} s"


def single(config: Any) -> list[dict[str, Any]]:
    """Each setting of a config with each value."""
    return [{each.name: value} for each in fields(config) for value in VALUES]


def some(config: Any, count: int) -> list[dict[str, Any]]:
    """Some of these, the same each time."""
    cases = single(config)
    return [cases[i] for i in np.random.default_rng(0).permutation(len(cases))[:count]]


def pairs(config: Any, count: int) -> Iterator[dict[str, Any]]:
    """Random values of two settings."""
    names = [each.name for each in fields(config)]
    for i in range(count):
        rng = np.random.default_rng(i)
        chosen = rng.choice(names, min(2, len(names)), replace=False)
        yield {str(each): VALUES[int(rng.integers(len(VALUES)))] for each in chosen}
