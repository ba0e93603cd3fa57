"""Reward of R2R and CVDN."""

from __future__ import annotations

import numpy as np

#: Moving away from the goal costs extra within this distance, m.
CLOSE = 1.0
_SAME = 1e-9  # m; distances that differ by less are equal up to rounding


def step_rewards(
    stopped: np.ndarray,
    success: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    ndtw_before: np.ndarray,
    ndtw_after: np.ndarray,
) -> np.ndarray:
    """Rewards of one step of N agents.

    Args:
        stopped: bool, (N,); agents that chose to stop. The others moved.
        success: bool, (N,); True where stopping is a success.
        before: float64, (N,); distance to the goal before the step, m.
        after: float64, (N,); distance to the goal after it, m.
        ndtw_before: float64, (N,); nDTW of the path before the step.
        ndtw_after: float64, (N,); nDTW of the path after it.

    Returns:
        float64, (N,). Stopping: 2 + 2 nDTW for a success, else -2. Moving: sign of the decrease of the distance, plus
        the increase of nDTW. Moving away from within 1 m costs 2 (1 - before) more.

    Source:
        MTVM's release. There a move that leaves the distance unchanged is an error; here it is paid the increase of
        nDTW.
    """
    nearer = np.where(np.abs(before - after) > _SAME, np.sign(before - after), 0.0)
    missed = np.where((before <= CLOSE) & (nearer < 0.0), 2.0 * (1.0 - before), 0.0)
    moved = nearer + (ndtw_after - ndtw_before) - missed
    return np.where(stopped, np.where(success, 2.0 + 2.0 * ndtw_after, -2.0), moved)
