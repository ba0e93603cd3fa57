"""ExtObjNav: find small objects over many episodes in one home."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import gymnasium as gym
import numpy as np

from memenvs.caches import RecentlyUsed
from memenvs.houses.classes import CLASSES, YCB_CLASSES
from memenvs.houses.homes_config import Pose, check_start_pose, draw_start_pose
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.viewer import VIEW_SIDE, draw_house_map, draw_view_and_map, goal_overlay, house_map_pixels
from memenvs.houses.simulator import PixelCounter
from memenvs.moves import Moves
from memenvs.objectnav.config import ExtObjNavConfig, category_number
from memenvs.objectnav.expert import Expert
from memenvs.objectnav.layout import MAX_OBJECTS, MIN_PIXELS, Layout, make_layout, move_objects
from memenvs.objectnav.robot import (
    FORWARD,
    FORWARD_DISTANCE,
    LEFT,
    RIGHT,
    START_TILT_DEG,
    STOP,
    TILT_STEPS,
    WAIT,
    pitch_of,
    tilt,
)
from memenvs.objectnav.symbolic import SYMBOLIC_CAMERA, SYMBOLIC_SIZE, encode_symbolic
from memenvs.task import BatchTask, Observation, Options
from memenvs.threads import ThreadPool

__all__ = ["ExtObjNav", "ExtObjNavConfig", "category_number"]

#: Largest horizontal distance from a goal object at which a stop succeeds, m.
SUCCESS_DISTANCE = 2.0
STEP_REWARD = -0.001
SUCCESS_REWARD = 2.0
#: Number of layouts without `layout_pool`.
NUM_LAYOUTS = 2**31
#: Layouts to keep in memory beyond one for each environment.
SPARE_LAYOUTS = 16
_MAP_SCALE = 40.0  # pixels per metre
_ONE_HOT = np.eye(len(YCB_CLASSES), dtype=np.float32)
_START_PITCH = float(pitch_of(np.array(START_TILT_DEG)))


@dataclass(eq=False)
class ObjectNavState:
    """State of N environments, but for the poses of the robots, which the simulator has.

    Attributes:
        trial_start: float64, (N, 3); start that is drawn for the first episode of the trial: x, y (m), heading (rad).
        trial_goal: int64, (N,); goal of all episodes of the trial; -1 where each has its own.
        start: float64, (N, 3); as `trial_start`, of the episode.
        goal: int64, (N,); category.
        goal_position: float64, (N, MAX_OBJECTS, 3); positions of the goal objects, m; unused rows are inf.
        goal_instance: int64, (N, MAX_OBJECTS); their instance ids; unused entries are -1.
        tilt: float64, (N,); see `memenvs.objectnav.robot.tilt`, degrees.
        geodesic: float64, (N,); walking distance to the goal, m.
        geodesic_start: float64, (N,); the same at the start.
        path_length: float64, (N,); m.
        collisions: int64, (N,); steps with a collision.
        path_failures: int64, (N,); steps without a known walking distance.
        success: bool, (N,); a stop has succeeded.
        first_step: int64, (N,); step of the task at which the episode began.
    """

    trial_start: np.ndarray
    trial_goal: np.ndarray
    start: np.ndarray
    goal: np.ndarray
    goal_position: np.ndarray
    goal_instance: np.ndarray
    tilt: np.ndarray
    geodesic: np.ndarray
    geodesic_start: np.ndarray
    path_length: np.ndarray
    collisions: np.ndarray
    path_failures: np.ndarray
    success: np.ndarray
    first_step: np.ndarray

    @classmethod
    def of(cls, num_envs: int) -> ObjectNavState:
        """Make the state of environments that have not begun."""
        number, count = partial(np.zeros, num_envs), partial(np.zeros, num_envs, np.int64)
        return cls(
            trial_start=np.zeros((num_envs, 3)),
            trial_goal=count(),
            start=np.zeros((num_envs, 3)),
            goal=count(),
            goal_position=np.full((num_envs, MAX_OBJECTS, 3), np.inf),
            goal_instance=np.full((num_envs, MAX_OBJECTS), -1),
            tilt=number(),
            geodesic=number(),
            geodesic_start=number(),
            path_length=number(),
            collisions=count(),
            path_failures=count(),
            success=np.zeros(num_envs, bool),
            first_step=count(),
        )

    def begin(
        self, i: int, start: Pose, goal: int, targets: tuple[np.ndarray, np.ndarray], distance: float, step: int
    ) -> None:
        """Begin an episode of environment `i`.

        Args:
            i: The environment.
            start: x, y (m) and heading (rad) of the robot.
            goal: Category.
            targets: Positions and instance ids of its objects, as `Layout.targets` has them.
            distance: Walking distance to the goal, m.
            step: Step of the task.
        """
        self.start[i], self.goal[i], self.tilt[i] = start, goal, START_TILT_DEG
        self.goal_position[i], self.goal_instance[i] = targets
        self.geodesic[i] = self.geodesic_start[i] = distance
        self.path_length[i], self.collisions[i], self.path_failures[i], self.success[i] = 0.0, 0, 0, False
        self.first_step[i] = step


class ExtObjNav(BatchTask):
    """Go to an object of the goal category and stop; remember its home over a trial.

    Homes and small objects stay for a trial of many episodes. Each episode has another goal and another start. An agent
    that remembers where it has seen objects goes straight to them later. With `moves` objects now and then move to
    other furniture between two episodes, and it has to search where one is gone.

    Observation:
        rgb: With `obs_mode="rgb"` and "rgb" among `sensors`: uint8, (H, W, 3); image of the head camera.
        depth: With "depth" among `sensors`: float32, (H, W, 1); m.
        semantic: With "semantic" among `sensors`: uint8, (H, W); class of each pixel.
        symbolic: With `obs_mode="symbolic"`, in place of images: float32, (52,); areas of the 20 categories and
            distances of obstacles (`memenvs.objectnav.symbolic`).
        goal: float32, (20,); one-hot category.
        gps: float32, (2,); (x, y) of the robot, m: x ahead and y to the left of the start of the trial. With
            `gps_frame="layout"`, as in the paper, in the axes of the home, which give away where its middle is; in
            Habitat's frame this x is x and this y is -z, and the paper's sensor gives the pair as (y, x).
        compass: With `compass=True`: float32, (2,); cosine and sine of the heading in the same frame.

    Action:
        `Discrete(6)`: stop, forward 0.25 m, turn left, turn right, look up, look down. Obstacles deflect the robot.

    Reward:
        -0.001, plus the decrease of d, plus 2 for success. d is the geodesic distance to the nearest viewpoint of any
        goal object, m.

    Termination:
        Stop terminates; 500 steps truncate. Success: stop, with a goal object within 2.0 m of the robot that has at
        least 10 pixels in a 256 x 256 image.

    Layout:
        The home and its objects; it stays over a trial.

    Options:
        start: (x m, y m, heading rad) on the largest navigable island; default drawn.
        goal: Category (number or name) that the layout has; default drawn.

    Info:
        pose: (x m, y m, heading rad).
        place: Number of the room.
        scene_id: Name of the home.
        goal, goal_id: Number of the category.
        start: As in the options.
        moved: Where there are `moves`: True if an object has moved since the episode before.
        geodesic: d, m.
        success: True after a successful stop.
        spl: Success weighted by path length (SPL).
        spl_fixed: SPL, but `success` where the episode starts at the goal: SPL is 0 there if it ends without a whole
            step forward.
        soft_spl: SPL with the share of the distance that was covered in place of success.
        path_length: Length of the path so far, m.
        collisions: Steps with a collision.
        path_failures: Steps at which no walking distance to the goal was known; they keep the previous d.

    Speed:
        PPO of Stable-Baselines3 with two environments of ExtObjNav-v0 makes about 10 steps in a second of CPU time with
        images of 256 x 256, the default; 310 with `image_size=(48, 64)`; 1,450 with `obs_mode="symbolic"`
        (`python benchmarks/plain_ppo.py`, on a Zen 4 processor).

    Variants:
        - `world="procthor", split="all"`: the same task in ProcTHOR houses, from `procthor/four_room.jsonl.gz` in the
          folder that `MEMENVS_DATA` names or from `houses=FILE`. The splits of this world are train, validation and
          all.
        - `obs_mode="symbolic"`: 52 numbers in place of images, for policies without an image encoder.
        - `rooms=(2, 3)`: smaller homes.
        - `moves=0.3`: before each episode but the first an object moves to other furniture with probability .3. It is
          drawn by the generator of the trial, and nothing shows it. `ExtObjNav-Moves-v0` has it in the small homes of
          `ExtObjNav-Small-v0`. There the rule `ideal`, which searches the home again where an object is gone, succeeds
          in 64 % of the episodes after the first, with the last 16 steps alone in 51 %, from the present view in 32 %.
        - `itinerary="AAAAAABBBBBBAAA"`: six episodes in one home, six in another one and three in the first again.
          `ExtObjNav-Itinerary-v0` has it in small homes, with `leg_flag=True`. `ideal` with a memory for each home
          succeeds in 72 % of the episodes after the first, with the last 16 steps alone in 51 %, from the present view
          in 30 %.

    Source:
        Elawady et al., "ReLIC: A Recipe for 64k Steps of In-Context Reinforcement Learning for Embodied AI", 2024
        (arXiv:2410.02751), sections on ExtObjNav, without two defects of its release: a failed path query keeps the
        previous d, and pixels are counted only on stop and in 256 x 256 images, whatever is observed. The object
        models' names and sizes are those of the YCB object set (Calli et al., 2015); the house format is that of
        ProcTHOR (Deitke et al., 2022).
    """

    option_names = ("goal", "start")
    action_names = ("stop", "forward", "turn left", "turn right", "look up", "look down")
    config_type = ExtObjNavConfig
    observation_settings = ("obs_mode", "sensors", "image_size", "compass")  # gps_frame changes what a trial draws

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = config = ExtObjNavConfig(**kwargs)  # type: ignore[arg-type]
        self.num_envs = num_envs
        self.max_episode_steps = config.max_episode_steps
        goals = [category_number(category) for category in config.categories or ()]
        self.goal_names = {goal: YCB_CLASSES[goal] for goal in goals}
        self.num_layouts = NUM_LAYOUTS if config.layout_pool is None else config.layout_pool
        self.action_space = gym.spaces.Discrete(6)
        self._homes = config.playable_homes(type(self).__name__)
        camera = SYMBOLIC_CAMERA
        if config.image_size is not None:
            camera = Camera(height=config.image_size[0], width=config.image_size[1])
        self._sim = self._homes.world.make_simulator(num_envs, camera, threads=config.threads)
        self._counter = PixelCounter(self._homes.world.make_renderer)
        self._layouts: RecentlyUsed[int, Layout] = RecentlyUsed(num_envs + SPARE_LAYOUTS)
        self._background = ThreadPool(1, "fields")
        self._layout: list[Layout | None] = [None] * num_envs
        self._layouts_of_trial: list[Moves[Layout] | None] = [None] * num_envs
        self._moved = np.zeros(num_envs, bool)
        turn = math.radians(config.turn_deg)
        self._turn_by_action = np.zeros(WAIT + 1)  # rad
        self._turn_by_action[LEFT] = turn
        self._turn_by_action[RIGHT] = -turn
        self.observation_space = self._make_space()
        self._symbolic_images: tuple[np.ndarray, np.ndarray] | None = None  # classes and depths, (N, 64, 64, ...)
        if config.image_size is None:
            depth = np.zeros((num_envs, camera.height, camera.width, 1), np.float32)
            self._symbolic_images = np.zeros(depth.shape[:3], np.uint8), depth
        self.state = ObjectNavState.of(num_envs)
        # Ring buffer of poses for `render`: those after step t are row t modulo the number of rows.
        self._trail = np.zeros((config.max_episode_steps + 1, num_envs, 3))
        self._steps = 0
        self._scene_id = np.full(num_envs, "", object)  # of any length
        self._expert = Expert(num_envs, turn=turn)
        if MAX_OBJECTS * len(goals) <= config.num_objects[0]:
            self._cached_layout(0)  # categories may all have too many objects to be goals: fail now, not at a reset

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Move into the home of the layout; draw what is fixed for the trial."""
        loaded = self._cached_layout(layout)
        self._enter(i, loaded)
        # Drawn even if not used, so that `fixed_goal_per_trial` changes no other draw.
        goal = int(loaded.goals[rng.integers(len(loaded.goals))])
        self.state.trial_goal[i] = goal if self.config.fixed_goal_per_trial else -1
        self.state.trial_start[i] = draw_start_pose(loaded.navmap, rng)
        advance = partial(move_objects, world=self._homes.world, moves=self.config.moves, counter=self._counter)
        self._layouts_of_trial[i] = Moves(loaded, advance if self.config.moves else None, rng)

    def _enter(self, i: int, layout: Layout) -> None:
        """Give robot `i` a home with its objects."""
        self._layout[i] = layout
        self._sim.load(i, layout.navmap, layout.scene)
        self._scene_id[i] = layout.house.name

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Draw goal and start pose, and measure the geodesic distance between them."""
        layouts, state = self._layouts_of_trial[i], self.state
        assert layouts is not None
        layout = layouts.at(options.get("episode_index", 0))
        self._moved[i] = layouts.moved
        if layout is not self._layout[i]:  # objects have moved
            self._enter(i, layout)
        # Both are drawn even if an option or the trial fixes them, so that these change no other draw.
        goal = int(layout.goals[rng.integers(len(layout.goals))])
        start = draw_start_pose(layout.navmap, rng)
        if state.trial_goal[i] >= 0:
            goal = int(state.trial_goal[i])
        if self.config.gps_frame == "trial" and options.get("episode_index") == 0:
            # There gps is 0, so that the first episode learns nothing from it.
            start = tuple(state.trial_start[i].tolist())
        if options.get("goal") is not None:
            goal = self._check_goal(layout, options["goal"])
        if options.get("start") is not None:
            start = check_start_pose(layout.navmap, layout.house.name, options["start"])
        self._sim.place(i, start[:2], start[2], _START_PITCH)
        distance = self._sim.set_goals(i, self._distance_field(layout, goal), layout.goal_points(goal))
        state.begin(i, start, goal, layout.targets[goal], distance, self._steps)
        self._trail[self._steps % len(self._trail), i] = start
        self._expert.reset(i)

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Move, turn and tilt; reward progress and success."""
        sim, state = self._sim, self.state
        actions = np.where(active, actions, WAIT)  # inactive robots stay as they are
        previous_position = sim.position.copy()
        state.collisions += sim.forward(actions == FORWARD, FORWARD_DISTANCE)
        state.path_length += np.hypot(*(sim.position - previous_position).T)
        sim.turn(self._turn_by_action[actions])
        state.tilt = tilt(state.tilt, TILT_STEPS[actions])
        sim.pitch = pitch_of(state.tilt)
        self._steps += 1
        self._trail[self._steps % len(self._trail)] = sim.pose
        # Progress is rewarded. A failed path query counts as no progress.
        distance = sim.geodesic_distances()
        is_finite = np.isfinite(distance)
        state.path_failures += active & ~is_finite
        distance = np.where(active & is_finite, distance, state.geodesic)
        reward = np.where(active, STEP_REWARD + (state.geodesic - distance), 0.0)
        state.geodesic = distance
        stopped = actions == STOP
        if stopped.any():
            succeeded = self._is_at_goal(stopped)
            state.success |= succeeded
            reward += SUCCESS_REWARD * succeeded
        return reward, stopped

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write images, goal, position and heading into `out`."""
        if self._symbolic_images is not None:
            semantic, depth = self._symbolic_images
            self._sim.render(env_mask, {"semantic": semantic, "depth": depth})
            encode_symbolic(semantic, depth, env_mask, out["symbolic"])
        else:
            self._sim.render(env_mask, {name: out[name] for name in self.config.sensors or ()})
        np.copyto(out["goal"], _ONE_HOT[self.state.goal], where=env_mask[:, None])
        np.copyto(out["gps"], self._gps(), where=env_mask[:, None], casting="same_kind")
        if self.config.compass:
            heading = self._sim.heading - self._frame()[:, 2]
            compass = np.column_stack([np.cos(heading), np.sin(heading)])
            np.copyto(out["compass"], compass, where=env_mask[:, None], casting="same_kind")

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth and metrics; see the class."""
        state = self.state
        shortest = state.geodesic_start
        efficiency = shortest / np.maximum(np.maximum(shortest, state.path_length), 1e-5)
        spl = state.success * efficiency
        # An episode that starts at the goal has SPL 0, whatever the robot does; `spl_fixed` gives it its success.
        started_at_goal = (shortest < 0.1) & (state.path_length < FORWARD_DISTANCE)
        return {
            "pose": self._sim.pose.astype(np.float32),
            "place": self._sim.rooms,
            "scene_id": self._scene_id,
            "goal": state.goal,
            "goal_id": state.goal,
            "start": state.start,
            "geodesic": state.geodesic,
            "success": state.success,
            "spl": spl,
            "spl_fixed": np.where(started_at_goal, state.success, spl),
            "soft_spl": np.maximum(0.0, 1.0 - state.geodesic / np.maximum(shortest, 1e-5)) * efficiency,
            "path_length": state.path_length,
            "collisions": state.collisions,
            "path_failures": state.path_failures,
            **({"moved": self._moved} if self.config.moves else {}),
        }

    def oracle_actions(self) -> np.ndarray:
        """Return stop where it would succeed, else the action of `memenvs.objectnav.expert`."""
        sim, state = self._sim, self.state
        is_at_goal = self._is_at_goal(np.ones(self.num_envs, bool))
        actions = np.full(self.num_envs, STOP, np.int64)
        for i in np.flatnonzero(~is_at_goal).tolist():
            actions[i] = self._expert.approach(
                i, self.layout(i), int(state.goal[i]), sim.position[i], float(sim.heading[i]), float(state.tilt[i])
            )
        return actions

    def render(self, i: int) -> np.ndarray:
        """Render the robot's view beside a map with its path and the goals.

        Returns:
            uint8, (384, 768, 3).
        """
        view = np.zeros((self.num_envs, VIEW_SIDE, VIEW_SIDE, 3), np.uint8)
        self._sim.render(np.arange(self.num_envs) == i, {"rgb": view}, camera=Camera(height=VIEW_SIDE, width=VIEW_SIDE))
        steps = np.arange(max(int(self.state.first_step[i]), self._steps + 1 - len(self._trail)), self._steps + 1)
        path = self._trail[steps % len(self._trail), i]
        return draw_view_and_map(view[i], self.layout(i).house, path, goal_overlay(self._goal_points(i)))

    def draw_map(self, i: int, path: np.ndarray) -> np.ndarray:
        """Draw a map of the home with a path and the goals.

        Args:
            i: Index of the environment.
            path: float64, (P, 3); poses: x, y (m) and heading (rad).

        Returns:
            uint8, (H, W, 3).
        """
        return draw_house_map(
            self.layout(i).house, path, goal_overlay(self._goal_points(i)), pixels_per_metre=_MAP_SCALE
        )

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """Convert poses, float64 (P, 3), to (column, row) of the map, float64 (P, 2)."""
        return house_map_pixels(self.layout(i).house, poses, pixels_per_metre=_MAP_SCALE)

    def close(self) -> None:
        """Stop the threads that render and compute distances."""
        self._sim.close()
        self._background.close()

    def home_of(self, layout: int) -> int:
        """Number of the home of a layout; see `BatchTask`."""
        return layout % len(self._homes)

    @property
    def num_homes(self) -> int:
        """Number of homes that have a layout."""
        return min(self.num_layouts, len(self._homes))

    @property
    def num_places(self) -> int | None:
        """Largest number of rooms in a home of this world; None if the world does not bound it."""
        return self._homes.world.max_rooms

    def layout(self, i: int) -> Layout:
        """Return the layout of environment `i`.

        Raises:
            RuntimeError: Before its first reset.
        """
        layout = self._layout[i]
        if layout is None:
            raise RuntimeError("layout was called before reset")
        return layout

    def _make_space(self) -> gym.spaces.Dict:
        box = gym.spaces.Box
        size = self.config.image_size
        spaces: dict[str, gym.Space]
        if size is None or self.config.sensors is None:
            spaces = {"symbolic": box(0.0, 1.0, (SYMBOLIC_SIZE,), np.float32)}
        else:
            images: dict[str, gym.Space] = {
                "rgb": box(0, 255, (*size, 3), np.uint8),
                "depth": box(0.0, np.inf, (*size, 1), np.float32),
                "semantic": box(0, len(CLASSES) - 1, size, np.uint8),
            }
            spaces = {name: images[name] for name in self.config.sensors}
        spaces["goal"] = box(0.0, 1.0, (len(YCB_CLASSES),), np.float32)
        spaces["gps"] = box(-np.inf, np.inf, (2,), np.float32)
        if self.config.compass:
            spaces["compass"] = box(-1.0, 1.0, (2,), np.float32)
        return gym.spaces.Dict(spaces)

    def _distance_field(self, layout: Layout, goal: int) -> np.ndarray:
        """Return the geodesic distance of each cell to a goal; see `Layout.distance_field`.

        In a long trial the fields of the other goals are computed in the background, before they are needed.
        """
        field = layout.distance_field(goal)
        if layout.should_prefetch():
            # An error there is raised again when the field is needed.
            self._background.submit(layout.compute_fields)
        return field

    def _cached_layout(self, number: int) -> Layout:
        """Make a layout, or return it from the cache."""
        return self._layouts.get(number, lambda: self._homes.load(number, partial(self._make_layout, number)))

    def _make_layout(self, number: int, home_index: int) -> Layout:
        """Make a layout in a home; see `make_layout`."""
        return make_layout(
            self._homes.world,
            number,
            count_range=self.config.num_objects,
            categories=self.config.categories,  # type: ignore[arg-type]
            counter=self._counter,
            home_index=home_index,
            moves=self.config.moves,
        )

    @staticmethod
    def _check_goal(layout: Layout, value: object) -> int:
        """Convert the option `goal` to a category of the layout."""
        goal = category_number(value, "option 'goal'")
        if goal not in layout.goals:
            names = [YCB_CLASSES[k] for k in layout.goals]
            raise ValueError(f"option 'goal' must be a category of this layout, one of {names}, got {value!r}")
        return goal

    def _is_at_goal(self, env_mask: np.ndarray) -> np.ndarray:
        """Return where a stop would succeed, bool, (N,); False outside `env_mask`."""
        is_at_goal = np.zeros(self.num_envs, bool)
        rows = np.flatnonzero(env_mask)
        near = self._sim.may_be_visible(rows, self.state.goal_position[rows], SUCCESS_DISTANCE)  # (R, MAX_OBJECTS)
        if not near.any():
            return is_at_goal
        # Rendering is slow: only robots with a goal object near enough count its pixels.
        has_near_goal = near.any(1)
        rows = rows[has_near_goal]
        near = near[has_near_goal]
        render_mask = np.zeros(self.num_envs, bool)
        render_mask[rows] = True
        pixels = self._sim.count_pixels(render_mask, self.state.goal_instance)  # (N, MAX_OBJECTS)
        is_at_goal[rows] = (near & (pixels[rows] >= MIN_PIXELS)).any(1)
        return is_at_goal

    def _goal_points(self, i: int) -> np.ndarray:
        """Return the (x, y) of the goal objects of environment `i`, m; float64, (G, 2)."""
        return self.state.goal_position[i, self.state.goal_instance[i] >= 0, :2]

    def _frame(self) -> np.ndarray:
        """Return the poses from which positions and headings are observed, float64, (N, 3)."""
        if self.config.gps_frame == "layout":
            return np.zeros((self.num_envs, 3))
        return self.state.trial_start

    def _gps(self) -> np.ndarray:
        """Return the observed positions in the frame `gps_frame`, m; float64, (N, 2)."""
        frame = self._frame()
        x, y = (self._sim.position - frame[:, :2]).T
        cos, sin = np.cos(frame[:, 2]), np.sin(frame[:, 2])
        return np.column_stack([cos * x + sin * y, cos * y - sin * x])
