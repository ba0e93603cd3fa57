"""Roaming: drive forward as often as possible without collisions."""

from __future__ import annotations

import numpy as np

from memenvs.exploration.env import COLLISION, MAX_COLLISIONS, Exploration, RewardWeights
from memenvs.exploration.planner import best_action


class Roaming(Exploration):
    """Drive forward as often as possible without a collision.

    Observation (`Dict`), `obs_mode="frames"`, any of `modalities`: `rgb` uint8 (48, 64, 3); `depth` float32
    (48, 64, 1), m along the optical axis, with noise, 0 where nothing is hit within 5 m; `semantic` uint8 (48, 64),
    label of NYU40, 0 for none; `pose` float32 (3,): x ahead (m), y to the left (m) and heading (rad), relative to the
    start. `obs_mode="scan"`: `scan` float32 (64,) and `scan_class` uint8 (64,), row 32 of depth and labels, 8 degrees
    below level.
    Action (`Discrete(3)`): forward 0.25 m, turn left, turn right by 45 degrees; the wheels slip. A robot that would
    touch something during a step forward stays in place; turns never collide.
    Reward: 1 for forward without a collision, -1 for a collision.
    Termination: the 51st collision terminates; 500 steps truncate. Success: not terminated.
    Layout: number of the home among those of its world that can be played. Options: `start` (x, y, heading) on the
    largest navigable island.
    Info: `pose` (x m, y m, heading rad), `place` (room), `scene_id`, `start` (as the option), `command` (length m and
    turn rad that the last action commanded), `collision` (of the last action), `visited` bool (64, 64), larger from the
    first home on that is longer than 32 m: cells of 0.5 m that the robot has been in, row 0 at the smallest y, column 0
    at the smallest x of the home; `reward_terms` (4,): forward without a collision, cells newly entered, classes newly
    found (0 outside Search), collisions in the last step. Metrics: `return`, `forwards_ok`, `distance` (0.25 m each),
    `collisions`, `cells` (entered, without the start's; only cells whose middle can be reached count), `coverage`
    (share of these).

    Source:
        Scene Memory Transformer (Fang et al., 2019), section 4.
    """

    reward_weights = RewardWeights(move=1.0, collision=-1.0)

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth and metrics; see the class."""
        return {**super().info(), "success": self._totals[:, COLLISION] <= MAX_COLLISIONS}

    def _oracle_action(self, i: int) -> int:
        """Drive straight on while that is free, else turn to where the longest free path begins."""
        return best_action(self.home(i).navmap, self._sim.pose[i], None)
