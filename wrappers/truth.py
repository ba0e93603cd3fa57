"""True pose and place of an agent.

Read from `info`, or from attributes of Minigrid and Miniworld environments.

Frame: that of the project. Metres, x and y on the floor plan, right-handed; heading in radians, counter-clockwise from
    +x.
"""

from __future__ import annotations

from typing import Any, Protocol

import gymnasium as gym
import numpy as np


class Truth(Protocol):
    """Interface of the true pose and place of one environment."""

    def num_places(self) -> int | None:
        """Places are 0 ... num_places - 1; None if unknown."""

    def pose(self, info: dict[str, Any]) -> np.ndarray:
        """float64, (3,); x m, y m, heading rad in the world frame."""

    def place(self, info: dict[str, Any]) -> int:
        """Number of the place."""


class InfoTruth:
    """Truth from `info["pose"]`, `info["place"]` and `num_places`, as in `memenvs`."""

    def __init__(self, env: gym.Env) -> None:
        self._env = env.unwrapped

    def num_places(self) -> int | None:
        """Attribute `num_places` of the environment; None without it."""
        return getattr(self._env, "num_places", None)

    def pose(self, info: dict[str, Any]) -> np.ndarray:
        """Return `info["pose"]`; float64, (3,): x, y (m), heading (rad)."""
        return np.asarray(self._get(info, "pose"), np.float64)

    def place(self, info: dict[str, Any]) -> int:
        """Return `info["place"]`."""
        return int(self._get(info, "place"))

    def _get(self, info: dict[str, Any], key: str) -> Any:
        if key not in info:
            raise ValueError(
                f"the {key} of {self._env} is unknown: its info has no {key!r}, "
                f"and it is neither a Minigrid nor a Miniworld environment"
            )
        return info[key]


class MinigridTruth:
    """Truth of a Minigrid environment, whose cells are 1 m wide.

    Column c and row r are (x, y) = (c, -r), so that facing up is heading pi / 2.
    A place is a room where the grid is made of rooms (`RoomGrid`), counted row by row, else a cell, c * height + r.
    """

    def __init__(self, env: gym.Env) -> None:
        self._env: Any = env.unwrapped
        self._has_rooms = hasattr(self._env, "num_rows")  # `room_grid` itself is made by the first reset

    def num_places(self) -> int | None:
        """Number of rooms, or of cells, of the grid."""
        if self._has_rooms:
            return self._env.num_rows * self._env.num_cols
        return self._env.width * self._env.height

    def pose(self, info: dict[str, Any]) -> np.ndarray:
        """Compute the pose, (3,), from `agent_pos` and `agent_dir` (0 right, 1 down, 2 left, 3 up)."""
        column, row = self._env.agent_pos
        return np.array([column, -row, -self._env.agent_dir * np.pi / 2])

    def place(self, info: dict[str, Any]) -> int:
        """Compute the number of the room or cell from `agent_pos`."""
        column, row = (int(value) for value in self._env.agent_pos)
        if not self._has_rooms:
            return column * self._env.height + row
        spacing = self._env.room_size - 1  # from one room to the next, as rooms share their walls
        return row // spacing * self._env.num_cols + column // spacing


class MiniworldTruth:
    """Truth of a Miniworld environment.

    Its floor plan is (x, z); seen from above with x to the right, z points down the page: here (x, y) = (x, -z).
    A place is a room, in the order in which the environment made them; between rooms it is the nearest one.
    """

    def __init__(self, env: gym.Env) -> None:
        self._env: Any = env.unwrapped

    def num_places(self) -> int | None:
        """Number of rooms."""
        return len(self._env.rooms)

    def pose(self, info: dict[str, Any]) -> np.ndarray:
        """Compute the pose, float64 (3,), from `agent.pos` and `agent.dir`."""
        agent = self._env.agent
        return np.array([agent.pos[0], -agent.pos[2], agent.dir], np.float64)

    def place(self, info: dict[str, Any]) -> int:
        """Compute the number of the room from `agent.pos` and the rooms' rectangles."""
        x, _, z = self._env.agent.pos
        gaps = [
            np.hypot(max(room.min_x - x, 0.0, x - room.max_x), max(room.min_z - z, 0.0, z - room.max_z))
            for room in self._env.rooms
        ]
        return int(np.argmin(gaps))


def truth_of(env: gym.Env) -> Truth:
    """Choose the `Truth` of an environment, without importing Minigrid or Miniworld."""
    inner = env.unwrapped
    if hasattr(inner, "agent_pos") and hasattr(inner, "agent_dir"):
        return MinigridTruth(env)
    if hasattr(inner, "agent") and hasattr(inner, "rooms"):
        return MiniworldTruth(env)
    return InfoTruth(env)
