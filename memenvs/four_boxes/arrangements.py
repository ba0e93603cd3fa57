"""Arrangements of the four colours in the four corners of the room, and their splits."""

from __future__ import annotations

from itertools import permutations

import numpy as np

#: Corners of the four colours, in the order of `memenvs.four_boxes.room.COLOURS`.
Arrangement = tuple[int, ...]
#: The paper's: the corners are numbered by the boxes that stand there.
PUBLISHED: Arrangement = (0, 1, 2, 3)


def _shuffled() -> list[Arrangement]:
    """All arrangements in a fixed order, the paper's first."""
    others = [other for other in permutations(range(4)) if other != PUBLISHED]
    return [PUBLISHED, *(others[k] for k in np.random.default_rng(0).permutation(len(others)).tolist())]


_ALL = _shuffled()
SPLITS: dict[str, list[Arrangement]] = {
    "train": _ALL[:12],
    "validation": _ALL[12:18],
    "test": _ALL[18:],
    "all": _ALL,
}


def arrangements(split: str | None) -> list[Arrangement]:
    """List the arrangements of a split, in order; None for the paper's alone."""
    return [PUBLISHED] if split is None else SPLITS[split]
