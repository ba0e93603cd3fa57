"""What Roaming, Coverage and Search share: the robot, its sensors, what a step pays, and how an episode ends."""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import ClassVar

import gymnasium as gym
import numpy as np

from memenvs.core import BatchTask, Observation, Options
from memenvs.exploration import carmine
from memenvs.exploration.config import ExplorationConfig
from memenvs.exploration.drive import (
    ACTION_NAMES,
    COMMANDS,
    FORWARD,
    FORWARD_DISTANCE,
    ROBOT_HEIGHT,
    ROBOT_RADIUS,
    WHEEL_RADIUS,
    contacts,
    noisy_motions,
    reckon,
    seen_from,
)
from memenvs.exploration.nyu40 import NYU40
from memenvs.exploration.planner import UNREACHABLE, spread_costs, walk
from memenvs.exploration.task_home import GRID, TaskHome, enter_cells
from memenvs.houses.homes_config import check_start_pose, draw_start_pose
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.topdown import Marker, draw_legend
from memenvs.houses.rendering.viewer import VIEW_SIDE, MapOverlay, draw_house_map, draw_view_and_map, house_map_pixels
from memenvs.houses.simulator import Simulator
from memenvs.random import draw_keys

#: Columns of `info["reward_terms"]`: forward without a collision, cells newly entered, classes newly found, collisions.
REWARD_TERMS = ("move", "cell", "target", "collision")
MOVE, CELL, TARGET, COLLISION = range(len(REWARD_TERMS))
#: What is observed -> what the renderer calls it.
RENDERED = {"rgb": "rgb", "depth": "depth", "semantic": "semantic", "scan": "depth", "scan_class": "semantic"}
#: The next collision after so many ends the episode.
MOST_COLLISIONS = 50
#: Homes kept ready; one takes about 2 MB.
HOME_CACHE_SIZE = 256
_MAP_SCALE = 40.0  # pixels per metre
_AROUND_VIEW = 250  # grey


def empty_images(num_envs: int, camera: Camera, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Room for what a renderer draws of "rgb", "depth" and "semantic", (N, H, W, ...)."""
    shape = num_envs, camera.height, camera.width
    rooms = {"rgb": ((*shape, 3), np.uint8), "depth": ((*shape, 1), np.float32), "semantic": (shape, np.uint8)}
    return {name: np.zeros(*rooms[name]) for name in names}


class Exploration(BatchTask):
    """Base of the three tasks; a task says what the terms of its reward weigh and which metrics it has.

    All episodes of a trial are in one home: layout n is home n of the world.

    Attributes:
        weights: What a step pays for each of `REWARD_TERMS`.
    """

    option_names = ("start",)
    action_names = ACTION_NAMES
    config_type: ClassVar[type] = ExplorationConfig
    weights: ClassVar[tuple[float, float, float, float]]

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = config = self.config_type(**kwargs)
        self.num_envs = num_envs
        self.max_episode_steps = config.max_episode_steps
        self.action_space = gym.spaces.Discrete(len(ACTION_NAMES))
        self._world = config.make_world(robot_radius=ROBOT_RADIUS, robot_height=ROBOT_HEIGHT)
        self.num_layouts = len(self._world)
        self._homes: OrderedDict[int, TaskHome] = OrderedDict()
        self._home: list[TaskHome | None] = [None] * num_envs
        is_scan = config.obs_mode == "scan"
        self._camera = carmine.scan_camera() if is_scan else carmine.frame_camera(config.image_size)
        self._sim = Simulator(
            num_envs,
            self._camera,
            threads=config.threads,
            camera_ahead=carmine.CAMERA_AHEAD,
            camera_height=carmine.CAMERA_HEIGHT,
        )
        self.observation_space = self._make_space()
        # What was drawn last, by the names that the renderer gives it, and whose row the robot has left behind.
        drawn = [RENDERED[name] for name in config.modalities or () if name in RENDERED]
        self._images = empty_images(num_envs, self._camera, drawn)
        self._is_stale = np.ones(num_envs, bool)
        self._keys = np.zeros((2, num_envs), np.uint64)  # of the noise of wheels and of depth
        self._wheel_way = WHEEL_RADIUS * config.wheel_noise * config.action_seconds
        self._commands = np.zeros((num_envs, 2))
        self._motions = np.zeros((num_envs, 2))
        self._estimate = np.zeros((num_envs, 3))
        self._start = np.zeros((num_envs, 3))
        self._corner = np.zeros((num_envs, 2))
        self._cells = np.zeros((num_envs, GRID, GRID), bool)
        self._visited = np.zeros((num_envs, GRID, GRID), bool)
        self._is_new = np.zeros(num_envs, bool)
        self._terms = np.zeros((num_envs, len(REWARD_TERMS)))
        self._totals = np.zeros((num_envs, len(REWARD_TERMS)), np.int64)
        self._reachable = np.zeros(num_envs, np.int64)
        self._steps = np.zeros(num_envs, np.int64)
        self._scene_id = np.zeros(num_envs, "U64")
        # Poses, for pictures: those after step t are row t modulo the length of an episode.
        self._trail = np.zeros((config.max_episode_steps + 1, num_envs, 3))
        # Of the oracle: the ways that were found last, and for what.
        self._plans: list[tuple[tuple, np.ndarray] | None] = [None] * num_envs

    # ------------------------------------------------------------------ rules

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Moves into a home."""
        self._home[i] = home = self._load_home(layout)
        self._sim.load(i, home.navmap, home.scene)
        self._corner[i], self._cells[i] = home.corner, home.cells
        self._scene_id[i] = home.house.name

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Draws the start and the keys of all noise."""
        home = self.home(i)
        start = draw_start_pose(home.navmap, rng)
        self._keys[:, i] = draw_keys(rng, 2)
        if options.get("start") is not None:
            start = check_start_pose(home.navmap, home.house.name, options["start"])
        self._start[i] = start
        self._sim.place(i, start[:2], start[2], 0.0)
        self._estimate[i] = 0.0
        self._visited[i] = False
        self._steps[i] = 0
        only = np.arange(self.num_envs) == i
        enter_cells(self._sim.position, self._corner, self._cells, only, self._visited, self._is_new)
        self._reachable[i] = home.cells.sum() - self._is_new[i]  # the cell of the start is no longer to be covered
        self._terms[i], self._totals[i], self._commands[i] = 0.0, 0, 0.0
        self._is_stale[i] = True
        self._trail[0, i] = start

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Drives, marks cells, looks for targets, and pays for all that."""
        sim, config = self._sim, self.config
        is_forward = active & (actions == FORWARD)
        commands = COMMANDS[actions] * active[:, None]
        noisy_motions(commands, self._wheel_way, self._keys[0], self._steps, self._motions)
        collided = sim.drive(active, self._motions, ~is_forward)
        if config.pose_source == "dead_reckoning":
            reckon(self._estimate, commands * ~collided[:, None] if config.collision_known else commands)
        self._steps += active
        self._is_stale |= active
        rows = np.flatnonzero(active)
        self._trail[self._steps[rows] % len(self._trail), rows] = sim.pose[rows]
        enter_cells(sim.position, self._corner, self._cells, active, self._visited, self._is_new)
        terms = np.column_stack([is_forward & ~collided, self._is_new, self._find_targets(active), collided])
        self._totals += terms
        self._terms[rows], self._commands[rows] = terms[rows], commands[rows]
        return terms @ np.array(self.weights), active & (self._totals[:, COLLISION] > MOST_COLLISIONS)

    def observe(self, out: Observation, which: np.ndarray) -> None:
        """What the robots see, and where they are or believe to be."""
        self._draw(which)
        rows = np.flatnonzero(which)
        for name in out.keys() & RENDERED.keys():
            image, seen = self._images[RENDERED[name]], out[name]
            if RENDERED[name] == "depth":
                true, measured = image.reshape(self.num_envs, -1), seen.reshape(self.num_envs, -1)
                carmine.sense_depth(true, rows, self._keys[1], self._steps, measured)
            elif len(rows) == self.num_envs:
                np.copyto(seen, image.reshape(seen.shape))
            else:
                seen[rows] = image.reshape(seen.shape)[rows]
        if "pose" in out:
            is_true = self.config.pose_source == "truth"
            poses = seen_from(self._sim.pose, self._start) if is_true else self._estimate
            out["pose"][rows] = poses[rows]

    def info(self) -> dict[str, np.ndarray]:
        """Truth and metrics; see the tasks."""
        totals = self._totals
        return {
            "pose": self._sim.pose.astype(np.float32),
            "place": self._sim.rooms,
            "scene_id": self._scene_id,
            "start": self._start,
            "command": self._commands,
            "collision": self._terms[:, COLLISION] > 0,
            "visited": self._visited,
            "reward_terms": self._terms,
            "return": totals @ np.array(self.weights),
            "forwards_ok": totals[:, MOVE],
            "distance": FORWARD_DISTANCE * totals[:, MOVE],
            "collisions": totals[:, COLLISION],
            "cells": totals[:, CELL],
            "coverage": totals[:, CELL] / np.maximum(self._reachable, 1),
        }

    def oracle_actions(self) -> np.ndarray:
        """What a robot does that knows the map; see the tasks."""
        return np.array([self._plan(i) for i in range(self.num_envs)], np.int64)

    def render(self, i: int) -> np.ndarray:
        """What the robot sees and a map with its way; 384 x 768."""
        height = VIEW_SIDE * 3 // 4  # the sensor's shape
        camera = Camera(height=height, width=VIEW_SIDE, hfov_deg=carmine.HFOV_DEG)
        seen = np.zeros((self.num_envs, height, VIEW_SIDE, 3), np.uint8)
        self._sim.render(np.arange(self.num_envs) == i, {"rgb": seen}, camera=camera)
        view = np.full((VIEW_SIDE, VIEW_SIDE, 3), _AROUND_VIEW, np.uint8)
        top = (VIEW_SIDE - height) // 2
        view[top : top + height] = seen[i]
        count = int(self._steps[i])
        steps = np.arange(max(0, count + 1 - len(self._trail)), count + 1)
        way = self._trail[steps % len(self._trail), i]
        return draw_view_and_map(view, self.home(i).house, way, self._traces(i, way, self._marks(i)))

    def draw_map(self, i: int, way: np.ndarray) -> np.ndarray:
        """The home from above with the way and all that follows from it: collisions, cells entered, classes found; and a legend."""
        traces = self._traces(i, way, self._marks(i, way))
        plan = draw_house_map(self.home(i).house, way, traces, pixels_per_metre=_MAP_SCALE)
        return np.concatenate([plan, draw_legend(self._legend(), plan.shape[1])])

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """Positions on the floor plan."""
        return house_map_pixels(self.home(i).house, poses, pixels_per_metre=_MAP_SCALE)

    def close(self) -> None:
        """Stops the threads."""
        self._sim.close()

    def __getstate__(self) -> dict[str, object]:
        in_use = OrderedDict((home.number, home) for home in self._home if home is not None)
        return {**self.__dict__, "_homes": in_use}  # the others are soon made again

    # ------------------------------------------------------------------ beyond the rules

    @property
    def num_places(self) -> int | None:
        """Most rooms of a home of this world; None for a `HouseWorld` that does not know."""
        return self._world.max_rooms

    def home(self, i: int) -> TaskHome:
        """The home that environment `i` is in.

        Raises:
            RuntimeError: Before its first reset.
        """
        found = self._home[i]
        if found is None:
            raise RuntimeError("home was asked for before reset")
        return found

    # ------------------------------------------------------------------ what a task may change

    def _find_targets(self, active: np.ndarray) -> np.ndarray:
        """int64, (N,); how many classes the robots in `active` see for the first time. No task but Search asks for any."""
        return np.zeros(self.num_envs, np.int64)

    @abstractmethod
    def _plan(self, i: int) -> int:
        """What the oracle does in environment `i`."""

    def _plan_to_cover(self, i: int) -> int:
        """Frontier exploration with the map: on to the nearest cell that was not visited."""
        home, cells = self.home(i), int(self._totals[i, CELL])
        costs = self._costs_to(i, (cells,), lambda: home.unvisited(self._visited[i]))
        return walk(home.navmap, self._sim.pose[i], costs)

    def _costs_to(self, i: int, key: tuple, find_goals: Callable[[], np.ndarray]) -> np.ndarray | None:
        """What it costs to walk to goals (see `memenvs.exploration.planner`), None if no way leads there; kept while `key` stays the same."""
        home, kept = self.home(i), self._plans[i]
        robot = int(home.navmap.cells(self._sim.position[i : i + 1])[0])
        key = (int(self._keys[0, i]), *key)
        if kept is None or kept[0] != key or kept[1][robot] == UNREACHABLE:
            costs = spread_costs(home.costs, home.navmap.shape[1], find_goals(), robot)
            self._plans[i] = kept = key, costs
        return kept[1] if kept[1][robot] < UNREACHABLE else None

    def _marks(self, i: int, way: np.ndarray | None = None) -> tuple[Marker, ...]:
        """Things in environment `i` to mark on maps, as they were at the end of a way; None: as they are now."""
        return ()

    def _legend(self) -> list[tuple[str | Marker, str]]:
        """What the signs on maps mean, see `draw_legend`."""
        signs: list[tuple[str | Marker, str]] = [("trajectory", "first to last step"), ("cross", "collision")]
        return [*signs, ("square", "cell entered")] if self.weights[CELL] else signs

    # ------------------------------------------------------------------ private

    def _make_space(self) -> gym.spaces.Dict:
        box, size, far = gym.spaces.Box, self.config.image_size or (), np.array([np.inf, np.inf, np.pi], np.float32)
        rays, most = (self._camera.width,), len(NYU40) - 1
        spaces: dict[str, gym.Space] = {
            "rgb": box(0, 255, (*size, 3), np.uint8),
            "depth": box(0.0, np.inf, (*size, 1), np.float32),
            "semantic": box(0, most, size, np.uint8),
            "scan": box(0.0, np.inf, rays, np.float32),
            "scan_class": box(0, most, rays, np.uint8),
            "pose": box(-far, far, dtype=np.float32),
        }
        return gym.spaces.Dict({name: spaces[name] for name in self.config.modalities or ()})

    def _traces(self, i: int, way: np.ndarray, marks: tuple[Marker, ...]) -> MapOverlay:
        """What a way left behind on the map; cells where entering one is paid for."""
        squares = self.home(i).entered(way) if self.weights[CELL] else np.zeros((0, 3))
        return MapOverlay(squares, contacts(way), marks)

    def _draw(self, which: np.ndarray) -> None:
        """Draws, of the environments in `which`, those that have moved since they were drawn."""
        which = which & self._is_stale
        if self._images and which.any():
            self._sim.render(which, self._images)
        self._is_stale &= ~which

    def _load_home(self, number: int) -> TaskHome:
        if number not in self._homes:
            self._homes[number] = TaskHome.of(number, self._world.home(number))
            if len(self._homes) > max(HOME_CACHE_SIZE, self.num_envs):
                self._homes.popitem(last=False)
        self._homes.move_to_end(number)
        return self._homes[number]
