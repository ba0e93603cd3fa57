"""Odd values of settings and options: each must be right, or refused by name."""

import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from memenvs.docstrings import attributes
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


#: The range that the description of a number gives: ">= 1", "> 0", "in [0, 1)" or "1 to 1,000".
RANGE = re.compile(r"(>=?) (\d+)|in ([\[(])(\d+), (\d+)([\])])|\b(\d+) to (\d[\d,]*)")


def declared(config: Any) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Each setting, values at the edges of what its type and description allow, and some beyond."""
    hints, meanings = get_type_hints(config), attributes(config)
    for name in (field.name for field in fields(config)):
        kind = get_origin(hints[name])
        kinds = {*get_args(hints[name])} if kind in (Literal, UnionType) else {hints[name]}
        stated = RANGE.search(meanings[name])
        if kind is Literal:
            yield name, [*kinds], ["no choice", 3]
        elif kinds <= {bool, NoneType}:
            yield name, [True, False], [1, "yes"]
        elif stated and kinds <= {int, float, NoneType}:
            above, low, opening, begin, end, closing, first, last = stated.groups()
            lowest, highest = int(low or begin or first), (end or last or "").replace(",", "")
            step, is_open = 1 if int in kinds else 1e-6, above == ">" or opening == "("
            edges, beyond = [lowest + step * is_open], [lowest - step * (not is_open), "3", True]
            beyond += [] if float in kinds else [lowest + 0.5]
            if highest:
                edges.append(int(highest) - step * (closing == ")"))
                beyond.append(int(highest) + step * (closing != ")"))
            yield name, edges, beyond


def undeclared(config: Any) -> Iterator[str]:
    """Settings that are not as declared; an edge may be refused beside another setting."""
    names = [field.name for field in fields(config)]
    for name, edges, beyond in declared(config):
        for value, fits in [*((edge, True) for edge in edges), *((value, False) for value in beyond)]:
            try:
                config(**{name: value})
                named = []
            except (TypeError, ValueError) as error:
                named = [other for other in names if re.search(rf"\b{other}\b", str(error))]
            if named == [name] if fits else name not in named:
                yield f"{config.__name__}, {name}={value!r}: {named}"
