"""The command that trains a run of given settings."""

from __future__ import annotations

import json
import shlex
from typing import Any

from memenvs.agents.experiments.config import RunConfig, difference, with_overrides
from memenvs.agents.presets import PRESETS


def training_command(config: RunConfig) -> str | None:
    """Return the command: the nearest preset and the settings that differ; None without one."""
    settings = json.loads(json.dumps(config.to_json()))
    commands: list[tuple[int, str, list[tuple[str, Any]]]] = []
    for name, preset in PRESETS.items():
        if preset.config.kind == config.kind:
            pairs = _overrides(json.loads(json.dumps(preset.config.to_json())), settings)
            if difference(with_overrides(preset.config, pairs), config) is None:
                commands.append((len(pairs), name, pairs))
    if not commands:
        return None
    _, name, pairs = min(commands, key=lambda command: command[0])
    settings = (f"--{key} {shlex.quote(json.dumps(value))}" for key, value in pairs)
    return " ".join(["memenvs train", name, *settings])


def _overrides(preset: dict[str, Any], settings: dict[str, Any]) -> list[tuple[str, Any]]:
    """(dotted name, value) of the settings that differ; a table that lacks a key of the preset's is given whole."""
    pairs: list[tuple[str, Any]] = []
    for key, value in settings.items():
        had = preset.get(key)
        if value == had:
            continue
        if isinstance(value, dict) and isinstance(had, dict) and had.keys() <= value.keys():
            pairs += [(f"{key}.{name}", part) for name, part in value.items() if name not in had or part != had[name]]
        else:
            pairs.append((key, value))
    return pairs
