"""`PlaceWrapper`: the index of the current place as an observation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from memenvs.checks import check_int
from memenvs.clustering import nearest_centre
from memenvs.wrappers.key import KeyWrapper
from memenvs.wrappers.truth import truth_of


class PlaceWrapper(KeyWrapper, RecordConstructorArgs):
    """Add the observation `place`: int64 (), space `Discrete(number of places)`.

    It is the true place: `info["place"]`, a room or a cell of Minigrid, or a room of Miniworld. With `centres` it is
    the nearest of k centres in the world frame:

        centres = fit_places(collect_positions(env, 2000, seed=0), 16)
        env = PlaceWrapper(env, centres=centres)

    Args:
        env: An environment with `info["place"]` (with `centres`: `info["pose"]`), or one of Minigrid or Miniworld.
        num_places: Places are 0 ... num_places - 1; >= 1; None takes the number from the environment. Not together with
            `centres`.
        centres: float, (k, 2), finite; x and y of the centre of each place, m; None for the true place.

    Raises:
        ValueError: A setting is not allowed, or the number of places is unknown; at `reset`: the place is unknown.
        RuntimeError: At `reset` or `step`: the true place is not below `num_places`.
    """

    def __init__(
        self,
        env: gym.Env,
        *,
        num_places: int | None = None,
        centres: np.ndarray | Sequence[Sequence[float]] | None = None,
    ) -> None:
        self._centres = None if centres is None else np.asarray(centres, np.float64)
        RecordConstructorArgs.__init__(
            self, num_places=num_places, centres=None if self._centres is None else self._centres.tolist()
        )
        self._truth = truth_of(env)
        if self._centres is not None:
            if num_places is not None:
                raise ValueError(f"num_places follows from the centres and must be None with them, got {num_places}")
            if self._centres.ndim != 2 or self._centres.shape[1] != 2 or len(self._centres) == 0:
                raise ValueError(f"centres must have the shape (k, 2) with k >= 1, got {self._centres.shape}")
            if not np.isfinite(self._centres).all():
                raise ValueError(f"centres must be finite, got {self._centres.tolist()}")
            count: int | None = len(self._centres)
        else:
            count = self._truth.num_places() if num_places is None else num_places
        if count is None:
            raise ValueError(f"the number of places of {env} is unknown; pass num_places")
        check_int("num_places", count)
        super().__init__(env, "place", gym.spaces.Discrete(count))
        self._count = count

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Reset the environment; see the class."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._with_key(observation, self._place(info)), info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Step the environment; see the class."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with_key(observation, self._place(info)), reward, terminated, truncated, info

    def _place(self, info: dict[str, Any]) -> np.int64:
        if self._centres is not None:
            return np.int64(nearest_centre(self._truth.pose(info)[None, :2], self._centres)[0])
        place = self._truth.place(info)
        if not 0 <= place < self._count:
            raise RuntimeError(f"place {place} is outside 0 ... {self._count - 1}; pass a larger num_places")
        return np.int64(place)


def collect_positions(env: gym.Env, num_steps: int, *, seed: int) -> np.ndarray:
    """Collect positions with random actions.

    The environment is reset and left in mid-episode.

    Args:
        env: An environment that `PoseWrapper` supports.
        num_steps: Number of positions; >= 1.
        seed: Seeds environment and actions.

    Returns:
        float64, (num_steps, 2); x and y in the world frame, m.

    Raises:
        ValueError: `num_steps` is no integer or below 1, or the pose of the environment is unknown.
    """
    check_int("num_steps", num_steps)
    truth = truth_of(env)
    env.action_space.seed(seed)
    info: dict[str, Any]
    _, info = env.reset(seed=seed)
    positions = [truth.pose(info)[:2]]
    while len(positions) < num_steps:
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        positions.append(truth.pose(info)[:2])
        if terminated or truncated:
            _, info = env.reset()
    return np.array(positions)
