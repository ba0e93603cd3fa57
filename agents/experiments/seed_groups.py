"""Runs of one task, and which of them differ in their seed alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from memenvs.agents.experiments.config import RunConfig

SEEN_DIFFERENTLY = frozenset(
    {
        "encoder",
        "encoder_kwargs",
        "feature_size",
        "features",
        "image_size",
        "modalities",
        "obs_mode",
        "place",
        "pose_source",
        "tokenizer",
        "trial_episodes",
        "trial_steps",
    }
)
"""Settings of environments in which runs of one task may differ: what is observed, and when a trial ends."""


def check_same_task(runs: Mapping[Path, RunConfig]) -> None:
    """Check that runs are evaluated in the same task, so that their scores can be compared.

    Args:
        runs: Folder -> settings.

    Raises:
        ValueError: They are not; the message names two runs and the first setting that differs. Or two have all
            settings in common, also the seed.
    """
    first, *others = runs
    task = _task(runs[first])
    for folder in others:
        other_task = _task(runs[folder])
        for name in sorted({*task, *other_task}):
            if task.get(name) != other_task.get(name):
                raise ValueError(
                    f"runs must be of the same task: {name} is {task.get(name)!r} in {first} and "
                    f"{other_task.get(name)!r} in {folder}"
                )
    seen: dict[str, Path] = {}
    for folder, config in runs.items():
        other = seen.setdefault(_settings(config, "device", "threads"), folder)
        if other != folder:
            raise ValueError(f"runs must differ in their settings or seeds, got twice the same: {other} and {folder}")


def group_by_settings(runs: Mapping[Path, RunConfig]) -> dict[str, list[Path]]:
    """Group runs that differ in their seed alone; device and threads do not count.

    Args:
        runs: Folder -> settings.

    Returns:
        Name of the group -> its folders, by seed. The name is the beginning that the folders share, without "-SEED", or
        the whole name of the first where two groups would have the same name.
    """
    groups: dict[str, list[Path]] = {}
    for folder in sorted(runs, key=lambda folder: runs[folder].seed):
        groups.setdefault(_settings(runs[folder], "device", "threads", "seed"), []).append(folder)
    ordered = sorted(groups.values(), key=lambda folders: min(list(runs).index(folder) for folder in folders))
    names = [_group_name([(folder.resolve().name, runs[folder].seed) for folder in folders]) for folders in ordered]
    if len(set(names)) < len(names):
        names = [folders[0].resolve().name for folders in ordered]
    if len(set(names)) < len(names):
        names = [str(folders[0]) for folders in ordered]
    return dict(zip(names, ordered, strict=True))


def _group_name(folders: list[tuple[str, int]]) -> str:
    """Name runs by the beginning that their folders share; one run by its folder, without the seed."""
    names = [name.removesuffix(f"-{seed}") for name, seed in folders]
    shared = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in shared).rstrip("-_") or names[0]


def _task(config: RunConfig) -> dict[str, Any]:
    """Settings that decide which episodes are evaluated, and how."""
    env_kwargs = {**config.env_kwargs, **config.eval_kwargs}
    task = {f"env_kwargs.{name}": value for name, value in env_kwargs.items() if name not in SEEN_DIFFERENTLY}
    task |= {"env": config.env, "score": config.score, "acting": config.kind.acts}
    if config.kind.acts:
        task |= {"eval_steps": config.eval_steps, "eval_all_layouts": config.eval_all_layouts}
    return json.loads(json.dumps(task))


def _settings(config: RunConfig, *ignored: str) -> str:
    """All settings but some, as text that can be compared; each seed may start with the weights of its own run."""
    settings = {key: value for key, value in config.without_path().to_json().items() if key not in ignored}
    if settings.get("encoder_from") is not None:
        settings["encoder_from"] = settings["encoder_from"].removesuffix(f"-{config.seed}")
    return json.dumps(settings, sort_keys=True)
