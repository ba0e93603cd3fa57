"""Key frames: when they are taken, and what the robot's sensors and log say in each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from memenvs.verbalization.episodes import Action, Frames
from memenvs.verbalization.household_config import HOUSE_SEED, HouseholdConfig
from memenvs.verbalization.plans import Execution
from memenvs.verbalization.symbols import (
    ACTION_STATUSES,
    HANDS,
    LOCATIONS,
    NO_STATUS,
    OBJECT_STATUSES,
    OBJECTS,
    SYMBOL_IDS,
    TASK_STATUSES,
)

JOINTS = 40
#: Width of the sub-symbolic part: two positions, the pose of the platform, and three signals of each joint.
SUB_WIDTH = 6 + 3 + 3 * JOINTS
#: Width of what the image latents are made of; see `views`.
VIEW_WIDTH = 2 * len(OBJECTS) + len(LOCATIONS) + len(HANDS)
DETECTION_RANGE = 2500.0
DETECTION_ANGLE = math.radians(35.0)
_POSITION_NOISE, _PLATFORM_NOISE, _YAW_NOISE, _JOINT_NOISE = 5.0, 10.0, math.radians(0.5), 0.02
_REACH, _TABLE_HEIGHT, _SLOT_SPACING = 700.0, 900.0, 250.0
_HAND_AHEAD, _HAND_ASIDE, _HAND_HEIGHT = 350.0, 250.0, 1050.0
_VELOCITY_SECONDS = 0.5
#: Share of an action after which the hand is at the object.
_REACHED = 0.6
_FIRST_OBJECT = SYMBOL_IDS[next(iter(OBJECTS))]
_HAND_NAMES = tuple(HANDS)
_LOCATION_NAMES = tuple(LOCATIONS)
_OBJECT_NUMBER = {symbol: number for number, symbol in enumerate(OBJECTS)}
#: Kinds of key frames: the end of a window of time, the start and the end of an action.
WINDOW, STARTED, ENDED = 0, 1, 2


def frame_times(config: HouseholdConfig, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """List the key frames of an episode.

    Every start and end of an action is one. With windows there is also one whenever `window_seconds` have passed since
    the last.

    Returns:
        int32, (T,) each: second of the episode, index of the action, and `WINDOW`, `STARTED` or `ENDED`.
    """
    rows: list[tuple[int, int, int]] = []
    for k, action in enumerate(actions):
        rows.append((action.start, k, STARTED))
        if config.key_frames == "windows":
            closing = range(action.start + config.window_seconds, action.end, config.window_seconds)
            rows += [(second, k, WINDOW) for second in closing]
        rows.append((action.end, k, ENDED))
    time, index, kind = np.array(rows, np.int32).T
    return time, index, kind


class RecordedFrames(NamedTuple):
    """Key frames of several episodes, one after the other.

    Attributes:
        frames: T key frames.
        view: float16, (T, VIEW_WIDTH); what is in view, for `image_latents`.
        counts: int64, (E,); number of key frames of each episode.
    """

    frames: Frames
    view: np.ndarray
    counts: np.ndarray


def record(
    config: HouseholdConfig, executions: Sequence[Execution], rngs: Sequence[np.random.Generator]
) -> RecordedFrames:
    """Record episodes.

    Args:
        config: Settings.
        executions: E episodes; all at once is much faster than one by one.
        rngs: Sources of the noise of each.
    """
    times = [frame_times(config, execution.actions) for execution in executions]
    counts = np.array([len(columns[0]) for columns in times])
    world = _World(executions)
    episode = np.repeat(np.arange(len(executions)), counts)
    time, index, kind = (np.concatenate(column) for column in zip(*times, strict=True))
    index = index + world.first_action[episode]
    ended_well = (kind == ENDED) & world.succeeded[index]
    state = index + episode + ended_well  # an episode has one state of its objects more than actions
    progress = np.clip((time - world.start[index]) / (world.end[index] - world.start[index]), 0.0, 1.0)
    robot = world.poses(index, progress)
    root = world.objects_in_root(state, robot)
    visible = world.is_grasped[state] | _in_view(root)
    if config.missed_detections:
        draws = [rng.random((count, len(OBJECTS))) for rng, count in zip(rngs, counts.tolist(), strict=True)]
        visible &= np.concatenate(draws) >= config.missed_detections
    slots, new = _object_slots(world, episode, index, kind, visible)

    is_event = kind != WINDOW
    status = np.full((len(time), 4), NO_STATUS, np.int8)
    ended = np.where(world.succeeded[index], ACTION_STATUSES.index("success"), ACTION_STATUSES.index("failure"))
    status[:, 1] = np.select([kind == STARTED, kind == ENDED], [ACTION_STATUSES.index("started"), ended], NO_STATUS)
    status[counts.cumsum() - 1, 0] = [TASK_STATUSES.index(execution.status) for execution in executions]
    status[:, 2:] = np.where(slots > 0, new, NO_STATUS)

    sub = np.zeros((len(time), SUB_WIDTH), np.float32)
    everything = np.concatenate([root, np.broadcast_to(_hand_positions(), (len(time), 2, 3))], 1)
    row = np.where(slots >= _FIRST_OBJECT, slots - _FIRST_OBJECT, len(OBJECTS) + slots - SYMBOL_IDS[_HAND_NAMES[0]])
    positions = everything[np.arange(len(time))[:, None], np.where(slots > 0, row, 0)]
    sub[:, :6] = np.where(slots[:, :, None] > 0, positions, 0.0).reshape(-1, 6)
    sub[:, 6:9] = robot
    sub[:, 9:] = _joint_signals(config, world, index, episode, kind, progress)
    noise = [
        rng.standard_normal((count, SUB_WIDTH), np.float32) for rng, count in zip(rngs, counts.tolist(), strict=True)
    ]
    scale = np.full(SUB_WIDTH, _JOINT_NOISE, np.float32)
    scale[:9] = [*[_POSITION_NOISE] * 6, _PLATFORM_NOISE, _PLATFORM_NOISE, _YAW_NOISE]
    is_filled = np.ones(sub.shape, bool)
    is_filled[:, :6] = np.repeat(slots > 0, 3, axis=1)
    sub += scale * np.concatenate(noise) * is_filled
    frames = Frames(
        time=time,
        goal=world.goal_ids[episode],
        action=np.where(is_event, world.verb_ids[index], 0).astype(np.int16),
        args=np.where(is_event[:, None], world.argument_ids[index], 0).astype(np.int16),
        objects=slots.astype(np.int16),
        state=status,
        sub=sub,
    )
    return RecordedFrames(
        frames, views(visible, root, world.nearest_location(index, kind), world.hands_full(state)), counts
    )


class _World:
    """Arrays of E episodes: A actions of all, and A + E states of the objects before and after them."""

    def __init__(self, executions: Sequence[Execution]) -> None:
        actions = [action for execution in executions for action in execution.actions]
        counts = [len(execution.actions) for execution in executions]
        self.first_action = np.cumsum([0, *counts[:-1]])
        self.start = np.array([action.start for action in actions], np.float64)
        self.end = np.array([action.end for action in actions], np.float64)
        self.succeeded = np.array([action.status == "success" for action in actions])
        self.verb_ids = np.array([SYMBOL_IDS[action.verb] for action in actions])
        self.argument_ids = np.zeros((len(actions), 5), np.int64)
        for k, action in enumerate(actions):
            self.argument_ids[k, : len(action.arguments)] = [SYMBOL_IDS[symbol] for symbol in action.arguments]
        self.goal_ids = np.zeros((len(executions), 5), np.int16)
        for k, execution in enumerate(executions):
            self.goal_ids[k, : len(execution.goals)] = [SYMBOL_IDS[goal.symbol] for goal in execution.goals]
        self._pose, self._motion = np.zeros((2, len(actions), 3))
        self._ends = np.zeros((len(actions), 2), np.int64)  # numbers of the locations at start and end
        states = len(actions) + len(executions)
        #: Positions (S, O, 3) in the world frame; NaN where an object is in a hand or not in the scene.
        self.position = np.full((states, len(OBJECTS), 3), np.nan)
        self.is_grasped = np.zeros((states, len(OBJECTS)), bool)
        self.hand = np.zeros((states, len(OBJECTS)), np.int64)
        for k, execution in enumerate(executions):
            self._follow(execution, int(self.first_action[k]), int(self.first_action[k]) + k)

    def _follow(self, execution: Execution, first_action: int, first_state: int) -> None:
        """Fill in where robot and objects of an episode are."""
        robot, states = execution.scene.robot, slice(first_state, first_state + len(execution.actions) + 1)
        spots = dict(execution.scene.objects)
        for symbol, spot in spots.items():
            self.position[states, _OBJECT_NUMBER[symbol]] = slot_position(*spot)
        for k, action in enumerate(execution.actions):
            target = action.location if action.verb == "move" else robot
            self._pose[first_action + k], self._motion[first_action + k] = _motion(robot, target, action.status)
            self._ends[first_action + k, 0] = _LOCATION_NAMES.index(robot)
            robot = target if action.status == "success" else robot
            self._ends[first_action + k, 1] = _LOCATION_NAMES.index(robot)
            if action.object is None or action.status == "failure":
                continue
            later, number = slice(first_state + k + 1, states.stop), _OBJECT_NUMBER[action.object]
            self.is_grasped[later, number] = action.verb == "grasp"
            self.hand[later, number] = _HAND_NAMES.index(action.hand or "")
            if action.verb == "grasp":
                del spots[action.object]
                self.position[later, number] = np.nan
            else:
                used = {slot for place, slot in spots.values() if place == action.location}
                spots[action.object] = action.location, next(slot for slot in range(len(used) + 1) if slot not in used)
                self.position[later, number] = slot_position(*spots[action.object])

    def poses(self, index: np.ndarray, progress: np.ndarray) -> np.ndarray:
        """Poses of the platform (x, y in mm, yaw in radians), float64, (T, 3)."""
        return self._pose[index] + progress[:, None] * self._motion[index]

    def objects_in_root(self, state: np.ndarray, robot: np.ndarray) -> np.ndarray:
        """Positions of the objects in the root frame, (T, O, 3); NaN if not in the scene."""
        world = self.position[state]
        dx, dy = world[:, :, 0] - robot[:, None, 0], world[:, :, 1] - robot[:, None, 1]
        cos, sin = np.cos(robot[:, None, 2]), np.sin(robot[:, None, 2])
        root = np.stack([cos * dx + sin * dy, cos * dy - sin * dx, world[:, :, 2]], -1)
        return np.where(self.is_grasped[state][:, :, None], _hand_positions()[self.hand[state]], root)

    def nearest_location(self, index: np.ndarray, kind: np.ndarray) -> np.ndarray:
        """Number of the location at which the robot is; -1 between two."""
        start, end = self._ends[index].T
        return np.where((start != end) & (kind == WINDOW), -1, np.where(kind == STARTED, start, end))

    def hands_full(self, state: np.ndarray) -> np.ndarray:
        """True for each hand that holds something, bool, (T, 2)."""
        grasped = self.is_grasped[state][:, :, None] & (self.hand[state][:, :, None] == np.arange(len(HANDS)))
        return grasped.any(1)


@cache
def _motion(origin: str, target: str, status: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Pose of the platform before a move and its change, mm and radians; a failed move stops before its end."""
    a, b = LOCATIONS[origin], LOCATIONS[target]
    share = 1.0 if status == "success" else 0.6
    turn = math.radians((b.yaw - a.yaw + 180) % 360 - 180)
    return (a.x, a.y, math.radians(a.yaw)), (share * (b.x - a.x), share * (b.y - a.y), share * turn)


@cache
def slot_position(location: str, slot: int) -> tuple[float, float, float]:
    """Compute the position of a slot, mm in the world frame.

    The slots of a location are a square grid in front of the robot.
    """
    x, y, yaw = LOCATIONS[location].x, LOCATIONS[location].y, math.radians(LOCATIONS[location].yaw)
    ahead = _REACH + _SLOT_SPACING * (slot // 2 - 0.5)
    aside = _SLOT_SPACING * (0.5 - slot % 2)
    return (
        x + ahead * math.cos(yaw) - aside * math.sin(yaw),
        y + ahead * math.sin(yaw) + aside * math.cos(yaw),
        _TABLE_HEIGHT,
    )


def _hand_positions() -> np.ndarray:
    """Positions of the two hands in the root frame, float64, (2, 3)."""
    return np.array([[_HAND_AHEAD, side * _HAND_ASIDE, _HAND_HEIGHT] for side in (1, -1)])


def _in_view(root: np.ndarray) -> np.ndarray:
    """True where a position in the root frame is detected; False for NaN."""
    with np.errstate(invalid="ignore"):
        distance = np.hypot(root[..., 0], root[..., 1])
        bearing = np.arctan2(root[..., 1], root[..., 0])
        return (distance <= DETECTION_RANGE) & (np.abs(bearing) <= DETECTION_ANGLE)


def _object_slots(
    world: _World, episode: np.ndarray, index: np.ndarray, kind: np.ndarray, visible: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Fill the two object slots of each frame.

    Objects that are seen for the first time come first, then what the robot handles, then the object that was reported
    longest ago.

    Returns:
        Symbols, int64, (T, 2), and their statuses, int8, (T, 2).
    """
    slots = np.zeros((len(index), 2), np.int64)
    status = np.zeros((len(index), 2), np.int8)
    new, updated = OBJECT_STATUSES.index("new"), OBJECT_STATUSES.index("updated")
    in_view: list[list[int]] = [[] for _ in index]
    for row, number in zip(*(indices.tolist() for indices in np.nonzero(visible)), strict=True):
        in_view[row].append(_FIRST_OBJECT + number)
    handles = (kind != WINDOW) & (world.verb_ids[index] != SYMBOL_IDS["move"])
    hands, objects = world.argument_ids[index, 1].tolist(), world.argument_ids[index, 3].tolist()
    reported: dict[int, int] = {}  # symbol -> frame
    last_episode = -1
    for frame, (number, is_handling) in enumerate(zip(episode.tolist(), handles.tolist(), strict=True)):
        if number != last_episode:
            last_episode, reported = number, {}
        seen = in_view[frame]
        chosen = [symbol for symbol in seen if symbol not in reported][-2:]
        if len(chosen) < 2 and is_handling:
            hand, handled = hands[frame], objects[frame]
            chosen += [
                symbol for symbol in (handled, hand) if symbol not in chosen and (symbol == hand or symbol in seen)
            ]
        if len(chosen) < 2:
            old = [symbol for symbol in seen if symbol in reported and symbol not in chosen]
            chosen += sorted(old, key=reported.__getitem__)
        for slot, symbol in enumerate(chosen[:2]):
            slots[frame, slot] = symbol
            status[frame, slot] = updated if symbol in reported else new
            reported[symbol] = frame
    return slots, status


@lru_cache(maxsize=1)
def _nominal_poses() -> dict[str, np.ndarray]:
    """Joint angles at rest, rad, (40,), and their changes in a reach, lift, putdown."""
    rng = np.random.default_rng(40)
    poses = {"rest": rng.normal(0.0, 0.3, JOINTS)}
    for side, joints in enumerate((slice(0, 14), slice(14, 28))):
        for name in ("reach", "lift", "place"):
            change = np.zeros(JOINTS)
            change[joints] = rng.normal(0.0, 0.6, 14)
            change[28:] = rng.normal(0.0, 0.1, JOINTS - 28)
            poses[f"{name}{side}"] = change
    return poses


def _joint_signals(
    config: HouseholdConfig,
    world: _World,
    index: np.ndarray,
    episode: np.ndarray,
    kind: np.ndarray,
    progress: np.ndarray,
) -> np.ndarray:
    """Compute angles (rad), velocities (rad/s) and currents of the joints without noise, float64, (T, 120)."""
    nominal = _nominal_poses()
    states = np.arange(len(world.start)) + np.searchsorted(world.first_action, np.arange(len(world.start)), "right") - 1
    full = world.hands_full(np.arange(len(world.position)))
    lifts = np.stack([nominal["lift0"], nominal["lift1"]])
    offset = np.random.default_rng([HOUSE_SEED, 2]).normal(0.0, config.joint_offset, JOINTS)
    carry = nominal["rest"] + offset + full @ lifts
    before, after = carry[states], carry[states + 1]
    is_grasp, is_move = world.verb_ids == SYMBOL_IDS["grasp"], world.verb_ids == SYMBOL_IDS["move"]
    hand = np.where(is_move, 0, world.argument_ids[:, 1] - SYMBOL_IDS[_HAND_NAMES[0]])
    changes = np.stack([[nominal[f"{name}{side}"] for side in (0, 1)] for name in ("place", "reach")])
    reach = before + np.where(is_move[:, None], 0.0, changes[is_grasp.astype(int), hand])
    broken_off = ~world.succeeded & ~is_move  # a lift or a release that was broken off
    after = np.where(broken_off[:, None], reach + 0.3 * (before - reach), after)
    key = np.stack([before, reach, after], 1)  # at the start, when the hand is at the object, at the end

    def angles(share: np.ndarray) -> np.ndarray:
        first = share < _REACHED
        part = np.where(first, share / _REACHED, (share - _REACHED) / (1 - _REACHED))
        smooth = part**3 * (10 - 15 * part + 6 * part**2)  # minimum jerk
        a, b = key[index, np.where(first, 0, 1)], key[index, np.where(first, 1, 2)]
        return a + smooth[:, None] * (b - a)

    seconds = world.end[index] - world.start[index]
    angle = angles(progress)
    velocity = (angle - angles(np.clip(progress - _VELOCITY_SECONDS / seconds, 0.0, 1.0))) / _VELOCITY_SECONDS
    side = np.zeros((2, JOINTS))
    side[0, :14] = side[1, 14:28] = 1.0
    now = index + episode + (kind == ENDED) * world.succeeded[index]
    current = 0.3 * np.abs(velocity) + 0.5 * (full[now] @ side)
    failed = (kind == ENDED) & ~world.succeeded[index]
    current += 2.0 * failed[:, None] * np.where(is_move[index, None], 1.0, side[hand[index]])
    return np.concatenate([angle, velocity, current], 1)


def views(visible: np.ndarray, root: np.ndarray, location: np.ndarray, full: np.ndarray) -> np.ndarray:
    """Describe what is in view.

    Returns:
        float16, (T, VIEW_WIDTH): for each object 1 if it is visible, and its bearing (rad); the location as one-hot;
        for each hand 1 if it is full.
    """
    bearing = np.where(visible, np.arctan2(root[..., 1], root[..., 0]), 0.0)
    at = location[:, None] == np.arange(len(LOCATIONS))
    return np.concatenate([visible, bearing, at, full], 1).astype(np.float16)


LATENT_WIDTH = 2048
_HIDDEN = 256


@lru_cache(maxsize=1)
def _latent_network() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2048)
    first = rng.standard_normal((VIEW_WIDTH, _HIDDEN), np.float32) / math.sqrt(8.0)
    return first, rng.standard_normal((_HIDDEN, LATENT_WIDTH), np.float32) / math.sqrt(_HIDDEN)


def image_latents(view: np.ndarray, rng: np.random.Generator, noise: float = 0.1) -> np.ndarray:
    """Compute a substitute for image latents: a fixed random network of what is in view.

    Args:
        view: float, (T, VIEW_WIDTH); see `views`.
        rng: Source of the noise.
        noise: Its standard deviation.

    Returns:
        float32, (T, 2048); >= 0 but for the noise.
    """
    first, second = _latent_network()
    hidden = np.maximum(view.astype(np.float32) @ first, 0.0)
    return np.maximum(hidden @ second, 0.0) + noise * rng.standard_normal((len(view), LATENT_WIDTH), np.float32)
