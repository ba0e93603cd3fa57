"""Coverage: enter as many cells of a home as possible."""

from __future__ import annotations

from memenvs.exploration.env import Exploration, RewardWeights


class Coverage(Exploration):
    """Enter as many different cells of 0.5 m as possible.

    Reward:
        5 for entering a cell for the first time, -1 for a collision. Only cells whose centre can be reached count; the
        cell of the start is visited from the beginning.

    Termination:
        The 51st collision terminates; 500 steps truncate. There is no success: few homes can be covered in 500 steps.

    See Also:
        `memenvs.exploration.env.Exploration`: observation, action, options and info.
    """

    reward_weights = RewardWeights(cell=5.0, collision=-1.0)

    def _oracle_action(self, i: int) -> int:
        return self._action_to_unvisited_cell(i)
