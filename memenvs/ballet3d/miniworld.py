"""The room of Ballet3D in the package Miniworld. Importing this module opens a display."""

from __future__ import annotations

from typing import Any

import numpy as np
from miniworld.entity import Ball, Box, Entity

from memenvs.ballet3d.episodes import COLOURS
from memenvs.ballet3d.room import DANCER_SIZE, HALF_SIDE, LARGE_SIZE, VIEW_SIZE, WALL_HEIGHT, stage_places
from memenvs.box_rooms.miniworld import RoomsEnv


class MiniworldDanceRoom:
    """Draws what the robot sees; has the interface of `memenvs.ballet3d.room.DanceRoom`."""

    def __init__(self) -> None:
        self._env = _make_env()

    def draw(self, heading: np.ndarray, dancer: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Draw pictures; as `DanceRoom.draw`."""
        out = np.empty((len(heading), *VIEW_SIZE, 3), np.uint8)
        for k in range(len(heading)):
            out[k] = self._at(heading[k], dancer[k], position[k]).render_obs()
        return out

    def draw_large(self, heading: float, dancer: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Draw one picture for people; as `DanceRoom.draw_large`."""
        env = self._at(heading, dancer, position)
        return env.render_obs(env.vis_fb)

    def close(self) -> None:
        """Close the Miniworld environment."""
        self._env.close()

    def _at(self, heading: float, dancer: np.ndarray, position: np.ndarray) -> RoomsEnv:
        """Return the Miniworld environment with these dancers."""
        env = self._env
        env.set_pose(np.array([0.0, 0.0, heading]))
        on_stage = []
        for number, (x, y, height) in zip(dancer.tolist(), stage_places(position).tolist(), strict=True):
            env.solids[number].pos = np.array([x, height, -y])
            on_stage.append(env.solids[number])
        env.show(on_stage)
        return env

    def __getstate__(self) -> dict[str, Any]:
        return {"_env": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _env=_make_env())


def _make_env() -> RoomsEnv:
    room = {
        "min_x": -HALF_SIDE,
        "max_x": HALF_SIDE,
        "min_z": -HALF_SIDE,
        "max_z": HALF_SIDE,
        "wall_height": WALL_HEIGHT,
        "no_ceiling": True,
        "wall_tex": "cardboard",
        "floor_tex": "asphalt",
    }
    return RoomsEnv([room], _make_dancers, VIEW_SIZE, LARGE_SIZE, forward_step=0.15, turn_step=15.0)


def _make_dancers() -> list[Entity]:
    """Boxes and balls in the order of the dancers' numbers."""
    boxes = [Box(colour, DANCER_SIZE) for colour in COLOURS]
    return [*boxes, *(Ball(colour, DANCER_SIZE) for colour in COLOURS)]
