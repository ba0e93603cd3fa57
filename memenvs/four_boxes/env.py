"""FourBoxes: a room with four coloured boxes, one of which is rewarded over a trial."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import gymnasium as gym
import numpy as np

from memenvs.box_rooms.room import BOX_RADIUS, ROBOT_RADIUS
from memenvs.box_rooms.worlds import explain_miniworld
from memenvs.checks import check_start, option_number
from memenvs.four_boxes.arrangements import arrangements
from memenvs.four_boxes.config import FourBoxesConfig
from memenvs.four_boxes.resize import Resize
from memenvs.four_boxes.room import (
    BOX_POSITIONS,
    COLOURS,
    FORWARD,
    FORWARD_DISTANCE,
    LARGE_SIZE,
    LEFT,
    RIGHT,
    START,
    STAY,
    TURN_DEG,
    VIEW_SIZE,
    BoxRoom,
    is_blocked,
    make_room,
    position_ahead,
)
from memenvs.houses.rendering.viewer import VIEW_SIDE, draw_house_map, draw_view_and_map, goal_overlay, house_map_pixels
from memenvs.moves import Moves, moving_goal
from memenvs.task import BatchTask, Observation, Options

if TYPE_CHECKING:
    from memenvs.four_boxes.miniworld import MiniworldRoom

#: A robot is rewarded if it is nearer than this to the centre of the box, m, ...
NEAR = BOX_RADIUS + ROBOT_RADIUS + 1.5 * FORWARD_DISTANCE
#: ... and if its heading differs from the direction of the box by no more than this, degrees.
FACING_DEG = 30.0
_TOLERANCE_DEG = 1e-6  # headings are multiples of 15 degrees: a difference of exactly 30 must count despite rounding
_MAP_SCALE = 40.0  # pixels per metre
#: Number of headings that turns lead to.
_NUM_HEADINGS = round(360 / TURN_DEG)


class FourBoxes(BatchTask):
    """Find the rewarded one of four boxes, then go straight to it in later episodes.

    The boxes stand in the corners of a room and differ in their colour. The rewarded colour stays for the trial, or
    with `moves` changes now and then; the arrangement of the colours stays.

    Observation:
        rgb: uint8, (25, 25, 3); the view of the robot, rendered with 60 x 80 pixels and downsampled as in the paper.
            Encoders normalise the image.
        heading: float32, (2,); cosine and sine of the heading. The paper's `heading` is Miniworld's (x, z), in which
            the sine has the other sign.
        previous_reward: float32, (1,); reward of the previous step, 0 at reset.

    Action:
        `Discrete(4)`: left and right by 15 degrees, forward 0.7 m, stay. A step into a wall or into the goal box does
        nothing. Robots pass through the other boxes.

    Reward:
        1 on every step that ends within 2.016 m of the centre of the goal box, with its direction within 30 degrees of
        the heading.

    Termination:
        Nothing terminates; 50 steps truncate.

    Layout:
        Number of the goal box, in the order blue, red, green, yellow, plus 4 times the number of the arrangement in the
        `split`. The paper has one arrangement, and so four layouts, which training and evaluation share; an agent
        trained with `split="train"` has never seen those of "validation" and "test".

    Options:
        goal: Number or colour of the goal box; default that of the layout, or to which it has changed.
        start: (x m, y m, heading rad); default the centre of the room, heading along x.

    Info:
        pose: (x m, y m, heading rad); the room extends from (0, -6) to (6, 0).
        place: Number of the nearest corner: that of the blue, red, green or yellow box in the paper's arrangement.
        goal, goal_id: Number of the goal box.
        start: As in the options.
        moved: Where there are `moves`: True if the goal has changed since the episode before.
        success: True if the robot was rewarded in this episode.
        return: Sum of rewards in this episode.

    Without memory:
        A fixed tour of the boxes (the rule `memoryless`) needs the present image alone: 30.25. The last 16 frames are
        enough for the rest: at the end of an episode the robot stands before the rewarded box, and the paths to the
        boxes take 12 steps at most. From the second episode on the rule `ideal`, which remembers the corner of the box
        (two bits), scores as the oracle, and so it does with a window of 16.

    Variants:
        `FourBoxes-Gap-v0` has `gap=20`: 20 blank steps come before each episode, in which actions are ignored. There
        the window of 16 scores as `memoryless`, and `ideal` as the oracle. With `moves=0.3` besides, `ideal` scores
        34.7, `memoryless` 30.1, the oracle 41.9: it goes on from box to box where the old one gives no reward.

    Source:
        Elawady et al., "ReLIC: A Recipe for 64k Steps of In-Context Reinforcement Learning for Embodied AI", 2024
        (arXiv:2410.02751), section on Miniworld, after Lee et al., "Supervised Pretraining Can Learn In-Context
        Reinforcement Learning", 2023. Largest returns 39, 45, 45, 39 for blue, red, green, yellow; mean 42.
    """

    option_names = ("goal", "start")
    action_names = ("turn left", "turn right", "forward", "stay")
    config_type = FourBoxesConfig
    observation_settings = ("image_size",)

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = config = FourBoxesConfig(**kwargs)  # type: ignore[arg-type]
        self.num_envs = num_envs
        self._arrangements = arrangements(config.split)
        self.num_layouts = len(COLOURS) * len(self._arrangements)
        self.max_episode_steps = config.max_episode_steps
        self.action_space = gym.spaces.Discrete(len(self.action_names))
        self.observation_space = gym.spaces.Dict(
            {
                "rgb": gym.spaces.Box(0, 255, (*config.image_size, 3), np.uint8),
                "heading": gym.spaces.Box(-1.0, 1.0, (2,), np.float32),
                "previous_reward": gym.spaces.Box(0.0, 1.0, (1,), np.float32),
            }
        )
        self._room = _make_room(config, num_envs)
        self._resize = Resize(VIEW_SIZE, config.image_size)
        self._views = np.zeros((num_envs, *VIEW_SIZE, 3), np.uint8)
        self._goal_number: list[Moves[int]] = [Moves(0, None, np.random.default_rng(0))] * num_envs
        self._moved = np.zeros(num_envs, bool)
        self._goal = np.zeros(num_envs, np.int64)
        self._arrangement = [self._arrangements[0]] * num_envs
        self._start = np.tile(START, (num_envs, 1))
        self._reward = np.zeros(num_envs)
        self._return = np.zeros(num_envs)
        self._trail: list[list[np.ndarray]] = [[] for _ in range(num_envs)]  # poses, for `render`

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Set arrangement and goal box of this layout."""
        number, goal = divmod(layout, len(COLOURS))
        self._goal_number[i] = moving_goal(goal, len(COLOURS), self.config.moves, rng)
        self._arrangement[i] = self._arrangements[number]
        self._room.arrange(i, self._arrangement[i])

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Put the robot at the start."""
        goal = self._goal_number[i].at(options.get("episode_index", 0))
        self._moved[i] = self._goal_number[i].moved
        if options.get("goal") is not None:
            goal = option_number("goal", options["goal"], COLOURS)
        corner = self._arrangement[i][goal]
        start = START if options.get("start") is None else _check_start(options["start"], goal, corner)
        self._start[i] = start
        self._goal[i] = goal
        self._room.place(i, start, corner)
        self._reward[i] = 0.0
        self._return[i] = 0.0
        self._trail[i] = [self._room.pose[i].copy()]

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Move, and reward robots near the goal box with 1."""
        self._room.move(actions, active)
        reward = np.where(active & self._is_rewarded(), 1.0, 0.0)
        self._reward = np.where(active, reward, self._reward)
        self._return += reward
        for i in np.flatnonzero(active).tolist():
            self._trail[i].append(self._room.pose[i].copy())
        return reward, np.zeros(self.num_envs, bool)

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write view, heading and previous reward."""
        self._room.render(self._views, env_mask)
        self._resize(self._views, env_mask, out["rgb"])
        heading = self._room.pose[env_mask, 2]
        out["heading"][env_mask] = np.column_stack([np.cos(heading), np.sin(heading)])
        out["previous_reward"][env_mask, 0] = self._reward[env_mask]

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth; see the class."""
        pose = self._room.pose
        distances = np.hypot(*np.moveaxis(pose[:, None, :2] - BOX_POSITIONS, -1, 0))  # (N, 4)
        return {
            "pose": pose.astype(np.float32),
            "place": distances.argmin(1),
            "goal": self._goal,
            "goal_id": self._goal,
            "start": self._start,
            "success": self._return > 0,
            "return": self._return,
            **({"moved": self._moved} if self.config.moves else {}),
        }

    @property
    def num_places(self) -> int:
        """Number of corners: a place is the part of the room that is nearest to one of them."""
        return len(BOX_POSITIONS)

    def oracle_actions(self) -> np.ndarray:
        """Stay where rewarded, else go along the free heading nearest to the box's direction."""
        pose = self._room.pose
        turned = np.repeat(pose[:, None], _NUM_HEADINGS, 1)  # (N, 24, 3): the pose after 0, 1, ... left turns
        turned[:, :, 2] += np.radians(TURN_DEG) * np.arange(_NUM_HEADINGS)
        distance, error = self._to_goal(turned)
        # A heading along which the robot can neither drive nor be rewarded is of no use.
        is_useless = is_blocked(position_ahead(turned), self._goal_positions()[:, None]) & (distance >= NEAR)
        turns = np.where(is_useless, np.inf, np.round(error, 6)).argmin(1)  # rounded: a tie goes to the left
        approach = np.select([turns == 0, turns <= _NUM_HEADINGS // 2], [FORWARD, LEFT], RIGHT)
        return np.where(self._is_rewarded(), STAY, approach).astype(np.int64)

    def render(self, i: int) -> np.ndarray:
        """Render the view of the robot, and a map with its path and the goal box; 384 x 768."""
        view = np.zeros((VIEW_SIDE, VIEW_SIDE, 3), np.uint8)
        top = (VIEW_SIDE - LARGE_SIZE[0]) // 2
        view[top : top + LARGE_SIZE[0]] = self._room.render_large(i)
        return draw_view_and_map(
            view,
            make_room(self._arrangement[i]),
            np.array(self._trail[i]),
            goal_overlay(self._goal_positions()[i : i + 1]),
        )

    def draw_map(self, i: int, path: np.ndarray) -> np.ndarray:
        """Draw the room from above with a path and the goal box."""
        goal = goal_overlay(self._goal_positions()[i : i + 1])
        return draw_house_map(make_room(self._arrangement[i]), path, goal, pixels_per_metre=_MAP_SCALE)

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """Convert poses to pixels of the map."""
        return house_map_pixels(make_room(), poses, pixels_per_metre=_MAP_SCALE)

    def close(self) -> None:
        """Stop the rendering threads, or close the Miniworld environment."""
        self._room.close()

    def _goal_positions(self) -> np.ndarray:
        """float64, (N, 2); centres of the goal boxes, m."""
        return BOX_POSITIONS[self._room.corner]

    def _to_goal(self, pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distance and direction of the goal box from poses (N, K, 3).

        Returns:
            Distances, (N, K), m, and angles between heading and direction, (N, K), 0 to 180 degrees.
        """
        x, y = np.moveaxis(self._goal_positions()[:, None] - pose[..., :2], -1, 0)
        error = np.degrees(np.arctan2(y, x) - pose[..., 2])
        return np.hypot(x, y), np.abs((error + 180.0) % 360.0 - 180.0)

    def _is_rewarded(self) -> np.ndarray:
        """bool, (N,); True where the goal box is near and ahead."""
        distance, error = self._to_goal(self._room.pose[:, None])
        return ((distance < NEAR) & (error <= FACING_DEG + _TOLERANCE_DEG))[:, 0]


def _make_room(config: FourBoxesConfig, num_envs: int) -> BoxRoom | MiniworldRoom:
    """Make the room of a world.

    Raises:
        ImportError: Miniworld is not installed, or there is no display.
    """
    if config.world == "builtin":
        return BoxRoom(num_envs, threads=config.threads)
    with explain_miniworld():
        from memenvs.four_boxes.miniworld import MiniworldRoom
    return MiniworldRoom(num_envs)


def _check_start(value: object, goal: int, corner: int) -> tuple[float, float, float]:
    """Check that the option `start` is free."""
    start = check_start(value)
    if is_blocked(np.array(start[:2]), BOX_POSITIONS[corner]):
        raise ValueError(
            f"option 'start' must be at least {ROBOT_RADIUS} m from the walls of the room, (0, -6) to (6, 0), and "
            f"{ROBOT_RADIUS + BOX_RADIUS:.3f} m from the centre of the {COLOURS[goal]} box, got {value!r}"
        )
    return start[0], start[1], start[2] % (2 * math.pi)
