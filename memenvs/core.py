"""What turns the rules of a task into Gymnasium environments: seeds, clocks, trials, autoreset, info.

A task is written once, for N environments (`BatchTask`). `TrialVectorEnv` is its vector form, `TrialEnv` its single form (N = 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy as copy_of
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from memenvs.checks import check_int
from memenvs.resets import split_options, split_seed
from memenvs.task import TRIAL_OPTIONS, BatchTask, Observation, Options, load_task, make_task, setting_names

__all__ = ["TRIAL_OPTIONS", "BatchTask", "Observation", "Options", "TrialEnv", "TrialVectorEnv", "load_task"]


class TrialVectorEnv(VectorEnv):
    """N environments of one task, stepped together.

    The Gymnasium episode is the inner episode of a trial. A reset goes on in the same trial (same layout) until the trial is over.

    Randomness: environment `i` has a seed. Its trial `t` takes layout and what is fixed for the trial from `default_rng([seed, t, 0])`,
    episode `e` of it takes everything from `default_rng([seed, t, 1 + e])`. So an episode is a function of (id, kwargs, seed, trial,
    episode index), all of which are in `info`, and env i of a batch seeded with s is the single environment seeded with s + i.

    Args:
        task: Task class, or "module:Class".
        num_envs: N, >= 1.
        trial_episodes: Episodes in a trial, >= 1; None for no limit.
        trial_steps: Steps in a trial, >= 1; the step that uses them up is `truncated`; None for no limit.
        max_episode_steps: Steps after which an episode is truncated, >= 1; None for the task's own.
        autoreset_mode: What happens at the end of an episode: "NextStep" (Gymnasium's default: the next step resets and ignores its action),
            "SameStep" (the same step resets; `infos["final_obs"]`, `infos["final_info"]`), "Disabled" (`reset(options={"reset_mask": ...})`).
        copy: Whether observations are fresh arrays. If False they are two sets of buffers used in turn, so that an observation
            stays valid until the step after the next one.
        render_mode: None or "rgb_array".
        **kwargs: Settings of the task.

    Raises:
        ValueError: A setting is out of range.
        TypeError: A setting is unknown to the task.

    Reset options, all optional; a sequence of N dicts gives each environment its own:
        `new_trial` (bool): start the next trial now. `trial` (int): start the trial of this number. `episode_index` (int): start this
        episode of the trial. These three hold for this reset only. `layout` (int) and the task's own options (such as `start` and
        `goal`) hold for this reset and every autoreset after it, until the next explicit reset of that environment.
        `reset_mask` (bool array, (N,)): reset only these environments.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  (Gymnasium's declaration)

    def __init__(
        self,
        task: str | type[BatchTask],
        num_envs: int = 1,
        *,
        trial_episodes: int | None = None,
        trial_steps: int | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        render_mode: str | None = None,
        **kwargs: Any,
    ) -> None:
        check_int("num_envs", num_envs)
        check_int("trial_episodes", trial_episodes, or_none=True)
        check_int("trial_steps", trial_steps, or_none=True)
        check_int("max_episode_steps", max_episode_steps, or_none=True)
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"unknown render_mode {render_mode!r}; choose from None, 'rgb_array'")
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError:
            choices = [mode.value for mode in AutoresetMode]
            raise ValueError(f"unknown autoreset_mode {autoreset_mode!r}; choose from {choices}") from None
        self.num_envs = num_envs
        if max_episode_steps is not None and "max_episode_steps" in setting_names(task):
            kwargs["max_episode_steps"] = max_episode_steps
        own = ("trial_episodes", "trial_steps", "max_episode_steps", "render_mode")
        self.task = make_task(task, num_envs, kwargs, own)
        self.trial_episodes, self.trial_steps = trial_episodes, trial_steps
        self.max_episode_steps = self.task.max_episode_steps if max_episode_steps is None else max_episode_steps
        self.render_mode = render_mode
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = self.task.observation_space
        self.single_action_space = self.task.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.copy = copy
        self._buffers = tuple(self._empty_observation() for _ in range(1 if copy else 2))
        self._turn = 0
        self._seed = np.full(num_envs, -1, np.int64)  # -1: never seeded
        self._trial = np.full(num_envs, -1, np.int64)
        self._layout = np.zeros(num_envs, np.int64)
        self._episode = np.zeros(num_envs, np.int64)
        self._num_steps = np.zeros(num_envs, np.int64)
        self._trial_step = np.zeros(num_envs, np.int64)
        self._trial_over = np.ones(num_envs, bool)
        self._trial_start = np.zeros(num_envs, bool)
        self._ended = np.ones(num_envs, bool)  # waits for a reset
        self._held: list[dict[str, Any]] = [{} for _ in range(num_envs)]
        self._everyone = np.ones(num_envs, bool)
        self._everyone.flags.writeable = False
        self._is_reset = False

    # ------------------------------------------------------------------ Gymnasium's interface

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Options | Sequence[Options] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode everywhere, or where `options["reset_mask"]` says.

        Args:
            seed: s seeds environment i with s + i and starts its trial 0; a sequence gives each its own; None goes on with the next episode.
            options: See the class.

        Returns:
            Observations, (N, ...) for each key, and the info.

        Raises:
            ValueError: A seed or an option is not allowed.
            RuntimeError: The environment is closed.
        """
        if self.closed:
            raise RuntimeError("reset was called after close")
        per_env, mask = split_options(options, self.task)
        seeds = split_seed(seed, self.num_envs)
        if not self._is_reset and not mask.all():
            raise ValueError("reset_mask must be all True at the first reset")
        self._is_reset = False  # and so it stays if the task refuses an option half-way
        for i in np.flatnonzero(mask).tolist():
            own_seed = seeds[i]
            if own_seed is not None:
                self._seed[i], self._trial[i], self._trial_over[i] = own_seed, -1, True
            elif self._seed[i] < 0:
                self._seed[i] = np.random.default_rng().integers(2**62)
            self._held[i] = {key: value for key, value in per_env[i].items() if key not in TRIAL_OPTIONS[:3]}
            self._begin(i, per_env[i])
        self._is_reset = True
        return self._observe(self._everyone), self._info()

    def step(self, actions: np.ndarray) -> tuple[Observation, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step everywhere. See Gymnasium's `VectorEnv.step` and the class for the autoreset modes.

        Raises:
            RuntimeError: Before the first reset, after `close`, or (mode "Disabled") where an episode has ended.
            TypeError: Actions are not integers.
            ValueError: Actions have a wrong shape or are out of range.
        """
        actions = self._check_step(actions)
        active = ~self._ended
        rewards, terminated = self.task.step(actions, active)
        self._num_steps += active
        self._trial_step += active
        self._trial_start &= ~active
        truncated = active & (self._num_steps >= self.max_episode_steps)
        if self.trial_steps is not None:
            used_up = active & (self._trial_step >= self.trial_steps)
            truncated |= used_up
            self._trial_over |= used_up
        done = terminated | truncated
        if self.autoreset_mode is AutoresetMode.NEXT_STEP:
            for i in np.flatnonzero(self._ended).tolist():
                self._begin(i, {})
        self._ended = done.copy()  # `_begin` changes it, and `done` is handed out
        if self.autoreset_mode is not AutoresetMode.SAME_STEP or not done.any():
            return self._observe(self._everyone), rewards, terminated, truncated, self._info()
        final_info = self._info()
        final_obs = self._final_observations(done)
        for i in np.flatnonzero(done).tolist():
            self._begin(i, {})
        infos = self._info()
        infos |= {"final_obs": final_obs, "_final_obs": done, "final_info": final_info, "_final_info": done}
        return self._observe(self._everyone), rewards, terminated, truncated, infos

    def render(self) -> tuple[np.ndarray, ...] | None:
        """One picture for each environment, or None if `render_mode` is None.

        Raises:
            RuntimeError: Before the first reset.
        """
        if self.render_mode is None:
            return None
        if not self._is_reset:
            raise RuntimeError("render was called before reset")
        return tuple(self.task.render(i) for i in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Frees what the task holds."""
        self.task.close()

    # ------------------------------------------------------------------ beyond Gymnasium's interface

    @property
    def trial_over(self) -> np.ndarray:
        """bool, (N,); where the next reset, explicit or automatic, starts a new trial."""
        if self.trial_episodes is None:
            return self._trial_over.copy()
        return self._trial_over | (self._episode + 1 >= self.trial_episodes)

    def new_trial(self, which: np.ndarray | None = None) -> None:
        """Makes the next reset, explicit or automatic, of the environments in `which` (bool, (N,); None: all) start a new trial."""
        self._trial_over |= self._everyone if which is None else which

    def oracle_actions(self) -> np.ndarray:
        """int64, (N,); what a policy that knows the truth does now.

        Raises:
            RuntimeError: Before the first reset.
        """
        if not self._is_reset:
            raise RuntimeError("oracle_actions was called before reset")
        return self.task.oracle_actions()

    # ------------------------------------------------------------------ private

    def _begin(self, i: int, options: Options) -> None:
        """Starts the next episode of environment `i`; `options` are those of an explicit reset."""
        held = self._held[i]
        asked = options.get("trial")
        layout = held.get("layout")
        is_used_up = self.trial_episodes is not None and self._episode[i] + 1 >= self.trial_episodes
        is_elsewhere = asked is not None or (layout is not None and layout != self._layout[i])
        new = bool(self._trial_over[i] or is_used_up or is_elsewhere or options.get("new_trial", False))
        if new:
            self._trial[i] = self._trial[i] + 1 if asked is None else asked
            rng = np.random.default_rng([self._seed[i], self._trial[i], 0])
            drawn = int(rng.integers(self.task.num_layouts))  # always drawn, so that `layout` changes nothing else
            self._layout[i] = drawn if layout is None else layout
            self._episode[i] = self._trial_step[i] = 0
            self.task.begin_trial(i, int(self._layout[i]), rng)
        else:
            self._episode[i] += 1
        self._trial_start[i], self._trial_over[i] = new, False
        if options.get("episode_index") is not None:
            self._episode[i] = options["episode_index"]
        self._num_steps[i] = 0
        self._ended[i] = False
        rng = np.random.default_rng([self._seed[i], self._trial[i], 1 + self._episode[i]])
        self.task.begin_episode(i, rng, held)

    def _empty_observation(self) -> Observation:
        return {
            key: np.full(self.num_envs, "", object)  # texts are objects of Python
            if isinstance(space, gym.spaces.Text)
            else np.zeros((self.num_envs, *(space.shape or ())), space.dtype)
            for key, space in self.task.observation_space.spaces.items()
        }

    def _observe(self, which: np.ndarray) -> Observation:
        out = self._buffers[self._turn]
        self._turn = (self._turn + 1) % len(self._buffers)
        self.task.observe(out, which)
        return {key: value.copy() for key, value in out.items()} if self.copy else out

    def _final_observations(self, done: np.ndarray) -> np.ndarray:
        """Object array, (N,); the last observation of every episode that ended, None elsewhere."""
        out = self._buffers[self._turn]  # is written again right after, so nothing of it is lost
        self.task.observe(out, done)
        final = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(done):
            final[i] = {key: copy_of(value[i]) for key, value in out.items()}
        return final

    def _info(self) -> dict[str, Any]:
        truth = self.task.info()
        values = {
            "seed": self._seed,
            "trial_id": self._trial,
            "trial_start": self._trial_start,
            "episode_index": self._episode,
            "layout_id": self._layout,
            "num_steps": self._num_steps,
            **truth,
        }
        if "success" in truth:
            values["is_success"] = truth["success"]  # as Stable-Baselines3 calls it
        info: dict[str, Any] = {}
        for key, value in values.items():
            info[key], info["_" + key] = value.copy(), self._everyone
        return info

    def _check_step(self, actions: np.ndarray) -> np.ndarray:
        if self.closed:
            raise RuntimeError("step was called after close")
        if not self._is_reset:
            raise RuntimeError("step was called before reset")
        if self.autoreset_mode is AutoresetMode.DISABLED and self._ended.any():
            raise RuntimeError(
                f"step was called after the end of the episode of environment {np.flatnonzero(self._ended).tolist()}; reset first"
            )
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,):
            raise ValueError(f"actions must have the shape ({self.num_envs},), got {actions.shape}")
        if actions.dtype.kind not in "iu":
            raise TypeError(f"actions must be integers, got {actions.dtype}")
        count = self.task.action_space.n
        bad = (actions < 0) | (actions >= count)
        if bad.any():
            raise ValueError(f"actions must be in 0 ... {count - 1}, got {actions[bad].tolist()}")
        return actions.astype(np.int64, copy=False)


class TrialEnv(gym.Env):
    """One environment of a task: `TrialVectorEnv` with N = 1, without the batch axis and without autoreset.

    Args:
        task: Task class, or "module:Class".
        **kwargs: As `TrialVectorEnv`, except `num_envs`, `autoreset_mode` and `copy`. `gym.make` keeps its own `max_episode_steps` for a
            `TimeLimit` around the environment, which can make episodes shorter but not longer; for longer ones put it into the
            `kwargs` of `gym.spec(id)` and pass that to `gym.make`.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  (Gymnasium's declaration)

    def __init__(self, task: str | type[BatchTask], **kwargs: Any) -> None:
        self._batch = TrialVectorEnv(task, 1, autoreset_mode=AutoresetMode.DISABLED, **kwargs)
        self.observation_space = self._batch.single_observation_space
        self.action_space = self._batch.single_action_space
        self.render_mode = self._batch.render_mode

    @property
    def task(self) -> BatchTask:
        """The rules and the state, arrays of one row."""
        return self._batch.task

    @property
    def num_places(self) -> int | None:
        """`info["place"]` is in 0 ... num_places - 1; None if the task has no places."""
        return self._batch.task.num_places

    @property
    def trial_episodes(self) -> int | None:
        """Episodes in a trial; None for no limit."""
        return self._batch.trial_episodes

    @property
    def trial_steps(self) -> int | None:
        """Steps in a trial; None for no limit."""
        return self._batch.trial_steps

    @property
    def trial_over(self) -> bool:
        """Whether the next reset starts a new trial."""
        return bool(self._batch.trial_over[0])

    def reset(self, *, seed: int | None = None, options: Options | None = None) -> tuple[Observation, dict[str, Any]]:
        """Starts the next episode of the trial, or a new trial if it is over. See `TrialVectorEnv.reset`."""
        super().reset(seed=seed)
        observation, info = self._batch.reset(seed=seed, options=options)
        return {key: value[0] for key, value in observation.items()}, self._first(info)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """One step.

        Raises:
            RuntimeError: Before `reset`, after the end of the episode, or after `close`.
            TypeError: The action is not an integer.
            ValueError: The action is not a single number or out of range.
        """
        action = np.asarray(action)
        if action.shape != ():
            raise ValueError(f"action must be one number, got an array of shape {action.shape}")
        observation, reward, terminated, truncated, info = self._batch.step(action[None])
        first = {key: value[0] for key, value in observation.items()}
        return first, float(reward[0]), bool(terminated[0]), bool(truncated[0]), self._first(info)

    def render(self) -> np.ndarray | None:
        """A picture for people, uint8, (H, W, 3), or None if `render_mode` is None."""
        pictures = self._batch.render()
        return None if pictures is None else pictures[0]

    def close(self) -> None:
        """Frees what the task holds; may be called twice."""
        self._batch.close()

    def new_trial(self) -> None:
        """Makes the next reset start a new trial."""
        self._batch.new_trial()

    def oracle_action(self) -> int:
        """What a policy that knows the truth does now."""
        return int(self._batch.oracle_actions()[0])

    @staticmethod
    def _first(info: dict[str, Any]) -> dict[str, Any]:
        """Info of the one environment: Python scalars and texts, and arrays where the truth is a vector."""
        return {
            key: value[0].item() if value.ndim == 1 and value.dtype != object else value[0]
            for key, value in info.items()
            if not key.startswith("_")
        }
