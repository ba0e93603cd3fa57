"""Base class of Roaming, Coverage and Search: robot, sensors, reward terms, termination."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import gymnasium as gym
import numpy as np

from memenvs.caches import RecentlyUsed
from memenvs.exploration import carmine
from memenvs.exploration.config import ExplorationConfig
from memenvs.exploration.drive import (
    ACTION_NAMES,
    COMMANDS,
    FORWARD,
    FORWARD_DISTANCE,
    WHEEL_RADIUS,
    collision_points,
    dead_reckon,
    noisy_motions,
)
from memenvs.exploration.nyu40 import NYU40
from memenvs.exploration.planner import UNREACHABLE, best_action, costs_to_go
from memenvs.exploration.task_home import GRID_SIZE, TaskHome, enter_cells
from memenvs.exploration.viewer import LEGEND, LEGEND_OF_CELLS, MAP_SCALE, Legend, render_view
from memenvs.houses.homes_config import Pose, check_start_pose, draw_start_pose
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.topdown import Marker, draw_legend
from memenvs.houses.rendering.viewer import MapOverlay, draw_house_map, draw_view_and_map, house_map_pixels
from memenvs.poses import relative_poses
from memenvs.random import draw_keys
from memenvs.task import BatchTask, Observation, Options


class RewardWeights(NamedTuple):
    """Reward for each term of a step, in the order of `info["reward_terms"]`.

    Attributes:
        move: A step forward without a collision.
        cell: A cell entered for the first time.
        target: An object class found for the first time; only Search pays for it.
        collision: A collision.
    """

    move: float = 0.0
    cell: float = 0.0
    target: float = 0.0
    collision: float = 0.0


REWARD_TERMS = RewardWeights._fields
MOVE, CELL, TARGET, COLLISION = range(len(REWARD_TERMS))
#: Observation key -> rendered image that it is computed from.
RENDERED = {"rgb": "rgb", "depth": "depth", "semantic": "semantic", "scan": "depth", "scan_class": "semantic"}
#: The next collision after this number terminates the episode.
MAX_COLLISIONS = 50
#: Homes to keep in memory; each takes about 2 MB.
HOME_CACHE_SIZE = 256


@dataclass(eq=False)
class ExplorationState:
    """State of N environments, but for the poses of the robots, which the simulator has.

    Attributes:
        corner: float64, (N, 2); corner of coverage cell [0, 0] of the home, m.
        counted_cells: bool, (N, S, S); cells that count. A longer home makes the grid larger.
        visited: bool, (N, S, S); cells visited so far.
        is_new: bool, (N,); the latest step entered a cell for the first time.
        reachable: int64, (N,); cells that can still be entered at the start of the episode.
        keys: uint64, (2, N); random streams of the wheel noise and of the depth noise of the episode.
        start: float64, (N, 3); x, y (m) and heading (rad).
        estimate: float64, (N, 3); pose by dead reckoning, relative to the start.
        commands: float64, (N, 2); arc length (m) and turn (rad) that the latest action commanded.
        terms: float64, (N, 4); reward terms of the latest step, unweighted.
        totals: int64, (N, 4); their sums over the episode.
        steps: int64, (N,); of the episode.
        is_stale: bool, (N,); the robot has acted since its images were rendered.
        cost_maps: The oracle's cache: a key that identifies the goals, and the cost map towards them.
    """

    corner: np.ndarray
    counted_cells: np.ndarray
    visited: np.ndarray
    is_new: np.ndarray
    reachable: np.ndarray
    keys: np.ndarray
    start: np.ndarray
    estimate: np.ndarray
    commands: np.ndarray
    terms: np.ndarray
    totals: np.ndarray
    steps: np.ndarray
    is_stale: np.ndarray
    cost_maps: list[tuple[tuple, np.ndarray] | None]

    @classmethod
    def of(cls, num_envs: int) -> ExplorationState:
        """Make the state of environments that have not begun."""
        flags, counts = partial(np.zeros, dtype=bool), partial(np.zeros, dtype=np.int64)
        return cls(
            corner=np.zeros((num_envs, 2)),
            counted_cells=flags((num_envs, GRID_SIZE, GRID_SIZE)),
            visited=flags((num_envs, GRID_SIZE, GRID_SIZE)),
            is_new=flags(num_envs),
            reachable=counts(num_envs),
            keys=np.zeros((2, num_envs), np.uint64),
            start=np.zeros((num_envs, 3)),
            estimate=np.zeros((num_envs, 3)),
            commands=np.zeros((num_envs, 2)),
            terms=np.zeros((num_envs, len(REWARD_TERMS))),
            totals=counts((num_envs, len(REWARD_TERMS))),
            steps=counts(num_envs),
            is_stale=np.ones(num_envs, bool),
            cost_maps=[None] * num_envs,
        )

    def enter_home(self, i: int, home: TaskHome) -> None:
        """Give environment `i` the coverage cells of a home."""
        size = len(home.counted_cells)
        growth = size - self.visited.shape[1]
        if growth > 0:
            margins = ((0, 0), (0, growth), (0, growth))
            self.counted_cells, self.visited = np.pad(self.counted_cells, margins), np.pad(self.visited, margins)
        self.corner[i], self.counted_cells[i] = home.corner, False
        self.counted_cells[i, :size, :size] = home.counted_cells

    def begin(self, i: int, start: Pose, keys: np.ndarray) -> None:
        """Begin an episode of environment `i`.

        Args:
            i: The environment.
            start: x, y (m) and heading (rad) of the robot.
            keys: uint64, (2,); random streams of its wheel noise and its depth noise.
        """
        self.start[i], self.keys[:, i] = start, keys
        self.visited[i] = False
        self.estimate[i] = self.commands[i] = self.terms[i] = 0.0
        self.totals[i] = self.steps[i] = 0
        self.is_stale[i], self.cost_maps[i] = True, None


def empty_images(num_envs: int, camera: Camera, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Allocate the images that the renderer fills.

    Args:
        num_envs: Number of environments, N.
        camera: Camera whose height H and width W the images have.
        names: Any of "rgb", "depth" and "semantic".

    Returns:
        Name -> zeros: "rgb" uint8 (N, H, W, 3), "depth" float32 (N, H, W, 1), "semantic" uint8 (N, H, W).
    """
    shape = num_envs, camera.height, camera.width
    formats = {"rgb": ((*shape, 3), np.uint8), "depth": ((*shape, 1), np.float32), "semantic": (shape, np.uint8)}
    return {name: np.zeros(*formats[name]) for name in names}


class Exploration(BatchTask):
    """Base class of the three tasks.

    A subclass adds `reward_weights`, an oracle and metrics of its own.

    Observation:
        rgb: With `obs_mode="frames"`: uint8, (48, 64, 3).
        depth: With `obs_mode="frames"`: float32, (48, 64, 1); m along the optical axis, with noise, 0 where nothing is
            hit within 5 m.
        semantic: With `obs_mode="frames"`: uint8, (48, 64); label of NYU40, 0 for none.
        scan: With `obs_mode="scan"`: float32, (64,); row 32 of the depth, 8 degrees below level.
        scan_class: With `obs_mode="scan"`: uint8, (64,); row 32 of the labels.
        pose: float32, (3,); x ahead (m), y to the left (m) and heading (rad), relative to the start.

    Action:
        `Discrete(3)`: forward 0.25 m, turn left, turn right by 45 degrees. The wheels slip: with the defaults each
        action turns the robot by 7.0 degrees (standard deviation) too far or too little. A robot that would touch
        something during a step forward stays in place; turns never collide.

    Layout:
        Number of the home among those of its world that can be played. All episodes of a trial are in it; by default a
        trial is one episode.

    Options:
        start: (x m, y m, heading rad) on the largest navigable island; default drawn.

    Info:
        pose: (x m, y m, heading rad).
        place: Number of the room.
        scene_id: Name of the home.
        start: As in the options.
        command: Length (m) and turn (rad) that the last action commanded.
        collision: True if the last action collided.
        visited: bool, (64, 64), larger from the first home on that is longer than 32 m; cells of 0.5 m that the robot
            has been in. Row 0 is at the smallest y, column 0 at the smallest x of the home.
        reward_terms: (4,); forward without a collision, cells newly entered, classes newly found (0 outside Search),
            collisions in the last step.
        return: Sum of rewards in this episode.
        forwards_ok: Steps forward without a collision.
        distance: 0.25 m for each of these.
        collisions: Steps with a collision.
        cells: Cells entered, without the start's. Only cells whose centre can be reached count.
        coverage: Share of the cells that can be reached.

    Variants:
        - `modalities=["rgb", "depth"]`: some of the observations.
        - `image_size=(24, 32)`: images of half the size; the default is 48 x 64.
        - `obs_mode="scan"`: one row of 64 rays in place of images.
        - `pose_source="dead_reckoning"`: the robot's own estimate of its pose, which drifts.
        - `world="procthor"`: the same task in ProcTHOR houses.

    Attributes:
        reward_weights: Reward for each term of a step.

    Source:
        Fang et al., "Scene Memory Transformer for Embodied Agents in Long-Horizon Tasks", CVPR 2019 (arXiv:1903.03878),
        section 4.
    """

    option_names = ("start",)
    action_names = ACTION_NAMES
    config_type: ClassVar[type] = ExplorationConfig
    observation_settings = ("obs_mode", "modalities", "image_size", "pose_source", "collision_known")
    reward_weights: ClassVar[RewardWeights]

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = config = self.config_type(**kwargs)
        self.num_envs = num_envs
        self.max_episode_steps = config.max_episode_steps
        self.action_space = gym.spaces.Discrete(len(ACTION_NAMES))
        self._homes = config.playable_homes(type(self).__name__)
        self.num_layouts = len(self._homes)
        self._task_homes: RecentlyUsed[int, TaskHome] = RecentlyUsed(max(HOME_CACHE_SIZE, num_envs))  # by layout
        self._home: list[TaskHome | None] = [None] * num_envs  # home of each environment; None before its first reset
        is_scan = config.obs_mode == "scan"
        self._camera = carmine.scan_camera() if is_scan else carmine.frame_camera(config.image_size)
        self._sim = self._homes.world.make_simulator(
            num_envs,
            self._camera,
            threads=config.threads,
            camera_ahead=carmine.CAMERA_AHEAD,
            camera_height=carmine.CAMERA_HEIGHT,
        )
        self.observation_space = self._make_space()
        # Rendered images by the renderer's names.
        rendered = [RENDERED[name] for name in config.modalities or () if name in RENDERED]
        self._images = empty_images(num_envs, self._camera, rendered)
        self._wheel_std = WHEEL_RADIUS * config.wheel_noise  # m; an action takes one second
        self.state = ExplorationState.of(num_envs)
        self._scene_id = np.full(num_envs, "", object)  # of any length
        # Poses of the episode for `render`: those after step t are in row t.
        self._trail = np.zeros((config.max_episode_steps + 1, num_envs, 3))

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Move the robot into a home."""
        self._home[i] = home = self._load_home(layout)
        self._sim.load(i, home.navmap, home.scene)
        self.state.enter_home(i, home)
        self._scene_id[i] = home.house.name

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Put the robot at a random start, or at the option `start`, and draw the keys of the noise."""
        home, state = self.home(i), self.state
        start = draw_start_pose(home.navmap, rng)
        keys = draw_keys(rng, 2)
        if options.get("start") is not None:
            start = check_start_pose(home.navmap, home.house.name, options["start"])
        self._sim.place(i, start[:2], start[2], 0.0)
        state.begin(i, start, keys)
        self._enter_cells(np.arange(self.num_envs) == i)
        state.reachable[i] = home.counted_cells.sum() - state.is_new[i]  # the start cell is visited already
        self._trail[0, i] = start

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Drive the active robots, mark the cells that they enter, and detect targets.

        Returns:
            Weighted sums of the reward terms, float64 (N,); terminated, bool (N,): too many collisions.
        """
        sim, state, config = self._sim, self.state, self.config
        is_forward = active & (actions == FORWARD)
        commands = COMMANDS[actions] * active[:, None]
        motions = np.empty_like(commands)
        noisy_motions(commands, self._wheel_std, state.keys[0], state.steps, motions)
        # Only a step forward can collide; a turn whose arc is blocked rotates on the spot.
        collided = sim.drive(active, motions, ~is_forward)
        if config.pose_source == "dead_reckoning":
            # A robot that knows of its collision knows that it did not move; otherwise the estimate drifts.
            dead_reckon(state.estimate, commands * ~collided[:, None] if config.collision_known else commands)
        state.steps += active
        state.is_stale |= active
        rows = np.flatnonzero(active)
        self._trail[state.steps[rows], rows] = sim.pose[rows]
        self._enter_cells(active)
        terms = np.column_stack([is_forward & ~collided, state.is_new, self._find_targets(active), collided])
        state.totals += terms  # those of inactive environments are 0
        state.terms[rows] = terms[rows]
        state.commands[rows] = commands[rows]
        return terms @ np.array(self.reward_weights), active & (state.totals[:, COLLISION] > MAX_COLLISIONS)

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write images, with sensor noise on depth, and the pose relative to the start."""
        self._render_stale(env_mask)
        rows = np.flatnonzero(env_mask)
        for name in out.keys() & RENDERED.keys():
            image, observed = self._images[RENDERED[name]], out[name]
            if RENDERED[name] == "depth":
                true, measured = image.reshape(self.num_envs, -1), observed.reshape(self.num_envs, -1)
                carmine.sense_depth(true, rows, self.state.keys[1], self.state.steps, measured)
            elif len(rows) == self.num_envs:
                np.copyto(observed, image.reshape(observed.shape))
            else:
                observed[rows] = image.reshape(observed.shape)[rows]
        if "pose" in out:
            is_true = self.config.pose_source == "truth"
            poses = relative_poses(self._sim.pose, self.state.start) if is_true else self.state.estimate
            out["pose"][rows] = poses[rows]

    def info(self) -> dict[str, np.ndarray]:
        """Return the true state and metrics; the docstrings of the subclasses list the keys."""
        state, totals = self.state, self.state.totals
        return {
            "pose": self._sim.pose.astype(np.float32),
            "place": self._sim.rooms,
            "scene_id": self._scene_id,
            "start": state.start,
            "command": state.commands,
            "collision": state.terms[:, COLLISION] > 0,
            "visited": state.visited,
            "reward_terms": state.terms,
            "return": totals @ np.array(self.reward_weights),
            "forwards_ok": totals[:, MOVE],
            "distance": FORWARD_DISTANCE * totals[:, MOVE],
            "collisions": totals[:, COLLISION],
            "cells": totals[:, CELL],
            "coverage": totals[:, CELL] / np.maximum(state.reachable, 1),
        }

    def oracle_actions(self) -> np.ndarray:
        """Return the actions of a policy that knows the map, int64 (N,)."""
        return np.array([self._oracle_action(i) for i in range(self.num_envs)], np.int64)

    def render(self, i: int) -> np.ndarray:
        """Render the robot's view and, to its right, a map with its path; uint8 (384, 768, 3)."""
        path = self._trail[: self.state.steps[i] + 1, i]
        overlay = self._overlay(i, path, self._markers(i))
        return draw_view_and_map(render_view(self._sim, i), self.home(i).house, path, overlay)

    def draw_map(self, i: int, path: np.ndarray) -> np.ndarray:
        """Draw a map with a path, its collisions, entered cells and found objects; and a legend.

        Args:
            i: Environment.
            path: float64, (P, 3); poses: x, y (m) and heading (rad).

        Returns:
            uint8, (rows, columns, 3).
        """
        overlay = self._overlay(i, path, self._markers(i, path))
        house_map = draw_house_map(self.home(i).house, path, overlay, pixels_per_metre=MAP_SCALE)
        return np.concatenate([house_map, draw_legend(self._legend(), house_map.shape[1])])

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """Convert poses to pixels of the image of `draw_map`.

        Args:
            i: Environment.
            poses: float64, (P, 3); x, y (m) and heading (rad).

        Returns:
            float64, (P, 2); column and row.
        """
        return house_map_pixels(self.home(i).house, poses, pixels_per_metre=MAP_SCALE)

    def close(self) -> None:
        """Stop the rendering threads."""
        self._sim.close()

    @property
    def num_places(self) -> int | None:
        """Largest number of rooms in a home of this world; None if the world does not bound it."""
        return self._homes.world.max_rooms

    def home(self, i: int) -> TaskHome:
        """Return the home of environment `i`.

        Raises:
            RuntimeError: Before its first reset.
        """
        home = self._home[i]
        if home is None:
            raise RuntimeError("home was called before reset")
        return home

    def _enter_cells(self, env_mask: np.ndarray) -> None:
        """Mark the cells that contain the robots in `env_mask` as visited."""
        state = self.state
        enter_cells(self._sim.position, state.corner, state.counted_cells, env_mask, state.visited, state.is_new)

    def _find_targets(self, active: np.ndarray) -> np.ndarray:
        """Count the object classes that each active robot finds for the first time, int64 (N,). Search overrides it."""
        return np.zeros(self.num_envs, np.int64)

    @abstractmethod
    def _oracle_action(self, i: int) -> int:
        """Choose the action of the oracle in environment `i`."""

    def _action_to_unvisited_cell(self, i: int) -> int:
        """Choose the action towards the nearest unvisited cell: frontier exploration with a known map."""
        home, num_cells = self.home(i), int(self.state.totals[i, CELL])
        # The unvisited cells change exactly when the number of cells entered does, so that number is the cache key.
        costs = self._cost_map(i, (num_cells,), lambda: home.unvisited(self.state.visited[i]))
        return best_action(home.navmap, self._sim.pose[i], costs)

    def _cost_map(self, i: int, key: tuple, find_goals: Callable[[], np.ndarray]) -> np.ndarray | None:
        """Return the costs of reaching the nearest goal, from a cache of one cost map for each environment.

        Args:
            i: Environment.
            key: Identifies the goals within the episode. The costs are computed again when it changes, or when the
                robot leaves the part of the map for which they are known.
            find_goals: Returns the goal cells, bool (H * W,).

        Returns:
            int32, (H * W,), as `memenvs.exploration.planner.costs_to_go` returns them; None if the robot has no path
            to a goal.
        """
        home, cached = self.home(i), self.state.cost_maps[i]
        robot = int(home.navmap.cells(self._sim.position[i : i + 1])[0])
        if cached is None or cached[0] != key or cached[1][robot] == UNREACHABLE:
            costs = costs_to_go(home.costs, home.navmap.shape[1], find_goals(), robot)
            self.state.cost_maps[i] = cached = key, costs
        return cached[1] if cached[1][robot] < UNREACHABLE else None

    def _markers(self, i: int, path: np.ndarray | None = None) -> tuple[Marker, ...]:
        """Markers of objects in environment `i` at the end of `path`; None: at the present step."""
        return ()

    def _legend(self) -> Legend:
        """Entries of the legend below maps."""
        return [*LEGEND, *LEGEND_OF_CELLS] if self.reward_weights.cell else LEGEND

    def _make_space(self) -> gym.spaces.Dict:
        box = gym.spaces.Box
        size = self.config.image_size or ()
        rays = (self._camera.width,)
        max_label = len(NYU40) - 1
        max_pose = np.array([np.inf, np.inf, np.pi], np.float32)
        spaces: dict[str, gym.Space] = {
            "rgb": box(0, 255, (*size, 3), np.uint8),
            "depth": box(0.0, np.inf, (*size, 1), np.float32),
            "semantic": box(0, max_label, size, np.uint8),
            "scan": box(0.0, np.inf, rays, np.float32),
            "scan_class": box(0, max_label, rays, np.uint8),
            "pose": box(-max_pose, max_pose, dtype=np.float32),
        }
        return gym.spaces.Dict({name: spaces[name] for name in self.config.modalities or ()})

    def _overlay(self, i: int, path: np.ndarray, markers: tuple[Marker, ...]) -> MapOverlay:
        """Overlay of a map: collisions of a path, the cells that it entered if these are rewarded, and markers."""
        squares = self.home(i).entered_cells(path) if self.reward_weights.cell else np.zeros((0, 3))
        return MapOverlay(squares, collision_points(path), markers)

    def _render_stale(self, env_mask: np.ndarray) -> None:
        """Render the images of environments in `env_mask` that are stale."""
        env_mask = env_mask & self.state.is_stale
        if self._images and env_mask.any():
            self._sim.render(env_mask, self._images)
        self.state.is_stale &= ~env_mask

    def _load_home(self, layout: int) -> TaskHome:
        def make(number: int) -> TaskHome:
            return TaskHome.of(number, self._homes.world.home(number))

        return self._task_homes.get(layout, lambda: self._homes.load(layout, make))
