"""Rewards of the imitation and reinforcement agents of R2R."""

from __future__ import annotations

import numpy as np

#: Nearer than this to the goal, going away costs extra, m.
CLOSE = 1.0
_SAME = 1e-9  # m; distances that differ by less are equal but for rounding


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
        stopped: bool, (N,); who chose to stop. The others moved.
        success: bool, (N,); whether stopping here is a success.
        before: float64, (N,); distance to the goal before the step, m.
        after: float64, (N,); distance to the goal after it, m.
        ndtw_before: float64, (N,); nDTW of the path before the step.
        ndtw_after: float64, (N,); nDTW of the path after it.

    Returns:
        float64, (N,): stopping pays 2 + 2 nDTW or -2; a move pays the sign of what it came nearer plus what nDTW gained; going away from
        1 m or less costs 2 (1 - before) more.

    Source:
        MTVM's release. There a move that does not change the distance is an error; here it pays what nDTW gained.
    """
    nearer = np.where(np.abs(before - after) > _SAME, np.sign(before - after), 0.0)
    missed = np.where((before <= CLOSE) & (nearer < 0.0), 2.0 * (1.0 - before), 0.0)
    moved = nearer + (ndtw_after - ndtw_before) - missed
    return np.where(stopped, np.where(success, 2.0 + 2.0 * ndtw_after, -2.0), moved)
