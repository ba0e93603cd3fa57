"""A corridor with a signal at its entrance and a junction at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.checks import check_int
from memenvs.core import BatchTask, Observation, Options

FORWARD, LEFT, RIGHT = range(3)
#: Lengths of corridors beyond `length`; each is a layout.
EXTRA_CELLS = (0, 1, 2)


@dataclass(frozen=True, kw_only=True)
class CorridorConfig:
    """Settings of the corridor.

    Attributes:
        length: Cells of the shortest corridor; 1 to 1000.
        max_episode_steps: Steps after which an episode is truncated; >= 1.
    """

    length: int = 4
    max_episode_steps: int = 20

    def __post_init__(self) -> None:
        check_int("length", self.length, 1, 1000)
        check_int("max_episode_steps", self.max_episode_steps)


class Corridor(BatchTask):
    """Remember the signal at the entrance, and turn to its side at the junction.

    Observation:
        signal: float32 (1,); -1 for left or 1 for right at the entrance, 0 elsewhere.
        junction: float32 (1,); 1 at the junction, else 0.

    Action:
        `Discrete(3)`: forward, left, right. Turns do nothing but at the junction.

    Reward:
        1 for the turn that was signalled, else 0.

    Ends:
        A turn at the junction terminates; `max_episode_steps` truncate.

    Layout:
        Length of the corridor: `length` + 0, 1 or 2 cells.

    Options:
        side: 0 for left, 1 for right.

    Info:
        side: As the option.
        cell: Cells from the entrance.
        success: The turn was right.
    """

    option_names = ("side",)
    action_names = ("forward", "turn left", "turn right")
    config_type = CorridorConfig

    def __init__(self, num_envs: int, **kwargs: Any) -> None:
        self.config = CorridorConfig(**kwargs)
        self.num_envs = num_envs
        self.observation_space = gym.spaces.Dict(
            {
                "signal": gym.spaces.Box(-1.0, 1.0, (1,), np.float32),
                "junction": gym.spaces.Box(0.0, 1.0, (1,), np.float32),
            }
        )
        self.action_space = gym.spaces.Discrete(3)
        self.max_episode_steps = self.config.max_episode_steps
        self.num_layouts = len(EXTRA_CELLS)
        # The state: one entry for each environment.
        self._length = np.zeros(num_envs, np.int64)
        self._side = np.zeros(num_envs, np.int64)
        self._cell = np.zeros(num_envs, np.int64)
        self._success = np.zeros(num_envs, bool)

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Build the corridor of this layout."""
        self._length[i] = self.config.length + EXTRA_CELLS[layout]

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Draw the side, unless it is given, and put the agent at the entrance."""
        drawn = rng.integers(2)  # drawn even if not used, so that the option changes no other draw
        side = options.get("side", drawn)
        if side not in (0, 1):
            raise ValueError(f"option 'side' must be 0 or 1, got {side!r}")
        self._side[i] = side
        self._cell[i] = 0
        self._success[i] = False

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Move or turn."""
        at_junction = self._cell == self._length
        terminated = active & at_junction & (actions != FORWARD)
        won = terminated & (actions == np.where(self._side == 0, LEFT, RIGHT))
        self._success |= won
        self._cell += active & ~at_junction & (actions == FORWARD)
        return won.astype(np.float64), terminated

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write the rows of `env_mask`."""
        signal = np.where(self._cell == 0, 2 * self._side - 1, 0)
        out["signal"][env_mask, 0] = signal[env_mask]
        out["junction"][env_mask, 0] = (self._cell == self._length)[env_mask]

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth."""
        return {"side": self._side, "cell": self._cell, "success": self._success}

    # The rest is optional: without it, `--policy oracle` and `memenvs record` say that it is missing.

    def oracle_actions(self) -> np.ndarray:
        """Go to the junction, and turn to the side."""
        turn = np.where(self._side == 0, LEFT, RIGHT)
        return np.where(self._cell == self._length, turn, FORWARD).astype(np.int64)

    def render(self, i: int) -> np.ndarray:
        """Draw the corridor: the agent red, the side of the goal green; uint8, (96, W, 3)."""
        length, cell = int(self._length[i]), int(self._cell[i])
        cells = np.full((3, length + 1, 3), 30, np.uint8)
        cells[1] = 200
        cells[:, length] = 200
        cells[2 * self._side[i], length] = (60, 170, 90)
        cells[1, cell] = (200, 60, 50)
        return cells.repeat(32, 0).repeat(32, 1)
