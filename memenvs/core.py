"""Gymnasium environments of a task: `TrialVectorEnv` (N environments) and `TrialEnv` (one).

The rules of a task are written once, for N environments (`BatchTask`). The two classes here add what all tasks share:
seeds, step limits, trials, autoreset and the common keys of `info`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import copy as copy_of
from types import FrameType
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from memenvs.actions import check_actions, draw_actions
from memenvs.checks import MAX_STEPS, check_int
from memenvs.itineraries import check_episode, check_homes, check_itinerary, letter_number
from memenvs.resets import SEED_LIMIT, split_options, split_seed
from memenvs.task import (
    LEG_START,
    ONE_RESET_OPTIONS,
    PHASE,
    BatchTask,
    Observation,
    Options,
    blank_value,
    defines,
    empty_observation,
    make_task,
    setting_names,
)
from memenvs.trials import Trials

if TYPE_CHECKING:
    from memenvs.certificate import Certificate

__all__ = ["TrialEnv", "TrialVectorEnv"]


class TrialVectorEnv(VectorEnv):
    """N environments of one task, stepped together.

    A trial is a sequence of episodes in one layout (the maze, the home with its objects, ...), so that an agent can use
    in later episodes what it has seen in earlier ones. An episode is one Gymnasium episode. A reset starts the next
    episode of the trial; after the last one it starts a new trial and draws its layout.

    Randomness: each environment has a seed. Trial `t` draws its layout, and everything else that is fixed for the
    trial, from `default_rng([seed, t, 0])`. Episode `e` of the trial draws everything from
    `default_rng([seed, t, 1 + e])`. So an episode is a function of (id, settings, seed, trial, episode index), all of
    which are in `info`. Environment i of a batch with seed s equals the single environment with seed s + i.

    Args:
        task: Task class, or "module:Class".
        num_envs: N, >= 1.
        trial_episodes: Episodes in a trial, >= 1; None for no limit.
        trial_steps: Steps in a trial, >= 1; the step that reaches the limit is `truncated`. None for no limit.
        max_episode_steps: Steps after which an episode is truncated, those of the gap included, > `gap`; None for the
            task's own limit and the gap.
        gap: Blank steps before each episode, >= 0. All observations are 0, rewards too, and actions are ignored. So no
            window of `gap` steps reaches from one episode into the next. Needs trials of several episodes.
        led: True moves the agent by drawn actions while it waits (`BatchTask.waits`) and ignores its own. So it cannot
            keep a note in its position or heading.
        itinerary: Letters for the episodes of a trial, such as "AAABBBAAA": each stands for a layout, A for that of the
            trial and the others for layouts in other homes, which are drawn with it. The trial ends after the last
            letter, whatever `trial_episodes` and `trial_steps` are. None for trials in one layout.
        leg_flag: True names the layout of each visit at its start, by the observation `leg_start`.
        autoreset_mode: Reaction to the end of an episode. "NextStep" (Gymnasium's default): the next step resets and
            ignores its action. "SameStep": the same step resets; the end is in `infos["final_obs"]` and
            `infos["final_info"]`. "Disabled": call `reset(options={"reset_mask": ...})`.
        copy: True returns fresh arrays as observations. False alternates between two buffers: an observation stays
            valid during the next step, and the step after that overwrites it.
        render_mode: None or "rgb_array".
        **kwargs: Settings of the task.

    Raises:
        ValueError: A setting is out of range.
        TypeError: The task has no such setting.

    Options:
        new_trial: bool; start the next trial now. For this reset only.
        trial: int; start the trial with this number. For this reset only.
        episode_index: int; start this episode of the trial. For this reset only.
        reset_mask: bool, (N,); reset only these environments. For this reset only.
        layout: int; number of the layout. It holds for the autoresets too, until the next explicit reset of that
            environment. So do the options of the task, such as `start` and `goal`, if `layout` is given; else they hold
            until the trial ends, as the next one is elsewhere. Where there is an itinerary they hold at the letter of
            that reset alone.

    A sequence of N dicts as `options` gives each environment its own.

    Observation:
        phase: With `gap` or `led`, beside the observations of the task: `Discrete(2)`; 0 where the next action is
            ignored, else 1. Tasks in which the agent first watches have this key too.
        leg_start: With `leg_flag`: `Discrete`; in the first observation of a visit 1 for A, 2 for B and so on, else 0.

    Info:
        seed: Seed of the environment.
        trial_id: Number of the trial.
        trial_start: True at the first step of a trial.
        episode_index: Number of the episode in its trial.
        layout_id: Number of the layout.
        num_steps: Steps in this episode.
        leg: Where there is an itinerary: number of the visit, from 0 on.
        letter: Where there is an itinerary: letter of the layout that the episode is in; `layout_id` is that of A.
        is_success: `success` of the task, where it has one, under the name of Stable-Baselines3.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  (as in Gymnasium)

    def __init__(
        self,
        task: str | type[BatchTask],
        num_envs: int = 1,
        *,
        trial_episodes: int | None = None,
        trial_steps: int | None = None,
        max_episode_steps: int | None = None,
        gap: int = 0,
        led: bool = False,
        itinerary: str | None = None,
        leg_flag: bool = False,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        render_mode: str | None = None,
        **kwargs: Any,
    ) -> None:
        check_int("num_envs", num_envs)
        check_int("trial_episodes", trial_episodes, or_none=True)
        check_int("trial_steps", trial_steps, or_none=True)
        check_int("gap", gap, 0, MAX_STEPS)
        check_itinerary(itinerary, leg_flag)
        if itinerary is not None:
            trial_episodes, trial_steps = len(itinerary), None
        check_int("max_episode_steps", max_episode_steps, gap + 1, or_none=True)
        if gap and trial_episodes == 1:
            raise ValueError(f"gap must be 0 with trials of one episode (trial_episodes=1), got {gap}")
        if not isinstance(led, bool | np.bool_):
            raise ValueError(f"led must be True or False, got {led!r}")
        if render_mode is not None and (not isinstance(render_mode, str) or render_mode != "rgb_array"):
            raise ValueError(f"unknown render_mode {render_mode!r}; choose from None, 'rgb_array'")
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except (TypeError, ValueError):  # an array has no hash
            choices = [mode.value for mode in AutoresetMode]
            raise ValueError(f"unknown autoreset_mode {autoreset_mode!r}; choose from {choices}") from None
        self.num_envs = num_envs
        if max_episode_steps is not None and "max_episode_steps" in setting_names(task):
            kwargs["max_episode_steps"] = max_episode_steps - gap
        #: Settings of the task that were given.
        self.task_settings = dict(kwargs)
        limits = ("trial_episodes", "trial_steps", "max_episode_steps")
        own_arguments = (*limits, "gap", "led", "itinerary", "leg_flag", "render_mode")
        self.task = make_task(task, num_envs, kwargs, own_arguments)
        if led and not defines(type(self.task), "waits"):
            name = type(self.task).__name__
            raise ValueError(f"led must be False for {name}, in which the agent has to act at every step, got {led}")
        self.trial_episodes = trial_episodes
        self.trial_steps = trial_steps
        self.gap = int(gap)
        self.led = bool(led)
        self.itinerary = itinerary
        self.leg_flag = leg_flag
        if itinerary is not None:
            check_homes(itinerary, self.task.num_homes)
        self.max_episode_steps = self.task.max_episode_steps + gap if max_episode_steps is None else max_episode_steps
        self.render_mode = render_mode
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        space = self.task.observation_space
        #: Whether this layer writes the key `phase`; a task that has it writes its own, 0 while actions are ignored.
        self._writes_phase = (self.gap > 0 or self.led) and PHASE not in space.spaces
        if self._writes_phase:
            space = gym.spaces.Dict({**space.spaces, PHASE: gym.spaces.Discrete(2)})
        if itinerary is not None and leg_flag:
            space = gym.spaces.Dict({**space.spaces, LEG_START: gym.spaces.Discrete(2 + letter_number(max(itinerary)))})
        self._space = self.single_observation_space = space
        self.single_action_space = self.task.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.copy = copy
        self._buffers = tuple(empty_observation(space, num_envs) for _ in range(1 if copy else 2))
        self._blank = {key: blank_value(inner) for key, inner in space.spaces.items()}
        self._buffer_index = 0
        self._trials = Trials(num_envs)
        self._letters = np.array([letter_number(letter) for letter in itinerary or "A"], np.int64)  # of each episode
        self._begins_leg = np.diff(self._letters, prepend=-1) != 0  # of each episode
        self._letter = np.full(num_envs, -1)  # the one whose layout the task has; -1 for none
        self._needs_reset = np.ones(num_envs, bool)  # True until the first reset, and after the end of an episode
        # Options of the latest explicit reset that apply to the autoresets after it.
        self._persistent_options: list[dict[str, Any]] = [{} for _ in range(num_envs)]
        self._letter_of_options = np.full(num_envs, -1)  # letter of that reset; -1 until it is known
        self._all_envs = np.ones(num_envs, bool)
        self._all_envs.flags.writeable = False
        self._is_reset = False
        self._motion_rngs: list[np.random.Generator] = [np.random.default_rng(0)] * num_envs  # set at each reset

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Options | Sequence[Options] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode in all environments, or in those of `options["reset_mask"]`.

        Args:
            seed: An integer s >= 0 gives environment i the seed s + i; a sequence gives each its own. A new seed starts
                trial 0. None keeps the seed and continues with the next episode. A seed of 2^62 or more stands for one
                below, which is in `info["seed"]`.
            options: See the class.

        Returns:
            Observations, (N, ...) for each key, and the info.

        Raises:
            ValueError: A seed or an option is not allowed. If the task refuses it, the next reset starts new trials.
            RuntimeError: The environment is closed.
        """
        if self.closed:
            raise RuntimeError("reset was called after close")
        per_env, mask = split_options(options, self.task)
        seeds = split_seed(seed, self.num_envs)
        if not self._is_reset:
            if not mask.all():
                raise ValueError("reset_mask must be all True at the first reset")
            self.new_trial()  # also where the task has rejected an option: no trial goes on without its first episode
        for i in np.flatnonzero(mask).tolist():
            env_seed = seeds[i]
            if env_seed is None and self._trials.seed[i] < 0:  # as in Gymnasium, a first reset without a seed draws one
                env_seed = int(np.random.default_rng().integers(SEED_LIMIT))
            if env_seed is not None:
                self._trials.set_seed(i, env_seed)
            self._persistent_options[i] = {
                key: value for key, value in per_env[i].items() if key not in ONE_RESET_OPTIONS
            }
            self._letter_of_options[i] = -1
            self._begin_episode(i, per_env[i])
        return self._observe(self._all_envs), self._info()

    def step(self, actions: np.ndarray) -> tuple[Observation, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all environments.

        See Gymnasium's `VectorEnv.step`, and the class for the autoreset modes.

        Args:
            actions: int, (N,), or for a `Box` float, (N, A).

        Returns:
            Observations; rewards, float64 (N,); terminated and truncated, bool (N,); info.

        Raises:
            RuntimeError: Before the first reset, after `close`, or (mode "Disabled") where an episode has ended.
            TypeError: Actions are not integers, or for a `Box` no numbers.
            ValueError: Actions have a wrong shape or are out of range.
        """
        actions = self._check_step(actions)
        active = ~self._needs_reset  # "NextStep": the others are reset by this step and ignore their action
        if self.led:
            actions = self._led_actions(actions, active)
        rewards, terminated = self.task.step(actions, active & ~self._in_gap())
        at_trial_limit = self._trials.step(active, self.trial_steps)
        truncated = active & (self._trials.episode_steps >= self.max_episode_steps) | at_trial_limit
        done = terminated | truncated
        if self.autoreset_mode is AutoresetMode.NEXT_STEP:
            for i in np.flatnonzero(self._needs_reset).tolist():
                self._begin_episode(i, {})
        self._needs_reset = done.copy()  # a copy: `_begin_episode` changes it, and the caller keeps `done`
        if self.autoreset_mode is not AutoresetMode.SAME_STEP or not done.any():
            return self._observe(self._all_envs), rewards, terminated, truncated, self._info()
        final_info = self._info(done)
        final_obs = self._final_observations(done)
        for i in np.flatnonzero(done).tolist():
            self._begin_episode(i, {})
        infos = self._info()
        infos |= {"final_obs": final_obs, "_final_obs": done, "final_info": final_info, "_final_info": done}
        return self._observe(self._all_envs), rewards, terminated, truncated, infos

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Render one image for each environment, uint8 (H, W, 3), or None if `render_mode` is None.

        Raises:
            RuntimeError: Before the first reset.
        """
        if self.render_mode is None:
            return None
        if not self._is_reset:
            raise RuntimeError("render was called before reset")
        return tuple(self.task.render(i) for i in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Free the resources of the task."""
        if hasattr(self, "task"):  # Gymnasium 1.1 also closes an environment whose constructor has raised
            self.task.close()

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the id with this task and these settings, whatever the split.

        Of several such ids it is that of the one by which Gymnasium made this, else of the first. None without one.
        """
        return _certificate_of(self, self.spec)

    @property
    def trial_over(self) -> np.ndarray:
        """bool, (N,); True where the next reset, explicit or automatic, starts a new trial."""
        return self._trials.are_over(self.trial_episodes)

    def new_trial(self, env_mask: np.ndarray | None = None) -> None:
        """Make the next reset, explicit or automatic, start a new trial.

        Args:
            env_mask: bool, (N,); True for the environments that start a new trial. None for all.
        """
        self._trials.is_due |= self._all_envs if env_mask is None else env_mask

    def action_masks(self) -> np.ndarray:
        """Return which actions are possible, bool, (N, A).

        Raises:
            RuntimeError: Before the first reset.
            TypeError: Actions are not `Discrete`.
        """
        if not isinstance(self.task.action_space, gym.spaces.Discrete):
            raise TypeError(f"action_masks needs Discrete actions, got {self.task.action_space}")
        if not self._is_reset:
            raise RuntimeError("action_masks was called before reset")
        mask = self.task.action_masks()
        return np.ones((self.num_envs, int(self.task.action_space.n)), bool) if mask is None else mask.astype(bool)

    @property
    def at_trial_start(self) -> np.ndarray:
        """bool, (N,); True from a reset that began a trial until the step after it."""
        return self._trials.trial_start.copy()

    def observe(self) -> Observation:
        """Return the present observations once more, in arrays of their own, (N, ...) for each key."""
        out = empty_observation(self._space, self.num_envs)
        self._write_observations(out, self._all_envs)
        return out

    def oracle_actions(self) -> np.ndarray:
        """Return the actions of the oracle, a policy that knows the ground truth.

        Returns:
            int64, (N,), or for a `Box` float32, (N, A).

        Raises:
            RuntimeError: Before the first reset.
        """
        if not self._is_reset:
            raise RuntimeError("oracle_actions was called before reset")
        return self.task.oracle_actions()

    def _begin_episode(self, i: int, options: Options) -> None:
        """Start the next episode of environment `i`, and a new trial if it is due.

        Args:
            i: Index of the environment.
            options: Those of an explicit reset; empty for an autoreset.
        """
        # If the task rejects an option below, some environments are reset and others are not: then this stays False, so
        # that the batch cannot be stepped.
        self._is_reset = False
        persistent = self._persistent_options[i]
        trials = self._trials
        layout = persistent.get("layout")
        begins_trial = trials.begins_trial(i, self.trial_episodes, options, layout)
        if self.itinerary is not None:
            check_episode(options.get("episode_index"), self.itinerary)
        if begins_trial:
            trials.begin_trial(i, options.get("trial"), layout, self.task.num_layouts)
            self._letter[i] = -1
            if not options and layout is None:  # an autoreset into a layout that may have no such start or goal
                self._persistent_options[i] = persistent = {}
        rng = trials.begin_episode(i, options.get("episode_index"), is_first=begins_trial)
        letter = self._letters[min(trials.episode[i], len(self._letters) - 1)]
        if letter != self._letter[i]:
            self._letter[i] = -1  # until the task is there
            self.task.begin_trial(i, *trials.go_to(i, letter, self.task))
            self._letter[i] = letter
        if self._letter_of_options[i] < 0:
            self._letter_of_options[i] = letter
        own = persistent if letter == self._letter_of_options[i] else {}  # another place may have no such start or goal
        self._needs_reset[i] = False
        self.task.begin_episode(i, rng, {**own, "episode_index": int(trials.episode[i])})
        trials.is_due[i] = self.task.ends_trial(i)
        if self.led:
            self._motion_rngs[i] = trials.motion_rng(i)
        self._is_reset = True

    def _in_gap(self) -> np.ndarray:
        """bool, (N,); True where the present observation is blank and the next action is ignored."""
        return self._trials.episode_steps < self.gap

    def _is_led(self) -> np.ndarray:
        """bool, (N,); True where a drawn action replaces the next one."""
        waits = self.task.waits()
        return np.zeros(self.num_envs, bool) if waits is None else waits & ~self._in_gap()

    def _led_actions(self, actions: np.ndarray, active: np.ndarray) -> np.ndarray:
        """The actions, with drawn ones where the agent is led.

        One generator for each episode draws them, and nothing else: so they do not depend on the other environments,
        and an episode is otherwise the same as without `led`.
        """
        led = actions.copy()
        for i in np.flatnonzero(active & self._is_led()).tolist():
            led[i] = draw_actions(self.task.action_space, 1, self._motion_rngs[i])[0]
        return led

    def _observe(self, env_mask: np.ndarray) -> Observation:
        out = self._buffers[self._buffer_index]
        self._buffer_index = (self._buffer_index + 1) % len(self._buffers)
        self._write_observations(out, env_mask)
        return {key: value.copy() for key, value in out.items()} if self.copy else out

    def _write_observations(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write the observations of the task, or blank ones in the gap, and the phase."""
        in_gap = self._in_gap()
        self.task.observe(out, env_mask & ~in_gap)
        if self.gap:
            for key, value in self._blank.items():
                out[key][env_mask & in_gap] = value
        if self._writes_phase:
            ignores = in_gap | self._is_led() if self.led else in_gap
            out[PHASE][env_mask] = ~ignores[env_mask]
        if self.leg_flag:
            begins = self._begins_leg[self._trials.episode] & (self._trials.episode_steps == 0)
            out[LEG_START][env_mask] = np.where(begins, 1 + self._letters[self._trials.episode], 0)[env_mask]

    def _final_observations(self, done: np.ndarray) -> np.ndarray:
        """Object array, (N,); the last observation of every episode that ended, None elsewhere."""
        out = self._buffers[self._buffer_index]  # the next `_observe` writes this buffer anyway
        self._write_observations(out, done)
        final = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(done):
            final[i] = {key: copy_of(value[i]) for key, value in out.items()}
        return final

    def _info(self, env_mask: np.ndarray | None = None) -> dict[str, Any]:
        """Info of all environments, with the masks `env_mask`, bool (N,); None for all True."""
        task_info = self.task.info()
        values = {**self._trials.info(), **task_info}
        if "success" in task_info:
            values["is_success"] = task_info["success"]  # the key of Stable-Baselines3
        if self.itinerary is not None:
            values["leg"] = self._begins_leg.cumsum()[self._trials.episode] - 1
            values["letter"] = np.array([*self.itinerary], object)[self._trials.episode]
        info: dict[str, Any] = {}
        for key, value in values.items():
            info[key] = value.copy()
            # Gymnasium's mask of environments that have the key
            info["_" + key] = self._all_envs if env_mask is None else env_mask
        return info

    def _check_step(self, actions: np.ndarray) -> np.ndarray:
        if self.closed:
            raise RuntimeError("step was called after close")
        if not self._is_reset:
            raise RuntimeError("step was called before reset")
        if self.autoreset_mode is AutoresetMode.DISABLED and self._needs_reset.any():
            raise RuntimeError(
                "step was called after the end of the episode of environment "
                f"{np.flatnonzero(self._needs_reset).tolist()}; reset first"
            )
        return check_actions(self.task.action_space, actions, self.num_envs)


class TrialEnv(gym.Env):
    """One environment of a task.

    It is a `TrialVectorEnv` with N = 1, without the batch axis and without autoreset.

    Args:
        task: Task class, or "module:Class".
        **kwargs: As `TrialVectorEnv`, except `num_envs`, `autoreset_mode` and `copy`.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  (as in Gymnasium)

    def __init__(self, task: str | type[BatchTask], **kwargs: Any) -> None:
        limit = _limit_of_make(sys._getframe(1))
        if limit is not None:
            kwargs["max_episode_steps"] = limit
        self._batch = TrialVectorEnv(task, 1, autoreset_mode=AutoresetMode.DISABLED, **kwargs)
        self.observation_space = self._batch.single_observation_space
        self.action_space = self._batch.single_action_space
        self.render_mode = self._batch.render_mode
        # Its own copy: Gymnasium 1.1's SyncVectorEnv writes the autoreset mode into the dict of its first environment.
        self.metadata = dict(type(self).metadata)

    @property
    def batch(self) -> TrialVectorEnv:
        """The batch-native form with N = 1 that it is made of."""
        return self._batch

    @property
    def task(self) -> BatchTask:
        """The task: its rules, and its state as arrays with N = 1."""
        return self._batch.task

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of its id; see `TrialVectorEnv.certificate`."""
        return _certificate_of(self._batch, self.spec)

    @property
    def num_places(self) -> int | None:
        """Number of places: `info["place"]` is below it; None if the task has no places."""
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
    def max_episode_steps(self) -> int:
        """Steps after which an episode is truncated."""
        return self._batch.max_episode_steps

    @property
    def trial_over(self) -> bool:
        """True if the next reset starts a new trial."""
        return bool(self._batch.trial_over[0])

    def reset(self, *, seed: int | None = None, options: Options | None = None) -> tuple[Observation, dict[str, Any]]:
        """Start the next episode of the trial, or a new trial if it is over.

        Args and errors are those of `TrialVectorEnv.reset`.
        """
        own_seed = split_seed(seed, 1)[0]
        super().reset(seed=own_seed)
        observation, info = self._batch.reset(seed=own_seed, options=options)
        return {key: value[0] for key, value in observation.items()}, self._first(info)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take one step.

        Args:
            action: An integer, or for a `Box` numbers, (A,).

        Raises:
            RuntimeError: Before `reset`, after the end of the episode, or after `close`.
            TypeError: The action is not an integer, or for a `Box` no numbers.
            ValueError: The action has another shape or is out of range.
        """
        action = np.asarray(action)
        if action.shape != self.action_space.shape:
            form = f"have the shape {self.action_space.shape}" if self.action_space.shape else "be one number"
            raise ValueError(f"action must {form}, got an array of shape {action.shape}")
        observation, reward, terminated, truncated, info = self._batch.step(action[None])
        first = {key: value[0] for key, value in observation.items()}
        return first, float(reward[0]), bool(terminated[0]), bool(truncated[0]), self._first(info)

    def render(self) -> np.ndarray | None:
        """Render an image for people, uint8 (H, W, 3), or None if `render_mode` is None."""
        images = self._batch.render()
        return None if images is None else images[0]

    def close(self) -> None:
        """Free the resources of the task; may be called twice."""
        self._batch.close()

    @property
    def at_trial_start(self) -> bool:
        """True from a reset that began a trial until the step after it."""
        return bool(self._batch.at_trial_start[0])

    def observe(self) -> Observation:
        """Return the present observation once more, as a batch of one: key -> array, (1, ...)."""
        return self._batch.observe()

    def new_trial(self) -> None:
        """Make the next reset start a new trial."""
        self._batch.new_trial()

    def action_masks(self) -> np.ndarray:
        """Return which `Discrete` actions are possible, bool, (A,), as sb3-contrib needs."""
        return self._batch.action_masks()[0]

    def get_keys_to_action(self) -> dict[str, int]:
        """Keys of the first ten `Discrete` actions, their digits, for `gymnasium.utils.play`."""
        if not isinstance(self.task.action_space, gym.spaces.Discrete):
            return {}
        return {str(action): action for action in range(min(10, int(self.task.action_space.n)))}

    def oracle_action(self) -> Any:
        """Return the action of the oracle, which knows the truth: an integer, or for a `Box` (A,)."""
        action = self._batch.oracle_actions()[0]
        return int(action) if action.ndim == 0 else action

    @staticmethod
    def _first(info: dict[str, Any]) -> dict[str, Any]:
        """Select the info of the single environment: Python scalars and texts, arrays for vectors."""
        return {
            key: value[0].item() if value.ndim == 1 and value.dtype != object else value[0]
            for key, value in info.items()
            if not key.startswith("_")
        }


def _certificate_of(env: TrialVectorEnv, spec: EnvSpec | None) -> Certificate | None:
    """The certificate of an environment that Gymnasium has made by `spec`; None where it was made without an id."""
    from memenvs.identity import row_of  # here, since the registry is not needed to play

    row = row_of(env, None if spec is None else spec.id)
    return None if row is None else row.load_certificate()


def _limit_of_make(caller: FrameType) -> int | None:
    """The steps of an episode that `gym.make` was called with, where it is the caller; None for none.

    It keeps `max_episode_steps` for its wrapper `TimeLimit`, which can make episodes shorter but not longer, and passes
    nothing on to the environment.
    """
    if caller.f_code is not gym.make.__code__:
        return None
    limit = caller.f_locals["max_episode_steps"]
    if limit is None:
        limit = caller.f_locals["env_spec"].max_episode_steps
    return None if limit == -1 else limit  # -1: no wrapper
