"""Actions, episodes and histories of a robot, as plain data.

All times are whole seconds: within an episode since its start, in a history since 2020-01-01 00:00:00.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from memenvs.verbalization.symbols import Goal, Verb

ActionStatus = Literal["success", "failure"]
TaskStatus = Literal["success", "abort", "failure"]


@dataclass(frozen=True, slots=True)
class Action:
    """A finished action.

    Attributes:
        verb: "move", "grasp" or "putdown".
        arguments: Symbols as in the robot's log: (agent, from, to) of a move, else (agent, hand, location, object).
        start: Second of the episode at which it started.
        end: Second at which it succeeded or failed; > start.
        status: "success" or "failure".
    """

    verb: Verb
    arguments: tuple[str, ...]
    start: int
    end: int
    status: ActionStatus

    @property
    def origin(self) -> str | None:
        """Location that a move leaves; None for the other actions."""
        return self.arguments[1] if self.verb == "move" else None

    @property
    def location(self) -> str:
        """Location to which a move leads, or at which an object is grasped or put down."""
        return self.arguments[2]

    @property
    def hand(self) -> str | None:
        """Hand that grasps or puts down; None for a move."""
        return None if self.verb == "move" else self.arguments[1]

    @property
    def object(self) -> str | None:
        """Object that is grasped or put down; None for a move."""
        return None if self.verb == "move" else self.arguments[3]

    @property
    def duration(self) -> int:
        """Seconds from start to end."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class StartState:
    """Places of robot and objects at the start of an episode.

    Attributes:
        robot: Location of the robot.
        objects: Object -> (location, slot 0 ... 3).
    """

    robot: str
    objects: Mapping[str, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Frames:
    """T key frames, in the order of time.

    Attributes:
        time: int32, (T,); seconds since the start of the episode.
        goal: int16, (T, 5); goal predicates, indices into `SYMBOLS`, 0 where there is none.
        action: int16, (T,); action whose status changed in the frame; 0 for none.
        args: int16, (T, 5); its arguments.
        objects: int16, (T, 2); objects or hands that were newly seen or updated.
        state: int8, (T, 4); statuses of the task, of the action and of the two objects; -1 where there is none.
        sub: float32, (T, U); sub-symbolic signals: positions of the two objects (x, y, z each; mm, root frame of the
            robot), pose of the platform (x, y in mm, yaw in radians; world frame), then angles, velocities and currents
            of the joints.
    """

    time: np.ndarray
    goal: np.ndarray
    action: np.ndarray
    args: np.ndarray
    objects: np.ndarray
    state: np.ndarray
    sub: np.ndarray

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, slots=True)
class Episode:
    """Actions of the robot for one goal of its planner, and its key frames.

    Attributes:
        goals: Predicates of the goal; they are a set, without two equal ones.
        outcomes: For each goal, True if it was reached.
        scene: Start scene.
        actions: Actions in order; of a failed episode the last one failed.
        status: "success", "failure", or "abort" (given up after a failed action, or never finished).
        duration: Seconds from the start to the last frame.
        frames: Key frames.
        number: Index of the episode in its pool.
    """

    goals: tuple[Goal, ...]
    outcomes: tuple[bool, ...]
    scene: StartState
    actions: tuple[Action, ...]
    status: TaskStatus
    duration: int
    frames: Frames
    number: int = -1


@dataclass(frozen=True, slots=True)
class History:
    """Episodes with their dates, and the time of a question about them.

    Questions name an episode by its index in `episodes`: 0 is the oldest.

    Attributes:
        episodes: Episodes in the order of time; may be empty.
        starts: Seconds since 2020-01-01 00:00:00 at which each starts; one episode ends before the next starts.
        question_time: Seconds since 2020-01-01 00:00:00 of the questions; after the last episode.
        key: Numbers that name the history, and seed what is drawn for it.
        distractors: Number of the last episodes that are of distractor days, in other houses.
    """

    episodes: tuple[Episode, ...]
    starts: tuple[int, ...]
    question_time: int
    key: tuple[int, ...] = field(default=())
    distractors: int = 0

    def __len__(self) -> int:
        return len(self.episodes)

    @property
    def ends(self) -> tuple[int, ...]:
        """Seconds since 2020-01-01 00:00:00 at which each episode ends."""
        return tuple(start + episode.duration for start, episode in zip(self.starts, self.episodes, strict=True))

    @property
    def own(self) -> History:
        """The history without its distractor days; the time of the questions stays."""
        count = len(self) - self.distractors
        return replace(self, episodes=self.episodes[:count], starts=self.starts[:count], distractors=0)

    @property
    def num_frames(self) -> int:
        """Number of key frames of all episodes."""
        return sum(len(episode.frames) for episode in self.episodes)
