"""Coverage: enter as many cells of a home as possible."""

from __future__ import annotations

from memenvs.exploration.env import Exploration, RewardWeights


class Coverage(Exploration):
    """Enter as many different cells of 0.5 m as possible.

    Observation (`Dict`): as `Roaming`.
    Action (`Discrete(3)`): forward 0.25 m, turn left, turn right by 45 degrees, with noise; as `Roaming`.
    Reward: 5 for entering a cell for the first time, -1 for a collision. Only cells whose middle can be reached count;
    the cell of the start is visited from the beginning.
    Termination: the 51st collision terminates; 500 steps truncate. There is no success: few homes can be covered in 500
    steps.
    Layout: number of the home among those of its world that can be played. Options: `start` (x, y, heading) on the
    largest navigable island.
    Info: as `Roaming`.

    Source:
        Scene Memory Transformer (Fang et al., 2019), section 4.
    """

    reward_weights = RewardWeights(cell=5.0, collision=-1.0)

    def _oracle_action(self, i: int) -> int:
        return self._action_to_unvisited_cell(i)
