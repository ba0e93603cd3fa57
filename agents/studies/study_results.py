"""Tables of finished runs (JSON Lines): settings and evaluations without checkpoints.

A run is addressed by its folder, even if the folder is gone and a table beside it has a row of its name.
`results/ext_objnav/relic-0` is that folder, or the row "relic-0" of a file `results/ext_objnav/*.jsonl`.

Fields of a row:
    run: Name of the folder.
    preset: Name that `find_preset` knows, such as "extobjnav-small:k1".
    env, seed, steps: Environment, seed and total steps of the run.
    overrides: Dotted name of a setting -> value, where the run differs from the preset.
    settings: Hash of all settings of the run, which differs when the preset has changed since.
    versions: Versions of Python and packages as the run began, where they are known.
    checkpoint: Hash of the checkpoint that was evaluated, where it was there.
    evaluations: Name -> content of `NAME.json`.
Policies that are not trained (random, oracle) have only `run` and `evaluations`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.agents.experiments.config import CONFIG, RunConfig, difference, read_config, with_overrides
from memenvs.agents.experiments.directory import VERSIONS, best_checkpoint
from memenvs.agents.presets import find_preset, preset_descriptions
from memenvs.files import list_files, write_file
from memenvs.json_records import format_json, nan_for_null, parse_json

NO_EVALUATIONS = (CONFIG, VERSIONS)
"""JSON files of a run that hold no evaluation."""
DROPPED = ("stderr_clustered", "count")
"""Parts of an evaluated metric that no table shows."""


def read_result(folder: Path, name: str) -> Any:
    """Content of `NAME.json` of a run, with NaN for null.

    It is kept and shared, since tables read it once a cell. So it must not be changed.

    Args:
        folder: Folder of the run, or its place beside the table that has its row.
        name: Name of the evaluation.

    Raises:
        FileNotFoundError: The run has no such evaluation.
    """
    file = folder / f"{name}.json"
    if file.is_file():
        status = file.stat()
        return _read_file(file, (status.st_ino, status.st_size, status.st_mtime_ns))
    row = _find_row(folder)
    if row is None or name not in row["evaluations"]:
        raise FileNotFoundError(f"no evaluation {name!r} of {folder}")
    return row["evaluations"][name]


@lru_cache(maxsize=256)
def _read_file(file: Path, status: tuple[int, ...]) -> Any:
    """Content of a file with NaN for null; read again when inode, size or time have changed."""
    return nan_for_null(parse_json(file.read_bytes(), str(file)))


def write_result(folder: Path, name: str, content: Any) -> None:
    """Write an evaluation of a run, plain data, as `NAME.json` into its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / f"{name}.json", format_json(content).encode())


def metric_means(folders: Sequence[Path], metric: str, policy: str = "agent", name: str = "evaluation") -> np.ndarray:
    """Mean of a metric in an evaluation, of several runs.

    Args:
        folders: Folders of the runs, R of them.
        metric: Name of the metric.
        policy: Policy that was evaluated: "agent", or one that was played beside it.
        name: Name of the evaluation.

    Returns:
        float64, (R,), or (R, E) of a metric by episode of the trial, where E is the smallest number that a run has.

    Raises:
        FileNotFoundError: A run has no such evaluation.
        ValueError: An evaluation has no such mean.
    """
    means = [_mean(folder, metric, policy, name) for folder in folders]
    if means[0].ndim == 0:
        return np.array(means)
    episodes = min(map(len, means))
    return np.array([mean[:episodes] for mean in means])


def _mean(folder: Path, metric: str, policy: str, name: str) -> np.ndarray:
    """Mean of a metric in an evaluation of one run; see `metric_means`."""
    try:
        return np.array(read_result(folder, name)[policy]["metrics"][metric]["mean"], np.float64)
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{folder}: the evaluation {name!r} must have the mean of {metric!r} of {policy!r} ({error!r})"
        ) from None


def has_results(folder: Path, *names: str) -> bool:
    """True if a run has evaluations of these names, all of them."""
    row = _find_row(folder) or {"evaluations": {}}
    return all((folder / f"{name}.json").is_file() or name in row["evaluations"] for name in names)


def result_names(folder: Path) -> list[str]:
    """Names of the evaluations of a run."""
    row = _find_row(folder) or {"evaluations": {}}
    files = [file.stem for file in list_files(folder, "*.json") if file.name not in NO_EVALUATIONS]
    return sorted({*files, *row["evaluations"]})


def find_row_conflict(runs: Mapping[Path, RunConfig]) -> str | None:
    """Describe the first run whose row has other settings; None if there is none.

    Args:
        runs: Folder -> settings.
    """
    try:
        for folder, config in runs.items():
            row = _find_row(folder)
            differs = None if row is None else difference(_row_config(row, folder), config)
            if differs is not None:
                return f"{folder} holds another run: {differs}; choose another folder"
    except ValueError as error:
        return str(error)
    return None


def settings_hash(config: RunConfig) -> str:
    """Hash of all settings of a run, 16 hexadecimal digits.

    Of `encoder_from` only the name of the folder counts, since folders of runs are moved. Settings that are None do not
    count, so that a row stays valid when a version adds one that is off by default, or a learner.
    """
    data = _without_none(config.without_path().to_json())
    if data.get("eval_envs") == data.get("n_envs"):  # as in rows of before this setting
        data.pop("eval_envs", None)
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def _without_none(data: Any) -> Any:
    """Drop the keys of a mapping and of those in it whose value is None."""
    if not isinstance(data, dict):
        return data
    return {name: _without_none(value) for name, value in data.items() if value is not None}


def nearest_preset(config: RunConfig) -> tuple[str, dict[str, Any]]:
    """The preset or variant with the fewest overrides that make a run's settings.

    Returns:
        Its name, and the overrides: dotted name -> value, without the seed.

    Raises:
        ValueError: No preset has the environment and the learner of this run.
    """
    wanted = {name: value for name, value in _as_in_a_file(config).items() if name != "seed"}
    own = config.kind.name
    found = {
        name: _overrides(settings, wanted)
        for name, settings in _preset_settings().items()
        if settings[own] is not None and settings["env"] == config.env
    }
    if not found:
        raise ValueError(f"no preset learns with {config.kind.name} in {config.env}")
    fewest = min(len(overrides) for overrides in found.values())
    name = [name for name, overrides in found.items() if len(overrides) == fewest][-1]  # of equal ones the variant
    return name, found[name]


def pack_runs(folders: Sequence[Path], table: Path, metrics: Sequence[str] = ()) -> int:
    """Write finished runs into a table; rows of the same runs are replaced, others stay.

    Args:
        folders: Folders of runs, or of evaluations of policies that are not trained.
        table: The file, `.jsonl`.
        metrics: Names of metrics to keep; empty for all.

    Returns:
        Number of rows in the table.

    Raises:
        FileNotFoundError: A folder has no evaluation.
        ValueError: The table has another suffix, or settings or results of a run cannot be read.
    """
    if table.suffix != ".jsonl":
        raise ValueError(f"table must be a .jsonl file, got {table}")
    rows = {row["run"]: row for row in _read_table(table)} if table.is_file() else {}
    for folder in folders:
        rows[folder.name] = _pack(folder, metrics)
    table.parent.mkdir(parents=True, exist_ok=True)
    write_file(table, "".join(f"{format_json(rows[name])}\n" for name in sorted(rows)).encode())
    return len(rows)


def _pack(folder: Path, metrics: Sequence[str]) -> dict[str, Any]:
    """A row with everything about a run that tables need."""
    names = [name for name in result_names(folder) if (folder / f"{name}.json").is_file()]
    if not names:
        raise FileNotFoundError(f"no evaluation in {folder}")
    row: dict[str, Any] = {"run": folder.name}
    if (folder / CONFIG).is_file():
        config = read_config(folder).without_path()
        preset, overrides = nearest_preset(config)
        row |= {"preset": preset, "env": config.env, "seed": config.seed, "steps": config.total_steps}
        row |= {"overrides": overrides, "settings": settings_hash(config)}
        if (folder / VERSIONS).is_file():
            row["versions"] = parse_json((folder / VERSIONS).read_bytes(), str(folder / VERSIONS))
        checkpoint = best_checkpoint(folder)
        if checkpoint.is_file():
            row["checkpoint"] = hashlib.sha256(checkpoint.read_bytes()).hexdigest()[:16]
    results = {name: read_result(folder, name) for name in names}
    for name, result in results.items():
        agent = result.get("agent", {"metrics": {}}) if isinstance(result, dict) else None
        if not result or not isinstance(agent, dict) or not agent:
            raise ValueError(
                f"{folder / f'{name}.json'}: must hold the results of an evaluation, got {str(result)[:80]}"
            )
    row["evaluations"] = {name: _slim(result, metrics) for name, result in results.items()}
    return row


def _slim(content: Any, metrics: Sequence[str]) -> Any:
    """Drop what tables do not show: the keys in `DROPPED`, and other keys beside a key that is in `metrics`."""
    if not isinstance(content, dict):
        return content
    if any(name in content for name in metrics):
        content = {name: value for name, value in content.items() if name in metrics}
    return {name: _slim(value, metrics) for name, value in content.items() if name not in DROPPED}


def _overrides(base: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted name -> value, where settings differ; a mapping that lacks a key of the base is given as a whole."""
    changes: dict[str, Any] = {}
    for key, value in wanted.items():
        old = base.get(key)
        if isinstance(old, dict) and isinstance(value, dict) and value and set(old) <= set(value):
            changes |= _overrides(old, value, f"{prefix}{key}.")
        elif old != value or key not in base:
            changes[prefix + key] = value
    return changes


@cache
def _preset_settings() -> dict[str, dict[str, Any]]:
    """Settings of each preset and variant as they are in a file."""
    return {name: _as_in_a_file(find_preset(name)) for name in preset_descriptions()}


def _as_in_a_file(config: RunConfig) -> dict[str, Any]:
    """Settings as they are read from JSON, with lists in place of tuples."""
    data: dict[str, Any] = json.loads(json.dumps(config.to_json()))
    return data


def _row_config(row: Mapping[str, Any], folder: Path) -> RunConfig:
    """Settings of the run of a row.

    Raises:
        ValueError: They are not those that the run had: the preset has changed since, or is gone.
    """
    config = replace(find_preset(row["preset"]), seed=row["seed"])
    config = with_overrides(config, list(row["overrides"].items()))
    now = settings_hash(config)
    if now != row["settings"]:
        raise ValueError(
            f"{folder}: the run had other settings than preset {row['preset']!r} with its overrides now makes "
            f"(hash {row['settings']} there, {now} now); train it again, or give its row the overrides that it had"
        )
    return config


def _find_row(folder: Path) -> dict[str, Any] | None:
    """The row of a run in the tables beside its folder; None if there is none."""
    for table in list_files(folder.parent, "*.jsonl"):
        row = _rows(table, table.stat().st_mtime_ns).get(folder.name)
        if row is not None:
            return row
    return None


@lru_cache(maxsize=64)
def _rows(table: Path, modified: int) -> dict[str, dict[str, Any]]:
    """Rows of a table by the name of their run, with NaN for null; read again when the file has changed."""
    return {row["run"]: {**row, "evaluations": nan_for_null(row["evaluations"])} for row in _read_table(table)}


def _read_table(table: Path) -> list[dict[str, Any]]:
    """All rows.

    Raises:
        ValueError: A line is not a row; the message names it.
    """
    rows = []
    for number, line in enumerate(table.read_bytes().splitlines(), 1):
        row = parse_json(line, f"{table}, line {number}")
        if (
            not isinstance(row, dict)
            or not isinstance(row.get("run"), str)
            or not isinstance(row.get("evaluations"), dict)
        ):
            raise ValueError(f"{table}, line {number}: a row must have 'run' and 'evaluations', a text and an object")
        rows.append(row)
    return rows
