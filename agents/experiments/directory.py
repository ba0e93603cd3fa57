"""The folder of a run: its settings, its log, its checkpoints, held by one process at a time."""

from __future__ import annotations

import csv
import fcntl
import json
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from stable_baselines3.common.logger import KVWriter

import memenvs
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.experiments.config import CONFIG, RunConfig, difference, read_config
from memenvs.files import write_file

CHECKPOINT, BEST, METRICS, VERSIONS = "checkpoint.zip", "best.zip", "metrics.csv", "versions.json"
PACKAGES = ("gymnasium", "numpy", "stable-baselines3", "torch")
"""What a run's numbers depend on besides this package."""
VALIDATION = "validation/return"
"""What a run with validation logs, and what its best checkpoint has most of."""


class RunDirectory:
    """The folder of a run, held by one process at a time, or by the processes of one launch.

    `config.json` (settings), `versions.json` (of Python and packages, as the run began), `metrics.csv` (step, name, value), `tensorboard/`,
    `checkpoint.zip`, `evaluation.json`, `report.html`; with validation `best.zip`; beside the checkpoint of an unfinished run that learns from a
    replay `replay_STEPS.safetensors`; on request `demonstrations_N.json` (evaluated after N of them), `attention.json` and `attention.png`.

    Args:
        path: The folder; made if it is not there.
        config: Settings of a new run; None opens a run that is there.
        processes: Those of a launch, which all must call this; the first holds the folder and writes. None: this one alone.

    Raises:
        FileExistsError: A new run in a folder that has one.
        FileNotFoundError: No run to open.
        ValueError: Its config cannot be read.
        RuntimeError: Another process is working in it.
    """

    def __init__(self, path: str | Path, config: RunConfig | None = None, processes: Processes | None = None) -> None:
        self.path = Path(path)
        self.processes = processes or Processes()
        self._lock: IO[str] | None = None
        with self.processes.fail_together():
            if self.processes.is_first:
                self._take(config)
        try:
            with self.processes.fail_together():
                self.config = read_config(self.path)
        except Exception:
            self.close()
            raise

    def _take(self, config: RunConfig | None) -> None:
        """Locks the folder, and begins a new run in it if settings are given."""
        file = self.path / CONFIG
        if config is not None:
            if file.exists():
                empty = "" if self.has_checkpoint else " (it has no checkpoint yet: unless it is in use, delete it)"
                raise FileExistsError(
                    f"{self.path} already holds a run; choose another folder, or resume it with --resume{empty}"
                )
            self.path.mkdir(parents=True, exist_ok=True)
        else:
            read_config(self.path)  # there is no lock to leave behind where there is no run
        lock = (self.path / ".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise RuntimeError(f"{self.path} is in use by another process") from None
        self._lock = lock
        if config is not None:
            write_file(self.path / VERSIONS, json.dumps(versions(), indent=1).encode())
            write_file(file, json.dumps(config.to_json(), indent=1).encode())  # last: with it the folder holds a run

    @classmethod
    def continued(cls, path: str | Path, config: RunConfig) -> RunDirectory:
        """The run of these settings in a folder: the one that is there, else a new one.

        Raises:
            ValueError: The folder holds a run of other settings; the message names the first that differs.
            RuntimeError: Another process is working in it.
        """
        if not (Path(path) / CONFIG).exists():
            return cls(path, config)
        run = cls(path)
        differs = difference(run.config, config)
        if differs is None:
            return run
        run.close()
        raise ValueError(f"{path} holds another run: {differs}; choose another folder")

    def close(self) -> None:
        """Lets another process have the folder."""
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def has_checkpoint(self) -> bool:
        """Whether there is something to resume or evaluate."""
        return (self.path / CHECKPOINT).is_file()

    def agent(self, name: str | None = None) -> Path:
        """The file of a checkpoint by its name; None: the best one of a run with validation, else the latest."""
        return self.path / name if name is not None else best_checkpoint(self.path)

    def replay(self, step: int) -> Path:
        """The file of the replay that belongs to the checkpoint of an environment step."""
        return self.path / f"replay_{step}.safetensors"

    def drop_replays(self, but: Path | None = None) -> None:
        """Deletes the replays of earlier checkpoints."""
        for file in self.path.glob("replay_*.safetensors"):
            if file != but:
                file.unlink()

    def metrics(self) -> dict[str, list[tuple[int, float]]]:
        """Name -> (environment steps, value) in order.

        Raises:
            ValueError: A line of the file is broken; the message names it.
        """
        series: dict[str, list[tuple[int, float]]] = {}
        file = self.path / METRICS
        if file.is_file():
            *lines, _ = file.read_text().split("\n")  # a line without its end was being written when the run was killed
            for number, row in enumerate(csv.reader(lines), 1):
                if number == 1:
                    continue
                try:
                    step, name, value = int(row[0]), row[1], float(row[2])
                except (ValueError, IndexError):
                    raise ValueError(f"{file}, line {number}: must be step,name,value, got {row}") from None
                series.setdefault(name, []).append((step, value))
        return series

    def drop_metrics_after(self, step: int) -> None:
        """Forgets what a killed run logged after its last checkpoint."""
        kept = [(s, name, v) for name, points in self.metrics().items() for s, v in points if s <= step]
        lines = ["step,name,value", *(f"{s},{name},{v!r}" for s, name, v in sorted(kept, key=lambda row: row[0]))]
        write_file(self.path / METRICS, ("\n".join(lines) + "\n").encode())


def versions() -> dict[str, str]:
    """Versions of Python, this package and those that a run's numbers depend on."""
    others = {name: metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), "memenvs": memenvs.__version__, **others}


def refusal(runs: Mapping[Path, RunConfig]) -> str | None:
    """Why the first of these runs that are there and cannot be continued cannot, before any work is done; None if all can. Makes nothing.

    Args:
        runs: Folder -> settings.
    """
    try:
        for folder, config in runs.items():
            if (folder / CONFIG).exists():
                RunDirectory.continued(folder, config).close()
    except (ValueError, RuntimeError) as error:
        return str(error)
    return None


def holds(path: Path, *names: str) -> bool:
    """Whether a folder has files of these names, all of them. A run whose evaluations are there needs no checkpoint to be shown."""
    return all((path / name).is_file() for name in names)


class MetricsWriter(KVWriter):
    """Appends every number that Stable-Baselines3 logs to a CSV file of (step, name, value).

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        is_new = not path.exists()
        self._file = path.open("a", newline="")
        if is_new:
            self._file.write("step,name,value\n")

    def write(self, key_values: dict[str, Any], key_excluded: Mapping[str, tuple[str, ...]], step: int = 0) -> None:
        """Appends one dump."""
        for name, value in sorted(key_values.items()):
            if isinstance(value, (int, float)):
                self._file.write(f"{step},{name},{float(value)!r}\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def best_checkpoint(path: Path) -> Path:
    """The best checkpoint in the folder of a run with validation, else the latest."""
    best = path / BEST
    return best if best.is_file() else path / CHECKPOINT
