"""The JSON of a checkpoint: what is allowed at the edges, and what is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from memenvs.agents.algorithms.checkpoint_json import CONFIG_KEYS, MAX_COUNT, MAX_PROCESSES, check_config, check_state

CONFIG: dict[str, Any] = {
    **{name: {} for name in CONFIG_KEYS},
    "algorithm": "PartialUpdatePPO",
    "n_envs": 4,
    "processes": 2,
}
STATE: dict[str, Any] = {
    "num_timesteps": 8,
    "n_updates": 2,
    "seed": 3,
    "resets_with_episode": True,
    "recent_episodes": [{"r": 0.5, "l": 7}],
    "recent_successes": [True, False],
    "trials": {"seed": [4, 5, 6], "trial": [0, 2, 1]},
}
COUNT = f"an integer from 0 to {MAX_COUNT}"


def test_config() -> None:
    for change in (
        {},
        {"n_envs": MAX_COUNT, "processes": MAX_PROCESSES},
        {"encoder": None, "vocabulary": None, "policy_only": False},
    ):
        check_config("file", CONFIG | change)
    for key, value, allowed in (
        ("config", [], "a JSON object"),
        ("policy_kwargs", 3, "a JSON object"),
        ("algorithm", 3, "a string"),
        *(("n_envs", value, f"an integer from 1 to {MAX_COUNT}") for value in (0, MAX_COUNT + 1, 1.0, True)),
        *(("processes", value, f"an integer from 1 to {MAX_PROCESSES}") for value in (0, MAX_PROCESSES + 1)),
        ("encoder", 1, "a string"),
        ("vocabulary", [], "a string"),
        ("policy_only", 1, "true or false"),
    ):
        with pytest.raises(ValueError, match=rf"^file: config\.json: {key} must be {allowed}, got "):
            check_config("file", CONFIG | {key: value})


def test_state() -> None:
    for change in (
        {},
        {"num_timesteps": 0, "n_updates": 0, "seed": 0, "filled_at": -1, "decisions": 0},
        {name: MAX_COUNT for name in ("num_timesteps", "n_updates", "seed", "filled_at", "decisions")},
        {"seed": None, "trials": None, "recent_episodes": [], "recent_successes": []},
        {"recent_episodes": [{"r": -1, "l": 0}, {"r": 1e300, "l": MAX_COUNT}]},
    ):
        check_state("file", "state.json", STATE | change)
    for key, value, path, allowed in (
        *((name, -1, name, COUNT) for name in ("num_timesteps", "n_updates", "seed", "decisions")),
        *((name, MAX_COUNT + 1, name, COUNT) for name in ("num_timesteps", "seed")),
        ("n_updates", None, "n_updates", "an integer"),
        ("filled_at", -2, "filled_at", f"an integer from -1 to {MAX_COUNT}"),
        ("resets_with_episode", 1, "resets_with_episode", "true or false"),
        ("episode_is_trial", None, "episode_is_trial", "true or false"),
        ("recent_episodes", {}, "recent_episodes", "a list"),
        ("recent_episodes", [{"r": float("inf"), "l": 1}], r"recent_episodes\[0\].r", "a finite number"),
        ("recent_episodes", [STATE["recent_episodes"][0], {"r": 1}], r"recent_episodes\[1\].l", COUNT),
        ("recent_successes", [True, 1], r"recent_successes\[1\]", "true or false"),
        ("trials", {"seed": [], "trial": []}, r"trials.seed", "a list of at least 1"),
        ("trials", {"seed": [1], "trial": []}, r"trials.trial", "a list of at least 1"),
        ("trials", {"seed": [1, 3], "trial": [0, 0]}, r"trials.seed\[1\]", "2, as seeds are consecutive"),
        ("trials", {"seed": [-1], "trial": [0]}, r"trials.seed\[0\]", COUNT),
        ("trials", {"seed": [1], "trial": [0.5]}, r"trials.trial\[0\]", COUNT),
        ("trials", {"seed": [1, 2], "trial": [0]}, r"trials.trial", "a list of 2, as many as there are seeds"),
    ):
        with pytest.raises(ValueError, match=rf"^file: state\.json: {path} must be {allowed}"):
            check_state("file", "state.json", STATE | {key: value})
