"""Turns of ViewRecall: to headings all around, then to those near the last one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

LEFT, RIGHT, NO_MOVE = range(3)
#: Headings of the observer, relative to the first one: multiples of 12 degrees.
NUM_HEADINGS = 30
TURN = 2 * math.pi / NUM_HEADINGS  # rad
NUM_PLACES = 10
_HEADINGS_PER_PLACE = NUM_HEADINGS // NUM_PLACES
#: In the second part the heading stays within this number of turns (36 degrees) of that at its start.
_NEAR = 3
#: float64, (30,) and (10,); headings that are observed, and queried ones in the middle of each place, 6 degrees from
#: the nearest observed ones; rad from the first heading.
OBSERVED_HEADINGS = TURN * np.arange(NUM_HEADINGS)
QUERY_HEADINGS = TURN * (_HEADINGS_PER_PLACE * np.arange(NUM_PLACES) + _HEADINGS_PER_PLACE / 2)


@dataclass(frozen=True, eq=False)
class Turns:
    """Headings of an observer in an episode of T steps.

    Attributes:
        heading: int64, (T,); number of the heading, 0 at the start, counter-clockwise.
        move: int8, (T,); the move that led to each step: 0 left, 1 right; 2 at the first step.
        place: int16, (T,); the 36 degrees that the heading is in, 0 to 9.
    """

    heading: np.ndarray
    move: np.ndarray
    place: np.ndarray


def make_turns(key: int, steps: tuple[int, int]) -> Turns:
    """Make the turns of an episode.

    The observer turns to random headings, one after the other, along the shorter arc. Every step is a turn.

    Args:
        key: Number of the turns, >= 0; it and `steps` determine them.
        steps: Steps of both parts; the first step shows the start.

    Source:
        SAT, appendix D.11.
    """
    rng = np.random.default_rng(key)
    first, second = steps
    gaps = rng.integers(1, NUM_HEADINGS, size=first)  # each leads to any other heading
    around = _turn(np.where(gaps > NUM_HEADINGS // 2, gaps - NUM_HEADINGS, gaps), first - 1)
    # Numbers 0 to 6 of headings near the last one, which has number 3; each follows on any other.
    count = 2 * _NEAR + 1
    near = (_NEAR + np.cumsum(rng.integers(1, count, size=second))) % count
    step = np.concatenate([around, _turn(np.diff(near, prepend=_NEAR), second)])  # 1 to the left, -1 to the right
    heading = np.concatenate([[0], np.cumsum(step)]) % NUM_HEADINGS
    move = np.concatenate([[NO_MOVE], np.where(step > 0, LEFT, RIGHT)]).astype(np.int8)
    return Turns(heading, move, (heading // _HEADINGS_PER_PLACE).astype(np.int16))


def _turn(gaps: np.ndarray, steps: int) -> np.ndarray:
    """Single turns for numbers of turns, at least as many as `steps`; 1 or -1, int64, (steps,)."""
    return np.repeat(np.sign(gaps), np.abs(gaps))[:steps]
