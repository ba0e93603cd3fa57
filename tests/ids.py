"""Rows of the registry as parameters of tests."""

from typing import Any

import pytest

from memenvs.registry import ENVIRONMENTS

#: Families whose environments load homes or graphs, which takes most of the time of a test.
LOADS = ("exploration", "objectnav", "vln")


def each_id(*, others: Any, loads: Any = ()) -> list[Any]:
    """Make a parameter of each id.

    Args:
        others: Mark of ids that are not the first of their family, which ask something else in the same form.
        loads: Mark of ids that load homes or graphs.
    """
    parameters, seen = [], set()
    for spec in ENVIRONMENTS:
        mark = others if spec.family in seen else loads if spec.family in LOADS else ()
        parameters.append(pytest.param(spec, id=spec.name, marks=mark))
        seen.add(spec.family)
    return parameters
