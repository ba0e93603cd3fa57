"""Reward of R2R and CVDN."""

from __future__ import annotations

import numpy as np

#: Moving away from the goal costs extra within this distance, m.
NEAR_GOAL = 1.0
_TOLERANCE = 1e-9  # m; distances that differ by less are equal up to rounding


def step_rewards(
    stopped: np.ndarray,
    success: np.ndarray,
    distance_before: np.ndarray,
    distance_after: np.ndarray,
    ndtw_before: np.ndarray,
    ndtw_after: np.ndarray,
) -> np.ndarray:
    """Rewards of one step of N agents.

    Args:
        stopped: bool, (N,); agents that chose to stop. The others moved.
        success: bool, (N,); True where stopping is a success.
        distance_before: float64, (N,); distance d to the goal before the step, m.
        distance_after: float64, (N,); distance to the goal after it, m.
        ndtw_before: float64, (N,); nDTW of the path before the step.
        ndtw_after: float64, (N,); nDTW of the path after it.

    Returns:
        float64, (N,). Stopping: 2 + 2 nDTW for a success, else -2. Moving: sign of the decrease of the distance, plus
        the increase of nDTW. Moving away from the goal from d <= 1 m costs 2 (1 - d) more.

    Source:
        MTVM's release. There a move that leaves the distance unchanged is an error; here its reward is the increase of
        nDTW.
    """
    decrease = distance_before - distance_after
    sign = np.where(np.abs(decrease) > _TOLERANCE, np.sign(decrease), 0.0)
    leaves_goal = (distance_before <= NEAR_GOAL) & (sign < 0.0)
    penalty = np.where(leaves_goal, 2.0 * (NEAR_GOAL - distance_before), 0.0)
    moved = sign + (ndtw_after - ndtw_before) - penalty
    return np.where(stopped, np.where(success, 2.0 + 2.0 * ndtw_after, -2.0), moved)
