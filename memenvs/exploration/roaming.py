"""Roaming: drive forward as often as possible without collisions."""

from __future__ import annotations

import numpy as np

from memenvs.exploration.env import COLLISION, MAX_COLLISIONS, Exploration, RewardWeights
from memenvs.exploration.planner import best_action


class Roaming(Exploration):
    """Drive forward as often as possible without a collision.

    Reward:
        1 for forward without a collision, -1 for a collision.

    Termination:
        The 51st collision terminates; 500 steps truncate. Success: not terminated.

    Info:
        success: True unless the collisions terminated the episode.

    See Also:
        `memenvs.exploration.env.Exploration`: observation, action, options and the rest of the info.
    """

    reward_weights = RewardWeights(move=1.0, collision=-1.0)

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth and metrics; see the class."""
        return {**super().info(), "success": self.state.totals[:, COLLISION] <= MAX_COLLISIONS}

    def _oracle_action(self, i: int) -> int:
        """Drive straight on while that is free, else turn to where the longest free path begins."""
        return best_action(self.home(i).navmap, self._sim.pose[i], None)
