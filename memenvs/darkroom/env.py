"""Darkroom: a dark 10 x 10 room with a hidden goal cell that stays the same over a trial."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from memenvs.darkroom.config import DarkroomConfig, goal_cells
from memenvs.grid_viewer import draw_grid, grid_pixels
from memenvs.moves import Moves, moving_goal
from memenvs.task import BatchTask, Observation, Options

RIGHT, LEFT, UP, DOWN, STAY = range(5)
#: Change of (x, y) by action: +x, -x, +y, -y, stay.
MOVES = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [0, 0]], np.int64)


class Darkroom(BatchTask):
    """Find a hidden goal cell once, then go straight to it in later episodes of the trial.

    The agent observes its own cell and its reward, and nothing of the room. The goal stays for the trial, or with
    `moves` changes now and then.

    Observation:
        position: float32, (2,); the cell (x, y), 0 ... size - 1.
        previous_reward: float32, (1,); reward of the previous step, 0 at reset.

    Action:
        `Discrete(5)`: +x, -x, +y, -y, stay. Moves are clipped to the grid.

    Reward:
        1 on every step whose resulting cell is the goal, else 0.

    Termination:
        Nothing terminates; 100 steps truncate.

    Layout:
        Number of the goal cell within the split.

    Options:
        goal: (x, y) of the goal cell; default that of the layout, or to which it has moved.
        start: (x, y) of the first cell; default (0, 0).

    Info:
        pose: (x, y, 0).
        place: Number of the cell, x * size + y.
        goal, start: As in the options.
        moved: Where there are `moves`: True if the goal has moved since the episode before.
        success: True if the goal was reached in this episode.
        return: Sum of rewards in this episode.

    Without memory:
        A fixed sweep (the rule `memoryless`) needs the present cell alone: 50.49 over all 100 goals. A window over the
        end of an episode is enough for the rest: the robot stands on the goal when an episode ends, so that the last
        frames show it, and the path that it takes says where it goes when they are gone. From the second episode on
        the rule `window4` scores 90.56 in 200 test trials, `window16` 90.64, as the oracle with their goals. The rule
        `ideal` remembers the cell, 6.6 bits. Its first episode is the sweep, the others are the oracle's.

    Variants:
        `Darkroom-Gap-v0` has 5 x 5 cells and `gap=20`: 20 blank steps come before each episode, in which actions are
        ignored, so that no window of 20 steps reaches the last episode. In 200 test trials `window4` and `window16`
        score as `memoryless`, 5.87; `ideal` has 17.83 and the oracle 17.85.

        `Darkroom-Moves-v0` is the same with `moves=0.3`: before each episode the goal moves to another cell with
        probability .3, which nothing shows. A memory has to be given up where it fails. `memoryless` and the windows
        score 5.64, `ideal`, which goes to the old cell first and searches on from there, 13.7, the oracle 17.9.

    Source:
        Elawady et al., "ReLIC: A Recipe for 64k Steps of In-Context Reinforcement Learning for Embodied AI", 2024
        (arXiv:2410.02751), section on Darkroom, after Laskin et al., "In-context Reinforcement Learning with Algorithm
        Distillation", 2023, and Lee et al., "Supervised Pretraining Can Learn In-Context Reinforcement Learning", 2023.
        Mean returns over all 100 goals: known goal 91.99, fixed sweep (the policy `memoryless`) 50.49, random 1.04;
        over the 20 test goals: 90.90 and 47.9.
    """

    option_names = ("goal", "start")
    action_names = ("right", "left", "up", "down", "stay")
    config_type = DarkroomConfig

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = DarkroomConfig(**kwargs)  # type: ignore[arg-type]
        size = self.config.size
        self.num_envs = num_envs
        self.observation_space = gym.spaces.Dict(
            {
                "position": gym.spaces.Box(0.0, size - 1.0, (2,), np.float32),
                "previous_reward": gym.spaces.Box(0.0, 1.0, (1,), np.float32),
            }
        )
        self.action_space = gym.spaces.Discrete(len(MOVES))
        self.max_episode_steps = self.config.max_episode_steps
        self._goals = goal_cells(self.config.split, size)
        self.num_layouts = len(self._goals)
        self._goal_number: list[Moves[int]] = [Moves(0, None, np.random.default_rng(0))] * num_envs
        self._moved = np.zeros(num_envs, bool)
        self._goal = np.zeros((num_envs, 2), np.int64)
        self._start = np.zeros((num_envs, 2), np.int64)
        self._position = np.zeros((num_envs, 2), np.int64)
        self._reward = np.zeros(num_envs)
        self._return = np.zeros(num_envs)

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Hide the goal of this layout."""
        self._goal_number[i] = moving_goal(layout, len(self._goals), self.config.moves, rng)

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Put the agent at the start."""
        default = self._goals[self._goal_number[i].at(options.get("episode_index", 0))]
        self._moved[i] = self._goal_number[i].moved
        self._goal[i] = self._cell("goal", options.get("goal"), default)
        start = self._cell("start", options.get("start"), np.zeros(2, np.int64))
        self._start[i] = start
        self._position[i] = start
        self._reward[i] = 0.0
        self._return[i] = 0.0

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Move, and reward the goal cell with 1."""
        moved = np.clip(self._position + MOVES[actions], 0, self.config.size - 1)
        self._position = np.where(active[:, None], moved, self._position)
        reward = np.where(active & (self._position == self._goal).all(1), 1.0, 0.0)
        self._reward = np.where(active, reward, self._reward)
        self._return += reward
        return reward, np.zeros(self.num_envs, bool)

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write cell and previous reward."""
        out["position"][env_mask] = self._position[env_mask]
        out["previous_reward"][env_mask, 0] = self._reward[env_mask]

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth; see the class."""
        return {
            "pose": np.column_stack([self._position, np.zeros(self.num_envs, np.int64)]).astype(np.float32),
            "place": self._position[:, 0] * self.config.size + self._position[:, 1],
            "goal": self._goal,
            "start": self._start,
            "success": self._return > 0,
            "return": self._return,
            **({"moved": self._moved} if self.config.moves else {}),
        }

    @property
    def num_places(self) -> int:
        """Number of cells of the grid."""
        return self.config.size**2

    def oracle_actions(self) -> np.ndarray:
        """Go along x first, then along y, then stay."""
        return step_towards(self._position, self._goal)

    def render(self, i: int) -> np.ndarray:
        """Render the grid: goal green, agent red; uint8, (320, 320, 3)."""
        return self.draw_map(i, self._position[i : i + 1])

    def draw_map(self, i: int, path: np.ndarray) -> np.ndarray:
        """Draw the grid with a path, from blue to red; uint8, (320, 320, 3)."""
        return draw_grid(self.config.size, {tuple(self._goal[i]): (60, 170, 90)}, path)

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """Convert cells to pixels of the map."""
        return grid_pixels(self.config.size, poses)

    def _cell(self, name: str, value: object, default: np.ndarray) -> np.ndarray:
        """Check a cell given as option; `default` if none is given."""
        if value is None:
            return default
        cell = np.asarray(value)
        if cell.shape != (2,) or cell.dtype.kind not in "iu" or (cell < 0).any() or (cell >= self.config.size).any():
            raise ValueError(
                f"option {name!r} must be two integers (x, y) in 0 ... {self.config.size - 1}, got {value!r}"
            )
        return cell


def step_towards(cells: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Actions from cells (N, 2) to targets (N, 2); int64, (N,).

    They go along x first, then along y, then stay.
    """
    dx, dy = (target - cells).T
    return np.select([dx > 0, dx < 0, dy > 0, dy < 0], [RIGHT, LEFT, UP, DOWN], STAY).astype(np.int64)
