"""Visual Match: choose the ball whose colour was shown before a long stay in a field."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import gymnasium as gym
import numpy as np

from memenvs.cue_task import CHOOSE, COLLECT, CUE, GOALS, CueTask
from memenvs.task import Observation, Options
from memenvs.visual_match.config import VisualMatchConfig
from memenvs.visual_match.rooms import (
    BLUE,
    CELL_NAMES,
    EMPTY,
    FIELD,
    FORWARD,
    GREEN,
    LARGEST_SYMBOL,
    LEFT,
    MOVES,
    RED,
    RIGHT,
    ROOM,
    SYMBOLS,
    VIEW,
    YELLOW,
    GridRooms,
)
from memenvs.visual_match.viewer import draw_rooms, draw_view, map_pixels, map_poses

if TYPE_CHECKING:
    from memenvs.visual_match.minigrid_rooms import MinigridRooms

#: Kind of the ball of each colour, by its number; the cue has one of the first two.
KINDS = np.array([GREEN, BLUE, RED])
NUM_FRUITS = 30
#: Column, row and heading at which both stays in the room begin.
_START = np.array([1, 4, 0])
_START_ON_MAP = map_poses(_START[None], np.zeros(1, bool))[0]
_CUE_CELL = np.array([4, 4])
_CHOICE_CELLS = np.array([(4, 3), (4, 4), (4, 5)])


class VisualMatch(CueTask):
    """Choose the ball of the colour that was shown before a long stay elsewhere.

    The agent sees a ball in a small room, green or blue. After 4 steps it finds itself in a field with yellow fruit,
    for 80 steps. Then it is back in the room for 16 steps, in front of a green, a blue and a red ball.

    Observation:
        image: With `obs="symbols"`: uint8, (7, 7, 3); object, colour and state of each cell in Minigrid's code. The
            agent is in [3, 6] and faces [3, 0]; walls hide nothing. With `obs="one_hot"`: uint8, (7, 7, 6); 1 in the
            plane of the cell's kind: empty, wall, red, green, blue and yellow ball.

    Action:
        `Discrete(3)`: turn left, turn right, forward. Walls and the cue block; the other balls are taken by stepping
        onto them.

    Reward:
        1 for the ball of the cue's colour; `wrong_reward` for another, by default 0; 0.01 for each fruit.

    Termination:
        At the choice of a ball. After 100 steps, the sum of `phases`, an episode is truncated.

    Info:
        pose: Column, row from below and heading (rad) on the map, where the field is to the right of the room.
        place: 0 in the room, with the cue as with the choice; 1 in the field.
        order: (3,); colours of the balls to choose from, from above: 0 green, 1 blue, 2 red.
        choice_id: Colour of the ball that was chosen; -1 for none.
        fruits: Number of fruits taken.

    Without memory:
        Nothing that the environment shows after the cue depends on its colour. Over 10,000 episodes, always the green
        ball (the rule `memoryless`) succeeds in 0.502 and random actions in 0.065; the oracle in all of 2,000. But the
        agent can write the colour into its own motion: the rule `notebook` turns left all along the stay for green and
        right for blue. With two views and its own last action it succeeds in 500 of 500 episodes, and in 200 of 200
        with a stay of 800 steps. With `led=True` it is at its guess, 240 of 500. The rule `ideal` remembers the cue,
        one bit, and succeeds in all of 200 with and without `led`; it needs a fact from at least 81 steps back.

        With `wrong_reward=0.1` the choice of the green ball pays 0.55 on average, so that the return says less than
        `success`. At a capacity of 40 steps, half of the stay in the field, the strategy MVFO keeps the steps in the
        room and FIFO loses them.

    Variants:
        `VisualMatch-Led-v0` has `led=True`: in the field drawn motions replace the agent's own, its actions are
        ignored, and `phase` is 0. With `world="minigrid"` the same motions are drawn, so that both worlds have the same
        bits.
        As in the paper's environment: `wrong_reward=0.1, random_order=False`.

    Source:
        Cho, Yoon and Ahn, "Spatially-Aware Transformer for Embodied Agents", ICLR 2024 (arXiv:2402.15160), appendix
        D.10. After Hung et al., "Optimizing agent behavior over long time scales by transporting value", 2019.
    """

    config_type = VisualMatchConfig
    observation_settings = ("obs",)

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = config = VisualMatchConfig(**kwargs)  # type: ignore[arg-type]
        super().__init__(num_envs, config.phases, len(KINDS))
        is_one_hot = config.obs == "one_hot"
        self._codes = np.eye(len(CELL_NAMES), dtype=np.uint8) if is_one_hot else SYMBOLS
        shape = (VIEW, VIEW, self._codes.shape[1])
        image = gym.spaces.Box(0, 1 if is_one_hot else LARGEST_SYMBOL, shape, np.uint8)
        self.observation_space = gym.spaces.Dict({"image": image})
        self._rooms = _make_rooms(config.world, num_envs)
        self._fruits = np.zeros((num_envs, NUM_FRUITS, 2), np.int64)  # column and row
        self._is_present = np.ones((num_envs, NUM_FRUITS), bool)
        self._field_pose = np.zeros((num_envs, 3), np.int64)  # with which the stay in the field begins
        self._rows = np.arange(num_envs)
        self._path = np.zeros((num_envs, self.max_episode_steps + 1, 3), np.float32)  # poses on the map, for `render`

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Draw colours, fruits and the pose in the field; put the agent before the cue."""
        goal = int(rng.integers(len(GOALS)))
        order = rng.permutation(len(KINDS)) if self.config.random_order else np.arange(len(KINDS))
        inner = FIELD - 2
        cells = rng.choice(inner**2, 1 + NUM_FRUITS, replace=False)
        heading = rng.integers(len(MOVES))
        rows, columns = np.divmod(cells, inner)
        self._set_episode(i, goal, order, options)
        self._field_pose[i] = columns[0] + 1, rows[0] + 1, heading
        self._fruits[i, :, 0] = columns[1:] + 1
        self._fruits[i, :, 1] = rows[1:] + 1
        self._is_present[i] = True
        self._enter(np.array([i]), CUE)
        self._path[i, 0] = _START_ON_MAP

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Move, take balls, and go on to the next phase."""
        phase = self._phase()
        kind = self._rooms.move(actions, active)
        taken = kind != EMPTY
        terminated = taken & (phase == CHOOSE)
        success = terminated & (kind == KINDS[self._goal])
        reward = np.where(
            terminated,
            np.where(success, self.config.match_reward, self.config.wrong_reward),
            np.where(taken, self.config.fruit_reward, 0.0),
        )
        if taken.any():
            where = np.flatnonzero(taken & ~terminated)
            here = (self._fruits[where] == self._rooms.pose[where, None, :2]).all(-1)
            self._is_present[where] &= ~here
            colour = np.argmax(kind[:, None] == KINDS, 1)
            self._choice = np.where(terminated, colour, self._choice)
        self._return += reward
        self._step += active
        for next_phase, start in zip((COLLECT, CHOOSE), self._begins, strict=True):
            arrived = active & (self._step == start)
            if arrived.any():
                self._enter(np.flatnonzero(arrived), next_phase)
        self._path[self._rows, self._step] = self._map_poses()
        return reward, terminated

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write the views."""
        out["image"][env_mask] = np.take(self._codes, self._rooms.view(env_mask), 0)

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth; see the class."""
        return self._info(self._path[self._rows, self._step], fruits=NUM_FRUITS - self._is_present.sum(1))

    def oracle_actions(self) -> np.ndarray:
        """Go to the cue, take the nearest fruit, then the ball of the cue's colour."""
        phase = self._phase()
        pose = self._rooms.pose
        column, row, heading = pose.T
        distance = np.where(self._is_present, np.abs(self._fruits - pose[:, None, :2]).sum(2), 2 * FIELD)
        nearest = self._fruits[self._rows, distance.argmin(1)]
        choice = _CHOICE_CELLS[np.argmax(self._order == self._goal[:, None], 1)]
        # A ball in between would be chosen: along the column of balls only to the next cell, else out of it first.
        is_between = (column == choice[:, 0]) & (np.abs(row - choice[:, 1]) > 1)
        detour = np.column_stack([column - 1, row])
        choice = np.where(is_between[:, None], detour, choice)
        target = np.select([(phase == CUE)[:, None], (phase == COLLECT)[:, None]], [_CUE_CELL[None], nearest], choice)
        right, down = (target - pose[:, :2]).T
        # Along the column first where balls must be passed, else along the heading first.
        is_vertical = (down != 0) & ((phase == CHOOSE) | (heading % 2 == 1) | (right == 0))
        direction = np.where(is_vertical, np.where(down > 0, 1, 3), np.where(right > 0, 0, 2))
        return np.array([FORWARD, RIGHT, RIGHT, LEFT])[(direction - heading) % len(MOVES)]

    def render(self, i: int) -> np.ndarray:
        """Render the view, and the map with the path so far; 300 x 700."""
        one = np.arange(self.num_envs) == i
        return np.hstack([draw_view(self._rooms.view(one)[0]), self.draw_map(i, self._path[i, : self._step[i] + 1])])

    def draw_map(self, i: int, path: np.ndarray) -> np.ndarray:
        """Draw room and field from above with a path, balls and the remaining fruits; 300 x 390."""
        if self._phase()[i] == CHOOSE:
            room = [(*cell, KINDS[colour]) for cell, colour in zip(_CHOICE_CELLS, self._order[i], strict=True)]
        else:
            room = [(*_CUE_CELL, KINDS[self._goal[i]])]
        return draw_rooms(room, self._fruits[i, self._is_present[i]], path)

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """Convert poses to pixels of the map."""
        return map_pixels(poses)

    def close(self) -> None:
        """Close the Minigrid environments, if there are any."""
        self._rooms.close()

    def _map_poses(self) -> np.ndarray:
        """float64, (N, 3); poses on the map."""
        return map_poses(self._rooms.pose, self._phase() == COLLECT)

    def _enter(self, agents: np.ndarray, phase: int) -> None:
        """Put agents (K,) where a phase begins."""
        start = np.tile(_START, (len(agents), 1))
        if phase == CUE:
            cell = np.tile(_CUE_CELL, (len(agents), 1, 1))
            self._rooms.enter(agents, ROOM, cell, KINDS[self._goal[agents, None]], start, solid=True)
        elif phase == COLLECT:
            fruits = self._fruits[agents]
            kinds = np.full(fruits.shape[:2], YELLOW)
            self._rooms.enter(agents, FIELD, fruits, kinds, self._field_pose[agents], solid=False)
        else:
            cells = np.tile(_CHOICE_CELLS, (len(agents), 1, 1))
            self._rooms.enter(agents, ROOM, cells, KINDS[self._order[agents]], start, solid=False)


def _make_rooms(world: str, num_envs: int) -> GridRooms | MinigridRooms:
    """Make the rooms of a world.

    Raises:
        ImportError: Minigrid is not installed.
    """
    if world == "builtin":
        return GridRooms(num_envs)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # pygame, which Minigrid imports, prints its version
            from memenvs.visual_match.minigrid_rooms import MinigridRooms
    except ModuleNotFoundError as error:
        raise ImportError(
            "world 'minigrid' needs the package minigrid; install it with: pip install 'memenvs[minigrid]'"
        ) from error
    return MinigridRooms(num_envs)
