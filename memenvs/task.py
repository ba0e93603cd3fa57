"""The contract of a task: its rules, written once for N environments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import fields
from inspect import isfunction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym
import numpy as np

from memenvs.actions import ActionSpace, check_action_space
from memenvs.checks import check_int, choices_for
from memenvs.compilation import COMPILATION
from memenvs.plugins import load_class

if TYPE_CHECKING:
    from memenvs.query_task import QueryTask

Observation = dict[str, np.ndarray]
Options = Mapping[str, Any]

#: Reset options that apply to one reset; the others apply to the autoresets after it too.
ONE_RESET_OPTIONS = ("new_trial", "trial", "episode_index")
#: Reset options of every id; a task may add more (`BatchTask.option_names`).
TRIAL_OPTIONS = (*ONE_RESET_OPTIONS, "layout")
#: Observation that is 0 where the next action is ignored: while the agent watches, in a gap, or where it is led.
PHASE = "phase"
#: Observation that names the layout where a visit of an itinerary begins: 1 for A, 2 for B and so on; else 0.
LEG_START = "leg_start"
#: Arguments of `TrialEnv` and `TrialVectorEnv` that never reach a task.
ENVIRONMENT_ARGUMENTS = (
    "task",
    "num_envs",
    "trial_episodes",
    "trial_steps",
    "gap",
    "led",
    "itinerary",
    "leg_flag",
    "autoreset_mode",
    "copy",
    "render_mode",
)

#: Keys of `info` that are numbers but no metrics. `metric_values` also leaves out reset options and keys that end in
#: "_id".
NON_METRIC_KEYS = frozenset(
    {
        "seed",
        "trial_start",
        "episode_index",
        "leg",
        "moved",
        "place",
        "collision",
        "is_success",
        "label",
        "query_place",
        "query_visit",
        "heading",
        "elevation",
        "teacher_action",
        "TimeLimit.truncated",
    }
)


class BatchTask(ABC):
    """The rules of a task, for N environments at once.

    A task has no seeds, step limit, autoreset or Gymnasium interface (`Env` and `VectorEnv`); `memenvs.core` adds them.
    Its state is arrays over N. It draws random numbers only from the generators that it is given. `oracle_actions`,
    `render` and `draw_map` are optional. `memenvs.testing.check_env` tests all of this.

    Attributes:
        num_envs: N.
        observation_space: Space of one environment's observation; always a `Dict`.
        action_space: Space of one environment's action: `Discrete` from 0, or a bounded float32 `Box` with one axis.
        max_episode_steps: Steps after which `memenvs.core` truncates an episode.
        num_layouts: Number of layouts; a trial has one of the layouts 0 ... num_layouts - 1.
        option_names: Reset options beside `TRIAL_OPTIONS`. `info` has each under the same name, as given or as drawn,
            in a form that `reset` accepts.
        action_names: Name of each `Discrete` action, in order; they decide the keys of `memenvs play`.
        goal_names: Name of each possible goal, by its index in the one-hot observation `goal`. Empty without this
            observation.
        config_type: Frozen dataclass of the task's settings; None if it has none.
        observation_settings: Names of settings that only change what is observed: episodes, rewards and ends stay the
            same, so they are free in a test set.
        query_task: `QueryTask` that makes the same episodes in batches, or "module:Class"; None for a task that is
            not of this kind.
    """

    num_envs: int
    observation_space: gym.spaces.Dict
    action_space: ActionSpace
    max_episode_steps: int
    num_layouts: int
    goal_names: Mapping[int, str] = MappingProxyType({})
    option_names: ClassVar[tuple[str, ...]] = ()
    action_names: tuple[str, ...] = ()
    config_type: ClassVar[type | None] = None
    observation_settings: ClassVar[tuple[str, ...]] = ()
    query_task: ClassVar[str | type[QueryTask] | None] = None

    @abstractmethod
    def __init__(self, num_envs: int, **kwargs: Any) -> None:
        """Make the task for `num_envs` environments; `kwargs` are the fields of its config."""

    @abstractmethod
    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Put environment `i` into a layout.

        Args:
            i: Index of the environment.
            layout: Number of the layout. It alone fixes what all trials in this layout share.
            rng: Source of what differs between two trials in the same layout, such as a goal fixed for the trial.
        """

    @abstractmethod
    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Start an episode of environment `i` in its current layout.

        Args:
            i: Index of the environment.
            rng: Source of everything that is drawn for this episode.
            options: `episode_index`, the index of the episode in its trial; and `layout` and those of `option_names`
                that were given to `reset`.

        Raises:
            ValueError: An option's value is not allowed.
        """

    @abstractmethod
    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Advance the active environments by one step.

        Args:
            actions: int64, (N,), or for a `Box` float32, (N, A); valid where `active`.
            active: bool, (N,); the state of the others must not change.

        Returns:
            Rewards, float64, (N,), and terminated, bool, (N,); 0 and False where not active.
        """

    @abstractmethod
    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write observations into the batch arrays of `out`.

        Args:
            out: Key -> array, (N, ...).
            env_mask: bool, (N,); environments whose rows are written.
        """

    @abstractmethod
    def info(self) -> dict[str, np.ndarray]:
        """Return the ground truth (privileged information) about every environment.

        Returns:
            Key -> array, (N, ...); always the same keys, with `success` (bool) among them if episodes can succeed or
            fail. The caller copies the arrays, so a task may return its own state.
        """

    def oracle_actions(self) -> np.ndarray:
        """Return the actions of a policy that knows the ground truth.

        Returns:
            int64, (N,), or for a `Box` float32, (N, A).

        Raises:
            NotImplementedError: The task has no oracle.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define oracle_actions, the policy 'oracle'")

    def render(self, i: int) -> np.ndarray:
        """Render an image of environment `i` for people; uint8, (H, W, 3).

        Raises:
            NotImplementedError: The task draws no pictures.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define render, its picture")

    def draw_map(self, i: int, path: np.ndarray) -> np.ndarray:
        """Draw environment `i` from above, with a path through it.

        Args:
            i: Index of the environment.
            path: float, (T, 3); `info["pose"]` step by step, T >= 1.

        Returns:
            uint8, (H, W, 3).

        Raises:
            NotImplementedError: The task has no map.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define draw_map, its picture from above")

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """Convert poses to pixels of the image of `draw_map`.

        Args:
            i: Index of the environment.
            poses: float, (T, 3); as in `info["pose"]`.

        Returns:
            float, (T, 2); column and row, pixels.

        Raises:
            NotImplementedError: The task does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define map_pixels, the position of poses on its map")

    def action_masks(self) -> np.ndarray | None:
        """Return which actions are possible, bool or int8, (N, A); None if all are, as in a `Box`."""
        return None

    def ends_trial(self, i: int) -> bool:
        """Return True if the present episode of environment `i` is the last one of its trial.

        The settings `trial_episodes` and `trial_steps` may end the trial earlier.
        """
        return False

    def waits(self) -> np.ndarray | None:
        """Mark where the agent waits, and could be led without a loss, bool, (N,).

        None if nowhere. A task defines this if it has a stay during which the agent has nothing to do but to remember.
        Then the setting `led` moves the agent there (`TrialVectorEnv`).
        """
        return None

    def home_of(self, layout: int) -> int:
        """Return the number of the home that a layout is in, which other layouts may share.

        The letters of an itinerary stand for layouts in different homes. By default each layout is a home of its own.
        """
        return layout

    @property
    def num_homes(self) -> int:
        """Number of different homes of the layouts; see `home_of`."""
        return self.num_layouts

    @property
    def num_places(self) -> int | None:
        """Number of values of `info["place"]`; None without places or if the number is unknown."""
        return None

    def close(self) -> None:  # noqa: B027  (most tasks have nothing to free)
        """Free threads, windows and files; may be called twice."""


def defines(task: type[BatchTask], method: str) -> bool:
    """Return True if a task defines an optional method.

    Args:
        task: Its class.
        method: "oracle_actions", "render", "draw_map", "map_pixels" or "waits".
    """
    return getattr(task, method) is not getattr(BatchTask, method)


def empty_observation(space: gym.spaces.Dict, num_envs: int) -> Observation:
    """Allocate the arrays that `BatchTask.observe` writes, (N, ...) for each key.

    Args:
        space: Space of one environment's observation.
        num_envs: N.
    """
    return {
        key: np.full(num_envs, "", object)  # texts are Python objects
        if isinstance(inner, gym.spaces.Text)
        else np.zeros((num_envs, *(inner.shape or ())), inner.dtype)
        for key, inner in space.spaces.items()
    }


def blank_value(space: gym.spaces.Space) -> Any:
    """Return the observation of a space that shows nothing.

    It is 0, or what is nearest to it; "" for a text.
    """
    if isinstance(space, gym.spaces.Text):
        return ""
    if isinstance(space, gym.spaces.Box):
        return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
    return np.zeros(space.shape or (), space.dtype)


def metric_values(info: Mapping[str, Any], option_names: Iterable[str] = ()) -> dict[str, float]:
    """Select the metrics of an episode from its final info.

    Args:
        info: Info of one environment at the end of an episode.
        option_names: Reset options of the task, which are no metrics.

    Returns:
        Name -> value of every number in `info`, except those described at `NON_METRIC_KEYS`.
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
    """Import the task class of a "module:Class" string; return a class as it is.

    Raises:
        ImportError: There is no such module or class.
        TypeError: It is no subclass of `BatchTask`.
    """
    loaded = load_class(task)
    if not (isinstance(loaded, type) and issubclass(loaded, BatchTask)):
        raise TypeError(f"task must be a subclass of BatchTask, or 'module:Class' of one, got {task!r}")
    return loaded


def setting_names(task: str | type[BatchTask]) -> list[str]:
    """List the names of a task's settings; none if it has no config."""
    config = load_task(task).config_type
    return [] if config is None else [field.name for field in fields(config)]


def make_task(
    task: str | type[BatchTask], num_envs: int, settings: Mapping[str, Any], more_names: tuple[str, ...] = ()
) -> BatchTask:
    """Make a task with these settings.

    Args:
        task: Task class, or "module:Class".
        num_envs: N.
        settings: Fields of its config.
        more_names: Further names that the error message lists: settings that the caller handles itself.

    Raises:
        TypeError: A setting is unknown; the message lists all.
        ValueError: A setting is out of range.
    """
    task_class = load_task(task)
    if task_class.config_type is not None:
        names = setting_names(task_class)
        for name in settings:
            if name not in names:
                raise TypeError(  # in Python's own words, by which other libraries recognise it
                    f"{task_class.__name__} got an unexpected keyword argument {name!r}; "
                    f"{choices_for(name, sorted({*names, *more_names}))}"
                )
    COMPILATION.register()  # now that the task's module is imported, and before anything of it is compiled
    made = task_class(num_envs, **settings)
    check_task(made, num_envs)
    return made


def check_task(task: BatchTask, num_envs: int) -> None:
    """Check what a task declares of itself.

    Args:
        task: The task.
        num_envs: N that it was made for.

    Raises:
        TypeError: An attribute or a method is missing or of another type.
        ValueError: An attribute has a value that is not allowed.
    """
    name = type(task).__name__
    types = {"observation_space": gym.spaces.Dict, "option_names": tuple, "observation_settings": tuple}
    for attribute, kind in types.items():
        if not isinstance(getattr(task, attribute, None), kind):
            raise TypeError(f"{name}.{attribute} must be a {kind.__name__}, got {getattr(task, attribute, 'none')!r}")
    check_action_space(f"{name}.action_space", getattr(task, "action_space", "none"))
    for method in (key for key, value in vars(BatchTask).items() if isfunction(value)):
        if not callable(getattr(task, method)):
            raise TypeError(f"{name}.{method} must be a method, got {getattr(task, method)!r}")
    for attribute in ("num_envs", "max_episode_steps", "num_layouts"):
        check_int(f"{name}.{attribute}", getattr(task, attribute, "none"))
    if task.num_envs != num_envs:
        raise ValueError(f"{name}.num_envs must be the {num_envs} that it was made for, got {task.num_envs}")
    for key, space in task.observation_space.spaces.items():
        if isinstance(space, (gym.spaces.Dict, gym.spaces.Tuple)) or (
            space.shape is None and not isinstance(space, gym.spaces.Text)
        ):
            raise TypeError(f"{name}.observation_space[{key!r}] must be one array or a Text, got {space}")
    count = int(task.action_space.n) if isinstance(task.action_space, gym.spaces.Discrete) else 0
    if len(task.action_names) not in (0, count):
        raise ValueError(
            f"{name}.action_names must be {count}, one for each Discrete action, or none, got {task.action_names}"
        )
    taken = [option for option in task.option_names if option in (*TRIAL_OPTIONS, "reset_mask")]
    if taken:
        raise ValueError(f"{name}.option_names must not contain {taken[0]!r}, an option of every id")
    settings = () if task.config_type is None else fields(task.config_type)
    taken = [field.name for field in settings if field.name in ENVIRONMENT_ARGUMENTS]
    if taken:
        raise ValueError(f"{name}.config_type must not have {taken[0]!r}, an argument of every environment")
