"""`PoseWrapper`: the pose of the agent as an observation."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from memenvs.poses import relative_poses, wrap_angle
from memenvs.wrappers.dead_reckoning import DeadReckoning
from memenvs.wrappers.key import KeyWrapper
from memenvs.wrappers.truth import truth_of

FRAMES = ("world", "start", "camera")
ORIGINS = ("episode", "trial")
NOISES = ("none", "gaussian", "dead_reckoning")


class PoseWrapper(KeyWrapper, RecordConstructorArgs):
    """Add the observation `pose`: float32 (3,); x m, y m, heading rad in [-pi, pi].

    Frames:
        world: the frame of `info["pose"]`.
        start: relative to the pose at the start (see `origin`), x ahead and y to the left; (0, 0, 0) there.
        camera: egomotion. The pose relative to the pose before the last action, x ahead and y to the left;
            (0, 0, 0) at a start. Chaining these motions gives the pose in the `start` frame.

    Noise is added to the true pose in the chosen frame at every step, the first one included. Its generator depends on
    the seed and the episode alone. They are `seed`, `trial_id` and `episode_index` of `info`; without these, the seed
    of the last seeded `reset` and the number of resets since.

    The noise "dead_reckoning" draws nothing. The pose is the true one at the start of an episode; then the commanded
    motions are added up. The environment needs `command` (length m and turn rad of the last action) and `collision` in
    its `info`, as Roaming, Coverage and Search have.

    Args:
        env: An environment with `info["pose"]`, as all of `memenvs` have, or one of Minigrid or Miniworld.
        frame: "world", "start" or "camera".
        origin: The start that the frame "start" refers to: that of the "episode" or that of the "trial". Poses of all
            episodes of a trial can be compared with "trial", which needs `info["trial_start"]`.
        noise: "none", "gaussian" or "dead_reckoning".
        position_sd: Standard deviation of the noise of x and of y, m; >= 0, and 0 unless `noise` is "gaussian".
        heading_sd: Standard deviation of the noise of the heading, rad; >= 0, and 0 unless `noise` is "gaussian".
        collision_known: True if dead reckoning notices collisions: the estimate then does not move in such a step.

    Raises:
        ValueError: A setting is not allowed; at `reset`: pose or commands are unknown, or there are no trials.
    """

    def __init__(
        self,
        env: gym.Env,
        *,
        frame: str = "start",
        origin: str = "episode",
        noise: str = "none",
        position_sd: float = 0.0,
        heading_sd: float = 0.0,
        collision_known: bool = False,
    ) -> None:
        RecordConstructorArgs.__init__(
            self,
            frame=frame,
            origin=origin,
            noise=noise,
            position_sd=position_sd,
            heading_sd=heading_sd,
            collision_known=collision_known,
        )
        for name, value, choices in (
            ("pose frame", frame, FRAMES),
            ("origin", origin, ORIGINS),
            ("noise", noise, NOISES),
        ):
            if value not in choices:
                raise ValueError(f"unknown {name} {value!r}; choose from {', '.join(map(repr, choices))}")
        if origin != "episode" and frame != "start":
            raise ValueError(f"origin {origin!r} needs frame 'start', got frame {frame!r}")
        if collision_known and noise != "dead_reckoning":
            raise ValueError(f"collision_known needs noise 'dead_reckoning', got noise {noise!r}")
        for name, sd in (("position_sd", position_sd), ("heading_sd", heading_sd)):
            if noise != "gaussian" and sd != 0.0:
                raise ValueError(f"{name} must be 0 with noise {noise!r}, got {sd}; pass noise='gaussian'")
            if not isinstance(sd, (int, float, np.number)) or not 0.0 <= sd < np.inf:
                raise ValueError(f"{name} must be finite and at least 0, got {sd!r}")
        limit = np.array([np.inf, np.inf, np.pi], np.float32)
        super().__init__(env, "pose", gym.spaces.Box(-limit, limit, dtype=np.float32))
        self._frame = frame
        self._origin = origin
        # Dead reckoning replaces the true pose before it is converted to the frame; noise is added after that.
        self._reckoning = DeadReckoning(collision_known=collision_known) if noise == "dead_reckoning" else None
        self._sd = np.array([position_sd, position_sd, heading_sd]) if noise == "gaussian" else None
        self._truth = truth_of(env)
        self._seed: int | None = None
        self._start = np.zeros(3)  # where the environment is wrapped in the middle of a trial

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Reset the environment; see the class."""
        observation, info = self.env.reset(seed=seed, options=options)
        if seed is not None or self._seed is None:
            self._seed = int(np.random.default_rng().integers(2**62)) if seed is None else seed
            self._episode = 0
        else:
            self._episode += 1
        if self._origin == "trial" and "trial_start" not in info:
            raise ValueError("origin 'trial' needs an environment with trials; the info has no 'trial_start'")
        entropy = [info.get("seed", self._seed), info.get("trial_id", 0), info.get("episode_index", self._episode)]
        # the last number separates this generator from the environment's own
        self._rng = np.random.default_rng([*entropy, 0x9053])
        pose = self._pose(info, is_start=True)
        self._previous_pose = pose
        if self._origin == "episode" or info["trial_start"]:  # else the start of the trial stays the origin
            self._start = pose
        return self._with_key(observation, self._measure(pose)), info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Step the environment; see the class."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        is_start = info.get("episode_start", False)  # a `TrialWrapper` inside has begun the next episode
        pose = self._pose(info, is_start=is_start)
        if is_start:
            self._previous_pose = pose
            self._start = pose if self._origin == "episode" else self._start
        measurement = self._measure(pose)
        return self._with_key(observation, measurement), reward, terminated, truncated, info

    def _pose(self, info: dict[str, Any], *, is_start: bool) -> np.ndarray:
        """Return the pose in the world frame, float64, (3,): the true one, or the estimate of dead reckoning."""
        if self._reckoning is None:
            return self._truth.pose(info)
        if is_start:
            return self._reckoning.start(self._truth.pose(info), info)
        return self._reckoning.move(info)

    def _measure(self, pose: np.ndarray) -> np.ndarray:
        """Convert a pose to the chosen frame and add noise, float32, (3,); it becomes the previous pose."""
        origin = {"world": None, "start": self._start, "camera": self._previous_pose}[self._frame]
        self._previous_pose = pose
        measured = pose if origin is None else relative_poses(pose, origin)
        if self._sd is not None:
            measured = measured + self._sd * self._rng.standard_normal(3)
        return np.array([measured[0], measured[1], wrap_angle(measured[2])], np.float32)
