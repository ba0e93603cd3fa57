"""TwoRooms: choose the box whose colour was shown before a long stay in another room."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import gymnasium as gym
import numpy as np

from memenvs.box_rooms.room import BOX_RADIUS, ROBOT_RADIUS
from memenvs.box_rooms.worlds import explain_miniworld
from memenvs.cue_task import CHOOSE, COLLECT, CUE, GOALS, CueTask
from memenvs.houses.rendering.topdown import Marker, draw_topdown
from memenvs.houses.rendering.viewer import VIEW_SIDE, goal_overlay, house_map_pixels
from memenvs.task import Observation, Options
from memenvs.two_rooms.config import TwoRoomsConfig
from memenvs.two_rooms.rooms import (
    COLOUR_NAMES,
    FORWARD,
    LARGE,
    LEFT,
    MAX_BOXES,
    RIGHT,
    ROOMS,
    SMALL,
    TURN_DEG,
    BoxRooms,
    make_house,
)

if TYPE_CHECKING:
    from memenvs.two_rooms.miniworld import MiniworldRooms

_YELLOW = COLOUR_NAMES.index("yellow")
# The robot starts somewhere in a rectangle of Miniworld's x and z, (0, 3) to (1, 4) m in the paper's environment.
# Miniworld widens it by the robot's radius and leaves out what touches the wall.
_START_LOW, _START_HIGH = (ROBOT_RADIUS, -4.0 - ROBOT_RADIUS), (1.0 + ROBOT_RADIUS, -3.0 + ROBOT_RADIUS)
_CUE_POSITION = np.array([(4.0, -4.0)])
#: Poses with which the stays in the large room and before the choice begin.
_LARGE_START = np.array([ROOMS[LARGE, 0, 0] + 1.0, ROOMS[LARGE, 1, 1] - 1.0, 0.0])
_CHOICE_START = np.array([1.0, -4.0, 0.0])
#: float64, (2, 2); the boxes to choose from, the left one first, m.
_CHOICE_POSITIONS = np.array([(4.0, -2.5), (4.0, -5.5)])
_MAP_SCALE = 384 / 28  # pixels per metre
_MARGIN = 0.3  # m


class TwoRooms(CueTask):
    """Go to the box of the colour that was shown before a long stay in another room.

    The robot stands in a small room in front of a box, green or blue. After 4 steps it finds itself in a large room
    with 15 yellow boxes, for 80 steps. Then it is back in the small room for 16 steps, between a green and a blue box.

    Observation:
        rgb: uint8, (84, 84, 3); the view of the robot.

    Action:
        `Discrete(3)`: turn left and right by 15 degrees, forward 0.8 m. A step into a wall or a box does not move the
        robot; it touches the box.

    Reward:
        1 for touching the box of the cue's colour; `wrong_reward` for the other one, by default 0; 0.01 for each yellow
        box, which vanishes.

    Termination:
        At the touch of the green or the blue box in the last phase. After 100 steps, the sum of `phases`, an episode is
        truncated.

    Info:
        pose: (x m, y m, heading rad); the small room extends from (0, -8) to (8, 0), the large one from (12, -15) to
            (27, 0).
        place: 0 in the small room, with the cue as with the choice; 1 in the large room.
        order: (2,); colours of the boxes to choose from, from the left.
        choice_id: Colour of the box that was touched in the last phase; -1 for none.
        boxes: Number of yellow boxes that were touched.

    Without memory:
        The first 5 observations show the cue: that of the reset, and those after 4 steps. 80 observations of the large
        room follow, then up to 16 of the choice. A capacity of 40 steps, half of the stay in the large room, is the
        paper's. Strategy MVFO then still has the 5 observations of the cue when the choice begins, and 4 of them at
        step 100. FIFO has none of them after step 45.

        Nothing that the environment shows after the cue depends on its colour. Over 2,000 episodes the oracle succeeds
        in all, one that goes to the green box (the rule `memoryless`) in 0.502, random actions in 0.215: they touch one
        of the two boxes in 0.46. But the robot can write the colour into its own motion: the rule `notebook` turns
        left all along the stay for green and right for blue. With two views and its own last action it succeeds in
        200 of 200 episodes, and with `led=True` in 90. The rule `ideal` remembers the cue, one bit, and succeeds in all
        of 200 with and without `led`; it needs a fact from at least 81 steps back.

    Variants:
        `TwoRooms-Led-v0` has `led=True`: in the large room drawn motions replace the robot's own, its actions are
        ignored, and `phase` is 0. With `world="miniworld"` the same motions are drawn.
        As in the paper's environment: `random_order=False, match_reward=10, box_reward=0.1`. `world="miniworld"` has
        the same rules and draws with Miniworld; its images differ in details.

    Source:
        Cho, Yoon and Ahn, "Spatially-Aware Transformer for Embodied Agents", ICLR 2024 (arXiv:2402.15160), section 3.3
        and appendix C. What the paper leaves open is as in an earlier environment of one of its authors, with three
        changes: a step is 0.8 m, and not Miniworld's 0.15 m, with which the boxes could hardly be reached; images are
        84 x 84; a box is touched when the robot runs into it.
    """

    config_type = TwoRoomsConfig
    observation_settings = ("image_size",)

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = config = TwoRoomsConfig(**kwargs)  # type: ignore[arg-type]
        super().__init__(num_envs, config.phases, len(GOALS), first_steps=1)
        self.observation_space = gym.spaces.Dict({"rgb": gym.spaces.Box(0, 255, (*config.image_size, 3), np.uint8)})
        self._rooms = _make_rooms(config, num_envs)
        self._yellow = np.zeros((num_envs, MAX_BOXES, 2))  # centres of the yellow boxes, m
        self._num_touched = np.zeros(num_envs, np.int64)
        self._path: list[list[np.ndarray]] = [[] for _ in range(num_envs)]  # poses, for `render`

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Draw colours and boxes; put the robot before the cue."""
        goal = int(rng.integers(len(GOALS)))
        is_swapped = bool(rng.integers(2)) and self.config.random_order
        start = np.append(rng.uniform(_START_LOW, _START_HIGH), 0.0)
        self._yellow[i] = draw_boxes(rng)
        self._set_episode(i, goal, (1, 0) if is_swapped else (0, 1), options)
        self._num_touched[i] = 0
        self._rooms.enter(i, SMALL, start, _CUE_POSITION, self._goal[i : i + 1])
        self._path[i] = [self._rooms.pose[i].copy()]

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Move, touch boxes, and go on to the next phase."""
        phase = self._phase()
        touched = self._rooms.move(actions, active)
        terminated = (touched >= 0) & (phase == CHOOSE)
        reward = np.zeros(self.num_envs)
        for i in np.flatnonzero((touched >= 0) & (phase != CUE)).tolist():
            box = int(touched[i])
            if phase[i] == COLLECT:
                self._rooms.remove(i, box)
                self._num_touched[i] += 1
                reward[i] = self.config.box_reward
            else:
                self._choice[i] = self._order[i, box]
                is_match = self._choice[i] == self._goal[i]
                reward[i] = self.config.match_reward if is_match else self.config.wrong_reward
        self._return += reward
        self._step += active
        stay, choice = self._begins
        for i in np.flatnonzero(active & (self._step == stay)).tolist():
            self._rooms.enter(i, LARGE, _LARGE_START, self._yellow[i], np.full(MAX_BOXES, _YELLOW))
        for i in np.flatnonzero(active & (self._step == choice)).tolist():
            self._rooms.enter(i, SMALL, _CHOICE_START, _CHOICE_POSITIONS, self._order[i])
        for i in np.flatnonzero(active).tolist():
            self._path[i].append(self._rooms.pose[i].copy())
        return reward, terminated

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write the views."""
        self._rooms.render(out["rgb"], env_mask)

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth; see the class."""
        return self._info(self._rooms.pose.astype(np.float32), boxes=self._num_touched)

    def oracle_actions(self) -> np.ndarray:
        """Watch the cue, touch the nearest yellow boxes, then go to the box of the cue's colour."""
        pose, phase = self._rooms.pose, self._phase()
        offset = self._rooms.boxes - pose[:, None, :2]
        distance = np.hypot(offset[..., 0], offset[..., 1])
        is_goal = np.where((phase == CHOOSE)[:, None], self._rooms.colours == self._goal[:, None], True)
        distance = np.where((self._rooms.colours >= 0) & is_goal, distance, np.inf)
        nearest = distance.argmin(1)
        x, y = offset[np.arange(self.num_envs), nearest].T
        error = np.degrees(np.arctan2(y, x) - pose[:, 2])
        error = np.where(np.isfinite(distance).any(1), (error + 180.0) % 360.0 - 180.0, TURN_DEG)
        towards = np.select([np.abs(error) <= TURN_DEG / 2, error > 0], [FORWARD, LEFT], RIGHT)
        watch = np.where(self._step % 2 == 0, LEFT, RIGHT)  # the cue stays in view
        return np.where((phase == CUE) & (towards == FORWARD), watch, towards).astype(np.int64)

    def render(self, i: int) -> np.ndarray:
        """Render the view of the robot, and a map with its path; 384 x 768."""
        image = np.full((VIEW_SIDE, 2 * VIEW_SIDE, 3), 250, np.uint8)
        image[:, :VIEW_SIDE] = self._rooms.render_large(i)
        plan = self.draw_map(i, np.array(self._path[i]))[:VIEW_SIDE, :VIEW_SIDE]
        top = (VIEW_SIDE - plan.shape[0]) // 2
        image[top : top + plan.shape[0], VIEW_SIDE : VIEW_SIDE + plan.shape[1]] = plan
        return image

    def draw_map(self, i: int, path: np.ndarray) -> np.ndarray:
        """Draw the rooms from above with a path, and in the last phase the box of the cue's colour."""
        is_box = self._rooms.colours[i] >= 0
        boxes, colours = self._rooms.boxes[i, is_box], self._rooms.colours[i, is_box]
        is_goal = (colours == self._goal[i]) & (self._phase()[i] == CHOOSE)
        x, y, heading = path[-1].tolist()
        ahead = Marker((x + 0.7 * math.cos(heading), y + 0.7 * math.sin(heading)), (30, 30, 34), radius=0.2)
        jumps = 1 + np.flatnonzero(np.diff(path[:, 0] > ROOMS[SMALL, 1, 0]))  # from room to room
        return draw_topdown(
            make_house((SMALL, LARGE), boxes, colours),
            pixels_per_metre=_MAP_SCALE,
            paths=np.split(path, jumps),
            markers=[*goal_overlay(boxes[is_goal]).markers, ahead],
            margin=_MARGIN,
            has_labels=False,
        )

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """Convert poses to pixels of the map."""
        empty = make_house((SMALL, LARGE), np.zeros((0, 2)), np.zeros(0, np.int64))
        return house_map_pixels(empty, poses, pixels_per_metre=_MAP_SCALE)

    def close(self) -> None:
        """Stop the rendering threads, or close the Miniworld environment."""
        self._rooms.close()


def draw_boxes(rng: np.random.Generator) -> np.ndarray:
    """Draw the positions of the yellow boxes.

    Returns:
        float64, (15, 2); m, apart from the walls, the robot and each other.
    """
    low, high = ROOMS[LARGE] + [[BOX_RADIUS], [-BOX_RADIUS]]
    boxes = np.zeros((0, 2))
    while len(boxes) < MAX_BOXES:
        position = rng.uniform(low, high)
        is_free = (np.hypot(*(boxes - position).T) >= 2 * BOX_RADIUS).all()
        if is_free and math.dist(position, _LARGE_START[:2]) >= ROBOT_RADIUS + BOX_RADIUS:
            boxes = np.vstack([boxes, position])
    return boxes


def _make_rooms(config: TwoRoomsConfig, num_envs: int) -> BoxRooms | MiniworldRooms:
    """Make the rooms of a world.

    Raises:
        ImportError: Miniworld is not installed, or there is no display.
    """
    if config.world == "builtin":
        return BoxRooms(num_envs, config.image_size, threads=config.threads)
    with explain_miniworld():
        from memenvs.two_rooms.miniworld import MiniworldRooms
    return MiniworldRooms(num_envs, config.image_size)
