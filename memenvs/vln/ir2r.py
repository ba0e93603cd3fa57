"""Iterative Room-to-Room (IR2R): instructions in one house, one after another."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.data import find_vln_folder
from memenvs.task import PHASE, Observation, Options
from memenvs.vln.config import STEPS_PER_LEG, IR2RConfig
from memenvs.vln.r2r import R2R
from memenvs.vln.tours import Tour, draw_tour, read_tours
from memenvs.vln.viewer import draw_text


class IR2R(R2R):
    """Follow one instruction after another in the same house, on a tour.

    Between two episodes the robot is led, as in the paper: it is put at the goal of the episode before, whether it was
    reached or not, and led the shortest way to the next start. The agent sees the way. There is no text yet, `phase` is
    0, and actions are ignored. So it can know the house better with each episode.

    Observation:
        phase: int; 0 while the robot is led, else 1.

    Termination:
        Stop terminates, and so do 15 decisions per leg: the steps to the start, which differ, do not count. But
        `max_episode_steps` counts them. The trial ends with its tour, or with `trial_episodes`; None plays whole tours.

    Layout:
        Number of the house, or of the published tour. With `itinerary="AAABBBAAA"` letters are houses. Each has its
        own tour, which goes on while the agent is elsewhere: the fourth episode of the trial, in B, is the fourth of
        B's tour. A tour that is over by then begins again, and the trial ends with that episode.

    Options:
        instr_id: Id of an instruction in the house of the tour, which is played in place of the tour's own.

    Without memory:
        The rule `memoryless` succeeds in 3 %. `ideal` remembers the episode and draws no map of the house: 88 %, also
        with the last 16 steps alone, 38 % with four. So the memory that it needs is a short one. A map could add the 12
        points to the oracle, which would not change the verdict.

    Variants:
        - `tours="published", world="mp3d", trial_episodes=None`: the tours of the paper, from `tours_iVLN.json` in the
          folder of R2R's files. `memenvs score ir2r` scores a file of trajectories with t-nDTW.
        - All variants of `VLN-R2R-v0`.

    Source:
        Krantz et al., "Iterative Vision-and-Language Navigation", CVPR 2023 (arXiv:2210.03087). There the robot is led
        to the goal too; here it is put there, so that an episode does not depend on the actions in the one before.
        Drawn tours have each path of a house once, with one of its texts; the next path is the nearest.

    See Also:
        `memenvs.vln.r2r.R2R`, and `memenvs.vln.env.GraphNavigation`: observation, action, reward and info.
    """

    config_type = IR2RConfig
    config: IR2RConfig

    def __init__(self, num_envs: int, **kwargs: Any) -> None:
        super().__init__(num_envs, **kwargs)
        config, world = self.config, self.world
        self._published: tuple[Tour, ...] = ()
        if config.tours == "published":
            self._published = read_tours(find_vln_folder(config.data_dir), config.split, world)
        self.num_layouts = len(self._published) or len(world.graphs)
        self._most_decisions = STEPS_PER_LEG * config.num_legs
        if config.max_episode_steps is None:  # a way to a start has fewer steps than the house has viewpoints
            self.max_episode_steps = self._most_decisions + max(len(graph) for graph in world.graphs)
        self._tours: list[Tour] = [()] * num_envs
        self._index = np.zeros(num_envs, np.int64)  # of the episode in its tour
        self._is_last = np.zeros(num_envs, bool)  # whether the tour is over with the episode
        self._ways: list[list[int]] = [[] for _ in range(num_envs)]  # nodes that the robot is yet led to, last first
        self._is_led = np.zeros(num_envs, bool)

    def _make_space(self) -> gym.spaces.Dict:
        return gym.spaces.Dict({**super()._make_space().spaces, PHASE: gym.spaces.Discrete(2)})

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Draw a tour of the house, or take the published one with this number."""
        super().begin_trial(i, layout, rng)
        self._tours[i] = self._published[layout] if self._published else draw_tour(self.world, layout, rng)

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Put the robot at the goal of the episode before, if there is one, else at the start."""
        tour, episode = self._tours[i], options.get("episode_index", 0)
        index = self._index[i] = episode % len(tour)
        self._is_last[i] = episode >= len(tour) - 1
        super().begin_episode(i, rng, options)
        paths, candidates = self._path_metrics, self.graphs.candidates
        start = int(paths.node[i])
        if index > 0:
            before, goal = self._prepare(tour[index - 1]).reference.path[-2:].tolist()
            paths.node[i] = goal  # where the robot is; its path begins later
            self._view[i] = candidates.view[before, np.flatnonzero(candidates.node[before] == goal)[0]]
            self._ways[i] = self.graphs.shortest_path(goal, start)[:0:-1]
        self._is_led[i] = paths.node[i] != start
        if not self._is_led[i]:
            self._view[i] = self._prepare(int(self._episode_number[i])).view

    def home_of(self, layout: int) -> int:
        """Number of the house of a tour; see `BatchTask`."""
        return super().home_of(self._published[layout][0]) if self._published else layout

    @property
    def num_homes(self) -> int:
        """Number of houses with a tour."""
        return len({self.home_of(layout) for layout in range(self.num_layouts)})

    def ends_trial(self, i: int) -> bool:
        """Return True in the last episode of the tour, and after it."""
        return bool(self._is_last[i])

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lead robots on, or move to the chosen candidates; see `R2R`."""
        led = active & self._is_led
        acts = active & ~led
        rewards, terminated = super().step(actions, acts)
        for i in np.flatnonzero(led).tolist():
            self._lead(i)
        return rewards, terminated | (acts & (self._moves >= self._most_decisions))

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write what R2R observes, without a text where the robot is led, and the phase."""
        super().observe(out, env_mask)
        led = env_mask & self._is_led
        out["instruction"][led] = out["instruction_mask"][led] = 0
        out[PHASE][env_mask] = ~self._is_led[env_mask]

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth; see the class."""
        return super().info() | {"layout_id": self._layout_number}

    def render(self, i: int) -> np.ndarray:
        """Draw the map and the text as in R2R; where the robot is led, its position and no text."""
        if not self._is_led[i]:
            return super().render(i)
        return np.concatenate([self.draw_map(i, self.graphs.position[self._path_metrics.node[[i]]]), draw_text("")])

    def _choose_episode(self, i: int, options: Options) -> int:
        """Return the number of the tour's episode, or of the one that options choose in its house."""
        own = self._tours[i][int(self._index[i])]
        number = self._requested_number({name: value for name, value in options.items() if name != "layout"})
        if number is None:
            return own
        chosen, house = self.world.episode(number), self.world.episode(own).house
        if chosen.house != house:
            own_scan, scan = self.world.graphs[house].name, self.world.graphs[chosen.house].name
            name = next(name for name in ("episode_number", "instr_id") if options.get(name) is not None)
            raise ValueError(
                f"option {name!r} must choose an episode in {own_scan}, the house of the tour, got {chosen.id!r} in "
                f"{scan}; the option 'layout' chooses the {'tour' if self._published else 'house'}"
            )
        return number

    def _lead(self, i: int) -> None:
        """Lead a robot to the next node; at the start it turns to the heading of the episode."""
        node, candidates = self._path_metrics.node, self.graphs.candidates
        here, there = int(node[i]), self._ways[i].pop()
        node[i] = there
        self._view[i] = candidates.view[here, np.flatnonzero(candidates.node[here] == there)[0]]
        if not self._ways[i]:
            self._is_led[i] = False
            self._view[i] = self._prepare(int(self._episode_number[i])).view
