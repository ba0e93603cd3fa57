"""The id of an environment: the row of the registry with the same task and settings."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from memenvs.itineraries import trial_limits
from memenvs.registry import EnvironmentSpec, environments
from memenvs.task import BatchTask

if TYPE_CHECKING:
    from memenvs.core import TrialVectorEnv

#: Settings that do not change what an episode needs: which episodes there are, and how fast they are drawn.
FREE_SETTINGS = ("split", "threads")
#: Settings of the trial layer, with the values that they have where they are not given.
TRIAL_SETTINGS: Mapping[str, Any] = {
    "trial_episodes": None,
    "trial_steps": None,
    "gap": 0,
    "led": False,
    "itinerary": None,
    "leg_flag": False,
}


def row_of(env: TrialVectorEnv, id: str | None = None) -> EnvironmentSpec | None:
    """Find the row with the task and the settings of an environment.

    Args:
        env: The environment, of which `FREE_SETTINGS` are left out.
        id: Full id that it was made by, which decides between equal rows; None or another one: the first row.
    """
    rows = [
        row for row in environments() if is_task_of(row, type(env.task)) and not changed_settings(env, row.defaults)
    ]
    return next((row for row in rows if row.id == id), rows[0] if rows else None)


def is_task_of(row: EnvironmentSpec, task: type[BatchTask]) -> bool:
    """Return True if a row names a task, which is imported already."""
    if not isinstance(row.task, str):
        return row.task is task
    module, _, name = row.task.partition(":")
    return getattr(sys.modules.get(module), name, None) is task


def changed_settings(
    env: TrialVectorEnv, settings: Mapping[str, Any], free: tuple[str, ...] = FREE_SETTINGS
) -> dict[str, tuple[Any, Any]]:
    """Compare the settings of an environment with those that its task would have.

    Args:
        env: The environment.
        settings: Settings of the environment and the task; those that are left out have their defaults.
        free: Settings that may differ.

    Returns:
        Name -> (value in `env`, value by `settings`) of each that differs.
    """
    own = {name: settings.get(name, default) for name, default in TRIAL_SETTINGS.items()}
    own |= trial_limits(own)
    pairs = {name: (getattr(env, name), value) for name, value in own.items()}
    of_task = {name: value for name, value in settings.items() if name not in TRIAL_SETTINGS}
    limit = of_task.pop("max_episode_steps", None)
    config_type = type(env.task).config_type
    if config_type is None:
        pairs |= {name: (env.task_settings.get(name), of_task.get(name)) for name in {*env.task_settings, *of_task}}
    else:
        if limit is not None and "max_episode_steps" in {field.name for field in fields(config_type)}:
            of_task["max_episode_steps"] = limit - own["gap"]
        config, expected = config_type(**env.task_settings), config_type(**of_task)
        pairs |= {
            field.name: (getattr(config, field.name), getattr(expected, field.name)) for field in fields(config_type)
        }
    pairs.setdefault(
        "max_episode_steps", (env.max_episode_steps, env.task.max_episode_steps + env.gap if limit is None else limit)
    )
    return {name: pair for name, pair in pairs.items() if name not in free and pair[0] != pair[1]}
