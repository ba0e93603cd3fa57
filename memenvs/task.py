"""What a task is: rules, written once for N environments, that know nothing of seeds, clocks, autoreset or Gymnasium's interfaces."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from memenvs.checks import choices_for

Observation = dict[str, np.ndarray]
Options = Mapping[str, Any]

#: Reset options of every id; a task may add more (`BatchTask.option_names`).
TRIAL_OPTIONS = ("new_trial", "trial", "episode_index", "layout")

#: Keys of `info` that describe an episode and do not measure it, beside those that end in "_id" and those of reset options.
NON_METRIC_KEYS = frozenset(
    {
        "seed", "trial_start", "episode_index", "place", "collision", "is_success", "label", "query_place", "query_visit",
        "heading", "elevation", "teacher_action", "TimeLimit.truncated",
    }
)  # fmt: skip


class BatchTask(ABC):
    """The rules of a task, for N environments at once.

    A task knows nothing of seeds, clocks, autoreset or Gymnasium's two interfaces. Its state is arrays over N. It must not draw random
    numbers except from the generators it is handed.

    Attributes:
        num_envs: N.
        observation_space: Space of one environment's observation; always a `Dict`.
        action_space: Space of one environment's action.
        max_episode_steps: Length of an episode after which the clock truncates it, in steps.
        num_layouts: Layouts are numbered 0 ... num_layouts - 1; a trial happens in one of them.
        option_names: Reset options that the task understands beside `TRIAL_OPTIONS`; `info` has each under the same name, as given or as drawn,
            in a form that `reset` takes back.
        action_names: What each action is called, in order; the keyboard of `play` follows from them.
        goal_names: Number -> name of what an episode may ask for, where observations show it as a one-hot `goal`; empty otherwise.
        config_type: Frozen dataclass of the task's settings; None if it has none.
    """

    num_envs: int
    observation_space: gym.spaces.Dict
    action_space: gym.spaces.Discrete
    max_episode_steps: int
    num_layouts: int
    goal_names: Mapping[int, str] = MappingProxyType({})
    option_names: ClassVar[tuple[str, ...]] = ()
    action_names: tuple[str, ...] = ()
    config_type: ClassVar[type | None] = None

    @abstractmethod
    def __init__(self, num_envs: int, **kwargs: Any) -> None:
        """Makes the task for `num_envs` environments; `kwargs` are the fields of its config."""

    @abstractmethod
    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Puts environment `i` into a layout.

        Args:
            i: Which environment.
            layout: Number of the layout; decides everything that stays the same over the trial and may be recalled by number.
            rng: For what differs between two trials in the same layout (a goal fixed for the trial, say).
        """

    @abstractmethod
    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Starts an episode of environment `i` in its current layout.

        Args:
            i: Which environment.
            rng: For everything drawn for this episode.
            options: `layout` and those of `option_names`, where they were given to `reset`.

        Raises:
            ValueError: An option's value is not allowed.
        """

    @abstractmethod
    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Moves the active environments on by one step.

        Args:
            actions: int64, (N,); valid where `active`.
            active: bool, (N,); the others must not change.

        Returns:
            Rewards, float64, (N,), and terminated, bool, (N,); 0 and False where not active.
        """

    @abstractmethod
    def observe(self, out: Observation, which: np.ndarray) -> None:
        """Writes the observations of the environments in `which` (bool, (N,)) into the batch arrays of `out`."""

    @abstractmethod
    def info(self) -> dict[str, np.ndarray]:
        """The truth about every environment: arrays of N rows, always the same keys, with `success` (bool) among them if episodes succeed or fail.

        The arrays are copied by the caller: a task may hand out its own state.
        """

    @abstractmethod
    def oracle_actions(self) -> np.ndarray:
        """int64, (N,); the action of a policy that knows the truth."""

    @abstractmethod
    def render(self, i: int) -> np.ndarray:
        """A picture of environment `i` for people, uint8, (H, W, 3)."""

    @abstractmethod
    def draw_map(self, i: int, way: np.ndarray) -> np.ndarray:
        """Environment `i` from above, with a way through it.

        Args:
            i: Which environment.
            way: float, (T, 3); `info["pose"]` step by step, at least one.

        Returns:
            uint8, (H, W, 3).
        """

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """Where poses lie on the picture that `draw_map` gives.

        Args:
            i: Which environment.
            poses: float, (T, 3); as in `info["pose"]`.

        Returns:
            float, (T, 2); column and row, pixels.

        Raises:
            NotImplementedError: The task does not say.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no map_pixels: it does not say where a pose lies on its map"
        )

    def possible_actions(self) -> np.ndarray | None:
        """Which actions are possible now, bool or int8, (N, actions); None for a task where all are at all times."""
        return None

    @property
    def num_places(self) -> int | None:
        """`info["place"]` is in 0 ... num_places - 1; None for a task without places, or if their number is unknown."""
        return None

    def close(self) -> None:  # noqa: B027  (most tasks hold nothing open)
        """Frees what the task holds open; may be called twice."""


def metric_values(info: Mapping[str, Any], option_names: Iterable[str] = ()) -> dict[str, float]:
    """Select the numbers of a final info that measure the episode.

    Args:
        info: Info of one environment at the end of an episode.
        option_names: Reset options of the task, which are no metrics.
    """
    excluded = NON_METRIC_KEYS.union(option_names)
    return {
        key: float(value)
        for key, value in info.items()
        if key not in excluded
        and not key.endswith("_id")
        and isinstance(value, (bool, int, float, np.number, np.bool_))
    }


def load_task(task: str | type[BatchTask]) -> type[BatchTask]:
    """The task class of a "module:Class" string; a class is returned as it is."""
    if not isinstance(task, str):
        return task
    module, _, name = task.partition(":")
    return getattr(importlib.import_module(module), name)


def setting_names(task: str | type[BatchTask]) -> list[str]:
    """Names of the fields of a task's config; none if it has no config."""
    config = load_task(task).config_type
    return [] if config is None else [each.name for each in fields(config)]


def make_task(
    task: str | type[BatchTask], num_envs: int, settings: Mapping[str, Any], known: tuple[str, ...] = ()
) -> BatchTask:
    """A task with these settings.

    Args:
        task: Task class, or "module:Class".
        num_envs: N.
        settings: Fields of its config.
        known: Names that the caller would have understood; for the message.

    Raises:
        TypeError: A setting is unknown; the message lists all.
        ValueError: A setting is out of range.
    """
    found = load_task(task)
    if found.config_type is not None:
        names = setting_names(found)
        for name in settings:
            if name not in names:
                raise TypeError(
                    f"unknown setting {name!r} of {found.__name__}; {choices_for(name, sorted({*names, *known}))}"
                )
    return found(num_envs, **settings)
