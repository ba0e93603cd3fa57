"""The pose by the commanded motions alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class DeadReckoning:
    """Estimate the pose from the start pose and the commanded motions (dead reckoning).

    Args:
        collision_known: True if the robot notices collisions: the estimate then does not move in such a step.

    Source:
        Scene Memory Transformer (Fang et al., 2019), study of noise. `memenvs.exploration.drive.dead_reckon` integrates
        the commands.
    """

    def __init__(self, *, collision_known: bool) -> None:
        self._collision_known = collision_known

    def start(self, pose: np.ndarray, info: Mapping[str, Any]) -> np.ndarray:
        """Start at a pose, float64, (3,), and return it.

        Raises:
            ValueError: `info` has no `command` or no `collision`.
        """
        if "command" not in info or "collision" not in info:
            raise ValueError(
                "noise 'dead_reckoning' needs an environment whose info has 'command' and 'collision', such as "
                f"memenvs/Roaming-v0; this one has {sorted(info)}"
            )
        self._estimate = np.array(pose, np.float64)
        return self._estimate.copy()

    def move(self, info: Mapping[str, Any]) -> np.ndarray:
        """Update the estimate by one step.

        Args:
            info: Has `command` (length m, turn rad) and `collision` of the step.

        Returns:
            float64, (3,); the estimated pose.
        """
        from memenvs.exploration.drive import dead_reckon  # imported here because it loads numba

        if not (self._collision_known and info["collision"]):
            dead_reckon(self._estimate[None], np.asarray(info["command"], np.float64)[None])
        return self._estimate.copy()
