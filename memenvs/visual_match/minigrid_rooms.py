"""The same rooms with the grid, balls, moves and view of the package Minigrid."""

from __future__ import annotations

import sys

import numpy as np
from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Ball
from minigrid.minigrid_env import MiniGridEnv

from memenvs.visual_match.rooms import BLUE, EMPTY, GREEN, RED, ROOM, SYMBOLS, VIEW, YELLOW

_COLOURS = {RED: "red", GREEN: "green", BLUE: "blue", YELLOW: "yellow"}
#: uint8, (11, 6); kind of a cell by Minigrid's object and colour, 255 for those that no room has.
_KINDS = np.full((11, 6), 255, np.uint8)
_KINDS[SYMBOLS[:, 0], SYMBOLS[:, 1]] = np.arange(len(SYMBOLS))


class MinigridRooms:
    """N agents, each in a Minigrid environment; has the interface of `GridRooms`.

    Args:
        num_agents: N.
    """

    def __init__(self, num_agents: int) -> None:
        self._envs = [_Env() for _ in range(num_agents)]

    def enter(
        self, agents: np.ndarray, size: int, balls: np.ndarray, kinds: np.ndarray, pose: np.ndarray, *, solid: bool
    ) -> None:
        """Put agents into rooms of their own; see `GridRooms.enter`."""
        for i, cells, colours, (column, row, heading) in zip(agents, balls.tolist(), kinds, pose.tolist(), strict=True):
            env = self._envs[i]
            env.grid = Grid(size, size)
            env.grid.wall_rect(0, 0, size, size)
            for cell, kind in zip(cells, colours, strict=True):
                env.put_obj(_Ball(_COLOURS[int(kind)], solid), *cell)
            env.agent_pos = (column, row)
            env.agent_dir = heading

    @property
    def pose(self) -> np.ndarray:
        """int64, (N, 3); column, row and heading of each agent."""
        return np.array([(*env.agent_pos, env.agent_dir) for env in self._envs], np.int64)

    def move(self, actions: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Turn agents, or move them forward where that is free; see `GridRooms.move`."""
        taken = np.full(len(self._envs), EMPTY, np.uint8)
        for i in np.flatnonzero(active).tolist():
            env = self._envs[i]
            env.step(int(actions[i]))  # left, right and forward have the same numbers
            column, row = env.agent_pos
            ball = env.grid.get(column, row)
            if ball is not None:
                taken[i] = _KINDS[ball.encode()[:2]]
                env.grid.set(column, row, None)
        return taken

    def view(self, env_mask: np.ndarray) -> np.ndarray:
        """Return what agents see; see `GridRooms.view`."""
        images = [self._envs[i].gen_obs()["image"] for i in np.flatnonzero(env_mask)]
        objects, colours, _ = np.moveaxis(np.reshape(images, (-1, VIEW, VIEW, 3)).astype(np.intp), -1, 0)
        return _KINDS[objects, colours]

    def close(self) -> None:
        """Close the Minigrid environments."""
        for env in self._envs:
            env.close()


class _Ball(Ball):
    """A ball that agents can step onto, unless it is solid."""

    def __init__(self, colour: str, solid: bool) -> None:
        super().__init__(colour)
        self._solid = solid

    def can_overlap(self) -> bool:
        return not self._solid


class _Env(MiniGridEnv):
    """A Minigrid environment whose room is replaced by `MinigridRooms.enter`."""

    def __init__(self) -> None:
        mission = MissionSpace(mission_func=_mission)
        super().__init__(mission, grid_size=ROOM, max_steps=sys.maxsize, see_through_walls=True, agent_view_size=VIEW)
        self.reset(seed=0)

    def _gen_grid(self, width: int, height: int) -> None:
        self.grid = Grid(width, height)
        self.agent_pos = (1, 1)
        self.agent_dir = 0


def _mission() -> str:
    return "choose the ball of the colour that you have seen"
