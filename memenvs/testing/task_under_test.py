"""The environments that are checked, and rollouts of them with fixed draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.actions import ActionSpace, draw_actions
from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.registry import find_environment
from memenvs.task import BatchTask, load_task

#: Limits so short that a few steps cross the ends of episodes and trials, and a gap that is shorter.
SHORT = {"max_episode_steps": 7, "trial_episodes": 3}
SHORT_GAP = 2
PARTS = ("observation", "reward", "terminated", "truncated", "info")

#: (observation, reward, terminated, truncated, info) of a step or a reset.
Row = tuple[Any, Any, Any, Any, dict[str, Any]]


@dataclass(frozen=True)
class TaskUnderTest:
    """A task and the settings in which it is checked.

    Attributes:
        task: The task.
        settings: Settings of the task and of `TrialEnv`.
    """

    task: type[BatchTask]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, env: str | gym.Env | type[BatchTask], **settings: Any) -> TaskUnderTest:
        """Find the task of an id, of an environment of `gym.make` or of a class.

        Raises:
            TypeError: It has no `BatchTask`.
            ValueError: There is no such id.
        """
        if isinstance(env, gym.Env):
            if env.spec is None or not isinstance(env.unwrapped, TrialEnv):
                raise TypeError(
                    f"env must be an id, a BatchTask or an environment of gym.make with one, got {env}; other "
                    "environments are checked by gymnasium.utils.env_checker.check_env"
                )
            kwargs = dict(env.spec.kwargs)
            kwargs.pop("render_mode", None)
            return cls(type(env.unwrapped.task), {**{k: v for k, v in kwargs.items() if k != "task"}, **settings})
        if isinstance(env, type):
            return cls(load_task(env), settings)
        if not isinstance(env, str):
            raise TypeError(f"env must be an id, a BatchTask class or an environment of gym.make, got {env!r}")
        row = find_environment(env)
        if row.task is None:
            raise TypeError(f"env must have a BatchTask, {env!r} has none; see gymnasium.utils.env_checker.check_env")
        return cls(load_task(row.task), {**row.defaults, **settings})

    @property
    def name(self) -> str:
        """Name of the task's class."""
        return self.task.__name__

    @property
    def short(self) -> dict[str, int]:
        """Settings of short episodes and trials."""
        return {**SHORT, "gap": SHORT_GAP} if self.settings.get("gap") else dict(SHORT)

    def single(self, **more: Any) -> TrialEnv:
        """Make one environment."""
        return TrialEnv(self.task, **self._with(more))

    def vector(self, num_envs: int, **more: Any) -> TrialVectorEnv:
        """Make N environments that are stepped together."""
        return TrialVectorEnv(self.task, num_envs, **self._with(more))

    def _with(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """The settings with more of them; trials that are made shorter still lead to a second home."""
        settings = {**self.settings, **more}
        if "trial_episodes" in more and settings.get("itinerary") is not None:
            settings["itinerary"] = "A" * (more["trial_episodes"] - 1) + "B"
        return settings


def draws(steps: int, num_envs: int, seed: int = 0) -> np.ndarray:
    """Numbers from 0 to 1 that decide the actions of a rollout, float (steps, num_envs)."""
    return np.random.default_rng(seed).random((steps, num_envs))


def possible_actions(masks: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Turn drawn numbers into actions that are possible now.

    Args:
        masks: bool, (N, A); where none is possible, the episode is over and action 0 is taken.
        numbers: float, (N,); from 0 to 1.

    Returns:
        int64, (N,).
    """
    first = np.argsort(~masks, axis=1, kind="stable")  # the possible ones come first
    count = np.maximum(masks.sum(1), 1)
    return first[np.arange(len(masks)), (numbers * count).astype(int)].astype(np.int64)


def vector_actions(env: TrialVectorEnv, numbers: np.ndarray) -> np.ndarray:
    """Actions of N environments for drawn numbers, int64 (N,) or float32 (N, A)."""
    if not isinstance(env.single_action_space, gym.spaces.Discrete):
        return np.stack([_action_of(env.task.action_space, number) for number in numbers])
    return possible_actions(env.action_masks(), numbers)


def single_action(env: TrialEnv, number: float) -> Any:
    """Action of one environment for a drawn number."""
    if not isinstance(env.action_space, gym.spaces.Discrete):
        return _action_of(env.task.action_space, number)
    return int(possible_actions(env.action_masks()[None], np.array([number]))[0])


def _action_of(space: ActionSpace, number: float) -> np.ndarray:
    """A vector for a drawn number; other numbers give other vectors."""
    return draw_actions(space, 1, np.random.default_rng(int(number * 2**53)))[0]


def play_single(env: TrialEnv, start: tuple[Any, dict[str, Any]], numbers: np.ndarray) -> list[Row]:
    """Play one environment from its reset on; a reset takes a number too.

    Args:
        env: The environment.
        start: What its reset returned.
        numbers: float, (T,).

    Returns:
        T + 1 rows.
    """
    rows: list[Row] = [(start[0], 0.0, False, False, start[1])]
    for number in numbers:
        if rows[-1][2] or rows[-1][3]:
            observation, info = env.reset()
            rows.append((observation, 0.0, False, False, info))
        else:
            rows.append(env.step(single_action(env, number)))
    return rows


def play_vector(env: TrialVectorEnv, start: tuple[Any, dict[str, Any]], numbers: np.ndarray) -> Iterator[Row]:
    """Yield the start and each step of N environments; `numbers` is float, (T, N)."""
    nothing = np.zeros(env.num_envs, bool)
    yield start[0], np.zeros(env.num_envs), nothing, nothing, start[1]
    for drawn in numbers:
        yield env.step(vector_actions(env, drawn))


def row_of(row: Row, i: int) -> Row:
    """Row of environment `i` of a batch, in the form of a single environment."""
    observation, rewards, terminated, truncated, info = row
    single = {key: value[i] for key, value in observation.items()}
    return single, float(rewards[i]), bool(terminated[i]), bool(truncated[i]), info_of(info, i)


def info_of(batch: Mapping[str, Any], i: int) -> dict[str, Any]:
    """Info of one environment of a batch, in the form of a single environment."""
    return {
        key: value[i].item() if value.ndim == 1 and value.dtype != object else value[i]
        for key, value in batch.items()
        if not key.startswith(("_", "final_"))
    }
