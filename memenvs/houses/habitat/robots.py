"""Robots in homes of habitat-sim: our simulator, with moves and distances by `PathFinder`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from memenvs.houses.habitat.navmesh import NavmeshMap
from memenvs.houses.navigation.arcs import arc_end
from memenvs.houses.simulator import Simulator


class HabitatSimulator(Simulator):
    """N robots, each alone in a home of habitat-sim; see `memenvs.houses.simulator.Simulator`."""

    def __init__(self, num_robots: int, *args: Any, **kwargs: Any) -> None:
        # Paths to the goals of each robot, and where its distance was measured last; made when needed.
        self._paths: list[Any] = [None] * num_robots
        self._measured = np.full((num_robots, 3), np.nan)  # x, y and the distance, m
        super().__init__(num_robots, *args, **kwargs)

    def forward(self, robot_mask: np.ndarray, distance: float) -> np.ndarray:
        """Move robots straight on; they slide along obstacles. See `Simulator.forward`."""
        collided = np.zeros(self.num_robots, bool)
        for i in np.flatnonzero(robot_mask).tolist():
            rows = slice(i, i + 1)
            self.position[rows], collided[rows] = self._map(i).move(self.position[rows], self.heading[rows], distance)
        return collided

    def drive(self, robot_mask: np.ndarray, motions: np.ndarray, turns_freely: np.ndarray) -> np.ndarray:
        """Drive robots along arcs, by their chords; see `Simulator.drive`."""
        collided = np.zeros(self.num_robots, bool)
        for i in np.flatnonzero(robot_mask).tolist():
            distance, turn = motions[i].tolist()
            x, y = self.position[i].tolist()
            x, y, heading = arc_end(x, y, float(self.heading[i]), distance, turn)
            navmap = self._map(i)
            assert isinstance(navmap, NavmeshMap)
            reached, blocked = navmap.step(self.position[i], np.array([x, y]), slides=False)
            if blocked and not turns_freely[i]:
                collided[i] = True
                continue
            if not blocked:
                self.position[i] = reached
            self.heading[i] = heading % (2 * math.pi)
        return collided

    def geodesic_distances(self) -> np.ndarray:
        """Measure each robot's walking distance to its nearest goal; float64, (N,), m; or inf."""
        for i in range(self.num_robots):
            first, end = self._goal_spans[i]
            if first == end:
                self._measured[i, 2] = np.inf
                continue
            if (self._measured[i, :2] == self.position[i]).all():
                continue  # it has only turned
            navmap = self._map(i)
            assert isinstance(navmap, NavmeshMap)
            if self._paths[i] is None:
                self._paths[i] = navmap.path_to(self._goal_points.reshape(-1, 2)[first:end])
            self._measured[i] = *self.position[i], navmap.length(self._paths[i], self.position[i])
        return self._measured[:, 2].copy()

    def _set_field(self, i: int, field: np.ndarray, goals: np.ndarray) -> None:
        super()._set_field(i, field, goals)
        self._paths[i] = None
        self._measured[i] = np.nan

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_paths": [None] * self.num_robots}
