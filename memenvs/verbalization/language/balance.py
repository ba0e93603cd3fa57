"""Tables that balance the answers of the preset `debiased`, measured on its histories.

An answer that is rare in histories is drawn whenever it can be, a frequent one in a share of the cases.
`studies/episodic_qa/shortcuts.py` measures what a model without memory makes of the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from memenvs.verbalization.language.wordings import Kind

T = TypeVar("T")

#: By form of a question about problems and length of the history: the share of the histories in which the answer can
#: be that there was a failure, and that there was none.
PROBLEMS: dict[str, dict[int, tuple[float, float]]] = {
    "interval": {1: (0.50, 0.50), 2: (0.50, 0.58), 3: (0.55, 0.66), 5: (0.72, 0.75), 10: (0.92, 0.90)},
    "grasp": {1: (0.16, 0.82), 2: (0.18, 0.97), 3: (0.21, 0.98), 5: (0.29, 0.96), 10: (0.49, 0.93)},
    "move": {1: (0.38, 0.47), 2: (0.44, 0.81), 3: (0.47, 0.93), 5: (0.64, 0.96), 10: (0.84, 0.93)},
    "go": {1: (0.24, 0.87), 2: (0.24, 0.98), 3: (0.27, 0.96), 5: (0.41, 0.95), 10: (0.61, 0.91)},
}
#: By kind and length of the history: factor of the kind's weight, because not all that are drawn are kept.
KIND_WEIGHTS: dict[Kind, dict[int, float]] = {
    "problems": {1: 3.5, 2: 3.8, 3: 3.1, 5: 2.0, 10: 1.4},
    "location": {1: 4.0, 2: 2.9, 3: 2.3, 5: 1.7, 10: 1.3},
}

#: Weight of each verb of a duration: moves are short, so that a guess of their duration is often near.
DURATION_VERBS = {"grasp": 0.4, "putdown": 0.4, "go": 0.2}
#: By verb and rounded seconds: share of the drawn events whose rounded duration is wanted; else the exact one is.
DURATIONS: dict[str, dict[int, float]] = {
    "grasp": {20: 0.81, 30: 0.86, 60: 0.41, 120: 0.87},
    "putdown": {60: 0.32, 120: 0.48},
    "go": {10: 0.10, 20: 0.29, 30: 0.62},
}

#: Share of the drawn stays of the robot that a question is about, by location; of other locations all.
STAYS = {
    "countertop": 0.68,
    "roundtable": 0.72,
    "smalltable": 0.76,
    "sideboard": 0.77,
    "placesetting2": 0.85,
}

#: Weight of each form of the question how often.
COUNT_FORMS = {"grasp": 0.3, "visit": 0.5, "moved": 0.2}
#: By form: weight of the counts 0, 1, 2, 3 and 4 or more; a count that the history does not have is drawn again.
COUNTS: dict[str, tuple[float, ...]] = {
    "grasp": (0.22, 0.22, 0.22, 0.19, 0.15),
    "visit": (0.19, 0.19, 0.19, 0.21, 0.22),
    "moved": (0.22, 0.22, 0.22, 0.19, 0.15),
}
#: By form: it is only drawn where something happened this often, so that few counts are not all that there are.
LEAST_COUNT = {"grasp": 2, "visit": 3, "moved": 2}


def by_length(table: Mapping[int, T], length: int) -> T:
    """Return the entry of the longest history that is not longer, at least the shortest one."""
    return table[max((n for n in table if n <= length), default=min(table))]


def acceptance(table: Mapping[int, tuple[float, float]], length: int, positive: bool) -> float:
    """Compute with which probability a label is kept, so that both are equally frequent.

    Args:
        table: One form of `PROBLEMS`.
        length: Episodes of the history.
        positive: The label: True if there was a failure.
    """
    shares = by_length(table, length)
    return min(shares) / shares[not positive]
