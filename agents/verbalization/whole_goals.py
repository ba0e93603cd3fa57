"""Numbers of whole goals, as the work before the thesis encodes them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.household_config import HouseholdConfig
from memenvs.verbalization.splits import ScaleName, load_data


def number_goals(goals: np.ndarray, config: EpisodicQAConfig) -> np.ndarray:
    """Number whole goals by the training split.

    Args:
        goals: int, (..., 5); predicates, indices into `SYMBOLS`, 0 where there is none. Their order does not count.
        config: Settings of the histories.

    Returns:
        int64, (...); 0 for no goal, and the largest number for every goal that the training split does not have.
    """
    known = _known_goals(config.household(), config.scale, config.data_seed)
    rows, inverse = np.unique(np.sort(goals.reshape(-1, goals.shape[-1]), axis=1), axis=0, return_inverse=True)
    unknown = len(known)
    numbers = np.array([known.get(tuple(row), unknown) for row in rows.tolist()])
    return numbers[inverse].reshape(goals.shape[:-1])


@lru_cache(maxsize=4)
def _known_goals(household: HouseholdConfig, scale: ScaleName, data_seed: int) -> dict[tuple[int, ...], int]:
    """Number the goals of the training split, from 0 for none."""
    frames = load_data(household, "train", scale=scale, data_seed=data_seed).histories.pool.frames
    rows = np.unique(np.sort(frames.goal, axis=1), axis=0).tolist()
    none = (0,) * len(rows[0])
    return {none: 0} | {
        row: number for number, row in enumerate((each for each in map(tuple, rows) if each != none), 1)
    }
