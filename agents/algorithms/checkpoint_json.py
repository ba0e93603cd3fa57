"""Checks of the JSON of a checkpoint, before anything is made of it."""

from __future__ import annotations

from typing import Any

from memenvs.agents.algorithms.archive import File
from memenvs.checks import is_int
from memenvs.json_records import Field

CONFIG_KEYS = ("algorithm", "config", "policy_kwargs", "observation_space", "action_space", "n_envs")
STATE_KEYS = (
    "num_timesteps",
    "n_updates",
    "seed",
    "resets_with_episode",
    "recent_episodes",
    "recent_successes",
    "trials",
)
MAX_COUNT = 2**62 - 1
"""Largest counter, seed and number of a trial."""
MAX_PROCESSES = 2**16


def check_config(path: File, config: dict[str, Any]) -> None:
    """Raise a ValueError that names the first wrong value of config.json.

    The settings of learner and policy, and the spaces, are checked where they are used.
    """
    root = Field(config, f"{path}: config.json")
    for key in ("config", "policy_kwargs"):
        if not isinstance(config[key], dict):
            raise root[key].error("a JSON object")
    root["algorithm"].text()
    _check_integer(root, "n_envs", 1, MAX_COUNT)
    _check_integer(root, "processes", 1, MAX_PROCESSES)
    for key in ("encoder", "vocabulary"):
        fingerprint = root.get(key)
        if fingerprint is not None:
            fingerprint.text()
    if not isinstance(config.get("policy_only", False), bool):
        raise root["policy_only"].error("true or false")


def check_state(path: File, name: str, state: dict[str, Any]) -> None:
    """Raise a ValueError that names the first wrong value of a state.

    Args:
        path: The file, for messages.
        name: Name of the member, for messages.
        state: Its content, with `STATE_KEYS`.
    """
    root = Field(state, f"{path}: {name}")
    for key in ("num_timesteps", "n_updates"):
        _check_integer(root, key, 0, MAX_COUNT)
    for key, least in (("seed", 0), ("filled_at", -1), ("decisions", 0)):
        if key in state and not (key == "seed" and state[key] is None):
            _check_integer(root, key, least, MAX_COUNT)
    for key in ("resets_with_episode", "episode_is_trial"):
        if not isinstance(state.get(key, False), bool):
            raise Field(state[key], root.source, key).error("true or false")
    for episode in root["recent_episodes"].items():
        episode["r"].number()
        _check_integer(episode, "l", 0, MAX_COUNT)
    for success in root["recent_successes"].items():
        if not isinstance(success.value, bool):
            raise success.error("true or false")
    trials = root.get("trials")
    if trials is not None:
        seeds, numbers = trials["seed"].items(1), trials["trial"].items(1)
        for i, number in enumerate([*seeds, *numbers]):
            if not is_int(number.value) or not 0 <= number.value <= MAX_COUNT:
                raise number.error(f"an integer from 0 to {MAX_COUNT}")
            if 0 < i < len(seeds) and number.value != seeds[0].value + i:
                raise number.error(f"{seeds[0].value + i}, as seeds are consecutive")
        if len(seeds) != len(numbers):
            raise trials["trial"].error(f"a list of {len(seeds)}, as many as there are seeds")


def _check_integer(parent: Field, key: str, low: int, high: int) -> None:
    """Raise a ValueError unless the value of a key is an integer from `low` to `high`."""
    number = Field(parent.value[key] if isinstance(parent.value, dict) and key in parent.value else None, parent.source)
    if not is_int(number.value) or not low <= number.value <= high:
        name = f"{parent.path}.{key}" if parent.path else key
        raise Field(number.value, parent.source, name).error(f"an integer from {low} to {high}")
