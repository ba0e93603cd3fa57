"""`TrialWrapper`: a whole trial as one episode."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from memenvs.checks import check_int
from memenvs.task import ONE_RESET_OPTIONS
from memenvs.wrappers.key import KeyWrapper

EPISODE_START_KEY = "episode_start"
"""Observation key that `TrialWrapper` adds."""


class TrialWrapper(KeyWrapper, RecordConstructorArgs):
    """Fuse the episodes of a trial into one Gymnasium episode, as in RL^2.

    For algorithms that know only episodes.

    The end of an inner episode is an ordinary step: it returns the reward of that step together with the first
    observation of the next inner episode. `terminated` and `truncated` are False.

    The step that ends the trial returns the last observation of the last inner episode. `terminated` is True if the
    task ended that episode. `truncated` is True if a time limit did, that of the episode or `trial_steps`.

    Adds the observation `episode_start`, int64 (), `Discrete(2)`: 1 in the first observation of each inner episode.
    `info` always has `episode_start` (bool), `trial_start` (bool), `trial_id` and `episode_index`. It also has
    `last_obs` and `last_info`: what the environment returned before the next inner episode began. They are the end of
    an episode where `episode_start` is True, and otherwise equal the observation and the info of the step. With
    `same_seed`, and always for an environment of `memenvs`, `info` also has `seed`: `seed` and `trial_id` together name
    the trial. Otherwise it has no `seed`.

    Environments of `memenvs` have trials of their own, and their limits hold beside those given here. Any other
    environment needs one of the limits here. By default it keeps its layout over the trial, because each inner episode
    is reset with the trial's seed.

    Args:
        env: Any Gymnasium environment.
        trial_episodes: Inner episodes in a trial; >= 1; None for no limit.
        trial_steps: Steps in a trial; >= 1; None for no limit.
        same_seed: For an environment without trials of its own: True resets each inner episode with the seed of the
            trial. The seed of trial 0 is the one given to `reset`, that of trial t a function of it and t. False gives
            the environment a seed only after `reset(seed=...)` or with the option "trial", so that inner episodes
            differ.

    Raises:
        ValueError: A limit is no integer or below 1, or neither this wrapper nor the environment has a limit.
    """

    def __init__(
        self,
        env: gym.Env,
        *,
        trial_episodes: int | None = None,
        trial_steps: int | None = None,
        same_seed: bool = True,
    ) -> None:
        for name, value in (("trial_episodes", trial_episodes), ("trial_steps", trial_steps)):
            check_int(name, value, or_none=True)
        RecordConstructorArgs.__init__(
            self, trial_episodes=trial_episodes, trial_steps=trial_steps, same_seed=same_seed
        )
        self._has_trials = hasattr(env.unwrapped, "trial_over")
        limits = [trial_episodes, trial_steps]
        if self._has_trials:
            limits += [env.get_wrapper_attr("trial_episodes"), env.get_wrapper_attr("trial_steps")]
        if all(limit is None for limit in limits):
            raise ValueError(f"trials of {env} would never end; pass trial_episodes or trial_steps")
        super().__init__(env, EPISODE_START_KEY, gym.spaces.Discrete(2))
        self._trial_episodes = trial_episodes
        self._trial_steps = trial_steps
        self._same_seed = same_seed
        self._lasting_options: dict[str, Any] = {}
        self._seed: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start a trial.

        Args:
            seed: As for the environment inside.
            options: Those of the environment inside. They hold for every inner episode of the trial, except for
                `memenvs.task.ONE_RESET_OPTIONS`, which hold for the first one. "trial", an integer >= 0, is the number
                of the trial to start. An environment without trials of its own does not receive it, but is reset with
                the seed of that trial. With `same_seed=False` that is not the trial to which counting on would lead.

        Raises:
            ValueError: The number of the trial is no integer, or out of range.
        """
        options = dict(options or {})
        number = None if self._has_trials else options.pop("trial", None)
        check_int("option 'trial'", number, 0, or_none=True)
        if seed is not None or self._seed is None:
            self._seed = int(np.random.default_rng().integers(2**31)) if seed is None else seed
            self._trial = 0
        else:
            self._trial += 1
        if number is not None:
            self._trial = int(number)
        self._episode = self._num_steps = 0
        self._lasting_options = {key: value for key, value in options.items() if key not in ONE_RESET_OPTIONS}
        if self._has_trials:
            observation, info = self.env.reset(seed=seed, options={"new_trial": True, **options})
        else:
            inner_seed = self._trial_seed() if self._same_seed or number is not None else seed
            observation, info = self.env.reset(seed=inner_seed, options=options or None)
        observation = self._with_key(observation, np.int64(1))
        info = self._info(info, episode_start=True, trial_start=True)
        return observation, {**info, "last_obs": observation, "last_info": info}

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Step the environment; see the class."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._num_steps += 1
        ended = bool(terminated or truncated)
        used_up = self._trial_steps is not None and self._num_steps >= self._trial_steps
        all_played = ended and self._trial_episodes is not None and self._episode + 1 >= self._trial_episodes
        is_over = (
            used_up or all_played or (ended and self._has_trials and bool(self.env.get_wrapper_attr("trial_over")))
        )
        observation = self._with_key(observation, np.int64(0))
        info = self._info(info, episode_start=False, trial_start=False)
        last = {"last_obs": observation, "last_info": info}
        if not ended or is_over:
            return observation, reward, terminated, bool(truncated or used_up), {**info, **last}
        self._episode += 1
        inner_seed = self._trial_seed() if self._same_seed and not self._has_trials else None
        observation, info = self.env.reset(seed=inner_seed, options=self._lasting_options or None)
        info = self._info(info, episode_start=True, trial_start=False)
        return self._with_key(observation, np.int64(1)), reward, False, False, {**info, **last}

    def _info(self, info: dict[str, Any], *, episode_start: bool, trial_start: bool) -> dict[str, Any]:
        """`info` with the keys that every trial has; those of an environment with trials of its own take precedence."""
        own: dict[str, Any] = {"trial_id": self._trial, "episode_index": self._episode}
        if self._has_trials:
            both = {**own, **info}
        else:
            both = {**info, **own}
            both.pop("seed", None)  # it would not belong to the number of the trial
            if self._same_seed:  # else a trial that is chosen by its number is not the one that was played
                both["seed"] = self._seed
        return {**both, "episode_start": episode_start, "trial_start": trial_start}

    def _trial_seed(self) -> int | None:
        """Seed of the current trial of an environment without trials of its own."""
        if self._seed is None or self._trial == 0:
            return self._seed
        return int(np.random.default_rng([self._seed, self._trial]).integers(2**31))
