"""Noise models of a pose sensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np


class PoseNoise(Protocol):
    """Interface of a noise model: turns true poses into measured ones, step by step."""

    def begin(self, rng: np.random.Generator) -> None:
        """Start an episode; all its random numbers come from `rng`."""

    def measure(self, pose: np.ndarray) -> np.ndarray:
        """Measured pose of a true pose (x m, y m, heading rad); float64, (3,)."""


class NoNoise:
    """Return the true pose.

    Raises:
        ValueError: A standard deviation was given, which would have no effect.
    """

    def __init__(self, *, position_sd: float = 0.0, heading_sd: float = 0.0) -> None:
        for name, value in (("position_sd", position_sd), ("heading_sd", heading_sd)):
            if value != 0.0:
                raise ValueError(f"{name} must be 0 without noise, got {value}; pass noise='gaussian'")

    def begin(self, rng: np.random.Generator) -> None:
        """Do nothing."""

    def measure(self, pose: np.ndarray) -> np.ndarray:
        """Return the pose, float64 (3,), unchanged."""
        return pose


class GaussianNoise:
    """Add independent Gaussian noise at every step.

    Args:
        position_sd: Standard deviation for x and for y, m; >= 0.
        heading_sd: Standard deviation for the heading, rad; >= 0.

    Raises:
        ValueError: A standard deviation is negative, not finite or no number.
    """

    def __init__(self, *, position_sd: float, heading_sd: float) -> None:
        for name, value in (("position_sd", position_sd), ("heading_sd", heading_sd)):
            if not isinstance(value, (int, float, np.number)) or not 0.0 <= value < np.inf:
                raise ValueError(f"{name} must be finite and at least 0, got {value!r}")
        self._sd = np.array([position_sd, position_sd, heading_sd])

    def begin(self, rng: np.random.Generator) -> None:
        """Keep the generator of the episode."""
        self._rng = rng

    def measure(self, pose: np.ndarray) -> np.ndarray:
        """Return the pose, float64 (3,): x, y (m), heading (rad), plus noise."""
        return pose + self._sd * self._rng.standard_normal(3)


class DeadReckoning:
    """Estimate the pose from the start pose and the commanded motions (dead reckoning).

    Args:
        collision_known: True if the robot notices collisions: the estimate then does not move in such a step.

    Raises:
        ValueError: A standard deviation was given, which would have no effect.

    Source:
        Scene Memory Transformer (Fang et al., 2019), study of noise. `memenvs.exploration.drive.dead_reckon` integrates
        the commands.
    """

    def __init__(self, *, collision_known: bool, position_sd: float, heading_sd: float) -> None:
        for name, value in (("position_sd", position_sd), ("heading_sd", heading_sd)):
            if value != 0.0:
                raise ValueError(f"{name} must be 0 with noise 'dead_reckoning', got {value}")
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


#: Noise models by name; each takes `position_sd` and `heading_sd`.
NOISES: dict[str, Callable[..., PoseNoise]] = {"none": NoNoise, "gaussian": GaussianNoise}
